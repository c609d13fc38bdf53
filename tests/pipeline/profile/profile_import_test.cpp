// Exported profiles, read back: nothing that the format holds is lost, and no file does harm.
#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_report.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/synthetic_profile.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;
using test_support::synthetic_profile;

constexpr ProfileFormat kFormats[] = {ProfileFormat::firefox, ProfileFormat::speedscope,
                                      ProfileFormat::pprof};

Buffer exported(const Profile &profile, ProfileFormat format, const std::string &title = {}) {
  Buffer out;
  ProfileExportOptions options;
  options.title = title;
  const auto report = write_profile(profile, format, options, [&](Bytes bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return Result<void>();
  });
  EXPECT_TRUE(report) << (report ? "" : report.error().message());
  return out;
}

// Stacks by name and what they weigh. Not every format holds what kind of code a named frame is, which the
// marks at the ends of names say.
std::map<std::string, std::uint64_t> stacks(const Profile &profile) {
  const Buffer bytes = exported(profile, ProfileFormat::folded);
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  std::map<std::string, std::uint64_t> out;
  for (std::string line; std::getline(lines, line);) {
    std::string name = line.substr(0, line.rfind(' '));
    for (const char *mark : {"_[k]", "_[j]", "_[i]"})
      for (std::size_t at; (at = name.find(mark)) != std::string::npos;)
        name.erase(at, 4);
    out[name] += std::stoull(line.substr(line.rfind(' ') + 1));
  }
  return out;
}

Buffer unpacked(const Buffer &file) {
  if (file.size() < 2 || file[0] != 0x1F) return file;
  return testing::gunzipped(file);
}

std::string as_folded(const Profile &profile) {
  const Buffer bytes = exported(profile, ProfileFormat::folded);
  return {bytes.begin(), bytes.end()};
}

TEST(ProfileImport, StacksAndWeightsAreThoseThatWereExported) {
  const Profile profile = synthetic_profile();
  for (const ProfileFormat format : kFormats) {
    SCOPED_TRACE(profile_format_name(format));
    const Result<ReadProfile> read = read_profile(exported(profile, format));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->format, format);
    EXPECT_EQ(read->title, "Processor time: synthetic.etl");
    EXPECT_EQ(read->profile.interval_ns, profile.interval_ns);
    EXPECT_EQ(stacks(read->profile), stacks(profile));
    ASSERT_EQ(read->profile.modules.size(), profile.modules.size());
    for (std::size_t i = 0; i < profile.modules.size(); ++i) {
      EXPECT_EQ(read->profile.modules[i].pdb_guid, profile.modules[i].pdb_guid);
      EXPECT_EQ(read->profile.modules[i].pdb_age, profile.modules[i].pdb_age);
      EXPECT_EQ(read->profile.modules[i].pdb_name, profile.modules[i].pdb_name);
      EXPECT_EQ(read->profile.modules[i].name, profile.modules[i].name);
    }
  }
}

TEST(ProfileImport, PprofFilesKeepTimesAndAddressesWhenWrittenAgain) {
  Profile profile = synthetic_profile();
  ProfileFrame &bare = profile.frames.emplace_back(); // a caller in code that no image has
  bare.address = 0x7FF0'1234'5678;
  bare.caller = true;
  profile.nodes.push_back({0, static_cast<std::uint32_t>(profile.frames.size() - 1)});
  profile.samples.back().node = static_cast<std::uint32_t>(profile.nodes.size() - 1);
  const Result<ReadProfile> once = read_profile(exported(profile, ProfileFormat::pprof));
  ASSERT_TRUE(once) << once.error().message();
  const Result<ReadProfile> twice = read_profile(exported(once->profile, ProfileFormat::pprof));
  ASSERT_TRUE(twice) << twice.error().message();
  for (const Profile *read : {&once->profile, &twice->profile}) {
    EXPECT_EQ(read->start_time, profile.start_time);
    EXPECT_EQ(read->duration, profile.duration);
    EXPECT_TRUE(std::ranges::any_of(read->frames, [&](const ProfileFrame &f) {
      return f.address == bare.address && f.caller && f.module == kNoIndex;
    }));
    EXPECT_EQ(stacks(*read), stacks(profile));
  }
}

