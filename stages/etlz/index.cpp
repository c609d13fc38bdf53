#include "etlz/index.hpp"

#include "etwrelog/format.hpp"

#include <algorithm>
#include <new>

#include <zstd.h>

namespace etwrelog::etlz {
namespace {

constexpr std::uint8_t kIndexMagic[8] = {'E', 'T', 'L', 'Z', 'i', 'd', 'x', '1'};
constexpr std::size_t kIndexHeaderSize = 24;
constexpr std::size_t kFrame = 1u << 20; // bytes of entries in one, at least; but for the last
constexpr std::size_t kTiny = 4u << 10;  // up to here zstd finds no more when it takes its time

void put_ids(std::vector<std::uint8_t> &out, const std::vector<std::uint32_t> &ids) {
  put_varint(out, ids.size());
  std::uint32_t before = 0;
  for (const std::uint32_t id : ids) {
    put_varint(out, id - before);
    before = id;
  }
}

// What entries may still take. A few bytes of an index can ask for thousands of times as many: nothing is
// allocated that was not taken from here.
struct Room {
  std::uint64_t left = 0;
  bool exceeded = false;
  std::uint64_t lacking = 0; // for what exceeded it
  bool take(std::uint64_t count, std::size_t each) {
    if (!exceeded && count > left / each) {
      exceeded = true;
      lacking = (count > UINT64_MAX / each ? UINT64_MAX : count * each) - left;
    }
    if (!exceeded) left -= count * each;
    return !exceeded;
  }
};

// `least`: bytes that the shortest of the elements has in the index.
template <class T>
bool resize(std::vector<T> &list, std::uint64_t count, std::size_t least, InStream &in, Room &room) {
  if (count > in.rest().size() / least || !room.take(count, sizeof(T))) return false;
  list.resize(count);
  return true;
}

bool get_ids(InStream &in, std::vector<std::uint32_t> &ids, Room &room) {
  if (!resize(ids, get_varint(in), 1, in, room)) return false;
  std::uint64_t id = 0;
  for (std::uint32_t &slot : ids) {
    id += get_varint(in);
    slot = static_cast<std::uint32_t>(id);
  }
  return id <= 0xFFFF'FFFF;
}

// Parts tile the segment, if there are any.
bool get_parts(InStream &in, IndexEntry &e, Room &room) {
  const std::uint64_t count = get_varint(in);
  // Each has at least a byte of the original.
  if (count > e.header.original_size || !resize(e.parts, count, 1, in, room)) return false;
  std::uint64_t at = 0;
  for (Part &part : e.parts) {
    const std::uint64_t v = get_varint(in);
    part = {(v & 1) != 0, at, v >> 1};
    if (part.size == 0 || part.size > kMaxSegment || (part.buffer && part.size < format::kBufferHeaderSize))
      return false;
    at += part.size;
    if (at > kMaxSegment) return false;
  }
  return !in.overrun() && (count == 0 || at == e.header.original_size);
}

// 0 for none, else 1 or 2 and: size of all events; count, then for each its buffer (from the one before), its
// place in it in units of 8, its size; the bytes of the events. With 2 the owners follow.
constexpr std::uint8_t kNoSummary = 0, kSummary = 1, kSummaryWithOwners = 2;

std::uint8_t kind_of(const SegmentSummary &summary, std::uint64_t total) {
  if (!summary.complete || summary.bytes.size() > kMaxSummaries - total) return kNoSummary;
  return summary.owners.complete ? kSummaryWithOwners : kSummary;
}

void put_summary(std::vector<std::uint8_t> &out, const SegmentSummary &summary, std::uint8_t kind) {
  out.push_back(kind);
  if (kind == kNoSummary) return;
  put_varint(out, summary.event_bytes);
  put_varint(out, summary.state.size());
  std::uint32_t buffer = 0;
  for (const SegmentSummary::Event &event : summary.state) {
    put_varint(out, event.buffer - buffer);
    put_varint(out, event.at / 8);
    put_varint(out, event.size);
    buffer = event.buffer;
  }
  out.insert(out.end(), summary.bytes.begin(), summary.bytes.end());
  if (kind != kSummaryWithOwners) return;
  const SegmentSummary::Owners &owners = summary.owners;
  put_varint(out, owners.of_nobody << 1 | (owners.carried ? 1u : 0u));
  put_ids(out, owners.processes);
  put_varint(out, owners.threads.size());
  std::uint32_t before = 0;
  for (const SegmentSummary::Owners::Thread &thread : owners.threads) {
    put_varint(out, thread.id - before);
    before = thread.id;
  }
  for (const SegmentSummary::Owners::Thread &thread : owners.threads)
    put_varint(out, static_cast<std::uint64_t>(thread.from) - static_cast<std::uint64_t>(summary.first_time));
}

bool get_owners(InStream &in, const SegmentSummary &summary, SegmentSummary::Owners &o, Room &room) {
  const std::uint64_t of_nobody = get_varint(in);
  o.complete = true;
  o.carried = (of_nobody & 1) != 0;
  o.of_nobody = of_nobody >> 1;
  constexpr std::size_t kLeast = 2; // an id, a time
  if (!get_ids(in, o.processes, room) || !resize(o.threads, get_varint(in), kLeast, in, room)) return false;
  std::uint64_t id = 0;
  for (SegmentSummary::Owners::Thread &thread : o.threads) {
    id += get_varint(in);
    thread.id = static_cast<std::uint32_t>(id);
  }
  for (SegmentSummary::Owners::Thread &thread : o.threads)
    thread.from = static_cast<std::int64_t>(static_cast<std::uint64_t>(summary.first_time) + get_varint(in));
  return id <= 0xFFFF'FFFF;
}

bool get_summary(InStream &in, IndexEntry &e, Room &room) {
  const std::uint8_t there = in.get();
  if (there == kNoSummary) return !in.overrun();
  SegmentSummary &o = e.summary;
  o.complete = true;
  o.events = e.facts.events;
  o.first_time = e.facts.first_time;
  o.last_time = e.facts.last_time;
  o.event_bytes = get_varint(in);
  const std::uint64_t count = get_varint(in);
  constexpr std::size_t kLeast = 3 + 8; // three numbers, an event
  if (there > kSummaryWithOwners || !resize(o.state, count, kLeast, in, room)) return false;
  std::uint64_t buffer = 0, bytes = 0;
  for (SegmentSummary::Event &event : o.state) {
    buffer += get_varint(in);
    const std::uint64_t at = get_varint(in), size = get_varint(in);
    if (buffer > kMaxSegment || at > format::kMaxBufferSize / 8 || size < 8 || size > format::kMaxEventSize)
      return false;
    event = {static_cast<std::uint32_t>(buffer), static_cast<std::uint32_t>(at * 8),
             static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(bytes)};
    bytes += size;
    if (bytes > kMaxSummaries) return false;
  }
  const Bytes events = in.get(bytes);
  if (!room.take(events.size(), 1)) return false;
  o.bytes.assign(events.begin(), events.end());
  if (events.size() != bytes) return false;
  return (there != kSummaryWithOwners || get_owners(in, o, o.owners, room)) && !in.overrun();
}

// Byte by byte: all first bytes, all second bytes, ...
void put_headers(std::vector<std::uint8_t> &out, const std::vector<std::uint8_t> &headers) {
  for (std::size_t plane = 0; plane < format::kBufferHeaderSize; ++plane)
    for (std::size_t at = plane; at < headers.size(); at += format::kBufferHeaderSize)
      out.push_back(headers[at]);
}

bool get_headers(InStream &in, IndexEntry &e, Room &room) {
  const auto buffers = static_cast<std::size_t>(
      std::count_if(e.parts.begin(), e.parts.end(), [](const Part &p) { return p.buffer; }));
  const Bytes planes = in.get(buffers * format::kBufferHeaderSize);
  if (planes.size() != buffers * format::kBufferHeaderSize || !room.take(planes.size(), 1)) return false;
  e.buffer_headers.resize(planes.size());
  std::size_t from = 0;
  for (std::size_t plane = 0; plane < format::kBufferHeaderSize; ++plane)
    for (std::size_t at = plane; at < planes.size(); at += format::kBufferHeaderSize)
      e.buffer_headers[at] = planes[from++];
  return true;
}

bool get_entry(InStream &in, IndexEntry &e, Room &room) {
  e.header.method = static_cast<SegmentMethod>(in.get());
  if (e.header.method >= SegmentMethod::count_) return false;
  for (std::uint64_t *const v :
       {&e.header.original_at, &e.header.original_size, &e.header.stored_size, &e.header.stream_bytes,
        &e.header.scratch_bytes, &e.facts.events, &e.facts.buffers})
    *v = get_varint(in);
  e.facts.first_time = static_cast<std::int64_t>(get_varint(in));
  e.facts.last_time = static_cast<std::int64_t>(get_varint(in));
  const Bytes hashes = in.get(std::size_t{16});
  if (hashes.size() != 16) return false;
  e.header.payload_hash = load<std::uint64_t>(hashes.data());
  e.header.content_hash = load<std::uint64_t>(hashes.data() + 8);
  return possible(e.header) && get_ids(in, e.facts.processes, room) && get_ids(in, e.facts.threads, room) &&
         get_parts(in, e, room) && get_summary(in, e, room) && get_headers(in, e, room) && !in.overrun();
}

// Varint decoded size, varint stored size, a zstd frame; nothing behind the two zeros of an empty one.
void put_frame(std::vector<std::uint8_t> &out, Bytes content) {
  std::vector<std::uint8_t> packed;
  if (!content.empty()) {
    packed.resize(ZSTD_compressBound(content.size()));
    const std::size_t n = ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(),
                                        content.size() <= kTiny ? 5 : 12);
    if (ZSTD_isError(n) != 0) throw std::bad_alloc(); // nothing else goes wrong with room for the worst case
    packed.resize(n);
  }
  put_varint(out, content.size());
  put_varint(out, packed.size());
  out.insert(out.end(), packed.begin(), packed.end());
}

enum class Got : std::uint8_t { frame, damage, too_large };
// `most`: decoded bytes that this frame can have for any reason; room is taken for it.
Got get_frame(InStream &in, std::uint64_t most, Room &room, std::vector<std::uint8_t> &content) {
  const std::uint64_t size = get_varint(in), stored = get_varint(in);
  const Bytes packed = in.get(static_cast<std::size_t>(std::min<std::uint64_t>(stored, SIZE_MAX)));
  if (packed.size() != stored || in.overrun() || size > most) return Got::damage;
  // zstd's frames tell the size too: nothing is allocated on the word of the index alone.
  if (size != 0 && ZSTD_getFrameContentSize(packed.data(), packed.size()) != size) return Got::damage;
  if (!room.take(size, 1)) return Got::too_large;
  content.resize(size);
  const bool good = size == 0 ? packed.empty()
                              : ZSTD_decompress(content.data(), size, packed.data(), packed.size()) == size;
  return good ? Got::frame : Got::damage;
}

bool read_entries(Bytes frame, std::vector<IndexEntry> &entries, std::uint64_t most, Room &room) {
  std::uint64_t archive_at = kFileHeaderSize;
  if (!entries.empty())
    archive_at = entries.back().archive_at + kSegmentHeaderSize + entries.back().header.stored_size;
  InStream in(frame);
  while (!in.at_end()) {
    // Twice, because a list grows by moving to one of twice the size.
    if (entries.size() == most || !room.take(2, sizeof(IndexEntry))) return false;
    IndexEntry &e = entries.emplace_back();
    e.archive_at = archive_at;
    if (!get_entry(in, e, room)) return false;
    archive_at += kSegmentHeaderSize + e.header.stored_size;
  }
  return true;
}

} // namespace

