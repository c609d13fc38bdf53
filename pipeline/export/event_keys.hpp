// By what events of a trace are found again.
#pragma once

#include "etwrelog/kernel_events.hpp"

#include <optional>
#include <span>

namespace etwrelog::pipeline {

// The hook of an event, also of a classic one that stands for one.
[[nodiscard]] inline std::optional<std::uint16_t> hook_of(const EventView &event) {
  if (event.has_hook()) return event.hook();
  if (event.is_classic()) return kernel::hook_of_class(event.provider(), event.opcode());
  return std::nullopt;
}

[[nodiscard]] inline std::uint64_t hash_words(std::span<const std::uint64_t> words) {
  std::uint64_t h = words.size() * 0x9E37'79B9'7F4A'7C15ull;
  for (const std::uint64_t word : words)
    h = (h ^ word) * 0xD6E8'FEB8'6659'FD93ull, h ^= h >> 32;
  return h;
}

} // namespace etwrelog::pipeline
