// Code that a runtime made: which method lay at an address of a process, when.
//
// Runtimes log a method when it is compiled, and list those that are there when the trace begins or ends. A
// list at the end is the usual case, so it also tells about the time before. Addresses are used again: at
// each moment the latest method loaded there counts.
#pragma once

#include "base/seed.hpp"
#include "profile/records.hpp"
#include "profile/stretches.hpp"

#include <unordered_map>

namespace etwrelog::profile {

struct MethodRecord {
  enum class What : std::uint8_t { load, unload, rundown }; // a rundown: it was there before, too
  Instant at;
  What what = What::load;
  bool script = false; // of a script engine
  std::uint32_t pid = 0, flags = 0;
  std::uint64_t id = 0, module = 0, start = 0, size = 0;
  std::uint64_t version = 0;          // of the method's code: each compilation has another
  std::string name;                   // "Namespace.Type.Method"; of a script the function's
  std::uint64_t source = 0;           // of a script
  std::uint32_t line = 0, column = 0; // of a script: where the function begins
};
// Which native code of a method came from which instruction of its IL.
struct IlMapRecord {
  struct Entry {
    std::uint32_t native = 0, il = 0; // offsets
  };
  std::uint32_t pid = 0;
  std::uint64_t id = 0, version = 0; // as of the method
  std::vector<Entry> entries;
};
struct ScriptSourceRecord {
  std::uint32_t pid = 0;
  std::uint64_t id = 0;
  std::string url;
};
struct ManagedModuleRecord {
  std::uint32_t pid = 0;
  std::uint64_t id = 0;
  std::string path;
};
class Methods {
public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  struct Method {
    std::uint32_t pid = 0;
    std::uint64_t start = 0, end = 0, id = 0;
    std::int64_t from = 0, to = 0; // both ends included
    std::string name, module;      // module: "Contoso.dll"; empty if not known
    const char *tier = "";         // "Tier1", "QuickJitted", "ReadyToRun", ...; empty if not known
    bool script = false;
    std::string file;                   // of a script
    std::uint32_t line = 0, column = 0; // of a script
    std::uint32_t map = kNone;
  };

  // What is taken out of a trace; each in any order.
  struct Events {
    std::vector<MethodRecord> methods;
    std::vector<ManagedModuleRecord> modules;
    std::vector<IlMapRecord> maps;
    std::vector<ScriptSourceRecord> sources;
  };
  void build(Events events);

  [[nodiscard]] std::uint32_t find(std::uint32_t pid, std::int64_t time, std::uint64_t address) const;
  // The instruction of the method's IL that the code at an address in it came from; kNone if nobody said.
  [[nodiscard]] std::uint32_t il_offset(const Method &method, std::uint64_t address) const;
  // Counts up whenever an address of the process changes its method. Methods that come to where nothing was
  // do not count: before, nothing ran there. `valid` as for Images::epoch.
  [[nodiscard]] std::uint32_t epoch(std::uint32_t pid, std::int64_t time, TimeRange &valid) const;
  // Whether the process ran a runtime that tells of its methods.
  [[nodiscard]] bool knows(std::uint32_t pid) const { return ranges_.contains(pid); }
  [[nodiscard]] const Method &operator[](std::uint32_t i) const { return methods_[i]; }
  [[nodiscard]] std::size_t size() const { return methods_.size(); }

private:
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  struct Overlapping { // the methods of a process, by the stretches between these addresses; in order of time
    std::vector<std::uint64_t> addresses;
    Stretches<std::uint32_t> methods;
  };
  void order();
  void order_overlapping(std::uint32_t pid, const Range &range);
  [[nodiscard]] std::uint32_t find_overlapping(const Overlapping &among, std::int64_t time,
                                               std::uint64_t address) const;

  std::vector<Method> methods_;                       // by process, start, from
  std::vector<std::vector<IlMapRecord::Entry>> maps_; // each by native offset
  std::vector<std::uint64_t>
      reach_; // of each method: the highest end of it and those before it in the process
  std::unordered_map<std::uint32_t, Range, base::SeededHash> ranges_;
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>, base::SeededHash> changes_;
  std::unordered_map<std::uint32_t, Overlapping, base::SeededHash> overlapping_; // processes in which many do
};

} // namespace etwrelog::profile
