// What the generator wrote, counted as it wrote it: the truth that a reader of the trace has to find.
#pragma once

#include "machine.hpp"

#include "etwrelog/format.hpp"

#include <map>
#include <string>
#include <unordered_set>

namespace etwrelog::gen {

// Every kind of event that the generator emits. Kernel kinds stand first, in the order of kHooks.
enum class Kind : std::uint8_t {
  header,
  extension,
  end_extension,
  partition,
  rundown_complete,
  build_lab,
  disk_read,
  disk_write,
  disk_read_init,
  disk_write_init,
  demand_zero,
  hard_fault,
  virtual_alloc,
  virtual_free,
  process_start,
  process_end,
  process_dc_start,
  process_dc_end,
  image_load,
  process_terminate,
  file_name_create,
  file_rundown,
  file_create,
  file_close,
  file_read,
  file_write,
  file_end,
  thread_start,
  thread_end,
  thread_dc_start,
  thread_dc_end,
  context_switch,
  ready_thread,
  tcp_send,
  tcp_receive,
  udp_send,
  udp_receive,
  registry_open,
  registry_set_value,
  registry_query_value,
  key_create,
  key_drop,
  key_rundown_end,
  cpu_config,
  service_config,
  sample,
  isr,
  dpc,
  timer_dpc,
  interval_start,
  interval_end,
  image_unload,
  image_dc_start,
  image_dc_end,
  kernel_base,
  stack_walk,
  key_delete,
  key_rundown,
  key_kernel,
  key_user,
  kernel_count_,
  image_id = kernel_count_,
  debug_id,
  file_version,
  build_info,
  system_paths,
  volume_mapping,
  mark,
  trace_logging,
  event_source,
  event_source_manifest,
  manifest_start,
  manifest_stop,
  clr_method,
  clr_gc,
  clr_stack,
  clr_rundown_method,
  clr_rundown_module,
  wpp,
  count_
};
inline constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::count_);

[[nodiscard]] std::uint16_t hook_of(Kind kind); // kernel kinds only
[[nodiscard]] std::string
type_name(Kind kind); // "hook:0x0f2e", "event:GUID/id/version", "classic:GUID/op/version"
[[nodiscard]] bool is_stack(Kind kind);

struct ProcessTally {
  std::array<std::uint64_t, kKinds> count{};
};

class Tally {
public:
  std::array<std::uint64_t, kKinds> count{}, bytes{}; // bytes without padding
  std::uint64_t frames = 0;
  std::vector<std::uint64_t> stack_hashes; // some may repeat
  std::vector<std::uint32_t> stack_owners; // Process::index of each, in order of writing; for the stack cache
  std::vector<std::pair<std::uint32_t, ProcessTally>> processes; // by Process::index, in order of first use
  std::vector<std::shared_ptr<const Process>> appeared;          // processes that started
  // Samples whose innermost frame is code of a planted PDB, by its number and the RVA.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> planted;

  std::map<std::string, std::uint64_t> by_key; // events of the registry, by the key that they are about

  void add(Kind kind, std::uint32_t size) {
    ++count[static_cast<std::size_t>(kind)];
    bytes[static_cast<std::size_t>(kind)] += size;
  }
  void own(Kind kind, std::uint32_t process_index) {
    ++of(process_index).count[static_cast<std::size_t>(kind)];
  }
  void clear();

private:
  ProcessTally &of(std::uint32_t index) {
    if (last_ < processes.size() && processes[last_].first == index) return processes[last_].second;
    for (last_ = 0; last_ < processes.size(); ++last_)
      if (processes[last_].first == index) return processes[last_].second;
    return processes.emplace_back(index, ProcessTally()).second;
  }
  std::size_t last_ = 0;
};

// The sum over a trace.
class Truth {
public:
  void add(const Tally &tally);
  void know(const std::shared_ptr<const Process> &process) { known_.emplace(process->index, process); }

  std::array<std::uint64_t, kKinds> count{}, bytes{};
  std::uint64_t frames = 0;
  std::uint64_t buffers = 0, raw_bytes = 0, file_bytes = 0;
  std::int64_t first_time = 0, last_time = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> planted; // as Tally's
  std::map<std::string, std::uint64_t> by_key;                              // as Tally's
  std::vector<PlantedPdb> pdbs;
  std::uint64_t schema_events = 0; // counted nowhere else
  std::string schemas;             // what they say, as JSON; empty without them
  // Per sequence of buffers as written: how many events they hold. For the defects.
  [[nodiscard]] std::uint64_t distinct_stacks() const { return stacks_.size(); }
  [[nodiscard]] std::uint64_t events() const;
  [[nodiscard]] std::uint64_t stack_events() const;
  [[nodiscard]] std::uint64_t stack_bytes() const;
  [[nodiscard]] std::string json(const std::string &defects) const; // `defects`: a JSON array

private:
  std::unordered_set<std::uint64_t> stacks_;
  std::map<std::uint32_t, ProcessTally> processes_;
  std::map<std::uint32_t, std::shared_ptr<const Process>> known_;
};

} // namespace etwrelog::gen
