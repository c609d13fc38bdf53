// The compressors that bench/report compares, each in the same form. A new one registers itself: define a
// static Registration in any bench/report_*.cpp. Outputs of the etwrelog tool itself are registered in
// bench/report.
#pragma once

#include "etwrelog/bytes.hpp"

#include <functional>
#include <string>
#include <vector>

namespace etwrelog::bench {

struct Packed {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> blocks; // sizes of independent pieces, for those that have them
  std::uint64_t check = 0;           // XXH3 of what unpack() gives, if that is not the file itself
};

struct Output {
  std::string name;         // "zstd -19 long"
  std::string tool, level;  // "zstd", "19"
  std::string opens = "no"; // whether Windows tools read the result as it is
  int rank = 0;             // order in the report
  std::function<Packed(Bytes trace)> pack;
  std::function<std::vector<std::uint8_t>(const Packed &packed, std::size_t size)> unpack;
};

std::vector<Output> &outputs();

struct Registration {
  explicit Registration(Output output) { outputs().push_back(std::move(output)); }
};

} // namespace etwrelog::bench
