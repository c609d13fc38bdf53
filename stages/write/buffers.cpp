#include "write/buffers.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace etwrelog::write {

using namespace format;

std::uint32_t failed_reservation(const BufferHeader &header, std::uint32_t nominal_size) {
  const std::uint32_t valid = header.valid_bytes();
  if (header.current_offset <= valid || valid > nominal_size) return 0;
  const std::uint32_t failed = header.current_offset - valid;
  const bool plausible = failed <= align8(kMaxEventSize) && failed > nominal_size - valid;
  return plausible && failed != nominal_size ? failed : 0;
}

OutputBuffer Rechunker::fresh(const Origin &origin) {
  OutputBuffer buffer;
  buffer.processor = origin.processor;
  buffer.type = keep_ ? origin.type : std::uint16_t{kTypeGeneric};
  buffer.bytes = written_->take();
  buffer.bytes.clear();
  buffer.bytes.reserve(nominal_);
  buffer.bytes.resize(kBufferHeaderSize, 0); // the header is written last
  return buffer;
}

void Rechunker::close(OutputBuffer &open, std::uint32_t failed, std::vector<OutputBuffer> &closed) const {
  open.failed_reservation = failed;
  closed.push_back(std::move(open));
  open = OutputBuffer();
}

Result<void> Rechunker::add(const Origin &origin, Bytes events, std::span<const Run> runs,
                            std::vector<OutputBuffer> &closed) {
  if (runs.empty()) return {};
  if (open_.size() <= origin.processor) open_.resize(origin.processor + 1u);
  OutputBuffer &open = open_[origin.processor];
  const bool met_empty = open.empty();
  const std::size_t closed_before = closed.size();
  if (met_empty) open = fresh(origin);

  auto append = [&open](Bytes piece, std::int64_t last_time) {
    open.bytes.append(piece);
    open.last_time = last_time;
  };
  for (const Run &run : runs) {
    const Bytes piece = bytes_of(run, events);
    if (open.bytes.size() + piece.size() <= nominal_) {
      append(piece, run.last_time);
      continue;
    }
    std::uint32_t too_large = 0;
    std::size_t begin = 0, until = 0; // of what goes into the open buffer in one go
    std::int64_t last_time = open.last_time;
    const WalkEnd end = for_each_event(
        piece,
        [&](const EventView &event, std::int64_t time, std::uint32_t at) {
          const std::uint32_t size = static_cast<std::uint32_t>(align8(event.size()));
          if (size > nominal_ - kBufferHeaderSize) too_large = size;
          if (too_large != 0) return;
          if (open.bytes.size() + (until - begin) + size > nominal_) {
            append(piece.subspan(begin, until - begin), last_time);
            close(open, size, closed);
            open = fresh(origin);
            begin = at;
          }
          until = at + size;
          last_time = time;
        },
        run.last_time);
    if (too_large != 0 || !end) {
      return base::bad_option(Option::buffer_size,
                              fmt::format("an event of {} bytes does not fit an output buffer of {} bytes",
                                          too_large, nominal_))
          .advise(Advice::larger_buffers);
    }
    append(piece.subspan(begin, until - begin), last_time);
  }
  open.lost_flags |= origin.lost_flags;
  const bool was_full =
      origin.whole && met_empty && closed.size() == closed_before && origin.failed_reservation != 0;
  if (keep_ || was_full) close(open, origin.whole ? origin.failed_reservation : 0, closed);
  return {};
}

void Rechunker::flush(std::vector<OutputBuffer> &closed) {
  for (OutputBuffer &open : open_)
    if (!open.empty()) close(open, 0, closed);
}

void Rechunker::reuse(std::vector<OutputBuffer> &closed) {
  for (OutputBuffer &buffer : closed)
    written_->give(std::move(buffer.bytes));
  closed.clear();
}

