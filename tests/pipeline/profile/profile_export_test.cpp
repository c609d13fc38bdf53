// Exports of profiles: what they must hold, whatever the names in a trace are.
#include "etwrelog/profile_export.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/synthetic_profile.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using test_support::synthetic_profile;

struct Written {
  std::string text;
  ProfileExportReport report;
};

WriteBytes into(std::string &text) {
  return [&text](Bytes bytes) {
    text.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return Result<void>();
  };
}

Written write(const Profile &profile, ProfileFormat format, const ProfileExportOptions &options = {}) {
  Written out;
  const auto report = write_profile(profile, format, options, into(out.text));
  EXPECT_TRUE(report) << (report ? "" : report.error().message());
  if (report) out.report = *report;
  EXPECT_EQ(out.report.bytes, out.text.size());
  return out;
}

std::string gunzip(const std::string &in) {
  const std::vector<std::uint8_t> out =
      testing::gunzipped({reinterpret_cast<const std::uint8_t *>(in.data()), in.size()});
  return {out.begin(), out.end()};
}

std::map<std::string, std::uint64_t> folded_lines(const std::string &text) {
  std::map<std::string, std::uint64_t> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.rfind(' ');
    EXPECT_TRUE(out.emplace(line.substr(0, at), std::stoull(line.substr(at + 1))).second)
        << "twice: " << line;
  }
  return out;
}

std::uint64_t sum(const std::map<std::string, std::uint64_t> &lines) {
  std::uint64_t out = 0;
  for (const auto &[stack, count] : lines)
    out += count;
  return out;
}

TEST(ProfileExport, FoldedLinesAreSortedAndAddUp) {
  const Profile profile = synthetic_profile();
  const auto lines = folded_lines(write(profile, ProfileFormat::folded).text);
  EXPECT_EQ(sum(lines), profile.samples.size());
  // By hand: the samples of one stack.
  std::uint64_t inlined = 0;
  for (const ProfileSample &s : profile.samples)
    if (profile.frames[profile.nodes[s.node].frame].function == "Vector::length" && s.thread == 2) ++inlined;
  ASSERT_GT(inlined, 0u);
  EXPECT_EQ(lines.at("service.exe (977);ntdll.dll!RtlUserThreadStart;game.exe!main;game.exe!Game::Update;"
                     "game.exe!Vector::length_[i]"),
            inlined);
  EXPECT_TRUE(lines.contains("service.exe (977);[user stack missing];ntoskrnl.exe+0x800_[k]"));
}

TEST(ProfileExport, FoldedMergesTwoProcessesOfOneNameAndId) {
  const Profile profile = synthetic_profile(); // the id 4242 has two owners
  const auto lines = folded_lines(write(profile, ProfileFormat::folded).text);
  std::uint64_t of_id = 0, expected = 0;
  for (const auto &[stack, count] : lines)
    if (stack.starts_with("game.exe (4242);")) of_id += count;
  for (const ProfileSample &s : profile.samples)
    expected += profile.process_of(s).pid == 4242;
  EXPECT_EQ(of_id, expected);
}

