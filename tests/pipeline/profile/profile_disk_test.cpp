// What a disk has done counts where it was asked for: the end of a request says how much and of which file,
// its beginning has the stack. And how long it took what events end.
#include "etwrelog/schema.hpp"
#include "tests/pipeline/profile/profile_runs.hpp"

#include <fmt/format.h>

namespace etwrelog {
namespace {

constexpr std::uint16_t kDiskRead = 0x010A, kDiskWrite = 0x010B, kDiskReadInit = 0x010C;
constexpr std::uint32_t kReader = 80, kReaderProcess = 8;

class ProfileOfDisks : public Join {
protected:
  ProfileOfDisks() { trace.thread_rundown({1'000'003}, 81, 8); }

  void begin(At at, std::uint64_t request, std::uint32_t thread = kReader,
             std::uint16_t hook = kDiskReadInit) {
    trace.emit(at, [&](write::EventBuilder &e) {
      e.system(hook, 3, 8, thread, kReaderProcess, at.time).value(request).value(thread);
    });
  }
  // Written by whoever ran when the disk was done; the thread is told as who asked for it.
  void end(At at, std::uint64_t request, std::uint32_t bytes, std::uint32_t thread = kReader,
           std::uint16_t hook = kDiskRead, std::uint64_t file = 0) {
    trace.emit(at, [&](write::EventBuilder &e) {
      e.perfinfo(hook, 3, 8, at.time).rest(2).value(bytes).rest(2).value(file).value(request).rest(1);
      e.value(thread);
    });
  }
  void stack(At at, std::int64_t of, const Frames &frames, std::uint32_t thread = kReader) {
    trace.stack_walk(at, of, kReaderProcess, thread, frames);
  }
  pipeline::ProfileOptions options(const std::vector<std::string> &names, std::string sum = "TransferSize") {
    pipeline::ProfileOptions options;
    options.kind = ProfileKind::events;
    const Result<NamedKinds> found = NamedKinds::find(names, SchemaCatalog::builtin());
    EXPECT_TRUE(found);
    if (found) options.events = *found;
    options.sum = std::move(sum);
    return options;
  }
  Profile reads() {
    const Profile profile = profile_of(trace, options({"DiskIO/Read"})).profile;
    expect_sums(profile);
    return profile;
  }
  static std::string line(const std::string &frames) { return "game.exe (8)" + frames; }
};

TEST_F(ProfileOfDisks, BytesAreAtTheStackThatAskedForThem) {
  begin({2'000'000}, 0x1234);
  stack({2'000'001}, 2'000'000, {kUser, kUser + 1});
  begin({2'000'100}, 0x5678, 81);
  stack({2'000'101}, 2'000'100, {kUser + 2}, 81);
  trace.end_buffer(0);
  end({2'000'200, 1}, 0x5678, 512, 81);
  end({2'000'300, 1}, 0x1234, 4096);
  begin({2'000'400}, 0x1234, 81); // the number again
  stack({2'000'401}, 2'000'400, {kUser + 3}, 81);
  end({2'000'500, 2}, 0x1234, 100, 81);
  const Profile profile = reads();
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001001;0x7ff600001000"), 4096},
                                    {line(";0x7ff600001002"), 512},
                                    {line(";0x7ff600001003"), 100}}));
  EXPECT_EQ(profile.accounting.total.claimed, 3u);
  EXPECT_EQ(profile.samples.front().time, 100'020'000) << "they count when they end: " << 2'000'200;
}

// The kernel's half names the beginning, the user's what the thread did first in the kernel.
TEST_F(ProfileOfDisks, BothHalvesOfTheStackAreTheirs) {
  trace.system({2'000'000}, 0x0443, 3, kReader, kReaderProcess); // FileIo/Read
  begin({2'000'010}, 7);
  stack({2'000'011}, 2'000'010, {kKernel, kKernel + 1});
  stack({2'000'500}, 2'000'000, {kUser});
  end({2'000'400, 1}, 7, 10);
  const Profile profile = reads();
  EXPECT_EQ(folded(profile),
            (Lines{{line(";0x7ff600001000;0xfffff80000001001_[k];0xfffff80000001000_[k]"), 10}}));
  EXPECT_EQ(profile.accounting.lent_user_halves, 1u);
}

