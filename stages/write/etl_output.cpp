#include "write/etl_output.hpp"

#include "base/errors.hpp"

#include <algorithm>

namespace etwrelog::write {

void Stamper::stamp(OutputBuffer &buffer) {
  latest_ = std::max(latest_, clock_.to_filetime(buffer.last_time));
  buffer.time_stamp = latest_;
  buffer.sequence = next_sequence_++;
}

Result<void> EtlOutput::begin(const LogfileHeader &header, const HeaderBuffer &first,
                              std::int64_t last_time) {
  last_time_ = last_time;
  return sink_->begin(header, first);
}

void EtlOutput::stamp(Outgoing &out) {
  for (OutputBuffer &buffer : out.closed) {
    stamper_.stamp(buffer);
    last_time_ = std::max(last_time_, buffer.last_time);
  }
}

EtlOutput::Sealer::Sealer(const OutputForm &form) {
  if (form.compressed()) compressor.emplace(form.codec, form.level, form.nominal_size);
}

void EtlOutput::seal(Outgoing &out) const {
  if (out.closed.empty()) return;
  std::unique_ptr<Sealer> sealer = sealers_->take(form_);
  for (OutputBuffer &buffer : out.closed)
    write::seal(buffer, form_.nominal_size, sealer->compressor ? &*sealer->compressor : nullptr,
                sealer->scratch);
  sealers_->give(std::move(sealer));
}

Result<void> EtlOutput::append(Outgoing &out) {
  for (const OutputBuffer &buffer : out.closed)
    ETWRELOG_TRY(sink_->append(buffer));
  rechunker_.reuse(out.closed);
  return {};
}

Result<void> EtlOutput::put(Outgoing &out) {
  stamp(out);
  seal(out);
  return append(out);
}

} // namespace etwrelog::write
