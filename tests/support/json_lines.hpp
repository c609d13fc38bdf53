// An export, an event a line.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace etwrelog::testing {

inline std::vector<nlohmann::json> json_lines(const std::string &text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

} // namespace etwrelog::testing
