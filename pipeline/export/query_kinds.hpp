// Which kinds of events SQL over a trace has tables of.
#pragma once

#include "etwrelog/schema.hpp"
#include "etwrelog/trace.hpp"

#include <string>
#include <vector>

namespace etwrelog::pipeline {

struct KindsSeen {
  std::vector<bool> ordinals;    // of schemas that events have
  std::vector<Guid> undescribed; // providers of events that have none
};

// One pass over the time of `selection`; nothing else of it is looked at.
[[nodiscard]] Result<KindsSeen> kinds_seen(const etwrelog::Trace &trace, const SchemaCatalog &schemas,
                                           const Selection &selection, const RunOptions &run);

// Whether the statements may name a table of a kind that shares its name with others, so that only the whole
// trace tells which of them has it. Of TraceLogging events there may be others that were not read. One kernel
// writes one version of its events.
[[nodiscard]] bool may_mean_several(const std::string &sql, const SchemaCatalog &schemas,
                                    const etwrelog::Trace &trace);

} // namespace etwrelog::pipeline
