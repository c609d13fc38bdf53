// Strings of a trace as UTF-8. No state, any thread; results own their memory. Nothing fails: what is no text
// is replaced.
#pragma once

#include "etwrelog/bytes.hpp"

#include <string>
#include <string_view>

namespace etwrelog {

// UTF-16LE units as UTF-8; unpaired surrogates become U+FFFD. An odd last byte is ignored.
[[nodiscard]] std::string utf8_from_utf16(Bytes units);
// Bytes of an 8-bit string (image file names): UTF-8 where it is valid, else taken as Latin-1.
[[nodiscard]] std::string utf8_from_bytes(Bytes text);
// UTF-16LE units of a UTF-8 string, without a terminator; invalid sequences become U+FFFD.
[[nodiscard]] std::u16string utf16_from_utf8(std::string_view text);
// One line that a terminal can be given: control characters, those that turn the direction of writing, and
// bytes that are not UTF-8 become \x1b and the like.
[[nodiscard]] std::string printable(std::string_view text);

} // namespace etwrelog
