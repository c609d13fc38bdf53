// Exports, read the way the viewers of other people read them.
#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_report.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/synthetic_profile.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using test_support::synthetic_profile;

std::string viewed(const Profile &profile, ProfileFormat format, const ProfileExportOptions &options = {}) {
  std::vector<std::uint8_t> out;
  const auto report = write_profile(profile, format, options, [&](Bytes bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return Result<void>();
  });
  EXPECT_TRUE(report) << (report ? "" : report.error().message());
  if (out.size() > 2 && out[0] == 0x1F) out = testing::gunzipped(out);
  return {out.begin(), out.end()};
}

using Track = std::pair<std::int64_t, std::int64_t>;
struct TraceSlice {
  double ts, dur;
  std::string name;
};
std::map<Track, std::vector<TraceSlice>> tracks_of(const json &trace) {
  std::map<Track, std::vector<TraceSlice>> tracks;
  for (const json &e : trace["traceEvents"])
    if (e["ph"] == "X") tracks[{e["pid"], e["tid"]}].push_back({e["ts"], e["dur"], e["name"]});
  for (auto &[track, slices] : tracks)
    std::ranges::stable_sort(slices, {}, &TraceSlice::ts);
  return tracks;
}

// Perfetto: int64(x * 1000.0) of each number. JavaScript: sums of doubles, from the first beginning or from
// 0.
void expect_no_overlap(const std::vector<TraceSlice> &slices) {
  const auto ns = [](double x) { return static_cast<std::int64_t>(x * 1000.0); };
  for (std::size_t i = 1; i < slices.size(); ++i) {
    const TraceSlice &a = slices[i - 1], &b = slices[i];
    ASSERT_LE(ns(a.ts) + ns(a.dur), ns(b.ts)) << i;
    ASSERT_LE(a.ts + a.dur, b.ts) << i;
    ASSERT_LE((a.ts - slices[0].ts) + a.dur, b.ts - slices[0].ts) << i;
  }
}

