// etwrelog info: what is in a trace.
#include "etwrelog/statistics.hpp"
#include "etwrelog/text.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/fleet_sum.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct InfoOptions : CommonOptions {
  SumFlags many;
};

// "2023-04-22 10:47:24.3632943Z  (2023-04-22 03:47:24 local, UTC-07:00)"; without the local time where either
// is no date, as in a header that is damaged.
std::string start_text(const LogfileHeader &h) {
  const std::string utc = filetime_text(h.start_time);
  const std::optional<std::int32_t> bias = h.bias_at(h.start_time);
  if (!bias || !utc.ends_with('Z')) return utc;
  const std::string local = filetime_text(h.start_time - *bias * 60 * kFiletimePerSecond);
  if (!local.ends_with('Z')) return utc;
  constexpr std::size_t kToSeconds = std::string_view("2023-04-22 03:47:24").size();
  return fmt::format("{}  ({} local, UTC{}{:02}:{:02})", utc, local.substr(0, kToSeconds),
                     *bias > 0 ? '-' : '+', std::abs(*bias) / 60, std::abs(*bias) % 60);
}

double ratio(const SourceInfo &source) {
  return source.decoded_bytes == 0
             ? 0
             : static_cast<double>(source.stored_bytes) / static_cast<double>(source.decoded_bytes);
}

// Sizes and numbers of buffers; the rest is the first source's.
SourceInfo sum_of(std::span<const SourceInfo> sources) {
  SourceInfo all = sources.front();
  for (const SourceInfo &source : sources.subspan(1)) {
    all.size += source.size;
    all.stored_bytes += source.stored_bytes;
    all.decoded_bytes += source.decoded_bytes;
    all.buffers += source.buffers;
    all.missing_buffers += source.missing_buffers;
    all.trailing_bytes += source.trailing_bytes;
    all.unwritten_bytes += source.unwritten_bytes;
  }
  return all;
}

json header_json(const LogfileHeader &h) {
  const std::optional<std::int32_t> bias = h.bias_at(h.start_time);
  const std::uint32_t version = h.major | (std::uint32_t{h.minor} << 8) |
                                (std::uint32_t{h.sub_version} << 16) |
                                (std::uint32_t{h.sub_minor_version} << 24);
  return {{"buffer_size", h.buffer_size},
          {"version", version},
          {"provider_version", h.provider_version},
          {"processors", h.processors},
          {"end_time", h.end_time},
          {"timer_resolution", h.timer_resolution},
          {"maximum_file_size", h.maximum_file_size},
          {"log_file_mode", h.log_file_mode},
          {"buffers_written", h.buffers_written},
          {"pointer_size", h.pointer_size},
          {"events_lost", h.events_lost},
          {"cpu_mhz", h.cpu_mhz},
          {"timezone_bias", h.timezone_bias},
          {"timezone_bias_at_start", bias ? json(*bias) : json()},
          {"boot_time", h.boot_time},
          {"perf_freq", h.perf_freq},
          {"start_time", h.start_time},
          {"clock_type", h.clock_type},
          {"buffers_lost", h.buffers_lost},
          {"first_stamp", h.first_stamp},
          {"logger_name", h.session_name},
          {"log_file_name", h.file_name}};
}

json counts_json(const std::map<std::uint32_t, std::uint64_t> &counts, bool hexadecimal) {
  json object = json::object();
  for (const auto &[key, count] : counts)
    object[hexadecimal ? fmt::format("0x{:x}", key) : std::to_string(key)] = count;
  return object;
}

json codecs_json(const CodecCounts &codecs) {
  json object = json::object();
  for (std::size_t i = 0; i < codecs.size(); ++i)
    if (codecs[i] != 0) object[std::string(codec_name(static_cast<Codec>(i)))] = codecs[i];
  return object;
}

// What the header and the buffers of one source say.
json source_json(const SourceInfo &source) {
  const LogfileHeader &h = source.header;
  return {{"file", source.name},
          {"size", source.size},
          {"header", header_json(h)},
          {"start", filetime_text(h.start_time)},
          {"end", filetime_text(h.end_time)},
          {"closed_cleanly", h.closed() && source.missing_buffers == 0},
          {"buffers",
           {{"count", source.buffers},
            {"missing", source.missing_buffers},
            {"decoded_bytes", source.decoded_bytes},
            {"ratio", ratio(source)},
            {"trailing_bytes", source.trailing_bytes},
            {"unwritten_bytes", source.unwritten_bytes}}}};
}

