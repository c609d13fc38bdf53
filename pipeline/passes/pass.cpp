#include "passes/pass.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace etwrelog::pipeline {

std::size_t earliest(Traces traces) {
  std::size_t first = 0;
  for (std::size_t i = 1; i < traces.size(); ++i)
    if (traces[i]->header().first_stamp < traces[first]->header().first_stamp) first = i;
  return first;
}

void add_to(PassResult &all, PassResult &&met, Traces traces, std::size_t number) {
  all.batches += met.batches;
  for (Skipped &skipped : met.skipped) {
    skipped.source = static_cast<std::uint32_t>(number);
    all.skipped.push_back(std::move(skipped));
  }
  for (std::string &warning : met.warnings)
    all.warnings.push_back(traces.size() == 1
                               ? std::move(warning)
                               : fmt::format("{}: {}", traces[number]->input().name(), warning));
}

PassRun::PassRun(const Trace &trace, std::string_view name, const PassOptions &options, StepTimes *times)
    : trace_(trace), options_(options), times_(times), progress_(options.progress) {
  progress_.begin(name, trace.stored_bytes());
}

std::size_t PassRun::slots() const {
  std::uint64_t largest = options_.batch_bytes;
  for (const read::BufferSpan &span : trace_.buffers())
    largest = std::max<std::uint64_t>(largest, span.decoded);
  // Raw and decoded bytes both count where buffers are compressed.
  const std::uint64_t each = trace_.codec() == Codec::none ? largest : 2 * largest;
  const auto afforded = static_cast<std::size_t>(std::max<std::uint64_t>(2, options_.in_flight_bytes / each));
  return std::min(slots_for(options_.threads), afforded) + 1;
}

bool PassRun::next(Batch &batch) {
  const std::span<const read::BufferSpan> buffers = trace_.buffers();
  if (next_buffer_ >= buffers.size()) return false;
  batch.ordinal = result_.batches++;
  batch.first = next_buffer_;
  batch.count = 0;
  std::uint64_t decoded = 0;
  while (next_buffer_ < buffers.size()) {
    const read::BufferSpan &span = buffers[next_buffer_];
    const std::uint64_t more = std::max(span.decoded, span.size);
    if (batch.count > 0 && decoded + more > options_.batch_bytes) break;
    decoded += more;
    ++batch.count;
    ++next_buffer_;
  }
  return true;
}

void PassRun::load(Batch &batch) const {
  const Stopwatch watch(times_ != nullptr ? &times_->load : nullptr);
  batch.error.reset();
  batch.events = 0;
  trace_.load(batch);
}

Result<void> PassRun::loaded(Batch &batch) const {
  if (batch.error) return *std::move(batch.error);
  return {};
}

void PassRun::note(Batch &batch) {
  std::move(batch.skipped.begin(), batch.skipped.end(), std::back_inserter(result_.skipped));
  std::move(batch.warnings.begin(), batch.warnings.end(), std::back_inserter(result_.warnings));
}

void PassRun::advance(const Batch &batch) {
  std::uint64_t bytes = 0;
  for (std::size_t i = batch.first; i < batch.first + batch.count; ++i)
    bytes += trace_.buffers()[i].size;
  progress_.advance(bytes, batch.events);
}

Error PassRun::locate(const Batch &batch, Error error) const {
  if (error.file.empty()) {
    error.file = trace_.input().name();
    if (!error.offset && batch.first < trace_.buffers().size() && error.kind != ErrorKind::cancelled)
      error.offset = trace_.buffers()[batch.first].offset;
  }
  return error;
}

PassResult PassRun::result() && {
  return std::move(result_);
}

} // namespace etwrelog::pipeline
