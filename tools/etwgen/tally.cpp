#include "tally.hpp"

#include "providers.hpp"

#include <nlohmann/json.hpp>

namespace etwrelog::gen {
namespace {

// In the order of Kind.
constexpr std::uint16_t kHooks[] = {
    0x0000, 0x0005, 0x0020, 0x0050, 0x0008, 0x0042,         // trace
    0x010A, 0x010B, 0x010C, 0x010D,                         // disk
    0x020B, 0x0220, 0x0262, 0x0263,                         // memory
    0x0301, 0x0302, 0x0303, 0x0304, 0x030A, 0x030B,         // process
    0x0420, 0x0424, 0x0440, 0x0442, 0x0443, 0x0444, 0x044C, // file
    0x0501, 0x0502, 0x0503, 0x0504, 0x0524, 0x0532,         // thread
    0x060A, 0x060B, 0x080A, 0x080B,                         // network
    0x090B, 0x090E, 0x0910, 0x0916, 0x0917, 0x0919,         // registry
    0x0B0A, 0x0B0F,                                         // configuration
    0x0F2E, 0x0F43, 0x0F44, 0x0F45, 0x0F49, 0x0F4A,         // sampling, interrupts
    0x1402, 0x1403, 0x1404, 0x1421,                         // image
    0x1820, 0x1823, 0x1824, 0x1825, 0x1826,                 // stacks
};
static_assert(std::size(kHooks) == static_cast<std::size_t>(Kind::kernel_count_));

std::string event(const Guid &guid, unsigned id, unsigned version) {
  return "event:" + to_string(guid) + "/" + std::to_string(id) + "/" + std::to_string(version);
}
std::string classic(const Guid &guid, unsigned opcode, unsigned version) {
  return "classic:" + to_string(guid) + "/" + std::to_string(opcode) + "/" + std::to_string(version);
}

bool is_image(Kind k) {
  return k == Kind::image_load || k == Kind::image_unload || k == Kind::image_dc_start ||
         k == Kind::image_dc_end;
}

} // namespace

std::uint16_t hook_of(Kind kind) {
  return kHooks[static_cast<std::size_t>(kind)];
}

bool is_stack(Kind kind) {
  return kind >= Kind::stack_walk && kind <= Kind::key_user;
}

std::string type_name(Kind kind) {
  if (kind < Kind::kernel_count_) {
    char text[16];
    std::snprintf(text, sizeof text, "hook:0x%04x", hook_of(kind));
    return text;
  }
  switch (kind) {
  case Kind::image_id: return classic(format::kImageIdGuid, 0, 2);
  case Kind::debug_id: return classic(format::kImageIdGuid, 36, 2);
  case Kind::file_version: return classic(format::kImageIdGuid, 64, 0);
  case Kind::build_info: return classic(format::kSysConfigGuid, 32, 0);
  case Kind::system_paths: return classic(format::kSysConfigGuid, 33, 0);
  case Kind::volume_mapping: return classic(format::kSysConfigGuid, 35, 0);
  case Kind::mark: return classic(kMarkClass, 34, 0);
  case Kind::trace_logging: return event(kTraceLoggingProvider, 0, 0);
  case Kind::event_source: return event(kEventSourceProvider, 7, 0);
  case Kind::event_source_manifest: return event(kEventSourceProvider, format::kManifestEventId, 1);
  case Kind::manifest_start: return event(kManifestProvider, 301, 1);
  case Kind::manifest_stop: return event(kManifestProvider, 302, 0);
  case Kind::clr_method: return event(format::kClrGuid, 143, 1);
  case Kind::clr_gc: return event(format::kClrGuid, 10, 2);
  case Kind::clr_stack: return event(format::kClrGuid, 82, 0);
  case Kind::clr_rundown_method: return event(format::kClrRundownGuid, 144, 1);
  case Kind::clr_rundown_module: return event(format::kClrRundownGuid, 154, 1);
  case Kind::wpp: return "wpp:" + to_string(kWppProvider);
  default: return "?";
  }
}

void Tally::clear() {
  count.fill(0);
  bytes.fill(0);
  frames = 0;
  stack_hashes.clear();
  stack_owners.clear();
  processes.clear();
  appeared.clear();
  planted.clear();
  by_key.clear();
  last_ = 0;
}

void Truth::add(const Tally &tally) {
  for (std::size_t i = 0; i < kKinds; ++i) {
    count[i] += tally.count[i];
    bytes[i] += tally.bytes[i];
  }
  frames += tally.frames;
  stacks_.insert(tally.stack_hashes.begin(), tally.stack_hashes.end());
  for (const auto &[index, own] : tally.processes)
    for (std::size_t i = 0; i < kKinds; ++i)
      processes_[index].count[i] += own.count[i];
  for (const auto &p : tally.appeared)
    know(p);
  for (const auto &[place, samples] : tally.planted)
    planted[place] += samples;
  for (const auto &[key, events] : tally.by_key)
    by_key[key] += events;
}

std::uint64_t Truth::events() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t n : count)
    sum += n;
  return sum;
}
std::uint64_t Truth::stack_events() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kKinds; ++i)
    if (is_stack(static_cast<Kind>(i))) sum += count[i];
  return sum;
}
std::uint64_t Truth::stack_bytes() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kKinds; ++i)
    if (is_stack(static_cast<Kind>(i))) sum += bytes[i];
  return sum;
}

