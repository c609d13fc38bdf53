// What changed between two sets of profiles, and whether that is more than noise. Experimental, like the
// profile itself.
//
// Each function's share of its trace is compared, so that traces of different length can be. Within one trace
// a share is a count of samples, whose error is binomial; of several traces a side it is what they differ by
// (bootstrap over the traces, with fixed random numbers: the same input gives the same result). No state, any
// thread; results own what they hold.
#pragma once

#include "etwrelog/profile_report.hpp"

#include <span>

namespace etwrelog {

enum class ProfileVerdict : std::uint8_t { same, more, less, appeared, vanished };
[[nodiscard]] const char *verdict_text(ProfileVerdict verdict); // "same": within the noise

struct ProfileChange {
  std::string name;
  double before = 0, after = 0; // shares; of the total: seconds of processor time a trace, or events
  double low = 0, high = 0;     // 95 % interval of after - before
  double relative_low = 0, relative_high = 0; // of (after - before) / before; infinite where before is 0
  ProfileVerdict verdict = ProfileVerdict::same;
  [[nodiscard]] double relative() const;
};

struct ProfileDiff {
  ProfileChange total;                // processor time, or events, not brought to the same total
  std::vector<ProfileChange> changes; // of functions with what they called, the largest change first
};
// Neither side may be empty, and all must be comparable (make_comparable).
[[nodiscard]] ProfileDiff profile_diff(std::span<const Profile> before, std::span<const Profile> after);

// "total > +5%", "game.exe!Render > +10%", "*!memcpy* < -3%".
struct ProfileCondition {
  std::string name; // * and ? as wildcards; "total"
  bool above = true;
  double limit = 0; // of the relative change
};
[[nodiscard]] Result<ProfileCondition> parse_condition(std::string_view text);
// The changes that fulfil it even at the near end of their interval.
[[nodiscard]] std::vector<ProfileChange> matching_changes(const ProfileDiff &diff,
                                                          const ProfileCondition &condition);
// Whether any function of either side has the condition's name, which can hold of nothing otherwise.
[[nodiscard]] bool names_any(const ProfileDiff &diff, const ProfileCondition &condition);

} // namespace etwrelog
