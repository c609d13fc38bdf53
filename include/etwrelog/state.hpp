// What was there while a trace was recorded, and when: processes, threads, images. Ids and addresses are used
// again: a process id means one process now and another one later, a base address one image and then the
// next. Level 4.
//
//   Result<Lifetimes> lifetimes = Lifetimes::collect(*trace);
//   const ProcessInstance *process = lifetimes->process_at(event.machine(), event.process_id(),
//   event.time());
//
// Times are ticks of Trace::clock(). What was there before the trace began has kBeginning as its start
// (unless it says more: rundown events tell that something is there, not since when), what was there when it
// ended has kForever as its end. Machines are those of SourceInfo::machine. Strings are UTF-8; what a trace
// gives of them is given, paths as Windows wrote them (\Device\HarddiskVolume3\...).
#pragma once

#include "etwrelog/guid.hpp"
#include "etwrelog/run.hpp"
#include "etwrelog/schema.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace etwrelog {

class Trace;

inline constexpr std::int64_t kBeginning =
    std::numeric_limits<std::int64_t>::min(); // of time, as far as is known
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

// One process from its start to its end, as far as the trace tells. Ids are reused: two instances may share
// one.
struct ProcessInstance {
  std::uint32_t pid = 0, parent = 0, session = 0;
  std::int64_t start = kBeginning, end = kForever; // the extremes when not seen
  std::int32_t exit_status = 0;                    // meaningful when `end` was seen
  std::string image_name, command_line;
  std::uint32_t machine = 0;
};

// One thread. `process`: its process as an index in Lifetimes::processes(), kNoProcess if the trace does not
// tell of it.
inline constexpr std::uint32_t kNoProcess = 0xFFFF'FFFF;
struct ThreadInstance {
  std::uint32_t tid = 0, pid = 0, process = kNoProcess, machine = 0;
  std::int64_t start = kBeginning, end = kForever;
  std::string name; // the last it was given; empty without one
};

// One image (exe, dll, driver) from its load to its unload. What says which PDB belongs to it is there in
// traces that were merged on the machine that recorded them (KernelTraceControl's events), else it is zero
// and empty.
struct ImageInstance {
  std::uint32_t pid = 0;                                  // of kernel images 0 or 4
  std::uint32_t machine = 0, time_stamp = 0, pdb_age = 0; // time_stamp: of the PE header
  std::uint64_t base = 0, size = 0;
  std::int64_t load = kBeginning, unload = kForever;
  Guid pdb_guid;
  std::string path, pdb_name;
};

// Immutable, cheap to copy, any thread. Look-ups are O(log n). Pointers and spans are valid as long as a copy
// lives.
class Lifetimes {
public:
  // One pass over the trace, whatever it holds. Memory: some hundred bytes a process, thread, image, and 24
  // for each definition of a stack. Errors are those of reading a trace; a single-pass trace is unsupported.
  [[nodiscard]] static Result<Lifetimes> collect(const Trace &trace, const RunOptions &run = {});

  [[nodiscard]] std::span<const ProcessInstance> processes() const; // by machine, process id, start
  [[nodiscard]] std::span<const ThreadInstance> threads() const;    // by machine, thread id, start
  [[nodiscard]] std::span<const ImageInstance> images() const;      // by machine, process id, base, load

  // Null: not known. The instance that an id meant at a time is the latest that had started; before the first
  // start it is the first, as ids are in use around their own start and end events.
  [[nodiscard]] const ProcessInstance *process_at(std::uint32_t machine, std::uint32_t pid,
                                                  std::int64_t time) const;
  // The latest that had started; null before the first start. A thread that has ended keeps its id until it
  // is started anew.
  [[nodiscard]] const ThreadInstance *thread_at(std::uint32_t machine, std::uint32_t tid,
                                                std::int64_t time) const;
  // The image that held an address, of the process or of the kernel.
  [[nodiscard]] const ImageInstance *image_at(std::uint32_t machine, std::uint32_t pid, std::uint64_t address,
                                              std::int64_t time) const;

  struct Impl;
  Lifetimes();

private:
  friend struct StateParts; // for the library
  std::shared_ptr<const Impl> impl_;
};

// What a reader of events wants to know beforehand.
struct Survey {
  SchemaCatalog schemas; // the built-in ones and the trace's own
  Lifetimes lifetimes;
};

// Both in one pass.
[[nodiscard]] Result<Survey> survey(const Trace &trace, const RunOptions &run = {});

} // namespace etwrelog
