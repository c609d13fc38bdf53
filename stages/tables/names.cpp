#include "tables/names.hpp"

#include "base/cut_text.hpp"
#include <fmt/format.h>

namespace etwrelog::tables {

bool DistinctNames::take(std::string_view name) {
  return taken_.try_emplace(base::lower(name), 2).second;
}

std::string DistinctNames::give(std::string_view name, std::string_view before_number) {
  if (take(name)) return std::string(name);
  unsigned &next = taken_.at(base::lower(name)); // stays where it is when others are taken
  for (;;)
    if (std::string numbered = fmt::format("{}{}{}", name, before_number, next++); take(numbered))
      return numbered;
}

} // namespace etwrelog::tables
