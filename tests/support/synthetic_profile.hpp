// A profile with some of everything, made by arithmetic: tests of exports know what must come out.
#pragma once

#include "etwrelog/profile.hpp"

namespace etwrelog::test_support {

struct SyntheticProfileOptions {
  std::size_t samples = 5000;
  std::size_t leaves = 40; // distinct functions at the ends of stacks
  bool slices = false;
  bool hostile_names = false; // markup, separators, control characters, broken UTF-8
};
[[nodiscard]] Profile synthetic_profile(const SyntheticProfileOptions &options = {});

} // namespace etwrelog::test_support
