#pragma once

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

} // namespace etwrelog::base
