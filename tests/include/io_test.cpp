// Inputs and outputs as callers describe them: what is read, what is never replaced, what is left behind.
#include "etwrelog/io.hpp"
#include "etwrelog/trace.hpp"
#include "read/input.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/zip_files.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::uint8_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

class Pieces final : public ByteStream {
public:
  explicit Pieces(std::string text) : text_(std::move(text)) {}
  Result<std::size_t> read(MutableBytes into) override {
    const std::size_t count = std::min<std::size_t>({into.size(), 3, text_.size() - at_});
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(at_), count, into.begin());
    at_ += count;
    return count;
  }

private:
  std::string text_;
  std::size_t at_ = 0;
};

TEST(Input, EveryKindGivesItsBytes) {
  const testing::TempDir directory;
  const std::string path = directory.file("plain");
  put(path, "0123456789");
  const std::vector<Input> inputs{Input(path), Input::memory("m", bytes_of("0123456789")),
                                  Input::stream("s", std::make_shared<Pieces>("0123456789"))};
  for (const Input &input : inputs) {
    const auto opened = read::open_input(input);
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ((*opened)->size(), 10u);
    EXPECT_EQ((*opened)->name(), input.name());
    std::vector<std::uint8_t> part(6);
    EXPECT_EQ(*(*opened)->read_at(7, part), 3u);
    EXPECT_EQ(std::string(part.begin(), part.begin() + 3), "789");
    EXPECT_EQ(*(*opened)->read_at(10, part), 0u);
  }
}

TEST(Output, ReplacesNothingUnasked) {
  const testing::TempDir directory;
  const std::string path = directory.file("out");
  put(path, "old");
  EXPECT_FALSE(OutputStream::open(path));
  EXPECT_EQ(OutputStream::open(path).error().advice, Advice::replace);
  {
    Result<OutputStream> out = OutputStream::open(Output(path, Existing::replace));
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->write("half"));
  }
  EXPECT_EQ(content(path), "old"); // not committed
  Result<OutputStream> out = OutputStream::open(Output(path, Existing::replace));
  ASSERT_TRUE(out && out->write("ne") && out->write("w") && out->commit());
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path).parent_path()), {}), 1);
}

TEST(Output, IsNeverAnInputWhateverItsName) {
  const testing::TempDir directory;
  const std::string path = directory.file("in"), link = directory.file("link"), hard = directory.file("hard");
  put(path, "precious");
  fs::create_symlink(path, link);
  fs::create_hard_link(path, hard);
  const std::vector<Input> inputs{Input::memory("m", {}), Input(path)};
  for (const std::string &name : {path, link, hard, fs::path(path).parent_path().string() + "/./in"}) {
    const Result<OutputStream> out = OutputStream::open(Output(name, Existing::replace), inputs);
    ASSERT_FALSE(out) << name;
    EXPECT_EQ(out.error().option, Option::output);
  }
  EXPECT_EQ(content(path), "precious");
}

class Collect final : public ByteSink {
public:
  Result<void> write(Bytes bytes) override {
    text.append(bytes.begin(), bytes.end());
    return {};
  }
  std::string text;
};

TEST(Output, GoesToMemoryAndSinks) {
  std::vector<std::uint8_t> bytes = bytes_of("before");
  Result<OutputStream> memory = OutputStream::open(Output::memory(bytes));
  ASSERT_TRUE(memory && memory->write("after"));
  EXPECT_EQ(bytes, bytes_of("before"));
  ASSERT_TRUE(memory->commit());
  EXPECT_EQ(bytes, bytes_of("after"));
  const auto sink = std::make_shared<Collect>();
  Result<OutputStream> out = OutputStream::open(Output::sink("s", sink));
  ASSERT_TRUE(out && out->write("ab") && out->write("c") && out->commit());
  EXPECT_EQ(sink->text, "abc");
  EXPECT_EQ(out->size(), 3u);
}

// As `yes | etwrelog info -`: to copy all of it before looking would fill the disk.
class Endless final : public ByteStream {
public:
  Result<std::size_t> read(MutableBytes into) override {
    std::ranges::fill(into, std::uint8_t{'y'});
    given += into.size();
    return into.size();
  }
  std::uint64_t given = 0;
};

TEST(Input, AStreamThatIsNoTraceIsRefusedFromItsBeginning) {
  const auto endless = std::make_shared<Endless>();
  const Result<Trace> opened = Trace::open(Input::stream("yes", endless));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().file, "yes");
  EXPECT_EQ(opened.error().advice, Advice::check_input);
  EXPECT_LE(endless->given, 1u << 20);
}

// Gives so many bytes at a time, and then an error: whoever asks for more would wait for a pipe that stalls.
class Stalling final : public ByteStream {
public:
  Stalling(std::vector<std::uint8_t> bytes, std::size_t step) : bytes_(std::move(bytes)), step_(step) {}
  Result<std::size_t> read(MutableBytes into) override {
    if (at_ == bytes_.size() && !ends) {
      Error error;
      error.kind = ErrorKind::io;
      error.what = "stalled";
      return error;
    }
    const std::size_t count = std::min({into.size(), step_, bytes_.size() - at_});
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, into.begin());
    at_ += count;
    return count;
  }
  bool ends = false;

private:
  std::vector<std::uint8_t> bytes_;
  std::size_t step_, at_ = 0;
};

