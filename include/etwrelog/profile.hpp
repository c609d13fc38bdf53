// A profile: where the time went, as samples on a tree of stacks. Experimental: may change in any release.
//
// All tables refer to each other by index. A profile without names (no symbols looked up) keeps for each
// frame its module and offset, so that names can be given later, on another machine too. A profile is a value
// that owns what it holds: const on any thread.
#pragma once

#include "etwrelog/guid.hpp"
#include "etwrelog/run.hpp"
#include "etwrelog/select.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace etwrelog {

inline constexpr std::uint32_t kNoIndex = 0xFFFF'FFFF; // no module, no process, no parent

enum class FrameKind : std::uint8_t {
  kernel,     // native code of a kernel image
  native,     // native code of a user-mode image
  jit,        // code that a runtime made while the program ran
  inlined,    // inlined into the frame that is its parent; same module, address and rva as that one
  unresolved, // no image is known there
  annotation, // no code: `function` is a note such as "[no stack]", a waker, a wait
};

// Why a frame has no function name.
enum class Unresolved : std::uint8_t {
  none,            // it has one
  not_asked,       // names were not asked for
  no_image,        // no image is known at that address and time
  no_identity,     // the image's PDB is not named in the trace: the trace was not merged
  pdb_not_found,   // looked for and not found; ProfileModule::detail says where
  pdb_other_build, // found by its name, but of another build: its GUID or its age is another
  pdb_compressed,  // found, but in the MSFZ container, which cannot be read yet
  pdb_damaged,     // found, but not readable
  no_symbol,       // the PDB has nothing at or before that address
  rundown_missing, // code of a runtime that did not list its methods in the trace
  count_,
};
[[nodiscard]] const char *unresolved_text(Unresolved why);

struct ProfileModule {
  std::string name;     // "ntdll.dll"; the last part of the path
  std::string path;     // as the trace gives it
  std::string pdb_name; // as in the image's debug directory, maybe with a path; empty if not known
  Guid pdb_guid;        // zero if not known
  std::uint32_t pdb_age = 0;
  std::uint32_t time_stamp = 0; // of the PE header; 0 if not known
  std::uint64_t base = 0, size = 0;
  bool kernel = false;
  // What looking for its names came to.
  Unresolved symbols = Unresolved::not_asked;
  std::string detail; // where its PDB was found, or looked for in vain
};

struct ProfileFrame {
  std::string function;            // empty if unresolved
  std::uint32_t module = kNoIndex; // in Profile::modules
  std::uint64_t address = 0;       // as logged: of a caller, the return address
  std::uint64_t rva = 0;           // address - base of the module; 0 without a module
  FrameKind kind = FrameKind::unresolved;
  bool in_kernel = false; // the address lies in kernel space, known image or not
  bool caller = false;    // a return address: code was looked up at address - 1
  bool estimated = false; // `function` is merely the nearest symbol before the address
  Unresolved why = Unresolved::not_asked;
  std::string file;         // source file; empty if not known
  std::uint32_t line = 0;   // 0 if not known; of a script: where its function begins
  std::uint32_t column = 0; // of a script, with the line, as its engine counts; 0 if not known
  std::uint32_t il_offset =
      kNoIndex;     // of .NET code: which instruction of the method's IL; kNoIndex: not known
  std::string tier; // of JIT code: "Tier1", "QuickJitted", ...; empty if not known
};

// The stacks, as a tree. Node 0 is the empty stack; a child stands behind its parent.
struct ProfileNode {
  std::uint32_t parent = kNoIndex; // towards the outermost frame; kNoIndex for node 0 only
  std::uint32_t frame = kNoIndex;
};

