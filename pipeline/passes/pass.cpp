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

void BatchMemory::take(Batch &batch) {
  batch.raw = raw_.take();
  batch.decoded = decoded_.take();
}

void BatchMemory::leave(Batch &batch) {
  raw_.give(std::move(batch.raw));
  decoded_.give(std::move(batch.decoded));
}

PassRun::PassRun(const Trace &trace, std::string_view name, const PassOptions &options,
                 const KeptBuffers *kept)
    : trace_(trace), options_(options), kept_(kept), name_(name), progress_(options.progress) {
  progress_.begin(name, trace.stored_bytes());
}

PassRun::~PassRun() {
  if (options_.report == nullptr) return;
  auto seconds = [](const std::atomic<std::uint64_t> &ns) { return static_cast<double>(ns.load()) * 1e-9; };
  RunReport::Phase &phase = options_.report->phases.emplace_back();
  phase.name = name_;
  phase.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  phase.steps = {{"read_and_decompress", seconds(times.load)},
                 {"decode_and_filter", seconds(times.work)},
                 {"in_order", seconds(times.merge)},
                 {"compress", seconds(times.finish)},
                 {"write", seconds(times.emit)}};
  for (const RunReport::Phase::Step &step : phase.steps)
    phase.busy += step.busy;
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
  const bool all_kept = kept(next_buffer_) != nullptr;
  std::uint64_t bytes = 0;
  for (; next_buffer_ < buffers.size(); ++next_buffer_, ++batch.count) {
    const DecodedBuffer *buffer = kept(next_buffer_);
    if ((buffer != nullptr) != all_kept) break;
    const read::BufferSpan &span = buffers[next_buffer_];
    std::uint64_t more = std::max(span.decoded, span.size);
    if (buffer != nullptr) {
      const Stretches left = kept_->left_in_file(next_buffer_);
      more = sizeof(DecodedBuffer) + (left.empty() ? buffer->events.size() : Trace::room_for(left));
    }
    if (batch.count > 0 && bytes + more > options_.batch_bytes) break;
    bytes += more;
  }
  return true;
}

void PassRun::load(Batch &batch) {
  const Stopwatch watch(times.load);
  batch.error.reset();
  batch.events = 0;
  if (!kept(batch.first)) return trace_.load(batch);
  batch.buffers.clear();
  batch.skipped.clear();
  batch.warnings.clear();
  std::size_t room = 0;
  for (std::size_t i = batch.first; i < batch.first + batch.count; ++i)
    if (const Stretches left = kept_->left_in_file(i); !left.empty()) room += Trace::room_for(left);
  if (batch.raw.size() < room) batch.raw.resize(room);
  MutableBytes free(batch.raw);
  for (std::size_t i = batch.first; i < batch.first + batch.count; ++i) {
    DecodedBuffer buffer = *kept(i);
    if (const Stretches left = kept_->left_in_file(i); !left.empty()) {
      const std::size_t taken = Trace::room_for(left);
      if (!trace_.load_again(batch, buffer, left, free.first(taken))) return;
      free = free.subspan(taken);
    }
    batch.buffers.push_back(buffer);
  }
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
