// include/etwrelog/statistics.hpp over the counting passes.
#include "etwrelog/statistics.hpp"

#include "api/internals.hpp"
#include "base/errors.hpp"
#include "passes/statistics.hpp"

namespace etwrelog {

Result<Statistics> collect_statistics(const Trace &trace, const RunOptions &run) {
  ETWRELOG_TRY_LET(source, detail::Traversal::only_source(trace, "counting several traces at once"));
  detail::Traversal::add_input(run.report, *source);
  Result<Statistics> counted = pipeline::collect_statistics(*source, run);
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
