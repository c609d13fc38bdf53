// Byte spans and little-endian loads: the only way in which fields are read from and written to a trace.
// Spans own nothing; bounds are the caller's to check. No state, any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace etwrelog {

static_assert(std::endian::native == std::endian::little,
              "ETL is little-endian; a big-endian host needs swaps here");

using Bytes = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

// Loads an integer at any alignment. The caller has checked that sizeof(T) bytes are there.
template <class T> [[nodiscard]] inline T load(const std::uint8_t *at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T> inline void store(std::uint8_t *at, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(at, &value, sizeof value);
}

// A pointer-sized field of an event whose pointer size is 4 or 8.
[[nodiscard]] inline std::uint64_t load_pointer(const std::uint8_t *at, unsigned pointer_size) {
  return pointer_size == 8 ? load<std::uint64_t>(at) : load<std::uint32_t>(at);
}

[[nodiscard]] constexpr std::uint64_t align8(std::uint64_t n) {
  return (n + 7) & ~std::uint64_t{7};
}

} // namespace etwrelog
