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

Result<void> collect_references(const Trace &trace, const filter::Filter &filter, std::uint32_t first_buffer,
                                const PassOptions &options, filter::Marks &marks, const KeptBuffers *kept) {
  Pass<filter::Marks::Part> pass;
  pass.name = "following references";
  pass.work = [&](Batch &batch, filter::Marks::Part &part) {
    part.clear();
    for (const DecodedBuffer &buffer : batch.buffers) {
      filter::Position position = filter.begin_buffer(first_buffer + buffer.index, buffer.header.processor());
      position.of_others = buffer.from_index;
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        filter.mark(event, time, position, part);
      });
    }
    part.shrink();
  };
  pass.merge = [&](Batch &, filter::Marks::Part &part) -> Result<void> {
    filter.merge(part, marks);
    return {};
  };
  ETWRELOG_TRY(run_pass(trace, pass, options, kept));
  return {};
}

} // namespace etwrelog::pipeline