// Google's pprof writes up to two numbers one by one, and more of them packed; others may mix both.
TEST(ProfileImport, NumbersOfPprofFilesMayStandPackedOrOneByOne) {
  const auto field = [](unsigned number, std::string bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  const auto number = [](unsigned of, char value) { return std::string{static_cast<char>(of << 3), value}; };
  std::string rest;
  for (const char *text : {"", "inner", "outer", "samples", "count", "cpu", "nanoseconds"})
    rest += field(6, text);
  for (const char id : {1, 2}) {
    rest += field(5, number(1, id) + number(2, id));
    rest += field(4, number(1, id) + field(4, number(1, id)));
  }
  rest += field(1, number(1, 3) + number(2, 4)) + field(1, number(1, 5) + number(2, 6));
  const std::string packed = field(1, "\x01\x02") + field(2, "\x07\x46"),
                    apart = number(1, 1) + number(1, 2) + number(2, 7) + number(2, 70),
                    mixed = number(1, 1) + field(1, "\x02") + field(2, "") + number(2, 7) + field(2, "\x46");
  for (const std::string &sample : {packed, apart, mixed}) {
    const std::string file = field(2, sample) + rest;
    const auto read = read_profile(Bytes(reinterpret_cast<const std::uint8_t *>(file.data()), file.size()));
    ASSERT_TRUE(read) << read.error().message();
    const Profile &profile = read->profile;
    ASSERT_EQ(profile.samples.size(), 1u);
    EXPECT_EQ(profile.samples[0].weight, 7u);
    std::string stack;
    for (auto node = profile.samples[0].node; node != 0; node = profile.nodes[node].parent)
      stack += profile.frames[profile.nodes[node].frame].function + " ";
    EXPECT_EQ(stack, "inner outer ");
  }
}

TEST(ProfileImport, FirefoxFilesAreTheSameWhenWrittenAgain) {
  const Profile profile = synthetic_profile({.slices = true});
  const Buffer first = exported(profile, ProfileFormat::firefox);
  const Result<ReadProfile> read = read_profile(first);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_GT(read->profile.slices.size(), 0u);
  EXPECT_EQ(unpacked(exported(read->profile, ProfileFormat::firefox, read->title)), unpacked(first));
}

TEST(ProfileImport, SamplesWithoutAnIntervalHaveNoTime) {
  Profile profile = synthetic_profile();
  profile.interval_ns = 0;
  profile.intervals.clear();
  for (const ProfileFormat format : kFormats) {
    SCOPED_TRACE(profile_format_name(format));
    const Buffer file = exported(profile, format);
    if (format == ProfileFormat::pprof) {
      const Buffer plain = unpacked(file);
      EXPECT_EQ(std::string(plain.begin(), plain.end()).find("nanoseconds"), std::string::npos);
    }
    const Result<ReadProfile> read = read_profile(file);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->profile.kind, ProfileKind::cpu);
    EXPECT_EQ(read->profile.interval_ns, 0u);
    EXPECT_EQ(total_weight(read->profile), total_weight(profile));
  }
}

TEST(ProfileImport, WhatIsMeasuredIsTheSame) {
  Profile profile = synthetic_profile();
  for (const ProfileKind kind : {ProfileKind::cpu, ProfileKind::wait, ProfileKind::ready})
    for (const ProfileFormat format : kFormats) {
      profile.kind = kind;
      const Result<ReadProfile> read = read_profile(exported(profile, format));
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(read->profile.kind, kind) << profile_format_name(format);
    }
}

