#include "etwrelog/text.hpp"

#include <optional>

namespace etwrelog {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

void append_utf8(std::string &to, char32_t c) {
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xC0 | c >> 6);
    to += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    to += static_cast<char>(0xE0 | c >> 12);
    to += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    to += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    to += static_cast<char>(0xF0 | c >> 18);
    to += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    to += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    to += static_cast<char>(0x80 | (c & 0x3F));
  }
}

// Takes one code point off the front; nullopt for an invalid sequence, of which one byte is taken.
std::optional<char32_t> take_utf8(std::string_view &text) {
  const auto first = static_cast<unsigned char>(text[0]);
  std::size_t more = 0;
  char32_t c = first, least = 0;
  if (first >= 0xF0 && first < 0xF5)
    c = first & 0x07u, more = 3, least = 0x10000;
  else if (first >= 0xE0)
    c = first & 0x0Fu, more = 2, least = 0x800;
  else if (first >= 0xC2)
    c = first & 0x1Fu, more = 1, least = 0x80;
  else if (first >= 0x80)
    more = text.size(); // a stray continuation byte
  bool valid = more < text.size() && first < 0xF5;
  for (std::size_t i = 1; valid && i <= more; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    valid = (next & 0xC0) == 0x80;
    c = c << 6 | (next & 0x3Fu);
  }
  valid = valid && c >= least && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
  text.remove_prefix(valid ? more + 1 : 1);
  return valid ? std::optional(c) : std::nullopt;
}

// How many of the units in front are ASCII: nearly all of nearly all names.
template <class Unit> std::size_t leading_ascii(Bytes text) {
  constexpr std::uint64_t kOthers = // the bits that are set in none of these, of as many units as a word has
      sizeof(Unit) == 1 ? 0x8080'8080'8080'8080 : 0xFF80'FF80'FF80'FF80;
  std::size_t at = 0;
  while (at + 8 <= text.size() && (load<std::uint64_t>(text.data() + at) & kOthers) == 0)
    at += 8;
  while (at + sizeof(Unit) <= text.size() && load<Unit>(text.data() + at) < 0x80)
    at += sizeof(Unit);
  return at / sizeof(Unit);
}

} // namespace

std::string utf8_from_utf16(Bytes units) {
  std::string text;
  text.reserve(units.size() / 2);
  text.resize(leading_ascii<std::uint16_t>(units));
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(units[2 * i]);
  for (std::size_t at = 2 * text.size(); at + 2 <= units.size(); at += 2) {
    char32_t c = load<std::uint16_t>(units.data() + at);
    if (c >= 0xD800 && c <= 0xDFFF) {
      const char32_t low = at + 4 <= units.size() ? load<std::uint16_t>(units.data() + at + 2) : char32_t{0};
      if (c <= 0xDBFF && low >= 0xDC00 && low <= 0xDFFF) {
        c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00));
        at += 2;
      } else {
        c = kReplacement;
      }
    }
    append_utf8(text, c);
  }
  return text;
}

std::string utf8_from_bytes(Bytes text) {
  std::string as_is(text.begin(), text.end());
  std::string_view rest = std::string_view(as_is).substr(leading_ascii<std::uint8_t>(text));
  bool valid = true;
  while (valid && !rest.empty())
    valid = take_utf8(rest).has_value();
  if (valid) return as_is;
  std::string latin;
  for (const std::uint8_t byte : text)
    append_utf8(latin, byte);
  return latin;
}

std::u16string utf16_from_utf8(std::string_view text) {
  std::u16string units;
  while (!text.empty()) {
    const char32_t c = take_utf8(text).value_or(kReplacement);
    if (c < 0x10000) {
      units += static_cast<char16_t>(c);
    } else {
      units += static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10));
      units += static_cast<char16_t>(0xDC00 + ((c - 0x10000) & 0x3FF));
    }
  }
  return units;
}

} // namespace etwrelog
