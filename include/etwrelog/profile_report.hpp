// What people ask of a profile: who used the time, where, how sure that is, and what could not be named.
// Experimental, like the profile itself. Functions of a profile: no state, any thread, as long as nobody
// changes the profile; results own what they hold. Linear in samples and frames, or that times a logarithm.
#pragma once

#include "etwrelog/error.hpp"
#include "etwrelog/profile.hpp"

#include <optional>
#include <span>

namespace etwrelog {

[[nodiscard]] std::uint64_t total_weight(const Profile &profile);

// Brings the samples of CPU profiles to one unit, so that they can be compared or added up. If all count
// samples of the same interval, nothing is changed. Else all weigh the nanoseconds that they stand for
// (Profile::by_time), of profiles that do not know their interval the assumed one; if that is 0, each counts
// as one sample in all of the profiles, and no interval is known. Profiles without samples follow the others.
void make_comparable(std::span<Profile *const> profiles, std::uint64_t assumed_ns = 0);
inline constexpr std::uint64_t kUsualIntervalNs = 1'000'000; // of Windows

enum class ProfileBy : std::uint8_t { process, thread, module, function, line };

struct ProfileRow {
  std::string name;
  FrameKind kind = FrameKind::native;
  std::uint64_t self = 0; // where it was innermost
  std::uint64_t total =
      0; // where it was on the stack, once a sample; for processes and threads the same as self
  // Of code compiled at run time: what of `total` ran at which tier, by where it stands outermost; most
  // first.
  std::vector<std::pair<std::string, std::uint64_t>> tiers{};
  bool estimated =
      false; // of a function: the name is merely that of the nearest public symbol before, at times
};
// By self, then by total, then by name. Frames without a name count for their module as "module!?"; see
// profile_unresolved for why.
[[nodiscard]] std::vector<ProfileRow> profile_rows(const Profile &profile, ProfileBy by);

struct ProfileTreeRow {
  std::uint32_t depth = 0;
  std::string name;
  FrameKind kind = FrameKind::native;
  std::uint64_t self = 0, total = 0;
  bool estimated = false; // as in ProfileRow
};
// The call tree, the heaviest first, a parent before its children. Left out: what is below `min_share` of
// all.
[[nodiscard]] std::vector<ProfileTreeRow> profile_tree(const Profile &profile, double min_share);

// Half the width of the 95 % interval of a share that was counted in samples.
[[nodiscard]] double sampling_error(std::uint64_t part, std::uint64_t whole);

struct ProfileUnresolved {
  Unresolved why = Unresolved::none;
  std::string module; // "?" where none is known
  std::uint64_t self = 0, total = 0;
};
// Frames without a name, by reason and module, the dearest first.
[[nodiscard]] std::vector<ProfileUnresolved> profile_unresolved(const Profile &profile);
// Weight of samples with any such frame, by reason.
[[nodiscard]] std::vector<ProfileUnresolved> profile_unresolved_reasons(const Profile &profile);

// Weight of samples whose innermost frame has the name of the nearest public symbol before it, as the PDB
// tells no more (ProfileFrame::estimated).
[[nodiscard]] std::uint64_t estimated_weight(const Profile &profile);

// All that are given must hold; of a list any.
struct ProfileSelection {
  std::vector<std::string> processes;   // as Selection's: ids, or names with * and ?
  std::vector<std::string> threads;     // names with * and ?, or ids
  std::optional<std::int64_t> from, to; // ns since trace start, ends included
};
// Leaves only the selected samples; the accounting stays that of the whole. Fails when a name matches
// nothing.
[[nodiscard]] Result<void> select(Profile &profile, const ProfileSelection &selection);

// The process (an index) with the most samples, the Idle process aside; kNoIndex if there are none.
[[nodiscard]] std::uint32_t busiest_process(const Profile &profile);

// Adds another trace's profile, as if its samples had been taken in the same run: each keeps its own times,
// processes and threads. Both are made comparable; of more than two that is better done before, with all.
void append(Profile &profile, Profile &&other);

} // namespace etwrelog
