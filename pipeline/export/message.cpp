#include "export/message.hpp"

#include "base/cut_text.hpp"
#include "etwrelog/text.hpp"
#include "schema/program.hpp"

#include <algorithm>
#include <optional>

#include <fmt/printf.h>

namespace etwrelog::pipeline {
namespace {

constexpr std::size_t kMostDigits = 3; // of a width: nobody means more than 999

// "08I64x" in its parts: what printf takes before the size of the argument, and the conversion.
struct PrintfFormat {
  std::string how; // flags, width, precision
  char conversion = 's';
};

std::optional<PrintfFormat> parse_format(std::string_view text) {
  PrintfFormat format;
  std::size_t at = 0;
  const auto take = [&](std::string_view any, std::size_t most) {
    const std::size_t end = std::min(text.find_first_not_of(any, at), text.size());
    if (end - at > most) return false;
    format.how += text.substr(at, end - at);
    at = end;
    return true;
  };
  constexpr std::string_view kDigits = "0123456789";
  if (!take("-+ #0", 5) || !take(kDigits, kMostDigits)) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    format.how += text[at++];
    if (!take(kDigits, kMostDigits)) return std::nullopt;
  }
  std::string_view rest = text.substr(at);
  for (const std::string_view size : {"I64", "I32", "ll", "hh", "l", "h", "I", "w", "z", "j", "t", "L"})
    if (rest.starts_with(size)) {
      rest.remove_prefix(size.size());
      break;
    }
  constexpr std::string_view kConversions = "diuxXocCpsSfFeEgGaA";
  if (rest.size() != 1 || kConversions.find(rest[0]) == std::string_view::npos) return std::nullopt;
  format.conversion = rest[0];
  return format;
}

bool append_character(std::string &out, std::uint64_t code) {
  if (code < 0x20 || code > 0x10'FFFF || (code >= 0xD800 && code < 0xE000)) return false;
  const auto c = static_cast<std::uint32_t>(code);
  std::uint8_t units[4];
  store(units, static_cast<std::uint16_t>(c < 0x1'0000 ? c : 0xD800 + ((c - 0x1'0000) >> 10)));
  store(units + 2, static_cast<std::uint16_t>(0xDC00 + ((c - 0x1'0000) & 0x3FF)));
  out += utf8_from_utf16(Bytes(units).first(c < 0x1'0000 ? 2 : 4));
  return true;
}

// The bits of the value as its width has them: 0xFFFFFFFF for a 32-bit -1.
std::uint64_t bits_of(std::uint64_t value, std::size_t bytes) {
  return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}
std::int64_t signed_of(std::uint64_t value, std::size_t bytes) {
  const unsigned shift = bytes >= 8 ? 0 : static_cast<unsigned>(64 - 8 * bytes);
  return static_cast<std::int64_t>(value << shift) >> shift;
}

// The value as printf would write it; false where the conversion is not for such a value.
bool append_printed(std::string &out, const PrintfFormat &format, const FieldValue &value) {
  const auto print = [&out, &format](char conversion, const auto &number) {
    out += fmt::sprintf("%" + format.how + conversion, number);
    return true;
  };
  constexpr std::string_view kReals = "fFeEgGaA";
  if (kReals.find(format.conversion) != std::string_view::npos) {
    const auto real = value.real();
    return real && print(format.conversion, *real);
  }
  const auto integer = value.integer();
  if (!integer || value.data.empty()) return false;
  const std::size_t bytes = value.data.size();
  switch (format.conversion) {
  case 'd':
  case 'i': return print('d', signed_of(*integer, bytes));
  case 'u':
  case 'x':
  case 'X':
  case 'o': return print(format.conversion, bits_of(*integer, bytes));
  case 'p': // as Windows does: all digits, no 0x
    out += fmt::sprintf(value.pointer_size == 4 ? "%08X" : "%016X", bits_of(*integer, bytes));
    return true;
  case 'c':
  case 'C': return append_character(out, bits_of(*integer, bytes));
  default: return false;
  }
}

void append_padded(std::string &out, const PrintfFormat &format, const std::string &text) {
  std::string how; // numbers alone know the other flags
  for (const char c : format.how)
    if (c != '+' && c != ' ' && c != '#' && (c != '0' || !how.empty())) how += c;
  out += how.empty() ? text : fmt::sprintf("%" + how + "s", text);
}

} // namespace

std::string message_text(std::string_view message, const Schema &schema, std::span<const FieldValue> values) {
  std::size_t payload = 0;
  for (const FieldValue &value : values)
    payload += value.data.size();
  const std::size_t most = std::min(kLongestMessage, schema::max_text(payload));
  std::string text;
  for (std::size_t i = 0; i < message.size() && text.size() <= most; ++i) {
    if (message[i] != '%' || i + 1 == message.size()) {
      text += message[i];
      continue;
    }
    const char c = message[++i];
    if (c < '0' || c > '9') {
      text += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? ' ' : c;
      continue;
    }
    if (c == '0') break; // the end, without a new line
    std::size_t number = static_cast<std::size_t>(c - '0');
    if (i + 1 < message.size() && message[i + 1] >= '0' && message[i + 1] <= '9')
      number = number * 10 + static_cast<std::size_t>(message[++i] - '0');
    PrintfFormat format;
    if (i + 1 < message.size() && message[i + 1] == '!')
      if (const std::size_t end = message.find('!', i + 2); end != std::string_view::npos) {
        if (const auto parsed = parse_format(message.substr(i + 2, end - i - 2))) format = *parsed;
        i = end;
      }
    if (number == 0 || number > values.size()) continue;
    const FieldValue &value = values[number - 1];
    const auto integer = value.integer();
    std::string shown =
        integer && value.field->map >= 0
            ? schema.maps[static_cast<std::size_t>(value.field->map)]->text(*integer, value.data.size())
            : std::string();
    if (shown.empty() && append_printed(text, format, value)) continue;
    if (shown.empty()) value.append_text(shown);
    append_padded(text, format, shown);
  }
  text.resize(base::at_most(text, most).size());
  return text;
}

} // namespace etwrelog::pipeline
