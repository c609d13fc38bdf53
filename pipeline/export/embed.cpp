// The schemas that a trace lacks, behind its last buffer.
#include "api/internals.hpp"
#include "api/reading.hpp"
#include "base/errors.hpp"
#include "etwrelog/export.hpp"
#include "export/survey.hpp"
#include "schema/event_info_writer.hpp"
#include "schema/event_names.hpp"
#include "write/event_builder.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace etwrelog {
namespace {

using Key = std::tuple<Guid, unsigned, unsigned, unsigned>; // provider, id, version, opcode

struct Wanted {
  const Schema *schema = nullptr;
  schema::EventInfoKey key;
  std::uint64_t events = 0;
  bool several = false; // builds of the provider say different things of it: no one record does
};

struct KindsPart {
  std::map<Key, Wanted> kinds;
  std::int64_t last_time = std::numeric_limits<std::int64_t>::min();
  void clear() { *this = {}; }
};

// What other programs do not know: from files, from EventSource's manifests, which Windows' own tools do not
// read, and of the built-in tables what is no class of the kernel.
bool is_foreign(const EventView &event, const Schema &schema) {
  return event.is_event() && (schema.origin == Origin::added || schema.origin == Origin::manifest ||
                              schema.origin == Origin::builtin);
}

Result<KindsPart> kinds_of(const Trace &trace, const SchemaCatalog &schemas, const RunOptions &run) {
  return trace.fold<KindsPart>(
      [&](KindsPart &part, EventBatch &batch) {
        for (const Event &event : batch) {
          part.last_time = std::max(part.last_time, event.time());
          const Schema *schema = event.is_event() ? schemas.find(event) : nullptr;
          if (schema == nullptr || !is_foreign(event, *schema)) continue;
          Wanted &wanted = part.kinds[{event.provider(), event.id(), event.version(), event.opcode()}];
          if (wanted.schema == nullptr) {
            wanted.schema = schema;
            wanted.key = {
                event.provider(), event.id(),    event.task(),   static_cast<std::uint8_t>(event.version()),
                event.channel(),  event.level(), event.opcode(), event.keyword()};
          }
          wanted.several = wanted.several || wanted.schema != schema;
          ++wanted.events;
        }
      },
      [](KindsPart &total, KindsPart &part) {
        total.last_time = std::max(total.last_time, part.last_time);
        for (auto &[key, wanted] : part.kinds) {
          const auto [at, fresh] = total.kinds.try_emplace(key, wanted);
          if (fresh) continue;
          at->second.events += wanted.events;
          at->second.several = at->second.several || wanted.several || at->second.schema != wanted.schema;
        }
      },
      {}, run);
}

// Buffers for the end of a trace.
class Records {
public:
  Records(std::uint32_t buffer_size, std::int64_t time, std::int64_t filetime)
      : size_(buffer_size), time_(time), filetime_(filetime) {}

  // False if no buffer of this size can hold it.
  bool add(std::uint8_t opcode, Bytes payload) {
    std::vector<std::uint8_t> event;
    write::EventBuilder builder(event);
    builder.classic(format::kMetaDataGuid, opcode, 0, 8, 0, 0, time_);
    for (const std::uint8_t byte : payload)
      builder.put(byte);
    const std::uint32_t event_size = builder.finish();
    if (format::kBufferHeaderSize + event.size() > size_) return false;
    if (format::kBufferHeaderSize + open_.size() + event.size() > size_) close();
    open_.insert(open_.end(), event.begin(), event.end());
    RelogTypeCount &count = counts_[{Family::classic, 0, opcode, format::kMetaDataGuid}];
    ++count.events_out;
    count.bytes_out += event_size;
    return true;
  }
  // `sequence`: of the first one.
  std::string finish(std::int64_t sequence) {
    if (!open_.empty()) close();
    std::string bytes;
    for (std::size_t i = 0; i < closed_.size(); ++i) {
      format::BufferHeader h;
      h.buffer_size = size_;
      h.saved_offset = h.filled_bytes = h.current_offset =
          static_cast<std::uint32_t>(format::kBufferHeaderSize + closed_[i].size());
      h.time_stamp = filetime_;
      h.sequence_number = sequence + static_cast<std::int64_t>(i);
      h.state = format::kStateFlush;
      h.flags = static_cast<std::uint16_t>(format::kFlagProcessorIndex |
                                           (i + 1 == closed_.size() ? format::kFlagFlushMarker : 0));
      h.type = format::kTypeGeneric;
      std::vector<std::uint8_t> buffer(size_, format::kFillByte);
      format::store_buffer_header(buffer.data(), h);
      std::ranges::copy(closed_[i], buffer.begin() + format::kBufferHeaderSize);
      bytes.append(buffer.begin(), buffer.end());
    }
    return bytes;
  }
  // What was added, by type.
  [[nodiscard]] std::vector<RelogTypeCount> counts() const {
    const schema::EventNames names;
    std::vector<RelogTypeCount> all;
    for (const auto &[type, count] : counts_) {
      all.push_back(count);
      all.back().type = type;
      all.back().name = names.name(type);
    }
    return all;
  }
  [[nodiscard]] std::uint32_t buffers() const {
    return static_cast<std::uint32_t>(closed_.size() + (open_.empty() ? 0 : 1));
  }

private:
  void close() { closed_.push_back(std::exchange(open_, {})); }