namespace {

BufferHeader header_of(const OutputBuffer &buffer, std::uint32_t nominal_size) {
  BufferHeader header;
  header.saved_offset = header.filled_bytes = buffer.valid_bytes;
  header.current_offset =
      buffer.valid_bytes + (buffer.failed_reservation != 0 ? buffer.failed_reservation : nominal_size);
  header.time_stamp = buffer.time_stamp;
  header.sequence_number = buffer.sequence;
  header.client_context = buffer.processor;
  header.state = kStateFlush;
  header.flags = static_cast<std::uint16_t>(kFlagProcessorIndex | buffer.lost_flags);
  header.type = buffer.type;
  return header;
}

void number_stored(OutputBuffer &buffer, std::uint32_t nominal_size, bool compressed_file) {
  BufferHeader header = load_buffer_header(buffer.bytes.data());
  buffer.valid_bytes = header.valid_bytes();
  header.sequence_number = buffer.sequence;
  header.time_stamp = buffer.time_stamp;
  header.flags &= static_cast<std::uint16_t>(~kFlagFlushMarker);
  if (!header.compressed()) {
    const std::size_t size = buffer.bytes.size();
    buffer.bytes.resize(compressed_file ? std::min<std::size_t>(size, buffer.valid_bytes)
                                        : std::max<std::size_t>(size, nominal_size),
                        kFillByte);
  }
  header.buffer_size = static_cast<std::uint32_t>(buffer.bytes.size());
  store_buffer_header(buffer.bytes.data(), header);
}

} // namespace

void seal(OutputBuffer &buffer, std::uint32_t nominal_size, Compressor *compressor,
          base::RawMemory &scratch) {
  if (buffer.as_stored) return number_stored(buffer, nominal_size, compressor != nullptr);
  buffer.valid_bytes = static_cast<std::uint32_t>(buffer.bytes.size());
  BufferHeader header = header_of(buffer, nominal_size);
  if (compressor) {
    const Bytes events = Bytes(buffer.bytes).subspan(kBufferHeaderSize);
    const MutableBytes room(scratch.room(events.size()), events.size());
    const CodecResult packed = events.size() < 2
                                   ? CodecResult{CodecStatus::output_too_small}
                                   : compressor->compress(events, room.first(events.size() - 1));
    if (packed) {
      header.flags |= kFlagCompressed;
      std::copy_n(room.data(), packed.produced, buffer.bytes.data() + kBufferHeaderSize);
      buffer.bytes.resize(kBufferHeaderSize + packed.produced);
    }
  } else {
    buffer.bytes.resize(std::max<std::size_t>(nominal_size, buffer.bytes.size()), kFillByte);
  }
  header.buffer_size = static_cast<std::uint32_t>(buffer.bytes.size());
  store_buffer_header(buffer.bytes.data(), header);
}

std::vector<std::uint8_t> make_header_buffer(const HeaderBuffer &first, std::uint32_t nominal_size,
                                             bool compressed) {
  const std::size_t valid = first.size();
  const std::size_t size =
      compressed ? (valid + kHeaderBufferGranule - 1) / kHeaderBufferGranule * kHeaderBufferGranule
                 : std::max<std::size_t>(nominal_size, valid);
  std::vector<std::uint8_t> bytes(size, kFillByte);
  BufferHeader header;
  header.buffer_size = static_cast<std::uint32_t>(size);
  header.saved_offset = header.filled_bytes = static_cast<std::uint32_t>(valid);
  header.state = compressed ? std::uint32_t{kStateFlush} : std::uint32_t{kStateFree};
  const std::uint16_t index_flag = first.processor != 0 ? kFlagProcessorIndex : 0;
  header.flags = static_cast<std::uint16_t>(kFlagFlushMarker | index_flag | first.lost_flags);
  header.client_context = first.processor;
  header.type = kTypeHeader;
  store_buffer_header(bytes.data(), header);
  const auto others = bytes.begin() + static_cast<std::ptrdiff_t>(valid - first.more_events.size());
  std::fill(bytes.begin() + kBufferHeaderSize, others, std::uint8_t{0});
  std::ranges::copy(first.header_event, bytes.begin() + kBufferHeaderSize);
  std::ranges::copy(first.more_events, others);
  return bytes;
}

} // namespace etwrelog::write