void IndexWriter::add(const IndexEntry &e) {
  if (list_.size() >= kFrame) {
    put_frame(frames_, list_);
    list_.clear();
  }
  list_.push_back(static_cast<std::uint8_t>(e.header.method));
  for (const std::uint64_t v :
       {e.header.original_at, e.header.original_size, e.header.stored_size, e.header.stream_bytes,
        e.header.scratch_bytes, e.facts.events, e.facts.buffers,
        static_cast<std::uint64_t>(e.facts.first_time), static_cast<std::uint64_t>(e.facts.last_time)})
    put_varint(list_, v);
  list_.resize(list_.size() + 16);
  store(list_.data() + list_.size() - 16, e.header.payload_hash);
  store(list_.data() + list_.size() - 8, e.header.content_hash);
  if (count_ == 0) ids_at_ = list_.size();
  const std::uint8_t summary = kind_of(e.summary, summaries_);
  const bool told = summary == kSummaryWithOwners; // with more, behind the summary
  put_ids(list_, told ? std::vector<std::uint32_t>() : e.facts.processes);
  put_ids(list_, told ? std::vector<std::uint32_t>() : e.facts.threads);
  if (count_ == 0) ids_size_ = list_.size() - ids_at_;
  put_varint(list_, e.parts.size());
  for (const Part &part : e.parts)
    put_varint(list_, part.size << 1 | (part.buffer ? 1u : 0u));
  if (summary != kNoSummary) summaries_ += e.summary.bytes.size();
  put_summary(list_, e.summary, summary);
  put_headers(list_, e.buffer_headers);
  ++count_;
}

