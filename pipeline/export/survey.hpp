// What an export has to know before it writes its first line: the schemas in the trace, and the processes.
#pragma once

#include "etwrelog/schema.hpp"
#include "etwrelog/trace.hpp"
#include "filter/filter.hpp"

#include <vector>

namespace etwrelog::pipeline {

class ExportSurvey {
public:
  SchemaCatalog schemas;
  std::vector<filter::Lifetimes> lifetimes; // by machine

  // What the column "process" shows: the process that an event names in its header or, where that has none,
  // in its payload. Index among the lifetimes' processes; kNone where its name is not known.
  static constexpr std::uint32_t kNone = 0xFFFF'FFFE;
  [[nodiscard]] std::uint32_t process_of(const EventView &event, std::int64_t time,
                                         std::uint32_t machine) const {
    if (machine >= lifetimes.size()) return kNone;
    const std::uint32_t pid = filter::named_process(event, time, lifetimes[machine]);
    if (pid % 4 == 0 && pid / 4 < only_[machine].size())
      if (const std::uint32_t found = only_[machine][pid / 4]; found != kMany) return found;
    return look_up_process(machine, pid, time);
  }
  [[nodiscard]] std::uint32_t process_of(const Event &event) const {
    return process_of(event, event.time(), event.machine());
  }

  void add(filter::Lifetimes of_machine);

private:
  [[nodiscard]] std::uint32_t look_up_process(std::uint32_t machine, std::uint32_t pid,
                                              std::int64_t time) const;

  // By machine and pid / 4 (pids are multiples of that): the process, where that id meant only one; or kMany.
  static constexpr std::uint32_t kMany = 0xFFFF'FFFF, kMostPids = 1u << 18;
  std::vector<std::vector<std::uint32_t>> only_;
};

// One pass in file order over the whole trace; with `selection`'s time, over what lies in it and what else is
// true then, which of an archive is far less to read.
[[nodiscard]] Result<ExportSurvey> survey_for_export(const etwrelog::Trace &trace, const SchemaCatalog &known,
                                                     const RunOptions &run, const Selection &selection = {});

} // namespace etwrelog::pipeline
