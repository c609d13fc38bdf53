// Damage with a plan: what to do to a trace on its way to the file, and the record of what was done where.
#pragma once

#include "generate.hpp"

#include <string>
#include <vector>

namespace etwrelog::gen {

// The names that --defects takes.
enum class Defect : std::uint8_t {
  cut_tail,          // the file ends inside its last buffer
  unclosed,          // the session never stopped: EndTime 0, BuffersWritten 1, no flush marker at the end
  zero_saved_offset, // in one data buffer, as Windows 7 leaves it in the first; the Offset field still says
                     // it
  bit_flips,         // the marker of one event, which hides the rest of its buffer; one bit of a payload
  lost_buffers,      // two buffers missing, which shows in the sequence numbers
  out_of_order,      // two neighbours of one buffer in the wrong order of time
  clock_jump,        // the clock is set forward by an hour
  pid_reuse,         // a process id comes back within a second
  foreign_bytes,     // something else between two buffers
  count_
};
[[nodiscard]] std::string_view defect_name(Defect defect);
[[nodiscard]] std::optional<Defect> find_defect(std::string_view name);

class DefectSink : public write::TraceSink {
public:
  DefectSink(std::vector<Defect> defects, write::TraceSink &out) : defects_(std::move(defects)), out_(out) {}
  Result<void> begin(const LogfileHeader &header, const write::HeaderBuffer &first) override;
  Result<void> append(const write::OutputBuffer &buffer) override;
  // After the last buffer: hands on what was held back. Fails if a defect found no place.
  Result<void> end();

  // A JSON array. Offsets are in the file as written.
  [[nodiscard]] std::string planted(const Generated &generated) const;
  [[nodiscard]] bool wants(Defect defect) const;

private:
  struct Planted {
    Defect defect;
    std::uint64_t buffer = 0, offset = 0; // buffer 0 is the header's
    std::uint64_t events_unreadable = 0, bytes = 0;
    std::string what;
  };
  void damage(write::OutputBuffer &buffer, bool last);
  Result<void> pass_on(bool last);
  void plant(Defect defect, std::uint64_t offset, std::uint64_t unreadable, std::uint64_t bytes,
             std::string what);

  std::vector<Defect> defects_;
  write::TraceSink &out_;
  std::optional<write::OutputBuffer> held_;
  std::uint64_t index_ = 0, offset_ = 0;
  bool compressed_ = false;
  std::vector<Planted> done_;
};

// Done to the finished file, since the writer itself would not leave it like this.
Result<void> unclose(const std::string &path);

} // namespace etwrelog::gen
