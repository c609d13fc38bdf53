// Calls that write files: relogging and archives.
#include "handles.hpp"

#include "etwrelog/archive.hpp"
#include "etwrelog/relog.hpp"

namespace etwrelog::c {
namespace {

std::uint64_t bytes_of(const std::vector<Skipped> &skipped) {
  std::uint64_t bytes = 0;
  for (const Skipped &stretch : skipped)
    bytes += stretch.bytes;
  return bytes;
}

Output output_at(const char *path, int replace) {
  return Output(path, replace != 0 ? Existing::replace : Existing::refuse);
}

etwr_error *read_options(const etwr_relog_options &given, const Trace &trace, const RunOptions &run,
                         RelogOptions &options) {
  if (given.codec < ETWR_CODEC_AUTO || given.codec > ETWR_CODEC_XPRESS_HUFFMAN)
    return usage("etwr_relog: no such codec");
  if (given.codec != ETWR_CODEC_AUTO) options.codec = static_cast<Codec>(given.codec - ETWR_CODEC_NONE);
  static_assert(static_cast<int>(Codec::xpress_huffman) == ETWR_CODEC_XPRESS_HUFFMAN - ETWR_CODEC_NONE &&
                static_cast<int>(Codec::xpress) == ETWR_CODEC_XPRESS - ETWR_CODEC_NONE &&
                static_cast<int>(Codec::lznt1) == ETWR_CODEC_LZNT1 - ETWR_CODEC_NONE);
  const std::optional<Level> level = level_of(given.level);
  if (!level) return usage("etwr_relog: no such level");
  options.level = *level;
  if (given.stacks < ETWR_STACKS_KEEP || given.stacks > ETWR_STACKS_EXPAND)
    return usage("etwr_relog: no such way with stacks");
  options.stacks = static_cast<StackMode>(given.stacks);
  static_assert(static_cast<int>(StackMode::cache) == ETWR_STACKS_CACHE &&
                static_cast<int>(StackMode::cache_native) == ETWR_STACKS_CACHE_NATIVE &&
                static_cast<int>(StackMode::expand) == ETWR_STACKS_EXPAND);
  options.buffer_size = given.buffer_size;
  options.keep_grouping = given.keep_grouping != 0;
  if (given.stack_window != 0) options.stack_window = given.stack_window;
  if (given.stack_memory != 0) options.stack_memory = given.stack_memory;
  return read_selection(given.selection, trace, {}, run, options.selection);
}

etwr_error *tell(const Result<UnpackReport> &done, const Run &run, etwr_archive_report *report) {
  if (!done) return make_error(done.error());
  etwr_archive_report made{};
  made.original = done->original;
  made.archived = done->archived;
  made.segments = done->segments;
  made.hash_checked = done->hash_checked ? 1 : 0;
  made.missing_bytes = bytes_of(done->missing);
  give(made, report);
  run.tell(done->missing);
  return nullptr;
}

} // namespace
} // namespace etwrelog::c

using namespace etwrelog;

etwr_error *etwr_relog(const etwr_trace *trace, const char *output, const etwr_relog_options *options,
                       const etwr_run *run, etwr_relog_report *report) {
  return c::guarded([&]() -> etwr_error * {
    if (trace == nullptr || output == nullptr) return c::usage("etwr_relog: no trace or no output");
    const etwr_relog_options given = c::copy_of(options);
    RelogOptions how;
    const c::Run in_run(run);
    if (etwr_error *error = c::read_options(given, trace->trace, in_run.options(), how)) return error;
    const Result<RelogReport> done =
        relog(trace->trace, c::output_at(output, given.replace), how, in_run.options());
    if (!done) return c::make_error(done.error());
    etwr_relog_report made{};
    made.input_bytes = done->input_bytes;
    made.output_bytes = done->output_bytes;
    made.input_buffers = done->input_buffers;
    made.output_buffers = done->output_buffers;
    made.events_in = done->events_in;
    made.events_out = done->events_out;
    made.event_bytes_in = done->event_bytes_in;
    made.event_bytes_out = done->event_bytes_out;
    made.skipped_bytes = c::bytes_of(done->skipped);
    c::give(made, report);
    in_run.tell_warnings(&trace->trace);
    return nullptr;
  });
}

etwr_error *etwr_pack(const char *input, const char *output, const etwr_archive_options *options,
                      const etwr_run *run, etwr_archive_report *report) {
  return c::guarded([&]() -> etwr_error * {
    if (input == nullptr || output == nullptr) return c::usage("etwr_pack: no input or no output");
    const etwr_archive_options given = c::copy_of(options);
    PackOptions how;
    const std::optional<Level> level = c::level_of(given.level);
    if (!level || *level == Level::fast) return c::usage("etwr_pack: no such level");
    how.level = *level;
    how.verify = given.unchecked == 0;
    const c::Run in_run(run);
    const Result<PackReport> done =
        pack(Input(input), c::output_at(output, given.replace), how, in_run.options());
    if (!done) return c::make_error(done.error());
    etwr_archive_report made{};
    made.original = done->original;
    made.archived = done->archived;
    made.segments = done->segments;
    made.events = done->events;
    made.buffers = done->buffers;
    made.is_trace = done->is_trace ? 1 : 0;
    c::give(made, report);
    in_run.tell_warnings();
    return nullptr;
  });
}

etwr_error *etwr_unpack(const char *archive, const char *output, const etwr_archive_options *options,
                        const etwr_run *run, etwr_archive_report *report) {
  return c::guarded([&]() -> etwr_error * {
    if (archive == nullptr || output == nullptr) return c::usage("etwr_unpack: no archive or no output");
    const etwr_archive_options given = c::copy_of(options);
    const c::Run in_run(run);
    return c::tell(unpack(Input(archive), c::output_at(output, given.replace),
                          {.salvage = given.salvage != 0}, in_run.options()),
                   in_run, report);
  });
}

etwr_error *etwr_verify(const char *archive, const char *original, const etwr_archive_options *options,
                        const etwr_run *run, etwr_archive_report *report) {
  return c::guarded([&]() -> etwr_error * {
    if (archive == nullptr) return c::usage("etwr_verify: no archive");
    const etwr_archive_options given = c::copy_of(options);
    if (original != nullptr && given.salvage != 0)
      return c::usage("etwr_verify: salvage does not go with an original, of which every byte is compared");
    const c::Run in_run(run);
    return c::tell(original != nullptr
                       ? verify_against(Input(archive), Input(original), in_run.options())
                       : verify(Input(archive), {.salvage = given.salvage != 0}, in_run.options()),
                   in_run, report);
  });
}
