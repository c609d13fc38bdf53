// What SQL over a trace is made of: its kinds of events, each a virtual table, and all that these look up.
#pragma once

#include "etwrelog/query.hpp"
#include "export/event_columns.hpp"
#include "export/joins.hpp"
#include "export/json_lines.hpp"
#include "export/query_state.hpp"
#include "filter/filter.hpp"
#include "tables/sqlite_base.hpp"

namespace etwrelog {

namespace pipeline {

// One kind of events, or all.
struct KindTable {
  std::string name;
  const Schema *schema = nullptr;  // null: all events
  bool object = true;              // one column has all fields
  std::vector<std::size_t> fields; // indices of top-level fields
  // Of those that have another name: hidden columns behind the others.
  std::vector<std::size_t> renamed{};
  std::size_t joins = 0; // columns that events have of other events
  // Columns behind the common ones: fields, or all of them as JSON; joined ones; what fields leave, and
  // whether one is cut; fields by their other names; the machine.
  [[nodiscard]] std::size_t joined() const { return object ? 1 : fields.size(); }
  [[nodiscard]] std::size_t raw() const { return joined() + joins; }
  [[nodiscard]] std::size_t truncated() const { return raw() + 1; }
  [[nodiscard]] std::size_t machine() const { return truncated() + 1 + renamed.size(); }
  [[nodiscard]] std::size_t field_of_column(std::size_t number) const {
    return number < joined() ? fields[number] : renamed[number - truncated() - 1];
  }
};

// Whether the text of such an event may be more than that of any real one.
[[nodiscard]] bool is_wordy(const Schema &schema);

// The module of these tables, each made with its number in TraceQuery::Impl::kinds; the context is the Impl.
[[nodiscard]] const sqlite3_module &event_tables();

} // namespace pipeline

struct TraceQuery::Impl {
  Impl(const Trace &t, ExportOptions o, RunOptions r) : trace(t), options(std::move(o)), run(std::move(r)) {
    std::uint64_t buffers = 0;
    for (const SourceInfo &source : trace.sources()) {
      first_buffers.push_back(buffers);
      buffers += source.buffers;
    }
  }

  [[nodiscard]] tables::ColumnType type_of(const Field &field) const {
    return pipeline::column_type(field, options.numbers);
  }

  [[nodiscard]] JsonOptions json() const { return {.numbers = options.numbers}; }

  const Trace &trace;
  ExportOptions options;
  RunOptions run;
  filter::TimeRange asked; // nothing outside is there
  bool narrowed = false;   // only of the time that `sql` asks for it is known what there is
  std::string sql{};
  pipeline::ExportSurvey survey;
  std::optional<pipeline::CommonColumns> common;
  std::optional<pipeline::Decoders> decoders;
  std::optional<pipeline::Joins> joins;
  std::vector<pipeline::KindTable> kinds;
  std::vector<std::string> other_names; // by which some of them are known, too
  pipeline::Knowledge known;
  std::optional<pipeline::QueryState> state;
  std::vector<std::uint64_t> first_buffers; // of each source, among those of all
  std::vector<Guid> undescribed;            // providers of events without a schema
  std::vector<bool> wordy;                  // by ordinal: is_wordy()
  Error failure;                            // of a traversal, until run() returns it
  bool failed = false;
  tables::SqliteDatabase database; // last: its tables refer to the rest
};

} // namespace etwrelog
