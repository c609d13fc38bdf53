// Makes the files of this folder that are not there yet, with what they must give back: make_golden FOLDER.
// A file that is there is left alone: that today's reader gives back what yesterday's writer wrote is the
// point.
#include "tests/golden/facts.hpp"
#include "tests/support/recycled.hpp"

#include "archive/archive.hpp"
#include "archive/tally.hpp"
#include "base/output_file.hpp"
#include "etwrelog/provider_events.hpp"
#include "passes/stack_report.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/zip_files.hpp"
#include "tools/etwgen/generate.hpp"

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace etwrelog::testing {
namespace {

namespace fs = std::filesystem;
using Buffer = std::vector<std::uint8_t>;
fs::path folder;

[[noreturn]] void fail(const std::string &why) {
  std::fprintf(stderr, "make_golden: %s\n", why.c_str());
  std::exit(1);
}
template <class T> T must(Result<T> result) {
  if (!result) fail(result.error().message());
  return std::move(*result);
}

bool is_there(const std::string &name) {
  return fs::exists(folder / name);
}

void write_facts(const std::string &name, const nlohmann::json &facts) {
  const std::string text = facts.dump(1) + "\n";
  write_file((folder / (name + ".json")).string(),
             Bytes(reinterpret_cast<const std::uint8_t *>(text.data()), text.size()));
}

Statistics statistics_of(const Buffer &trace) {
  return must(pipeline::collect_statistics(must(open_trace(trace)), {}));
}

Buffer packed(const Buffer &original, const pipeline::ArchiveOptions &options) {
  const TempDir scratch;
  base::OutputFile out = must(base::OutputFile::create(scratch.file("a"), false));
  must(pipeline::pack_file(*read::memory_input("original", original), out, options));
  if (!out.commit()) fail("cannot write");
  return read_file(scratch.file("a"));
}

// `says` is added to the facts: what the file is for.
void archive(const std::string &name, const char *says, const Buffer &original, Level level,
             bool trace = true, bool statistics = false, std::size_t segment = 0,
             pipeline::OriginalName called = pipeline::OriginalName::unknown) {
  if (is_there(name)) return;
  pipeline::ArchiveOptions options;
  options.segment = segment;
  options.level = level;
  options.name = called;
  if (statistics) options.count_from = 0;
  const Buffer made = packed(original, options);
  write_file((folder / name).string(), made);
  nlohmann::json facts{{"what", says}, {"bytes", original.size()}, {"xxh3_128", hash_of(original)}};
  if (trace) facts["trace"] = facts_of(statistics_of(original));
  if (statistics) facts["statistics_in_index"] = true;
  if (called != pipeline::OriginalName::unknown) facts["etl_name"] = called == pipeline::OriginalName::etl;
  const auto index = pipeline::read_archive_index(*read::memory_input(name, made));
  const auto tally = index ? pipeline::read_tally(index->facts) : std::nullopt;
  if (tally) facts["tally_in_index"]["session"] = tally->session.name;
  if (tally && tally->processes) facts["tally_in_index"]["processes"] = true;
  write_facts(name, facts);
}

// An archive of a wrapped file.
void wrapped(const std::string &name, const char *says, const Buffer &file,
             const std::vector<Buffer> &traces) {
  if (is_there(name)) return;
  pipeline::ArchiveOptions options;
  const Buffer made = packed(file, options);
  if (!must(etlz::read_file_header(made)).wrapped) fail(name + " is not packed as a wrapped trace");
  write_file((folder / name).string(), made);
  nlohmann::json facts{{"what", says}, {"bytes", file.size()}, {"xxh3_128", hash_of(file)}};
  for (const Buffer &trace : traces)
    facts["traces"].push_back(facts_of(statistics_of(trace)));
  write_facts(name, facts);
}

// A trace in gzip members, each made in another way.
Buffer gzip_members(const Buffer &trace) {
  std::vector<DeflateWay> ways;
  for (int level = 0; level <= 9; ++level)
    ways.push_back({.level = level});
  for (const int memory : {1, 4, 9})
    ways.push_back({.memory_level = memory});
  for (const int window : {9, 12})
    ways.push_back({.window_bits = window});
  for (const int strategy : {Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED})
    ways.push_back({.strategy = strategy});
  for (const int flush :
       {Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_PARTIAL_FLUSH}) // the last with tokens that no rule says
    ways.push_back({.flush = flush, .every = 700});
  Buffer file;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const std::size_t from = trace.size() * i / ways.size(), to = trace.size() * (i + 1) / ways.size();
    const Buffer member = gzip_of(Bytes(trace).subspan(from, to - from), ways[i]);
    file.insert(file.end(), member.begin(), member.end());
  }
  return file;
}

// An archive made from another by a change of some bytes.
template <class Change> void changed(const std::string &name, const std::string &from, Change &&change) {
  if (is_there(name)) return;
  Buffer bytes = read_file((folder / from).string());
  change(bytes);
  write_file((folder / name).string(), bytes);
}

// The same archive with another statistics record in its index.
void replace_record(Buffer &archive, std::string_view record) {
  const auto input = read::memory_input("archive", archive);
  const pipeline::ArchiveIndex index = must(pipeline::read_archive_index(*input));
  etlz::IndexWriter writer;
  for (const etlz::IndexEntry &entry : index.segments)
    writer.add(entry);
  etlz::Footer footer = index.footer;
  archive.resize(footer.index_at);
  writer.finish(Bytes(reinterpret_cast<const std::uint8_t *>(record.data()), record.size()), archive);
  footer.index_size = archive.size() - footer.index_at;
  archive.resize(archive.size() + etlz::kFooterSize);
  etlz::write_footer(footer, archive.data() + archive.size() - etlz::kFooterSize);
}

void set_versions(Buffer &archive, std::uint16_t version) {
  store(archive.data() + 8, version);
  store(archive.data() + 10, version);
  etlz::seal(archive.data(), etlz::kFileHeaderSize);
}

// Every kind of event that the test builder knows, in several processes.
Buffer all_kinds(Codec codec, std::uint32_t rounds = 600) {
  SyntheticTrace t({.buffer_size = 0x4000, .codec = codec});
  const Guid manifest = make_guid(0xAAAA0001, 1, 2, 3, 4), logging = make_guid(0xAAAA0002, 1, 2, 3, 4);
  std::int64_t now = 2'000'000;
  auto at = [&now](std::uint16_t processor = 0) { return At{now += 37, processor}; };
  for (std::uint32_t p = 1; p <= 5; ++p) {
    t.process_rundown(at(), 100 * p, 4, "program" + std::to_string(p) + ".exe",
                      "program --number " + std::to_string(p));
    for (std::uint32_t i = 1; i <= 4; ++i) {
      t.thread_rundown(at(), 100 * p + 4 * i, 100 * p);
      t.image_rundown(at(), 100 * p, 0x7FF6'0000'0000 + 0x10'0000 * i);
      t.image_id(at(), 100 * p, 0x7FF6'0000'0000 + 0x10'0000 * i);
      t.image_pdb(at(), 100 * p, 0x7FF6'0000'0000 + 0x10'0000 * i);
    }
  }
  t.manifest(at(), manifest, 104, 100,
             "<provider name='Golden'><events><event value='1'/></events></provider>");
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const auto cpu = static_cast<std::uint16_t>(i % 4);
    const std::uint32_t pid = 100 * (1 + i / 7 % 5), tid = pid + 4 * (1 + i / 3 % 4);
    const Frames frames{0xFFFF'F800'0000'1000 + 16 * (i % 9), 0x7FF6'0010'2000u + 64u * (i % 13),
                        0x7FF6'0020'0040};
    t.context_switch(at(cpu), tid, i % 3 == 0 ? 0 : pid);
    if (i % 2 == 0) {
      t.sample(at(cpu), tid, 0x7FF6'0010'0000 + 32 * (i % 50));
      t.stack_walk({now, cpu}, now, pid, tid, frames);
    }
    if (i % 5 == 0) {
      t.page_fault(at(cpu));
      t.stack_key({now + 1, cpu}, now, pid, tid, 0x5000 + i % 6);
    }
    if (i % 7 == 0) {
      t.file_name(at(cpu), 0xFFFF'C000'0000'0000 + i,
                  "\\Device\\Volume\\file" + std::to_string(i % 20) + ".txt");
      t.disk_read(at(cpu), tid, 0xFFFF'C000'0000'0000 + i);
      t.file_read(at(cpu), tid, 0xFFFF'C000'0000'0000 + i, i % 20);
    }
    if (i % 11 == 0) {
      t.manifest_event(at(cpu), {.provider = manifest, .id = 1}, tid, pid,
                       Buffer(8 + i % 40, static_cast<std::uint8_t>(i)),
                       {{format::ItemType::stack_trace64, stack_item(frames)}});
      t.trace_logging(at(cpu), logging, "Golden", "Event" + std::to_string(i % 3), tid, pid);
      t.clr_method_load(at(cpu), tid, pid);
      t.clr_stack(at(cpu), tid, pid, frames);
      t.message(at(cpu), manifest, tid, pid);
      t.classic(at(cpu), logging, 10, tid, pid, Buffer{1, 2, 3});
      t.tcp_send(at(cpu), pid);
      t.ready_thread(at(cpu), tid);
      t.dpc(at(cpu));
      t.isr(at(cpu));
      t.syscall(at(cpu));
    }
  }
  for (std::uint32_t k = 0; k < 6; ++k)
    t.stack_definition(at(), 0x5000 + k, {0x7FF6'0010'2000u + 64u * k, 0x7FF6'0020'0040});
  t.process_end(at(), 500, "program5.exe");
  return t.bytes();
}

// Enough of one kind, with skewed values, for streams that are mixed in four lanes.
Buffer many_samples() {
  SyntheticTrace t({.processors = 2});
  t.process_rundown({1'500'000}, 100, 4, "program.exe", "program");
  t.thread_rundown({1'500'001}, 104, 100);
  std::uint32_t state = 1; // a generator of our own: those of the library may differ from place to place
  auto random = [&state](std::uint32_t below) {
    state = state * 1'664'525u + 1'013'904'223u;
    return (state >> 8) % below;
  };
  std::int64_t now = 2'000'000;
  std::uint64_t near = 0;
  for (int i = 0; i < 22'000; ++i) {
    now += 1 + random(1 + random(60));
    near = random(3) == 0 ? random(1 + random(4000)) : near + random(3);
    t.sample({now, static_cast<std::uint16_t>(i / 900 % 2)}, 104, 0x7FF6'0000'1000 + 16 * near);
  }
  return t.bytes();
}

// Large buffers with little in them: several segments out of a small archive, with a summary each.
Buffer many_segments() {
  SyntheticTrace t({.buffer_size = 1u << 20, .processors = 1});
  t.process_rundown({1'500'000}, 100, 4, "program.exe", "program");
  t.thread_rundown({1'500'001}, 104, 100);
  for (int i = 0; i < 44; ++i) {
    for (int k = 0; k < 20; ++k)
      t.sample({2'000'000 + 1000 * i + k}, 104, 0x7FF6'0000'1000 + static_cast<std::uint64_t>(k) * 16);
    if (i % 9 == 0)
      t.process_start({2'000'900 + 1000 * i}, 200u + static_cast<unsigned>(i), 100, "child.exe", "child");
    t.end_buffer(0);
  }
  return t.bytes();
}

// The same, of what the kernel's own providers tell, written by others than those that it is about.
Buffer of_kernel_providers() {
  SyntheticTrace t({.buffer_size = 1u << 20, .processors = 1});
  const auto begin = [](write::EventBuilder &e, std::int64_t time, const Guid &provider,
                        std::uint16_t id) -> write::EventBuilder & {
    e.event({.provider = provider, .id = id}, 8, 80, 4, time);
    return e;
  };
  for (int i = 0; i < 44; ++i) {
    const std::int64_t now = 2'000'000 + 1000 * i;
    const std::uint32_t pid = 200 + static_cast<std::uint32_t>(i) / 4;
    if (i % 4 == 0)
      t.emit({now}, [&](write::EventBuilder &e) {
        begin(e, now, provider::kKernelProcess, 1)
            .put(pid)
            .put(now)
            .put(std::uint32_t{4})
            .put(std::uint32_t{0});
        e.wstr("\\Device\\child" + std::to_string(pid) + ".exe");
      });
    if (i % 4 == 1)
      t.emit({now}, [&](write::EventBuilder &e) {
        begin(e, now, provider::kKernelProcess, 3).put(pid).put(1000 + pid);
        for (int k = 0; k < 7; ++k)
          e.put(std::uint64_t{0x1000});
      });
    if (i % 4 == 2)
      t.emit({now}, [&](write::EventBuilder &e) {
        begin(e, now, provider::kKernelProcess, 5)
            .put(std::uint64_t{0x7FF6'0000'0000})
            .put(std::uint64_t{0x10000})
            .put(pid);
        e.put(std::uint64_t{0}).put(std::uint64_t{0}).wstr("\\Device\\child.dll");
      });
    for (int k = 1; k < 20; ++k)
      t.emit({now + k}, [&](write::EventBuilder &e) {
        begin(e, now + k, provider::kKernelNetwork, 11).put(pid).put(std::uint32_t{1400});
        for (int field = 0; field < 5; ++field)
          e.put(std::uint32_t{7});
      });
    t.end_buffer(0);
  }
  return t.bytes();
}

// What an index lists, and whose events are, of all that tells of something: each in a segment of its own.
Buffer all_that_tells() {
  SyntheticTrace t({.buffer_size = 1u << 20, .processors = 1});
  const Guid process_class = kernel::class_guid(0x0301);
  std::int64_t now = 2'000'000;
  const auto key_name = [&](std::uint16_t hook) {
    t.emit({now}, [&](write::EventBuilder &e) {
      e.system(hook, 2, 8, 104, 100, now).value(0).value(0).value(0).value(0xC0).text("\\REGISTRY\\KEY");
    });
  };
  const std::function<void()> tell[] = {
      [&] { t.process_start({now}, 200, 100, "child.exe"); },
      [&] { t.thread_start({now}, 204, 200); },
      [&] { t.image_load({now}, 200, 0x7FF6'0000'0000); },
      [&] { t.file_name({now}, 0xA0, "\\file.txt"); },
      [&] { key_name(0x0916); },
      [&] { key_name(0x0918); },
      [&] { t.stack_definition({now}, 0x5000, {0x7FF6'0000'1000}); },
      [&] { t.stack_walk({now + 1}, now, 200, 204, {0x7FF6'0000'1000}); },
      [&] { t.context_switch({now}, 204, 104); },
      [&] { t.image_id({now}, 200, 0x7FF6'0000'0000); },
      [&] { t.metadata({now}, make_guid(1, 2, 3, 4, 5)); },
      [&] {
        std::vector<std::uint8_t> payload(64);
        payload[8] = 201;
        t.classic({now}, process_class, 1, 104, 100, payload);
      },
      [&] { t.virtual_alloc({now}, 201, 104, 100); },
      [&] { t.tcp_send({now}, 202); },
  };
  t.process_rundown({1'500'000}, 100, 4, "program.exe", "program");
  t.thread_rundown({1'500'001}, 104, 100);
  t.end_buffer(0);
  for (const std::function<void()> &one : tell) {
    one();
    for (int k = 2; k < 200; ++k)
      t.sample({now + k}, 104, 0x7FF6'0000'1000 + static_cast<std::uint64_t>(k) * 16);
    t.end_buffer(0);
    now += 1000;
  }
  return t.bytes();
}

Buffer machine(const char *profile, std::uint64_t size, Codec codec = Codec::none) {
  gen::Options options;
  options.profile = gen::find_profile(profile);
  options.size = size;
  options.cpus = 4;
  options.processes = 16;
  options.codec = codec;
  gen::MemorySink sink;
  must(gen::generate(options, sink));
  return std::move(sink.bytes);
}

// Damage inside, and an end that is cut off.
Buffer damaged(Buffer trace) {
  const std::size_t size = format::load_buffer_header(trace.data()).buffer_size;
  for (std::size_t i = 0; i < 200; ++i)
    trace[size + format::kBufferHeaderSize + 40 + i * 17] ^= static_cast<std::uint8_t>(i);
  std::fill_n(trace.begin() + static_cast<std::ptrdiff_t>(2 * size), 3000,
              std::uint8_t{0xAB}); // the header, too
  trace.resize(trace.size() - 777);
  return trace;
}

// Of a buffer's compressed bytes those that differ from what the predictor of archives says are kept as
// corrections. These encoders differ from Windows' own.
Buffer recompressed(const Buffer &trace, Codec codec) {
  pipeline::RelogOptions options;
  options.codec = codec;
  Relogged made = relog_bytes(trace, options);
  if (made.error) fail(made.error->message());
  return made.bytes;
}

void stack_database(const std::string &name, const Buffer &trace) {
  if (is_there(name)) return;
  Buffer file;
  auto sink = [&file](Bytes piece) -> Result<void> {
    file.insert(file.end(), piece.begin(), piece.end());
    return {};
  };
  stacks::StackDatabaseWriter writer(sink, 8);
  pipeline::StackReportOptions options;
  options.database = &writer;
  must(pipeline::report_stacks(must(open_trace(trace)), options, {}));
  write_file((folder / name).string(), file);
  nlohmann::json facts = facts_of(must(stacks::read_stack_database(file)));
  facts["what"] = "a stack database, as `stacks --export` writes it";
  write_facts(name, facts);
}

void make_all() {
  const Buffer kinds = all_kinds(Codec::none), generated = machine("medium", 3u << 18);
  archive("v1-kinds-fast.etlz", "events of every kind, level fast", kinds, Level::fast);
  archive("v1-kinds-default.etlz", "events of every kind, level default", kinds, Level::normal);
  archive("v1-kinds-max.etlz", "events of every kind, level max", kinds, Level::max);
  archive("v1-machine-max.etlz", "a generated machine, level max: mixed streams with one lane", generated,
          Level::max);
  archive("v1-lanes-max.etlz", "many samples, level max: mixed streams with four lanes", many_samples(),
          Level::max);
  archive("v1-statistics.etlz", "statistics in the index", kinds, Level::normal, true, true);
  archive("v1-tally.etlz", "a tally in the index, and no process ids of its one segment", generated,
          Level::normal);
  archive("v1-tally-processes.etlz", "a tally with processes in the index", generated, Level::normal);
  archive("v1-segments.etlz", "several segments, with summaries and statistics", many_segments(),
          Level::normal, true, true);
  archive("v1-owners.etlz", "several segments, with summaries that tell whose their events are",
          many_segments(), Level::normal, true, true, 8192);
  archive("v1-xpress.etlz", "buffers compressed with XPRESS, restored by corrections",
          recompressed(kinds, Codec::xpress), Level::normal);
  archive("v1-lznt1.etlz", "buffers compressed with LZNT1, restored by corrections",
          recompressed(kinds, Codec::lznt1), Level::normal);
  archive("v1-damaged.etlz", "a trace with damage inside and its end cut off", damaged(kinds), Level::normal,
          false);
  Buffer text;
  for (int i = 0; i < 300; ++i)
    for (const char c : "line " + std::to_string(i * i) + "\n")
      text.push_back(static_cast<std::uint8_t>(c));
  archive("v1-no-trace.etlz", "a file that is no trace", text, Level::normal, false);
  archive("v1-empty.etlz", "an empty file", {}, Level::normal, false);
  // Format 2: little content without segments and index.
  const Buffer few = all_kinds(Codec::none, 90);
  archive("v2-small.etlz", "events of every kind, few enough for a small archive", few, Level::normal);
  archive("v2-small-sparse.etlz", "large buffers with little in them", many_segments(), Level::normal);
  archive("v2-small-xpress.etlz", "a small archive with XPRESS corrections", recompressed(few, Codec::xpress),
          Level::normal);
  archive("v2-small-lznt1.etlz", "a small archive with LZNT1 corrections", recompressed(few, Codec::lznt1),
          Level::max);
  archive("v2-small-damaged.etlz", "a small archive of a trace with damage inside and its end cut off",
          damaged(few), Level::normal, false);
  // Format 3: wrapped traces.
  const Buffer some = all_kinds(Codec::none, 900);
  wrapped("v3-gzip.etlz", "a trace in gzip", gzip_of(some), {some});
  wrapped("v3-gzip-members.etlz", "a trace in gzip members, one for each way in which zlib makes them",
          gzip_members(some), {some});
  wrapped("v3-zip.etlz", "two traces and another file in a zip",
          zip_of({{"a.etl", few}, {"notes.txt", text}, {"b/b.etl", some}}), {few, some});
  // Format 4: what a buffer's memory held before.
  archive("v4-recycled.etlz", "padding that earlier buffers explain",
          trace_in_recycled_memory(Codec::none, 20, 4), Level::normal);
  archive("v4-recycled-xpress.etlz", "the same in buffers compressed with XPRESS",
          trace_in_recycled_memory(Codec::xpress, 14, 3), Level::normal);
  archive("v4-xpress-ours.etlz",
          "buffers compressed with XPRESS by an encoder of ours, which makes them again",
          recompressed(kinds, Codec::xpress), Level::normal);
  archive("v4-small-xpress-ours.etlz", "the same in a small archive", recompressed(few, Codec::xpress),
          Level::normal);
  archive("v4-machine.etlz", "a generated machine: ends of stacks by their distances", generated,
          Level::normal);
  archive("v4-ultra.etlz", "a coupled segment", generated, Level::ultra);
  archive("v4-ultra-xpress.etlz", "coupled, in buffers compressed with XPRESS, memory recycled",
          trace_in_recycled_memory(Codec::xpress, 40, 3), Level::ultra);
  // Whose originals had other names than those of their kind.
  archive("v1-no-trace-named-etl.etlz", "a file that is no trace, and was named .etl", text, Level::normal,
          false, false, 0, pipeline::OriginalName::etl);
  archive("v2-small-not-named-etl.etlz", "a small archive of a trace that was not named .etl", few,
          Level::normal, true, false, 0, pipeline::OriginalName::other);
  archive("v4-not-named-etl.etlz", "a trace that was not named .etl", kinds, Level::normal, true, false, 0,
          pipeline::OriginalName::other);
  // Of the writer of commit d49e8bf, whose index did not know what these events tell: today's does.
  archive("v4-older-rules.etlz", "events of the kernel's providers, under an index of older rules",
          of_kernel_providers(), Level::normal, true, false, 8192);
  archive("v4-rules-1.etlz", "all that tells of something, under an index of rules 1", all_that_tells(),
          Level::normal, true, true, 8192);
  archive("v4-rules-1-providers.etlz", "events of the kernel's providers, under an index of rules 1",
          of_kernel_providers(), Level::normal, true, false, 8192);
  stack_database("stacks-v1.zst", generated);
  if (!is_there("v1-statistics-newer.etlz")) {
    changed("v1-statistics-newer.etlz", "v1-statistics.etlz",
            [](Buffer &b) { replace_record(b, R"({"record_version":65535,"events":1,"hello":[]})"); });
    nlohmann::json facts = nlohmann::json::parse(read_file((folder / "v1-statistics.etlz.json").string()));
    facts["what"] = "statistics of a version that no reader knows: to be counted anew";
    facts.erase("statistics_in_index");
    write_facts("v1-statistics-newer.etlz", facts);
  }
  changed("refused-older.etlz", "v1-kinds-default.etlz", [](Buffer &b) { set_versions(b, 0); });
  changed("refused-newer.etlz", "v1-kinds-default.etlz", [](Buffer &b) { set_versions(b, 0xFFFF); });
  changed("refused-index.etlz", "v1-kinds-default.etlz",
          [](Buffer &b) { b[b.size() - etlz::kFooterSize - 30] ^= 1; });
}

} // namespace
} // namespace etwrelog::testing

int main(int argc, char **argv) {
  if (argc != 2) etwrelog::testing::fail("usage: make_golden FOLDER");
  etwrelog::testing::folder = argv[1];
  etwrelog::testing::make_all();
}
