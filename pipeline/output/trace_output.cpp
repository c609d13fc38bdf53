#include "output/trace_output.hpp"

#include "base/errors.hpp"
#include "run/runner.hpp"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace format;

namespace {

constexpr std::uint32_t kSmallestDefaultBufferSize = 64u << 10;

// What a relogger writes into the header event; the rest of it is copied.
LogfileHeader output_header(LogfileHeader header, std::uint32_t nominal_size, bool compressed) {
  header.buffer_size = nominal_size;
  // KILOBYTES gives MaximumFileSize its unit and ONE_STREAM says that processor indexes mean nothing: both
  // stay true.
  header.log_file_mode = kModeSequential | kModeRelog |
                         (header.log_file_mode & (kModeKilobytes | kModeOneStream)) |
                         (compressed ? std::uint32_t{kModeCompressed} : 0u);
  set_log_version(header, compressed);
  return header;
}

} // namespace

std::uint32_t nominal_size(std::uint32_t input, const RelogOptions &options) {
  return options.buffer_size != 0 ? options.buffer_size : std::max(input, kSmallestDefaultBufferSize);
}

Result<void> check_nominal_size(std::uint32_t nominal_size, const RelogOptions &options) {
  constexpr std::uint32_t kSmallest = 1024, kLargestOfWindows = 16 << 20;
  const std::uint32_t largest = options.buffer_size != 0 ? kLargestOfWindows : kMaxBufferSize;
  if (nominal_size >= kSmallest && nominal_size <= largest && nominal_size % 8 == 0) return {};
  return base::bad_option(Option::buffer_size, fmt::format("a buffer size of {} bytes", nominal_size))
      .expected(fmt::format("a multiple of 8 from {} to {}", kSmallest, largest));
}

Result<TraceOutput> TraceOutput::create(const RelogOptions &options) {
  ETWRELOG_TRY_LET(file, base::OutputFile::create(options.output, options.replace_output));
  return TraceOutput(options, std::move(file));
}

Result<void> TraceOutput::begin(const LogfileHeader &header, std::uint32_t nominal_size, Codec input_codec,
                                const FirstBuffer &first) {
  const Codec as_input = input_codec == Codec::none ? Codec::none : Codec::xpress;
  const write::OutputForm form{nominal_size, options_->codec.value_or(as_input), options_->level,
                               options_->keep_grouping};
  input_nominal_ = header.buffer_size;
  buffers_.emplace(*writer_, form, header.clock());
  return buffers_->begin(output_header(header, nominal_size, form.compressed()),
                         {first.header_event, first.more_events, first.processor, first.lost_flags},
                         first.last_time);
}

write::Origin TraceOutput::origin_of(const BufferHeader &header, bool whole) const {
  write::Origin origin;
  origin.processor = header.processor();
  origin.type = header.type;
  origin.lost_flags = write::lost_flags(header);
  origin.whole = whole;
  const std::uint32_t nominal = buffers_->form().nominal_size;
  if (nominal == input_nominal_) origin.failed_reservation = write::failed_reservation(header, nominal);
  return origin;
}

void TraceOutput::replace_header(const LogfileHeader &header, Bytes header_event) {
  const write::OutputForm &form = buffers_->form();
  writer_->replace_header(output_header(header, form.nominal_size, form.compressed()), header_event);
}

// Each processor leaves an open buffer: where there are many, compressing them takes a while.
Result<void> TraceOutput::put_rest() {
  write::Outgoing rest;
  buffers_->close_open(rest);
  buffers_->stamp(rest);
  std::size_t taken = 0;
  Steps<write::Outgoing> steps;
  steps.next = [&](write::Outgoing &one) -> Result<bool> {
    one.closed.clear();
    if (taken == rest.closed.size()) return false;
    one.closed.push_back(std::move(rest.closed[taken++]));
    return true;
  };
  steps.work = [this](write::Outgoing &one) -> Result<void> {
    buffers_->seal(one);
    return {};
  };
  steps.emit = [this](write::Outgoing &one) { return buffers_->append(one); };
  const unsigned threads =
      rest.closed.size() > 1 && buffers_->form().compressed() ? options_->graph.threads : 1;
  std::deque<write::Outgoing> slots(slots_for(threads));
  return run_steps(steps, slots, {threads, options_->graph.stop});
}

Result<void> TraceOutput::finish(RelogReport &report, std::uint64_t incomplete) {
  ETWRELOG_TRY(put_rest());
  ETWRELOG_TRY(writer_->finish(buffers_->end_time(), incomplete));
  report.output_bytes = writer_->size();
  report.output_buffers = writer_->buffers();
  return {};
}

} // namespace etwrelog::pipeline
