// What a profile needs of a trace's events, taken out of them once: small records in the order of the file.
#pragma once

#include "etwrelog/event.hpp"
#include "profile/marks.hpp"
#include "profile/sequence.hpp"
#include "profile/who_ran.hpp"

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace etwrelog::profile {

// Runs body(0) .. body(count - 1), maybe at once and on several threads.
using ParallelFor = std::function<void(std::size_t count, const std::function<void(std::size_t)> &body)>;

// Where an event stands: of equal times the order of the file decides.
struct Instant {
  std::int64_t time = 0;
  std::uint64_t order = 0;
  auto operator<=>(const Instant &) const = default;
};

// A StackWalk event or a reference to a stack by key.
struct Fragment {
  std::int64_t event_time = 0; // of the event that it names
  std::int64_t time = 0;       // when it was written
  std::uint32_t thread = 0, process = 0;
  std::uint32_t stack = kNoStack;  // the caller's number of its frames
  std::uint16_t owner = kOrphaned; // by the join: kOrphaned, kOfSubject or the number of a kind
  // Windows has at most 2,048 processors; there are millions of fragments.
  std::uint16_t processor : 11 = 0;
  // Kernel: its outermost frame is in kernel space. User first: its innermost frame is not.
  std::uint16_t flags : 5 = 0;

  static constexpr std::uint32_t kNoStack = 0xFFFF'FFFF;
  static constexpr std::uint16_t kOrphaned = 0xFFFF, kOfSubject = 0xFFFE;
  static constexpr std::uint16_t kHasFrames = 1, kKernel = 2, kUserFirst = 4, kClaimed = 8, kReference = 16;
  [[nodiscard]] bool is(std::uint16_t flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(Fragment) == 32);

struct TimeRange { // both ends included
  std::int64_t from = std::numeric_limits<std::int64_t>::max(), to = std::numeric_limits<std::int64_t>::min();
  [[nodiscard]] bool empty() const { return from > to; }
  [[nodiscard]] bool holds(std::int64_t time) const { return from <= time && time <= to; }
};

struct ProcessRecord {
  Instant at;
  std::uint8_t opcode = 0; // 1 start, 2 end, 3 and 4 rundown at the start and at the end
  std::uint32_t pid = 0;
  std::string name, command_line;
  bool of_provider = false; // Microsoft-Windows-Kernel-Process tells it, not the kernel logger
};
struct ThreadRecord {
  Instant at;
  std::uint8_t opcode = 0;
  std::uint32_t tid = 0, pid = 0;
  bool of_provider = false;
};
struct ThreadName {
  Instant at;
  std::uint32_t tid = 0;
  std::string name;
};
struct ImageRecord {
  Instant at;
  bool leaves = false, rundown = false; // a rundown tells what is there and changes nothing
  std::uint32_t pid = 0, time_stamp = 0;
  std::uint64_t base = 0, size = 0;
  std::string path;
  bool of_provider = false;
};
// Which PDB an image belongs to, as a merge of the trace wrote it down.
struct IdentityRecord {
  Instant at;
  std::uint32_t pid = 0, age = 0, time_stamp = 0; // time_stamp: 0 unless from ImageID
  std::uint64_t base = 0;
  Guid guid;
  std::string pdb_name;
};
struct IntervalRecord {
  enum class Of : std::uint8_t { start, change, end }; // of sampling
  std::int64_t time = 0;
  std::uint32_t source = 0, interval = 0, before = 0; // 100 ns; source 0: the timer
  Of of = Of::start;
};

// Context switches and readied threads, for where threads wait and what they did when.
struct ReadyRecord {
  std::int64_t time = 0;
  std::uint32_t thread = 0; // the readied one
  std::uint16_t processor = 0;
};

struct SwitchRecord {
  std::int64_t time = 0;
  std::uint32_t new_thread = 0, old_thread = 0;
  std::uint32_t subject = 0; // its number, if switches are what the profile is about
  std::uint16_t processor = 0;
  std::uint8_t reason = 0, state = 0; // of the old thread
};

// The beginning of what a subject ended: it has the stack.
struct Begun {
  std::int64_t time = 0;
  std::uint32_t thread = 0, subject = 0;
  std::uint16_t kind = 0; // of its mark, if that is not a subject itself
};

struct Records {
  Sequence<SwitchRecord> switches;
  Sequence<Subject> subjects;
  Sequence<std::uint64_t> weights;     // of these, where each has its own; else empty
  Sequence<std::uint32_t> leaves;      // of these, where each has a frame of its own: places in leaf_texts
  std::vector<std::string> leaf_texts; // empty: none
  Sequence<std::uint64_t> code_leaves; // instead, where that frame is an address of code; 0: none
  std::vector<Begun> begun;            // by time and thread; the later first, of which one gets the stack
  Marks marks;
  Sequence<Fragment> fragments;
  Sequence<ReadyRecord> readies;
  WhoRan who_ran;                  // if a subject is Subject::kByWhoRan
  std::vector<TimeRange> overlaps; // at these times join_within() may have erred
  std::vector<ProcessRecord> processes;
  std::vector<ThreadRecord> threads;
  std::vector<ThreadName> thread_names;
  std::vector<ImageRecord> images;
  std::vector<IdentityRecord> identities;
  std::vector<IntervalRecord> intervals;
  std::vector<std::string> kinds; // names of the kinds of events that stacks were found to belong to
};

} // namespace etwrelog::profile
