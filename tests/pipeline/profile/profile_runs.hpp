// Profiles of traces made in memory, and what a profile must hold in any case.
#pragma once

#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_report.hpp"
#include "profile_pass/profile.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <map>

#include <gtest/gtest.h>

namespace etwrelog {

using namespace testing;
using Lines = std::map<std::string, std::uint64_t>;

inline pipeline::ProfileResult
profile_of(const pipeline::Trace &trace, const pipeline::ProfileOptions &options = {}, unsigned threads = 2) {
  pipeline::PassOptions graph;
  graph.threads = threads;
  Result<pipeline::ProfileResult> result = pipeline::make_profile(trace, options, graph);
  EXPECT_TRUE(result) << result.error().message();
  return result ? std::move(*result) : pipeline::ProfileResult();
}

inline pipeline::ProfileResult profile_of(const SyntheticTrace &trace,
                                          const pipeline::ProfileOptions &options = {}) {
  const Result<pipeline::Trace> opened = open_trace(trace.bytes());
  EXPECT_TRUE(opened);
  return profile_of(*opened, options);
}

inline pipeline::ProfileResult profile_of_file(const std::string &path, unsigned threads = 2) {
  const Result<pipeline::Trace> opened = pipeline::Trace::open(path, {});
  EXPECT_TRUE(opened) << path;
  return opened ? profile_of(*opened, {}, threads) : pipeline::ProfileResult();
}

inline std::string line_of(const Profile &profile, const ProfileSample &sample) {
  std::string line;
  for (std::uint32_t at = sample.node; at != 0; at = profile.nodes[at].parent) {
    const ProfileFrame &frame = profile.frames[profile.nodes[at].frame];
    line = ";" + frame_text(profile, frame) + (frame.in_kernel ? "_[k]" : "") + line;
  }
  return process_text(profile.process_of(sample)) + line;
}

inline Lines folded(const Profile &profile) {
  Lines lines;
  for (const ProfileSample &sample : profile.samples)
    lines[line_of(profile, sample)] += sample.weight;
  return lines;
}

inline std::vector<std::uint8_t> file_of(const Profile &profile, ProfileFormat format) {
  std::vector<std::uint8_t> file;
  EXPECT_TRUE(write_profile(profile, format, {}, [&](Bytes bytes) -> Result<void> {
    file.insert(file.end(), bytes.begin(), bytes.end());
    return {};
  }));
  return file;
}

inline void expect_sums(const Profile &profile) {
  const auto check = [](const ProfileCounts &counts) {
    std::uint64_t classes = 0;
    for (const std::uint64_t count : counts.by_class)
      classes += count;
    EXPECT_EQ(counts.samples, classes);
    EXPECT_EQ(counts.fragments, counts.claimed + counts.other_event + counts.orphaned);
  };
  const ProfileAccounting &accounting = profile.accounting;
  check(accounting.total);
  std::uint64_t samples = 0, fragments = 0, others = 0;
  ASSERT_EQ(accounting.by_process.size(), profile.processes.size());
  for (const ProfileCounts &counts : accounting.by_process) {
    check(counts);
    samples += counts.samples;
    fragments += counts.fragments;
  }
  for (const auto &[name, count] : accounting.other_events)
    others += count;
  EXPECT_EQ(samples, accounting.total.samples);
  EXPECT_EQ(fragments, accounting.total.fragments);
  EXPECT_EQ(others, accounting.total.other_event);
  EXPECT_EQ(profile.samples.size() + accounting.idle_left_out, accounting.total.samples);
}

constexpr std::uint64_t kKernel = 0xFFFF'F800'0000'1000, kUser = 0x7FF6'0000'1000;

// One process, 8, with the thread 80.
class Join : public ::testing::Test {
protected:
  Join() {
    trace.process_rundown({1'000'001}, 8, 4, "game.exe");
    trace.thread_rundown({1'000'002}, 80, 8);
  }
  Profile run() {
    const Profile profile = profile_of(trace).profile;
    expect_sums(profile);
    return profile;
  }
  SyntheticTrace trace;
};

} // namespace etwrelog
