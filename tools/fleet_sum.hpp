// Many traces added up: what `info --sum` and `stats --sum` print.
#pragma once

#include "tools/bulk.hpp"

namespace etwrelog::cli {

enum class Sum : std::uint8_t { info, stats };

struct SumFlags : BulkFlags {
  bool sum = false, decode = false;

  // --sum, --decode, and the lists.
  void add_to(CLI::App &command);
};

// Of archives reads the index alone, unless `decode` asks for more.
[[nodiscard]] int run_sum(Sum what, const SumFlags &flags, const RunFlags &run, std::size_t top);

} // namespace etwrelog::cli