struct ProfileProcess {
  std::uint32_t pid = kNoIndex; // kNoIndex: it is not known whose the thread is; printed as -1
  std::string name;             // "?" if not known
  std::string command_line;
  std::int64_t start = std::numeric_limits<std::int64_t>::min(); // ns since trace start; if seen in the trace
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

struct ProfileThread {
  std::uint32_t tid = 0;
  std::uint32_t process = kNoIndex; // in Profile::processes
  std::string name;                 // empty if it has none
  std::int64_t start = std::numeric_limits<std::int64_t>::min();
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  std::uint32_t run = 0; // in Profile::runs, where there are several
};

enum class SampleClass : std::uint8_t {
  full,            // the whole stack
  kernel_complete, // the whole stack, of a process that has no user mode (Idle, System)
  user_missing,    // the kernel part only: its user half is not in the trace
  no_stack,        // no stack in the trace; the instruction pointer is its one frame
  count_,
};
[[nodiscard]] const char *sample_class_text(SampleClass sample_class);

// Times of samples, slices and intervals, in nanoseconds, end there on both sides (126 years), whatever a
// trace says: any two of them have a difference.
inline constexpr std::int64_t kProfileTimeLimit = 4'000'000'000'000'000'000;

struct ProfileSample {
  std::int64_t time = 0; // ns since trace start; of a wait, when it began
  // Nanoseconds of waits, and by_time; else samples, events, or what Profile::summed says.
  std::uint64_t weight = 1;
  std::uint32_t thread = 0; // in Profile::threads
  std::uint32_t node = 0;   // its innermost frame, in Profile::nodes
  std::uint16_t processor = 0;
  SampleClass sample_class = SampleClass::full;
  // Of a wait: µs that it was ready to run behind that time; of a time ready: that it waited before; at most
  // some 71 minutes.
  std::uint32_t beside_us = 0;
};

// What a thread did over a stretch of time, from context switches; empty in traces that have none.
enum class SliceState : std::uint8_t { running, ready, waiting };
struct ProfileSlice {
  std::int64_t start = 0, end = 0; // ns since trace start
  std::uint32_t thread = 0;
  std::uint16_t processor = 0; // where it ran; of ready and waiting slices, where it ran last
  SliceState state = SliceState::running;
  std::uint8_t wait_reason = 0;
};

// Each sample is in exactly one class. Each stack fragment in the trace is claimed by a sample, belongs to
// another event, or is orphaned; totals add up.
struct ProfileCounts {
  std::uint64_t samples = 0;
  std::uint64_t by_class[static_cast<std::size_t>(SampleClass::count_)] = {};
  std::uint64_t fragments = 0, claimed = 0, other_event = 0, orphaned = 0;
};
struct ProfileAccounting {
  ProfileCounts total;
  std::vector<ProfileCounts> by_process; // as Profile::processes
  std::vector<std::pair<std::string, std::uint64_t>>
      other_events;                   // fragments of other events, by the event's name
  std::uint64_t undefined_keys = 0;   // fragments whose stack key is never defined; among the orphaned
  std::uint64_t lent_user_halves = 0; // kernel halves that another event's user half completed
  std::uint64_t idle_left_out = 0;    // samples of the Idle process that Profile::samples does not hold
  std::uint64_t not_timed = 0; // waits: switches that end no wait with a length: the first of a thread (in
                               // the stretch), or of no time
  std::uint64_t in_dpc_or_isr = 0; // samples taken in one
};

// `events`: each event of the kinds that were asked for counts, at the stack on which it was written. What is
// said here of samples is then said of these.
enum class ProfileKind : std::uint8_t { cpu, wait, ready, events };
[[nodiscard]] const char *profile_kind_name(ProfileKind kind); // "cpu"

// Profile::summed of events that weigh how long it took what they end.
inline constexpr const char *kSummedDuration = "duration";

struct ProfileInterval { // the sampling interval from `time` on
  std::int64_t time = 0; // ns since trace start
  std::uint64_t interval_ns = 0;
};

struct ProfileStretch { // ns since trace start
  std::int64_t from = 0, to = 0;
};

struct Profile {
  std::string trace;                     // its name
  std::vector<std::string> runs;         // of profiles that append() put together, the name of each trace
  std::int64_t start_time = 0;           // FILETIME of time 0
  std::int64_t duration = 0;             // ns, of all the trace
  std::optional<ProfileStretch> stretch; // that was asked for, as far as the trace reaches; none: all of it
  [[nodiscard]] std::int64_t length() const { return stretch ? stretch->to - stretch->from : duration; }
  std::uint32_t processors = 0;
  ProfileKind kind = ProfileKind::cpu;
  std::vector<std::string>
      events; // ProfileKind::events: the names that were asked for; none of a file read back
  // ProfileKind::events: the field of theirs that weights are sums of; empty where each weighs 1.
  std::string summed;
  // The sampling interval: of all samples, or, by_time, of most; where there are none, of most of the time
  // that was asked for. 0 if not known.
  std::uint64_t interval_ns = 0;
  // Weights are nanoseconds: of samples that were taken at several intervals, what each stands for; of
  // events, how long it took what they end.
  bool by_time = false;
  std::vector<ProfileInterval> intervals; // by time, as the trace has them; empty if it does not tell
  std::uint64_t events_lost = 0, buffers_lost = 0; // these: also what the file lacks of those written
  bool lost_known = true; // else the trace was never closed, and says nothing of these

