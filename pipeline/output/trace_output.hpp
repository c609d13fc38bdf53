// Where the reloggers of one trace, of several and of a stream end: their output's form out of the options,
// its file, its header, and what the report says of it. The way there is write::EtlOutput.
#pragma once

#include "output/buffer_filter.hpp"
#include "write/etl_writer.hpp"

namespace etwrelog::pipeline {

// The nominal size of the output's buffers where the input's is `input`.
[[nodiscard]] std::uint32_t nominal_size(std::uint32_t input, const RelogOptions &options);

// What no buffer can have is refused.
[[nodiscard]] Result<void> check_nominal_size(std::uint32_t nominal_size, const RelogOptions &options);

class TraceOutput {
public:
  // Creates the file, which has no name before finish().
  [[nodiscard]] static Result<TraceOutput> create(const RelogOptions &options);

  // The first buffer. `header`: of the input; `input_codec`: also the output's, if the options name none.
  [[nodiscard]] Result<void> begin(const LogfileHeader &header, std::uint32_t nominal_size, Codec input_codec,
                                   const FirstBuffer &first);
  [[nodiscard]] write::EtlOutput &buffers() { return *buffers_; }
  [[nodiscard]] const write::EtlOutput &buffers() const { return *buffers_; }
  // Where the events of an input buffer come from. `whole`: all of them are kept.
  [[nodiscard]] write::Origin origin_of(const format::BufferHeader &header, bool whole) const;
  // The header event as the input has it at its end.
  void replace_header(const LogfileHeader &header, Bytes header_event);

  // Writes what is open, completes the header, gives the file its name. `incomplete`: how many of the
  // sessions' buffers the inputs do not have, or not all of. What is there is renumbered, so that the count
  // of lost buffers is all that tells of them in the output.
  [[nodiscard]] Result<void> finish(RelogReport &report, std::uint64_t incomplete);

private:
  TraceOutput(const RelogOptions &options, base::OutputFile file)
      : options_(&options), writer_(std::make_unique<write::EtlWriter>(std::move(file))) {}
  [[nodiscard]] Result<void> put_rest();

  const RelogOptions *options_;
  std::unique_ptr<write::EtlWriter> writer_; // stays where it is: buffers_ goes on to it
  std::optional<write::EtlOutput> buffers_;
  std::uint32_t input_nominal_ = 0;
};

} // namespace etwrelog::pipeline
