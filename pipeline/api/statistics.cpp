// include/etwrelog/statistics.hpp over the counting passes.
#include "etwrelog/statistics.hpp"

#include "api/state.hpp"
#include "base/errors.hpp"
#include "passes/statistics.hpp"

namespace etwrelog {
namespace {

// Several traces as one: who owns an event is told by all traces of its machine.
Result<Statistics> count_together(const Trace &trace, const RunOptions &run) {
  const pipeline::OpenedTrace &opened = detail::Traversal::of(trace);
  RunOptions unreported = run; // what is met on the way is met again when counting
  unreported.report = nullptr;
  ETWRELOG_TRY_LET(collected, pipeline::collect_state(trace, unreported, nullptr));
  const Lifetimes::Impl &state = *StateParts::of(collected);
  std::vector<pipeline::CountedTrace> traces;
  for (std::size_t i = 0; i < opened.sources.size(); ++i) {
    const std::uint32_t machine = opened.infos[i].machine;
    pipeline::CountedTrace &counted = traces.emplace_back();
    counted.trace = opened.sources[i].get();
    counted.lifetimes = state.machines[machine]->lifetimes.get();
    counted.machine = machine;
    counted.first_buffer = state.first_buffer[i];
    counted.first_process = state.machines[machine]->first_process;
    if (!opened.clocks[i].same()) counted.time = opened.clocks[i];
  }
  return pipeline::count_traces(traces, state.processes, run);
}

} // namespace

Result<Statistics> collect_statistics(const Trace &trace, const RunOptions &run) {
  ETWRELOG_TRY_LET(sources, detail::Traversal::all_sources(trace));
  for (const pipeline::Trace *source : sources)
    detail::Traversal::add_input(run.report, *source);
  Result<Statistics> counted =
      sources.size() == 1 ? pipeline::collect_statistics(*sources.front(), run) : count_together(trace, run);
  if (counted && run.report != nullptr) {
    run.report->events += counted->events;
    detail::Traversal::add_to(run.report, counted->skipped, counted->warnings);
  }
  return counted;
}

std::string to_json(const Statistics &statistics) {
  return pipeline::statistics_record(statistics);
}

} // namespace etwrelog
