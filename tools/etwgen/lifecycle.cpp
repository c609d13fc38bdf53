#include "lifecycle.hpp"

#include "providers.hpp"

namespace etwrelog::gen {
namespace {

constexpr std::uint32_t kUserSid[] = {21, 1004336348, 1177238915, 682003330, 1001};
constexpr std::uint32_t kServiceSid[] = {18};

std::uint64_t stale(std::uint64_t n, unsigned pointer_size) {
  return pointer_size == 8 ? 0xFFFF'C30D'0000'0000ull + (mix(n) & 0xFFFF'FFF0)
                           : 0x9500'0000ull + (mix(n) & 0xFFF0);
}

// PDB and version information, as the merge step of a trace adds them.
void write_identity(Emitter &out, const LoadedImage &loaded, const Process &owner, std::uint32_t tid,
                    std::int64_t time) {
  const Image &i = *loaded.image;
  out.classic(format::kImageIdGuid, 0, 2, tid, owner.pid, time).pointer(loaded.base).pointer(i.size);
  out.builder().put(owner.pid).put(i.time_stamp).wstr(i.name);
  out.done(Kind::image_id, &owner);
  const std::string pdb = i.name.substr(0, i.name.rfind('.')) + ".pdb";
  out.classic(format::kImageIdGuid, 36, 2, tid, owner.pid, time).pointer(loaded.base);
  out.builder().put(owner.pid).put(i.pdb).put(i.age).astr(pdb);
  out.done(Kind::debug_id, &owner);
  auto &e = out.classic(format::kImageIdGuid, 64, 0, tid, owner.pid, time);
  e.put(static_cast<std::uint32_t>(i.size))
      .put(i.time_stamp)
      .wstr(i.name)
      .wstr(i.description)
      .wstr(i.version + " (WinBuild.160101.0800)");
  e.wstr(i.version)
      .wstr("English (United States)")
      .wstr("Operating System")
      .wstr(i.company)
      .wstr(i.version)
      .wstr("")
      .wstr("");
  out.done(Kind::file_version, &owner);
}

} // namespace

std::uint64_t file_object(std::uint64_t number, unsigned pointer_size) {
  return pointer_size == 8 ? 0xFFFF'8A0E'2000'0000ull + mix(number) % 0x40000 * 0x90
                           : 0x8A00'0000ull + mix(number) % 0x40000 * 0x90 % 0x1000'0000;
}

std::string file_name(std::uint64_t number) {
  static constexpr const char *kFolders[] = {"Users\\jo\\AppData\\Local\\Temp",
                                             "Windows\\System32",
                                             "Windows\\WinSxS\\amd64_microsoft",
                                             "Program Files\\Orbit\\data",
                                             "ProgramData\\Package Cache",
                                             "Users\\jo\\source\\repos\\orders\\obj",
                                             "Windows\\Prefetch",
                                             "$Extend"};
  static constexpr const char *kStems[] = {"index",  "cache",  "texture", "shader", "settings",
                                           "report", "module", "log",     "thumb",  "catalog"};
  static constexpr const char *kEnds[] = {".dat", ".tmp", ".json", ".dll", ".etl", ".png", ".pf", ".cat"};
  const std::uint64_t h = mix(number, 0xF11E);
  char hex[8];
  for (int i = 0; i < 5; ++i)
    hex[i] = "0123456789abcdef"[(h >> (4 * i)) & 15];
  return std::string("\\Device\\HarddiskVolume3\\") + kFolders[(h >> 20) & 7] + "\\" +
         kStems[(h >> 24) % 10] + "_" + std::string(hex, 5) + kEnds[(h >> 40) & 7];
}

std::uint64_t registry_key(std::uint64_t number, unsigned pointer_size) {
  return pointer_size == 8 ? 0xFFFF'D80F'1000'0000ull + mix(number, 0x4E1) % 0x40000 * 0xA0
                           : 0xA100'0000ull + mix(number, 0x4E1) % 0x40000 * 0xA0 % 0x1000'0000;
}

std::string key_name(std::uint64_t number) {
  static constexpr const char *kRoots[] = {
      "\\REGISTRY\\MACHINE\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion",
      "\\REGISTRY\\MACHINE\\SYSTEM\\ControlSet001\\Services", "\\REGISTRY\\MACHINE\\SOFTWARE\\Classes\\CLSID",
      "\\REGISTRY\\USER\\S-1-5-21-1004336348-1177238915-682003330-1001"};
  static constexpr const char *kStems[] = {"Explorer", "Policies", "Run",     "Tcpip",
                                           "Orbit",    "Theme",    "Contoso", "Shell"};
  return std::string(kRoots[number % 4]) + "\\" + kStems[number / 4 % 8] + std::to_string(number / 32);
}

