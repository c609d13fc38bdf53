// include/etwrelog/statistics.hpp over the counting passes.
#include "etwrelog/statistics.hpp"

#include "api/internals.hpp"
#include "base/errors.hpp"
#include "passes/statistics.hpp"

namespace etwrelog {

Result<Statistics> collect_statistics(const Trace &trace, const RunOptions &run) {
  const pipeline::OpenedTrace &opened = detail::Traversal::of(trace);
  if (opened.sources.size() != 1)
    return base::unsupported("counting several traces at once").about(Option::input);
  Result<Statistics> counted = pipeline::collect_statistics(*opened.sources.front(), run);
  if (counted && run.report != nullptr) {
    run.report->events += counted->events;
    run.report->skipped.insert(run.report->skipped.end(), counted->skipped.begin(), counted->skipped.end());
    run.report->warnings.insert(run.report->warnings.end(), counted->warnings.begin(),
                                counted->warnings.end());
  }
  return counted;
}

std::string to_json(const Statistics &statistics) {
  return pipeline::statistics_record(statistics);
}

} // namespace etwrelog
