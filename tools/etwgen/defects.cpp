#include "defects.hpp"

#include "base/platform.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>

namespace etwrelog::gen {
namespace {

constexpr std::string_view kNames[] = {"cut-tail",   "unclosed",     "zero-saved-offset",
                                       "bit-flips",  "lost-buffers", "out-of-order",
                                       "clock-jump", "pid-reuse",    "foreign-bytes"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Defect::count_));

// Where each is done: far enough apart that none hides another.
constexpr std::uint64_t kZeroSavedAt = 2, kFlipMarkerAt = 4, kFlipPayloadAt = 5, kForeignAfter = 6,
                        kOutOfOrderAt = 8, kLostFrom = 10, kLostTo = 11;
constexpr std::size_t kForeignBytes = 333;

struct EventAt {
  std::uint32_t at, size;
  std::int64_t time;
};
std::vector<EventAt> events_of(const write::OutputBuffer &buffer) {
  std::vector<EventAt> found;
  const Bytes events =
      Bytes(buffer.bytes).subspan(format::kBufferHeaderSize, buffer.valid_bytes - format::kBufferHeaderSize);
  for_each_event(events, [&](const EventView &e, std::int64_t time, std::uint32_t at) {
    found.push_back({static_cast<std::uint32_t>(format::kBufferHeaderSize + at),
                     static_cast<std::uint32_t>(align8(e.size())), time});
  });
  return found;
}

Error refusal(std::string what, std::string wanted) {
  Error error;
  error.kind = ErrorKind::usage;
  error.what = std::move(what);
  error.expected = std::move(wanted);
  return error;
}

} // namespace

std::string_view defect_name(Defect defect) {
  return kNames[static_cast<std::size_t>(defect)];
}

std::optional<Defect> find_defect(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Defect>(found - std::begin(kNames));
}

bool DefectSink::wants(Defect defect) const {
  return std::ranges::find(defects_, defect) != defects_.end();
}

void DefectSink::plant(Defect defect, std::uint64_t offset, std::uint64_t unreadable, std::uint64_t bytes,
                       std::string what) {
  done_.push_back({defect, index_, offset, unreadable, bytes, std::move(what)});
}

Result<void> DefectSink::begin(const LogfileHeader &header, const write::HeaderBuffer &first) {
  compressed_ = (header.log_file_mode & format::kModeCompressed) != 0;
  offset_ = compressed_ ? (first.size() + format::kHeaderBufferGranule - 1) / format::kHeaderBufferGranule *
                              format::kHeaderBufferGranule
                        : header.buffer_size;
  if (compressed_)
    for (const Defect d : {Defect::bit_flips, Defect::out_of_order, Defect::lost_buffers, Defect::cut_tail})
      if (wants(d))
        return refusal(std::string(defect_name(d)) + ": what it hides cannot be told in a compressed buffer",
                       "--codec none");
  return out_.begin(header, first);
}

Result<void> DefectSink::append(const write::OutputBuffer &buffer) {
  if (held_)
    if (Result<void> passed = pass_on(false); !passed) return passed;
  held_ = buffer;
  return {};
}

Result<void> DefectSink::pass_on(bool last) {
  ++index_;
  damage(*held_, last);
  if (held_->bytes.empty()) return {};
  offset_ += held_->bytes.size();
  return out_.append(*held_);
}

void DefectSink::damage(write::OutputBuffer &b, bool last) {
  if (wants(Defect::zero_saved_offset) && index_ == kZeroSavedAt) {
    format::BufferHeader h = format::load_buffer_header(b.bytes.data());
    h.saved_offset = 0;
    format::store_buffer_header(b.bytes.data(), h);
    plant(Defect::zero_saved_offset, offset_, 0, 0, "SavedOffset 0, Offset kept");
  }
  if (wants(Defect::bit_flips) && (index_ == kFlipMarkerAt || index_ == kFlipPayloadAt)) {
    const std::vector<EventAt> events = events_of(b);
    const std::size_t middle = events.size() / 2;
    if (index_ == kFlipMarkerAt) {
      const std::size_t at = events[middle].at + 3; // of the byte that marks an event
      b.bytes[at] ^= 0x80;
      plant(Defect::bit_flips, offset_ + at, events.size() - middle, 1, "marker of an event");
    } else {
      const std::size_t at = events[middle].at + events[middle].size - 8;
      b.bytes[at] ^= 0x10;
      plant(Defect::bit_flips, offset_ + at, 0, 1, "payload of an event");
    }
  }
  if (wants(Defect::out_of_order) && index_ == kOutOfOrderAt) {
    const std::vector<EventAt> events = events_of(b);
    for (std::size_t i = events.size() / 2; i + 1 < events.size(); ++i) {
      if (events[i].time == events[i + 1].time) continue;
      const auto first = b.bytes.begin() + events[i].at;
      std::rotate(first, first + events[i].size, first + events[i].size + events[i + 1].size);
      plant(Defect::out_of_order, offset_ + events[i].at, 0, 0, "two events changed places");
      break;
    }
  }
  if (wants(Defect::foreign_bytes) && index_ == kForeignAfter) {
    plant(Defect::foreign_bytes, offset_ + b.bytes.size(), 0, kForeignBytes, "text after a buffer");
    const std::size_t before = b.bytes.size();
    b.bytes.resize(before + kForeignBytes);
    for (std::size_t i = 0; i < kForeignBytes; ++i)
      b.bytes[before + i] = static_cast<std::uint8_t>("not a buffer header; "[i % 21]);
  }
  if (wants(Defect::lost_buffers) && index_ >= kLostFrom && index_ <= kLostTo && !last) {
    plant(Defect::lost_buffers, offset_, events_of(b).size(), b.bytes.size(), "buffer left out");
    b.bytes.clear();
  }
  if (wants(Defect::cut_tail) && last) {
    const std::vector<EventAt> events = events_of(b);
    const std::size_t keep = format::kBufferHeaderSize + (b.valid_bytes - format::kBufferHeaderSize) / 2 + 3;
    const auto whole = static_cast<std::uint64_t>(
        std::ranges::count_if(events, [keep](const EventAt &e) { return e.at + e.size <= keep; }));
    plant(Defect::cut_tail, offset_ + keep, events.size() - whole, b.bytes.size() - keep, "file ends here");
    b.bytes.resize(keep);
  }
}