TEST(Input, AStreamMayGiveFewBytesAtATime) {
  testing::SyntheticTrace made;
  for (int i = 0; i < 100; ++i)
    made.sample({2'000'000 + i}, 7);
  for (const std::size_t step : {1u, 4u, 7u, 100u, 1000u}) {
    const auto stream = std::make_shared<Stalling>(made.bytes(), step);
    stream->ends = true;
    const Result<Trace> trace = Trace::open(Input::stream("slow", stream));
    ASSERT_TRUE(trace) << step << ": " << trace.error().message();
    std::size_t events = 0;
    ASSERT_TRUE(trace->events().for_each([&events](const Event &) { ++events; }));
    EXPECT_EQ(events, 101u) << step;
  }
  const auto little = std::make_shared<Stalling>(std::vector<std::uint8_t>(50, 1), 1);
  little->ends = true;
  const Result<Trace> cut = Trace::open(Input::stream("cut", little));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().advice, Advice::check_input);
  EXPECT_EQ(cut.error().found, "50 bytes in all");
}

// Of a large file on a slow disk, a compressed one, or a pipe, it takes long.
TEST(Input, OpeningTellsHowFarItIsAndEndsWhenAsked) {
  testing::SyntheticTrace made;
  for (int i = 0; i < 100; ++i) {
    made.sample({2'000'000 + i}, 7);
    if (i % 10 == 0) made.end_buffer(0);
  }
  const auto stream = [&] {
    auto pipe = std::make_shared<Stalling>(made.bytes(), 1000);
    pipe->ends = true;
    return Input::stream("p", pipe);
  };
  using Phases = std::vector<std::string>;
  const std::vector<std::pair<std::function<Input()>, Phases>> inputs{
      {[&] { return Input::memory("m.etl", made.bytes()); }, {"opening"}},
      {[&] { return Input::memory("m.etl.gz", testing::gzip_of(made.bytes())); },
       {"decompressing", "opening"}},
      {[&] {
         return Input::memory("m.zip", testing::zip_of({{"a.etl", made.bytes()}, {"b.txt", {1, 2}}}));
       },
       {"decompressing", "opening"}},
      {stream, {"reading", "opening"}}};
  for (const auto &[input, expected] : inputs) {
    Phases phases;
    RunOptions run;
    run.progress = [&phases](const Progress &now) {
      if (phases.empty() || phases.back() != now.phase) phases.emplace_back(now.phase);
      if (now.total != 0) {
        EXPECT_LE(now.done, now.total) << now.phase;
      }
    };
    EXPECT_TRUE(Trace::open(input(), {}, run));
    EXPECT_EQ(phases, expected);
    for (const std::string &phase : expected) {
      std::stop_source stop;
      run.stop = stop.get_token();
      run.progress = [&](const Progress &now) {
        if (now.phase == phase) stop.request_stop();
      };
      const Result<Trace> stopped = Trace::open(input(), {}, run);
      ASSERT_FALSE(stopped) << phase;
      EXPECT_EQ(stopped.error().kind, ErrorKind::cancelled) << stopped.error().message();
    }
  }
}

TEST(Input, AStreamThatStallsIsRefusedAsSoonAsItTellsThatItIsNoTrace) {
  testing::SyntheticTrace made;
  made.sample({2'000'000}, 7);
  std::vector<std::uint8_t> wrong = made.bytes();
  wrong.resize(1000);
  std::fill_n(wrong.begin() + format::kBufferHeaderSize + format::kSystemHeaderSize, 4, std::uint8_t{0xFF});
  for (const std::vector<std::uint8_t> &bytes : {bytes_of(std::string(200, 'y')), wrong})
    for (const std::size_t step : {1u, 1000u}) {
      const Result<Trace> opened =
          Trace::open(Input::stream("pipe", std::make_shared<Stalling>(bytes, step)));
      ASSERT_FALSE(opened);
      EXPECT_EQ(opened.error().advice, Advice::check_input) << opened.error().message();
    }
}

class Throwing final : public RandomAccess, public ByteStream, public ByteSink {
public:
  [[nodiscard]] std::uint64_t size() const override { return 1000; }
  Result<std::size_t> read_at(std::uint64_t, MutableBytes) const override { throw std::runtime_error("no"); }
  Result<std::size_t> read(MutableBytes) override { throw std::runtime_error("no"); }
  Result<void> write(Bytes) override { throw std::runtime_error("no"); }
};

TEST(Input, WhatTheCallersObjectsThrowIsAnError) {
  const auto throwing = std::make_shared<Throwing>();
  for (const Input &input : {Input::random_access("r", throwing), Input::stream("s", throwing)}) {
    const Result<Trace> opened = Trace::open(input);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::callback);
    EXPECT_EQ(opened.error().file, input.name());
    EXPECT_EQ(opened.error().found, "no");
  }
  Result<OutputStream> out = OutputStream::open(Output::sink("o", throwing));
  ASSERT_TRUE(out);
  const Result<void> written = out->write("x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::callback);
}

TEST(Input, NullPointersAndNamesWithAZeroAreUsageErrors) {
  const std::string zero("x\0y", 3);
  for (const Input &input : {Input::random_access("r", nullptr), Input::stream("s", nullptr), Input(zero)})
    EXPECT_EQ(Trace::open(input).error().kind, ErrorKind::usage) << input.name();
  EXPECT_EQ(OutputStream::open(Output::sink("o", nullptr)).error().kind, ErrorKind::usage);
  EXPECT_EQ(OutputStream::open(Output(zero)).error().kind, ErrorKind::usage);
}

TEST(Output, AFolderThatIsNotThereIsToldBeforeTheWork) {
  const testing::TempDir directory;
  const std::vector<Output> outputs{Output(directory.file("there")), Output(directory.file("not/there"))};
  const Result<void> checked = check_outputs(outputs);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().file, directory.file("not/there"));
}

} // namespace
} // namespace etwrelog
