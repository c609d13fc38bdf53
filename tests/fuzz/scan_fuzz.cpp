// The buffer reader: scan, codec detection, decompression and the walk over all events, strict and salvaging.
#include "source/trace.hpp"

namespace {

void read_all(etwrelog::Bytes bytes, const etwrelog::read::ScanOptions &options) {
  using namespace etwrelog;
  Result<pipeline::Trace> trace =
      pipeline::Trace::open(read::memory_input("fuzz.etl", {bytes.begin(), bytes.end()}), options);
  if (!trace) {
    (void)trace.error().message();
    return;
  }
  pipeline::Batch batch;
  std::uint64_t sum = 0;
  // One batch of all, and each buffer alone.
  for (std::size_t first = 0; first <= trace->buffers().size() && first < 64; ++first) {
    batch.first = first == 0 ? 0 : first - 1;
    batch.count = first == 0 ? std::min<std::size_t>(trace->buffers().size(), 16) : 1;
    trace->load(batch);
    for (const pipeline::DecodedBuffer &buffer : batch.buffers)
      trace->visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
        sum += static_cast<std::uint64_t>(time) + at + event.size() + event.payload().size();
      });
    if (batch.error) sum += batch.error->message().size();
  }
  [[maybe_unused]] static volatile std::uint64_t sink;
  sink = sum;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  read_all({data, size}, {});
  read_all({data, size}, {.salvage = true, .file_order = (size & 1) != 0});
  return 0;
}
