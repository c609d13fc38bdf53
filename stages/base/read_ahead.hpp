// Asking the processor for memory before it is needed.
#pragma once

#include "etwrelog/bytes.hpp"

#include <algorithm>

namespace etwrelog::base {

// Of bytes that hold events, or what such a buffer held before: while the event from `at` to `end` is dealt
// with, those of the next ones are fetched. What was last used a segment ago is no longer in the cache, and
// where the next event is only this one tells: of itself, the processor reads ahead too late.
inline void read_ahead(Bytes bytes, std::size_t at, std::size_t end) {
  constexpr std::size_t kAhead = 512, kLine = 64;
  const std::size_t last = std::min(end + kAhead, bytes.size());
  for (at += kAhead; at < last; at += kLine)
    __builtin_prefetch(bytes.data() + at);
}

} // namespace etwrelog::base
