#include "source/trace.hpp"

#include "base/errors.hpp"
#include "etlz/container.hpp"
#include "read/unwrap.hpp"
#include "source/archive_input.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace format;

namespace {

// The strictest first: XPRESS data never passes as LZNT1, and neither passes as Huffman's table and code.
constexpr std::array kCodecs = {Codec::lznt1, Codec::xpress, Codec::xpress_huffman};
constexpr std::size_t kDetectionTries = 8;

} // namespace

Result<std::vector<OpenedInput>> open_sources(const etwrelog::Input &input, const RunOptions &run) {
  const auto may_be_trace = [&input](Bytes head) -> Result<void> {
    if (read::wrapping_of(head) != read::Wrapping::none || etlz::is_archive(head)) return {};
    if (etlz::is_part(head)) return base::unsupported(etlz::kIsPart).in(input.name());
    if (read::salvage_first_event(head, input.name())) return {};
    ETWRELOG_TRY(read::read_first_event(head, input.name()));
    return {};
  };
  ETWRELOG_TRY_LET(inputs, read::open_inputs(input, run, may_be_trace));
  std::vector<OpenedInput> all;
  for (std::unique_ptr<read::Input> &bytes : inputs) {
    if (!is_archive(*bytes)) {
      if (is_part(*bytes)) return base::unsupported(etlz::kIsPart).in(bytes->name());
      all.push_back({std::move(bytes), false});
      continue;
    }
    ETWRELOG_TRY_LET(traces, open_archives(std::move(bytes), run.memory));
    for (std::unique_ptr<read::Input> &trace : traces) {
      if (read::wrapping_of(*trace) == read::Wrapping::none) {
        all.push_back({std::move(trace), true});
        continue;
      }
      // A compressed file that could not be packed as the trace in it, and was kept as it is.
      ETWRELOG_TRY_LET(unwrapped, read::unwrap(*trace, run));
      for (std::unique_ptr<read::Input> &inner : unwrapped)
        all.push_back({std::move(inner), false});
    }
  }
  return all;
}

namespace {

// Of a first buffer whose own says nothing: Windows never compresses it.
BufferHeader rebuilt_header(const read::BufferSpan &span) {
  BufferHeader header;
  header.buffer_size = span.size;
  header.saved_offset = header.current_offset = header.filled_bytes =
      static_cast<std::uint32_t>(kBufferHeaderSize + span.decoded);
  header.flags = kFlagFlushMarker;
  header.type = kTypeHeader;
  return header;
}

} // namespace

Result<Trace> Trace::open(const std::string &name, const read::ScanOptions &options) {
  Result<std::unique_ptr<read::Input>> input = read::open_input(name);
  if (!input) return std::move(input).error();
  if (is_archive(**input)) input = open_archive(std::move(*input));
  if (!input) return std::move(input).error();
  return open(std::move(*input), options);
}

Result<Trace> Trace::open(std::unique_ptr<read::Input> input, const read::ScanOptions &options) {
  ETWRELOG_TRY_LET(scan, read::scan_buffers(*input, options));
  Trace trace;
  trace.index_ = dynamic_cast<const IndexedInput *>(input.get());
  trace.input_ = std::move(input);
  trace.scan_ = std::move(scan);
  trace.clock_ = trace.scan_.header.clock();
  trace.salvage_ = options.salvage;
  if (trace.salvage_ && trace.index_ != nullptr) ETWRELOG_TRY(trace.step_over_lost(options.stop));
  ETWRELOG_TRY(trace.detect_codec());
  return trace;
}

Result<void> Trace::step_over_lost(const std::stop_token &stop) {
  ETWRELOG_TRY_LET(lost, index_->lost(stop));
  std::erase_if(scan_.buffers, [&](const read::BufferSpan &span) { // they are in order
    const auto behind = std::ranges::lower_bound(lost, span.offset + span.size, {}, &Skipped::offset);
    return behind != lost.begin() && std::prev(behind)->offset + std::prev(behind)->bytes > span.offset;
  });
  std::ranges::move(lost, std::back_inserter(scan_.skipped));
  return {};
}

Result<void> Trace::detect_codec() {
  std::size_t tries = 0;
  std::vector<std::uint8_t> stored, events;
  for (const read::BufferSpan &span : scan_.buffers) {
    if (span.cut || !span.compressed) continue;
    stored.resize(span.size - kBufferHeaderSize);
    events.resize(span.decoded);
    if (const Result<std::size_t> got = input_->read_at(span.offset + kBufferHeaderSize, stored); !got)
      return got.error();
    if (const std::optional<Codec> codec = decode_events(codec_, stored, events)) {
      codec_ = *codec;
      return {};
    }
    if (++tries == kDetectionTries) break;
  }
  return {};
}

