// How the consumer functions end, and what they say of it.
#include "etwrelog/consumer.h"
#include "tests/guests/guest_files.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace etwrelog::testing {
namespace {

struct Caller {
  int records = 0;
  std::function<void()> at_record;

  TRACEHANDLE open(std::string path) {
    EVENT_TRACE_LOGFILEA logfile{};
    logfile.LogFileName = path.data();
    logfile.Mode.ProcessTraceMode = PROCESS_TRACE_MODE_EVENT_RECORD;
    logfile.Callback.EventRecordCallback = [](EVENT_RECORD *record) {
      auto &self = *static_cast<Caller *>(record->UserContext);
      ++self.records;
      if (self.at_record) self.at_record();
    };
    logfile.Context = this;
    return OpenTraceA(&logfile);
  }
};

SyntheticTrace samples_from(std::int64_t time) {
  SyntheticTrace trace;
  for (int i = 0; i < 100; ++i)
    trace.sample({time + i, 0}, 7);
  return trace;
}

TEST(ConsumerEnds, AtTheCurrentEventWhicheverHandleIsClosed) {
  const GuestFiles files;
  Caller early, late;
  TRACEHANDLE handles[] = {early.open(files.write("a.etl", samples_from(2'000'000).bytes())),
                           late.open(files.write("b.etl", samples_from(3'000'000).bytes()))};
  std::uint32_t closed = 0;
  int at = 0;
  late.at_record = [&] {
    if (early.records != 101 || at != 0) return; // there are only events of the other one from here
    closed = CloseTrace(handles[0]);
    at = late.records;
  };
  EXPECT_EQ(ProcessTrace(handles, 2, nullptr, nullptr), ERROR_SUCCESS) << etwr_consumer_last_error();
  EXPECT_EQ(closed, ERROR_CTX_CLOSE_PENDING);
  EXPECT_LT(at, 101);
  EXPECT_EQ(late.records, at);
  // The other one is still open, and may be read again.
  EXPECT_EQ(CloseTrace(handles[0]), ERROR_INVALID_HANDLE);
  late = {};
  EXPECT_EQ(ProcessTrace(&handles[1], 1, nullptr, nullptr), ERROR_SUCCESS);
  EXPECT_EQ(late.records, 101);
  EXPECT_EQ(CloseTrace(handles[1]), ERROR_SUCCESS);
}

TEST(ConsumerEnds, TheLastErrorIsThatOfTheLastCall) {
  const GuestFiles files;
  const std::string path = files.write("a.etl", samples_from(2'000'000).bytes());
  Caller caller;
  EXPECT_EQ(CloseTrace(12345), ERROR_INVALID_HANDLE);
  EXPECT_STRNE(etwr_consumer_last_error(), "");
  TRACEHANDLE handle = caller.open(path);
  EXPECT_STREQ(etwr_consumer_last_error(), "");
  caller.at_record = [&] { (void)caller.open(files.path("absent.etl")); };
  EXPECT_EQ(ProcessTrace(&handle, 1, nullptr, nullptr), ERROR_SUCCESS);
  EXPECT_STREQ(etwr_consumer_last_error(), "");
  (void)caller.open(files.path("absent.etl"));
  EXPECT_NE(std::string(etwr_consumer_last_error()).find("absent.etl"), std::string::npos);
  EXPECT_EQ(CloseTrace(handle), ERROR_SUCCESS);
  EXPECT_STREQ(etwr_consumer_last_error(), "");
}

TEST(ConsumerEnds, WithTheWordsOfACallbackThatThrows) {
  const GuestFiles files;
  Caller caller;
  TRACEHANDLE handle = caller.open(files.write("a.etl", samples_from(2'000'000).bytes()));
  caller.at_record = [] { throw std::runtime_error("no more of this"); };
  EXPECT_EQ(ProcessTrace(&handle, 1, nullptr, nullptr), ERROR_NOACCESS);
  EXPECT_NE(std::string(etwr_consumer_last_error()).find("no more of this"), std::string::npos);
  EXPECT_EQ(caller.records, 1);
  EXPECT_EQ(CloseTrace(handle), ERROR_SUCCESS);
}

} // namespace
} // namespace etwrelog::testing
