// include/etwrelog/stacks.hpp over the counting of stacks.
#include "etwrelog/stacks.hpp"

#include "api/internals.hpp"
#include "api/reading.hpp"
#include "base/errors.hpp"
#include "output/several.hpp"
#include "passes/stack_report.hpp"

namespace etwrelog {

using stacks::StackCacheSim;

Result<StackReport> report_stacks(const Trace &trace, const StackReportOptions &options,
                                  const RunOptions &run) {
  ETWRELOG_TRY_LET(sources, detail::Traversal::all_sources(trace));
  ETWRELOG_TRY(pipeline::check_one_boot(sources));
  for (const pipeline::Trace *source : sources)
    detail::Traversal::add_input(run.report, *source);
  const unsigned pointer_size = sources.front()->header().pointer_size;
  pipeline::StackReportOptions how;
  how.top = options.top;
  how.memory = static_cast<std::size_t>(options.memory);
  for (const StackCacheSettings &setting : options.simulate)
    how.simulate.push_back(StackCacheSim::clamp(
        {setting.buckets, static_cast<std::size_t>(setting.bytes), pointer_size, StackCacheSim::Start::end}));
  std::optional<OutputStream> output;
  std::optional<stacks::StackDatabaseWriter> database;
  if (options.database) {
    ETWRELOG_TRY_LET(opened, pipeline::open_output(trace, *options.database));
    output.emplace(std::move(opened));
    database.emplace(
        [&](Bytes bytes) -> Result<void> {
          if (run.stop.stop_requested()) return base::cancelled().in(options.database->name());
          return output->write(bytes);
        },
        pointer_size);
    how.database = &*database;
  }
  Result<StackReport> report = pipeline::report_stacks(sources, how, run);
  if (!report) return report;
  if (output) {
    report->exported_bytes = database->size();
    ETWRELOG_TRY(output->commit());
  }
  detail::Traversal::add_to(run.report, report->skipped, report->warnings);
  return report;
}

} // namespace etwrelog
