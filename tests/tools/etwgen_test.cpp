// The generator's promise: its traces read without damage, hold exactly what it says they hold, and are the
// same bytes whatever the number of threads.
#include "tools/etwgen/defects.hpp"
#include "tools/etwgen/generate.hpp"

#include "stacks/stack_events.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

namespace etwrelog::gen {
namespace {

Options options_for(std::string_view profile, std::uint64_t size) {
  Options o;
  o.profile = find_profile(profile);
  o.size = size;
  o.cpus = 4;
  o.processes = 16;
  return o;
}

struct Made {
  std::vector<std::uint8_t> bytes;
  Generated generated;
  nlohmann::json truth;
};
Made make(const Options &o) {
  MemorySink sink;
  Result<Generated> g = generate(o, sink);
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  if (!g) return {};
  const auto truth = nlohmann::json::parse(g->truth.json("[]"));
  return {std::move(sink.bytes), std::move(*g), truth};
}

// A plain walk over an uncompressed trace: calls visit(event, time, cpu); returns buffers that did not walk
// to their end.
template <class Visit> int walk(Bytes trace, Visit &&visit) {
  int damaged = 0;
  std::size_t at = 0;
  while (at + format::kBufferHeaderSize <= trace.size()) {
    const format::BufferHeader h = format::load_buffer_header(trace.data() + at);
    if (h.buffer_size < format::kBufferHeaderSize || h.buffer_size > trace.size() - at) return damaged + 1;
    const WalkEnd end = for_each_event(
        trace.subspan(at + format::kBufferHeaderSize, h.valid_bytes() - format::kBufferHeaderSize),
        [&](const EventView &e, std::int64_t time, std::uint32_t) { visit(e, time, h.processor()); });
    if (!end) ++damaged;
    at += h.buffer_size;
  }
  return damaged;
}

struct Facts {
  std::uint64_t events = 0, stacks = 0;
  std::map<std::string, std::uint64_t> hooks, samples;
  std::set<std::vector<std::uint8_t>> distinct;
  std::map<unsigned, std::int64_t> last;
  int unordered = 0, damaged = 0;
};
Facts facts(Bytes trace) {
  Facts f;
  std::map<std::uint32_t, std::uint32_t> process_of; // by thread
  walk(trace, [&](const EventView &e, std::int64_t, unsigned) {
    if (e.has_hook() && e.hook() >= 0x0501 && e.hook() <= 0x0504)
      process_of[load<std::uint32_t>(e.payload().data() + 4)] = load<std::uint32_t>(e.payload().data());
  });
  f.damaged = walk(trace, [&](const EventView &e, std::int64_t time, unsigned cpu) {
    ++f.events;
    if (time < f.last[cpu]) ++f.unordered;
    f.last[cpu] = time;
    if (!e.has_hook()) return;
    char name[16];
    std::snprintf(name, sizeof name, "hook:0x%04x", e.hook());
    ++f.hooks[name];
    if (e.hook() == 0x0F2E) {
      const std::uint32_t tid = load<std::uint32_t>(e.payload().data() + e.pointer_size());
      ++f.samples[tid == 0 ? "0" : std::to_string(process_of[tid])];
    }
    const stacks::StackEventKind kind = stacks::stack_event_kind(e);
    if (kind == stacks::StackEventKind::none) return;
    ++f.stacks;
    stacks::StackFields fields;
    if (stacks::parse_stack_event(e, kind, fields) && kind != stacks::StackEventKind::reference)
      f.distinct.emplace(fields.frames.begin(), fields.frames.end());
  });
  return f;
}

void expect_truth(const Made &made, const Facts &f) {
  EXPECT_EQ(f.damaged, 0);
  EXPECT_EQ(f.unordered, 0);
  EXPECT_EQ(f.events, made.truth["events"]["count"].get<std::uint64_t>());
  EXPECT_EQ(f.stacks, made.truth["stacks"]["events"].get<std::uint64_t>());
  EXPECT_EQ(f.distinct.size(), made.truth["stacks"]["unique"].get<std::uint64_t>());
  for (const auto &[name, count] : f.hooks)
    EXPECT_EQ(nlohmann::json(count), made.truth["events"]["by_type"].at(name)[0]) << name;
}

TEST(EtwGen, HoldsWhatItsTruthSays) {
  for (const Profile &profile : all_profiles())
    for (const unsigned pointer_size : {8u, 4u}) {
      SCOPED_TRACE(std::string(profile.name) + "/" + std::to_string(pointer_size));
      Options o = options_for(profile.name, 3'000'000);
      o.pointer_size = pointer_size;
      const Made made = make(o);
      const Facts f = facts(made.bytes);
      expect_truth(made, f);
      EXPECT_GT(f.stacks, 1000u);
      // Thread ids come back, but with a single process always in that one.
      if (profile.filtered) {
        EXPECT_EQ(nlohmann::json(f.samples), made.truth["samples_by_pid"]);
      }
    }
}

TEST(EtwGen, WritesReferencesThatAllFindTheirDefinition) {
  Options o = options_for("real", 3'000'000);
  o.stack_cache = true;
  const Made made = make(o);
  expect_truth(made, facts(made.bytes));
  // In order of time, a definition answers the references since the one before.
  struct Step {
    std::int64_t time;
    int order; // a definition at the time of a reference stands before it
    std::uint64_t key;
  };
  std::vector<Step> steps;
  walk(made.bytes, [&](const EventView &e, std::int64_t time, unsigned) {
    const stacks::StackEventKind kind = stacks::stack_event_kind(e);
    stacks::StackFields fields;
    if (kind == stacks::StackEventKind::none || !stacks::parse_stack_event(e, kind, fields)) return;
    if (kind == stacks::StackEventKind::reference) steps.push_back({time, 1, fields.key});
    if (kind == stacks::StackEventKind::definition) steps.push_back({time, 0, fields.key});
  });
  std::ranges::stable_sort(steps, {}, [](const Step &s) { return std::pair(s.time, s.order); });
  std::map<std::uint64_t, int> open;
  int idle_definitions = 0;
  for (const Step &s : steps) {
    if (s.order == 1)
      ++open[s.key];
    else if (open.erase(s.key) == 0)
      ++idle_definitions;
  }
  EXPECT_TRUE(open.empty()) << open.size() << " keys were never defined";
  EXPECT_EQ(idle_definitions, 0);
}

TEST(EtwGen, MakesTheSameBytesOnAnyNumberOfThreads) {
  for (const bool cache : {false, true}) {
    Options o = options_for("medium", 4'000'000);
    o.stack_cache = cache;
    o.codec = Codec::xpress;
    o.threads = 1;
    const Made one = make(o);
    o.threads = 3;
    const Made three = make(o);
    EXPECT_EQ(one.bytes, three.bytes);
    EXPECT_EQ(one.truth, three.truth);
    o.seed = 2;
    EXPECT_NE(make(o).bytes, one.bytes);
  }
}

// Long enough for memos of one thread to meet two processes of one program.
TEST(EtwGen, MakesTheSameBytesWhicheverThreadMakesWhichSlice) {
  Options o = options_for("medium", 48'000'000);
  o.threads = 1;
  const Made one = make(o);
  o.threads = 4;
  const Made four = make(o);
  EXPECT_TRUE(one.bytes == four.bytes);
  EXPECT_EQ(one.truth, four.truth);
}

TEST(EtwGen, ReusesIdsAcrossProcesses) {
  Options o = options_for("real", 0);
  o.size.reset();
  o.duration_s = 12;
  const Made made = make(o);
  std::map<std::uint32_t, std::set<std::uint32_t>> owners;
  std::uint64_t ends = 0;
  walk(made.bytes, [&](const EventView &e, std::int64_t, unsigned) {
    if (!e.has_hook()) return;
    if (e.hook() == 0x0302) ++ends;
    if (e.hook() != 0x0501 && e.hook() != 0x0503) return;
    owners[load<std::uint32_t>(e.payload().data() + 4)].insert(load<std::uint32_t>(e.payload().data()));
  });
  EXPECT_GT(ends, 0u);
  EXPECT_TRUE(std::ranges::any_of(owners, [](const auto &o2) { return o2.second.size() > 1; }));
}

TEST(EtwGen, PlantsDefectsAndSaysWhere) {
  for (int d = 0; d < static_cast<int>(Defect::count_); ++d) {
    const auto defect = static_cast<Defect>(d);
    if (defect == Defect::unclosed) continue; // done to a file
    SCOPED_TRACE(defect_name(defect));
    Options o = options_for("real", 3'000'000);
    o.clock_jump = defect == Defect::clock_jump;
    o.pid_reuse = defect == Defect::pid_reuse;
    if (o.pid_reuse) o.size = 24'000'000;
    MemorySink memory;
    DefectSink sink({defect}, memory);
    const Result<Generated> g = generate(o, sink);
    ASSERT_TRUE(g) << g.error().message();
    const Result<void> ended = sink.end();
    ASSERT_TRUE(ended) << ended.error().message();
    const auto planted = nlohmann::json::parse(sink.planted(*g));
    ASSERT_FALSE(planted.empty());
    std::uint64_t unreadable = 0;
    for (const auto &p : planted)
      unreadable += p["events_unreadable"].get<std::uint64_t>();
    const Facts f = facts(memory.bytes);
    if (defect == Defect::foreign_bytes) {
      const std::size_t at = planted[0]["offset"].get<std::size_t>();
      EXPECT_EQ(std::string(memory.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                            memory.bytes.begin() + static_cast<std::ptrdiff_t>(at) + 5),
                "not a");
      continue; // a walk that cannot find the next buffer ends here
    }
    if (defect == Defect::cut_tail) {
      EXPECT_EQ(memory.bytes.size(), planted[0]["offset"].get<std::size_t>());
      EXPECT_EQ(f.damaged, 1);
      continue; // a plain walk does not look into a cut buffer
    }
    EXPECT_EQ(f.events + unreadable, g->truth.events());
    EXPECT_EQ(f.damaged, defect == Defect::bit_flips ? 1 : 0);
    EXPECT_EQ(f.unordered, defect == Defect::out_of_order ? 1 : 0);
    if (defect == Defect::lost_buffers || defect == Defect::bit_flips) {
      EXPECT_GT(unreadable, 0u);
    }
    if (defect == Defect::pid_reuse) {
      const auto gap = planted[0]["started"].get<std::int64_t>() - planted[0]["ended"].get<std::int64_t>();
      EXPECT_GT(gap, 0);
      EXPECT_LT(gap, kTicksPerSecond);
    }
  }
}

TEST(EtwGen, ADefectThatTheTraceIsTooSmallForIsAnError) {
  Options o = options_for("medium", 300'000);
  o.clock_jump = true;
  MemorySink memory;
  const Result<Generated> g = generate(o, memory);
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().kind, ErrorKind::usage);
  EXPECT_NE(g.error().message().find("clock-jump: the trace ends before it"), std::string::npos);
}

// The independent reader agrees, where it is at hand.
TEST(EtwGen, AgreesWithTheOracle) {
  const auto shared = testing::shared_dir();
  if (!shared) GTEST_SKIP() << "the independent reader is not here";
  const std::filesystem::path oracle = *shared / "tools" / "etl_oracle.py";
  ASSERT_TRUE(std::filesystem::exists(oracle)) << oracle;
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("etwgen_test_" + std::to_string(std::random_device{}()) + ".etl");
  for (const bool cache : {false, true}) { // the names of WPP types hold the message number: not compared
    Options o = options_for("real", 2'500'000);
    o.stack_cache = cache;
    const Made made = make(o);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(made.bytes.data()),
               static_cast<std::streamsize>(made.bytes.size()));
    const std::string out = path.string() + ".json";
    ASSERT_EQ(
        std::system(("python3 '" + oracle.string() + "' '" + path.string() + "' > '" + out + "'").c_str()),
        0);
    std::ifstream json(out);
    const auto read = nlohmann::json::parse(json);
    EXPECT_EQ(read["events"]["count"], made.truth["events"]["count"]);
    for (const auto &[name, value] : read["events"]["by_type"].items())
      if (!name.starts_with("wpp:")) {
        EXPECT_EQ(value, made.truth["events"]["by_type"].at(name)) << name;
      }
    EXPECT_EQ(read["samples_by_pid"], made.truth["samples_by_pid"]);
    EXPECT_EQ(read["images_by_pid"], made.truth["images_by_pid"]);
    EXPECT_EQ(read["stacks"]["unique"], made.truth["stacks"]["unique"]);
    EXPECT_EQ(read["stacks"]["frames"], made.truth["stacks"]["frames"]);
    EXPECT_EQ(read["stacks"]["keys_never_defined"], 0);
    EXPECT_EQ(read["buffers"]["count"], made.truth["buffers"]["count"]);
    EXPECT_EQ(read["buffers"]["raw_bytes"], made.truth["buffers"]["raw_bytes"]);
    std::filesystem::remove(out);
  }
  std::filesystem::remove(path);
}

} // namespace
} // namespace etwrelog::gen
