// The archive reader must survive any bytes, and what the model encodes it must give back.
//
// The first byte chooses: the segment decoders on raw bytes, the model alone behind a packed set of streams
// or a coupled code, the container, round trips of the bytes as a trace; or what checksums keep mutations
// from: a mixed stream, the entries of an index, its statistics; and small archives.
#include "archive/archive.hpp"
#include "archive/tally.hpp"
#include "base/output_file.hpp"
#include "etlz/backend/mixer.hpp"
#include "etlz/model/model.hpp"
#include "passes/statistics.hpp"

#include <cstdlib>

namespace {

using namespace etwrelog;

void decode_segment(Bytes data, etlz::SegmentMethod method, std::size_t limit) {
  etlz::SegmentCoder coder;
  std::vector<std::uint8_t> out(4096);
  static_cast<void>(coder.decode(method, data, out, limit, 1u << 17));
}

// A table as it is, and the code of a coupled segment: mutations reach the model instead of the table's
// coder.
void decode_coupled(Bytes data) {
  static etlz::ContextModel contexts;
  etlz::CoupledDecoder model;
  etlz::InStream source(data);
  const std::size_t table_size = std::min<std::size_t>(source.get() * 8u, source.rest().size());
  etlz::InStream table(source.get(table_size));
  if (!model.read_table(table) || model.types().empty()) return;
  model.set_object_bound(1u << 20);
  model.start_code(contexts, etlz::ContextModel::kLeastBits, source.rest());
  std::vector<std::uint8_t> out(2048);
  for (std::uint16_t cpu = 0; cpu < 3; ++cpu)
    if (!model.decode_events(out, out.size(), cpu)) return;
}

// Streams behind a valid directory, so that mutations reach the model instead of the entropy coder.
void decode_streams(Bytes data) {
  etlz::ModelDecoder model;
  etlz::InStream source(data);
  const std::size_t table_size = std::min<std::size_t>(source.get() * 8u, source.rest().size());
  etlz::InStream table(source.get(table_size));
  if (!model.read_table(table) || model.types().empty()) return;
  model.set_object_bound(1u << 20);
  const Bytes rest = source.rest();
  auto &streams = model.streams();
  // The rest of the input is dealt out to the streams in turn.
  std::vector<std::vector<std::uint8_t>> dealt(streams.size());
  for (std::size_t i = 0; i < rest.size(); ++i)
    dealt[(i * 7) % streams.size()].push_back(rest[i]);
  for (std::size_t i = 0; i < streams.size(); ++i)
    streams[i] = etlz::InStream(Bytes(dealt[i]));
  model.bits() = etlz::BitReader(rest);
  std::vector<std::uint8_t> out(2048);
  for (std::uint16_t cpu = 0; cpu < 3; ++cpu)
    if (!model.decode_events(out, out.size(), cpu)) return;
}

void read_archive(Bytes data) {
  const auto input = read::memory_input("fuzz", std::vector<std::uint8_t>(data.begin(), data.end()));
  pipeline::ArchiveOptions options;
  options.run.threads = 1;
  options.run.memory = 16u << 20;
  static_cast<void>(pipeline::unpack_file(*input, nullptr, options));
  options.salvage = true;
  static_cast<void>(pipeline::unpack_file(*input, nullptr, options));
  for (const std::size_t size : {etlz::kFileHeaderSize, etlz::kSegmentHeaderSize, etlz::kFooterSize}) {
    if (data.size() < size) continue;
    static_cast<void>(etlz::read_segment_header(data.first(size)));
    static_cast<void>(etlz::read_footer(data.first(size)));
  }
  static_cast<void>(etlz::read_index(data, {1u << 24, 1000, 1u << 24}));
}

void decode_mixed(Bytes data) {
  etlz::InStream source(data);
  etlz::MixerSetup setup;
  for (std::uint8_t *const b : {&setup.long_context, &setup.short_context, &setup.table_bits, &setup.slowest})
    *b = source.get();
  const std::size_t size = source.get() | static_cast<std::size_t>(source.get()) << 8;
  std::vector<std::uint8_t> beside(size, 7), out(size);
  etlz::Mixer mixer;
  static_cast<void>(mixer.decode(source.rest(), setup, {beside.data(), beside.data(), beside.data()}, out));
}

void read_entries(Bytes data) {
  std::vector<etlz::IndexEntry> entries;
  if (!etlz::read_index_entries(data, entries, 1u << 26)) return;
  for (const etlz::IndexEntry &e : entries)
    for (const SegmentSummary::Event &event : e.summary.state)
      if (event.from + event.size > e.summary.bytes.size()) std::abort();
}

void read_statistics(Bytes data) {
  const std::string_view text(reinterpret_cast<const char *>(data.data()), data.size());
  const auto s = pipeline::read_statistics_record(text);
  if (s && s->by_instance.size() != s->processes.size()) std::abort();
  static_cast<void>(pipeline::read_tally(data));
  if (const auto tally = pipeline::read_coded_tally(data); tally && pipeline::write_tally(*tally).empty())
    std::abort();
}

void small_archives(Bytes data) {
  etlz::SegmentCoder coder;
  std::vector<std::uint8_t> out(4096), coded;
  static_cast<void>(coder.decode_small(data, out, 1u << 14)); // little: it takes microseconds a byte
  std::vector<etlz::Part> parts;
  if (etlz::split_parts(data, true, SIZE_MAX, parts) != data.size()) std::abort();
  if (!coder.encode_small(
          data, parts, 1u << 14, [](Bytes) { return true; }, coded))
    return;
  std::vector<std::uint8_t> back(data.size());
  if (!coder.decode_small(coded, back, 1u << 20)) std::abort();
  if (!data.empty() && std::memcmp(back.data(), data.data(), data.size()) != 0) std::abort();
}

void round_trip(Bytes data, Level level) {
  std::vector<etlz::Part> parts;
  std::size_t done = 0;
  while (done < data.size()) {
    const Bytes rest = data.subspan(done);
    const std::size_t n = etlz::split_parts(rest, true, 1u << 16, parts);
    if (n == 0) std::abort();
    etlz::SegmentCoder coder;
    std::vector<std::uint8_t> coded;
    etlz::SegmentFacts facts;
    const etlz::SegmentMethod method = coder.encode(rest.first(n), parts, level, coded, &facts);
    std::vector<std::uint8_t> back(n);
    if (!coder.decode(method, coded, back, facts.stream_bytes, facts.scratch_bytes)) std::abort();
    if (std::memcmp(back.data(), rest.data(), n) != 0) std::abort();
    done += n;
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes rest(data + 1, size - 1);
  switch (data[0] & 15) {
  case 0: decode_segment(rest, etlz::SegmentMethod::model, 1u << 20); break;
  case 1: decode_streams(rest); break;
  case 2: read_archive(rest); break;
  case 3: small_archives(rest); break;
  case 4: decode_mixed(rest); break;
  case 5: read_entries(rest); break;
  case 6: read_statistics(rest); break;
  case 8: decode_segment(rest, etlz::SegmentMethod::coupled, 16u << 20); break;
  case 9: decode_coupled(rest); break;
  case 10: round_trip(rest, Level::ultra); break;
  default: round_trip(rest, Level::max);
  }
  return 0;
}
