// Makes a profile smaller when a format would grow beyond its limit: what is least goes into "[other]", with
// its sum.
#pragma once

#include "export_profile/formats.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

namespace etwrelog::export_profile {

// The heaviest of many, of equal ones the first: of those at the limit some stay, or of many equal ones none
// would. Knows the heaviest that does not stay; nullopt: all do.
template <class Weight> struct Heaviest {
  std::optional<Weight> cut_weight;
  std::size_t cut = 0; // its index
  [[nodiscard]] bool has(Weight weight, std::size_t index) const {
    return !cut_weight || weight > *cut_weight || (weight == *cut_weight && index < cut);
  }
};
template <class WeightOf>
[[nodiscard]] auto heaviest(std::size_t count, std::size_t most, WeightOf weight_of) {
  Heaviest<decltype(weight_of(std::size_t{0}))> kept;
  if (count <= most) return kept;
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto at = order.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(order.begin(), at, order.end(), [&weight_of](std::size_t a, std::size_t b) {
    return weight_of(a) != weight_of(b) ? weight_of(a) > weight_of(b) : a < b;
  });
  kept.cut = *at;
  kept.cut_weight = weight_of(*at);
  return kept;
}

// Between two neighbouring sizes on the way from everything to hardly anything there are so many others.
inline constexpr std::size_t kFine = 32;

// Writes the file to `out` and notes in the report what is not in it. `given_up` is 0 for everything. False,
// with nothing written: this is no less than with 0.
using Render = std::function<bool(std::size_t given_up, Out &out)>;

// Gives up as little as gives a file of at most `max_bytes`, all of it at `last`. Sizes are those of files,
// not estimates: the file is rendered, kept while it is small, and searched for in few attempts. An error if
// none of them fits.
[[nodiscard]] Result<void> write_largest(std::uint64_t max_bytes, ProfileExportReport &report,
                                         std::size_t last, const Render &render, Out &out);

[[nodiscard]] Error does_not_fit(std::uint64_t max_bytes);

// From `count` down to `least` in halves, and evenly between those.
[[nodiscard]] std::size_t halving_steps(std::size_t count, std::size_t least); // in units of kFine
[[nodiscard]] std::size_t halved(std::size_t count, std::size_t least, std::size_t at);

// The longest of a profile's slices.
struct ShownSlices : Heaviest<std::int64_t> {
  [[nodiscard]] bool shows(const ProfileSlice &slice, std::size_t index) const {
    return has(slice.end - slice.start, index);
  }
};
// Notes what is left out.
[[nodiscard]] ShownSlices longest_slices(const Job &job, std::size_t most);

// What a format does with less of a profile.
struct Shrinking {
  bool timed = true; // it has a place for each sample, so that fewer of them help
  // About what a slice takes in the file, 0 if there are none. They go first, until they take a quarter.
  std::uint64_t slice_bytes = 0;
};
using RenderProfile = std::function<void(const Profile &, const ShownSlices &, Out &)>;
[[nodiscard]] Result<void> write_fitting(const Job &job, const Shrinking &how, const RenderProfile &render,
                                         Out &out);

// At most `nodes` stacks of their own; samples of the others stand at "[other]" below their deepest remaining
// frame. At most `buckets` points of time (0: all): samples of one thread and stack within one are added up,
// unless that gains next to nothing.
struct Reduced {
  Profile profile;
  std::uint64_t merged = 0; // weight that went into "[other]"
  bool added_up = false;
};
// Nothing where all of it stays.
[[nodiscard]] std::optional<Reduced> reduce_profile(const Profile &profile, std::size_t nodes,
                                                    std::size_t buckets);

inline constexpr std::string_view kOther = "[other]";

} // namespace etwrelog::export_profile