TEST_F(ProfileOfDisks, WhoeverAskedIsWhoseTheyAre) {
  trace.process_rundown({1'000'010}, 9, 4, "cache.exe");
  trace.thread_rundown({1'000'011}, 90, 9);
  begin({2'000'000}, 1);
  stack({2'000'001}, 2'000'000, {kUser});
  end({2'000'100}, 1, 10, 90); // told as another thread's
  EXPECT_EQ(folded(reads()), (Lines{{line(";0x7ff600001000"), 10}}));
}

TEST_F(ProfileOfDisks, NoStackIsMadeUp) {
  end({2'000'000}, 1, 1); // begun before the trace
  begin({2'000'010}, 2, kReader, 0x010D);
  stack({2'000'011}, 2'000'010, {kUser});
  end({2'000'020}, 2, 2); // whose beginning was lost: that is of a write
  begin({2'000'030}, 3);  // without a stack
  end({2'000'040}, 3, 4);
  begin({2'000'050}, 4); // never ends
  stack({2'000'051}, 2'000'050, {kUser + 1});
  begin({2'000'060}, 5);
  stack({2'000'061}, 2'000'060, {kUser + 2});
  end({2'000'070}, 5, 8, kReader, kDiskWrite); // not asked for, nor of that beginning
  end({2'000'080}, 5, 16);                     // ended already
  // Of another event of the thread, when the disk is done.
  begin({2'000'090}, 6);
  end({2'000'100, 1}, 6, 32);
  trace.system({2'000'100}, 0x0443, 3, kReader, kReaderProcess);
  stack({2'000'101}, 2'000'100, {kUser + 3});
  const Profile profile = reads();
  EXPECT_EQ(folded(profile), (Lines{{line(";[no stack]"), 1 + 2 + 4 + 16 + 32}}));
  EXPECT_EQ(profile.accounting.total.claimed, 0u);
  EXPECT_EQ(profile.accounting.total.other_event, 4u);
  EXPECT_EQ(profile.accounting.total.orphaned, 0u);
}

TEST_F(ProfileOfDisks, BeginningsCountBesideEnds) {
  begin({2'000'000}, 1);
  stack({2'000'001}, 2'000'000, {kUser});
  end({2'000'100}, 1, 10);
  begin({2'000'200}, 1);
  stack({2'000'201}, 2'000'200, {kUser + 1});
  const Profile profile = profile_of(trace, options({"DiskIO/Read", "DiskIO/ReadInit"}, "")).profile;
  expect_sums(profile);
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001000"), 2}, {line(";0x7ff600001001"), 1}}));
  EXPECT_EQ(profile.accounting.total.claimed, 2u);
}

// Of two beginnings of a thread at one time the stack is that of one, as everywhere.
TEST_F(ProfileOfDisks, AStackIsOfOneRequest) {
  for (const std::uint64_t request : {1, 2})
    begin({2'000'000}, request);
  stack({2'000'001}, 2'000'000, {kUser});
  end({2'000'100}, 1, 1);
  end({2'000'110}, 2, 2);
  EXPECT_EQ(folded(reads()), (Lines{{line(";0x7ff600001000"), 2}, {line(";[no stack]"), 1}}));
}

TEST_F(ProfileOfDisks, StacksMayEndInTheFile) {
  trace.file_name({1'500'000}, 0xA0, "\\first.txt");
  trace.file_name({2'500'000}, 0xA0, "\\second.txt"); // the number again
  trace.file_name({9'000'000}, 0xB0, "\\told;at the end.txt");
  std::int64_t time = 2'000'000;
  for (const std::uint64_t file : {0xA0, 0xB0, 0xC0, 0}) {
    begin({time}, 1);
    stack({time + 1}, time, {kUser});
    end({time + 100, 1}, 1, 10, kReader, kDiskRead, file);
    time += 1000;
  }
  end({2'600'000}, 1, 7, kReader, kDiskRead, 0xA0);
  pipeline::ProfileOptions about = options({"DiskIO/Read"});
  about.leaf = "File";
  const Profile profile = profile_of(trace, about).profile;
  expect_sums(profile);
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001000;file: \\first.txt"), 10},
                                    {line(";0x7ff600001000;file: \\told;at the end.txt"), 10},
                                    {line(";0x7ff600001000"), 20},
                                    {line(";[no stack];file: \\second.txt"), 7}}));
}

