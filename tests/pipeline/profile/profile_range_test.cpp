// A stretch of time of a profile: the same out of an archive as out of the trace, without what lies outside.
#include "archive/archive.hpp"
#include "etwrelog/archive.hpp"
#include "etwrelog/profile_report.hpp"
#include "etwrelog/trace.hpp"
#include "source/archive_input.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tools/etwgen/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <tuple>

namespace etwrelog {
namespace {

using testing::read_file;
using testing::TempDir;
using testing::write_file;

struct Facts {
  std::vector<std::string> samples, slices; // whose, when, where
  ProfileAccounting accounting;
  std::uint64_t interval = 0;
};

Facts facts_of(const Profile &profile) {
  Facts facts;
  for (const ProfileSample &sample : profile.samples) {
    std::string text = std::to_string(sample.time) + " " + std::to_string(sample.weight) + " " +
                       process_text(profile.process_of(sample));
    for (std::uint32_t at = sample.node; at != 0; at = profile.nodes[at].parent)
      text += ";" + frame_text(profile, profile.frames[profile.nodes[at].frame]);
    facts.samples.push_back(std::move(text));
  }
  for (const ProfileSlice &slice : profile.slices) {
    const ProfileThread &thread = profile.threads[slice.thread];
    facts.slices.push_back(
        std::to_string(thread.tid) + " of " + process_text(profile.processes[thread.process]) + " " +
        std::to_string(static_cast<int>(slice.state)) + " on " + std::to_string(slice.processor) + " " +
        std::to_string(slice.start) + " to " + std::to_string(slice.end));
  }
  std::ranges::sort(facts.slices);
  facts.accounting = profile.accounting;
  facts.interval = profile.interval_ns;
  return facts;
}

Facts facts_of(const std::string &path, std::optional<double> from, std::optional<double> to,
               ProfileKind kind = ProfileKind::cpu) {
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(path);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message());
  if (!trace) return {};
  ProfileOptions options;
  options.names = true;
  options.kind = kind;
  options.slices = kind != ProfileKind::cpu;
  if (from) options.from = etwrelog::Moment{true, *from, 0};
  if (to) options.to = etwrelog::Moment{true, *to, 0};
  const Result<ProfileResult> result = make_profile(*trace, options);
  EXPECT_TRUE(result) << (result ? "" : result.error().message());
  return result ? facts_of(result->profile) : Facts();
}

void expect_same(const Facts &a, const Facts &b) {
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.slices, b.slices);
  EXPECT_EQ(a.interval, b.interval);
  const auto counts = [](const ProfileCounts &c) {
    return std::vector<std::uint64_t>{c.samples,   c.by_class[0], c.by_class[1], c.by_class[2], c.by_class[3],
                                      c.fragments, c.claimed,     c.other_event, c.orphaned};
  };
  EXPECT_EQ(counts(a.accounting.total), counts(b.accounting.total));
  EXPECT_EQ(a.accounting.other_events, b.accounting.other_events);
  EXPECT_EQ(a.accounting.lent_user_halves, b.accounting.lent_user_halves);
}

class ProfileRange : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    gen::Options options;
    options.profile = gen::find_profile("medium");
    options.size = testing::kSanitized ? 16'000'000 : 60'000'000;
    options.cpus = 4;
    options.processes = 16;
    options.stack_cache = GetParam();
    gen::MemorySink sink;
    ASSERT_TRUE(gen::generate(options, sink));
    plain = directory.file("t.etl");
    write_file(plain, sink.bytes);
    archive = directory.file("a.etlz");
    pipeline::ArchiveOptions packing;
    packing.segment = *options.size / 8;
    Result<OutputStream> out = OutputStream::open(Output(archive));
    ASSERT_TRUE(out && pipeline::pack_file(*read::memory_input("t.etl", sink.bytes), *out, packing));
    ASSERT_TRUE(out->commit());
  }
  TempDir directory;
  std::string plain, archive;
};

