// Single values as text: what JSON lines, tables and messages show. Everything appends; nothing allocates but
// for the text itself.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/guid.hpp"

#include <string>
#include <string_view>

namespace etwrelog::schema {

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

// The inside of a JSON string: quotes are the caller's.
void append_json_utf16(std::string &out, Bytes units); // unpaired surrogates: U+FFFD
void append_json_cp1252(std::string &out, Bytes text); // undefined bytes: the control of the same number
void append_json_utf8(std::string &out, Bytes text);   // invalid sequences: U+FFFD
void append_json_string(std::string &out, std::string_view utf8); // quotes included
// A single JSON string, written by the above, at the end of `out`: without quotes and escapes. Anything else
// stays.
void unquote_json(std::string &out, std::size_t start);

} // namespace etwrelog::schema
