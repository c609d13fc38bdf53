#include "passes/collect.hpp"

#include "base/errors.hpp"

namespace etwrelog::pipeline {
namespace {

struct LifetimesPart {
  filter::LifetimeRecords records;
  std::vector<std::uint16_t> processors;
};

} // namespace

Result<filter::Lifetimes> collect_lifetimes(const Trace &trace, const PassOptions &options,
                                            PassResult &result, const char *name) {
  filter::LifetimeRecords all;
  std::vector<std::uint16_t> processors(trace.buffers().size());
  Pass<LifetimesPart> pass;
  pass.name = name;
  pass.work = [&](Batch &batch, LifetimesPart &work) {
    work.records.clear();
    for (const DecodedBuffer &buffer : batch.buffers)
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        work.records.add(event, time, buffer.index);
      });
  };
  pass.merge = [&](Batch &batch, LifetimesPart &work) -> Result<void> {
    for (const DecodedBuffer &buffer : batch.buffers)
      processors[buffer.index] = buffer.header.processor();
    all.append(std::move(work.records));
    return {};
  };
  ETWRELOG_TRY_LET(done, run_pass(trace, pass, options));
  result = std::move(done);
  const bool one_stream = (trace.header().log_file_mode & format::kModeOneStream) != 0;
  return filter::Lifetimes(std::move(all), processors, one_stream);
}

namespace {

// visit(event, time, position, part) of every event, where the filter's walk over the buffer stands there.
template <class Part, class Visit>
auto filtered(const Trace &trace, const filter::Filter &filter, std::uint32_t first_buffer, Visit visit) {
  return [&trace, &filter, first_buffer, visit](Batch &batch, Part &part) {
    part.clear();
    for (const DecodedBuffer &buffer : batch.buffers) {
      filter::Position position = filter.begin_buffer(first_buffer + buffer.index, buffer.header.processor());
      position.of_others = buffer.from_index;
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        visit(event, time, position, part);
      });
    }
  };
}

} // namespace

Result<void> collect_references(const Trace &trace, const filter::Filter &filter, std::uint32_t first_buffer,
                                const PassOptions &options, filter::Marks &marks, const KeptBuffers *kept) {
  Pass<filter::Marks::Part> pass;
  pass.name = "following references";
  const auto mark = filtered<filter::Marks::Part>(
      trace, filter, first_buffer,
      [&filter](const EventView &event, std::int64_t time, filter::Position &position,
                filter::Marks::Part &part) { filter.mark(event, time, position, part); });
  pass.work = [&mark](Batch &batch, filter::Marks::Part &part) {
    mark(batch, part);
    part.shrink();
  };
  pass.merge = [&](Batch &, filter::Marks::Part &part) -> Result<void> {
    filter.merge(part, marks);
    return {};
  };
  ETWRELOG_TRY(run_pass(trace, pass, options, kept));
  return {};
}

Result<void> collect_code_processes(const Trace &trace, const filter::Filter &filter,
                                    std::uint32_t first_buffer, const PassOptions &options,
                                    std::unordered_set<std::uint32_t> &processes, const KeptBuffers *kept) {
  const auto &all = filter.code_processes();
  if (!filter.asks_for_code_processes() || processes.size() == all.size()) return {};
  using Part = std::unordered_set<std::uint32_t>;
  Pass<Part> pass;
  pass.name = "looking for stacks of runtimes";
  pass.work = filtered<Part>(
      trace, filter, first_buffer,
      [&filter, &all](const EventView &event, std::int64_t time, filter::Position &position, Part &part) {
        const auto process = filter.process_of_stack(event, time, position);
        if (process && all.contains(*process)) part.insert(*process);
      });
  pass.merge = [&processes](Batch &, Part &part) -> Result<void> {
    processes.merge(part);
    return {};
  };
  pass.enough = [&] { return processes.size() == all.size(); };
  ETWRELOG_TRY(run_pass(trace, pass, options, kept));
  return {};
}

} // namespace etwrelog::pipeline
