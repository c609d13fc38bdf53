#include "handles.hpp"

#include "etwrelog/statistics.hpp"

#include <cstdlib>

struct etwr_processes {
  std::vector<etwrelog::ProcessInstance> known; // the texts
  std::vector<etwr_process> processes;
};

namespace etwrelog::c {
namespace {

// Times of another clock than the trace's go through UTC, as those of events do.
std::int64_t in_clock_of(const Trace &trace, const SourceInfo &source, std::int64_t time) {
  if (source.machine == trace.sources().front().machine) return time;
  return trace.clock().from_filetime(source.clock.to_filetime(time));
}

void add(etwr_processes &into, const Trace &trace, std::uint32_t source, const ProcessInstance &instance) {
  etwr_process process{};
  process.struct_size = sizeof process;
  process.process_id = instance.pid;
  process.parent_id = instance.parent;
  process.session_id = instance.session;
  process.source = source;
  process.has_start = instance.start != kBeginning ? 1 : 0;
  process.has_end = instance.end != kForever ? 1 : 0;
  if (process.has_start != 0) process.start = in_clock_of(trace, trace.sources()[source], instance.start);
  if (process.has_end != 0) {
    process.end = in_clock_of(trace, trace.sources()[source], instance.end);
    process.exit_status = instance.exit_status;
  }
  into.known.push_back(instance);
  into.processes.push_back(process);
}

// One source at a time: a trace of several is not counted at once.
etwr_error *collect(const etwr_trace &trace, const RunOptions &run, etwr_processes &into) {
  const std::size_t count = trace.trace.sources().size();
  for (std::uint32_t i = 0; i < count; ++i) {
    Result<Statistics> counted = [&]() -> Result<Statistics> {
      if (count == 1) return collect_statistics(trace.trace, run);
      Result<Trace> one = Trace::open(trace.inputs[i], trace.open_options, run);
      if (!one) return std::move(one).error();
      return collect_statistics(*one, run);
    }();
    if (!counted) return make_error(std::move(counted).error());
    for (const ProcessInstance &instance : counted->processes)
      add(into, trace.trace, i, instance);
  }
  for (std::size_t i = 0; i < into.processes.size(); ++i) {
    into.processes[i].image_name = into.known[i].image_name.c_str();
    into.processes[i].command_line = into.known[i].command_line.c_str();
  }
  return nullptr;
}

} // namespace
} // namespace etwrelog::c

using namespace etwrelog;

etwr_error *etwr_processes_collect(const etwr_trace *trace, const etwr_run *run, etwr_processes **processes) {
  return c::guarded([&]() -> etwr_error * {
    if (trace == nullptr || processes == nullptr)
      return c::usage("etwr_processes_collect: no trace or no result");
    auto made = std::make_unique<etwr_processes>();
    const c::Run in_run(run);
    if (etwr_error *error = c::collect(*trace, in_run.options(), *made)) return error;
    in_run.tell_warnings();
    *processes = made.release();
    return nullptr;
  });
}

std::size_t etwr_process_count(const etwr_processes *processes) {
  return processes->processes.size();
}

const etwr_process *etwr_process_at(const etwr_processes *processes, std::size_t index) {
  return index < processes->processes.size() ? &processes->processes[index] : nullptr;
}

void etwr_processes_free(etwr_processes *processes) {
  delete processes;
}

etwr_error *etwr_statistics_json(const etwr_trace *trace, const etwr_run *run, char **json) {
  return c::guarded([&]() -> etwr_error * {
    if (trace == nullptr || json == nullptr) return c::usage("etwr_statistics_json: no trace or no result");
    const c::Run in_run(run);
    const Result<Statistics> counted = collect_statistics(trace->trace, in_run.options());
    if (!counted) return c::make_error(counted.error());
    const std::string text = to_json(*counted);
    auto *made = static_cast<char *>(std::malloc(text.size() + 1));
    if (made == nullptr) throw std::bad_alloc();
    std::memcpy(made, text.c_str(), text.size() + 1);
    in_run.tell_warnings();
    *json = made;
    return nullptr;
  });
}
