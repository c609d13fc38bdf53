// Names of tables and columns, and of the files of tables. SQL compares names without regard to the case of
// ASCII letters, and some file systems do.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace etwrelog::tables {

// Names of which no two are the same.
class DistinctNames {
public:
  // False: another has it.
  [[nodiscard]] bool take(std::string_view name);
  // The name, or the first free one with a number from 2 on behind it, and takes it. However many have one
  // name, each takes the same time.
  [[nodiscard]] std::string give(std::string_view name, std::string_view before_number);

private:
  std::unordered_map<std::string, unsigned> taken_; // and the number that the next of that name gets
};

} // namespace etwrelog::tables
