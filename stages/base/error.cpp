#include "etwrelog/error.hpp"

#include <fmt/format.h>

namespace etwrelog {

std::string Error::message() const {
  std::string text;
  auto part = [&text](std::string_view separator, std::string_view more) {
    if (more.empty()) return;
    if (!text.empty()) text += separator;
    text += more;
  };
  part("", file);
  if (offset) part(": ", fmt::format("at 0x{:x}", *offset));
  part(": ", what);
  if (!expected.empty()) part(": expected ", expected);
  if (!found.empty()) part(expected.empty() ? ": " : ", found ", found);
  part("; ", advice);
  return text;
}

} // namespace etwrelog
