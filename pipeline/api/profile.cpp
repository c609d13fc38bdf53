// make_profile of include/etwrelog/profile.hpp over that of the passes.
#include "profile_pass/profile.hpp"
#include "api/internals.hpp"
#include "base/errors.hpp"
#include "output/several.hpp"

namespace etwrelog {

Result<ProfileResult> make_profile(const Trace &trace, const ProfileOptions &options, const RunOptions &run) {
  ETWRELOG_TRY_LET(sources, detail::Traversal::all_sources(trace));
  ETWRELOG_TRY(pipeline::check_one_boot(sources));
  for (const pipeline::Trace *source : sources)
    detail::Traversal::add_input(run.report, *source);
  Result<ProfileResult> result = pipeline::make_profile(sources, options, run);
  if (result && run.report != nullptr) {
    for (const auto &[name, count] : result->events)
      run.report->events += count;
    detail::Traversal::add_to(run.report, result->skipped, result->warnings);
  }
  return result;
}

} // namespace etwrelog