std::optional<Codec> decode_events(Codec expected, Bytes stored, MutableBytes events) {
  if (expected != Codec::none && decompress(expected, stored, events)) return expected;
  for (const Codec codec : kCodecs)
    if (codec != expected && decompress(codec, stored, events)) return codec;
  return std::nullopt;
}

std::uint64_t Trace::stored_bytes() const {
  std::uint64_t sum = 0;
  for (const read::BufferSpan &span : scan_.buffers)
    sum += span.size;
  return sum;
}

std::uint64_t Trace::decoded_bytes() const {
  std::uint64_t sum = 0;
  for (const read::BufferSpan &span : scan_.buffers)
    sum += kBufferHeaderSize + span.decoded;
  return sum;
}

Error Trace::undecodable(const read::BufferSpan &span, std::size_t index) const {
  const std::uint64_t at = span.offset + kBufferHeaderSize;
  const Codec shown = codec_ == Codec::none ? Codec::xpress : codec_;
  std::vector<std::uint8_t> stored(span.size - kBufferHeaderSize), events(span.decoded);
  (void)input_->read_at(at, stored);
  const CodecResult result = decompress(shown, stored, events);
  return base::corrupt(fmt::format("buffer {}: compressed data", index))
      .in(input_->name())
      .at(at)
      .expected(fmt::format("{} bytes that decode to {}", stored.size(), span.decoded))
      .found(fmt::format("{} at byte {} of the {} data (no other codec fits either)",
                         codec_status_text(result.status), result.consumed, codec_name(shown)))
      .advise(Advice::salvage);
}

namespace {

// From where in `memory` bytes stand at the same place in a cache line as in the file, and so in its page:
// the system's copying takes 1.7 times as long to a place 16 bytes further, 4 times 8 bytes further (AMD Zen
// 4).
MutableBytes placed_as(std::uint64_t offset, MutableBytes memory) {
  return memory.subspan((offset - reinterpret_cast<std::uintptr_t>(memory.data())) % kCacheLine);
}

} // namespace

MutableBytes Trace::fetch(Batch &batch, std::span<const read::BufferSpan> spans,
                          std::size_t raw_bytes) const {
  batch.raw.resize(raw_bytes + kCacheLine - 1);
  const MutableBytes raw = placed_as(spans[0].offset, batch.raw).first(raw_bytes);
  // Buffers that follow each other in the file come in with one read.
  std::size_t at = 0;
  for (std::size_t i = 0; i < spans.size();) {
    std::size_t bytes = spans[i].size, next = i + 1;
    if (summarized(spans[i])) { // comes from the index
      at += bytes;
      i = next;
      continue;
    }
    for (; next < spans.size() && spans[next].offset == spans[next - 1].offset + spans[next - 1].size &&
           !summarized(spans[next]);
         ++next)
      bytes += spans[next].size;
    if (!read_exactly(batch, spans[i].offset, raw.subspan(at, bytes))) return {};
    at += bytes;
    i = next;
  }
  return raw;
}

bool Trace::read_exactly(Batch &batch, std::uint64_t offset, MutableBytes into) const {
  Result<void> read = base::read_whole(*input_, offset, into);
  if (read) return true;
  batch.error = std::move(read).error();
  return false;
}

namespace {

// Behind the last of the stretches from the `i`th on that are read together, with what lies between.
std::size_t read_together(Stretches stretches, std::size_t i) {
  constexpr std::uint32_t kNear = 4096;
  std::size_t next = i + 1;
  while (next < stretches.size() && stretches[next].begin - stretches[next - 1].end < kNear)
    ++next;
  return next;
}

} // namespace

std::size_t Trace::room_for(Stretches stretches) {
  return stretches.back().end - stretches.front().begin + kCacheLine;
}

bool Trace::load_again(Batch &batch, DecodedBuffer &buffer, Stretches stretches, MutableBytes room) const {
  const std::uint32_t origin = stretches.front().begin;
  const std::uint64_t in_file = buffer.file_offset + kBufferHeaderSize;
  const MutableBytes content = placed_as(in_file + origin, room);
  const auto events_end = static_cast<std::uint32_t>(buffers()[buffer.index].decoded);
  for (std::size_t i = 0, next = 0; i < stretches.size(); i = next) {
    next = read_together(stretches, i);
    const std::uint32_t begin = stretches[i].begin, end = stretches[next - 1].end;
    const std::uint32_t there = std::min(end, events_end);
    if (!read_exactly(batch, in_file + begin, content.subspan(begin - origin, there - begin))) return false;
    std::ranges::fill(content.subspan(there - origin, end - there), std::uint8_t{0});
  }
  std::uint8_t *to = content.data() + (stretches.front().end - origin);
  for (const Stretch &stretch : stretches.subspan(1)) {
    const std::size_t size = stretch.end - stretch.begin;
    std::memmove(to, content.data() + (stretch.begin - origin), size);
    to += size;
  }
  buffer.events = content.first(static_cast<std::size_t>(to - content.data()));
  return true;
}

