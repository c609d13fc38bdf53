// What tests of the C interface's processes, fields, counts and outputs begin with.
#pragma once

#include "tests/guests/c_handles.hpp"

#include <gtest/gtest.h>

namespace etwrelog::testing {

// Two processes with samples and stacks, one that starts and ends.
inline SyntheticTrace game_trace() {
  SyntheticTrace trace;
  trace.process_rundown({1'100'000}, 4, 0, "System");
  trace.process_start({1'200'000}, 100, 4, "game.exe", "game.exe -fast");
  trace.thread_start({1'200'100}, 101, 100);
  trace.process_rundown({1'100'000}, 200, 4, "other.exe", "other.exe \"quoted\"");
  trace.thread_rundown({1'100'100}, 201, 200);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t time = 2'000'000 + 1'000 * i;
    const std::uint32_t tid = i % 3 == 0 ? 201 : 101, pid = i % 3 == 0 ? 200 : 100;
    trace.context_switch({time - 500}, tid, 0);
    trace.sample({time}, tid);
    trace.stack_walk({time + 10}, time, pid, tid, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
  }
  trace.process_end({3'000'000}, 100, "game.exe");
  return trace;
}

// The same and stacks, in many buffers.
inline std::vector<std::uint8_t> long_trace() {
  SyntheticTrace trace = game_trace();
  for (int i = 0; i < 4'000; ++i)
    trace.stack_walk({2'600'000 + i}, 2'600'000 + i, 1, 2, Frames(20, 0x7FF6'0000'0000u));
  return trace.bytes();
}

struct Fixture : ::testing::Test {
  TracePtr open_trace(const std::string &path) {
    TracePtr trace = open({path}, error);
    EXPECT_TRUE(trace) << text_of(error);
    return trace;
  }
  ProcessesPtr processes_of(const TracePtr &trace) {
    etwr_processes *made = nullptr;
    error.reset(etwr_processes_collect(trace.get(), nullptr, &made));
    EXPECT_FALSE(error) << text_of(error);
    return ProcessesPtr(made);
  }
  DecoderPtr decoder_of(const etwr_trace *trace, SchemasPtr &schemas) {
    etwr_schemas *made = nullptr;
    error.reset(etwr_schemas_collect(trace, nullptr, &made));
    EXPECT_FALSE(error) << text_of(error);
    schemas.reset(made);
    etwr_decoder *decoder = nullptr;
    error.reset(etwr_decoder_new(made, &decoder));
    EXPECT_FALSE(error) << text_of(error);
    return DecoderPtr(decoder);
  }
  CursorPtr cursor_of(const TracePtr &trace, int order = ETWR_ORDER_TIME) {
    etwr_cursor *made = nullptr;
    error.reset(etwr_events(trace.get(), order, nullptr, nullptr, &made));
    EXPECT_FALSE(error) << text_of(error);
    return CursorPtr(made);
  }
  std::uint64_t count(const std::string &path) {
    const TracePtr trace = open_trace(path);
    const CursorPtr cursor = cursor_of(trace);
    const etwr_event *event = nullptr;
    std::uint64_t events = 0;
    while (etwr_next(cursor.get(), &event, nullptr) != 0)
      ++events;
    return events;
  }

  GuestFiles files;
  ErrorPtr error;
};
using COutputs = Fixture;

} // namespace etwrelog::testing
