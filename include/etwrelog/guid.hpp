// A GUID as it stands in a trace: 16 bytes, the first three fields little-endian. A value; no state, any
// thread. Its order is that of the two numbers, not of the text.
#pragma once

#include "etwrelog/bytes.hpp"

#include <array>
#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace etwrelog {

struct Guid {
  std::uint64_t low = 0;  // bytes 0..7
  std::uint64_t high = 0; // bytes 8..15

  constexpr auto operator<=>(const Guid &) const = default;
};

[[nodiscard]] inline Guid load_guid(const std::uint8_t *at) {
  return {load<std::uint64_t>(at), load<std::uint64_t>(at + 8)};
}
inline void store_guid(std::uint8_t *at, const Guid &guid) {
  store(at, guid.low);
  store(at + 8, guid.high);
}

// From the five groups as printed: 3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c is
// make_guid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c).
[[nodiscard]] constexpr Guid make_guid(std::uint32_t a, std::uint16_t b, std::uint16_t c, std::uint16_t d,
                                       std::uint64_t e) {
  std::uint64_t tail = (std::uint64_t{d} << 48) | (e & 0xFFFF'FFFF'FFFFull), swapped = 0;
  for (int i = 0; i < 8; ++i, tail >>= 8)
    swapped = (swapped << 8) | (tail & 0xFF);
  return {a | (std::uint64_t{b} << 32) | (std::uint64_t{c} << 48), swapped};
}

[[nodiscard]] std::string to_string(const Guid &guid);               // lower case, no braces
[[nodiscard]] std::optional<Guid> parse_guid(std::string_view text); // with or without braces

namespace detail {
[[nodiscard]] std::uint64_t hash_of(const Guid &guid) noexcept;
}

} // namespace etwrelog

// GUIDs come out of files: with a random key, one for the process, nobody can choose some that all have one
// hash. Another one in each run of a program, therefore.
template <> struct std::hash<etwrelog::Guid> {
  std::size_t operator()(const etwrelog::Guid &guid) const noexcept {
    return static_cast<std::size_t>(etwrelog::detail::hash_of(guid));
  }
};
