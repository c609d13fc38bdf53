// Single values as text: what JSON lines, tables and messages show. Everything appends; nothing allocates but
// for the text itself.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/guid.hpp"

#include <cstring>
#include <string>
#include <string_view>

namespace etwrelog::schema {

// Appends to a string by way of a small buffer: most pieces of text are a few characters, and a string looks
// at its room for each. What was put is in the string when this ends or flush() is called.
class TextPen {
public:
  explicit TextPen(std::string &out) : out_(out) {}
  ~TextPen() { flush(); }
  TextPen(const TextPen &) = delete;
  TextPen &operator=(const TextPen &) = delete;

  void flush() {
    out_.append(buffer_, used_);
    used_ = 0;
  }
  // At most kBuffer characters to be written there; wrote() says where they end.
  static constexpr std::size_t kBuffer = 1024;
  [[nodiscard]] char *room(std::size_t size) {
    if (size > sizeof buffer_ - used_) flush();
    return buffer_ + used_;
  }
  void wrote(const char *end) { used_ = static_cast<std::size_t>(end - buffer_); }

  void put(char c) {
    *room(1) = c;
    ++used_;
  }
  template <std::size_t N> void put(const char (&literal)[N]) {
    static_assert(N - 1 <= kBuffer);
    std::memcpy(room(N - 1), literal, N - 1);
    used_ += N - 1;
  }
  // `text` lies in memory that goes on for kMostRoom: what is short is copied without a look at its size.
  static constexpr std::size_t kMostRoom = 64;
  void put_padded(std::string_view text) {
    if (text.size() > kMostRoom) return put_long(text);
    char *const to = room(kMostRoom);
    std::memcpy(to, text.data(), kMostRoom / 2);
    if (text.size() > kMostRoom / 2)
      std::memcpy(to + kMostRoom / 2, text.data() + kMostRoom / 2, kMostRoom / 2);
    used_ += text.size();
  }
  void put_character(std::uint32_t c); // a Unicode scalar value, escaped for JSON

  // Of the string, as if flush() had been called.
  [[nodiscard]] std::size_t size() const { return out_.size() + used_; }
  void cut(std::size_t size) {
    if (size < out_.size()) flush();
    if (used_ == 0)
      out_.resize(size);
    else
      used_ = size - out_.size();
  }

  void put_long(std::string_view text) { // of any length
    if (text.size() > sizeof buffer_ - used_) {
      flush();
      out_.append(text);
      return;
    }
    text.copy(buffer_ + used_, text.size());
    used_ += text.size();
  }

private:
  std::string &out_;
  std::size_t used_ = 0;
  char buffer_[kBuffer];
};

void put_unsigned(TextPen &pen, std::uint64_t value);
void put_signed(TextPen &pen, std::int64_t value);
void put_quoted_hex(TextPen &pen, std::uint64_t value); // "0x1f", with its quotes
// Of each value of so many bytes, 4 or 8, with commas between: stacks are most of what many traces hold.
void put_quoted_hexes(TextPen &pen, Bytes values, std::size_t size);

void append_unsigned(std::string &out, std::uint64_t value);
void append_signed(std::string &out, std::int64_t value);
void append_hex(std::string &out, std::uint64_t value); // "0x1f"
void append_hex_bytes(std::string &out, Bytes data);    // "00ff"
void append_guid(std::string &out, const Guid &guid);   // without quotes
void append_float(std::string &out, float value);       // shortest that reads back; "null" if not finite
void append_double(std::string &out, double value);
void append_ipv4(std::string &out, const std::uint8_t *address);
void append_ipv6(std::string &out, const std::uint8_t *address);
void append_systemtime(std::string &out, const std::uint8_t *at); // ISO 8601, milliseconds
// ISO 8601 with 7 decimals; false and nothing appended outside the years 1 to 9999.
[[nodiscard]] bool append_filetime(std::string &out, std::int64_t ticks);
void append_sid(std::string &out, Bytes sid); // needs 8 + 4 * sid[1] bytes

[[nodiscard]] bool put_filetime(TextPen &pen, std::int64_t ticks); // as append_filetime()

// What a byte of Windows-1252 stands for; of one that is not defined the control of the same number.
[[nodiscard]] char16_t unit_of_cp1252(std::uint8_t byte);
[[nodiscard]] std::string utf8_from_cp1252(std::string_view text);

// The inside of a JSON string: quotes are the caller's.
void put_json_utf16(TextPen &pen, Bytes units);
void put_json_cp1252(TextPen &pen, Bytes text);
void append_json_utf16(std::string &out, Bytes units); // unpaired surrogates: U+FFFD
void append_json_cp1252(std::string &out, Bytes text);
void append_json_utf8(std::string &out, Bytes text);              // invalid sequences: U+FFFD
void append_json_string(std::string &out, std::string_view utf8); // quotes included
// A single JSON string, written by the above, at the end of `out`: without quotes and escapes. Anything else
// stays.
void unquote_json(std::string &out, std::size_t start);

} // namespace etwrelog::schema