TEST(ProfileImport, WaitsOfOlderSpeedscopeFilesAreMicroseconds) {
  Profile profile = synthetic_profile();
  profile.kind = ProfileKind::wait;
  const Buffer file = exported(profile, ProfileFormat::speedscope);
  std::string text(file.begin(), file.end());
  const std::string unit = "\"nanoseconds\"";
  for (std::size_t at = 0; (at = text.find(unit, at)) != std::string::npos;)
    text.replace(at, unit.size(), "\"microseconds\"");
  const Result<ReadProfile> read = read_profile(Buffer(text.begin(), text.end()));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->profile.kind, ProfileKind::wait);
  EXPECT_EQ(total_weight(read->profile), 1000 * total_weight(profile));
}

// Of threads that are called anything.
TEST(ProfileImport, ThreadsStayInTheirProcesses) {
  Profile profile = synthetic_profile();
  const std::uint32_t thread = profile.samples.front().thread;
  profile.threads[thread].name = "Disk (9) / IO";
  for (const ProfileFormat format : kFormats) {
    const Result<ReadProfile> read = read_profile(exported(profile, format));
    ASSERT_TRUE(read) << read.error().message();
    const auto found =
        std::ranges::find(read->profile.threads, profile.threads[thread].name, &ProfileThread::name);
    ASSERT_NE(found, read->profile.threads.end()) << profile_format_name(format);
    EXPECT_EQ(found->tid, profile.threads[thread].tid);
    EXPECT_EQ(read->profile.processes[found->process].name,
              profile.processes[profile.threads[thread].process].name);
  }
}

// Two frames without a name beside each other, of a module that the profile has, each in a sample of its own.
void add_two_unnamed(Profile &profile, const std::function<void(ProfileFrame &)> &other) {
  const auto unnamed = std::ranges::find_if(
      profile.frames, [](const ProfileFrame &f) { return f.function.empty() && f.module != kNoIndex; });
  ASSERT_NE(unnamed, profile.frames.end());
  ProfileFrame frame = *unnamed;
  frame.in_kernel = frame.caller = false;
  frame.kind = FrameKind::native;
  frame.rva = 0x4321;
  frame.address = profile.modules[frame.module].base + frame.rva;
  for (int i = 0; i < 2; ++i) {
    profile.frames.push_back(frame);
    profile.nodes.push_back({0, static_cast<std::uint32_t>(profile.frames.size() - 1)});
    ProfileSample sample = profile.samples.back();
    sample.node = static_cast<std::uint32_t>(profile.nodes.size() - 1);
    profile.samples.push_back(sample);
    other(frame);
  }
}

TEST(ProfileImport, KernelFramesStayKernelFrames) {
  Profile profile = synthetic_profile();
  add_two_unnamed(profile, [&profile](ProfileFrame &kernel) { // of a driver of the same name
    ProfileModule driver = profile.modules[kernel.module];
    driver.base = 0xFFFF'F801'0000'0000;
    kernel.module = static_cast<std::uint32_t>(profile.modules.size());
    kernel.address = driver.base + kernel.rva;
    kernel.in_kernel = true;
    profile.modules.push_back(driver);
  });
  const auto marked = [](const Profile &of) {
    const std::string text = as_folded(of);
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = text.find("_[k] ", at)) != std::string::npos; ++at)
      ++lines;
    return lines;
  };
  ASSERT_GT(marked(profile), 0u);
  for (const ProfileFormat format : {ProfileFormat::speedscope, ProfileFormat::pprof}) {
    const Result<ReadProfile> read = read_profile(exported(profile, format));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(marked(read->profile), marked(profile)) << profile_format_name(format);
  }
}

