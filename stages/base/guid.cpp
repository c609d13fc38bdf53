#include "etwrelog/guid.hpp"

#include "base/seed.hpp"

#include <fmt/format.h>

namespace etwrelog {

std::uint64_t detail::hash_of(const Guid &guid) noexcept {
  static const base::SeededHash hash;
  return hash(hash(guid.low) ^ guid.high);
}

std::string to_string(const Guid &guid) {
  std::array<std::uint8_t, 16> b{};
  store_guid(b.data(), guid);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:02x}{:02x}-{:02x}{:02x}{:02x}{:02x}{:02x}{:02x}",
                     load<std::uint32_t>(&b[0]), load<std::uint16_t>(&b[4]), load<std::uint16_t>(&b[6]), b[8],
                     b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

std::optional<Guid> parse_guid(std::string_view text) {
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') text = text.substr(1, 36);
  if (text.size() != 36) return std::nullopt;
  // The position in the text of each byte in file order.
  static constexpr std::array<int, 16> kAt = {6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34};
  std::array<std::uint8_t, 16> b{};
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((i == 8 || i == 13 || i == 18 || i == 23) != (text[i] == '-')) return std::nullopt;
  for (std::size_t i = 0; i < 16; ++i) {
    unsigned value = 0;
    for (int k = 0; k < 2; ++k) {
      const char c = text[static_cast<std::size_t>(kAt[i] + k)];
      unsigned digit = 0;
      if (c >= '0' && c <= '9')
        digit = static_cast<unsigned>(c - '0');
      else if (c >= 'a' && c <= 'f')
        digit = static_cast<unsigned>(c - 'a') + 10;
      else if (c >= 'A' && c <= 'F')
        digit = static_cast<unsigned>(c - 'A') + 10;
      else
        return std::nullopt;
      value = value * 16 + digit;
    }
    b[i] = static_cast<std::uint8_t>(value);
  }
  return load_guid(b.data());
}

} // namespace etwrelog