std::string Truth::json(const std::string &defects) const {
  using nlohmann::ordered_json;
  ordered_json root;
  auto &total = root["events"];
  total["count"] = events();
  for (std::size_t i = 0; i < kKinds; ++i)
    if (count[i] != 0) total["by_type"][type_name(static_cast<Kind>(i))] = {count[i], bytes[i]};
  if (!schemas.empty()) {
    root["schemas"] = ordered_json::parse(schemas);
    root["schemas"]["count"] = schema_events;
  }
  root["buffers"] = {{"count", buffers}, {"raw_bytes", raw_bytes}};
  root["time"] = {{"first", first_time}, {"last", last_time}};
  std::map<std::uint32_t, std::uint64_t> samples, images;
  auto &list = root["processes"] = ordered_json::array();
  for (const auto &[index, own] : processes_) {
    const auto found = known_.find(index);
    if (found == known_.end()) continue;
    const Process &p = *found->second;
    ordered_json entry = {
        {"pid", p.pid}, {"name", p.name}, {"parent", p.parent}, {"started", p.started}, {"target", p.target}};
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kKinds; ++i) {
      if (own.count[i] == 0) continue;
      const Kind kind = static_cast<Kind>(i);
      entry["by_type"][type_name(kind)] = own.count[i];
      sum += own.count[i];
      if (kind == Kind::sample) samples[p.pid] += own.count[i];
      if (is_image(kind)) images[p.pid] += own.count[i];
    }
    entry["events"] = sum;
    list.push_back(std::move(entry));
  }
  for (const auto &[pid, n] : samples)
    root["samples_by_pid"][std::to_string(pid)] = n;
  for (const auto &[pid, n] : images)
    root["images_by_pid"][std::to_string(pid)] = n;
  auto number = [this](Kind kind) { return count[static_cast<std::size_t>(kind)]; };
  root["stacks"] = {{"events", stack_events()},
                    {"bytes", stack_bytes()},
                    {"frames", frames},
                    {"unique", distinct_stacks()},
                    {"walk", number(Kind::stack_walk)},
                    {"key_delete", number(Kind::key_delete)},
                    {"key_rundown", number(Kind::key_rundown)},
                    {"ref_kernel", number(Kind::key_kernel)},
                    {"ref_user", number(Kind::key_user)}};
  for (std::uint32_t i = 0; i < pdbs.size(); ++i) {
    ordered_json by_rva = ordered_json::object();
    for (const auto &[place, count_there] : planted)
      if (place.first == i) by_rva[std::to_string(place.second)] = count_there;
    root["pdbs"].push_back({{"pdb", pdbs[i].name},
                            {"guid", to_string(pdbs[i].guid)},
                            {"age", pdbs[i].age},
                            {"samples_by_rva", std::move(by_rva)}});
  }
  if (!by_key.empty()) root["registry_by_key"] = by_key;
  root["planted"] = nlohmann::ordered_json::parse(defects);
  return root.dump(1) + "\n";
}

} // namespace etwrelog::gen
