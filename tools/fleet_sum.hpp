// Many traces added up: what `info --sum` and `stats --sum` print.
#pragma once

#include "tools/bulk.hpp"

namespace etwrelog::cli {

enum class Sum : std::uint8_t { info, stats };

struct SumFlags : BulkFlags {
  bool sum = false, decode = false;

  // --sum, --decode, and the lists. `lists_need_sum`: no file of them is told of by itself.
  void add_to(CLI::App &command, bool lists_need_sum);
};

// Of archives reads the index alone, unless `decode` asks for more.
[[nodiscard]] int run_sum(Sum what, const SumFlags &flags, const RunFlags &run, std::size_t top);

} // namespace etwrelog::cli
