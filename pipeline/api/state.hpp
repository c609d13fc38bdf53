// What stands behind Lifetimes, and the pass that collects it.
#pragma once

#include "api/sources_in_time.hpp"
#include "etwrelog/state.hpp"
#include "filter/lifetimes.hpp"
#include "profile/images.hpp"

namespace etwrelog {

struct Lifetimes::Impl {
  // What the sources of one machine tell. Times in here are raw, and so are those that it is asked for: they
  // are the same for all sources of a machine.
  struct Machine {
    std::shared_ptr<const filter::Lifetimes> lifetimes;
    std::vector<profile::IdentityRecord> identities;
    profile::Images images;
    std::uint32_t first_process = 0, first_image = 0;
    Clock clock;
    pipeline::ClockMap to_raw; // from the trace's clock
  };
  std::vector<std::unique_ptr<const Machine>> machines;
  // By source: where its buffers begin in the numbering of its machine's lifetimes.
  std::vector<std::uint32_t> first_buffer;
  std::vector<ProcessInstance> processes;
  std::vector<ThreadInstance> threads;
  std::vector<ImageInstance> images;
};

struct StateParts {
  static const std::shared_ptr<const Lifetimes::Impl> &of(const Lifetimes &lifetimes) {
    return lifetimes.impl_;
  }
  static Lifetimes make(std::shared_ptr<const Lifetimes::Impl> impl) {
    Lifetimes out;
    out.impl_ = std::move(impl);
    return out;
  }
};

namespace pipeline {

// What the sources tell, which are the trace's. With `schemas`: those that they hold are added to it in the
// same pass.
[[nodiscard]] Result<Lifetimes> collect_state(const etwrelog::Trace &trace, const SourcesInTime &sources,
                                              const RunOptions &run, SchemaCatalog *schemas);

} // namespace pipeline
} // namespace etwrelog