  std::uint32_t size_;
  std::int64_t time_, filetime_;
  std::vector<std::uint8_t> open_;
  std::vector<std::vector<std::uint8_t>> closed_;
  std::map<EventType, RelogTypeCount> counts_;
};

// Where the last buffer of a file begins, and how many there are.
struct Layout {
  std::uint64_t last_at = 0, size = 0;
  std::uint32_t buffers = 0;
};
Result<Layout> layout_of(const read::Input &file) {
  const std::uint64_t size = file.size();
  Layout layout;
  for (std::uint64_t at = 0; at < size;) {
    std::array<std::uint8_t, format::kBufferHeaderSize> raw{};
    ETWRELOG_TRY_LET(got, file.read_at(at, raw));
    const format::BufferHeader header = format::load_buffer_header(raw.data());
    if (got != raw.size() || header.buffer_size < raw.size() || header.buffer_size > size - at)
      return base::corrupt("buffer " + std::to_string(layout.buffers) + ": BufferSize")
          .in(file.name())
          .at(at);
    layout.last_at = at;
    ++layout.buffers;
    at += header.buffer_size;
  }
  layout.size = size;
  return layout;
}

// The file as it is, but for the header's count and the mark of the last buffer, and the new buffers behind
// it.
Result<void> append_buffers(const read::Input &file, const LogfileHeader &header, const Layout &layout,
                            std::string_view more, std::uint32_t more_buffers, OutputStream &out) {
  std::vector<std::uint8_t> chunk(1u << 20);
  for (std::uint64_t at = 0; at < layout.size;) {
    ETWRELOG_TRY_LET(got, file.read_at(at, chunk));
    if (got == 0) return base::corrupt("ends early").in(file.name()).at(at);
    if (at == 0) {
      const std::size_t event =
          std::min<std::size_t>(got - format::kBufferHeaderSize, align8(header.event_size));
      LogfileHeader patched = header;
      // Buffers that are missing stay missing.
      patched.buffers_written = std::max(header.buffers_written, layout.buffers) + more_buffers;
      patch_logfile_header(MutableBytes(chunk).subspan(format::kBufferHeaderSize, event), patched);
    }
    // The mark may lie across the end of a chunk: byte by byte. Windows sets it on the first and the last
    // buffer.
    constexpr std::uint64_t kFlagsAt = 0x34;
    const std::uint64_t mark = layout.last_at + kFlagsAt;
    if (more_buffers != 0 && layout.buffers > 1 && mark >= at && mark < at + got) {
      std::uint8_t &flags = chunk[static_cast<std::size_t>(mark - at)];
      flags = static_cast<std::uint8_t>(flags & ~format::kFlagFlushMarker);
    }
    ETWRELOG_TRY(out.write(Bytes(chunk).first(got)));
    at += got;
  }
  return out.write(more);
}

} // namespace

Result<EmbedReport> embed_schemas(const Trace &trace, const Output &output, const SchemaCatalog &known,
                                  const RunOptions &run) {
  if (trace.sources().size() != 1 || trace.sources()[0].access != Access::random)
    return base::unsupported("schemas are put into one .etl").about(Option::input);
  const SourceInfo &source = trace.sources()[0];
  ETWRELOG_TRY_LET(survey, pipeline::survey_for_export(trace, known, run));
  ETWRELOG_TRY_LET(found, kinds_of(trace, survey.schemas, run));
  const read::Input &file = detail::Traversal::of(trace).sources[0]->input(); // what the trace is read from
  ETWRELOG_TRY_LET(layout, layout_of(file));
  EmbedReport report;
  Records records(source.header.buffer_size, found.last_time, trace.clock().to_filetime(found.last_time));
  std::set<std::pair<Guid, std::string>> maps;
  for (const auto &[key, wanted] : found.kinds) {
    const auto payload = wanted.several ? std::nullopt : schema::write_event_info(*wanted.schema, wanted.key);
    for (const std::shared_ptr<const ValueMap> &map : wanted.schema->maps)
      if (payload && maps.emplace(wanted.key.provider, map->name).second)
        if (const auto info = schema::write_map_info(*map, wanted.key.provider))
          static_cast<void>(records.add(33, *info)); // numbers without their names, if it has no room
    if (!payload || !records.add(32, *payload)) {
      report.left_out.push_back(std::string(wanted.schema->provider_name) + "/" +
                                std::string(wanted.schema->name));
      continue;
    }
    ++report.kinds;
    report.events += wanted.events;
  }
  const std::uint32_t buffers = records.buffers();
  const std::string more = records.finish(layout.buffers);
  ETWRELOG_TRY_LET(out, pipeline::open_output(trace, output));
  ETWRELOG_TRY(append_buffers(file, source.header, layout, more, buffers, out));
  report.buffers = buffers;
  report.records = records.counts();
  report.bytes = out.size();
  ETWRELOG_TRY(out.commit());
  return report;
}

} // namespace etwrelog
