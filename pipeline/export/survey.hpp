// What an export has to know before it writes its first line: the schemas in the trace, and the processes.
#pragma once

#include "etwrelog/schema.hpp"
#include "etwrelog/trace.hpp"
#include "filter/lifetimes.hpp"

#include <vector>

namespace etwrelog::pipeline {

struct ExportSurvey {
  SchemaCatalog schemas;
  std::vector<filter::Lifetimes> lifetimes; // by machine
};

// One pass in file order over the whole trace; with `selection`'s time, over what lies in it and what else is
// true then, which of an archive is far less to read.
[[nodiscard]] Result<ExportSurvey> survey_for_export(const etwrelog::Trace &trace, const SchemaCatalog &known,
                                                     const RunOptions &run, const Selection &selection = {});

} // namespace etwrelog::pipeline