// Kernel, compiled and inlined frames keep their marks, and what only looks like a function or an address
// stays what it is.
TEST(ProfileImport, SpeedscopeFilesKeepTheKindsOfFrames) {
  Profile profile = synthetic_profile();
  const std::pair<FrameKind, const char *> named[] = {{FrameKind::kernel, "ntoskrnl.exe!KiPageFault"},
                                                      {FrameKind::jit, "0x12"},
                                                      {FrameKind::jit, "Program.Main(class String[])"},
                                                      {FrameKind::inlined, "game.exe!Vec::dot"},
                                                      {FrameKind::annotation, "readied by a!b.exe_[w]"}};
  std::uint32_t node = 0;
  for (const auto &[kind, name] : named) {
    ProfileFrame frame;
    frame.kind = kind;
    frame.function = name;
    frame.why = Unresolved::none;
    frame.in_kernel = kind == FrameKind::kernel;
    profile.frames.push_back(frame);
    profile.nodes.push_back({node, static_cast<std::uint32_t>(profile.frames.size() - 1)});
    node = static_cast<std::uint32_t>(profile.nodes.size() - 1);
  }
  ProfileFrame unknown; // code of the kernel without an image
  unknown.address = 0xFFFF'F800'0000'1000;
  unknown.in_kernel = true;
  profile.frames.push_back(unknown);
  profile.nodes.push_back({node, static_cast<std::uint32_t>(profile.frames.size() - 1)});
  profile.samples.front().node = static_cast<std::uint32_t>(profile.nodes.size() - 1);
  const Result<ReadProfile> read = read_profile(exported(profile, ProfileFormat::speedscope));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(as_folded(read->profile), as_folded(profile));
  EXPECT_NE(as_folded(profile).find("0xfffff80000001000_[k] "), std::string::npos);
}

// In a module, as .NET's precompiled code, and in none.
TEST(ProfileImport, CompiledCodeOfPprofFilesStaysCompiledCode) {
  Profile profile = synthetic_profile();
  for (const char *name : {"Program.Main()", "draw (https://example.org/app.js:12:9)"}) {
    ProfileFrame frame;
    frame.kind = FrameKind::jit;
    frame.function = name;
    frame.why = Unresolved::none;
    frame.address = 0x7FF9'5EB1'503B;
    if (name[0] == 'P') {
      frame.module = 0;
      frame.address = profile.modules[0].base + (frame.rva = 0x1234);
    }
    profile.frames.push_back(frame);
    profile.nodes.push_back({0, static_cast<std::uint32_t>(profile.frames.size() - 1)});
    ProfileSample sample = profile.samples.back();
    sample.node = static_cast<std::uint32_t>(profile.nodes.size() - 1);
    profile.samples.push_back(sample);
  }
  const Result<ReadProfile> read = read_profile(exported(profile, ProfileFormat::pprof));
  ASSERT_TRUE(read) << read.error().message();
  const std::string text = as_folded(read->profile);
  EXPECT_NE(text.find(";game.exe!Program.Main()_[j] 1\n"), std::string::npos);
  EXPECT_NE(text.find(";draw (https://example.org/app.js:12:9)_[j] 1\n"), std::string::npos);
  EXPECT_EQ(text, as_folded(profile));
}

// What is called there is looked up at the address, a caller's at the one before.
TEST(ProfileImport, AnInnermostFrameAndACallerAtTheSameAddressStayApart) {
  Profile profile = synthetic_profile();
  add_two_unnamed(profile, [](ProfileFrame &caller) { caller.caller = true; });
  for (const ProfileFormat format : kFormats) {
    const Result<ReadProfile> read = read_profile(exported(profile, format));
    ASSERT_TRUE(read) << read.error().message();
    for (const bool wanted : {false, true})
      EXPECT_TRUE(std::ranges::any_of(read->profile.frames, [&](const ProfileFrame &f) {
        return f.rva == 0x4321 && f.caller == wanted;
      })) << profile_format_name(format);
  }
}

