#include "schema/value_text.hpp"

#include "etwrelog/text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

namespace etwrelog::schema {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

constexpr std::array<std::array<char, 2>, 256> kHexPairs = [] {
  std::array<std::array<char, 2>, 256> pairs{};
  for (unsigned i = 0; i < 256; ++i)
    pairs[i] = {kHexDigits[i >> 4], kHexDigits[i & 15]};
  return pairs;
}();

// Windows-1252 0x80..0x9F as Unicode; five of them are not assigned and stay as they are.
constexpr std::uint16_t kHighControls[32] = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                             0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                             0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                             0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

void append_padded(std::string &out, std::uint64_t value, std::size_t width) {
  char digits[20];
  const char *const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  const std::size_t n = static_cast<std::size_t>(end - digits);
  if (n < width) out.append(width - n, '0');
  out.append(digits, n);
}

void two(char *at, unsigned value) {
  at[0] = static_cast<char>('0' + value / 10);
  at[1] = static_cast<char>('0' + value % 10);
}

struct Date {
  std::int64_t year;
  unsigned month, day;
};

// Days since 1601-01-01 to a date of the Gregorian calendar: years that begin in March, eras of 400 of them.
Date date_of(std::int64_t days) {
  const std::int64_t shifted = days + 584'694; // since 0000-03-01
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const auto in_era = static_cast<unsigned>(shifted - era * 146'097);
  const unsigned year = (in_era - in_era / 1460 + in_era / 36'524 - in_era / 146'096) / 365;
  const unsigned in_year = in_era - (365 * year + year / 4 - year / 100);
  const unsigned m = (5 * in_year + 2) / 153;
  const unsigned month = m < 10 ? m + 3 : m - 9;
  return {static_cast<std::int64_t>(year) + era * 400 + (month <= 2 ? 1 : 0), month,
          in_year - (153 * m + 2) / 5 + 1};
}

// 16 bytes that are worked on at once, as GCC and Clang write it for any machine.
template <class Unit> struct Vector;
template <> struct Vector<std::uint8_t> { using Type = std::uint8_t __attribute__((vector_size(16))); };
template <> struct Vector<std::uint16_t> { using Type = std::uint16_t __attribute__((vector_size(16))); };

// Printable ASCII, escaped for JSON, up to the first character that is something else. Returns how many.
template <class Unit> std::size_t put_ascii(TextPen &pen, Bytes text) {
  using Units = typename Vector<Unit>::Type;
  constexpr std::size_t kAtOnce = sizeof(Units) / sizeof(Unit);
  const std::size_t n = text.size() / sizeof(Unit);
  std::size_t i = 0;
  while (i < n) {
    char *to = pen.room(2 * kAtOnce);
    if (n - i >= kAtOnce) {
      Units units;
      std::memcpy(&units, text.data() + i * sizeof(Unit), sizeof units);
      const auto other = (units - Unit{0x20} >= Unit{0x60}) | (units == Unit{'"'}) | (units == Unit{'\\'});
      std::uint64_t any[2];
      static_assert(sizeof any == sizeof other);
      std::memcpy(any, &other, sizeof any);
      if ((any[0] | any[1]) == 0) {
        for (std::size_t k = 0; k < kAtOnce; ++k)
          to[k] = static_cast<char>(units[k]);
        pen.wrote(to + kAtOnce);
        i += kAtOnce;
        continue;
      }
    }
    for (const std::size_t end = std::min(n, i + kAtOnce); i < end; ++i) {
      const unsigned c = load<Unit>(text.data() + i * sizeof(Unit));
      if (c - 0x20 >= 0x60) return pen.wrote(to), i;
      *to = '\\'; // stays where one is needed: paths are full of them
      to += c == '"' || c == '\\' ? 1 : 0;
      *to++ = static_cast<char>(c);
    }
    pen.wrote(to);
  }
  return n;
}

constexpr bool is_printable_ascii(unsigned c) {
  return c - 0x20 < 0x60;
}

} // namespace

void TextPen::put_character(std::uint32_t c) {
  char *to = room(6);
  auto add = [&to](std::uint32_t byte) { *to++ = static_cast<char>(byte); };
  if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
    add(c);
  } else if (c < 0x80) {
    add('\\');
    switch (c) {
    case '"':
    case '\\': add(c); break;
    case '\n': add('n'); break;
    case '\r': add('r'); break;
    case '\t': add('t'); break;
    default:
      add('u'), add('0'), add('0');
      add(static_cast<unsigned char>(kHexDigits[c >> 4])),
          add(static_cast<unsigned char>(kHexDigits[c & 15]));
    }
  } else if (c < 0x800) {
    add(0xC0 | c >> 6), add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12), add(0x80 | (c >> 6 & 0x3F)), add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | c >> 18), add(0x80 | (c >> 12 & 0x3F)), add(0x80 | (c >> 6 & 0x3F)), add(0x80 | (c & 0x3F));
  }
  wrote(to);
}