TEST_F(ProfileOfDisks, AFileIsOnlyThatOfEventsThatHaveOne) {
  trace.sample({2'000'000}, kReader, kUser);
  const Result<pipeline::Trace> opened = open_trace(trace.bytes());
  ASSERT_TRUE(opened);
  pipeline::ProfileOptions about = options({"PerfInfo/Sample"}, "");
  about.leaf = "file";
  const Result<pipeline::ProfileResult> none = pipeline::make_profile(*opened, about, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().option, Option::leaf);
  EXPECT_NE(none.error().what.find("a field called \"file\""), std::string::npos) << none.error().what;
}

TEST_F(ProfileOfDisks, RequestsMayWeighHowLongTheyTook) {
  begin({2'000'000}, 1);
  stack({2'000'001}, 2'000'000, {kUser});
  end({2'003'000, 1}, 1, 10);
  end({2'004'000}, 2, 10); // begun before the trace
  pipeline::ProfileOptions durations = options({"DiskIO/Read"}, "Duration");
  const pipeline::ProfileResult made = profile_of(trace, durations);
  EXPECT_EQ(folded(made.profile), (Lines{{line(";0x7ff600001000"), 300'000}, {line(";[no stack]"), 0}}));
  EXPECT_EQ(made.weightless, 1u);
  EXPECT_EQ(made.profile.summed, "duration");
  EXPECT_EQ(profile_unit(made.profile), "nanoseconds");
  EXPECT_FALSE(made.profile.counts());
}

// Of files, too, the end has neither thread nor stack; one that it has comes before that of the beginning.
TEST_F(ProfileOfDisks, EndsOfFilesRequestsAreWhereTheyBegan) {
  const auto operation = [&](At at, std::uint64_t request) {
    trace.emit(at, [&](write::EventBuilder &e) {
      e.system(0x0443, 3, 8, kReader, kReaderProcess, at.time).rest(1).value(request).rest(2);
      e.value(kReader).rest();
    });
  };
  const auto ended = [&](At at, std::uint64_t request) {
    trace.emit(at, [&](write::EventBuilder &e) { e.perfinfo(0x044C, 2, 8, at.time).value(request).rest(); });
  };
  operation({2'000'000}, 1);
  stack({2'000'001}, 2'000'000, {kUser});
  ended({2'000'050, 1}, 1);
  operation({2'001'000}, 1);
  stack({2'001'001}, 2'001'000, {kUser + 1});
  ended({2'001'010, 2}, 1);
  stack({2'001'011, 2}, 2'001'010, {kUser + 2});
  EXPECT_EQ(folded(profile_of(trace, options({"FileIo/OperationEnd"}, "")).profile),
            (Lines{{line(";0x7ff600001000"), 1}, {line(";0x7ff600001002"), 1}}));
  EXPECT_EQ(folded(profile_of(trace, options({"FileIo/OperationEnd"}, "duration")).profile),
            (Lines{{line(";0x7ff600001000"), 5'000}, {line(";0x7ff600001002"), 1'000}}));
}

// By activity wherever they go on, else by thread, and nested.
TEST_F(ProfileOfDisks, WhatProvidersStartAndStopHasDurationsToo) {
  const auto gc = [&](std::int64_t time, bool starts, std::uint32_t thread, std::uint64_t activity = 0) {
    write::EventFields fields{.provider = format::kClrGuid, .id = static_cast<std::uint16_t>(starts ? 1 : 2)};
    fields.opcode = starts ? 1 : 2;
    fields.task = 1;
    fields.activity.low = activity;
    trace.manifest_event({time}, fields, thread, kReaderProcess);
  };
  gc(2'000'000, true, kReader);
  gc(2'000'010, true, 81);
  gc(2'000'020, true, kReader);
  gc(2'000'030, false, kReader); // 10 ticks of 100 ns
  gc(2'000'040, false, 81);      // 30
  gc(2'000'100, false, kReader); // 100
  gc(2'000'200, true, kReader, 7);
  gc(2'000'300, false, 81, 7); // 100
  gc(2'000'400, false, 81, 8); // of nothing
  const pipeline::ProfileResult made = profile_of(trace, options({"GC/Stop"}, "duration"));
  EXPECT_EQ(total_weight(made.profile), 24'000u);
  EXPECT_EQ(made.profile.samples.size(), 5u);
  EXPECT_EQ(made.weightless, 1u);
  const Result<pipeline::Trace> opened = open_trace(trace.bytes());
  ASSERT_TRUE(opened);
  const Result<pipeline::ProfileResult> none =
      pipeline::make_profile(*opened, options({"GC/Start"}, "duration"), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().option, Option::sum) << "they end nothing";
}

// Interrupts say themselves when they began, and which routine ran: a frame like any other.
TEST_F(ProfileOfDisks, InterruptsAreOfTheirRoutines) {
  constexpr std::uint64_t kDriver = 0xFFFFF800'10000000;
  trace.image_load({1'500'000}, 0, kDriver);
  const auto dpc = [&](std::int64_t began, std::int64_t ended, std::uint64_t routine,
                       std::uint8_t version = 2) {
    trace.emit({ended}, [&](write::EventBuilder &e) {
      e.perfinfo(0x0F44, version, 8, ended).put(static_cast<std::uint64_t>(began)).put(routine);
    });
  };
  dpc(2'000'000, 2'000'100, kDriver + 0x10);
  dpc(2'000'200, 2'000'230, kDriver + 0x10);
  dpc(2'000'300, 2'000'301, kDriver + 0x20);
  dpc(0, 2'000'400, kDriver + 0x20);            // which says nothing
  dpc(2'000'500, 2'000'499, kDriver + 0x20);    // nothing of use
  dpc(2'000'600, 2'000'700, kDriver + 0x20, 0); // of a version that nobody describes
  pipeline::ProfileOptions durations = options({"PerfInfo/DPC"}, "duration");
  durations.leaf = "routine";
  const pipeline::ProfileResult made = profile_of(trace, durations);
  EXPECT_EQ(folded(made.profile), (Lines{{"? (-1);[no stack];a.dll+0x10_[k]", 13'000},
                                         {"? (-1);[no stack];a.dll+0x20_[k]", 100},
                                         {"? (-1);[no stack]", 0}}));
  EXPECT_EQ(made.weightless, 3u);
  EXPECT_EQ(profile_rows(made.profile, ProfileBy::module).front().name, "a.dll");
}

TEST_F(ProfileOfDisks, DurationsAreTimesInFiles) {
  begin({2'000'000}, 1);
  stack({2'000'001}, 2'000'000, {kUser});
  end({2'030'000}, 1, 10);
  const Profile profile = profile_of(trace, options({"DiskIO/Read"}, "duration")).profile;
  for (const ProfileFormat format : {ProfileFormat::speedscope, ProfileFormat::firefox, ProfileFormat::pprof,
                                     ProfileFormat::svg, ProfileFormat::html, ProfileFormat::folded}) {
    const std::vector<std::uint8_t> file = file_of(profile, format);
    const std::string text(file.begin(), file.end());
    if (format == ProfileFormat::folded) {
      EXPECT_EQ(text, "game.exe (8);0x7ff600001000 3000\n");
      continue;
    }
    if (format == ProfileFormat::svg || format == ProfileFormat::html) {
      EXPECT_NE(text.find("duration of DiskIO/Read: "), std::string::npos) << "its title";
      EXPECT_NE(text.find("3,000 µs"), std::string::npos);
      continue;
    }
    const Result<ReadProfile> read = read_profile(file);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->profile.kind, ProfileKind::events) << profile_format_name(format);
    EXPECT_EQ(read->profile.summed, "duration") << profile_format_name(format);
    EXPECT_TRUE(read->profile.by_time) << profile_format_name(format);
    EXPECT_EQ(total_weight(read->profile), 3'000'000u) << profile_format_name(format);
  }
}

// Over many buffers and processors, and whatever the number of threads.
TEST_F(ProfileOfDisks, EveryByteOfManyIsWhereItBelongs) {
  Lines planted;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const std::int64_t time = 2'000'000 + 100 * std::int64_t{i};
    const auto processor = static_cast<std::uint16_t>(i % 4);
    const std::uint32_t thread = kReader + i % 2, bytes = 512 * (i % 7 + 1), place = i % 11;
    const std::uint64_t request = i % 13; // each ends before the number comes again
    begin({time, processor}, request, thread);
    stack({time + 1, processor}, time, {kUser + place}, thread);
    end({time + 1000, static_cast<std::uint16_t>((i / 5) % 4)}, request, bytes, thread);
    if (i % 97 == 0) trace.end_buffer(processor);
    planted[line(fmt::format(";0x{:x}", kUser + place))] += bytes;
  }
  const Result<pipeline::Trace> opened = open_trace(trace.bytes());
  ASSERT_TRUE(opened);
  for (const unsigned threads : {1u, 3u}) {
    const Profile profile = profile_of(*opened, options({"DiskIO/Read"}), threads).profile;
    expect_sums(profile);
    EXPECT_EQ(folded(profile), planted) << threads;
  }
}

} // namespace
} // namespace etwrelog
