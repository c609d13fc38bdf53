#include "machine.hpp"

#include <algorithm>
#include <cstdio>

namespace etwrelog::gen {
namespace {

constexpr const char *kKernelNames[] = {
    "ntoskrnl.exe", "hal.dll",    "win32kfull.sys", "win32kbase.sys", "dxgkrnl.sys",  "ntfs.sys",
    "fltmgr.sys",   "tcpip.sys",  "ndis.sys",       "afd.sys",        "storport.sys", "stornvme.sys",
    "ci.dll",       "cng.sys",    "nvlddmkm.sys",   "dxgmms2.sys",    "usbxhci.sys",  "wdf01000.sys",
    "rdbss.sys",    "srv2.sys",   "http.sys",       "volsnap.sys",    "fvevol.sys",   "partmgr.sys",
    "classpnp.sys", "disk.sys",   "pci.sys",        "acpi.sys",       "intelppm.sys", "netio.sys",
    "wfplwfs.sys",  "mrxsmb.sys", "bindflt.sys",    "wcifs.sys",      "luafv.sys",    "npfs.sys",
    "msfs.sys",     "ksecdd.sys", "clfs.sys",       "tm.sys"};
constexpr const char *kUserNames[] = {
    "ntdll.dll",         "kernel32.dll",  "KernelBase.dll",     "ucrtbase.dll", "msvcrt.dll",
    "rpcrt4.dll",        "combase.dll",   "sechost.dll",        "advapi32.dll", "user32.dll",
    "win32u.dll",        "gdi32full.dll", "ole32.dll",          "oleaut32.dll", "shell32.dll",
    "shlwapi.dll",       "bcrypt.dll",    "crypt32.dll",        "ws2_32.dll",   "mswsock.dll",
    "dnsapi.dll",        "winhttp.dll",   "kernel.appcore.dll", "uxtheme.dll",  "dxgi.dll",
    "d3d11.dll",         "dwmapi.dll",    "msctf.dll",          "imm32.dll",    "propsys.dll",
    "WindowsCodecs.dll", "clbcatq.dll",   "cfgmgr32.dll",       "powrprof.dll", "profapi.dll",
    "wintrust.dll",      "version.dll",   "iphlpapi.dll",       "userenv.dll",  "netapi32.dll"};

struct Program {
  const char *name, *folder;
  std::uint32_t own_images, shared_images, threads, weight;
  bool dotnet, service;
};
// The first is the target of a filtered profile.
constexpr Program kPrograms[] = {
    {"game.exe", "Program Files\\Orbit\\bin", 14, 34, 28, 40, false, false},
    {"explorer.exe", "Windows", 3, 40, 24, 8, false, false},
    {"DotNetApp.exe", "Program Files\\DotNetApp", 3, 22, 18, 14, true, false},
    {"svchost.exe", "Windows\\System32", 2, 18, 10, 3, false, true},
    {"chrome.exe", "Program Files\\Google\\Chrome\\Application", 3, 30, 16, 12, false, false},
    {"MsMpEng.exe", "ProgramData\\Microsoft\\Windows Defender\\Platform", 4, 22, 20, 8, false, true},
    {"dwm.exe", "Windows\\System32", 4, 24, 12, 9, false, false},
    {"SearchIndexer.exe", "Windows\\System32", 3, 24, 14, 3, false, true},
    {"cl.exe", "Program Files\\Microsoft Visual Studio\\VC\\bin", 4, 12, 3, 14, false, false},
    {"devenv.exe", "Program Files\\Microsoft Visual Studio\\Common7\\IDE", 12, 38, 32, 9, false, false},
    {"conhost.exe", "Windows\\System32", 1, 16, 4, 1, false, false},
    {"taskhostw.exe", "Windows\\System32", 2, 18, 5, 1, false, false},
    {"cmd.exe", "Windows\\System32", 1, 8, 1, 1, false, false},
    {"lsass.exe", "Windows\\System32", 4, 20, 8, 2, false, true},
    {"services.exe", "Windows\\System32", 1, 14, 7, 1, false, true},
    {"RuntimeBroker.exe", "Windows\\System32", 2, 20, 6, 1, false, false},
};
constexpr std::size_t kController = 3; // of the trace session: a service
constexpr std::size_t kShortLived[] = {8, 10, 11, 12};

std::string device_path(const char *folder, const std::string &name) {
  return std::string("\\Device\\HarddiskVolume3\\") + folder + "\\" + name;
}

std::unique_ptr<Image> make_image(const std::string &name, const char *folder, std::uint64_t size_scale) {
  auto image = std::make_unique<Image>();
  std::uint64_t h = 0xE7A6;
  for (const char c : name)
    h = mix(h, static_cast<unsigned char>(c));
  Rng rng(h);
  image->name = name;
  image->path = device_path(folder, name);
  image->size = (0x20 + rng.below(0x180)) * size_scale * 0x1000;
  image->checksum = rng.bits() & 0xFF'FFFF;
  image->time_stamp = 0x5000'0000u + rng.bits() / 4;
  image->pdb = {rng.next(), rng.next()};
  char version[64];
  // One draw after the other: compilers differ in which argument of a call they evaluate first.
  const std::uint32_t revision = rng.below(4000), build = 19041 + rng.below(3) * 1000;
  std::snprintf(version, sizeof version, "10.0.%u.%u", build, revision);
  image->version = version;
  image->description = name.substr(0, name.find('.')) + (folder[0] == 'W' ? " component" : " module");
  image->company = folder[0] == 'W' ? "Microsoft Corporation" : "Orbit Works";
  return image;
}

CodeRange code_of(const LoadedImage &loaded, std::uint32_t weight) {
  // Code takes up the first two thirds, after the headers.
  return {loaded.base + 0x1000, static_cast<std::uint32_t>(loaded.image->size * 2 / 3 / kFunctionBytes),
          weight};
}

void add_methods(Process &process, std::uint64_t heap, std::uint32_t count) {
  static constexpr const char *kTypes[] = {"Orders.Store",
                                           "Orders.Pricing.Rules",
                                           "System.Collections.Generic.Dictionary`2",
                                           "System.Text.Json.Utf8JsonReader",
                                           "Orders.Api.Controllers.CartController",
                                           "System.Threading.Tasks.Task`1",
                                           "Orders.Data.Session",
                                           "System.String"};
  static constexpr const char *kVerbs[] = {"Get",  "Set",   "Find",   "Update", "Parse",
                                           "Read", "Write", "Invoke", "Next",   "Build"};
  static constexpr const char *kNouns[] = {"Item",   "Price", "Entry", "Token", "State",
                                           "Result", "Row",   "Key",   "Async", "Range"};
  Rng rng(0xD07);
  for (std::uint32_t i = 0; i < count; ++i) {
    Method m;
    m.start = heap + std::uint64_t{i} * kFunctionBytes;
    m.id = heap + 0x1000'0000 + i * 0x68ull;
    m.size = 80 + rng.below(160);
    m.token = 0x0600'0001 + i;
    m.type = kTypes[rng.below(std::size(kTypes))];
    const char *const noun = kNouns[rng.below(10)], *const verb = kVerbs[rng.below(10)];
    m.name = std::string(verb) + noun + (i % 7 == 0 ? "Core" : "");
    m.signature =
        i % 3 == 0 ? "instance void  (int32,class System.String)" : "instance class System.Object  (!0)";
    process.methods.push_back(std::move(m));
  }
}

} // namespace

Machine::Machine(const MachineOptions &options) : options_(options), rng_(mix(options.seed, 0x3AC1)) {
  const bool wide = options_.pointer_size == 8;
  slice_ticks_ = static_cast<std::int64_t>(options_.profile->slice_s * static_cast<double>(kTicksPerSecond));
  options_.processes = std::max(options_.processes, 2u);

  // Address space layout is drawn once a boot.
  std::uint64_t at =
      wide ? 0xFFFF'F803'0000'0000ull + std::uint64_t{rng_.below(0x4000)} * 0x10000 : 0x8180'0000ull;
  std::vector<CodeRange> code;
  for (const char *name : kKernelNames) {
    images_.push_back(make_image(name,
                                 name == kKernelNames[0] ? "Windows\\System32" : "Windows\\System32\\drivers",
                                 name == kKernelNames[0] ? 8 : 1));
    kernel_images_.push_back({images_.back().get(), at});
    code.push_back(code_of(kernel_images_.back(),
                           code.empty() ? 100u : 40u / (1 + static_cast<std::uint32_t>(code.size())) + 1));
    at += (images_.back()->size + 0xFFFF) & ~std::uint64_t{0xFFFF};
  }
  const std::uint64_t nt = code[0].start;
  kernel_graph_ = CallGraph(0x0CE1, std::move(code), {nt + 0x1FA5E4 % 0x80000}, true);

  at = wide ? 0x7FFA'0000'0000ull + std::uint64_t{rng_.below(0x4000)} * 0x10000 : 0x6000'0000ull;
  for (const char *name : kUserNames) {
    images_.push_back(make_image(name, "Windows\\System32", 2));
    user_images_.push_back({images_.back().get(), at});
    at += (images_.back()->size + 0xFFFF) & ~std::uint64_t{0xFFFF};
  }

  auto make_special = [&](std::uint32_t pid, const char *name) {
    auto process = std::make_shared<Process>();
    process->index = process_index_++;
    process->pid = pid;
    process->name = name;
    process->key = wide ? 0xFFFF'8A0E'0000'0040ull + pid * 0x1000ull : 0x8600'0040ull + pid * 0x1000ull;
    process->directory_table = 0x1AD000;
    process->graph = kernel_graph_;
    return process;
  };
  idle_process_ = make_special(0, "Idle");
  system_ = make_special(4, "System");
  for (std::uint32_t cpu = 0; cpu < options_.cpus; ++cpu) {
    auto thread = std::make_shared<Thread>();
    thread->number = thread_number_++;
    thread->process = idle_process_;
    thread->priority = 0;
    idle_.push_back(thread);
    first_.push_back(thread);
  }
  auto stranger = std::make_shared<Thread>();
  stranger->number = thread_number_++;
  stranger->process = idle_process_;
  stranger_ = stranger;

  const bool filtered = options_.profile->filtered;
  processes_.push_back(make_process(kController, 4, 0));
  auto populate = [&](const std::shared_ptr<const Process> &process, std::uint32_t threads) {
    for (std::uint32_t i = 0; i < threads; ++i)
      threads_.push_back(make_thread(process));
  };
  if (filtered) {
    processes_.push_back(make_process(0, processes_[0]->pid, 0));
    populate(processes_.back(), kPrograms[0].threads);
  } else {
    processes_.push_back(idle_process_);
    processes_.push_back(system_);
    populate(processes_[0], 8);
    populate(system_, 40);
    while (processes_.size() < options_.processes + 2) {
      const std::size_t n = processes_.size() - 3;
      // Every program once, then what a machine has many of.
      const std::size_t program = n < std::size(kPrograms) ? n : (n % 3 == 0 ? 4 : n % 7 == 0 ? 15 : 3);
      processes_.push_back(make_process(program, processes_[0]->pid, 0));
      populate(processes_.back(), kPrograms[program].threads);
    }
  }
}

std::uint32_t Machine::take_id() {
  // Ids come back soonest first once they have rested; processes and threads share them, as on Windows.
  if (!free_ids_.empty() && free_ids_.front().second <= now_) {
    const std::uint32_t id = free_ids_.front().first;
    free_ids_.pop_front();
    return id;
  }
  const std::uint32_t id = next_id_;
  next_id_ += 4 * (1 + rng_.below(6));
  return id;
}

void Machine::release_id(std::uint32_t id, std::int64_t time) {
  free_ids_.emplace_back(id, time + 3 * kTicksPerSecond);
}

std::shared_ptr<const Process> Machine::make_process(std::size_t program, std::uint32_t parent,
                                                     std::int64_t started) {
  const Program &p = kPrograms[program];
  const bool wide = options_.pointer_size == 8;
  auto process = std::make_shared<Process>();
  process->index = process_index_++;
  process->pid = pid_reuse_.pid != 0 && pid_reuse_.started == 0 ? pid_reuse_.pid : take_id();
  process->parent = parent;
  process->session = p.service ? 0 : 1;
  process->name = p.name;
  process->command_line = std::string("\"C:\\") + p.folder + "\\" + p.name + "\"";
  if (p.service) process->command_line += " -k netsvcs -p -s Svc" + std::to_string(process->index);
  process->key = wide ? 0xFFFF'8A0E'1000'0080ull + std::uint64_t{rng_.below(0xFFFF)} * 0x1000
                      : 0x8700'0080ull + std::uint64_t{rng_.below(0xFFF)} * 0x1000;
  process->directory_table = std::uint64_t{rng_.below(0xFFFFF)} << 12;
  process->dotnet = p.dotnet;
  process->service = p.service;
  process->target = program == 0;
  process->started = started;

  std::uint64_t at =
      wide ? 0x7FF6'0000'0000ull + std::uint64_t{rng_.below(0x4000)} * 0x10000 : 0x0040'0000ull;
  std::vector<CodeRange> code;
  for (std::uint32_t i = 0; i < p.own_images; ++i) {
    const std::string stem(p.name, std::string_view(p.name).find('.'));
    const std::string name =
        i == 0 ? p.name : stem + (i < 3 ? "Core" : "Plugin") + std::to_string(i) + ".dll";
    const auto known =
        std::ranges::find_if(images_, [&name](const auto &other) { return other->name == name; });
    const Image *image = known != images_.end() ? known->get() : nullptr;
    if (image == nullptr) image = images_.emplace_back(make_image(name, p.folder, i == 0 ? 4 : 2)).get();
    process->images.push_back({image, at});
    code.push_back(code_of(process->images.back(), 60u / (1 + i) + 2));
    at += (image->size + 0xFFFF) & ~std::uint64_t{0xFFFF};
  }
  for (std::uint32_t i = 0; i < options_.pdbs.size() && program == 0; ++i) {
    const PlantedPdb &pdb = options_.pdbs[i];
    const std::string name = pdb.name.substr(0, pdb.name.rfind('.')) + ".dll";
    const auto known =
        std::ranges::find_if(images_, [&name](const auto &other) { return other->name == name; });
    if (known == images_.end()) {
      Image &made = *images_.emplace_back(make_image(name, p.folder, 1));
      made.size = (pdb.code_end + std::uint64_t{0xFFFF}) & ~std::uint64_t{0xFFF};
      made.pdb = pdb.guid;
      made.age = pdb.age;
      process->images.push_back({&made, at});
    } else {
      process->images.push_back({known->get(), at});
    }
    const std::uint32_t functions = std::max(1u, (pdb.code_end - pdb.code) / kFunctionBytes);
    process->planted.push_back({i, at, at + pdb.code, at + pdb.code_end});
    code.push_back({at + pdb.code, functions, 60});
    at += (process->images.back().image->size + 0xFFFF) & ~std::uint64_t{0xFFFF};
  }
  for (std::uint32_t i = 0; i < p.shared_images && i < user_images_.size(); ++i) {
    process->images.push_back(user_images_[i]);
    code.push_back(code_of(user_images_[i], 60u / (2 + i) + 1));
  }
  if (p.dotnet) {
    const std::uint64_t heap =
        wide ? 0x7FFA'0000'0000ull - 0x1000'0000 + (process->index % 16) * 0x80'0000 : 0x0D00'0000ull;
    add_methods(*process, heap, 1200);
    process->module_id = heap + 0x2000'0000;
    code.push_back({heap, static_cast<std::uint32_t>(process->methods.size()), 400});
  }
  // BaseThreadInitThunk, RtlUserThreadStart.
  std::vector<std::uint64_t> outer = {user_images_[1].base + 0x17344, user_images_[0].base + 0x226A1};
  std::uint64_t seed = 0x9E77;
  for (const char *c = p.name; *c != 0; ++c)
    seed = mix(seed, static_cast<unsigned char>(*c));
  process->graph = CallGraph(seed, std::move(code), std::move(outer), false);
  return process;
}

ThreadRef Machine::make_thread(const std::shared_ptr<const Process> &process) {
  static constexpr const char *kNames[] = {
      "", "", "", "RenderThread", "WorkerPool", "", "AudioMix", "IoCompletion", ""};
  const bool wide = options_.pointer_size == 8;
  auto thread = std::make_shared<Thread>();
  thread->tid = take_id();
  thread->number = thread_number_++;
  thread->process = process;
  Rng rng(mix(options_.seed, thread->number));
  thread->stack_base = wide ? 0xFFFF'8B00'0000'0000ull + std::uint64_t{rng.below(0x3FFFFF)} * 0x8000
                            : 0x9000'0000ull + std::uint64_t{rng.below(0xFFF)} * 0x4000;
  thread->user_stack_base = wide ? 0x00000012'00000000ull + thread->number * 0x100000
                                 : 0x0010'0000ull + (thread->number % 64) * 0x10000;
  thread->teb = (wide ? 0x00000011'00000000ull : 0x7EFD'0000ull) + (thread->number % 1024) * 0x2000;
  const CodeRange &code = process->graph.ranges()[0];
  thread->start_address = code.start + std::uint64_t{rng.below(code.functions)} * kFunctionBytes;
  thread->priority = static_cast<std::uint8_t>(8 + rng.below(4));
  thread->home = rng.below(options_.cpus);
  std::uint32_t weight = 1;
  for (const Program &p : kPrograms)
    if (process->name == p.name) weight = p.weight;
  // A few threads do most of the work.
  thread->activity = std::max(1u, weight * 64 / (1 + rng.below(64)) / (1 + rng.below(4)));
  thread->thread_name = kNames[rng.below(std::size(kNames))];
  return thread;
}

void Machine::forget(const Thread *thread) {
  std::erase_if(threads_, [thread](const ThreadRef &t) { return t.get() == thread; });
}

void Machine::plan_births_and_deaths(SlicePlan &plan) {
  const Profile &p = *options_.profile;
  // Ends come first in a slice and starts after them, and each processor gets one action at most: then actors
  // of different processors cannot be each other.
  std::vector<std::uint32_t> idle_cpus;
  for (std::uint32_t cpu = 0; cpu < options_.cpus; ++cpu)
    idle_cpus.push_back(cpu);
  auto take_cpu = [&]() -> CpuPlan * {
    if (idle_cpus.empty()) return nullptr;
    const std::uint32_t i = rng_.below(static_cast<std::uint32_t>(idle_cpus.size()));
    const std::uint32_t cpu = idle_cpus[i];
    idle_cpus.erase(idle_cpus.begin() + i);
    return &plan.cpus[cpu];
  };
  auto time_at = [&](std::int64_t eighth) { return plan.begin + slice_ticks_ * eighth / 8; };
  const double slice_s = p.slice_s;

  for (std::size_t i = 0; i < mortal_.size();) {
    const auto process = mortal_[i].second;
    std::vector<ThreadRef> own;
    for (const ThreadRef &t : threads_)
      if (t->process == process) own.push_back(t);
    CpuPlan *cpu = mortal_[i].first <= plan.begin && !own.empty() ? take_cpu() : nullptr;
    if (cpu == nullptr) {
      ++i;
      continue;
    }
    Action end{Action::Kind::process_end, time_at(1), own.front(), nullptr, {own.begin() + 1, own.end()}};
    for (const ThreadRef &t : own) {
      forget(t.get());
      release_id(t->tid, plan.end);
    }
    if (options_.early_pid_reuse && pid_reuse_.pid == 0)
      pid_reuse_ = {process->pid, end.time, 0};
    else
      release_id(process->pid, plan.end);
    std::erase(processes_, process);
    cpu->actions.push_back(std::move(end));
    mortal_.erase(mortal_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  auto many = [&](double rate) { // events of this rate that fall into the slice
    const double expected = rate * slice_s;
    return static_cast<unsigned>(expected) +
           (rng_.hit(Chance(expected - static_cast<unsigned>(expected))) ? 1u : 0u);
  };
  std::vector<const Thread *> used;
  auto some_thread = [&]() -> ThreadRef {
    for (unsigned tries = 0; tries < 16 && !threads_.empty(); ++tries) {
      const ThreadRef t = threads_[rng_.below(static_cast<std::uint32_t>(threads_.size()))];
      if (t->process->pid <= 4 || (p.filtered && !t->process->target)) continue;
      if (std::ranges::find(used, t.get()) != used.end()) continue; // an actor is on one processor only
      used.push_back(t.get());
      return t;
    }
    return nullptr;
  };
  for (unsigned n = many(p.thread_starts_per_s); n > 0; --n) {
    CpuPlan *cpu = take_cpu();
    ThreadRef actor = cpu != nullptr ? some_thread() : nullptr;
    if (actor == nullptr) break;
    if (rng_.below(2) == 0) {
      // Only one thread of a process ends or starts another in one slice, and main threads stay.
      const bool first_of_process =
          std::ranges::find(threads_, actor->process, &Thread::process)->get() == actor.get();
      if (first_of_process) continue;
      forget(actor.get());
      release_id(actor->tid, plan.end);
      cpu->actions.push_back({Action::Kind::thread_end, time_at(3), actor, nullptr, {}});
    } else {
      ThreadRef thread = make_thread(actor->process);
      used.push_back(thread.get());
      cpu->actions.push_back({Action::Kind::thread_start, time_at(4), actor, thread, {}});
      forget(actor.get()); // runs here and nowhere else; comes back with the next slice
      threads_.push_back(actor);
      threads_.push_back(std::move(thread));
    }
  }
  const double starts = options_.early_pid_reuse && pid_reuse_.pid != 0 && pid_reuse_.started == 0
                            ? 1 / slice_s
                            : p.starts_per_s;
  for (unsigned n = p.filtered ? 0 : many(starts); n > 0; --n) {
    CpuPlan *cpu = take_cpu();
    ThreadRef actor = cpu != nullptr ? some_thread() : nullptr;
    if (actor == nullptr) break;
    const std::int64_t time = time_at(5);
    const auto process =
        make_process(kShortLived[rng_.below(std::size(kShortLived))], actor->process->pid, time);
    if (process->pid == pid_reuse_.pid && pid_reuse_.started == 0) pid_reuse_.started = time;
    ThreadRef thread = make_thread(process);
    used.push_back(thread.get());
    processes_.push_back(process);
    threads_.push_back(thread);
    mortal_.emplace_back(
        plan.end + rng_.gap(options_.early_pid_reuse ? kTicksPerSecond / 4 : 4 * kTicksPerSecond), process);
    cpu->actions.push_back({Action::Kind::process_start, time, actor, thread, {}});
  }
}

void Machine::plan_processors(SlicePlan &plan) {
  const Profile &p = *options_.profile;
  // Actors are bound to the processor of their action; new threads run from the next slice on.
  std::vector<const Thread *> taken;
  for (CpuPlan &cpu : plan.cpus)
    for (const Action &a : cpu.actions) {
      taken.push_back(a.actor.get());
      if (a.thread) taken.push_back(a.thread.get());
    }
  std::vector<std::vector<std::pair<std::uint64_t, const ThreadRef *>>> queues(options_.cpus);
  for (const ThreadRef &t : threads_) {
    if (p.filtered && !t->process->target) continue;
    if (std::ranges::find(taken, t.get()) != taken.end()) continue;
    const std::uint64_t h = mix(mix(options_.seed, t->number), slice_);
    // Off its home processor in one slice of sixteen.
    const std::uint32_t cpu = (h & 15) == 0 ? static_cast<std::uint32_t>((h >> 8) % options_.cpus) : t->home;
    // Weighted sampling without replacement: smallest of exponential keys, mostly the same for some slices.
    const std::uint64_t draw = mix(mix(t->number, 77), (slice_ + t->number % 5) / 5) >> 40;
    queues[cpu].emplace_back((draw << 8) / t->activity, &t);
  }
  for (std::uint32_t c = 0; c < options_.cpus; ++c) {
    CpuPlan &cpu = plan.cpus[c];
    auto &queue = queues[c];
    const std::size_t n = std::min<std::size_t>(queue.size(), p.hot_threads);
    std::partial_sort(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(n), queue.end(),
                      [](const auto &a, const auto &b) {
                        return std::pair(a.first, (*a.second)->number) <
                               std::pair(b.first, (*b.second)->number);
                      });
    for (std::size_t i = 0; i < n; ++i)
      cpu.hot.push_back(*queue[i].second);
    // Slices are joined where the processor is idle: its thread then is on no other processor.
    cpu.first = cpu.next_first = p.filtered ? stranger_ : idle_[c];
  }
}

SlicePlan Machine::next() {
  SlicePlan plan;
  plan.number = slice_;
  plan.begin = now_;
  plan.end = now_ + slice_ticks_;
  plan.cpus.resize(options_.cpus);
  plan_births_and_deaths(plan);
  plan_processors(plan);
  ++slice_;
  now_ = plan.end;
  return plan;
}

} // namespace etwrelog::gen
