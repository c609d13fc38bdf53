#include "write/etl_output.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

namespace etwrelog::write {

namespace {

struct Sealer {
  std::optional<Compressor> compressor;
  base::RawMemory scratch;
};

} // namespace

// What sealing takes: as many as threads that seal at a time. That is far fewer than batches under way, so
// that they stay in the processor's cache.
class EtlOutput::Sealers {
public:
  std::unique_ptr<Sealer> take(const OutputForm &form) {
    {
      const std::lock_guard lock(taking_);
      if (!idle_.empty()) {
        std::unique_ptr<Sealer> idle = std::move(idle_.back());
        idle_.pop_back();
        return idle;
      }
    }
    auto fresh = std::make_unique<Sealer>();
    if (form.compressed()) fresh->compressor.emplace(form.codec, form.level, form.nominal_size);
    return fresh;
  }
  void put_back(std::unique_ptr<Sealer> sealer) {
    const std::lock_guard lock(taking_);
    idle_.push_back(std::move(sealer));
  }

private:
  std::mutex taking_;
  std::vector<std::unique_ptr<Sealer>> idle_;
};

EtlOutput::EtlOutput(TraceSink &sink, const OutputForm &form, const Clock &clock)
    : sink_(&sink), form_(form), clock_(clock), rechunker_(form.nominal_size, form.keep_grouping),
      stamper_(clock), sealers_(std::make_unique<Sealers>()) {}
EtlOutput::~EtlOutput() = default;
EtlOutput::EtlOutput(EtlOutput &&) noexcept = default;

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
  if (out.closed.empty()) return;
  std::unique_ptr<Sealer> sealer = sealers_->take(form_);
  for (OutputBuffer &buffer : out.closed)
    write::seal(buffer, form_.nominal_size, sealer->compressor ? &*sealer->compressor : nullptr,
                sealer->scratch);
  sealers_->put_back(std::move(sealer));
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
