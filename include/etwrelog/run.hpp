// How a call runs: threads, memory, being stopped, being watched. Every call of the library that reads a
// trace takes RunOptions. It makes its own threads and ends them, changes nothing of the process (no signal
// handlers, no locale, no output), and gives the same result whatever the number of threads.
#pragma once

#include "etwrelog/error.hpp"

#include <functional>
#include <stop_token>
#include <vector>

namespace etwrelog {

// How far a call has got. `phase` lives as long as the call of the function that it is given to.
struct Progress {
  std::string_view phase;
  std::uint64_t done = 0, total = 0; // bytes of input in this phase; total 0: not known
  std::uint64_t events = 0;          // in this phase; 0 where they are not counted
};

// A stretch of an input that was stepped over.
struct Skipped {
  std::uint32_t source = 0; // of several traces read as one: which
  std::uint64_t offset = 0, bytes = 0;
  std::string why;
};

// What a call can say of itself; filled in also where it fails. 0: this call does not count it.
struct RunReport {
  std::uint64_t stored_bytes = 0, decoded_bytes = 0; // of the input
  std::uint64_t buffers = 0, events = 0;
  std::uint64_t peak_memory = 0; // what RunOptions::memory accounts for, not the process's size
  std::uint64_t buffers_left_out =
      0;                         // not read, because the index of an archive says that they do not matter
  std::uint64_t late_events = 0; // delivered behind their turn in the order of time
  struct Phase {
    std::string name;
    double wall = 0, busy = 0; // seconds; busy: summed over threads
    struct Step {              // what a phase does with each batch
      std::string_view name;   // "read_and_decompress", "decode_and_filter", "in_order", "compress", "write"
      double busy = 0;
    };
    std::vector<Step> steps{}; // their times come to `busy`
  };
  std::vector<Phase> phases;
  std::vector<Skipped> skipped; // each once, however often the trace is read
  std::vector<std::string> warnings;
};

struct RunOptions {
  unsigned threads = 0; // at most; 0: as many as the machine has; 1: none is made, the caller's does all
  std::uint64_t memory = 1u << 30; // bytes for the buffers, caches and tables of this call
  std::stop_token stop{}; // looked at for every batch; then ErrorKind::cancelled, and no output is left
  std::function<void(const Progress &)> progress{}; // at most ten a second, one thread at a time, maybe not
                                                    // the caller's; once it has thrown, silent for the phase
  RunReport *report = nullptr;
};

// The machine's number of threads, as RunOptions::threads = 0 takes it.
[[nodiscard]] unsigned default_threads();

} // namespace etwrelog