namespace {

constexpr std::uint32_t kEightDigits = 100'000'000;

// The eight digits of a number below that, each in a byte, the first in the lowest: halves, then quarters,
// then single digits, all of them at once. 10486 / 2^20 and 103 / 2^10 are 1 / 100 and 1 / 10 as far as that
// matters.
std::uint64_t digits_of(std::uint32_t value) {
  const std::uint64_t halves = value / 10'000 | std::uint64_t{value % 10'000} << 32;
  const std::uint64_t hundreds = (halves * 10'486 >> 20) & 0x0000'007F'0000'007Full;
  const std::uint64_t quarters = hundreds | (halves - 100 * hundreds) << 16;
  const std::uint64_t tens = (quarters * 103 >> 10) & 0x000F'000F'000F'000Full;
  return tens | (quarters - 10 * tens) << 8;
}

// Returns behind the digits; writes eight bytes in any case.
char *write_eight(char *to, std::uint32_t value) {
  store(reinterpret_cast<std::uint8_t *>(to), digits_of(value) + 0x3030'3030'3030'3030ull);
  return to + 8;
}
// The same without zeros in front.
char *write_some(char *to, std::uint32_t value) {
  const std::uint64_t digits = digits_of(value);
  const int zeros = std::countr_zero(digits | std::uint64_t{1} << 56) / 8;
  store(reinterpret_cast<std::uint8_t *>(to), (digits >> 8 * zeros) + 0x3030'3030'3030'3030ull);
  return to + 8 - zeros;
}

} // namespace

void put_unsigned(TextPen &pen, std::uint64_t value) {
  char *to = pen.room(24);
  if (value < 10) { // flags, states, priorities: most fields
    *to = static_cast<char>('0' + value);
    return pen.wrote(to + 1);
  }
  if (value < kEightDigits) return pen.wrote(write_some(to, static_cast<std::uint32_t>(value)));
  std::uint64_t front = value / kEightDigits;
  if (front < kEightDigits) {
    to = write_some(to, static_cast<std::uint32_t>(front));
  } else {
    to = write_some(to, static_cast<std::uint32_t>(front / kEightDigits));
    to = write_eight(to, static_cast<std::uint32_t>(front % kEightDigits));
  }
  pen.wrote(write_eight(to, static_cast<std::uint32_t>(value % kEightDigits)));
}

void put_signed(TextPen &pen, std::int64_t value) {
  if (value >= 0) return put_unsigned(pen, static_cast<std::uint64_t>(value));
  char *const to = pen.room(21);
  pen.wrote(std::to_chars(to, to + 21, value).ptr);
}

namespace {

constexpr std::size_t kMostHex = 3 + 16 + 1; // and what is written behind it counts for nothing

// The digits at once, of which the first ones are those to be seen.
char *write_quoted_hex(char *to, std::uint64_t value) {
  using Bytes16 = Vector<std::uint8_t>::Type;
  const unsigned digits = (static_cast<unsigned>(std::bit_width(value | 1)) + 3) / 4;
  using Halves = std::uint64_t __attribute__((vector_size(16))); // straight into a register
  const auto pairs = reinterpret_cast<Bytes16>(Halves{__builtin_bswap64(value << (64 - 4 * digits)), 0});
  const Bytes16 high = pairs >> 4, low = pairs & 15;
  const Bytes16 nibbles =
      __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const Bytes16 text =
      nibbles + '0' + (reinterpret_cast<Bytes16>(nibbles > 9) & static_cast<std::uint8_t>('a' - '9' - 1));
  std::memcpy(to, "\"0x", 3);
  std::memcpy(to + 3, &text, sizeof text);
  to += 3 + digits;
  *to = '"';
  return to + 1;
}

template <class Value> void put_quoted_hexes(TextPen &pen, Bytes values) {
  constexpr std::size_t kAtOnce = TextPen::kBuffer / (kMostHex + 1);
  for (std::size_t at = 0; at < values.size();) {
    const std::size_t end = std::min(values.size(), at + kAtOnce * sizeof(Value));
    char *to = pen.room((end - at) / sizeof(Value) * (kMostHex + 1));
    for (; at < end; at += sizeof(Value)) {
      *to = ',';
      to = write_quoted_hex(to + (at != 0 ? 1 : 0), load<Value>(values.data() + at));
    }
    pen.wrote(to);
  }
}

} // namespace

void put_quoted_hex(TextPen &pen, std::uint64_t value) {
  pen.wrote(write_quoted_hex(pen.room(kMostHex), value));
}

void put_quoted_hexes(TextPen &pen, Bytes values, std::size_t size) {
  if (size == 8)
    put_quoted_hexes<std::uint64_t>(pen, values);
  else
    put_quoted_hexes<std::uint32_t>(pen, values);
}

void append_unsigned(std::string &out, std::uint64_t value) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_signed(std::string &out, std::int64_t value) {
  char digits[21];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_hex(std::string &out, std::uint64_t value) {
  char digits[18] = {'0', 'x'};
  out.append(digits, std::to_chars(digits + 2, digits + sizeof digits, value, 16).ptr);
}

void append_hex_bytes(std::string &out, Bytes data) {
  const std::size_t at = out.size();
  out.resize(at + 2 * data.size());
  char *to = out.data() + at;
  for (const std::uint8_t byte : data) {
    *to++ = kHexPairs[byte][0];
    *to++ = kHexPairs[byte][1];
  }
}

void append_guid(std::string &out, const Guid &guid) {
  std::uint8_t raw[16];
  store_guid(raw, guid);
  constexpr std::uint8_t kOrder[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  char text[36], *to = text;
  for (unsigned i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *to++ = '-';
    *to++ = kHexPairs[raw[kOrder[i]]][0];
    *to++ = kHexPairs[raw[kOrder[i]]][1];
  }
  out.append(text, sizeof text);
}

void append_float(std::string &out, float value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (value == 0 && std::signbit(value)) out += ".0"; // -0 would be read as an integer, which has no sign
}

void append_double(std::string &out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (value == 0 && std::signbit(value)) out += ".0"; // -0 would be read as an integer, which has no sign
}

void append_ipv4(std::string &out, const std::uint8_t *address) {
  for (int i = 0; i < 4; ++i) {
    if (i != 0) out += '.';
    append_unsigned(out, address[i]);
  }
}

// RFC 5952: lower case, the longest run of two or more zero groups as "::".
void append_ipv6(std::string &out, const std::uint8_t *address) {
  unsigned groups[8];
  for (int i = 0; i < 8; ++i)
    groups[i] = static_cast<unsigned>(address[2 * i] << 8 | address[2 * i + 1]);
  int best = -1, best_length = 1;
  for (int i = 0; i < 8;) {
    int n = 0;
    while (i + n < 8 && groups[i + n] == 0)
      ++n;
    if (n > best_length) best = i, best_length = n;
    i += n == 0 ? 1 : n;
  }
  const bool mapped = best == 0 && best_length == 5 && groups[5] == 0xFFFF;
  for (int i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += best_length - 1;
      continue;
    }
    if (mapped && i == 6) {
      out += ':';
      append_ipv4(out, address + 12);
      return;
    }
    if (i != 0 && i != best + best_length) out += ':';
    char digits[4];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, groups[i], 16).ptr);
  }
}

void append_systemtime(std::string &out, const std::uint8_t *at) {
  auto word = [at](std::size_t i) { return load<std::uint16_t>(at + 2 * i); };
  append_padded(out, word(0), 4), out += '-';
  append_padded(out, word(1), 2), out += '-';
  append_padded(out, word(3), 2), out += 'T';
  append_padded(out, word(4), 2), out += ':';
  append_padded(out, word(5), 2), out += ':';
  append_padded(out, word(6), 2), out += '.';
  append_padded(out, word(7), 3), out += 'Z';
}

bool append_filetime(std::string &out, std::int64_t ticks) {
  TextPen pen(out);
  return put_filetime(pen, ticks);
}

bool put_filetime(TextPen &pen, std::int64_t ticks) {
  constexpr std::int64_t kSecond = 10'000'000, kDay = 86'400;
  std::int64_t seconds = ticks / kSecond, rest = ticks % kSecond;
  if (rest < 0) rest += kSecond, --seconds;
  std::int64_t days = seconds / kDay, in_day = seconds % kDay;
  if (in_day < 0) in_day += kDay, --days;
  const Date date = date_of(days);
  if (date.year < 1 || date.year > 9999) return false;
  char *const text = pen.room(28);
  const auto year = static_cast<unsigned>(date.year), second = static_cast<unsigned>(in_day);
  two(text, year / 100), two(text + 2, year % 100), text[4] = '-';
  two(text + 5, date.month), text[7] = '-';
  two(text + 8, date.day), text[10] = 'T';
  two(text + 11, second / 3600), text[13] = ':';
  two(text + 14, second / 60 % 60), text[16] = ':';
  two(text + 17, second % 60), text[19] = '.';
  auto fraction = static_cast<unsigned>(rest);
  for (int i = 26; i >= 20; --i, fraction /= 10)
    text[i] = static_cast<char>('0' + fraction % 10);
  text[27] = 'Z';
  pen.wrote(text + 28);
  return true;
}

void append_sid(std::string &out, Bytes sid) {
  out += "S-";
  append_unsigned(out, sid[0]);
  std::uint64_t authority = 0;
  for (std::size_t i = 2; i < 8; ++i)
    authority = authority << 8 | sid[i];
  out += '-';
  if (authority < (std::uint64_t{1} << 32)) {
    append_unsigned(out, authority);
  } else {
    out += "0x";
    for (std::size_t i = 2; i < 8; ++i)
      out.append(kHexPairs[sid[i]].data(), 2);
  }
  for (std::size_t i = 0; i < sid[1]; ++i) {
    out += '-';
    append_unsigned(out, load<std::uint32_t>(sid.data() + 8 + 4 * i));
  }
}

void put_json_utf16(TextPen &pen, Bytes units) {
  const std::size_t n = units.size() / 2;
  for (std::size_t i = 0; i < n;) {
    i += put_ascii<std::uint16_t>(pen, units.subspan(2 * i));
    for (; i < n; ++i) {
      const std::uint32_t c = load<std::uint16_t>(units.data() + 2 * i);
      if (is_printable_ascii(c)) break;
      if (c < 0xD800 || c > 0xDFFF) {
        pen.put_character(c);
        continue;
      }
      const std::uint32_t next = c < 0xDC00 && i + 1 < n ? load<std::uint16_t>(units.data() + 2 * i + 2) : 0;
      if (next >= 0xDC00 && next <= 0xDFFF) {
        pen.put_character(0x10000 + ((c - 0xD800) << 10 | (next - 0xDC00)));
        ++i;
      } else {
        pen.put_character(0xFFFD);
      }
    }
  }
}

char16_t unit_of_cp1252(std::uint8_t byte) {
  return byte >= 0x80 && byte < 0xA0 ? kHighControls[byte - 0x80] : byte;
}

std::string utf8_from_cp1252(std::string_view text) {
  std::vector<std::uint8_t> units;
  units.reserve(2 * text.size());
  for (const char c : text) {
    const char16_t unit = unit_of_cp1252(static_cast<std::uint8_t>(c));
    units.push_back(static_cast<std::uint8_t>(unit & 0xFF));
    units.push_back(static_cast<std::uint8_t>(unit >> 8));
  }
  return utf8_from_utf16(units);
}

void put_json_cp1252(TextPen &pen, Bytes text) {
  for (std::size_t i = 0; i < text.size();) {
    i += put_ascii<std::uint8_t>(pen, text.subspan(i));
    for (; i < text.size() && !is_printable_ascii(text[i]); ++i)
      pen.put_character(unit_of_cp1252(text[i]));
  }
}

void append_json_utf16(std::string &out, Bytes units) {
  TextPen pen(out);
  put_json_utf16(pen, units);
}

void append_json_cp1252(std::string &out, Bytes text) {
  TextPen pen(out);
  put_json_cp1252(pen, text);
}

// Each longest prefix of a sequence that could still have become valid is one U+FFFD, as Unicode recommends.
void append_json_utf8(std::string &out, Bytes text) {
  TextPen pen(out);
  for (std::size_t i = 0; i < text.size();) {
    i += put_ascii<std::uint8_t>(pen, text.subspan(i));
    if (i == text.size()) return;
    const std::uint8_t first = text[i++];
    if (first < 0x80) {
      pen.put_character(first);
      continue;
    }
    unsigned more = 0;
    std::uint8_t low = 0x80, high = 0xBF;
    std::uint32_t c = 0;
    if (first >= 0xC2 && first <= 0xDF) more = 1, c = first & 0x1Fu;
    if (first >= 0xE0 && first <= 0xEF) {
      more = 2, c = first & 0x0Fu;
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
    }
    if (first >= 0xF0 && first <= 0xF4) {
      more = 3, c = first & 0x07u;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    }
    bool whole = more != 0;
    for (; whole && more != 0; --more, low = 0x80, high = 0xBF) {
      if (i >= text.size() || text[i] < low || text[i] > high) {
        whole = false;
        break;
      }
      c = c << 6 | (text[i++] & 0x3Fu);
    }
    pen.put_character(whole ? c : 0xFFFD);
  }
}

void append_json_string(std::string &out, std::string_view utf8) {
  out += '"';
  append_json_utf8(out, {reinterpret_cast<const std::uint8_t *>(utf8.data()), utf8.size()});
  out += '"';
}

void unquote_json(std::string &out, std::size_t start) {
  if (out.size() < start + 2 || out[start] != '"') return;
  std::size_t to = start;
  for (std::size_t i = start + 1; i + 1 < out.size(); ++i) {
    char c = out[i];
    if (c == '\\') {
      c = out[++i];
      if (c == 'n') c = '\n';
      if (c == 'r') c = '\r';
      if (c == 't') c = '\t';
      if (c == 'u') { // only controls are written so
        auto digit = [](char d) { return d <= '9' ? d - '0' : d - 'a' + 10; };
        c = static_cast<char>(digit(out[i + 3]) << 4 | digit(out[i + 4]));
        i += 4;
      }
    }
    out[to++] = c;
  }
  out.resize(to);
}

} // namespace etwrelog::schema
