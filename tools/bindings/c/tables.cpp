// Events as columns: Arrow's C data interface.
#include "handles.hpp"

#include "etwrelog/arrow.hpp"

struct etwr_tables {
  etwr_tables(std::shared_ptr<const etwrelog::Trace> of, etwrelog::ArrowTables opened);
  std::shared_ptr<const etwrelog::Trace> trace; // outlives what reads it
  etwrelog::ArrowTables tables;
  std::vector<etwr_table> described; // point into tables
};

etwr_tables::etwr_tables(std::shared_ptr<const etwrelog::Trace> of, etwrelog::ArrowTables opened)
    : trace(std::move(of)), tables(std::move(opened)) {
  for (const etwrelog::ArrowTable &table : tables.tables()) {
    etwr_table made{};
    made.struct_size = sizeof made;
    made.name = table.name.c_str();
    made.events = table.events;
    if (table.schema != nullptr) {
      etwrelog::store_guid(made.provider, table.schema->provider);
      made.id = table.schema->id;
      made.version = table.schema->version;
      made.opcode = table.schema->opcode;
    }
    described.push_back(made);
  }
}

namespace etwrelog::c {
namespace {

etwr_error *read_options(const etwr_table_options *given, const Trace &trace, const RunOptions &run,
                         ExportOptions &options) {
  const etwr_table_options asked = copy_of(given);
  constexpr std::uint32_t kJoins = 2 * ETWR_JOIN_REGISTRY - 1;
  if ((asked.joins & ~kJoins) != 0) return usage("etwr_table_options: no such join");
  options.joins.process = (asked.joins & ETWR_JOIN_PROCESS) != 0;
  options.joins.owner = (asked.joins & ETWR_JOIN_OWNER) != 0;
  options.joins.file = (asked.joins & ETWR_JOIN_FILE) != 0;
  options.joins.module = (asked.joins & ETWR_JOIN_MODULE) != 0;
  options.joins.stack = (asked.joins & ETWR_JOIN_STACK) != 0;
  options.joins.duration = (asked.joins & ETWR_JOIN_DURATION) != 0;
  options.joins.registry = (asked.joins & ETWR_JOIN_REGISTRY) != 0;
  if ((asked.flags & ~std::uint64_t{ETWR_TABLE_NUMBERS}) != 0)
    return usage("etwr_table_options: no such flag");
  options.numbers = (asked.flags & ETWR_TABLE_NUMBERS) != 0;
  if (asked.where != nullptr) options.where = asked.where;
  if (asked.schemas != nullptr) options.schemas = asked.schemas->catalog;
  return read_selection(asked.selection, trace, options.schemas, run, options.selection);
}

// A stream that keeps its trace: who imports it frees it when a garbage collector says so.
struct Kept {
  explicit Kept(std::shared_ptr<const Trace> of) : trace(std::move(of)) {}
  Kept(const Kept &) = delete;
  Kept &operator=(const Kept &) = delete;
  ~Kept() {
    if (stream.release != nullptr) stream.release(&stream);
  }
  std::shared_ptr<const Trace> trace;
  ArrowArrayStream stream{};
};

ArrowArrayStream &kept(ArrowArrayStream *stream) {
  return static_cast<Kept *>(stream->private_data)->stream;
}

void hand_over(std::unique_ptr<Kept> owned, ArrowArrayStream &out) {
  out.get_schema = [](ArrowArrayStream *stream, ArrowSchema *layout) {
    return kept(stream).get_schema(&kept(stream), layout);
  };
  out.get_next = [](ArrowArrayStream *stream, ArrowArray *batch) {
    return kept(stream).get_next(&kept(stream), batch);
  };
  out.get_last_error = [](ArrowArrayStream *stream) { return kept(stream).get_last_error(&kept(stream)); };
  out.release = [](ArrowArrayStream *stream) {
    delete static_cast<Kept *>(stream->private_data);
    *stream = {};
  };
  out.private_data = owned.release();
}

} // namespace
} // namespace etwrelog::c

using namespace etwrelog;

etwr_error *etwr_events_stream(const etwr_trace *trace, const etwr_table_options *options,
                               const etwr_run *run, ArrowArrayStream *stream) {
  return c::guarded([&]() -> etwr_error * {
    if (trace == nullptr || stream == nullptr) return c::usage("etwr_events_stream: no trace or no result");
    ExportOptions how;
    const c::Run in_run(run);
    if (etwr_error *error = c::read_options(options, trace->trace, in_run.options(), how)) return error;
    auto owned = std::make_unique<c::Kept>(trace->shared);
    const Result<void> made = arrow_events(*owned->trace, owned->stream, how, in_run.options());
    if (!made) return c::make_error(made.error());
    in_run.tell_warnings(&trace->trace);
    c::hand_over(std::move(owned), *stream);
    return nullptr;
  });
}

etwr_error *etwr_tables_open(const etwr_trace *trace, const etwr_table_options *options, const etwr_run *run,
                             etwr_tables **tables) {
  return c::guarded([&]() -> etwr_error * {
    if (trace == nullptr || tables == nullptr) return c::usage("etwr_tables_open: no trace or no result");
    ExportOptions how;
    const c::Run in_run(run);
    if (etwr_error *error = c::read_options(options, trace->trace, in_run.options(), how)) return error;
    Result<ArrowTables> opened = ArrowTables::open(trace->trace, how, in_run.options());
    if (!opened) return c::make_error(std::move(opened).error());
    *tables = new etwr_tables(trace->shared, *std::move(opened));
    in_run.tell_warnings(&trace->trace);
    return nullptr;
  });
}

std::size_t etwr_table_count(const etwr_tables *tables) {
  return tables->described.size();
}

const etwr_table *etwr_table_at(const etwr_tables *tables, std::size_t index) {
  return index < tables->described.size() ? &tables->described[index] : nullptr;
}

etwr_error *etwr_table_stream(const etwr_tables *tables, std::size_t index, ArrowArrayStream *stream) {
  return c::guarded([&]() -> etwr_error * {
    if (tables == nullptr || stream == nullptr) return c::usage("etwr_table_stream: no tables or no result");
    auto owned = std::make_unique<c::Kept>(tables->trace);
    const Result<void> made = tables->tables.stream(index, owned->stream);
    if (!made) return c::make_error(made.error());
    c::hand_over(std::move(owned), *stream);
    return nullptr;
  });
}

void etwr_tables_free(etwr_tables *tables) {
  delete tables;
}