Result<void> DefectSink::end() {
  if (held_)
    if (Result<void> passed = pass_on(true); !passed) return passed;
  for (const Defect d : defects_) {
    if (d == Defect::unclosed || d == Defect::clock_jump || d == Defect::pid_reuse) continue;
    if (std::ranges::find(done_, d, &Planted::defect) == done_.end())
      return refusal(std::string(defect_name(d)) + ": the trace has too few buffers for it",
                     "a larger --size");
  }
  return {};
}

std::string DefectSink::planted(const Generated &g) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Planted &p : done_)
    list.push_back({{"defect", defect_name(p.defect)},
                    {"buffer", p.buffer},
                    {"offset", p.offset},
                    {"bytes", p.bytes},
                    {"events_unreadable", p.events_unreadable},
                    {"what", p.what}});
  if (wants(Defect::unclosed))
    list.push_back({{"defect", "unclosed"}, {"buffer", 0}, {"offset", 0}, {"events_unreadable", 0}});
  if (wants(Defect::clock_jump))
    list.push_back({{"defect", "clock-jump"},
                    {"time", g.clock_jump_at},
                    {"ticks", g.clock_jump_ticks},
                    {"events_unreadable", 0}});
  if (wants(Defect::pid_reuse))
    list.push_back({{"defect", "pid-reuse"},
                    {"pid", g.pid_reuse.pid},
                    {"ended", g.pid_reuse.ended},
                    {"started", g.pid_reuse.started},
                    {"events_unreadable", 0}});
  return list.dump();
}

Result<void> unclose(const std::string &path) {
  auto failure = [&path] {
    Error error;
    error.kind = ErrorKind::io;
    error.file = path;
    error.what = "cannot be patched";
    return error;
  };
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  std::array<std::uint8_t, 4096> first{};
  if (!file.read(reinterpret_cast<char *>(first.data()), first.size())) return failure();
  const MutableBytes events = MutableBytes(first).subspan(format::kBufferHeaderSize);
  Result<LogfileHeader> header = Error{};
  std::uint32_t size = 0;
  for_each_event(events, [&](const EventView &e, std::int64_t, std::uint32_t at) {
    if (at != 0) return;
    header = read_logfile_header(e);
    size = e.size();
  });
  if (!header) return header.error();
  // Where the last buffer begins, before its number is gone.
  std::uint64_t last = 0, at = 0;
  file.seekg(0, std::ios::end);
  const auto end = static_cast<std::uint64_t>(file.tellg());
  for (std::uint32_t n = 0; at + format::kBufferHeaderSize <= end && n < header->buffers_written; ++n) {
    std::array<std::uint8_t, format::kBufferHeaderSize> raw{};
    file.seekg(static_cast<std::streamoff>(at));
    if (!file.read(reinterpret_cast<char *>(raw.data()), raw.size())) return failure();
    const format::BufferHeader h = format::load_buffer_header(raw.data());
    if (h.buffer_size < format::kBufferHeaderSize) break; // foreign bytes of another defect: the marker stays
    last = at;
    at += h.buffer_size;
    if (n + 1 < header->buffers_written) continue;
    format::BufferHeader marked = h;
    marked.flags &= static_cast<std::uint16_t>(~format::kFlagFlushMarker);
    format::store_buffer_header(raw.data(), marked);
    file.seekp(static_cast<std::streamoff>(last));
    file.write(reinterpret_cast<const char *>(raw.data()), raw.size());
  }
  header->end_time = 0;
  header->buffers_written = 1;
  patch_logfile_header(events.first(size), *header);
  file.seekp(0);
  file.write(reinterpret_cast<const char *>(first.data()), first.size());
  if (!file.flush()) return failure();
  return {};
}

} // namespace etwrelog::gen
