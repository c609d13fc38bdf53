// Generates a trace: plan a slice, fill it with events on any thread, put these into buffers in order, seal,
// hand on.
#pragma once

#include "tally.hpp"

#include "etwrelog/codec.hpp"
#include "etwrelog/logfile_header.hpp"
#include "write/etl_writer.hpp"

#include <functional>
#include <optional>

namespace etwrelog::gen {

struct Options {
  const Profile *profile = nullptr;
  std::optional<std::uint64_t>
      size; // of the trace before compression, in bytes; generation stops at the first slice past it
  std::optional<double> duration_s; // without either: the published size of the profile, or 64 MB
  std::uint64_t seed = 1;
  std::uint32_t cpus = 0, processes = 60; // cpus 0: those of the profile
  unsigned pointer_size = 8;
  std::uint32_t buffer_size = 64 << 10;
  Codec codec = Codec::none;
  std::vector<PlantedPdb> pdbs; // loaded by the first program, and run there
  bool stack_cache = false;
  std::uint32_t stack_cache_buckets = 256;  // at most 4,096
  std::uint64_t stack_cache_pool = 3 << 20; // bytes, at most 50 MB
  bool clock_jump = false,
       pid_reuse = false; // defects of the machine itself; the others are done to the file
  bool schemas = false;   // also events of every type of every kind of schema, with known values
  unsigned threads = 0;   // 0: as many as there are processors
};

struct Generated {
  Truth truth;
  std::int64_t end_time = 0; // FILETIME of the last event
  double seconds = 0;        // of simulated time
  std::uint64_t events_in_first_buffer = 0;
  Machine::PidReuse pid_reuse;
  std::int64_t clock_jump_at = 0, clock_jump_ticks = 0;
};
// The sink takes the trace as it comes; EtlWriter makes a file of it.
[[nodiscard]] Result<Generated> generate(const Options &options, write::TraceSink &sink);

// The trace as one block of memory, for measurements and tests; needs options.size or duration within reason.
class MemorySink : public write::TraceSink {
public:
  Result<void> begin(const LogfileHeader &header, const write::HeaderBuffer &first) override;
  Result<void> append(const write::OutputBuffer &buffer) override;
  std::vector<std::uint8_t> bytes;
  LogfileHeader header;
};

class NullSink : public write::TraceSink {
public:
  Result<void> begin(const LogfileHeader &, const write::HeaderBuffer &) override { return {}; }
  Result<void> append(const write::OutputBuffer &) override { return {}; }
};

} // namespace etwrelog::gen
