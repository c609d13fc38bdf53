// A trace of two processes with their threads, and what relogging a selection keeps of what a test adds to
// it.
#pragma once

#include "tests/support/pipeline_runs.hpp"

#include <gtest/gtest.h>

namespace etwrelog {

using format::ItemType;
using testing::Frames;
using testing::relog_selection;
using testing::Relogged;
using testing::SyntheticTrace;

inline constexpr std::uint32_t kTarget = 100, kOther = 200;     // processes
inline constexpr std::uint32_t kT1 = 110, kT2 = 120, kO1 = 210; // their threads
inline constexpr std::uint64_t kKernelBase = 0xFFFF'F800'0000'0000, kUserBase = 0x7FF6'0000'0000;
inline constexpr std::uint64_t kKey = 0xFFFF'9000'0000'1000;
inline const Guid kProvider = make_guid(0xAAAA0001, 1, 2, 3, 4),
                  kProvider2 = make_guid(0xAAAA0002, 1, 2, 3, 4);

class FilterTest : public ::testing::Test {
protected:
  FilterTest() {
    idle_ = t.process_rundown({1'000'100}, 0, 0, "Idle");
    system_ = t.process_rundown({1'000'101}, 4, 0, "System");
    target_ = t.process_rundown({1'000'102}, kTarget, 4, "target.exe", "target -x");
    other_ = t.process_rundown({1'000'103}, kOther, 4, "other.exe", "other -y");
    t.thread_rundown({1'000'104}, 8, 4);
    t.thread_rundown({1'000'105}, kT1, kTarget);
    t.thread_rundown({1'000'106}, kT2, kTarget);
    t.thread_rundown({1'000'107}, kO1, kOther);
  }
  void run(const Selection &selection = {.processes = {"target.exe"}}) {
    for (std::size_t i = 0; i < t.count(); ++i)
      for (std::size_t j = i + 1; j < t.count(); ++j)
        ASSERT_NE(t.event(i), t.event(j)) << "events must be told apart";
    relogged = relog_selection(t, selection);
    ASSERT_FALSE(relogged.error) << relogged.error->message();
    ASSERT_EQ(relogged.contents.error, "");
    std::uint64_t sum = 0;
    for (const std::uint64_t count : relogged.report.by_reason)
      sum += count;
    EXPECT_EQ(sum, relogged.report.events_in);
    EXPECT_EQ(relogged.report.events_in, t.count() + 1);
    EXPECT_EQ(relogged.report.events_out, relogged.contents.events.size() + 1);
  }
  bool kept(std::size_t event) const { return relogged.contents.count(t.event(event)) == 1; }

  SyntheticTrace t;
  Relogged relogged;
  std::size_t idle_, system_, target_, other_;
};

} // namespace etwrelog
