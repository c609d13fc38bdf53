// Which part of a stack, written later as an event of its own, an event awaits (etwrelog/event.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

namespace etwrelog::filter {

using LaterKey = std::tuple<std::uint64_t, std::uint32_t, std::int64_t>; // MatchId, thread, time

// The first part that the event's thread wrote under its number from then on, as numbers are given again; the
// end if there is none. `parts` in order of `key_of`, their LaterKey.
template <class Parts, class KeyOf> auto find_later_part(Parts &parts, const LaterKey &event, KeyOf key_of) {
  const auto part = std::ranges::lower_bound(parts, event, {}, key_of);
  const auto whose = [](const LaterKey &key) { return std::pair(std::get<0>(key), std::get<1>(key)); };
  return part != parts.end() && whose(std::invoke(key_of, *part)) == whose(event) ? part : parts.end();
}

} // namespace etwrelog::filter