// Names are looked for by the build, so no two builds may share a frame that has none yet.
TEST(ProfileImport, UnnamedFramesOfTwoBuildsOfAModuleStayApart) {
  Profile profile = synthetic_profile();
  const auto unnamed = std::ranges::find_if(
      profile.frames, [](const ProfileFrame &f) { return f.function.empty() && f.module != kNoIndex; });
  ASSERT_NE(unnamed, profile.frames.end());
  ProfileFrame other = *unnamed;
  ProfileModule build = profile.modules[other.module];
  build.pdb_age += 1;
  other.module = static_cast<std::uint32_t>(profile.modules.size());
  profile.modules.push_back(build);
  profile.nodes.push_back({0, static_cast<std::uint32_t>(profile.frames.size())});
  profile.frames.push_back(other);
  ProfileSample sample = profile.samples.back();
  sample.node = static_cast<std::uint32_t>(profile.nodes.size() - 1);
  sample.weight = 1234;
  profile.samples.push_back(sample);
  for (const ProfileFormat format : kFormats) {
    const Result<ReadProfile> read = read_profile(exported(profile, format));
    ASSERT_TRUE(read) << read.error().message();
    std::uint64_t weight = 0;
    for (const ProfileSample &s : read->profile.samples) {
      if (s.node == 0) continue;
      const ProfileFrame &frame = read->profile.frames[read->profile.nodes[s.node].frame];
      if (frame.module != kNoIndex && read->profile.modules[frame.module].pdb_age == build.pdb_age)
        weight += s.weight;
    }
    EXPECT_EQ(weight, 1234u) << profile_format_name(format);
  }
}

TEST(ProfileImport, WhatHasLostItsTimesSaysSoInThePage) {
  for (const ProfileFormat format : kFormats) {
    const Result<ReadProfile> read = read_profile(exported(synthetic_profile(), format));
    ASSERT_TRUE(read) << read.error().message();
    const Buffer bytes = exported(read->profile, ProfileFormat::html);
    const bool told = std::string(bytes.begin(), bytes.end()).find("have no times") != std::string::npos;
    EXPECT_EQ(told, format != ProfileFormat::firefox) << profile_format_name(format);
  }
}

TEST(ProfileImport, HostileNamesSurvive) {
  const Profile profile = synthetic_profile({.samples = 300, .hostile_names = true});
  for (const ProfileFormat format : kFormats)
    EXPECT_TRUE(read_profile(exported(profile, format))) << profile_format_name(format);
}

