// The simulated machine: kernel, processes, threads and images with their lifetimes, and who may run where.
//
// Planner::next() advances it by one slice, serially and cheaply; everything that a slice needs to be filled
// with events stands in the SlicePlan, which any thread may work on afterwards.
#pragma once

#include "call_graph.hpp"
#include "profile.hpp"

#include "etwrelog/guid.hpp"

#include <deque>
#include <memory>
#include <string>

namespace etwrelog::gen {

struct Image {
  std::string name, path; // "ntdll.dll", "\Device\HarddiskVolume3\Windows\System32\ntdll.dll"
  std::uint64_t size = 0;
  std::uint32_t checksum = 0, time_stamp = 0;
  Guid pdb;
  std::uint32_t age = 1;
  std::string version, description, company;
};

// A program whose PDB is at hand: code that can be named.
struct PlantedPdb {
  std::string name; // "demo.pdb"; its image is demo.dll
  Guid guid;
  std::uint32_t age = 0;
  std::uint32_t code = 0, code_end = 0; // RVAs of its functions
};

struct LoadedImage {
  const Image *image = nullptr;
  std::uint64_t base = 0;
};

struct Method { // of JIT-compiled code
  std::uint64_t id = 0, start = 0;
  std::uint32_t size = 0, token = 0;
  std::string type, name, signature;
};

struct Process {
  std::uint32_t index = 0; // counts all processes that ever were: tells apart those that share an id
  std::uint32_t pid = 0, parent = 0, session = 0;
  std::string name, command_line;
  std::uint64_t key = 0, directory_table = 0;
  std::vector<LoadedImage> images;
  struct Planted {
    std::uint32_t pdb = 0; // in MachineOptions::pdbs
    std::uint64_t base = 0, begin = 0, end = 0;
  };
  std::vector<Planted> planted;
  std::vector<Method> methods; // if it is a .NET process
  std::uint64_t module_id = 0; // of those methods
  CallGraph graph;
  bool dotnet = false, service = false, target = false;
  std::int64_t started = 0; // 0: before the trace
};

struct Thread {
  std::uint32_t tid = 0;
  std::uint64_t number = 0; // unique over the whole trace
  std::shared_ptr<const Process> process;
  std::uint64_t stack_base = 0, user_stack_base = 0, teb = 0, start_address = 0;
  std::uint8_t priority = 8;
  std::uint32_t home = 0;     // processor it prefers
  std::uint32_t activity = 1; // how often it is among those that run
  std::string thread_name;
};
using ThreadRef = std::shared_ptr<const Thread>;

// Something that happens at a set time on a set processor.
struct Action {
  enum class Kind : std::uint8_t { process_start, process_end, thread_start, thread_end };
  Kind kind{};
  std::int64_t time = 0;
  ThreadRef actor;                 // who does it: the creator, or the thread that ends
  ThreadRef thread;                // the new thread, if any
  std::vector<ThreadRef> siblings; // process_end: the other threads, which end with it
};

struct CpuPlan {
  std::vector<ThreadRef> hot;  // may run in this slice, on no other processor
  ThreadRef first, next_first; // who runs when the slice begins, and when the one after it does
  std::vector<Action> actions; // by time
};

struct SlicePlan {
  std::uint64_t number = 0;
  std::int64_t begin = 0, end = 0; // raw time
  std::vector<CpuPlan> cpus;
};

struct MachineOptions {
  const Profile *profile = nullptr;
  std::uint64_t seed = 1;
  std::uint32_t cpus = 8, processes = 60;
  unsigned pointer_size = 8;
  std::vector<PlantedPdb> pdbs; // images of the first program
  bool early_pid_reuse = false; // defect: an id comes back within the second
};

class Machine {
public:
  explicit Machine(const MachineOptions &options);

  SlicePlan next();

  [[nodiscard]] const MachineOptions &options() const { return options_; }
  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] const std::vector<LoadedImage> &kernel_images() const { return kernel_images_; }
  [[nodiscard]] const CallGraph &kernel_graph() const { return kernel_graph_; }
  [[nodiscard]] const ThreadRef &idle(std::uint32_t cpu) const { return idle_[cpu]; }
  [[nodiscard]] const ThreadRef &stranger() const { return stranger_; } // filtered: whoever is not the target
  [[nodiscard]] const std::vector<ThreadRef> &threads() const { return threads_; } // alive now
  [[nodiscard]] const std::vector<std::shared_ptr<const Process>> &processes() const { return processes_; }
  [[nodiscard]] const std::shared_ptr<const Process> &controller() const { return processes_.front(); }
  struct PidReuse {
    std::uint32_t pid = 0;
    std::int64_t ended = 0, started = 0;
  };
  [[nodiscard]] const PidReuse &pid_reuse() const { return pid_reuse_; }

  static constexpr std::int64_t kStart = 52'833'004'117; // QPC of a machine that is up for an hour and a half

private:
  std::uint32_t take_id();
  void release_id(std::uint32_t id, std::int64_t time);
  std::shared_ptr<const Process> make_process(std::size_t program, std::uint32_t parent,
                                              std::int64_t started);
  ThreadRef make_thread(const std::shared_ptr<const Process> &process);
  void plan_births_and_deaths(SlicePlan &plan);
  void plan_processors(SlicePlan &plan);
  void forget(const Thread *thread);

  MachineOptions options_;
  Rng rng_;
  std::int64_t now_ = kStart, slice_ticks_ = 0;
  std::uint64_t slice_ = 0, thread_number_ = 0;
  std::uint32_t process_index_ = 0;
  std::deque<std::pair<std::uint32_t, std::int64_t>>
      free_ids_; // with the time from which on they may be used
  std::uint32_t next_id_ = 8;
  std::vector<std::unique_ptr<Image>> images_;
  std::vector<LoadedImage> kernel_images_, user_images_; // loaded at one address in every process
  CallGraph kernel_graph_;
  std::vector<std::shared_ptr<const Process>> processes_;
  std::vector<ThreadRef> threads_, idle_, first_;
  ThreadRef stranger_;
  std::shared_ptr<const Process> system_, idle_process_;
  std::vector<std::pair<std::int64_t, std::shared_ptr<const Process>>> mortal_; // when they end
  PidReuse pid_reuse_;
};

} // namespace etwrelog::gen