json processes_json(const Clock &clock, const Statistics &s) {
  json processes = json::array();
  for (std::size_t i = 0; i < s.processes.size(); ++i) {
    const ProcessInstance &p = s.processes[i];
    json entry = {{"pid", p.pid},
                  {"parent", p.parent},
                  {"name", p.image_name},
                  {"command_line", p.command_line},
                  {"session", p.session},
                  {"events", s.by_instance[i].events},
                  {"bytes", s.by_instance[i].bytes},
                  {"samples", s.by_instance[i].samples},
                  {"start", nullptr},
                  {"end", nullptr}};
    if (p.start != kBeginning)
      entry["start"] = {{"seconds", clock.to_seconds(p.start)},
                        {"utc", filetime_text(clock.to_filetime(p.start))}};
    if (p.end != kForever) {
      entry["end"] = {{"seconds", clock.to_seconds(p.end)}, {"utc", filetime_text(clock.to_filetime(p.end))}};
      entry["exit_status"] = p.exit_status;
    }
    processes.push_back(std::move(entry));
  }
  return processes;
}

// Of several sources each one's own part stands in "traces", and the sums where one source has its numbers.
json info_json(const Trace &trace, const std::string &name, const Statistics &s) {
  const std::span<const SourceInfo> sources = trace.sources();
  const Clock &clock = trace.clock();
  json info = source_json(sources.front());
  if (sources.size() > 1) {
    const SourceInfo all = sum_of(sources);
    json each = json::array();
    for (const SourceInfo &source : sources)
      each.push_back(source_json(source));
    info = {{"file", name}, {"size", all.size}, {"traces", std::move(each)}};
    info["buffers"] = source_json(all)["buffers"];
  }
  json samples = counts_json(s.samples_by_pid, false);
  if (s.unattributed_samples != 0) samples["None"] = s.unattributed_samples;
  info["buffers"].update({{"raw_bytes", s.claimed_bytes},
                          {"flags", counts_json(s.buffer_flags, true)},
                          {"types", counts_json(s.buffer_types, false)},
                          {"codecs", codecs_json(s.codecs)}});
  info.update({{"last_event", filetime_text(clock.to_filetime(s.last_time))},
               {"duration_seconds", clock.to_seconds(s.last_time)},
               {"events", {{"count", s.events}, {"bytes", s.event_bytes}}},
               {"processes", processes_json(clock, s)},
               {"samples_by_pid", std::move(samples)},
               {"images_by_pid", counts_json(s.images_by_pid, false)},
               {"events_by_header_pid", counts_json(s.events_by_header_pid, false)},
               {"warnings", s.warnings},
               {"skipped", to_json(s.skipped, source_names(trace))}});
  return info;
}

void print_processes(const Clock &clock, const Statistics &s) {
  const std::vector<ProcessInstance> &processes = s.processes;
  std::vector<std::size_t> order(processes.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return s.by_instance[a].samples != s.by_instance[b].samples
               ? s.by_instance[a].samples > s.by_instance[b].samples
               : s.by_instance[a].events > s.by_instance[b].events;
  });
  auto moment = [&](std::int64_t raw, std::int64_t unknown) {
    return raw == unknown ? std::string("-") : fmt::format("{:.3f}s", clock.to_seconds(raw));
  };
  print_text("\n{:>7} {:>7} {:>10} {:>10} {:>10} {:>12}  {}\n", "PID", "Parent", "Start", "End", "Samples",
             "Events", "Name, command line");
  for (const std::size_t i : order) {
    const ProcessInstance &p = processes[i];
    print_row("{:>7} {:>7} {:>10} {:>10} {:>10} {:>12}  {}{}{}", p.pid, p.parent, moment(p.start, kBeginning),
              moment(p.end, kForever), human_count(s.by_instance[i].samples),
              human_count(s.by_instance[i].events), p.image_name.empty() ? "?" : p.image_name,
              p.command_line.empty() ? "" : "  ", p.command_line);
  }
}

void row(std::string_view name, const std::string &value) {
  print_row("{:<16}{}", name, value);
}

void print_duration(const Clock &clock, const Statistics &s) {
  row("Duration", fmt::format("{} to the last event", human_seconds(clock.to_seconds(s.last_time))));
}

void print_compression(const SourceInfo &source, const Statistics &s) {
  std::string codecs;
  for (std::size_t i = 1; i < s.codecs.size(); ++i)
    if (s.codecs[i] != 0)
      codecs += fmt::format("{}{} ({} buffers)", codecs.empty() ? "" : ", ",
                            codec_name(static_cast<Codec>(i)), human_count(s.codecs[i]));
  row("Compression", codecs.empty() ? "none"
                                    : fmt::format("{}, {} of {}", codecs, percent(ratio(source), 1),
                                                  human_bytes(source.decoded_bytes)));
}

// How large the file is, and where it is an archive or compressed, what comes out of it.
std::string size_text(const SourceInfo &source) {
  std::error_code failed;
  const std::uint64_t file = std::filesystem::file_size(source.name, failed); // none of a pipe, or in a zip
  return failed || file == source.size
             ? human_bytes(source.size)
             : fmt::format("{}, {} unpacked", human_bytes(file), human_bytes(source.size));
}

