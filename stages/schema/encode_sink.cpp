#include "schema/encode_sink.hpp"

#include "base/cut_text.hpp"
#include "etwrelog/clock.hpp"
#include "etwrelog/guid.hpp"
#include "etwrelog/text.hpp"
#include "schema/json_sink.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace etwrelog::schema {
namespace {

using Buffer = std::vector<std::uint8_t>;

void put(Buffer &out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

template <class T> bool read(std::string_view text, T &value, int base = 10) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return failed == std::errc() && end == text.data() + text.size();
}
bool read_real(std::string_view text, float &value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}
bool read_real(std::string_view text, double &value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}

// "4711", "-4711", "0x1267".
bool put_integer(std::string_view text, std::size_t bytes, bool swapped, Buffer &out) {
  std::uint64_t value = 0;
  if (text.starts_with("0x")) {
    if (!read(text.substr(2), value, 16)) return false;
  } else if (text.starts_with('-')) {
    std::int64_t negative = 0;
    if (!read(text, negative)) return false;
    value = static_cast<std::uint64_t>(negative);
  } else if (!read(text, value)) {
    return false;
  }
  if (swapped) value = (value & 0xFF) << 8 | value >> 8;
  put(out, value, bytes);
  return true;
}

bool put_ipv4(std::string_view text, Buffer &out) {
  for (int i = 0; i < 4; ++i) {
    std::uint8_t byte = 0;
    if (!read(base::cut(text, '.'), byte)) return false;
    out.push_back(byte);
  }
  return text.empty();
}

bool put_ipv6(std::string_view text, Buffer &out) {
  Buffer sides[2];
  int side = 0;
  if (text.starts_with("::")) side = 1, text.remove_prefix(2);
  while (!text.empty()) {
    if (text.find('.') != std::string_view::npos && text.find(':') == std::string_view::npos) {
      if (!put_ipv4(text, sides[side])) return false;
      break;
    }
    std::uint16_t group = 0;
    if (!read(base::cut(text, ':'), group, 16)) return false;
    sides[side].push_back(static_cast<std::uint8_t>(group >> 8));
    sides[side].push_back(static_cast<std::uint8_t>(group));
    if (text.starts_with(':')) {
      if (side++ != 0) return false;
      text.remove_prefix(1);
    }
  }
  if (sides[0].size() + sides[1].size() > 16) return false;
  sides[0].resize(16 - sides[1].size());
  out.insert(out.end(), sides[0].begin(), sides[0].end());
  out.insert(out.end(), sides[1].begin(), sides[1].end());
  return true;
}

bool put_hex_bytes(std::string_view text, Buffer &out) {
  if (text.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    std::uint8_t byte = 0;
    if (!read(text.substr(i, 2), byte, 16)) return false;
    out.push_back(byte);
  }
  return true;
}

bool put_sid(std::string_view text, Buffer &out) {
  if (!text.starts_with("S-")) return false;
  text.remove_prefix(2);
  std::uint8_t revision = 0;
  std::uint64_t authority = 0;
  if (!read(base::cut(text, '-'), revision)) return false;
  const std::string_view number = base::cut(text, '-');
  if (number.starts_with("0x") ? !read(number.substr(2), authority, 16) : !read(number, authority))
    return false;
  out.push_back(revision);
  const std::size_t count_at = out.size();
  out.push_back(0);
  for (int i = 5; i >= 0; --i)
    out.push_back(static_cast<std::uint8_t>(authority >> (8 * i)));
  while (!text.empty()) {
    std::uint32_t part = 0;
    if (!read(base::cut(text, '-'), part)) return false;
    put(out, part, 4);
    ++out[count_at];
  }
  return true;
}

// Sunday is 0.
unsigned weekday(int year, unsigned month, unsigned day) {
  constexpr unsigned kShift[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  const int y = month < 3 ? year - 1 : year;
  return static_cast<unsigned>(
      (y + y / 4 - y / 100 + y / 400 + static_cast<int>(kShift[(month + 11) % 12]) + static_cast<int>(day)) %
      7);
}

// "2020-09-14T22:49:57.211Z"; the day of the week is that of the date.
bool put_systemtime(std::string_view text, Buffer &out) {
  if (!text.ends_with('Z')) return false;
  text.remove_suffix(1);
  std::array<std::uint16_t, 7> words{};
  constexpr char kSeparators[] = "--T::."; // and the zero at its end, which no text has
  for (std::size_t i = 0; i < words.size(); ++i)
    if (!read(base::cut(text, kSeparators[i]), words[i])) return false;
  if (!text.empty()) return false;
  const std::uint16_t order[] = {
      words[0], words[1], static_cast<std::uint16_t>(weekday(words[0], words[1], words[2])),
      words[2], words[3], words[4],
      words[5], words[6]};
  for (const std::uint16_t word : order)
    put(out, word, 2);
  return true;
}

bool put_string(FieldType type, std::string_view utf8, Buffer &out) {
  if (type == FieldType::utf8) {
    out.insert(out.end(), utf8.begin(), utf8.end());
    return true;
  }
  const std::u16string units = utf16_from_utf8(utf8);
  if (type == FieldType::wstr || type == FieldType::u16 || type == FieldType::i16) {
    for (const char16_t unit : units)
      put(out, unit, 2);
    return true;
  }
  // Windows-1252, from what each of its bytes is shown as.
  static const std::array<char16_t, 256> table = [] {
    std::array<char16_t, 256> all{};
    for (unsigned i = 0; i < 256; ++i)
      all[i] = unit_of_cp1252(static_cast<std::uint8_t>(i));
    return all;
  }();
  for (const char16_t unit : units) {
    const auto at = std::find(table.begin(), table.end(), unit);
    if (at == table.end()) return false;
    out.push_back(static_cast<std::uint8_t>(at - table.begin()));
  }
  return true;
}

bool is_text(const Op &op) {
  return (op.type >= FieldType::astr && op.type <= FieldType::wstr) ||
         (op.format == Format::characters && op.type <= FieldType::i16);
}

std::size_t unit_of(const Op &op) {
  return op.type == FieldType::wstr || op.type == FieldType::u16 || op.type == FieldType::i16 ? 2 : 1;
}

} // namespace

bool encode_value(const Op &op, std::string_view text, unsigned pointer_size, Buffer &out) {
  const std::size_t size = fixed_size(op.type, op.size, pointer_size);
  switch (op.type) {
  case FieldType::f32: {
    float value = 0;
    if (!read_real(text, value)) return false;
    put(out, std::bit_cast<std::uint32_t>(value), 4);
    return true;
  }
  case FieldType::f64: {
    double value = 0;
    if (!read_real(text, value)) return false;
    put(out, std::bit_cast<std::uint64_t>(value), 8);
    return true;
  }
  case FieldType::boolean: put(out, text == "true" ? 1 : 0, size); return text == "true" || text == "false";
  case FieldType::filetime: {
    const auto ticks = parse_filetime(text);
    if (!ticks) return put_integer(text, 8, false, out);
    put(out, static_cast<std::uint64_t>(*ticks), 8);
    return true;
  }
  case FieldType::systemtime: return put_systemtime(text, out);
  case FieldType::guid: {
    const auto guid = parse_guid(text);
    if (!guid) return false;
    put(out, guid->low, 8), put(out, guid->high, 8);
    return true;
  }
  case FieldType::sid:
  case FieldType::token_sid: return put_sid(text, out);
  case FieldType::astr:
  case FieldType::utf8:
  case FieldType::wstr: return put_string(op.type, text, out);
  case FieldType::binary:
    return op.format == Format::ip_address && text.find_first_of(":.") != std::string_view::npos
               ? put_ipv6(text, out)
               : put_hex_bytes(text, out);
  case FieldType::structure: return false;
  default: break;
  }
  if (is_text(op)) return put_string(op.type, text, out);
  if (op.format == Format::ip_address && size == 4) return put_ipv4(text, out);
  return put_integer(text, size, op.format == Format::port && size == 2, out);
}

void EncodeSink::show(const Op &op, Bytes data) {
  text_.clear();
  append_value(text_, op, data, pointer_size_, nullptr);
  unquote_json(text_, 0);
}

void EncodeSink::put_prefix(Measure measure, std::size_t count) {
  if (measure == Measure::prefix16) put(out_, count, 2);
  if (measure == Measure::prefix32) put(out_, count, 4);
  if (measure == Measure::prefix16be) put(out_, (count & 0xFF) << 8 | count >> 8, 2);
}

void EncodeSink::value(const Op &op, Bytes data) {
  if (op.repeat != Measure::natural || is_text(op) || op.type == FieldType::binary)
    string(op, data, op.repeat != Measure::natural);
  else
    single(op, data);
}

// What stands in front of it and behind, and how long it is.
// `characters`: an array of them.
void EncodeSink::string(const Op &op, Bytes data, bool characters) {
  const std::size_t unit = unit_of(op);
  if (characters)
    put_prefix(op.repeat, data.size() / unit);
  else
    put_prefix(op.length, data.size());
  if (op.format == Format::lznt1_text) {
    lose("compressed text");
    return;
  }
  const std::size_t start = out_.size();
  show(op, data);
  if (!encode_value(op, text_, pointer_size_, out_)) lose("a text with characters that cannot be");
  // What a counted string holds behind its text is zeros where its length is known without it.
  const bool counted = characters || op.length == Measure::constant || op.length == Measure::by_field;
  if (counted && out_.size() - start < data.size()) out_.resize(start + data.size());
  const Bytes made = Bytes(out_).subspan(start);
  if (std::ranges::equal(made, data)) {
    // as it was
  } else if (text_.find("\xEF\xBF\xBD") != std::string::npos || data.size() % unit != 0) {
    lose("a text with characters that cannot be");
  } else if (op.zero_ends) {
    lose("bytes behind the zero that ends a text");
  } else if (made.size() < data.size()) {
    lose("zeros at the end of a text");
  }
  const bool ends_with_zero = op.type >= FieldType::astr && op.type <= FieldType::wstr;
  if (op.length != Measure::natural || characters || !ends_with_zero) return;
  if (data.data() + data.size() + unit > payload_.data() + payload_.size())
    lose("a text that ends with the payload, without a zero");
  else
    out_.insert(out_.end(), unit, 0);
}

void EncodeSink::single(const Op &op, Bytes data) {
  if (op.type == FieldType::token_sid && data.empty()) {
    out_.insert(out_.end(), 4, 0);
    return;
  }
  if (op.type == FieldType::token_sid) lose("two addresses in front of a SID");
  if (is_text(op) || op.type == FieldType::binary) { // of an array
    string(op, data, false);
    return;
  }
  const std::size_t start = out_.size();
  show(op, data);
  const bool done = encode_value(op, text_, pointer_size_, out_);
  if (done && std::ranges::equal(Bytes(out_).subspan(start), data)) return;
  if (op.type == FieldType::boolean && load_unsigned(data) > 1) lose("a truth value other than 0 and 1");
  if (op.type == FieldType::filetime && load<std::int64_t>(data.data()) < 0) lose("a time before 1601");
  if (op.type == FieldType::systemtime) lose("a day of the week that is not that of the date");
  if (text_ == "null")
    lose(op.type == FieldType::f32 || op.type == FieldType::f64 ? "a number that is none"
                                                                : "a SID without its parts");
}

} // namespace etwrelog::schema
