#include "tables/names.hpp"

#include <fmt/format.h>

namespace etwrelog::tables {

std::string folded_name(std::string name) {
  for (char &c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return name;
}

bool DistinctNames::take(std::string_view name) {
  return taken_.try_emplace(folded_name(std::string(name)), 2).second;
}

std::string DistinctNames::give(std::string_view name, std::string_view before_number) {
  if (take(name)) return std::string(name);
  unsigned &next = taken_.at(folded_name(std::string(name))); // stays where it is when others are taken
  for (;;)
    if (std::string numbered = fmt::format("{}{}{}", name, before_number, next++); take(numbered))
      return numbered;
}

} // namespace etwrelog::tables
