// The callbacks of an etwr_run: when they come, from how many threads, and what they say.
#include "tests/guests/c_outputs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <sys/stat.h>

namespace etwrelog::testing {
namespace {

// A pipe that holds some bytes, and whose writer says no more. Ends after a long while, so that a call which
// nobody stops fails instead of waiting forever.
class StalledPipe {
public:
  StalledPipe(const std::string &path, Bytes bytes) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    handle_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::write(handle_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    end_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::seconds(20), [this] { return over_; });
      ::close(handle_);
    });
  }
  StalledPipe(const StalledPipe &) = delete;
  StalledPipe &operator=(const StalledPipe &) = delete;
  ~StalledPipe() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    end_.join();
  }

private:
  int handle_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread end_;
};

etwr_run stopping_at_the_third(std::atomic<int> &asked) {
  auto run = sized<etwr_run>();
  run.context = &asked;
  run.stop = [](void *context) { return ++*static_cast<std::atomic<int> *>(context) == 3 ? 1 : 0; };
  return run;
}

TEST_F(COutputs, ACallThatWaitsForAPipeIsStopped) {
  const std::vector<std::uint8_t> bytes = game_trace().bytes();
  const std::string path = files.path("pipe.etl"), output = files.path("a.etlz");
  const char *const paths[] = {path.c_str()};
  for (const unsigned threads : {0u, 1u})
    for (const bool packs : {false, true}) {
      std::filesystem::remove(path);
      const StalledPipe pipe(path, Bytes(bytes).first(30'000));
      std::atomic<int> asked = 0;
      etwr_run run = stopping_at_the_third(asked);
      run.threads = threads;
      etwr_trace *trace = nullptr;
      error.reset(packs ? etwr_pack(path.c_str(), output.c_str(), nullptr, &run, nullptr)
                        : etwr_trace_open(paths, 1, nullptr, &run, &trace));
      ASSERT_TRUE(error);
      EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_CANCELLED) << text_of(error);
      EXPECT_EQ(asked, 3);
      EXPECT_FALSE(std::filesystem::exists(output));
    }
}

struct Overlaps {
  std::atomic<int> inside = 0, calls = 0;
  std::atomic<bool> met = false;

  static void enter(void *context) {
    auto &self = *static_cast<Overlaps *>(context);
    if (self.inside.fetch_add(1) != 0) self.met = true;
    ++self.calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    self.inside.fetch_sub(1);
  }
};

TEST_F(COutputs, CallbacksOfStreamsThatSeveralThreadsPullComeOneAtATime) {
  const TracePtr trace = open_trace(files.write("a.etl", game_trace().bytes()));
  Overlaps seen;
  auto run = sized<etwr_run>();
  run.context = &seen;
  run.stop = [](void *context) {
    Overlaps::enter(context);
    return 0;
  };
  run.progress = [](void *context, const char *, std::uint64_t, std::uint64_t) { Overlaps::enter(context); };
  etwr_tables *made = nullptr;
  error.reset(etwr_tables_open(trace.get(), nullptr, &run, &made));
  ASSERT_FALSE(error) << text_of(error);
  const std::shared_ptr<etwr_tables> tables(made, etwr_tables_free);
  const int before = seen.calls;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&tables] {
      ArrowArrayStream stream{};
      etwr_error_free(etwr_table_stream(tables.get(), 0, &stream));
      ArrowArray batch{};
      while (stream.release != nullptr && stream.get_next(&stream, &batch) == 0 && batch.release != nullptr)
        batch.release(&batch);
      if (stream.release != nullptr) stream.release(&stream);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_GT(seen.calls, before) << "nothing was told, so that nothing was tested";
  EXPECT_FALSE(seen.met);
}

TEST_F(COutputs, AStretchThatWasSteppedOverIsToldWithItsSource) {
  std::vector<std::uint8_t> bytes = long_trace();
  ASSERT_GT(bytes.size(), 0x50000u);
  const std::string whole = files.write("whole.etl", bytes);
  store(&bytes[0x20000], std::uint32_t{0x11}); // BufferSize of a buffer in the middle
  const std::string damaged = files.write("damaged.etl", bytes);
  auto how = sized<etwr_open_options>();
  how.salvage = 1;
  const TracePtr trace = open({whole, damaged}, error, &how);
  ASSERT_TRUE(trace) << text_of(error);
  std::vector<std::string> texts;
  auto run = sized<etwr_run>();
  run.context = &texts;
  run.warning = [](void *context, const char *text) {
    static_cast<std::vector<std::string> *>(context)->emplace_back(text);
  };
  char *made = nullptr;
  error.reset(etwr_statistics_json(trace.get(), &run, &made));
  ASSERT_FALSE(error) << text_of(error);
  etwr_string_free(made);
  ASSERT_FALSE(texts.empty());
  for (const std::string &text : texts)
    if (text.find("bytes skipped") != std::string::npos) {
      EXPECT_EQ(text.rfind(damaged + ": ", 0), 0u) << text;
    }
  EXPECT_TRUE(std::any_of(texts.begin(), texts.end(), [](const std::string &text) {
    return text.find("bytes skipped at 131072") != std::string::npos;
  })) << texts.front();
}

TEST_F(COutputs, SchemasWithoutATraceRunAsTheyAreTold) {
  etwr_schemas *schemas = nullptr;
  auto run = sized<etwr_run>();
  run.stop = [](void *) { return 1; };
  error.reset(etwr_schemas_collect(nullptr, &run, &schemas));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_CANCELLED);
  run = {};
  error.reset(etwr_schemas_collect(nullptr, &run, &schemas));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_USAGE);
  EXPECT_EQ(schemas, nullptr);
}

TEST_F(COutputs, SalvageIsRefusedWhereAnArchiveIsComparedWithItsOriginal) {
  const std::string path = files.write("a.etl", game_trace().bytes()), archive = files.path("a.etlz");
  error.reset(etwr_pack(path.c_str(), archive.c_str(), nullptr, nullptr, nullptr));
  ASSERT_FALSE(error) << text_of(error);
  auto options = sized<etwr_archive_options>();
  options.salvage = 1;
  error.reset(etwr_verify(archive.c_str(), path.c_str(), &options, nullptr, nullptr));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_USAGE);
  EXPECT_NE(text_of(error).find("salvage"), std::string::npos) << text_of(error);
  error.reset(etwr_verify(archive.c_str(), nullptr, &options, nullptr, nullptr));
  EXPECT_FALSE(error) << text_of(error);
}

} // namespace
} // namespace etwrelog::testing