// What stands in a name before ';' comes before what the shorter name called.
TEST(ProfileExport, FoldedLinesAreInTheOrderOfTheirText) {
  Profile profile = synthetic_profile({.samples = 10});
  const std::uint32_t top = profile.nodes[profile.samples[0].node].parent;
  std::vector<std::uint32_t> ends;
  for (const char *name : {"a", "a.b", "a b", "a<b>", "a"}) { // '.' and ' ' are less than ';', '<' is more
    ProfileFrame frame;
    frame.function = name;
    frame.kind = FrameKind::annotation;
    frame.why = Unresolved::none;
    profile.frames.push_back(frame);
    profile.nodes.push_back({top, static_cast<std::uint32_t>(profile.frames.size() - 1)});
    ends.push_back(static_cast<std::uint32_t>(profile.nodes.size() - 1));
    profile.nodes.push_back({ends.back(), profile.nodes[1].frame});
    ends.push_back(static_cast<std::uint32_t>(profile.nodes.size() - 1));
  }
  for (const std::uint32_t end : ends) {
    profile.samples.push_back(profile.samples[0]);
    profile.samples.back().node = end;
  }
  std::istringstream text(write(profile, ProfileFormat::folded).text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(line.substr(0, line.rfind(' ')));
  EXPECT_TRUE(std::ranges::is_sorted(lines));
  EXPECT_EQ(std::ranges::adjacent_find(lines), lines.end()) << "each stack is one line";
  EXPECT_GE(lines.size(), 8u);
}

TEST(ProfileExport, FoldedNamesNeverBreakALine) {
  const auto lines =
      folded_lines(write(synthetic_profile({.hostile_names = true}), ProfileFormat::folded).text);
  EXPECT_EQ(sum(lines), 5000u);
  for (const auto &[stack, count] : lines)
    EXPECT_EQ(stack.find('\n'), std::string::npos);
  EXPECT_TRUE(lines.begin()->first.starts_with("a:b<c>& \xEF\xBF\xBD \"q\".exe (4242);"))
      << lines.begin()->first;
}

// Who reads lines may take U+2028 for the end of one; U+202E shows "exe.gpj" for "jpg.exe", with the id
// behind it.
TEST(ProfileExport, NamesDoNotTurnTheDirectionOfWriting) {
  Profile profile = synthetic_profile({.slices = true});
  profile.processes[0].name = "a\xE2\x80\xAE"
                              "b\xE2\x80\xA8"
                              "c\xD8\x9C"
                              "d\xD8\xA7\xE2\x82\xAC.exe"; // U+0627, U+20AC stay
  const std::string shown = "a\xEF\xBF\xBD"
                            "b\xEF\xBF\xBD"
                            "c\xEF\xBF\xBD"
                            "d\xD8\xA7\xE2\x82\xAC.exe";
  for (const ProfileFormat format :
       {ProfileFormat::svg, ProfileFormat::html, ProfileFormat::folded, ProfileFormat::speedscope,
        ProfileFormat::firefox, ProfileFormat::pprof, ProfileFormat::chrome}) {
    std::string text = write(profile, format).text;
    if (text[0] == '\x1F') text = gunzip(text);
    EXPECT_NE(text.find(shown), std::string::npos) << profile_format_name(format);
    EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos) << profile_format_name(format);
  }
}

TEST(ProfileExport, SameProfileGivesTheSameBytes) {
  for (const auto format :
       {ProfileFormat::folded, ProfileFormat::svg, ProfileFormat::html, ProfileFormat::speedscope,
        ProfileFormat::firefox, ProfileFormat::pprof, ProfileFormat::chrome}) {
    const Profile profile = synthetic_profile({.slices = true});
    EXPECT_EQ(write(profile, format).text, write(profile, format).text) << profile_format_name(format);
  }
}

TEST(ProfileExport, SvgDrawsWidthsInProportion) {
  const Profile profile = synthetic_profile();
  const std::string svg = write(profile, ProfileFormat::svg).text;
  const std::regex frame(
      "<title>service\\.exe \\(977\\)\n([0-9,]+) samples, ([0-9.]+) %</title><rect x=\"([0-9.]+)\" "
      "y=\"[0-9.]+\" width=\"([0-9.]+)\"");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(svg, found, frame));
  EXPECT_EQ(found[1], "500");
  EXPECT_EQ(found[2], "10.00");
  EXPECT_NEAR(std::stod(found[4]), 117.6, 0.05);
}

TEST(ProfileExport, SvgPutsTheRootOnTopOnlyAsIcicle) {
  const auto y = [](const std::string &svg) {
    std::smatch found;
    EXPECT_TRUE(
        std::regex_search(svg, found, std::regex("<title>all\n[^<]*</title><rect x=\"12\" y=\"([0-9.]+)\"")));
    return std::stod(found[1]);
  };
  const Profile profile = synthetic_profile();
  EXPECT_LT(y(write(profile, ProfileFormat::svg, {.icicle = true}).text), 80);
  EXPECT_GT(y(write(profile, ProfileFormat::svg).text), 150);
}

