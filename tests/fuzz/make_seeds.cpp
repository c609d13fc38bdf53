// Writes the seed corpora of the fuzz targets: small traces made in memory. Usage: make_seeds DIRECTORY
#include "etlz/backend/mixer.hpp"
#include "etlz/segment.hpp"
#include "etwrelog/profile_export.hpp"
#include "passes/statistics.hpp"
#include "tests/fuzz/archive_parts.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/synthetic_profile.hpp"
#include "tests/support/zip_files.hpp"
#include "tools/etwgen/schema_events.hpp"

#include <cstdio>

namespace {

using namespace etwrelog;

testing::SyntheticTrace small_trace(testing::TraceOptions options) {
  testing::SyntheticTrace t(options);
  const Guid provider = make_guid(0xAAAA0001, 1, 2, 3, 4);
  t.in_first_buffer(true);
  t.system({1'000'001}, 0x0042, 0, 1, 2);
  t.in_first_buffer(false);
  t.process_rundown({1'000'100}, 100, 4, "a.exe", "a -x");
  t.thread_rundown({1'000'101}, 110, 100);
  t.process_start({1'000'102}, 200, 100, "b.exe", "b", 110);
  t.thread_start({1'000'103}, 210, 200, 110, 100);
  t.image_load({1'000'104}, 200, 0x7FF6'0000'0000, 210);
  t.image_id({1'000'105}, 200, 0x7FF6'0000'0000);
  t.context_switch({2'000'000}, 110, 0);
  t.sample({2'000'001}, 110);
  t.stack_key({2'000'010}, 2'000'001, 100, 110, 0x9000'1000);
  t.ready_thread({2'000'011}, 210);
  t.page_fault({2'000'012});
  t.end_buffer(0);
  t.disk_read({2'000'013, 1}, 210, 0x1000);
  t.file_name({2'000'014, 1}, 0x1000, "\\a");
  t.tcp_send({2'000'015, 1}, 200);
  t.dpc({2'000'016, 1});
  t.trace_logging({2'000'017, 1}, provider, "P", "E", 110, 100);
  t.manifest({2'000'018, 1}, provider, 110, 100,
             "<instrumentationManifest><provider name='P'/></instrumentationManifest>");
  t.metadata({2'000'019, 1}, provider);
  t.clr_stack({2'000'020, 1}, 110, 100, {1, 2});
  t.message({2'000'021, 1}, provider, 110, 100);
  t.stack_definition({2'000'900, 1}, 0x9000'1000, {1, 2});
  t.thread_end({2'001'000, 1}, 210, 200);
  t.process_end({2'001'001, 1}, 200, "b.exe", 210);
  return t;
}

// One for each way of etlz_fuzz that can use one; the first byte chooses it.
void write_archive_seeds(const testing::SyntheticTrace &trace, const std::filesystem::path &folder,
                         const std::string &name) {
  const std::vector<std::uint8_t> bytes = trace.bytes();
  auto write = [&](std::uint8_t way, std::vector<std::uint8_t> seed) {
    seed.insert(seed.begin(), way);
    testing::write_file((folder / (name + "_" + std::to_string(way))).string(), seed);
  };
  std::vector<etlz::Part> parts;
  static_cast<void>(etlz::split_parts(bytes, true, 1u << 20, parts));
  std::vector<std::uint8_t> coded, mixed;
  static_cast<void>(etlz::SegmentCoder().encode(bytes, parts, Level::max, coded));
  write(0, coded);
  coded.clear();
  static_cast<void>(etlz::SegmentCoder().encode(bytes, parts, Level::ultra, coded));
  write(8, coded);
  write(10, bytes);
  write(3, bytes);
  write(7, bytes);
  etlz::MixerSetup setup;
  setup.long_context = 9, setup.short_context = 1, setup.table_bits = 4;
  const std::vector<std::uint8_t> beside(bytes.size(), 7);
  etlz::Mixer().encode(bytes, setup, {beside.data(), nullptr, nullptr}, mixed);
  const auto size = static_cast<std::uint16_t>(bytes.size());
  const std::uint8_t front[] = {
      9, 1, 4, setup.slowest, static_cast<std::uint8_t>(size), static_cast<std::uint8_t>(size >> 8)};
  mixed.insert(mixed.begin(), std::begin(front), std::end(front));
  write(4, mixed);
  if (const Result<pipeline::Trace> opened = testing::open_trace(bytes)) {
    if (const Result<Statistics> statistics = pipeline::collect_statistics(*opened, {})) {
      const std::string record = pipeline::statistics_record(*statistics);
      write(6, std::vector<std::uint8_t>(record.begin(), record.end()));
    }
  }
}

void write_container_seeds(const std::vector<std::uint8_t> &trace, const std::filesystem::path &folder,
                           const std::string &name) {
  const std::vector<std::uint8_t> archive = testing::packed(trace);
  std::vector<std::uint8_t> large = trace; // with an index, which small archives have not
  for (const std::size_t size = trace.size(); large.size() < 300'000;)
    large.insert(large.end(), trace.begin() + 4096, trace.begin() + static_cast<std::ptrdiff_t>(size));
  const testing::ArchiveParts parts = testing::take_apart(testing::packed(large));
  std::uint8_t way = 0;
  for (const std::vector<std::uint8_t> *content : {&parts.entries, &parts.entries, &parts.facts, &archive}) {
    for (const std::uint8_t how : {0, 1, 4, 24}) {
      std::vector<std::uint8_t> seed = {way, how};
      seed.insert(seed.end(), content->begin(), content->end());
      testing::write_file((folder / (name + "_" + std::to_string(way) + "_" + std::to_string(how))).string(),
                          seed);
    }
    ++way;
  }
}

// For deflate_fuzz and wrapper_fuzz; the first byte chooses their way.
void write_wrapper_seeds(const std::filesystem::path &root) {
  const std::vector<std::uint8_t> trace = testing::compressible_trace();
  int number = 0;
  auto write = [&](const char *target, std::uint8_t way, std::vector<std::uint8_t> seed) {
    seed.insert(seed.begin(), way);
    testing::write_file((root / target / std::to_string(number++)).string(), seed);
  };
  const std::vector<std::uint8_t> some(trace.begin(), trace.begin() + 1500);
  for (const int level : {0, 1, 6, 9})
    for (const std::uint8_t by : {0, 21, 45, 192})
      write("deflate", by, testing::deflated(some, {.level = level}));
  write("deflate", 0, testing::deflated(some, {.flush = Z_SYNC_FLUSH, .every = 300}));
  write("deflate", 0, testing::deflated(some, {.strategy = Z_FIXED}));
  std::vector<std::uint8_t> ways = some;
  for (const std::uint8_t way : {6, 61, 89, 129, 9, 31}) {
    ways[0] = way;
    ways[1] = static_cast<std::uint8_t>(way * 7);
    write("deflate", 2, ways);
  }
  // Parameters, sizes of the streams, streams, content: an empty stored block, then a fixed one of 3 tokens.
  std::vector<std::uint8_t> parts = {3, 6, 15, 15, 0, 9, 0, 3, 2, 0, 0, 0, 5, 3, 1, 0, 0, 0, 1, 2, 0, 0};
  parts.insert(parts.end(), some.begin(), some.end());
  write("deflate", 1, parts);

  const std::vector<std::uint8_t> whole = testing::gzip_of(trace);
  write("wrapper", 3, whole);
  write("wrapper", 3, testing::zip_of({{"a.etl", trace}, {"b", some}}));
  const std::vector<std::uint8_t> archive = testing::packed(whole, true);
  const auto input = read::memory_input("seed", archive);
  if (const Result<pipeline::WrapperIndex> index = pipeline::read_wrapper_index(*input)) {
    const auto at = [&archive](std::uint64_t offset) {
      return archive.begin() + static_cast<std::ptrdiff_t>(offset);
    };
    write("wrapper", 2, {at(index->footer.index_at + etlz::kWrapperHeadSize), at(index->recipe_at)});
    const std::vector<std::uint8_t> chunk(at(index->recipe_at + etlz::kChunkHeadSize), at(index->recipe_end));
    write("wrapper", 1, chunk);
    std::array<Bytes, etlz::kRecipeStreams> streams;
    etlz::ChunkCoder coder;
    if (coder.unpack(chunk, streams)) {
      std::vector<std::uint8_t> seed;
      for (const Bytes stream : streams)
        seed.push_back(static_cast<std::uint8_t>(stream.size()));
      for (const Bytes stream : streams)
        seed.insert(seed.end(), stream.begin(), stream.end());
      write("wrapper", 0, seed);
    }
  }
}

// Compressed streams of each codec, as their decoders and predictors take them, and what encoders are given.
void write_codec_seeds(const std::filesystem::path &root) {
  std::vector<std::uint8_t> text, zeros(3000), mixed;
  for (unsigned i = 0; text.size() < 1500; ++i)
    for (const char c : "event " + std::to_string(i * 7919 % 100) + " of the process; ")
      text.push_back(static_cast<std::uint8_t>(c));
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i)
    mixed.push_back(static_cast<std::uint8_t>(i % 3 == 0 ? random() : i / 64));
  // A match at the largest distance that the format has, which Windows never writes (and once met an
  // assertion).
  std::vector<std::uint8_t> far(1700);
  for (std::uint8_t &byte : far)
    byte = static_cast<std::uint8_t>(random());
  std::copy_n(far.begin(), 100, far.end() - 100);
  int number = 0;
  for (const std::vector<std::uint8_t> &content : {text, zeros, mixed, far}) {
    for (const Codec codec : {Codec::lznt1, Codec::xpress, Codec::xpress_huffman}) {
      const char *const folder = codec == Codec::lznt1    ? "lznt1"
                                 : codec == Codec::xpress ? "xpress"
                                                          : "xpress_huffman";
      std::vector<std::uint8_t> stream(2 * content.size() + 1024);
      Compressor compressor(codec, Level::normal, content.size());
      stream.resize(compressor.compress(content, stream).produced);
      std::vector<std::uint8_t> size(2);
      store(size.data(), static_cast<std::uint16_t>(content.size()));
      std::vector<std::uint8_t> seed = size;
      seed.insert(seed.end(), stream.begin(), stream.end());
      testing::write_file((root / folder / std::to_string(number)).string(), seed);
      if (codec == Codec::xpress_huffman) continue;
      for (const std::uint8_t what : {2, 0}) { // encode, and restore with what are no corrections
        std::vector<std::uint8_t> both = {static_cast<std::uint8_t>(what | (codec == Codec::xpress ? 1 : 0))};
        both.insert(both.end(), size.begin(), size.end());
        both.insert(both.end(), content.begin(), content.end());
        both.insert(both.end(), stream.begin(), stream.end());
        testing::write_file(
            (root / "xpress_predictor" / (std::to_string(number) + folder + std::to_string(what))).string(),
            both);
        if (codec != Codec::xpress) continue;
        // By whoever may have written it; and by an encoder of ours, which one byte names.
        both[0] = static_cast<std::uint8_t>(what | 4);
        if (what == 0) both.resize(both.size() - stream.size() + 1), both.back() = 1;
        testing::write_file(
            (root / "xpress_predictor" / (std::to_string(number) + "streams" + std::to_string(what)))
                .string(),
            both);
      }
    }
    for (std::uint8_t choice = 0; choice < 9; ++choice) {
      std::vector<std::uint8_t> seed = {choice, static_cast<std::uint8_t>(choice % 2 == 0 ? 7 : 130)};
      seed.insert(seed.end(), content.begin(), content.begin() + 400);
      testing::write_file(
          (root / "encoders" / (std::to_string(number) + "_" + std::to_string(choice))).string(), seed);
    }
    ++number;
  }
}

// A byte that says what it is, a u16 length, a schema or a condition, and a payload.
void write_text_seed(const std::filesystem::path &file, std::uint8_t what, Bytes text, Bytes payload) {
  std::vector<std::uint8_t> seed(3);
  seed[0] = what;
  store(seed.data() + 1, static_cast<std::uint16_t>(text.size()));
  seed.insert(seed.end(), text.begin(), text.end());
  seed.insert(seed.end(), payload.begin(), payload.end());
  testing::write_file(file.string(), seed);
}

// Schemas of every type with payloads that fit, and conditions with all that these can say.
void write_schema_seeds(const std::filesystem::path &root) {
  int number = 0;
  std::vector<std::uint8_t> info;
  for (const gen::SchemaEvents::One &one : gen::make_schema_events(1, 1000).events)
    static_cast<void>(for_each_event(one.bytes, [&](const EventView &event, std::int64_t, std::uint32_t) {
      if (event.is_classic()) {
        info.assign(event.payload().begin(), event.payload().end());
        return;
      }
      ExtendedItems items = event.items();
      ExtendedItem item{};
      while (items.next(item))
        if (item.type == format::ItemType::schema_tl)
          write_text_seed(root / "schema" / std::to_string(number++), 0, item.data, event.payload());
      if (!info.empty() && event.is_event() && !event.has_items())
        write_text_seed(root / "schema" / std::to_string(number++), 1, std::exchange(info, {}),
                        event.payload());
    }));
  constexpr std::string_view kConditions[] = {"n > 5 and t ~ 'a.*' or not (x = 0x1f)",
                                              "f <= 1.5 and g != '{11223344-5566-7788-99aa-bbccddeeff00}'",
                                              "w >= '2020-01-01' and s.b in (1, 2, 3)",
                                              "a = 7 or z ~ '^S-1-5-'",
                                              "process = 'a.exe' and event !~ 'x' and time < 12.5",
                                              "`n` not in (1, -2) and keyword = 0 or fields.n = true",
                                              "cpu = 0 and (level < 5 or opcode >= 1) and process_id != 4"};
  const std::vector<std::uint8_t> payload(120, 1);
  for (const std::string_view text : kConditions) {
    write_text_seed(root / "where" / std::to_string(number), static_cast<std::uint8_t>(number),
                    {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()}, payload);
    ++number;
  }
}

// Packed, as they are written, and unpacked, where a change of a byte leaves something to read.
void write_exported_profiles(const std::filesystem::path &folder) {
  for (const bool hostile : {false, true}) {
    Profile profile = test_support::synthetic_profile(
        {.samples = 12, .leaves = 3, .slices = true, .hostile_names = hostile});
    profile.slices.resize(3);
    for (const ProfileFormat format :
         {ProfileFormat::speedscope, ProfileFormat::firefox, ProfileFormat::pprof}) {
      std::vector<std::uint8_t> file;
      static_cast<void>(write_profile(profile, format, {}, [&file](Bytes bytes) -> Result<void> {
        file.insert(file.end(), bytes.begin(), bytes.end());
        return {};
      }));
      const std::string name = std::string(profile_format_name(format)) + (hostile ? "_hostile" : "");
      testing::write_file((folder / name).string(), file);
      if (file.size() > 1 && file[0] == 0x1F)
        testing::write_file((folder / (name + "_unpacked")).string(), testing::gunzipped(file));
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds DIRECTORY\n");
    return 2;
  }
  const std::filesystem::path root = argv[1];
  for (const char *name :
       {"scan", "event", "trace", "etlz", "archive", "xpress", "lznt1", "xpress_huffman", "encoders",
        "xpress_predictor", "schema", "where", "deflate", "wrapper", "profile_import"})
    std::filesystem::create_directories(root / name);
  write_codec_seeds(root);
  write_schema_seeds(root);
  write_wrapper_seeds(root);
  write_exported_profiles(root / "profile_import");
  int number = 0;
  for (const unsigned pointers : {4u, 8u})
    for (const Codec codec : {Codec::none, Codec::xpress, Codec::lznt1})
      for (const bool odd : {false, true}) {
        testing::TraceOptions options;
        options.pointer_size = pointers;
        options.buffer_size = 4096;
        options.codec = codec;
        options.windows7 = odd;
        options.closed = !odd;
        options.mode = odd ? format::kModeCircular : format::kModeSequential;
        const testing::SyntheticTrace t = small_trace(options);
        const std::vector<std::uint8_t> bytes = t.bytes();
        const std::string name = std::to_string(number++);
        testing::write_file((root / "scan" / name).string(), bytes);
        std::vector<std::uint8_t> with_choice = {static_cast<std::uint8_t>(number * 37),
                                                 static_cast<std::uint8_t>(number * 91), 0, 5};
        with_choice.insert(with_choice.end(), bytes.begin(), bytes.end());
        testing::write_file((root / "trace" / name).string(), with_choice);
        std::vector<std::uint8_t> events;
        for (std::size_t i = 0; i < t.count(); ++i) {
          events.insert(events.end(), t.event(i).begin(), t.event(i).end());
          events.resize(align8(events.size()));
        }
        testing::write_file((root / "event" / name).string(), events);
        write_archive_seeds(t, root / "etlz", name);
        if (!odd) write_container_seeds(bytes, root / "archive", name);
      }
  return 0;
}
