#include "handles.hpp"

#include "etwrelog/state.hpp"
#include "etwrelog/statistics.hpp"

#include <cstdlib>

struct etwr_processes {
  etwrelog::Lifetimes known; // the texts
  std::vector<etwr_process> processes;
};

namespace etwrelog::c {
namespace {

etwr_process process_of(const ProcessInstance &instance) {
  etwr_process process{};
  process.struct_size = sizeof process;
  process.process_id = instance.pid;
  process.parent_id = instance.parent;
  process.session_id = instance.session;
  process.machine = instance.machine;
  process.has_start = instance.start != kBeginning ? 1 : 0;
  process.has_end = instance.end != kForever ? 1 : 0;
  if (process.has_start != 0) process.start = instance.start;
  if (process.has_end != 0) {
    process.end = instance.end;
    process.exit_status = instance.exit_status;
  }
  process.image_name = instance.image_name.c_str();
  process.command_line = instance.command_line.c_str();
  return process;
}

} // namespace
} // namespace etwrelog::c

using namespace etwrelog;

etwr_error *etwr_processes_collect(const etwr_trace *trace, const etwr_run *run, etwr_processes **processes) {
  return c::guarded([&]() -> etwr_error * {
    if (trace == nullptr || processes == nullptr)
      return c::usage("etwr_processes_collect: no trace or no result");
    const c::Run in_run(run);
    Result<Lifetimes> known = Lifetimes::collect(trace->trace, in_run.options());
    if (!known) return c::make_error(std::move(known).error());
    auto made = std::make_unique<etwr_processes>();
    made->known = *std::move(known);
    for (const ProcessInstance &instance : made->known.processes())
      made->processes.push_back(c::process_of(instance));
    in_run.tell_warnings(&trace->trace);
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
    in_run.tell_warnings(&trace->trace);
    *json = made;
    return nullptr;
  });
}