void IndexWriter::finish(Bytes facts, std::vector<std::uint8_t> &out) {
  if (count_ == 1 && !part_) { // two counts of none instead
    const auto ids = list_.begin() + static_cast<std::ptrdiff_t>(ids_at_);
    list_.erase(ids, ids + static_cast<std::ptrdiff_t>(ids_size_));
    list_.insert(list_.begin() + static_cast<std::ptrdiff_t>(ids_at_), 2, std::uint8_t{0});
  }
  if (!list_.empty()) put_frame(frames_, list_);
  const std::size_t at = out.size();
  out.resize(at + kIndexHeaderSize);
  put_varint(out, count_);
  out.insert(out.end(), frames_.begin(), frames_.end());
  put_frame(out, facts.size() <= kMaxFacts ? facts : Bytes());
  std::uint8_t *const header = out.data() + at;
  std::memcpy(header, kIndexMagic, 8);
  store(header + 8, hash64(Bytes(out).subspan(at + kIndexHeaderSize)));
  seal(header, kIndexHeaderSize);
}

bool begins_index(Bytes bytes) {
  return bytes.size() >= kIndexHeaderSize && std::memcmp(bytes.data(), kIndexMagic, 8) == 0 &&
         sealed(bytes, kIndexHeaderSize);
}

