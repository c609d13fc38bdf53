// Many integers as text that scripts of pages read.
#pragma once

#include <cstdint>
#include <string>

namespace etwrelog::export_profile {

// Base64 of integers, seven bits a byte, the least significant first, the top bit set where more follows.
class Column {
public:
  void add(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  const std::string &finish() {
    while (bits_ % 24 != 0 && bits_ != 0) {
      const unsigned missing = 24 - bits_;
      group_ <<= missing;
      for (unsigned i = 0; i < 4; ++i)
        text_ += i * 6 < bits_ ? kDigits[(group_ >> (18 - 6 * i)) & 63] : '=';
      bits_ = 0;
    }
    return text_;
  }

private:
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  void byte(std::uint8_t value) {
    group_ = (group_ << 8) | value;
    bits_ += 8;
    if (bits_ != 24) return;
    for (unsigned i = 0; i < 4; ++i)
      text_ += kDigits[(group_ >> (18 - 6 * i)) & 63];
    group_ = bits_ = 0;
  }
  std::string text_;
  std::uint32_t group_ = 0, bits_ = 0;
};

} // namespace etwrelog::export_profile
