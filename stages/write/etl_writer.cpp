#include "write/etl_writer.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace etwrelog::write {

using namespace format;

Result<void> EtlWriter::begin(const LogfileHeader &header, const HeaderBuffer &first) {
  header_ = header;
  header_event_.assign(first.header_event.begin(), first.header_event.end());
  header_event_.resize(align8(header_event_.size()));
  if (first.size() > header.buffer_size)
    return base::bad_option(Option::buffer_size,
                            fmt::format("the first buffer needs {} bytes, more than the buffer size of {}",
                                        first.size(), header.buffer_size))
        .in(file_.target())
        .advise(Advice::larger_buffers);
  const bool compressed = (header.log_file_mode & kModeCompressed) != 0;
  ETWRELOG_TRY(file_.append(make_header_buffer(first, header.buffer_size, compressed)));
  buffers_ = 1;
  return {};
}

Result<void> EtlWriter::append(const OutputBuffer &buffer) {
  last_buffer_at_ = file_.size();
  ++buffers_;
  return file_.append(buffer.bytes);
}

void EtlWriter::replace_header(const LogfileHeader &header, Bytes header_event) {
  header_ = header;
  std::copy_n(header_event.begin(), std::min(header_event.size(), header_event_.size()),
              header_event_.begin());
}

Result<void> EtlWriter::finish(std::int64_t end_time, std::uint64_t more_lost) {
  if (buffers_ > 1) {
    std::array<std::uint8_t, kBufferHeaderSize> raw;
    ETWRELOG_TRY(file_.read_at(last_buffer_at_, raw));
    BufferHeader last = load_buffer_header(raw.data());
    last.flags |= kFlagFlushMarker;
    store_buffer_header(raw.data(), last);
    ETWRELOG_TRY(file_.write_at(last_buffer_at_, raw));
  }
  header_.buffers_written = buffers_;
  header_.buffers_lost =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(header_.buffers_lost + more_lost, UINT32_MAX));
  if (header_.end_time == 0) header_.end_time = end_time;
  patch_logfile_header(header_event_, header_);
  ETWRELOG_TRY(file_.write_at(kBufferHeaderSize, header_event_));
  return file_.commit();
}

} // namespace etwrelog::write