void write_registry(Emitter &out, Kind kind, std::uint64_t key, std::string_view name, std::uint32_t tid,
                    std::uint32_t pid, std::int64_t time) {
  const std::int64_t begun = out.stamp(time) - 30;
  out.system(kind, 2, tid, pid, time)
      .value(static_cast<std::uint64_t>(begun))
      .value(0)
      .value(0)
      .value(key)
      .text(name);
}

void write_process(Emitter &out, Kind kind, const Process &p, std::uint32_t tid, std::uint32_t pid,
                   std::int64_t time) {
  const bool rundown = kind == Kind::process_dc_start || kind == Kind::process_dc_end;
  auto &e = rundown ? out.perfinfo(kind, 4, time) : out.system(kind, 4, tid, pid, time);
  const unsigned pointer_size = out.pointer_size();
  e.value(p.key)
      .value(p.pid)
      .value(p.parent)
      .value(p.session)
      .value(kind == Kind::process_end ? 0 : 259)
      .value(p.directory_table)
      .value(0);
  if (p.pid <= 4)
    e.rest(1);
  else if (p.service)
    e.user(5, kServiceSid, stale(p.index, pointer_size));
  else
    e.user(5, kUserSid, stale(p.index, pointer_size));
  e.text(p.name).text(p.command_line).rest(2);
  out.done(kind, &p);
}

void write_thread(Emitter &out, Kind kind, const Thread &t, std::uint32_t tid, std::uint32_t pid,
                  std::int64_t time) {
  auto &e = out.system(kind, 3, tid, pid, time);
  e.value(t.process->pid)
      .value(t.tid)
      .value(t.stack_base)
      .value(t.stack_base - 0x6000)
      .value(t.user_stack_base)
      .value(t.user_stack_base - 0x4000);
  e.value(0xFF)
      .value(t.start_address)
      .value(t.teb)
      .value(0)
      .value(t.priority)
      .value(5)
      .value(2)
      .value(0)
      .text(t.thread_name);
  out.done(kind, t.process.get());
}

void write_image(Emitter &out, Kind kind, const LoadedImage &loaded, const Process *process,
                 const Process *kernel, std::uint32_t tid, std::uint32_t header_pid, std::int64_t time,
                 bool identity) {
  const bool rundown = kind == Kind::image_dc_start || kind == Kind::image_dc_end;
  const Process *owner = process != nullptr ? process : kernel;
  const bool perfinfo = rundown && process != nullptr;
  if (identity) write_identity(out, loaded, *owner, perfinfo ? kUnknownId : tid, time);
  auto &e = perfinfo ? out.perfinfo(kind, 3, time) : out.system(kind, 3, tid, header_pid, time);
  const Image &i = *loaded.image;
  // User images come without a TimeDateStamp in the rundown, kernel images without a DefaultBase.
  e.value(loaded.base).value(i.size).value(process != nullptr ? process->pid : 0).value(i.checksum);
  e.value(perfinfo ? 0 : i.time_stamp)
      .value(process != nullptr ? 1 : 12)
      .value(process != nullptr ? 6 : 1)
      .value(0);
  e.value(process != nullptr ? loaded.base : 0).value(0).value(0).value(0).value(0).text(i.path);
  out.done(kind, owner);
}

