// Builds whole traces in memory, event by event, so that a test says what it is about and nothing else. Also
// lays out what no healthy session writes: open logs, odd offsets, cut and trailing bytes.
#pragma once

#include "etwrelog/codec.hpp"
#include "etwrelog/logfile_header.hpp"
#include "write/event_builder.hpp"

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace etwrelog::testing {

struct TraceOptions {
  unsigned pointer_size = 8;
  std::uint32_t buffer_size = 0x10000;
  std::uint32_t processors = 4;
  format::ClockType clock = format::ClockType::qpc;
  std::int64_t perf_freq = 10'000'000;
  std::uint32_t cpu_mhz = 2400;
  std::int64_t first_stamp = 1'000'000;
  std::int64_t start_time = 132'500'000'000'000'000; // 2020-11-15
  std::uint32_t mode = format::kModeSequential;
  Codec codec = Codec::none;       // of all buffers that do not say otherwise
  bool closed = true;              // else EndTime and BuffersWritten stay 0
  bool windows7 = false;           // first SavedOffset 0, processor 0x800 + n without the index flag
  bool short_saved_offset = false; // first SavedOffset ends behind the header event, Offset behind all
  std::uint32_t events_lost = 0;
};

// Where an event stands.
struct At {
  std::int64_t time;
  std::uint16_t processor = 0;
};

struct SyntheticBuffer {
  std::uint16_t processor = 0;
  std::vector<std::uint8_t> events;
  std::optional<Codec> codec;
  std::optional<std::int64_t> sequence;
  std::uint16_t type = format::kTypeGeneric;
  std::function<void(format::BufferHeader &)> tweak; // has the last word on the header
};

using Frames = std::vector<std::uint64_t>;

class SyntheticTrace {
public:
  explicit SyntheticTrace(TraceOptions options = {});

  // The file. Open buffers are closed in order of their processors; the trace can grow further afterwards.
  [[nodiscard]] std::vector<std::uint8_t> bytes() const;
  // Ends the open buffer of a processor: what follows on it goes to a new one, behind all that were closed
  // before.
  SyntheticBuffer &end_buffer(std::uint16_t processor);
  // Events from now on go behind the logfile header, into the first buffer.
  void in_first_buffer(bool yes) { in_first_ = yes; }

  [[nodiscard]] LogfileHeader &header() { return header_; }
  [[nodiscard]] std::vector<SyntheticBuffer> &closed_buffers() { return closed_; }
  // What an emitter's number stands for: the event's bytes without padding.
  [[nodiscard]] const std::vector<std::uint8_t> &event(std::size_t number) const { return events_[number]; }
  [[nodiscard]] std::size_t count() const { return events_.size(); }

  // --- Emitters. Each returns the event's number. System events carry header ids, rundown and samples none.

  template <class Build> std::size_t emit(At at, Build &&build) {
    std::vector<std::uint8_t> bytes;
    write::EventBuilder builder(bytes);
    build(builder);
    const std::uint32_t size = builder.finish();
    return append(at.processor, std::move(bytes), size);
  }
  std::size_t raw(At at, std::vector<std::uint8_t> bytes, std::uint32_t size);

  std::size_t process_start(At at, std::uint32_t pid, std::uint32_t parent, std::string_view name,
                            std::string_view command_line = "", std::uint32_t creator_thread = 1);
  std::size_t process_end(At at, std::uint32_t pid, std::string_view name, std::uint32_t thread = 1);
  std::size_t process_rundown(At at, std::uint32_t pid, std::uint32_t parent, std::string_view name,
                              std::string_view command_line = "", bool at_end = false);
  std::size_t thread_start(At at, std::uint32_t tid, std::uint32_t pid, std::uint32_t creator_thread = 1,
                           std::uint32_t creator_process = 4);
  std::size_t thread_end(At at, std::uint32_t tid, std::uint32_t pid);
  std::size_t thread_rundown(At at, std::uint32_t tid, std::uint32_t pid, bool at_end = false);
  std::size_t image_load(At at, std::uint32_t pid, std::uint64_t base, std::uint32_t tid = 1,
                         bool unload = false);
  std::size_t image_rundown(At at, std::uint32_t pid, std::uint64_t base, bool at_end = false);

  std::size_t sample(At at, std::uint32_t tid, std::uint64_t address = 0x7FF6'0000'1000);
  std::size_t context_switch(At at, std::uint32_t new_thread, std::uint32_t old_thread);
  std::size_t switch_batch(At at, Frames threads);
  std::size_t ready_thread(At at, std::uint32_t tid);
  std::size_t page_fault(At at); // of the thread that runs
  std::size_t syscall(At at);
  std::size_t dpc(At at);
  std::size_t isr(At at);

  std::size_t stack_walk(At at, std::int64_t event_time, std::uint32_t pid, std::uint32_t tid,
                         const Frames &frames);
  std::size_t stack_key(At at, std::int64_t event_time, std::uint32_t pid, std::uint32_t tid,
                        std::uint64_t key, bool user = true);
  std::size_t stack_definition(At at, std::uint64_t key, const Frames &frames, bool rundown = false);

  std::size_t file_name(At at, std::uint64_t object, std::string_view name, std::uint16_t hook = 0x0424);
  std::size_t disk_read(At at, std::uint32_t tid, std::uint64_t object);
  std::size_t disk_init(At at, std::uint32_t tid, std::uint32_t header_thread, std::uint32_t header_process);
  std::size_t file_read(At at, std::uint32_t tid, std::uint64_t object, std::uint64_t key);
  std::size_t hard_fault(At at, std::uint32_t tid, std::uint64_t object);
  std::size_t tcp_send(At at, std::uint32_t pid);
  std::size_t udp_receive(At at, std::uint32_t pid);
  std::size_t virtual_alloc(At at, std::uint32_t pid, std::uint32_t header_thread,
                            std::uint32_t header_process);
  // Any SYSTEM or PERFINFO event by its layout, all fields zero.
  std::size_t system(At at, std::uint16_t hook, std::uint8_t version, std::uint32_t tid, std::uint32_t pid);
  std::size_t perfinfo(At at, std::uint16_t hook, std::uint8_t version);

  std::size_t classic(At at, const Guid &guid, std::uint8_t opcode, std::uint32_t tid, std::uint32_t pid,
                      Bytes payload = {});
  std::size_t image_id(At at, std::uint32_t pid, std::uint64_t base);  // opcode 0
  std::size_t image_pdb(At at, std::uint32_t pid, std::uint64_t base); // opcode 36
  std::size_t image_file_version(At at, std::uint32_t pid);            // opcode 64: header ids only
  std::size_t metadata(At at, const Guid &provider, std::uint8_t opcode = 32);

  using Item = std::pair<format::ItemType, std::vector<std::uint8_t>>;
  std::size_t manifest_event(At at, const write::EventFields &fields, std::uint32_t tid, std::uint32_t pid,
                             Bytes payload = {}, const std::vector<Item> &items = {});
  std::size_t trace_logging(At at, const Guid &provider, std::string_view provider_name,
                            std::string_view name, std::uint32_t tid, std::uint32_t pid);
  std::size_t manifest(At at, const Guid &provider, std::uint32_t tid, std::uint32_t pid,
                       std::string_view xml, std::uint16_t chunk = 0, std::uint16_t chunks = 1);
  std::size_t clr_method_load(At at, std::uint32_t tid, std::uint32_t pid);
  std::size_t clr_stack(At at, std::uint32_t tid, std::uint32_t pid, const Frames &frames);
  // The user's part of a stack, which the item of an event with this MatchId awaits.
  std::size_t later_stack(At at, std::uint32_t tid, std::uint32_t pid, std::uint64_t match,
                          const Frames &frames);
  std::size_t message(At at, const Guid &guid, std::uint32_t tid, std::uint32_t pid);

private:
  std::size_t append(std::uint16_t processor, std::vector<std::uint8_t> bytes, std::uint32_t size);

  TraceOptions options_;
  LogfileHeader header_;
  bool in_first_ = false;
  std::vector<std::uint8_t> first_events_;
  std::vector<SyntheticBuffer> closed_, open_;
  std::vector<std::vector<std::uint8_t>> events_;
};

// A 64-bit stack item's data: MatchId and frames.
[[nodiscard]] std::vector<std::uint8_t> stack_item(const Frames &frames, std::uint64_t match = 0);
// A 64-bit stack key item's data: MatchId 0 and key.
[[nodiscard]] std::vector<std::uint8_t> stack_key_item(std::uint64_t key);

} // namespace etwrelog::testing