  std::vector<ProfileModule> modules;
  std::vector<ProfileFrame> frames;
  std::vector<ProfileNode> nodes{ProfileNode{}};
  std::vector<ProfileProcess> processes;
  std::vector<ProfileThread> threads;
  std::vector<ProfileSample> samples; // by time; ties in the order of the file
  std::vector<ProfileSlice> slices;   // only if asked for; by thread, then by time
  ProfileAccounting accounting;

  [[nodiscard]] const ProfileProcess &process_of(const ProfileSample &sample) const {
    return processes[threads[sample.thread].process];
  }
  // Whether weights are numbers of samples, which are drawn, and not all there was.
  [[nodiscard]] bool counts_samples() const { return kind == ProfileKind::cpu && !by_time; }
  // Whether weights are numbers, of samples or events or what these say; else they are nanoseconds.
  [[nodiscard]] bool counts() const {
    return !by_time && (kind == ProfileKind::cpu || kind == ProfileKind::events);
  }
  // Nanoseconds that a weight of 1 stands for; 0 if not known, or if it stands for none.
  [[nodiscard]] std::uint64_t weight_ns() const { return counts() ? interval_ns : 1; }
};

class Trace;

struct ProfileOptions {
  ProfileKind kind = ProfileKind::cpu;
  // For ProfileKind::events, and only for that. Their stacks are those that the kernel wrote for them, those
  // in the events themselves, and of .NET's events those that its runtime wrote behind them. What ends a
  // request to a disk (DiskIO/Read, Write, FlushBuffers) is by whom its beginning is, and has that one's
  // stack. Who wrote an event is told by its header where the trace tells nothing of the thread; of events
  // that name no thread, by their stack, by the process in their payload, or by who ran on their processor.
  // Stacks are no events of their own.
  NamedKinds events{};
  // Of these, a field that is one number: instead of 1 each weighs what it says there. Where none is called
  // "duration", that is how long it took what the event ends: of requests to disks and files, of processes
  // and threads, and from a provider's Start to its Stop, by activity, else by thread.
  std::string sum{};
  // Of these, a field: what it says is the innermost frame, "TypeName: System.String", or, of an address of
  // code (Format::address), the frame that this is. Where none is called "file", that is the path of the
  // FileObject or FileKey, "file: \Device\HarddiskVolume2\a.txt".
  std::string leaf{};
  bool idle = false;   // keep the samples of the Idle process; it waits for nothing, whatever this says
  bool slices = false; // Profile::slices: what each thread did when, from context switches
  bool names = false; // of code that runtimes made, out of the trace; for native code see profile_symbols.hpp
  // Samples in between, ends included, and waits that began and ended there; a slice that reaches over an end
  // is cut off there (running) or left out. The accounting is that of the samples or switches in between and
  // of the stack fragments that name an event in between. Of an archive only the segments of that time are
  // decoded.
  std::optional<Moment> from{}, to{};
};

struct ProfileResult {
  Profile profile; // without samples where the trace has none of that kind: `events` tells what it has
  std::map<std::string, std::uint64_t> events; // by kind of event: how many
  std::uint64_t unreadable = 0;                // stack events and samples that are too short to be read
  std::uint64_t weightless = 0; // with ProfileOptions::sum: events that do not say it, or what is below 0
  std::vector<std::string> warnings;
  std::vector<Skipped> skipped; // with OpenOptions::salvage
};

// One pass over each source. Several are files of one recording, of one machine and boot, as relog() asks it
// of them (else unsupported, with what differs), and the profile begins with the one that began first;
// append() of profile_report.hpp puts profiles of different runs together. Memory: the stack table and some
// 60 bytes a sample or stack event. Errors are those of reading a trace.
[[nodiscard]] Result<ProfileResult> make_profile(const Trace &trace, const ProfileOptions &options = {},
                                                 const RunOptions &run = {});

// What a profile's weights are numbers of, as people read it: "samples", "events", "bytes" where the name of
// the field that was added up tells that ("IoSize", "AllocationAmount64"), or that name; "nanoseconds" where
// they are none.
[[nodiscard]] std::string profile_unit(const Profile &profile);

// "module!function", "module+0x1c0" or "0x7ffe0300"; an annotation as it is. No suffix for the kind.
[[nodiscard]] std::string frame_text(const Profile &profile, const ProfileFrame &frame);
// "game.exe (1234)"; "? (-1)" for the unknown one.
[[nodiscard]] std::string process_text(const ProfileProcess &process);

} // namespace etwrelog
