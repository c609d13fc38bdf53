// include/etwrelog/relog.hpp over the relogger: options in, report out.
#include "etwrelog/relog.hpp"

#include "api/internals.hpp"
#include "api/reading.hpp"
#include "base/errors.hpp"
#include "base/io.hpp"
#include "output/relog.hpp"
#include "output/several.hpp"
#include "schema/event_names.hpp"

#include <algorithm>

namespace etwrelog {
namespace {

pipeline::RelogOptions private_options(const Output &output, const RelogOptions &options,
                                       const RunOptions &run) {
  pipeline::RelogOptions out;
  out.output = output.name();
  out.replace_output = output.existing() == Existing::replace;
  out.selection = options.selection;
  out.codec = options.codec;
  out.level = options.level;
  out.buffer_size = options.buffer_size;
  out.keep_grouping = options.keep_grouping;
  out.count = options.count;
  out.stacks.mode = static_cast<pipeline::StackMode>(options.stacks);
  out.stacks.window = options.stack_window;
  out.stacks.memory = static_cast<std::size_t>(options.stack_memory);
  out.candidate_memory = run.memory / 8 * 3;
  out.graph = run;
  return out;
}
static_assert(static_cast<int>(StackMode::cache) == static_cast<int>(pipeline::StackMode::cache) &&
              static_cast<int>(StackMode::cache_native) ==
                  static_cast<int>(pipeline::StackMode::cache_native) &&
              static_cast<int>(StackMode::expand) == static_cast<int>(pipeline::StackMode::expand));

Result<void> check_options(const RelogOptions &options) {
  const auto bad = [](Option option, const char *what, auto value) {
    return base::bad_option(option, what).found(std::to_string(static_cast<unsigned>(value)));
  };
  if (options.codec && *options.codec > Codec::xpress_huffman)
    return bad(Option::codec, "there is no such codec", *options.codec);
  if (options.level > Level::ultra) return bad(Option::level, "there is no such level", options.level);
  if (options.stacks > StackMode::expand)
    return bad(Option::stacks, "there is no such way with stacks", options.stacks);
  return {};
}

RelogReport public_report(pipeline::RelogReport &&r) {
  RelogReport out;
  out.input_bytes = r.input_bytes;
  out.output_bytes = r.output_bytes;
  out.input_buffers = r.input_buffers;
  out.output_buffers = r.output_buffers;
  out.buffers_left_out = r.buffers_left_out;
  out.buffers_read_again = r.buffers_read_again;
  out.events_in = r.events_in;
  out.events_out = r.events_out;
  out.event_bytes_in = r.event_bytes_in;
  out.event_bytes_out = r.event_bytes_out;
  for (std::size_t i = 0; i < r.by_reason.size(); ++i)
    out.reasons.push_back({filter::reason_name(static_cast<filter::Reason>(i)), r.by_reason[i]});
  std::vector<schema::TypeCount> rows = r.types.rows();
  std::ranges::sort(rows, {}, &schema::TypeCount::type);
  const schema::EventNames names;
  for (const schema::TypeCount &row : rows)
    out.types.push_back(
        {row.type, names.name(row.type), row.events, row.kept_events, row.bytes, row.kept_bytes});
  for (const auto &[pid, count] : r.processes)
    out.processes[pid] = {count.events_in, count.events_out};
  const pipeline::StackRewriteCounts &s = r.stacks;
  out.stacks = {s.walks_in,       s.references_in,   s.definitions_in, s.walks_out,
                s.references_out, s.definitions_out, s.unresolved,     s.restarts};
  out.targets = std::move(r.targets);
  out.warnings = std::move(r.warnings);
  out.skipped = std::move(r.skipped);
  out.seconds = r.seconds;
  return out;
}

void add_to(RunReport *report, const RelogReport &relog) {
  if (report == nullptr) return;
  report->stored_bytes += relog.input_bytes;
  report->buffers += relog.input_buffers;
  report->buffers_left_out += relog.buffers_left_out;
  report->events += relog.events_in;
  detail::Traversal::add_to(report, relog.skipped, relog.warnings);
}

Result<void> relog_any(const Trace &trace, const pipeline::RelogOptions &how, pipeline::RelogReport &report) {
  const pipeline::OpenedTrace &opened = detail::Traversal::of(trace);
  if (opened.stream) {
    if (how.stacks.mode != pipeline::StackMode::keep)
      return base::bad_option(Option::stacks,
                              "cannot be combined: the definition of a stack stands behind its uses")
          .about(Option::single_pass, Option::stacks);
    if (how.keep_grouping)
      return base::bad_option(Option::keep_grouping, "cannot be combined")
          .about(Option::single_pass, Option::keep_grouping);
    ETWRELOG_TRY_LET(stream, opened.stream->take());
    return pipeline::relog_stream(*stream, opened.stream->name(), opened.stream->followed(), how, report);
  }
  ETWRELOG_TRY_LET(sources, detail::Traversal::all_sources(trace));
  return sources.size() == 1 ? pipeline::relog(*sources.front(), how, report)
                             : pipeline::relog_several(sources, how, report);
}

} // namespace

Result<RelogReport> relog(const Trace &trace, const Output &output, const RelogOptions &options,
                          const RunOptions &run) {
  if (output.kind() != Output::Kind::path)
    return base::bad_option(Option::output, "an .etl is written to a file: its header comes last");
  ETWRELOG_TRY(check_options(options));
  ETWRELOG_TRY(pipeline::check_output(trace, output));
  pipeline::RelogReport report;
  Result<void> done = relog_any(trace, private_options(output, options, run), report);
  if (done && !options.selection.everything() && !report.any_fits && report.events_in != 0)
    report.warnings.emplace_back("no event fits the selection: what was kept only describes the machine, its "
                                 "processes and their code");
  RelogReport out = public_report(std::move(report));
  add_to(run.report, out);
  if (!done) {
    Error error = std::move(done).error();
    if (error.advice == Advice::more_stack_memory) error.option = Option::stack_memory;
    return error;
  }
  return out;
}

} // namespace etwrelog
