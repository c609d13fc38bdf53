// include/etwrelog/stacks.hpp over the counting of stacks.
#include "etwrelog/stacks.hpp"

#include "api/internals.hpp"
#include "base/errors.hpp"
#include "passes/stack_report.hpp"

namespace etwrelog {

using stacks::StackCacheSim;

Result<StackReport> report_stacks(const Trace &trace, const StackReportOptions &options,
                                  const RunOptions &run) {
  ETWRELOG_TRY_LET(source,
                   detail::Traversal::only_source(trace, "counting the stacks of several traces at once"));
  detail::Traversal::add_input(run.report, *source);
  const unsigned pointer_size = source->header().pointer_size;
  pipeline::StackReportOptions how;
  how.top = options.top;
  how.memory = static_cast<std::size_t>(options.memory);
  for (const StackCacheSettings &setting : options.simulate)
    how.simulate.push_back(StackCacheSim::clamp(
        {setting.buckets, static_cast<std::size_t>(setting.bytes), pointer_size, StackCacheSim::Start::end}));
  std::optional<OutputStream> output;
  std::optional<stacks::StackDatabaseWriter> database;
  if (options.database) {
    const Input input(source->input().name());
    ETWRELOG_TRY_LET(opened, OutputStream::open(*options.database, {&input, 1}));
    output.emplace(std::move(opened));
    database.emplace([&](Bytes bytes) { return output->write(bytes); }, pointer_size);
    how.database = &*database;
  }
  Result<StackReport> report = pipeline::report_stacks(*source, how, run);
  if (!report) return report;
  if (output) {
    report->exported_bytes = database->size();
    ETWRELOG_TRY(output->commit());
  }
  detail::Traversal::add_to(run.report, report->skipped, report->warnings);
  return report;
}

} // namespace etwrelog