TEST(ProfileViewers, SlicesOfATrackMeetWithoutOverlapInEveryViewer) {
  std::uint64_t random = 1;
  const auto next = [&random](std::uint64_t below) {
    random = random * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    return static_cast<std::int64_t>((random >> 33) % below);
  };
  for (const std::int64_t begin : {0LL, 1'234'567'891LL, 3'600'000'000'007LL, 1'000'000'000'000'001LL}) {
    Profile profile = synthetic_profile({.samples = 10});
    std::map<std::int64_t, std::int64_t> ends; // by beginning, of the one thread
    std::int64_t time = begin;
    for (int i = 0; i < 20'000; ++i) {
      const std::int64_t length = 1 + next(i % 3 == 0 ? 7 : i % 3 == 1 ? 20'000 : 3'000'000);
      profile.slices.push_back(
          {time, time + length, 0, static_cast<std::uint16_t>(i / 3 % 2), static_cast<SliceState>(i % 3), 0});
      ends[time] = time + length;
      time += length;
    }
    const auto tracks = tracks_of(json::parse(viewed(profile, ProfileFormat::chrome)));
    ASSERT_EQ(tracks.size(), 3u); // the thread and two processors
    std::size_t shorter = 0;
    for (const auto &[track, slices] : tracks) {
      SCOPED_TRACE(track.first);
      expect_no_overlap(slices);
      for (const TraceSlice &slice : slices) {
        const auto start = static_cast<std::int64_t>(slice.ts * 1000.0),
                   length = static_cast<std::int64_t>(slice.dur * 1000.0);
        ASSERT_TRUE(ends.contains(start)) << slice.ts;
        ASSERT_GE(length, ends[start] - start - 1);
        ASSERT_LE(length, ends[start] - start);
        shorter += length != ends[start] - start;
      }
    }
    if (begin < 1'000'000'000'000'000) { // of eleven days a double has no place for parts of a nanosecond
      EXPECT_LT(shorter, begin < 1'000'000'000'000 ? 1u : 30u) << begin;
    }
  }
}

TEST(ProfileViewers, ProcessorsOfSeveralRunsAreProcessesOfTheirOwn) {
  Profile profile = synthetic_profile({.slices = true});
  for (const char *name : {"folder/second.etl", "third.etl"}) {
    Profile other = synthetic_profile({.slices = true});
    other.trace = name;
    append(profile, std::move(other));
  }
  const json trace = json::parse(viewed(profile, ProfileFormat::chrome));
  std::map<std::int64_t, std::string> names;
  for (const json &e : trace["traceEvents"])
    if (e["ph"] == "M" && e["name"] == "process_name" && e["args"]["name"].get<std::string>()[0] == 'P')
      names[e["pid"]] = e["args"]["name"];
  std::set<std::string> all;
  for (const auto &[pid, name] : names)
    all.insert(name);
  EXPECT_EQ(all, (std::set<std::string>{"Processors of synthetic.etl", "Processors of second.etl",
                                        "Processors of third.etl"}));
  for (const auto &[track, slices] : tracks_of(trace)) {
    expect_no_overlap(slices);
    if (names.contains(track.first)) {
      EXPECT_EQ(slices.size(), 500u);
    }
  }
  const json speedscope = json::parse(viewed(profile, ProfileFormat::speedscope));
  EXPECT_EQ(speedscope["name"], "Processor time: synthetic.etl + second.etl + third.etl");
}

// A 32-bit process on 64-bit Windows has two ntdll.dll.
TEST(ProfileViewers, APageTellsModulesOfOneNameApart) {
  Profile profile = synthetic_profile();
  const auto named = [](const ProfileFrame &frame) {
    return frame.module != kNoIndex && !frame.function.empty();
  };
  const auto original = std::ranges::find_if(profile.frames, named);
  ASSERT_NE(original, profile.frames.end());
  const std::string text = frame_text(profile, *original);
  const auto count = [&profile, &text] {
    const std::string page = viewed(profile, ProfileFormat::html), wanted = json(text).dump();
    std::size_t found = 0;
    for (std::size_t at = 0; (at = page.find(wanted, at)) != std::string::npos; at += wanted.size())
      ++found;
    return found;
  };
  const std::size_t before = count();
  ProfileModule other = profile.modules[original->module];
  other.path = "C:\\Windows\\SysWOW64\\" + other.name;
  ProfileFrame in_other = *original;
  in_other.module = static_cast<std::uint32_t>(profile.modules.size());
  profile.modules.push_back(other);
  profile.nodes.push_back({0, static_cast<std::uint32_t>(profile.frames.size())});
  profile.frames.push_back(in_other);
  profile.samples.push_back(profile.samples.back());
  profile.samples.back().node = static_cast<std::uint32_t>(profile.nodes.size() - 1);
  EXPECT_GE(before, 1u);
  EXPECT_EQ(count(), before + 1);
}

TEST(ProfileViewers, FirefoxShowsAllOfTheTimeOrTheStretch) {
  Profile profile = synthetic_profile({.slices = true});
  json meta = json::parse(viewed(profile, ProfileFormat::firefox))["meta"];
  EXPECT_EQ(meta["profilingStartTime"], 0);
  EXPECT_EQ(meta["profilingEndTime"], 4000);
  const auto outside = [](const auto &one) { return one.start < 1'000'000'000 || one.end > 2'500'000'000; };
  std::erase_if(profile.slices, outside);
  std::erase_if(profile.samples,
                [](const auto &s) { return s.time < 1'200'000'000 || s.time > 2'000'000'000; });
  profile.stretch = {1'000'000'000, 2'500'000'000};
  const std::string file = viewed(profile, ProfileFormat::firefox);
  meta = json::parse(file)["meta"];
  EXPECT_EQ(meta["profilingStartTime"], 1000);
  EXPECT_EQ(meta["profilingEndTime"], 2500);
  EXPECT_EQ(meta["product"], "Processor time: synthetic.etl, 1 s to 2.5 s");
  // Named later, it is the same stretch.
  const auto read = read_profile(Bytes(reinterpret_cast<const std::uint8_t *>(file.data()), file.size()));
  ASSERT_TRUE(read);
  ASSERT_TRUE(read->profile.stretch);
  EXPECT_EQ(read->profile.stretch->from, 1'000'000'000);
  EXPECT_EQ(read->profile.length(), 1'500'000'000);
  EXPECT_EQ(read->profile.samples.size(), profile.samples.size());
}

TEST(ProfileViewers, FilesOfAStretchSayWhichInTheirNames) {
  Profile profile = synthetic_profile({.slices = true});
  profile.stretch = {500'000'000, 1'250'000'000};
  for (const ProfileFormat format : {ProfileFormat::svg, ProfileFormat::html, ProfileFormat::speedscope,
                                     ProfileFormat::firefox, ProfileFormat::pprof, ProfileFormat::chrome})
    EXPECT_NE(viewed(profile, format).find("0.5 s to 1.25 s"), std::string::npos)
        << profile_format_name(format);
}

TEST(ProfileViewers, FirefoxHasThreadsWithSwitchesAlone) {
  Profile profile = synthetic_profile({.slices = true});
  std::erase_if(profile.samples, [](const ProfileSample &s) { return s.thread == 1 || s.thread == 3; });
  std::erase_if(profile.slices, [](const ProfileSlice &s) { return s.thread == 3; });
  const json file = json::parse(viewed(profile, ProfileFormat::firefox));
  std::map<std::string, std::size_t> markers;
  for (const json &thread : file["threads"])
    markers[thread["tid"]] = thread["markers"]["length"];
  EXPECT_EQ(markers, (std::map<std::string, std::size_t>{{"100", 750}, {"104", 750}, {"200", 750}}));
}

// Windows gives ids of threads again, also within a process.
TEST(ProfileViewers, ThreadsOfOneIdHaveNamesOfTheirOwn) {
  Profile profile = synthetic_profile({.slices = true});
  profile.threads[1].tid = profile.threads[3].tid = profile.threads[0].tid;
  profile.threads[1].name = "Loader";
  const json trace = json::parse(viewed(profile, ProfileFormat::chrome));
  std::map<Track, std::string> names;
  for (const json &e : trace["traceEvents"])
    if (e["ph"] == "M" && e["name"] == "thread_name") {
      EXPECT_TRUE(names.emplace(Track(e["pid"], e["tid"]), e["args"]["name"]).second) << e;
    }
  for (const auto &[track, slices] : tracks_of(trace))
    EXPECT_TRUE(names.contains(track));
  const auto named = [&names](const std::string &text) {
    return std::ranges::count(names, text, [](const auto &one) { return one.second; });
  };
  EXPECT_EQ(named("Render (100)"), 1);
  EXPECT_EQ(named("Loader (100)"), 1);

  const json file = json::parse(viewed(profile, ProfileFormat::firefox));
  std::map<std::string, std::string> ids;
  for (const json &thread : file["threads"])
    EXPECT_TRUE(ids.emplace(thread["tid"], thread["name"]).second) << thread["tid"];
  EXPECT_EQ(ids, (std::map<std::string, std::string>{{"100", "game.exe / Render"},
                                                     {"100.1", "Loader"},
                                                     {"200", "service.exe / Worker"},
                                                     {"100.2", "game.exe"}}));
}

// The viewer leaves out the first one of a thread.
TEST(ProfileViewers, ProcessorTimeOfFirefoxAddsUp) {
  const Profile profile = synthetic_profile();
  const json file = json::parse(viewed(profile, ProfileFormat::firefox));
  double sum = 0;
  for (const json &thread : file["threads"]) {
    const json &samples = thread["samples"];
    EXPECT_TRUE(samples["stack"][0].is_null());
    EXPECT_EQ(samples["weight"][0], 0);
    EXPECT_EQ(samples["threadCPUDelta"][0], 0);
    for (std::size_t i = 1; i < samples["threadCPUDelta"].size(); ++i)
      sum += samples["threadCPUDelta"][i].get<double>();
  }
  EXPECT_DOUBLE_EQ(sum, 1000.0 * static_cast<double>(profile.samples.size()));
}

std::vector<std::uint64_t> numbers_in(const std::string &svg, const std::string &attribute) {
  const std::size_t from = svg.find(attribute + "=\"") + attribute.size() + 2, to = svg.find('"', from);
  std::vector<std::uint64_t> out;
  std::uint64_t value = 0;
  unsigned shift = 0, bits = 0, group = 0;
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t at = from; at < to && svg[at] != '='; ++at) {
    group = (group << 6 | static_cast<unsigned>(digits.find(svg[at]))) & 0xFFF;
    if ((bits += 6) < 8) continue;
    bits -= 8;
    const unsigned byte = group >> bits & 0xFF;
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    shift += 7;
    if (byte < 0x80) out.push_back(std::exchange(value, 0)), shift = 0;
  }
  return out;
}

struct SvgSearch {
  std::uint64_t found = 0, not_known = 0;
};

// As the script does it.
SvgSearch searched(const std::string &svg, const std::string &wanted) {
  const auto up = numbers_in(svg, "data-up"), name = numbers_in(svg, "data-name"),
             total = numbers_in(svg, "data-total");
  EXPECT_EQ(up.size(), name.size());
  EXPECT_EQ(up.size(), total.size());
  std::vector<std::string> drawn, others;
  const std::string title = "<g class=\"f\"><title>";
  for (std::size_t at = 0; (at = svg.find(title, at)) != std::string::npos;) {
    at += title.size();
    drawn.push_back(svg.substr(at, svg.find('\n', at) - at));
  }
  const std::size_t list = svg.find('>', svg.find("<metadata")) + 1;
  std::istringstream lines(svg.substr(list, svg.find("</metadata>") - list));
  for (std::string line; std::getline(lines, line);)
    others.push_back(line);
  SvgSearch out;
  std::size_t next = 0;
  std::int64_t depth = -1, inside = -1;
  for (std::size_t i = 0; i < up.size(); ++i) {
    depth += 1 - static_cast<std::int64_t>(up[i]);
    if (depth <= inside) inside = -1;
    const std::string text = name[i] == 0 ? drawn.at(next++) : name[i] == 1 ? "" : others.at(name[i] - 2);
    if (inside >= 0) continue;
    if (name[i] == 1) {
      out.not_known += total[i];
    } else if (i != 0 && text.find(wanted) != std::string::npos) {
      out.found += total[i];
      inside = depth;
    }
  }
  EXPECT_EQ(next, drawn.size());
  return out;
}

TEST(ProfileViewers, ASearchInAnSvgCountsWhatIsNotDrawn) {
  const Profile profile = synthetic_profile({.samples = 40'000, .leaves = 20'000});
  std::uint64_t leaves = 0, updates = 0;
  for (const ProfileSample &s : profile.samples) {
    bool update = false;
    for (std::uint32_t at = s.node; at != 0; at = profile.nodes[at].parent) {
      const std::string &name = profile.frames[profile.nodes[at].frame].function;
      leaves += name.starts_with("leaf");
      update |= name == "Game::Update";
    }
    updates += update;
  }
  const std::string whole = viewed(profile, ProfileFormat::svg);
  ASSERT_NE(whole.find("Not drawn"), std::string::npos);
  EXPECT_EQ(searched(whole, "leaf").found, leaves);
  EXPECT_EQ(searched(whole, "Game::Update").found, updates);
  EXPECT_EQ(searched(whole, "game.exe (42").found + searched(whole, "service.exe").found, 40'000u);
  EXPECT_EQ(searched(whole, "leaf").not_known, 0u);
  // In a smaller file no more is said than is known.
  const SvgSearch small =
      searched(viewed(profile, ProfileFormat::svg, {.max_bytes = whole.size() / 2}), "leaf");
  EXPECT_LT(small.found, leaves);
  EXPECT_GE(small.found + small.not_known, leaves);
}

// The fields of a message of protobuf's: number and bytes, or number and nothing for a varint.
std::vector<std::pair<unsigned, std::string>> message_fields(const std::string &bytes) {
  std::vector<std::pair<unsigned, std::string>> out;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes.at(at++));
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.size()) {
    const std::uint64_t tag = varint(), value = varint();
    out.emplace_back(static_cast<unsigned>(tag >> 3), "");
    if (tag % 8 != 2) continue;
    out.back().second = bytes.substr(at, value);
    at += value;
  }
  return out;
}

// pprof takes a name of the system's that is the same for a mangled one, and cuts it; it prints comments.
TEST(ProfileViewers, PprofFilesHaveNoNamesToUnmangleAndOneComment) {
  const std::string file = viewed(synthetic_profile(), ProfileFormat::pprof);
  std::size_t functions = 0, comments = 0;
  for (const auto &[number, bytes] : message_fields(file)) {
    comments += number == 13;
    if (number != 5) continue;
    ++functions;
    for (const auto &[inner, text] : message_fields(bytes))
      EXPECT_NE(inner, 3u);
  }
  EXPECT_GT(functions, 40u);
  EXPECT_EQ(comments, 1u);
}

TEST(ProfileViewers, CommentsOfEarlierPprofFilesStillNameThePdb) {
  std::string file = viewed(synthetic_profile(), ProfileFormat::pprof);
  std::size_t texts = 0;
  for (const auto &[number, bytes] : message_fields(file))
    texts += number == 6;
  ASSERT_LT(texts, 127u);
  const std::string comment = R"(pdb 2 C:\build\other.pdb)";
  file += std::string("\x32") + static_cast<char>(comment.size()) + comment; // a text
  file += std::string("\x68") + static_cast<char>(texts);                    // the comment
  const auto read = read_profile(Bytes(reinterpret_cast<const std::uint8_t *>(file.data()), file.size()));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->profile.modules[1].pdb_name, R"(C:\build\other.pdb)");
  EXPECT_EQ(read->profile.modules[0].pdb_name, "game.pdb");
}

} // namespace
} // namespace etwrelog
