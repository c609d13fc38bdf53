// What the tests on real traces share: a fingerprint of every processor's stream of events, and truth files.
#pragma once

#include "tests/support/pipeline_runs.hpp"
#include "tests/support/trace_files.hpp"

#include <nlohmann/json.hpp>
#include <xxhash.h>

namespace etwrelog::testing {

// The logfile header event is left out: it is what a relog rewrites.
struct Fingerprint {
  std::map<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>> by_cpu; // events, hash over them in order
  std::uint64_t file_order = 0;
  std::uint64_t events = 0;
  std::string error;
  bool operator==(const Fingerprint &) const = default;
};

inline Fingerprint fingerprint(const std::string &path) {
  Fingerprint print;
  const Result<pipeline::Trace> trace = pipeline::Trace::open(path, {});
  if (!trace) {
    print.error = trace.error().message();
    return print;
  }
  pipeline::Batch batch;
  for (std::size_t i = 0; i < trace->buffers().size(); ++i) {
    batch.first = i;
    batch.count = 1;
    trace->load(batch);
    for (const pipeline::DecodedBuffer &buffer : batch.buffers)
      trace->visit(batch, buffer, [&](const EventView &event, std::int64_t, std::uint32_t) {
        if (event.has_hook() && event.hook() == format::kHookLogfileHeader) return;
        const std::uint64_t hash = XXH3_64bits(event.bytes().data(), event.size());
        auto &[count, sum] = print.by_cpu[buffer.header.processor()];
        ++count;
        sum = XXH3_64bits_withSeed(&hash, sizeof hash, sum);
        print.file_order = XXH3_64bits_withSeed(&hash, sizeof hash, print.file_order);
        ++print.events;
      });
    if (batch.error && print.error.empty()) print.error = batch.error->message();
  }
  return print;
}

inline nlohmann::json truth(const std::string &name) {
  std::ifstream file(*shared_dir() / "truth" / (name + ".json"));
  return file ? nlohmann::json::parse(file) : nlohmann::json();
}

} // namespace etwrelog::testing
