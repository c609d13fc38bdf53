// Random values of a type, as bytes and as they are shown.
#pragma once

#include "rng.hpp"

#include "etwrelog/bytes.hpp"
#include "etwrelog/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace etwrelog::gen {

using Json = nlohmann::ordered_json;
using Raw = std::vector<std::uint8_t>;

template <class T> void put(Raw &out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof value);
  store(out.data() + at, value);
}
inline void put_units(Raw &out, std::string_view utf8) {
  for (const char16_t unit : utf16_from_utf8(utf8))
    put(out, unit);
}

// What a value is shown as, whatever its bytes are called in a schema.
enum class Shown : std::uint8_t { number, hex, truth, port, ipv4, date, character };

struct Values {
  Rng &rng;
  unsigned pointer_size;

  // One of the ends of the range, or anything in it.
  std::uint64_t bits(unsigned bytes) {
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * bytes);
    switch (rng.below(5)) {
    case 0: return 0;
    case 1: return all;
    case 2: return all / 2; // the largest with a sign
    case 3: return all / 2 + 1;
    default: return rng.next() & all;
    }
  }
  static void put_bits(Raw &out, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i)
      out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  Json integer(Raw &out, unsigned bytes, bool has_sign, Shown shown = Shown::number) {
    std::uint64_t value = bits(bytes);
    switch (shown) {
    case Shown::hex: put_bits(out, value, bytes); return fmt::format("0x{:x}", value);
    case Shown::truth: put_bits(out, value &= 1, bytes); return value != 0;
    case Shown::port: put_bits(out, value, bytes); return (value & 0xFF) << 8 | value >> 8;
    case Shown::ipv4:
      put_bits(out, value, bytes);
      return fmt::format("{}.{}.{}.{}", value & 255, value >> 8 & 255, value >> 16 & 255, value >> 24);
    case Shown::character:
      value = bytes == 2 && rng.below(2) == 0 ? 0xE4 : 'A' + rng.below(26);
      put_bits(out, value, bytes);
      return value == 0xE4 ? std::string("\xC3\xA4") : std::string(1, static_cast<char>(value));
    case Shown::date: return filetime(out);
    case Shown::number: break;
    }
    put_bits(out, value, bytes);
    if (!has_sign) return value;
    const unsigned unused = 64 - 8 * bytes;
    return static_cast<std::int64_t>(value << unused) >> unused;
  }
  Json pointer(Raw &out) { return integer(out, pointer_size, false, Shown::hex); }
  Json single(Raw &out) {
    const float value = static_cast<float>(static_cast<std::int16_t>(rng.bits())) / 4; // few digits
    put(out, value);
    return value;
  }
  Json real(Raw &out) {
    const double value = static_cast<double>(static_cast<std::int64_t>(rng.next())) / 65536;
    put(out, value);
    return value;
  }
  Json filetime(Raw &out) {
    constexpr std::pair<std::int64_t, const char *> kTimes[] = {
        {0, "1601-01-01T00:00:00.0000000Z"},
        {116'444'736'000'000'000, "1970-01-01T00:00:00.0000000Z"},
        {132'404'548'251'234'567, "2020-07-29T00:07:05.1234567Z"},
        {2'650'467'743'999'999'999, "9999-12-31T23:59:59.9999999Z"}};
    const auto &[ticks, text] = kTimes[rng.below(std::size(kTimes))];
    put(out, ticks);
    return text;
  }
  Json systemtime(Raw &out) {
    for (const int word : {2020, 7, 3, 29, 0, 7, 5, 123})
      put(out, static_cast<std::uint16_t>(word));
    return "2020-07-29T00:07:05.123Z";
  }
  Json guid(Raw &out) {
    for (const int byte :
         {0x44, 0x33, 0x22, 0x11, 0x66, 0x55, 0x88, 0x77, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff})
      out.push_back(static_cast<std::uint8_t>(byte));
    const auto last = static_cast<std::uint8_t>(rng.below(256));
    out.push_back(last);
    return fmt::format("11223344-5566-7788-99aa-bbccddeeff{:02x}", last);
  }
  Json sid(Raw &out) {
    const std::uint32_t parts = 1 + rng.below(5);
    for (const std::uint32_t byte : {1u, parts, 0u, 0u, 0u, 0u, 0u, 5u})
      out.push_back(static_cast<std::uint8_t>(byte));
    std::string text = "S-1-5";
    for (std::uint32_t i = 0; i < parts; ++i) {
      const std::uint32_t part = rng.bits();
      put(out, part);
      text += fmt::format("-{}", part);
    }
    return text;
  }
  Json binary(Raw &out, std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
      out.push_back(static_cast<std::uint8_t>(rng.below(256)));
      text += fmt::format("{:02x}", out.back());
    }
    return text;
  }
  Json ipv6(Raw &out) {
    for (const int byte : {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
      out.push_back(static_cast<std::uint8_t>(byte));
    const auto last = static_cast<std::uint8_t>(1 + rng.below(255));
    out.push_back(last);
    return fmt::format("2001:db8::{:x}", last);
  }
  // UTF-8 of a text without a zero.
  std::string text(bool wide) {
    constexpr const char *kWide[] = {"", "plain", "quote \" backslash \\ tab \t line \n",
                                     "\xC3\xA4\xE2\x82\xAC", "half \xF0\x9F\x98\x80 pair"};
    constexpr const char *kNarrow[] = {"", "plain", "quote \" backslash \\ tab \t line \n", "\xE2\x82\xAC"};
    return wide ? kWide[rng.below(std::size(kWide))] : kNarrow[rng.below(std::size(kNarrow))];
  }
  // In Windows-1252, where the only sign outside ASCII above is 0x80.
  static std::string narrow(const std::string &utf8) { return utf8 == "\xE2\x82\xAC" ? "\x80" : utf8; }
};

} // namespace etwrelog::gen
