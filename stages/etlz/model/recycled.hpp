// What the bytes between events are. A session has a few buffers and writes into them over and over; the up
// to seven bytes by which an event is filled up to a multiple of 8 are left alone, so that they keep what
// stood at that place of the same memory when it was a buffer before. In real traces all but a few in ten
// thousand come back when the earlier buffer is known (checked on those of Windows 7 to 11, also on traces
// that were merged: there it is the merging program's memory).
#pragma once

#include "etwrelog/bytes.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace etwrelog::etlz {

// Bytes behind an event that are not all zero.
struct Padding {
  std::uint32_t at = 0;    // in the buffer's events, of the eight bytes that it ends
  std::uint64_t mask = 0;  // which of them it is
  std::uint64_t bytes = 0; // those, the others 0
};

// The memory of the buffers of a segment, in their order.
class RecycledMemory {
public:
  // How far back the memory of a buffer is looked for: more buffers than most sessions have, and few enough
  // that looking at all of them costs nothing beside coding one.
  static constexpr std::size_t kReach = 512;
  static constexpr std::size_t kSample = 16; // paddings that are enough to tell buffers apart

  void clear() {
    images_.clear();
    last_ = 0;
  }
  // `image`: all that is known of what a buffer held. It must stay until clear().
  void add(Bytes image) { images_.push_back(image); }
  // The image `back` buffers before the next one; empty if there is none.
  [[nodiscard]] Bytes image(std::size_t back) const {
    return back == 0 || back > std::min(images_.size(), kReach) ? Bytes() : images_[images_.size() - back];
  }
  // How many buffers back the memory of the next buffer was in use, by some of its paddings; 0 if nothing
  // resembles them.
  [[nodiscard]] std::size_t find(std::span<const Padding> paddings) {
    if (paddings.empty()) return 0;
    std::size_t best = 0, most = 0;
    auto look = [&](std::size_t back) {
      const Bytes old = image(back);
      // Most are told apart by one.
      if (!has(old, paddings.front()) && !has(old, paddings[paddings.size() / 2])) return;
      const auto hits = static_cast<std::size_t>(
          std::ranges::count_if(paddings, [old](const Padding &p) { return has(old, p); }));
      if (hits > most) most = hits, best = back;
    };
    if (last_ != 0) look(last_); // they take turns
    for (std::size_t back = 1; back <= std::min(images_.size(), kReach) && most < paddings.size(); ++back)
      look(back);
    if (best != 0) last_ = best;
    return best;
  }

private:
  [[nodiscard]] static bool has(Bytes image, const Padding &p) {
    return image.size() >= p.at + std::size_t{8} &&
           (load<std::uint64_t>(image.data() + p.at) & p.mask) == p.bytes;
  }
  std::vector<Bytes> images_;
  std::size_t last_ = 0;
};

} // namespace etwrelog::etlz
