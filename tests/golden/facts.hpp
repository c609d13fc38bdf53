// What a committed archive must give back, as far as a few lines can say it. The program that made the
// archive took it from the original, the test takes it from the archive.
#pragma once

#include "etlz/container.hpp"
#include "passes/statistics.hpp"
#include "stacks/stack_database.hpp"

#include <nlohmann/json.hpp>

namespace etwrelog::testing {

inline std::string hex(Bytes bytes) {
  std::string text;
  for (const std::uint8_t b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

// As `xxh128sum` prints it.
inline std::string hash_of(Bytes bytes) {
  etlz::ContentHasher hasher;
  hasher.update(bytes);
  return hex(hasher.finish());
}

// Without names of events, which may become better, and everything else that is not in the trace itself.
inline nlohmann::json facts_of(const Statistics &s) {
  nlohmann::json facts{{"events", s.events},
                       {"event_bytes", s.event_bytes},
                       {"claimed_bytes", s.claimed_bytes},
                       {"first_time", s.first_time},
                       {"last_time", s.last_time},
                       {"stack_events", s.stacks.stack_events()},
                       {"stack_frames", s.stacks.frames},
                       {"distinct_stacks", s.stacks.distinct_stacks}};
  for (const TypeStatistics &row : s.types)
    facts["types"].push_back({static_cast<unsigned>(row.type.family), row.type.id, row.type.version,
                              to_string(row.type.guid), row.events, row.bytes});
  for (const ProcessInstance &p : s.processes)
    facts["processes"].push_back({p.pid, p.parent, p.image_name, p.command_line});
  for (const auto &[pid, samples] : s.samples_by_pid)
    facts["samples"].push_back({pid, samples});
  return facts;
}

inline nlohmann::json facts_of(const stacks::StackDatabase &database) {
  std::vector<std::uint8_t> all;
  auto add = [&all](auto value) {
    for (unsigned i = 0; i < sizeof value; ++i)
      all.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> 8 * i));
  };
  for (const stacks::StackReference &r : database.references) {
    add(static_cast<std::uint8_t>(r.kind));
    add(r.processor);
    add(r.process_id);
    add(r.thread_id);
    add(r.event_time);
    add(r.stack);
  }
  std::uint64_t frames = 0;
  for (std::size_t i = 0; i < database.stacks.size(); ++i) {
    add(database.scopes[i]);
    for (const std::uint64_t frame : database.stacks[i])
      add(frame);
    frames += database.stacks[i].size();
  }
  return {{"references", database.references.size()},
          {"stacks", database.stacks.size()},
          {"frames", frames},
          {"content", hash_of(all)}};
}

} // namespace etwrelog::testing
