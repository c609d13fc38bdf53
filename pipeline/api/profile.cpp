// make_profile of include/etwrelog/profile.hpp over that of one source.
#include "profile_pass/profile.hpp"
#include "api/internals.hpp"
#include "base/errors.hpp"

namespace etwrelog {

Result<ProfileResult> make_profile(const Trace &trace, const ProfileOptions &options, const RunOptions &run) {
  ETWRELOG_TRY_LET(source, detail::Traversal::only_source(trace, "one profile of several traces"));
  detail::Traversal::add_input(run.report, *source);
  Result<ProfileResult> result = pipeline::make_profile(*source, options, run);
  if (result && run.report != nullptr) {
    for (const auto &[name, count] : result->events)
      run.report->events += count;
    detail::Traversal::add_to(run.report, result->skipped, result->warnings);
  }
  return result;
}

} // namespace etwrelog
