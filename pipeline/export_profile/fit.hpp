// Makes a profile smaller when a format would grow beyond its limit: what is least goes into "[other]", with
// its sum.
#pragma once

#include "export_profile/formats.hpp"

#include <functional>

namespace etwrelog::export_profile {

// `profile` itself, or a smaller one in `room`, for which `estimate` says at most `job.max_bytes`. An error
// if even the smallest is too large. `timed`: the format has a place for each sample, so that fewer of them
// help.
[[nodiscard]] Result<const Profile *>
fit_profile(const Job &job, const std::function<std::uint64_t(const Profile &)> &estimate, Profile &room,
            bool timed = true);

[[nodiscard]] Error does_not_fit(std::uint64_t max_bytes);

// At most `nodes` stacks of their own; samples of the others stand at "[other]" below their deepest remaining
// frame. At most `buckets` points of time (0: all): samples of one thread and stack within one are added up.
// `merged` is the weight that went into "[other]".
[[nodiscard]] Profile reduce_profile(const Profile &profile, std::size_t nodes, std::size_t buckets,
                                     std::uint64_t &merged);

// The length from which on slices are shown, so that there are at most `most`: the longest are kept. Notes
// what is left out.
[[nodiscard]] std::int64_t least_slice(const Job &job, std::size_t most);

inline constexpr std::string_view kOther = "[other]";

} // namespace etwrelog::export_profile
