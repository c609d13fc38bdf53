// A trace as one segment of an archive.
#pragma once

#include "etlz/segment.hpp"

#include <gtest/gtest.h>

namespace etwrelog::testing {

struct CodedSegment {
  std::vector<std::uint8_t> bytes;
  etlz::SegmentFacts facts;
  etlz::SegmentMethod method = etlz::SegmentMethod::model;
};

// The same coder may be used for many, as when packing.
inline CodedSegment coded_segment(const std::vector<std::uint8_t> &trace, etlz::SegmentCoder &coder,
                                  Level level) {
  std::vector<etlz::Part> parts;
  EXPECT_EQ(etlz::split_parts(trace, true, SIZE_MAX, parts), trace.size());
  CodedSegment c;
  c.method = coder.encode(trace, parts, level, c.bytes, &c.facts);
  return c;
}

} // namespace etwrelog::testing