TEST_P(ProfileRange, OfAnArchiveIsThatOfTheTraceAndDecodesOnlyItsSegments) {
  std::vector<std::uint8_t> bytes = read_file(archive);
  const auto index = pipeline::read_archive_index(*read::memory_input("archive", bytes));
  ASSERT_TRUE(index);
  // In the middle one that the index describes: what says too much of stacks is always read.
  std::vector<std::uint64_t> described;
  for (std::size_t i = index->segments.size() / 4; i < index->segments.size() * 3 / 4; ++i)
    if (index->segments[i].summary.complete) described.push_back(index->segments[i].archive_at);
  // Definitions of stack keys matter whatever the time: here they are too many for the index.
  ASSERT_EQ(described.empty(), GetParam());
  const std::string damaged = directory.file("damaged.etlz");
  std::vector<std::string> archives{archive};
  if (!described.empty()) {
    bytes[described[described.size() / 2] + 1000] ^= 0xFF;
    write_file(damaged, bytes);
    archives.push_back(damaged);
  }
  const Profile whole = [&] {
    const Result<etwrelog::Trace> trace = etwrelog::Trace::open(plain);
    return make_profile(*trace)->profile;
  }();
  const double length = static_cast<double>(whole.duration) * 1e-9;
  const std::vector<std::pair<std::optional<double>, std::optional<double>>> ranges{
      {length * 0.9, std::nullopt}, {std::nullopt, length * 0.05}, {length * 0.9, length * 0.91}};
  for (const auto &[from, to] : ranges) {
    const Facts expected = facts_of(plain, from, to);
    EXPECT_GT(expected.samples.size(), 20u);
    EXPECT_LT(expected.samples.size(), whole.samples.size() / 5);
    EXPECT_EQ(expected.accounting.total.samples, expected.samples.size() + expected.accounting.idle_left_out);
    for (const std::string &file : archives)
      expect_same(facts_of(file, from, to), expected);
    for (const ProfileKind kind : {ProfileKind::wait, ProfileKind::ready}) {
      const Facts off = facts_of(plain, from, to, kind);
      EXPECT_GT(off.samples.size(), 5u);
      EXPECT_GT(off.slices.size(), 100u);
      for (const std::string &file : archives)
        expect_same(facts_of(file, from, to, kind), off);
    }
  }
  if (!described.empty()) {
    EXPECT_FALSE(make_profile(*etwrelog::Trace::open(damaged))) << "all of it meets the damage";
  }
}