// `alone`: what was counted, where this source is all that there is.
void print_source(const SourceInfo &source, const Statistics *alone) {
  const LogfileHeader &h = source.header;
  row("File", fmt::format("{}  ({})", source.name, size_text(source)));
  row("Session", fmt::format("{}  ({})", h.session_name.empty() ? "-" : h.session_name,
                             h.file_name.empty() ? "-" : h.file_name));
  row("Windows", fmt::format("{}.{} build {}, log version {}.{}", h.major, h.minor, h.provider_version,
                             h.sub_version, h.sub_minor_version));
  row("Machine", fmt::format("{} processors, {} MHz, {}-bit", h.processors, h.cpu_mhz, h.pointer_size * 8));
  row("Clock", fmt::format("{}, {} Hz", clock_name(source.clock.type), source.clock.ticks_per_second()));
  row("Start", start_text(h));
  row("End", filetime_text(h.end_time));
  if (alone != nullptr) print_duration(source.clock, *alone);
  row("Buffers", fmt::format("{} of {}{}", human_count(source.buffers), human_bytes(h.buffer_size),
                             source.wrapped ? ", circular and wrapped" : ""));
  if (alone != nullptr) print_compression(source, *alone);
  row("Lost", h.closed() ? fmt::format("{} events, {} buffers", human_count(h.events_lost),
                                       human_count(h.buffers_lost))
                         : std::string("not known"));
  row("Closed", !h.closed() ? std::string("never: a crash or a copy of a running log")
                : source.missing_buffers == 0
                    ? std::string("cleanly")
                    : fmt::format("yes, but {} of the {} buffers written are missing",
                                  human_count(source.missing_buffers), human_count(h.buffers_written)));
}

void print_info(const Trace &trace, const Statistics &s) {
  const std::span<const SourceInfo> sources = trace.sources();
  if (sources.size() == 1) print_source(sources.front(), &s);
  if (sources.size() > 1) {
    for (const SourceInfo &source : sources) {
      print_source(source, nullptr);
      print_text("\n");
    }
    const SourceInfo all = sum_of(sources);
    row("Together", fmt::format("{} traces  ({}), {} buffers", sources.size(), human_bytes(all.size),
                                human_count(all.buffers)));
    print_duration(trace.clock(), s);
    print_compression(all, s);
  }
  row("Events", fmt::format("{}  ({})", human_count(s.events), human_bytes(s.event_bytes)));
  std::uint64_t samples = s.unattributed_samples;
  for (const auto &[pid, count] : s.samples_by_pid)
    samples += count;
  row("Samples", samples == 0 ? "none"
                              : fmt::format("{}{}", human_count(samples),
                                            s.unattributed_samples == 0
                                                ? ""
                                                : fmt::format(", {} of threads of no known process",
                                                              human_count(s.unattributed_samples))));
  row("Processes", human_count(s.processes.size()));
  if (!s.processes.empty()) print_processes(trace.clock(), s);
}

int run_info(InfoOptions &options) {
  options.many.inputs = options.inputs;
  if (Result<void> sound = options.many.check_as_one(options.as_one, options.many.sum); !sound)
    return report(sound.error());
  if (options.many.sum) return run_sum(Sum::info, options.many, options, 0);
  if (options.inputs.empty()) return report(no_trace_given());
  int status = kDone;
  json all = json::array();
  const std::vector<std::vector<std::string>> traces = options.together();
  for (const std::vector<std::string> &inputs : traces) {
    Bar bar(options.progress);
    auto failed = [&](const Error &error) {
      status = std::max<int>(report(error), kFailed);
      if (traces.size() > 1) all.push_back(failure_json(inputs, error));
    };
    const RunOptions run = options.run(bar);
    const Result<Trace> trace = open_trace(inputs, options.opening(), run);
    if (!trace) {
      failed(trace.error());
      continue;
    }
    const Result<Statistics> statistics = collect_statistics(*trace, run, Counted::processes);
    if (!statistics) {
      failed(statistics.error());
      continue;
    }
    const int damage = report_damage(source_names(*trace), statistics->warnings, statistics->skipped);
    if (status == kDone) status = damage;
    if (options.json) {
      all.push_back(info_json(*trace, name_of(*trace, inputs), *statistics));
    } else {
      if (&inputs != &traces.front()) print_text("\n");
      print_info(*trace, *statistics);
    }
  }
  if (options.json && !all.empty()) print_text("{}\n", text_of(traces.size() == 1 ? all[0] : all));
  return status;
}

void add_info_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App *command = app.add_subcommand("info", "What is in a trace: session, machine, times, processes");
  command->add_option("TRACE", options->inputs,
                      "Trace: " + trace_files() + "; - for standard input. Each by itself");
  options->many.add_to(*command, true);
  options->add_as_one_to(*command);
  options->add_to(*command, true);
  command->callback([options, &exit_status] { exit_status = run_info(*options); });
}

const Command kInfo(10, add_info_command);

} // namespace
} // namespace etwrelog::cli
