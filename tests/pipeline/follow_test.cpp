// `relog --follow`: a log that grows beside it comes out as if it had been relogged when it was closed.
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/run_tool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include <sys/stat.h>

namespace etwrelog {
namespace {

using testing::SyntheticTrace;
using testing::ToolRun;
using Buffer = std::vector<std::uint8_t>;
using namespace std::chrono_literals;

constexpr std::size_t kBufferSize = 0x4000;

Buffer made(bool closed, Codec codec = Codec::none, std::uint32_t mode = format::kModeSequential) {
  SyntheticTrace t(
      {.buffer_size = kBufferSize, .mode = mode, .codec = codec, .closed = closed, .events_lost = 5});
  for (std::uint32_t pid : {100u, 200u}) {
    t.process_rundown({1'000'100}, pid, 4, pid == 100 ? "one.exe" : "two.exe");
    t.thread_rundown({1'000'101}, pid + 4, pid);
  }
  t.end_buffer(0);
  for (int i = 0; i < 3000; ++i) {
    const auto cpu = static_cast<std::uint16_t>(i % 2);
    const std::uint32_t pid = i % 3 == 0 ? 100 : 200;
    t.sample({2'000'000 + 100 * i, cpu}, pid + 4, static_cast<std::uint64_t>(i));
    if (i % 400 == 399) t.end_buffer(cpu);
  }
  return t.bytes();
}

// Appends to a file, as a session does.
void append(const std::string &path, Bytes bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
void overwrite(const std::string &path, std::size_t at, Bytes bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Until the tool has the log open; whoever cannot be asked is given a while.
void wait_until_read(pid_t tool, const std::string &path) {
  const std::filesystem::path wanted = std::filesystem::canonical(path);
  for (int i = 0; i < 6000; ++i) {
    std::error_code none;
    for (const auto &entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(tool) + "/fd", none)) {
      std::error_code gone;
      if (std::filesystem::read_symlink(entry, gone) == wanted) return;
    }
    std::this_thread::sleep_for(5ms);
  }
  ADD_FAILURE() << "the tool does not open " << path;
}

// Until the tool has read what there is: from then on it only looks at the header, again and again.
void wait_until_waiting(pid_t tool, const std::string &path) {
  wait_until_read(tool, path);
  const auto bytes_read = [tool] {
    std::ifstream io("/proc/" + std::to_string(tool) + "/io");
    std::string name;
    std::uint64_t bytes = 0;
    io >> name >> bytes;
    return bytes;
  };
  const std::uint64_t before = bytes_read();
  for (int i = 0; i < 6000 && bytes_read() < before + 10 * (kBufferSize * 4); ++i)
    std::this_thread::sleep_for(5ms);
}

ToolRun followed(const std::string &live, const std::string &out, std::function<void(pid_t)> meanwhile,
                 std::vector<std::string> more = {}) {
  std::vector<std::string> words{"relog", "--follow", live, "-o", out, "-q"};
  words.insert(words.end(), more.begin(), more.end());
  testing::ToolOptions options;
  options.while_running = std::move(meanwhile);
  return testing::run_tool(words, options);
}

Buffer relogged(const testing::TempDir &directory, const Buffer &trace, std::vector<std::string> more = {}) {
  const std::string in = directory.file("whole.etl"), out = directory.file("whole.out.etl");
  testing::write_file(in, trace);
  std::vector<std::string> words{"relog", in, "-o", out, "-q", "-f"};
  words.insert(words.end(), more.begin(), more.end());
  const ToolRun run = testing::run_tool(words);
  EXPECT_EQ(run.status, 0) << run.err;
  return testing::read_file(out);
}

TEST(Follow, GivesWhatTheClosedLogGives) {
  for (const Codec codec : {Codec::none, Codec::xpress}) {
    const testing::TempDir directory;
    const std::string live = directory.file("live.etl"), out = directory.file("out.etl");
    const Buffer open = made(false, codec), closed = made(true, codec);
    ASSERT_EQ(open.size(), closed.size());
    std::mt19937 random(7);
    testing::write_file(live,
                        Bytes(open).first(random() % kBufferSize)); // not even the first buffer is whole
    const ToolRun run = followed(live, out, [&](pid_t tool) {
      wait_until_read(tool, live);
      for (std::size_t at = testing::read_file(live).size(); at < open.size();) {
        const std::size_t piece = std::min<std::size_t>(1 + random() % (kBufferSize * 2), open.size() - at);
        append(live, Bytes(open).subspan(at, piece)); // ends anywhere in a buffer
        at += piece;
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
      }
      overwrite(live, 0, Bytes(closed).first(kBufferSize));
    });
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "");
    EXPECT_TRUE(testing::read_file(out) == relogged(directory, closed));
  }
}

TEST(Follow, AClosedLogIsReadToItsEndAtOnce) {
  const testing::TempDir directory;
  const std::string live = directory.file("live.etl"), out = directory.file("out.etl");
  testing::write_file(live, made(true));
  const ToolRun run = followed(live, out, {}, {"-p", "one.exe", "--codec", "xpress"});
  ASSERT_EQ(run.status, 0) << run.err;
  const testing::Contents got = testing::contents_of(testing::read_file(out)),
                          wanted = testing::contents_of(
                              relogged(directory, made(true), {"-p", "one.exe", "--codec", "xpress"}));
  EXPECT_EQ(got.error, "");
  EXPECT_GT(got.events.size(), 1000u);
  EXPECT_TRUE(got.by_cpu == wanted.by_cpu);
}

// A session that makes its file as large as it may become writes into zeros.
TEST(Follow, WaitsForWhatIsAllocatedButNotWritten) {
  const testing::TempDir directory;
  const std::string live = directory.file("live.etl"), out = directory.file("out.etl");
  const Buffer open = made(false), closed = made(true);
  Buffer zeros(open.size() + 10 * kBufferSize);
  std::copy_n(open.begin(), 2 * kBufferSize, zeros.begin());
  testing::write_file(live, zeros);
  const ToolRun run = followed(live, out, [&](pid_t tool) {
    wait_until_read(tool, live);
    for (std::size_t at = 2 * kBufferSize; at < open.size(); at += kBufferSize) {
      overwrite(live, at, Bytes(open).subspan(at, std::min(kBufferSize, open.size() - at)));
      std::this_thread::sleep_for(10ms);
    }
    overwrite(live, 0, Bytes(closed).first(kBufferSize));
  });
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(testing::read_file(out) == relogged(directory, closed));
}

// By a program that copies it in pieces, into a file that has its size from the start.
TEST(Follow, WaitsForTheRestOfABufferThatIsHalfWritten) {
  for (const Codec codec : {Codec::none, Codec::xpress}) {
    const Buffer open = made(false, codec), closed = made(true, codec);
    for (const bool interrupted : {false, true}) {
      const testing::TempDir directory;
      const std::string live = directory.file("live.etl"), out = directory.file("out.etl");
      Buffer zeros(open.size() + 10 * kBufferSize);
      std::size_t whole = 0; // three buffers
      for (int i = 0; i < 3; ++i)
        whole += load<std::uint32_t>(open.data() + whole);
      const std::size_t torn = whole + 0x300;
      std::copy_n(open.begin(), torn, zeros.begin());
      testing::write_file(live, zeros);
      const ToolRun run = followed(live, out, [&](pid_t tool) {
        wait_until_waiting(tool, live);
        if (interrupted) {
          ::kill(tool, SIGINT);
          return;
        }
        overwrite(live, torn, Bytes(open).subspan(torn));
        overwrite(live, 0, Bytes(closed).first(kBufferSize));
      });
      ASSERT_EQ(run.status, 0) << run.err;
      const Buffer expected =
          interrupted ? Buffer(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(torn)) : closed;
      EXPECT_TRUE(testing::contents_of(testing::read_file(out)).by_cpu ==
                  testing::contents_of(relogged(directory, expected)).by_cpu)
          << interrupted;
    }
  }
}

// Its first buffer ends in zeros, as a name does.
TEST(Follow, ALogOfOneBufferMayHaveSpaceForMore) {
  for (const bool closed : {true, false}) {
    const testing::TempDir directory;
    const std::string live = directory.file("live.etl"), out = directory.file("out.etl");
    Buffer first = SyntheticTrace({.buffer_size = kBufferSize, .closed = closed}).bytes();
    first.resize(5 * kBufferSize);
    testing::write_file(live, first);
    const ToolRun run = followed(live, out, [&](pid_t tool) {
      if (closed) return;
      wait_until_waiting(tool, live);
      ::kill(tool, SIGINT);
    });
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(testing::contents_of(testing::read_file(out)).error, "");
  }
}

TEST(Follow, InterruptedItHoldsWhatWasAppended) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const testing::TempDir directory;
    const std::string live = directory.file("live.etl"), out = directory.file("out.etl");
    const Buffer open = made(false);
    const std::size_t there = 5 * kBufferSize + 1000; // the last buffer is half there
    testing::write_file(live, Bytes(open).first(2 * kBufferSize));
    const ToolRun run = followed(live, out, [&](pid_t tool) {
      wait_until_read(tool, live);
      append(live, Bytes(open).subspan(2 * kBufferSize, there - 2 * kBufferSize));
      EXPECT_EQ(directory.names(), std::vector<std::string>{"live.etl"}) << "no output before its end";
      ::kill(tool, signal);
    });
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.err.find("still writing"), std::string::npos) << run.err;
    const Buffer bytes = testing::read_file(out);
    const testing::Contents contents = testing::contents_of(bytes);
    EXPECT_EQ(contents.error, "");
    EXPECT_TRUE(contents.by_cpu == testing::contents_of(Buffer(open.begin(), open.begin() + there)).by_cpu);
    EXPECT_TRUE(bytes == relogged(directory, Buffer(open.begin(), open.begin() + there)));
  }
}