TEST(ProfileImport, DamagedFilesAreErrorsOrProfilesThatHoldTogether) {
  const Profile profile = synthetic_profile({.samples = 40, .leaves = 3});
  for (const ProfileFormat format : kFormats) {
    SCOPED_TRACE(profile_format_name(format));
    const Buffer file = unpacked(exported(profile, format));
    const auto expect_whole = [&](const Buffer &bytes) {
      const Result<ReadProfile> read = read_profile(bytes);
      if (read) {
        EXPECT_FALSE(exported(read->profile, ProfileFormat::pprof).empty()); // walks over all of it
      }
    };
    for (std::size_t at = 0; at < file.size(); at += 7)
      for (const std::uint8_t byte : {std::uint8_t{0xFF}, std::uint8_t{'9'}, std::uint8_t{0}}) {
        Buffer damaged = file;
        damaged[at] = byte;
        expect_whole(damaged);
      }
    for (std::size_t size = 0; size < file.size(); size += 97)
      expect_whole(Buffer(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  Buffer packed = exported(profile, ProfileFormat::pprof);
  packed.resize(packed.size() / 2);
  EXPECT_EQ(read_profile(packed).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(read_profile(exported(profile, ProfileFormat::firefox), 1000).error().kind, ErrorKind::limit);
  const std::string nested(200'000, '[');
  EXPECT_FALSE(read_profile(Bytes(reinterpret_cast<const std::uint8_t *>(nested.data()), nested.size())));
}

// A place may be named any number of times, and costs as often what it costs.
TEST(ProfileImport, AFewNamesForThousandsOfFramesAreTooMuch) {
  const auto varint = [](std::uint64_t n) {
    std::string out;
    for (; n > 127; n >>= 7)
      out += static_cast<char>(n | 0x80);
    return out + static_cast<char>(n);
  };
  const auto text = [&](unsigned field, const std::string &s) {
    return varint(field << 3 | 2) + varint(s.size()) + s;
  };
  const auto number = [&](unsigned field, std::uint64_t n) { return varint(field << 3) + varint(n); };
  const auto file = [&](const std::string &name, const std::string &rest) {
    return text(1, number(1, 1) + number(2, 2)) + text(6, "") + text(6, "samples") + text(6, "count") +
           text(6, name) + text(5, number(1, 1) + number(2, 3)) + rest;
  };
  const std::string line = text(4, number(1, 1));
  std::string places, samples, long_place = number(1, 1);
  for (unsigned i = 0; i < 2000; ++i) {
    places += text(4, number(1, i + 2) + line);
    samples += text(2, text(1, varint(1) + varint(i + 2)) + text(2, varint(1)));
  }
  for (unsigned i = 0; i < 5000; ++i)
    long_place += line;
  const std::string one = text(2, text(1, varint(2)) + text(2, varint(1)));
  std::string mappings, owners;
  for (unsigned i = 0; i < 2000; ++i) {
    mappings += text(3, number(1, i + 1) + number(5, 3));
    owners += text(2, text(1, varint(2)) + text(2, varint(1)) + text(3, number(1, 4) + number(2, 3)) +
                          text(3, number(1, 5) + number(3, i)));
  }
  const std::string name(200'000, 'X'), words = text(6, "process") + text(6, "pid");
  for (const std::string &bytes : {file(name, places + one),                            // of frames
                                   file("m!f", text(4, long_place) + places + samples), // a stack
                                   file(name, mappings + places + one),                 // of modules
                                   file(name, words + places + owners)}) {              // of processes
    const Result<ReadProfile> read =
        read_profile(Bytes(reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size()));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind, ErrorKind::limit) << read.error().message();
  }
}

// Every number of a file in turn, by one that its place has no room for. What is not a number of the format's
// is an error; what is left can be written in every format. (What undefined conversions do, sanitizers see.)
TEST(ProfileImport, NumbersOutOfRangeAreErrorsOrWhatTheFormatAllows) {
  Profile profile = synthetic_profile({.samples = 12, .leaves = 3, .slices = true});
  profile.slices.resize(6);
  for (const ProfileFormat format : {ProfileFormat::firefox, ProfileFormat::speedscope}) {
    SCOPED_TRACE(profile_format_name(format));
    const Buffer bytes = unpacked(exported(profile, format));
    const std::string file(bytes.begin(), bytes.end());
    std::size_t numbers = 0, refused = 0;
    bool quoted = false;
    for (std::size_t at = 0, end = 0; at < file.size(); at = std::max(at + 1, end)) {
      if (file[at] == '"' && file[at - 1] != '\\') quoted = !quoted;
      if (quoted || std::isdigit(static_cast<unsigned char>(file[at])) == 0) continue;
      end = file.find_first_not_of("0123456789.e+-", at);
      ++numbers;
      for (const char *other :
           {"1e300", "-1e300", "-1", "4294967296", "18446744073709551615", "9e18", "0.5"}) {
        const std::string damaged = file.substr(0, at) + other + file.substr(end);
        const Result<ReadProfile> read =
            read_profile({reinterpret_cast<const std::uint8_t *>(damaged.data()), damaged.size()});
        if (!read) {
          ++refused;
          EXPECT_TRUE(read.error().kind == ErrorKind::corrupt || read.error().kind == ErrorKind::unsupported)
              << read.error().message();
          continue;
        }
        for (const ProfileFormat written : kFormats)
          EXPECT_FALSE(exported(read->profile, written).empty());
      }
    }
    EXPECT_GT(numbers, 50u);
    EXPECT_GT(refused, numbers); // places of a table, most of them
  }
  const std::string_view count = R"({"meta":{"preprocessedProfileVersion":1e300}})";
  EXPECT_NE(read_profile({reinterpret_cast<const std::uint8_t *>(count.data()), count.size()})
                .error()
                .message()
                .find("1e+300 is not a whole number from 0 to 4294967295"),
            std::string::npos);
}

} // namespace
} // namespace etwrelog