TEST(ProfileExport, SvgSaysWhatIsTooNarrowToDraw) {
  const Written svg = write(synthetic_profile({.leaves = 2000}), ProfileFormat::svg, {.max_bytes = 30'000});
  EXPECT_LE(svg.text.size(), 30'000u);
  EXPECT_GT(svg.report.merged_weight, 0u);
  EXPECT_NE(svg.text.find("Not drawn, because too narrow"), std::string::npos);
}

TEST(ProfileExport, ASvgThatHasNoRoomForAPictureIsRefused) {
  const Profile profile = synthetic_profile({.leaves = 2000});
  std::string svg;
  const auto drawn_in = [&](std::uint64_t max_bytes) {
    svg.clear();
    return write_profile(profile, ProfileFormat::svg, {.max_bytes = max_bytes}, into(svg));
  };
  std::uint64_t least = 1'000;
  while (!drawn_in(least) && least < 1'000'000)
    least += 1'000;
  std::size_t frames = 0;
  for (std::size_t at = 0; (at = svg.find("<g class=\"f\">", at)) != std::string::npos; ++at)
    ++frames;
  EXPECT_GE(frames, 16u);
  const auto refused = drawn_in(least - 1'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_TRUE(svg.empty());
}

TEST(ProfileExport, SpeedscopeHoldsEverySampleOfEveryThread) {
  const Profile profile = synthetic_profile();
  const json j = json::parse(write(profile, ProfileFormat::speedscope).text);
  std::size_t samples = 0;
  double weight = 0;
  for (const json &p : j["profiles"]) {
    EXPECT_EQ(p["type"], "sampled");
    ASSERT_EQ(p["samples"].size(), p["weights"].size());
    samples += p["samples"].size();
    double sum_of = 0;
    for (const json &w : p["weights"])
      sum_of += w.get<double>();
    EXPECT_NEAR(sum_of, p["endValue"].get<double>(), 1e-6);
    weight += sum_of;
    for (const json &stack : p["samples"])
      for (const json &frame : stack)
        ASSERT_LT(frame.get<std::size_t>(), j["shared"]["frames"].size());
  }
  EXPECT_EQ(samples, profile.samples.size());
  EXPECT_NEAR(weight, 5000.0, 1e-6); // 1 ms each
}

TEST(ProfileExport, JsonSurvivesHostileNames) {
  const Profile profile = synthetic_profile({.slices = true, .hostile_names = true});
  EXPECT_TRUE(json::accept(write(profile, ProfileFormat::speedscope).text));
  EXPECT_TRUE(json::accept(write(profile, ProfileFormat::chrome).text));
  EXPECT_TRUE(json::accept(gunzip(write(profile, ProfileFormat::firefox).text)));
}

TEST(ProfileExport, FirefoxStacksPointBackwards) {
  const Profile profile = synthetic_profile();
  const json j = json::parse(gunzip(write(profile, ProfileFormat::firefox).text));
  EXPECT_EQ(j["meta"]["preprocessedProfileVersion"], 66);
  const json &shared = j["shared"];
  const std::size_t stacks = shared["stackTable"]["length"];
  for (std::size_t i = 0; i < stacks; ++i)
    ASSERT_LE(shared["stackTable"]["prefixOffset"][i].get<std::size_t>(), i);
  std::uint64_t samples = 0;
  for (const json &t : j["threads"]) {
    const std::size_t length = t["samples"]["length"];
    samples += length;
    for (const char *name : {"stack", "timeDeltas", "weight", "threadCPUDelta"})
      EXPECT_EQ(t["samples"][name].size(), length) << name;
  }
  EXPECT_EQ(samples, profile.samples.size() + 4); // one before the first of each thread
  EXPECT_EQ(j["libs"][0]["breakpadId"].get<std::string>().size(), 33u);
  for (const char *table : {"frameTable", "funcTable", "resourceTable"})
    for (const auto &[name, values] : shared[table].items())
      if (values.is_array()) {
        EXPECT_EQ(values.size(), shared[table]["length"].get<std::size_t>()) << table << "." << name;
      }
}

TEST(ProfileExport, FirefoxKeepsOwnersOfOneProcessIdApart) {
  const json j = json::parse(gunzip(write(synthetic_profile(), ProfileFormat::firefox).text));
  std::map<std::string, int> pids;
  for (const json &t : j["threads"])
    ++pids[t["pid"]];
  EXPECT_EQ(pids, (std::map<std::string, int>{{"4242", 2}, {"977", 1}, {"4242.1", 1}}));
}

// Of threads that began before the trace the lowest id is the main thread's; it keeps its own name beside its
// process's.
TEST(ProfileExport, FirefoxHasOneMainThreadWhateverIsSampledFirst) {
  Profile profile = synthetic_profile();
  std::swap(profile.threads[0].tid, profile.threads[1].tid);
  const json j = json::parse(gunzip(write(profile, ProfileFormat::firefox).text));
  std::map<std::string, std::string> mains;
  for (const json &t : j["threads"])
    if (t["isMainThread"]) mains[t["pid"]] = t["tid"].get<std::string>() + " " + t["name"].get<std::string>();
  EXPECT_EQ(mains,
            (std::map<std::string, std::string>{
                {"4242", "100 game.exe"}, {"977", "200 service.exe / Worker"}, {"4242.1", "300 game.exe"}}));
}

TEST(ProfileExport, ChromeNeedsContextSwitches) {
  const auto refused = write_profile(synthetic_profile(), ProfileFormat::chrome, {}, [](Bytes) {
    ADD_FAILURE() << "nothing may be written";
    return Result<void>();
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  const json j = json::parse(write(synthetic_profile({.slices = true}), ProfileFormat::chrome).text);
  double running = 0;
  for (const json &e : j["traceEvents"])
    if (e["ph"] == "X" && e["cat"] == "running") running += e["dur"].get<double>();
  EXPECT_NEAR(running, 1000 * 2500.0, 1e-3);
}

TEST(ProfileExport, PageStaysBelowItsLimitAndSaysWhatItMerged) {
  const Profile profile = synthetic_profile({.samples = 60'000, .leaves = 20'000});
  const Written whole = write(profile, ProfileFormat::html);
  EXPECT_EQ(whole.report.merged_weight, 0u);
  ASSERT_GT(whole.text.size(), 400'000u);
  const Written small = write(profile, ProfileFormat::html, {.max_bytes = 300'000});
  EXPECT_LE(small.text.size(), 300'000u);
  EXPECT_GT(small.report.merged_weight, 0u);
  EXPECT_NE(small.text.find("[other]"), std::string::npos);
  ASSERT_FALSE(small.report.notes.empty());
  EXPECT_NE(small.text.find("summed up"), std::string::npos);
}

TEST(ProfileExport, EveryFormatKeepsItsLimitAndItsSum) {
  const Profile profile = synthetic_profile({.samples = 40'000, .leaves = 10'000});
  const Written small = write(profile, ProfileFormat::speedscope, {.max_bytes = 100'000});
  EXPECT_LE(small.text.size(), 100'000u);
  double weight = 0;
  const json parsed = json::parse(small.text);
  for (const json &p : parsed["profiles"])
    for (const json &w : p["weights"])
      weight += w.get<double>();
  EXPECT_NEAR(weight, 40'000, 1e-3);
  EXPECT_LE(write(profile, ProfileFormat::firefox, {.max_bytes = 60'000}).text.size(), 60'000u);
  EXPECT_LE(write(profile, ProfileFormat::pprof, {.max_bytes = 60'000}).text.size(), 60'000u);
}

std::vector<ProfileFormat> all_formats() {
  std::vector<ProfileFormat> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(ProfileFormat::count_); ++i)
    out.push_back(static_cast<ProfileFormat>(i));
  return out;
}

TEST(ProfileExport, AFileThatFitsIsLeftAlone) {
  const Profile profile = synthetic_profile({.samples = 40'000, .leaves = 5'000, .slices = true});
  for (const ProfileFormat format : all_formats()) {
    const Written whole = write(profile, format);
    const Written limited = write(profile, format, {.max_bytes = whole.text.size()});
    EXPECT_TRUE(limited.text == whole.text) << profile_format_name(format);
    EXPECT_EQ(limited.report.merged_weight, whole.report.merged_weight) << profile_format_name(format);
    EXPECT_EQ(limited.report.notes, whole.report.notes) << profile_format_name(format);
  }
}

TEST(ProfileExport, AFileThatDoesNotFitUsesMostOfWhatItMay) {
  const Profile profile = synthetic_profile({.samples = 40'000, .leaves = 5'000, .slices = true});
  for (const ProfileFormat format : all_formats()) {
    const std::size_t whole = write(profile, format).text.size();
    for (const std::size_t percent : {90u, 99u, 70u, 50u, 30u}) {
      if (testing::kSanitized && percent != 90) continue;
      const std::size_t limit = whole * percent / 100;
      const Written small = write(profile, format, {.max_bytes = limit});
      EXPECT_LE(small.text.size(), limit) << profile_format_name(format) << " " << percent << " %";
      EXPECT_GE(small.text.size(), limit * 3 / 4) << profile_format_name(format) << " " << percent << " %";
      EXPECT_GT(small.report.merged_weight, 0u) << profile_format_name(format) << " " << percent << " %";
      EXPECT_LE(small.report.notes.size(), 3u) << "those of one attempt";
      EXPECT_TRUE(small.text == write(profile, format, {.max_bytes = limit}).text);
    }
  }
}

// All weigh the same, so that none is the least.
TEST(ProfileExport, OfEqualStacksAsManyStayAsFit) {
  Profile profile = synthetic_profile({.samples = 10'000, .leaves = 10'000});
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    profile.samples[i].node = static_cast<std::uint32_t>(profile.nodes.size() - 1 - i);
  const std::size_t whole = write(profile, ProfileFormat::folded).text.size();
  const Written small = write(profile, ProfileFormat::folded, {.max_bytes = whole * 9 / 10});
  EXPECT_GT(small.report.merged_weight, 0u);
  EXPECT_LT(small.report.merged_weight, 3'000u);
}

TEST(ProfileExport, ShortSlicesGoBeforeSamples) {
  Profile profile = synthetic_profile({.slices = true});
  const std::vector<ProfileSlice> once = profile.slices;
  for (std::int64_t i = 1; i < 20; ++i)
    for (ProfileSlice slice : once) {
      slice.start += i * 1'234'567, slice.end += i * 1'235'567;
      profile.slices.push_back(slice);
    }
  std::ranges::stable_sort(profile.slices, {}, &ProfileSlice::thread);
  const std::size_t whole = write(profile, ProfileFormat::firefox).text.size();
  const Written small = write(profile, ProfileFormat::firefox, {.max_bytes = whole * 9 / 10});
  ASSERT_EQ(small.report.notes.size(), 1u);
  EXPECT_NE(small.report.notes[0].find("slices of at most"), std::string::npos) << small.report.notes[0];
  const json j = json::parse(gunzip(small.text));
  std::size_t samples = 0, markers = 0;
  for (const json &t : j["threads"]) {
    samples += t["samples"]["length"].get<std::size_t>() - 1; // one stands before the first
    markers += t["markers"]["length"].get<std::size_t>();
  }
  EXPECT_EQ(samples, profile.samples.size());
  EXPECT_GT(markers, profile.slices.size() / 2);
  EXPECT_LT(markers, profile.slices.size());
}

// Larger than what is kept of a file on trial.
TEST(ProfileExport, ALargeFileIsWrittenAsItWasMeasured) {
  Profile profile = synthetic_profile({.samples = 10'000, .leaves = 3'000});
  for (ProfileFrame &frame : profile.frames)
    if (frame.function.starts_with("leaf")) frame.function.append(16'000, 'x');
  const Written whole = write(profile, ProfileFormat::folded);
  ASSERT_GT(whole.text.size(), 40'000'000u);
  EXPECT_TRUE(write(profile, ProfileFormat::folded, {.max_bytes = whole.text.size()}).text == whole.text);
  const Written small = write(profile, ProfileFormat::folded, {.max_bytes = 40'000'000});
  EXPECT_LE(small.text.size(), 40'000'000u);
  EXPECT_GE(small.text.size(), 33'000'000u);
  EXPECT_EQ(sum(folded_lines(small.text)), 10'000u);
  ASSERT_EQ(small.report.notes.size(), 1u);
}

// Who takes the bytes can end it, as when a command is stopped.
TEST(ProfileExport, TheSearchForASizeEndsWhenItIsNotWanted) {
  const Profile profile = synthetic_profile({.samples = 40'000, .leaves = 5'000, .slices = true});
  for (const ProfileFormat format : all_formats()) {
    const std::size_t whole = write(profile, format).text.size();
    std::size_t calls = 0;
    const auto stopped =
        write_profile(profile, format, {.max_bytes = whole * 2 / 3}, [&](Bytes) -> Result<void> {
          if (++calls < 2) return {};
          Error error;
          error.kind = ErrorKind::cancelled;
          error.what = "stopped on request";
          return error;
        });
    ASSERT_FALSE(stopped) << profile_format_name(format);
    EXPECT_EQ(stopped.error().what, "stopped on request") << profile_format_name(format);
    EXPECT_EQ(calls, 2u) << profile_format_name(format);
  }
}

// To add up equal stacks costs the times of all of them.
TEST(ProfileExport, TimesStayWhereCoarserOnesGainNothing) {
  Profile profile = synthetic_profile({.samples = 3'000, .leaves = 3'000});
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    profile.samples[i].node = static_cast<std::uint32_t>(profile.nodes.size() - 1 - i);
  const std::size_t whole = write(profile, ProfileFormat::html).text.size();
  const Written small = write(profile, ProfileFormat::html, {.max_bytes = whole * 99 / 100});
  ASSERT_EQ(small.report.notes.size(), 1u);
  EXPECT_NE(small.report.notes[0].find("summed up"), std::string::npos) << small.report.notes[0];
}

TEST(ProfileExport, WhatCannotBeMadeSoSmallIsAnError) {
  const Profile profile = synthetic_profile({.samples = 40'000, .leaves = 10'000, .slices = true});
  for (std::size_t i = 0; i < static_cast<std::size_t>(ProfileFormat::count_); ++i) {
    const auto format = static_cast<ProfileFormat>(i);
    const auto done = write_profile(profile, format, {.max_bytes = 60}, [](Bytes bytes) {
      EXPECT_TRUE(bytes.empty()) << "nothing may be written";
      return Result<void>();
    });
    ASSERT_FALSE(done) << profile_format_name(format);
    EXPECT_EQ(done.error().kind, ErrorKind::usage) << profile_format_name(format);
  }
}

TEST(ProfileExport, FoldedLinesHaveALimitOnlyWhereOneIsAskedFor) {
  const Profile profile = synthetic_profile({.samples = 40'000, .leaves = 10'000});
  const Written whole = write(profile, ProfileFormat::folded);
  ASSERT_GT(whole.text.size(), 200'000u);
  const Written small = write(profile, ProfileFormat::folded, {.max_bytes = 20'000});
  EXPECT_LE(small.text.size(), 20'000u);
  EXPECT_EQ(sum(folded_lines(small.text)), sum(folded_lines(whole.text)));
  EXPECT_NE(small.text.find(";[other] "), std::string::npos);
  ASSERT_EQ(small.report.notes.size(), 1u);
  EXPECT_NE(small.report.notes[0].find("summed up"), std::string::npos);
}

TEST(ProfileExport, PageIsClosedAgainstMarkupInNames) {
  const std::string page = write(synthetic_profile({.hostile_names = true}), ProfileFormat::html).text;
  const std::size_t from = page.find("id=\"data\">") + 10, to = page.find("</script>", from);
  const std::string data = page.substr(from, to - from);
  EXPECT_EQ(data.find('<'), std::string::npos);
  EXPECT_TRUE(json::accept(data));
}

TEST(ProfileExport, DiffHasBothCountsAndWhatVanished) {
  const std::vector<Profile> before{synthetic_profile({.leaves = 40})},
      after{synthetic_profile({.leaves = 10})};
  std::string folded, svg;
  ASSERT_TRUE(write_profile_diff(before, after, ProfileFormat::folded, {}, into(folded)));
  ASSERT_TRUE(write_profile_diff(before, after, ProfileFormat::svg, {}, into(svg)));
  std::uint64_t old_sum = 0, new_sum = 0, vanished = 0;
  std::istringstream lines(folded);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t b = line.rfind(' '), a = line.rfind(' ', b - 1);
    const std::uint64_t was = std::stoull(line.substr(a + 1, b - a - 1)),
                        is = std::stoull(line.substr(b + 1));
    old_sum += was;
    new_sum += is;
    vanished += is == 0;
  }
  EXPECT_EQ(old_sum, 5000u);
  EXPECT_EQ(new_sum, 5000u);
  EXPECT_GT(vanished, 0u);
  EXPECT_NE(svg.find("id=\"vanished\""), std::string::npos);
  EXPECT_NE(svg.find("leaf39"), std::string::npos);
  EXPECT_FALSE(write_profile_diff(before, after, ProfileFormat::html, {}, into(svg)));
}

TEST(ProfileExport, APictureOfADiffUsesMostOfWhatItMay) {
  const std::vector<Profile> before{synthetic_profile({.samples = 20'000, .leaves = 3'000})},
      after{synthetic_profile({.samples = 20'000, .leaves = 1'000})};
  std::string svg;
  const auto size_with = [&](std::uint64_t max_bytes) {
    svg.clear();
    const auto report =
        write_profile_diff(before, after, ProfileFormat::svg, {.max_bytes = max_bytes}, into(svg));
    EXPECT_TRUE(report) << (report ? "" : report.error().message());
    return svg.size();
  };
  const std::size_t whole = size_with(0);
  EXPECT_EQ(size_with(whole), whole);
  for (const std::size_t limit : {whole * 9 / 10, whole / 2}) {
    const std::size_t size = size_with(limit);
    EXPECT_LE(size, limit);
    EXPECT_GE(size, limit * 3 / 4);
  }
}

TEST(ProfileExport, ANameEndsInItsFormat) {
  EXPECT_EQ(profile_format_of_path("a/b.SVG"), ProfileFormat::svg);
  EXPECT_EQ(profile_format_of_path("x.pb.gz"), ProfileFormat::pprof);
  EXPECT_EQ(profile_format_of_path("x.speedscope.json"), ProfileFormat::speedscope);
  EXPECT_EQ(profile_format_of_path("x.json"), std::nullopt);
  EXPECT_EQ(profile_format_of_path(".svg"), std::nullopt);
  EXPECT_EQ(parse_profile_format("firefox"), ProfileFormat::firefox);
}

TEST(ProfileExport, AFailingSinkEndsTheExport) {
  const auto failed = write_profile(synthetic_profile(), ProfileFormat::html, {}, [](Bytes) -> Result<void> {
    Error error;
    error.kind = ErrorKind::io;
    error.what = "disk full";
    return error;
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "disk full");
}

TEST(ProfileExport, AnEmptyProfileIsStillAFile) {
  Profile profile;
  profile.duration = 1000;
  EXPECT_TRUE(write(profile, ProfileFormat::folded).text.empty());
  for (const auto format : {ProfileFormat::svg, ProfileFormat::html, ProfileFormat::speedscope,
                            ProfileFormat::firefox, ProfileFormat::pprof})
    EXPECT_FALSE(write(profile, format).text.empty()) << profile_format_name(format);
}

} // namespace
} // namespace etwrelog