TEST(Follow, AFileThatShrinksOrIsReplacedIsAnError) {
  const Buffer open = made(false);
  const std::vector<
      std::pair<std::string, std::function<void(const testing::TempDir &, const std::string &)>>>
      cases = {{"became shorter",
                [](const testing::TempDir &, const std::string &live) {
                  std::filesystem::resize_file(live, kBufferSize + 100);
                }},
               {"replaced",
                [&](const testing::TempDir &directory, const std::string &live) {
                  testing::write_file(directory.file("other.etl"), open);
                  std::filesystem::rename(directory.file("other.etl"), live);
                }},
               {"replaced",
                [](const testing::TempDir &, const std::string &live) { std::filesystem::remove(live); }}};
  for (const auto &[what, change] : cases) {
    const testing::TempDir directory;
    const std::string live = directory.file("live.etl"), out = directory.file("out.etl");
    testing::write_file(live, Bytes(open).first(4 * kBufferSize));
    const auto &changed = change;
    const ToolRun run = followed(live, out, [&](pid_t tool) {
      wait_until_waiting(tool, live);
      changed(directory, live);
    });
    EXPECT_EQ(run.status, 1) << what;
    EXPECT_NE(run.err.find(what), std::string::npos) << run.err;
    EXPECT_NE(run.err.find(live), std::string::npos) << run.err;
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

TEST(Follow, RefusesWhatCannotBeFollowed) {
  const testing::TempDir directory;
  const std::string live = directory.file("live.etl"), out = directory.file("out.etl");
  testing::write_file(live, made(false, Codec::none, format::kModeCircular));
  const ToolRun circular = followed(live, out, {});
  EXPECT_EQ(circular.status, 1);
  EXPECT_NE(circular.err.find("circular"), std::string::npos) << circular.err;
  testing::write_file(live, Buffer(100'000, 'x'));
  EXPECT_EQ(followed(live, out, {}).status, 1) << "no trace, and it will not become one";
  for (const std::vector<std::string> &with :
       {std::vector<std::string>{"--salvage"}, {"--keep-order"}, {"--stacks", "cache"}, {"--embed-schemas"}})
    EXPECT_EQ(followed(live, out, {}, with).status, 2) << with.front();
  EXPECT_EQ(followed(live, live, {}, {"-f"}).status, 2) << "never its own input";
  EXPECT_EQ(followed("-", out, {}).status, 2);
  const std::string pipe = directory.file("pipe"); // to which nobody writes
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(followed(pipe, out, {}).err.find("no regular file"), std::string::npos);
}

} // namespace
} // namespace etwrelog
