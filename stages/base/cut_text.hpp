#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace etwrelog::base {

// Without the blanks, tabs and line ends around it.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kWhite);
  return begin == text.npos ? std::string_view()
                            : text.substr(begin, text.find_last_not_of(kWhite) - begin + 1);
}

// The part in front of the separator; `rest` is what follows it.
[[nodiscard]] inline std::string_view cut(std::string_view &rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return part;
}

// Of ASCII.
[[nodiscard]] constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char &c : out)
    c = lower(c);
  return out;
}

// In any case, of ASCII.
[[nodiscard]] inline bool has_ending(std::string_view text, std::string_view ending) {
  const auto plain = [](char c) { return lower(c); };
  return text.size() >= ending.size() &&
         std::ranges::equal(text.substr(text.size() - ending.size()), ending, {}, plain, plain);
}

// At most so many bytes of UTF-8, cut off between two characters.
[[nodiscard]] inline std::string_view at_most(std::string_view utf8, std::size_t most) {
  if (utf8.size() <= most) return utf8;
  constexpr std::size_t kLongest = 4; // bytes of a character
  const std::size_t least = most - std::min(most, kLongest);
  std::size_t size = most;
  while (size > least && (static_cast<unsigned char>(utf8[size]) & 0xC0) == 0x80)
    --size;
  return utf8.substr(0, size);
}

// Of a function or the path of a file, in bytes: there are as many of these as addresses, and a trace may say
// anything. Real ones are shorter.
inline constexpr std::size_t kLongestName = 4u << 10;
// Of a file without its folder, of which Windows allows 255 units of UTF-16.
inline constexpr std::size_t kLongestFileName = 1u << 10;

} // namespace etwrelog::base