const SummarizedSegment *Trace::summarized(const read::BufferSpan &span) const {
  if (summarized_.empty()) return nullptr;
  const auto after = std::ranges::upper_bound(summarized_, span.offset, {}, &SummarizedSegment::begin);
  if (after == summarized_.begin()) return nullptr;
  const SummarizedSegment &stretch = *(after - 1);
  return span.offset < stretch.end ? &stretch : nullptr;
}

Trace Trace::without(const std::function<bool(const SummarizedSegment &)> &out) const {
  Trace narrowed(*this);
  if (has_index()) narrowed.leave_out(out);
  return narrowed;
}

Trace Trace::within(std::int64_t from, std::int64_t to) const {
  return without(
      [&](const SummarizedSegment &o) { return o.summary->first_time > to || o.summary->last_time < from; });
}

std::uint64_t Trace::buffers_left_out() const {
  std::uint64_t sum = 0;
  for (const SummarizedSegment &o : summarized_)
    sum += o.buffers.size();
  return sum;
}

std::uint64_t Trace::incomplete_buffers() const {
  return scan_.header.missing_buffers(buffers().size()) +
         static_cast<std::uint64_t>(std::ranges::count_if(buffers(), &read::BufferSpan::lost_events));
}

void Trace::leave_out(const std::function<bool(const SummarizedSegment &)> &out) {
  summarized_ = index_->summarized();
  std::erase_if(summarized_, [&](const SummarizedSegment &o) {
    // The first buffer holds the header event, which is read by hand.
    const std::uint64_t first = scan_.buffers.front().offset;
    return (o.begin <= first && first < o.end) || !out(o);
  });
  // The index must see the same buffers here as the walk over their headers.
  std::vector<std::size_t> seen(summarized_.size());
  for (const read::BufferSpan &span : scan_.buffers) {
    const SummarizedSegment *stretch = summarized(span);
    if (!stretch) continue;
    const std::pair<std::uint64_t, std::uint64_t> place(span.offset, span.size);
    if (!span.cut && std::ranges::binary_search(stretch->buffers, place))
      ++seen[static_cast<std::size_t>(stretch - summarized_.data())];
  }
  std::vector<SummarizedSegment> agreed;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i] == summarized_[i].buffers.size()) agreed.push_back(std::move(summarized_[i]));
  summarized_ = std::move(agreed);
  index_->skip(summarized_);
}

bool Trace::load_summarized(const SummarizedSegment &stretch, const read::BufferSpan &span, MutableBytes room,
                            DecodedBuffer &buffer) const {
  std::array<std::uint8_t, kBufferHeaderSize> raw{};
  if (const Result<std::size_t> got = input_->read_at(span.offset, raw); !got || *got != raw.size())
    return false;
  buffer.header = load_buffer_header(raw.data());
  buffer.codec = buffer.header.compressed() ? codec_ : Codec::none;
  const SegmentSummary &summary = *stretch.summary;
  const auto begin = static_cast<std::uint32_t>(span.offset - stretch.begin);
  auto event = std::ranges::lower_bound(summary.state, begin, {}, &SegmentSummary::Event::buffer);
  std::size_t size = 0;
  for (; event != summary.state.end() && event->buffer == begin; ++event) {
    const auto padded = static_cast<std::size_t>(align8(event->size));
    if (padded > room.size() - size || event->from > summary.bytes.size() ||
        event->size > summary.bytes.size() - event->from)
      return false;
    const auto source = summary.bytes.begin() + event->from;
    std::fill(std::copy(source, source + event->size, room.begin() + static_cast<std::ptrdiff_t>(size)),
              room.begin() + static_cast<std::ptrdiff_t>(size + padded), std::uint8_t{0});
    size += padded;
  }
  buffer.events = room.first(size);
  buffer.from_index = true;
  buffer.left_out = size < align8(span.decoded);
  return true;
}

Error Trace::contradiction(const read::BufferSpan &span) const {
  return base::corrupt("index: what it says of a buffer contradicts the buffer's header")
      .in(input_->name())
      .at(span.offset)
      .advise(Advice::unpack);
}

