#include "write/etl_output.hpp"

#include "base/errors.hpp"

#include <algorithm>

namespace etwrelog::write {

void Stamper::stamp(OutputBuffer &buffer) {
  latest_ = std::max(latest_, clock_.to_filetime(buffer.last_time));
  buffer.time_stamp = latest_;
  buffer.sequence = next_sequence_++;
}

Result<void> EtlOutput::begin(const LogfileHeader &header, Bytes header_event, Bytes more_events,
                              std::int64_t last_time) {
  last_time_ = last_time;
  return sink_->begin(header, header_event, more_events);
}

void EtlOutput::stamp(Outgoing &out) {
  for (OutputBuffer &buffer : out.closed) {
    stamper_.stamp(buffer);
    last_time_ = std::max(last_time_, buffer.last_time);
  }
}

void EtlOutput::seal(Outgoing &out) const {
  if (form_.compressed() && !out.compressor)
    out.compressor.emplace(form_.codec, form_.level, form_.nominal_size);
  for (OutputBuffer &buffer : out.closed)
    write::seal(buffer, form_.nominal_size, out.compressor ? &*out.compressor : nullptr, out.scratch);
}

Result<void> EtlOutput::append(const Outgoing &out) {
  for (const OutputBuffer &buffer : out.closed)
    ETWRELOG_TRY(sink_->append(buffer));
  return {};
}

Result<void> EtlOutput::put(Outgoing &out) {
  stamp(out);
  seal(out);
  ETWRELOG_TRY(append(out));
  reuse(out);
  return {};
}

} // namespace etwrelog::write