bool read_index_entries(Bytes frame, std::vector<IndexEntry> &entries, std::uint64_t memory) {
  Room room{memory};
  return read_entries(frame, entries, SIZE_MAX, room);
}

Result<Index> read_index(Bytes bytes, const IndexLimits &limits) {
  if (!begins_index(bytes) ||
      load<std::uint64_t>(bytes.data() + 8) != hash64(bytes.subspan(kIndexHeaderSize)))
    return corrupt("index: checksum mismatch");
  Room room{limits.memory};
  auto failed = [&]() {
    Error e = corrupt("index: damaged");
    if (!room.exceeded) return e;
    e.kind = ErrorKind::limit;
    e.option = Option::memory;
    e.what = "the index takes more memory than allowed";
    // There may be more behind what was one too many.
    const std::uint64_t least =
        room.lacking > UINT64_MAX - limits.memory ? UINT64_MAX : limits.memory + room.lacking;
    e.expected = "at least " + std::to_string(least) + " bytes of memory";
    e.found = std::to_string(limits.memory);
    e.advice = Advice::raise_memory;
    return e;
  };
  InStream in(bytes.subspan(kIndexHeaderSize));
  Index index;
  std::vector<std::uint8_t> list;
  const std::uint64_t count = get_varint(in);
  if (count > limits.segments) return failed();
  // What one segment says: fixed numbers; some bytes for each byte of the original, or for each process and
  // thread that an event in it names, of which a byte of a compressed buffer cannot make many; events of the
  // summaries.
  constexpr std::uint64_t kEach = 4096, kFactor = 64;
  const std::uint64_t most = limits.original / kFactor > (UINT64_MAX >> 16)
                                 ? UINT64_MAX
                                 : kEach * count + kFactor * limits.original + kMaxSummaries;
  while (index.segments.size() < count) {
    const std::uint64_t before = room.left;
    if (get_frame(in, most, room, list) != Got::frame || list.empty()) return failed();
    const std::uint64_t frame = before - room.left;
    if (!read_entries(list, index.segments, count, room)) return failed();
    room.left += frame; // the next one comes in its place
  }
  if (get_frame(in, kMaxFacts, room, index.facts) != Got::frame) return failed();
  if (index.segments.size() != count || !in.at_end()) return failed();
  return index;
}

} // namespace etwrelog::etlz
