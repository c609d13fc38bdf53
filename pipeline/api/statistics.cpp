// include/etwrelog/statistics.hpp over the counting passes.
#include "etwrelog/statistics.hpp"

#include "api/internals.hpp"
#include "base/errors.hpp"
#include "passes/statistics.hpp"

namespace etwrelog {
namespace {

Result<Statistics> count_together(const Trace &trace, const RunOptions &run,
                                  const pipeline::CountLimits &limits) {
  const pipeline::OpenedTrace &opened = detail::Traversal::of(trace);
  std::vector<pipeline::CountedTrace> traces;
  for (std::size_t i = 0; i < opened.sources.size(); ++i) {
    pipeline::CountedTrace &counted = traces.emplace_back();
    counted.trace = opened.sources[i].get();
    counted.machine = opened.infos[i].machine;
    if (!opened.clocks[i].same()) counted.time = opened.clocks[i];
  }
  return pipeline::count_traces(traces, run, limits);
}

} // namespace

Result<Statistics> collect_statistics(const Trace &trace, const RunOptions &run, Counted what) {
  const pipeline::CountLimits limits{.what = what};
  ETWRELOG_TRY_LET(sources, detail::Traversal::all_sources(trace));
  for (const pipeline::Trace *source : sources)
    detail::Traversal::add_input(run.report, *source);
  Result<Statistics> counted = sources.size() == 1
                                   ? pipeline::collect_statistics(*sources.front(), run, limits)
                                   : count_together(trace, run, limits);
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