// A wait of the whole profile is in the stretch in which it began and ended; slices that run are cut at the
// ends.
TEST_P(ProfileRange, OfWaitsThoseCountThatBeganAndEndedInIt) {
  const Facts whole = facts_of(plain, std::nullopt, std::nullopt, ProfileKind::wait),
              part = facts_of(plain, 0.5, 0.6, ProfileKind::wait);
  std::vector<std::string> expected;
  for (const std::string &sample : whole.samples) {
    std::istringstream words(sample);
    std::int64_t time = 0, micros = 0;
    words >> time >> micros;
    if (time >= 500'000'000 && time + micros * 1'000 < 600'000'000 - 1'000'000) expected.push_back(sample);
  }
  EXPECT_GT(expected.size(), 5u);
  EXPECT_GE(part.samples.size(), expected.size());
  EXPECT_LT(part.samples.size(), whole.samples.size() / 2);
  const auto without_waker = [](std::vector<std::string> samples) { // who woke it may have run since before
    for (std::string &sample : samples)
      if (const std::size_t at = sample.find(";readied by"); at != std::string::npos)
        sample.erase(at, sample.find(';', at + 1) - at);
    std::ranges::sort(samples);
    return samples;
  };
  const std::vector<std::string> all = without_waker(part.samples), wanted = without_waker(expected);
  EXPECT_TRUE(std::ranges::includes(all, wanted));
}

// What the whole profile has, cut to the stretch, of the processors that switch in it; whatever lies at its
// ends.
TEST_P(ProfileRange, WhatRunsAtTheEndsOfAStretchIsCutOffThere) {
  using Run = std::tuple<std::uint16_t, std::int64_t, std::int64_t, std::uint32_t>;
  std::vector<std::uint8_t> bytes = read_file(plain); // closed: its header says when it ended
  constexpr std::size_t kEndTimeAt = 120;
  const std::int64_t end_of_trace =
      make_profile(*etwrelog::Trace::open(plain))->profile.start_time + 3600LL * 10'000'000;
  std::memcpy(bytes.data() + kEndTimeAt, &end_of_trace, sizeof end_of_trace);
  const std::string closed = directory.file("closed.etl");
  write_file(closed, bytes);
  const auto runs = [&closed](std::optional<double> from, std::optional<double> to) {
    const Result<etwrelog::Trace> trace = etwrelog::Trace::open(closed);
    ProfileOptions options;
    options.slices = true;
    if (from) options.from = etwrelog::Moment{true, *from, 0};
    if (to) options.to = etwrelog::Moment{true, *to, 0};
    const Profile profile = make_profile(*trace, options)->profile;
    std::vector<Run> all;
    for (const ProfileSlice &slice : profile.slices)
      if (slice.state == SliceState::running)
        all.emplace_back(slice.processor, slice.start, slice.end, profile.threads[slice.thread].tid);
    std::ranges::sort(all);
    return all;
  };
  const std::vector<Run> whole = runs(std::nullopt, std::nullopt);
  const auto [from, to] = [&whole] { // a thousandth of a second around a switch, with few or no others
    const std::int64_t middle = std::get<1>(whole[whole.size() / 3]);
    return std::pair(middle - 200'000, middle + 800'000);
  }();
  std::vector<Run> expected;
  const std::vector<Run> part = runs(static_cast<double>(from) * 1e-9, static_cast<double>(to) * 1e-9);
  std::set<std::uint16_t> processors;
  bool begins = false, ends = false;
  for (const auto &[processor, start, end, tid] : part) {
    processors.insert(processor);
    begins |= start == from, ends |= end == to;
  }
  for (const auto &[processor, start, end, tid] : whole)
    if (processors.contains(processor) && end > from && start < to)
      expected.emplace_back(processor, std::max(start, from), std::min(end, to), tid);
  EXPECT_EQ(part, expected);
  EXPECT_TRUE(begins);
  EXPECT_TRUE(ends);
  EXPECT_EQ(runs(0, 1e6), whole) << "nothing is cut off";
}

// What a page knows of each wait is enough to tell which count in a stretch that is selected there.
TEST_P(ProfileRange, WaitsSayWhenTheyBeganAndEnded) {
  constexpr std::int64_t kFrom = 500'000'000, kTo = 600'000'000;
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(plain);
  ASSERT_TRUE(trace);
  for (const ProfileKind kind : {ProfileKind::wait, ProfileKind::ready}) {
    std::uint64_t count = 0, sum = 0;
    const Profile whole = make_profile(*trace, {.kind = kind})->profile;
    for (const ProfileSample &s : whole.samples) {
      const std::int64_t beside = std::int64_t{s.beside_us} * 1000,
                         began = s.time - (kind == ProfileKind::ready ? beside : 0),
                         ended = s.time + static_cast<std::int64_t>(s.weight) +
                                 (kind == ProfileKind::wait ? beside : 0);
      if (began < kFrom || ended > kTo) continue;
      ++count;
      sum += s.weight;
    }
    const Profile part = make_profile(*trace, {.kind = kind,
                                               .from = etwrelog::Moment{true, 0.5, 0},
                                               .to = etwrelog::Moment{true, 0.6, 0}})
                             ->profile;
    EXPECT_GT(count, 5u);
    EXPECT_EQ(count, part.samples.size());
    EXPECT_EQ(sum, total_weight(part));
  }
}

// Each sample of the whole profile is in exactly one stretch, with the same stack.
TEST_P(ProfileRange, StretchesAddUpToTheWhole) {
  const Facts whole = facts_of(plain, std::nullopt, std::nullopt);
  Facts sum;
  double from = -1;
  for (const double to : {0.5, 0.5001, 1.2, 1e6}) {
    const Facts part = facts_of(plain, from < 0 ? std::nullopt : std::optional(from), to);
    sum.samples.insert(sum.samples.end(), part.samples.begin(), part.samples.end());
    sum.accounting.total.fragments += part.accounting.total.fragments;
    from = to + 1e-7; // a tick of the clock
  }
  EXPECT_EQ(sum.samples, whole.samples);
  EXPECT_EQ(sum.accounting.total.fragments, whole.accounting.total.fragments);
}

INSTANTIATE_TEST_SUITE_P(Traces, ProfileRange, ::testing::Bool(),
                         [](const auto &test) { return test.param ? "StackCache" : "StackWalk"; });

TEST(ProfileRangeOptions, AnEndBeforeTheBeginningIsAnError) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 1'000'000;
  gen::MemorySink sink;
  ASSERT_TRUE(gen::generate(options, sink));
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(Input::memory("t.etl", sink.bytes));
  ASSERT_TRUE(trace);
  ProfileOptions range;
  range.from = etwrelog::Moment{true, 2, 0};
  range.to = etwrelog::Moment{true, 1, 0};
  const Result<ProfileResult> result = make_profile(*trace, range);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::usage);
}

} // namespace
} // namespace etwrelog
