// Small traces of a simulated machine.
#pragma once

#include "tools/etwgen/generate.hpp"

#include <gtest/gtest.h>

namespace etwrelog::testing {

inline std::vector<std::uint8_t> generated(gen::Options options) {
  options.threads = 1;
  gen::MemorySink sink;
  EXPECT_TRUE(gen::generate(options, sink));
  return std::move(sink.bytes);
}

inline std::vector<std::uint8_t> generated(std::uint64_t size, std::uint64_t seed = 1,
                                           Codec codec = Codec::none) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = size;
  options.seed = seed;
  options.cpus = 2;
  options.processes = 4;
  options.buffer_size = 16u << 10;
  options.codec = codec;
  return generated(options);
}

} // namespace etwrelog::testing
