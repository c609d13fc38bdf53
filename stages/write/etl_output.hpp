// The one way from runs of events to a trace, for relogging (of one trace, of several, of a stream) and for
// the generator:
//
//   fill()     runs go into the open buffer of their processor, full buffers are closed      serial, in order
//   stamp()    closed buffers get their sequence numbers and times                           serial, in order
//   seal()     buffer header, and compression or fill                                        any thread
//   append()   behind the others                                                             serial, in order
//
// The sink has the first buffer from begin(); what only the end shows is EtlWriter::finish's to write.
#pragma once

#include "etwrelog/logfile_header.hpp"
#include "write/buffers.hpp"

#include <memory>
#include <optional>

namespace etwrelog::write {

// What the buffers of an output look like.
struct OutputForm {
  std::uint32_t nominal_size = 0;
  Codec codec = Codec::none;
  Level level = Level::normal;
  bool keep_grouping = false; // every input buffer becomes one output buffer, in file order

  [[nodiscard]] bool compressed() const { return codec != Codec::none; }
};

// Takes a trace buffer by buffer. Called from one thread at a time, in order.
class TraceSink {
public:
  virtual ~TraceSink() = default;
  // header.buffer_size is the nominal size; header.log_file_mode says whether the trace is compressed.
  [[nodiscard]] virtual Result<void> begin(const LogfileHeader &header, const HeaderBuffer &first) = 0;
  // Stamped and sealed.
  [[nodiscard]] virtual Result<void> append(const OutputBuffer &buffer) = 0;
};

// Closed buffers on their way: one for each batch that is under way, used again.
struct Outgoing {
  std::vector<OutputBuffer> closed;
};

// Gives closed buffers their sequence numbers and time stamps: the FILETIME of the last event, never
// decreasing along the file. (Windows writes the time of relogging there; this depends on the trace alone, so
// that the same input gives the same bytes.)
class Stamper {
public:
  explicit Stamper(const Clock &clock) : clock_(clock) {}
  void stamp(OutputBuffer &buffer);

private:
  Clock clock_;
  std::int64_t next_sequence_ = 1; // 0 is the header buffer
  std::int64_t latest_ = 0;
};

class EtlOutput {
public:
  // The sink must outlive this.
  EtlOutput(TraceSink &sink, const OutputForm &form, const Clock &clock)
      : sink_(&sink), form_(form), clock_(clock), rechunker_(form.nominal_size, form.keep_grouping),
        stamper_(clock) {}

  // `last_time`: raw, of the last event of the first buffer.
  [[nodiscard]] Result<void> begin(const LogfileHeader &header, const HeaderBuffer &first,
                                   std::int64_t last_time);
  // As Rechunker::add; full buffers go to `out.closed`.
  [[nodiscard]] Result<void> fill(const Origin &origin, Bytes events, std::span<const Run> runs,
                                  Outgoing &out) {
    return rechunker_.add(origin, events, runs, out.closed);
  }
  // Closes what is open, by processor.
  void close_open(Outgoing &out) { rechunker_.flush(out.closed); }
  void stamp(Outgoing &out);
  void seal(Outgoing &out) const;
  // Behind the others; forgets them.
  [[nodiscard]] Result<void> append(Outgoing &out);
  // Stamps, seals and appends what is closed: for who has nobody to share the work with.
  [[nodiscard]] Result<void> put(Outgoing &out);

  [[nodiscard]] const OutputForm &form() const { return form_; }
  // FILETIME of the last event of all that was stamped.
  [[nodiscard]] std::int64_t end_time() const { return clock_.to_filetime(last_time_); }

private:
  TraceSink *sink_;
  OutputForm form_;
  Clock clock_;
  Rechunker rechunker_;
  Stamper stamper_;
  std::int64_t last_time_ = 0;
  // What sealing takes: as many as threads that seal at a time. That is far fewer than batches under way, so
  // that they stay in the processor's cache.
  struct Sealer {
    explicit Sealer(const OutputForm &form);
    std::optional<Compressor> compressor;
    base::RawMemory scratch;
  };
  std::unique_ptr<base::Pool<Sealer>> sealers_ = std::make_unique<base::Pool<Sealer>>();
};

} // namespace etwrelog::write
