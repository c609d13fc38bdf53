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

Result<void> settle_names_of_code(std::span<const FilteredTrace> traces, filter::Filter &filter,
                                  const PassOptions &options) {
  if (!filter.asks_for_code_processes()) return {};
  const auto &all = filter.code_processes();
  using Processes = std::unordered_set<std::uint32_t>;
  Processes found;
  const auto enough = [&] { return found.size() == all.size(); };
  for (const FilteredTrace &one : traces) {
    if (enough()) break;
    Pass<Processes> pass;
    pass.name = "looking for stacks of runtimes";
    pass.work = filtered<Processes>(*one.trace, filter, one.first_buffer,
                                    [&filter, &all](const EventView &event, std::int64_t time,
                                                    filter::Position &position, Processes &part) {
                                      const auto process = filter.process_of_stack(event, time, position);
                                      if (process && all.contains(*process)) part.insert(*process);
                                    });
    pass.merge = [&found](Batch &, Processes &part) -> Result<void> {
      found.merge(part);
      return {};
    };
    pass.enough = enough;
    ETWRELOG_TRY(run_pass(*one.trace, pass, options, one.kept));
  }
  filter.set_code_processes(std::move(found));
  return {};
}

Result<void> settle_filter(std::span<const FilteredTrace> traces, filter::Filter &filter,
                           const PassOptions &options) {
  filter::Marks marks;
  for (const FilteredTrace &one : traces)
    ETWRELOG_TRY(collect_references(*one.trace, filter, one.first_buffer, options, marks, one.kept));
  filter.set_marks(std::move(marks));
  return settle_names_of_code(traces, filter, options);
}

} // namespace etwrelog::pipeline