namespace {

void write_machine(Emitter &out, const Machine &machine, std::int64_t time) {
  const MachineOptions &o = machine.options();
  const Process &controller = *machine.controller();
  auto &e = out.system(Kind::cpu_config, 3, 4, controller.pid, time);
  e.value(3600).value(o.cpus).value(32768).value(4096).value(65536);
  const std::string host = "ETWGEN-" + std::to_string(o.seed % 1000);
  for (std::size_t i = 0; i < 256; ++i)
    e.value(i < host.size() ? static_cast<unsigned char>(host[i]) : 0u);
  e.rest(134);
  e.value(1)
      .value(o.pointer_size == 8 ? 0x7FFF'FFFE'FFFFull : 0x7FFE'FFFFull)
      .value(9)
      .value(6)
      .value(0xA50)
      .value(1)
      .value(1)
      .value(3200);
  out.done(Kind::cpu_config, nullptr);
  for (const auto &p : machine.processes()) {
    if (!p->service) continue;
    auto &s = out.system(Kind::service_config, 3, 4, controller.pid, time);
    s.value(p->pid)
        .value(4)
        .value(0)
        .text("Svc" + std::to_string(p->index))
        .text("Service " + std::to_string(p->index))
        .text(p->name)
        .rest();
    out.done(Kind::service_config, nullptr);
  }
}

void write_merge_info(Emitter &out, std::int64_t time) {
  out.classic(format::kSysConfigGuid, 32, 0, 0, 0, time)
      .put<std::int64_t>(132'223'104'000'000'000)
      .wstr("19041.1.amd64fre.vb_release.191206-1406");
  out.builder().wstr("Windows 10 Pro");
  out.done(Kind::build_info, nullptr);
  out.classic(format::kSysConfigGuid, 33, 0, 0, 0, time)
      .wstr("C:\\Windows\\System32\\")
      .wstr("C:\\Windows\\");
  out.done(Kind::system_paths, nullptr);
  out.classic(format::kSysConfigGuid, 35, 0, 0, 0, time).wstr("\\Device\\HarddiskVolume3\\").wstr("C:\\");
  out.done(Kind::volume_mapping, nullptr);
}

// All that lives, process by process, as a rundown reports it.
void write_alive(Emitter &out, const Machine &machine, const Snapshot &alive, bool end, std::int64_t &time) {
  const Process &controller = *machine.controller();
  const bool filtered = machine.options().profile->filtered;
  const Kind process_kind = end ? Kind::process_dc_end : Kind::process_dc_start;
  const Kind thread_kind = end ? Kind::thread_dc_end : Kind::thread_dc_start;
  const Kind image_kind = end ? Kind::image_dc_end : Kind::image_dc_start;
  const Process *kernel = machine.idle(0)->process.get();
  for (const LoadedImage &i : machine.kernel_images())
    write_image(out, image_kind, i, nullptr, kernel, 4, controller.pid, time += 11, end);
  for (const auto &p : alive.processes) {
    if (filtered && !p->target) continue;
    write_process(out, process_kind, *p, 0, 0, time += 13);
    for (const ThreadRef &t : alive.threads)
      if (t->process == p) write_thread(out, thread_kind, *t, t->tid, p->pid, time += 7);
    for (const LoadedImage &i : p->images)
      write_image(out, image_kind, i, p.get(), kernel, 0, 0, time += 9, end);
  }
}

} // namespace

void write_prologue(Emitter &out, const Machine &machine, const Snapshot &alive, std::int64_t time) {
  write_machine(out, machine, time);
  out.perfinfo(Kind::kernel_base, 2, time += 5).value(machine.kernel_images()[0].base);
  out.done(Kind::kernel_base, nullptr);
  out.perfinfo(Kind::interval_start, 3, time += 5).value(0).value(10000).value(10000).text("Timer");
  out.done(Kind::interval_start, nullptr);
  write_alive(out, machine, alive, false, time);
  for (const ThreadRef &t : alive.threads)
    if (t->process->dotnet) {
      write_event_source_manifest(out, *t, time += 50);
      break;
    }
  out.classic(kMarkClass, 34, 0, 4, machine.controller()->pid, time += 5).astr("trace started");
  out.done(Kind::mark, machine.controller().get());
  out.close_run();
}

void write_epilogue(Emitter &out, const Machine &machine, const Snapshot &alive, std::uint32_t files,
                    std::int64_t time) {
  out.perfinfo(Kind::interval_end, 3, time += 5).value(0).value(10000).value(10000).text("Timer");
  out.done(Kind::interval_end, nullptr);
  for (std::uint32_t n = 0; n < files; ++n) {
    const std::uint64_t number = n < 1024 ? n + 0x200000 : n;
    out.perfinfo(Kind::file_rundown, 2, time += 3)
        .value(file_object(number, out.pointer_size()))
        .text(file_name(n));
    out.done(Kind::file_rundown, nullptr);
  }
  for (std::uint32_t n = 0; n < kKeys && machine.options().profile->other.registry > 0; ++n) {
    write_registry(out, Kind::key_rundown_end, registry_key(n, out.pointer_size()), key_name(n), 4,
                   machine.controller()->pid, time += 3);
    out.done(Kind::key_rundown_end, nullptr);
    ++out.tally.by_key[key_name(n)];
  }
  write_alive(out, machine, alive, true, time);
  for (const ThreadRef &t : alive.threads) {
    if (!t->process->dotnet) continue;
    write_event_source_manifest(out, *t, time += 50);
    write_clr_rundown(out, *t->process, t->tid, time += 50);
    break;
  }
  write_merge_info(out, out.last() + 10);
  out.system(Kind::rundown_complete, 2, 4, machine.controller()->pid, out.last() + 10);
  out.done(Kind::rundown_complete, nullptr);
  out.close_run();
}

} // namespace etwrelog::gen