void Trace::load(Batch &batch) const {
  batch.buffers.clear();
  batch.error.reset();
  batch.skipped.clear();
  batch.warnings.clear();
  if (batch.count == 0) return;
  const std::span<const read::BufferSpan> spans = buffers().subspan(batch.first, batch.count);

  std::size_t raw_bytes = 0, decoded_bytes = 0;
  for (const read::BufferSpan &span : spans)
    raw_bytes += span.size, decoded_bytes += align8(span.decoded);
  const MutableBytes raw = fetch(batch, spans, raw_bytes);
  if (batch.error) return;

  std::size_t at = 0;
  std::size_t decoded_at = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const read::BufferSpan &span = spans[i];
    DecodedBuffer buffer;
    buffer.index = static_cast<std::uint32_t>(batch.first + i);
    buffer.file_offset = span.offset;
    buffer.cut = span.cut;
    if (const SummarizedSegment *stretch = summarized(span)) {
      at += span.size;
      if (batch.decoded.size() < decoded_bytes) batch.decoded.resize(decoded_bytes);
      if (!load_summarized(*stretch, span,
                           MutableBytes(batch.decoded).subspan(decoded_at, align8(span.decoded)), buffer)) {
        batch.error = contradiction(span);
        return;
      }
      decoded_at += align8(buffer.events.size());
      batch.buffers.push_back(buffer);
      continue;
    }
    buffer.header = span.rebuilt ? rebuilt_header(span) : load_buffer_header(raw.data() + at);
    buffer.stored = raw.subspan(at, span.size);
    const MutableBytes content = raw.subspan(at + kBufferHeaderSize, span.size - kBufferHeaderSize);
    at += span.size;
    auto take_room = [&] {
      if (batch.decoded.size() < decoded_bytes) batch.decoded.resize(decoded_bytes);
      buffer.events = MutableBytes(batch.decoded).subspan(decoded_at, span.decoded);
      decoded_at += align8(span.decoded);
    };
    if (!buffer.header.compressed()) {
      const MutableBytes events = content.first(std::min<std::size_t>(content.size(), span.decoded));
      if (events.size() % 8 == 0) {
        buffer.events = events;
      } else { // room for the padding of the last event, which in place could be another buffer's header
        take_room();
        buffer.events = buffer.events.first(events.size());
        std::copy(events.begin(), events.end(), buffer.events.begin());
      }
      batch.buffers.push_back(buffer);
      continue;
    }
    take_room();
    if (span.cut) {
      // What decodes before the cut is right: a decoder's output does not depend on what follows.
      const CodecResult result =
          decompress(codec_ == Codec::none ? Codec::xpress : codec_, content, buffer.events);
      buffer.codec = codec_;
      buffer.events = buffer.events.first(result.produced);
      batch.buffers.push_back(buffer);
      continue;
    }
    if (const std::optional<Codec> codec = decode_events(codec_, content, buffer.events)) {
      buffer.codec = *codec;
      batch.buffers.push_back(buffer);
      continue;
    }
    Error error = undecodable(span, buffer.index);
    if (!salvage_) {
      if (!batch.error) batch.error = std::move(error);
      return;
    }
    batch.skipped.push_back(
        {0, span.offset, span.size, error.what + " decodes with no codec: " + error.found});
  }
}

Error Trace::walk_error(const DecodedBuffer &buffer, const WalkEnd &end) const {
  const bool compressed = buffer.header.compressed();
  auto wrong = base::corrupt(fmt::format("buffer {}: event at 0x{:x}{}", buffer.index,
                                         kBufferHeaderSize + end.at, compressed ? " (decoded)" : ""))
                   .in(input_->name())
                   .at(buffer.file_offset + (compressed ? 0 : kBufferHeaderSize + end.at))
                   .advise(Advice::salvage);
  switch (end.reason) {
  case WalkEnd::Reason::bad_marker:
    if (end.found == kEndOfEvents)
      return std::move(wrong)
          .expected("an event header (0xC0...... or 0x90......), or 0xff up to the end of the buffer")
          .found("0xffffffff with other bytes behind it");
    return std::move(wrong)
        .expected("an event header (0xC0...... or 0x90......)")
        .found(fmt::format("0x{:08x}", end.found));
  case WalkEnd::Reason::bad_size:
    return std::move(wrong).expected("a Size of at least the header's").found(fmt::format("{}", end.found));
  default:
    return std::move(wrong)
        .expected(
            fmt::format("a Size of at most the {} bytes left in the buffer", buffer.events.size() - end.at))
        .found(fmt::format("{}", end.found));
  }
}

void Trace::note_walk_end(Batch &batch, const DecodedBuffer &buffer, const WalkEnd &end) const {
  if (buffer.cut && end.reason == WalkEnd::Reason::overrun) return; // the scan has warned of the cut
  Error error = walk_error(buffer, end);
  if (salvage_) {
    batch.skipped.push_back({0, *error.offset, buffer.events.size() - end.at,
                             fmt::format("{}: expected {}, found {}; the rest of the buffer", error.what,
                                         error.expected, error.found)});
  } else if (!batch.error) {
    batch.error = std::move(error);
  }
}

} // namespace etwrelog::pipeline
