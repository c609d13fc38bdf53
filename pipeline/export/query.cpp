// SQL over a trace: SQLite's statements over virtual tables of its events (query_tables.hpp).
#include "etwrelog/query.hpp"

#include "base/called.hpp"
#include "base/errors.hpp"
#include "etwrelog/kernel_events.hpp"
#include "export/query_kinds.hpp"
#include "export/query_tables.hpp"
#include "export/query_times.hpp"
#include "schema/event_names.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <sqlite3.h>

namespace etwrelog {

using pipeline::execute;
using pipeline::KindTable;
using pipeline::sql_error;
using tables::quoted_name;

namespace {

// A query reads the trace and nothing else: no other database, no file; and it leaves the tables of the trace
// to the next one.
int authorize(void *, int action, const char *, const char *, const char *, const char *) {
  const bool denied = action == SQLITE_ATTACH || action == SQLITE_DETACH || action == SQLITE_DROP_VTABLE ||
                      action == SQLITE_ALTER_TABLE;
  return denied ? SQLITE_DENY : SQLITE_OK;
}

} // namespace

TraceQuery::TraceQuery(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceQuery::TraceQuery(TraceQuery &&) noexcept = default;
TraceQuery &TraceQuery::operator=(TraceQuery &&) noexcept = default;
TraceQuery::~TraceQuery() = default;

namespace {

// The selection with the time that the statements ask for, where that lies in it and something is gained: of
// archives what lies elsewhere is not read, unless that may say something of these events.
std::optional<Selection> narrowed_to(const std::string &sql, const Trace &trace,
                                     const ExportOptions &options) {
  const Selection &whole = options.selection;
  if (sql.empty() || options.joins.any() ||
      std::ranges::none_of(trace.sources(),
                           [](const SourceInfo &source) { return source.access == Access::archive; }))
    return std::nullopt;
  const std::optional<pipeline::AskedTimes> times = pipeline::times_of(sql, trace.clock());
  if (!times) return std::nullopt;
  Selection selection = whole;
  if (!pipeline::narrow(selection, *times, filter::selected_time(whole, trace.clock()), trace.clock()))
    return std::nullopt;
  return selection;
}

} // namespace

Result<TraceQuery> TraceQuery::open(const Trace &trace, const ExportOptions &options, const RunOptions &run,
                                    const std::string &sql) {
  auto impl = std::make_unique<Impl>(trace, options, run);
  impl->run.progress = {}; // a scan is no phase with an end
  impl->asked = filter::selected_time(options.selection, trace.clock());
  Selection selection = options.selection;
  if (std::optional<Selection> narrowed = narrowed_to(sql, trace, options)) {
    selection = *std::move(narrowed);
    impl->narrowed = true;
    impl->sql = sql;
  }
  ETWRELOG_TRY_LET(survey, pipeline::survey_for_export(trace, options.schemas, run, selection));
  impl->survey = std::move(survey);
  const SchemaCatalog &schemas = impl->survey.schemas;
  if (impl->narrowed && pipeline::may_mean_several(sql, schemas, trace)) return open(trace, options, run);
  ETWRELOG_TRY_LET(seen, pipeline::kinds_seen(trace, schemas, selection, run));
  impl->decoders.emplace(schemas);
  impl->common.emplace(trace.clock(), impl->survey);
  if (options.joins.any()) {
    ETWRELOG_TRY_LET(joins, pipeline::Joins::make(trace, impl->survey, *impl->decoders, options, run));
    impl->joins = std::move(joins);
  }
  const std::size_t joined = impl->joins ? impl->joins->columns().size() : 0;
  impl->kinds.push_back({"events", nullptr, true, {}, {}, joined});
  impl->undescribed = seen.undescribed;
  for (const Schema *schema : schemas.all())
    impl->wordy.push_back(pipeline::is_wordy(*schema));
  pipeline::KnowledgeWanted wanted;
  wanted.images = true;
  ETWRELOG_TRY_LET(known, pipeline::Knowledge::collect(trace, impl->survey, wanted, run, selection));
  impl->known = std::move(known);
  impl->state.emplace(pipeline::QueryState{impl->survey, impl->known, trace.clock(), options.numbers});
  pipeline::TableNames names{pipeline::TableNames::kEvents, "processes", "threads", "images", "samples"};
  std::vector<std::string> samples;
  for (const Schema *schema : schemas.all()) {
    if (schema->ordinal >= seen.ordinals.size() || !seen.ordinals[schema->ordinal]) continue;
    KindTable &kind = impl->kinds.emplace_back();
    kind.name = names.give(schemas, schema);
    kind.schema = schema;
    kind.joins = joined;
    if (schema->classic && kernel::hook_of_class(schema->provider, schema->opcode) == kernel::kHookSample)
      samples.push_back(kind.name);
    kind.object = pipeline::too_many_columns(*schema);
    if (kind.object) continue;
    pipeline::for_each_top_field(*schema, [&kind](std::size_t i) { kind.fields.push_back(i); });
    std::ranges::copy_if(kind.fields, std::back_inserter(kind.renamed), [schema](std::size_t i) {
      return !schema::other_field_name(schema->fields[i].name).empty();
    });
  }
  sqlite3 *raw = nullptr;
  const int opened = sqlite3_open(":memory:", &raw);
  impl->database.reset(raw);
  if (opened != SQLITE_OK) return sql_error(raw);
  // A name in double quotes that nothing has is an error, not a text.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  if (sqlite3_create_module(raw, "trace", &pipeline::event_tables(), impl.get()) != SQLITE_OK)
    return sql_error(raw);
  const auto add_table = [raw](const std::string &name, std::size_t kind) {
    return execute(raw, fmt::format("CREATE VIRTUAL TABLE {} USING trace({})", quoted_name(name), kind));
  };
  for (std::size_t i = 0; i < impl->kinds.size(); ++i)
    ETWRELOG_TRY(add_table(impl->kinds[i].name, i));
  for (std::size_t i = 0; i < impl->kinds.size(); ++i) {
    if (impl->kinds[i].schema == nullptr) continue;
    const std::optional<std::string> other = names.give_other(schemas, *impl->kinds[i].schema);
    if (!other) continue;
    ETWRELOG_TRY(add_table(*other, i));
    impl->other_names.push_back(*other);
  }
  ETWRELOG_TRY(pipeline::add_state(raw, *impl->state));
  ETWRELOG_TRY(pipeline::add_samples(raw, samples));
  sqlite3_set_authorizer(raw, authorize, nullptr);
  return TraceQuery(std::move(impl));
}

namespace {

// As SQLite writes it, but with as many digits as make it that number again and not just 15.
std::string text_of(double value) {
  if (std::isinf(value)) return value > 0 ? "Inf" : "-Inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

// `real`: memory for the text of a real number.
TraceQuery::Value value_of(sqlite3_stmt *row, int column, std::string &real) {
  using Type = TraceQuery::Value::Type;
  const int type = sqlite3_column_type(row, column);
  if (type == SQLITE_FLOAT) {
    real = text_of(sqlite3_column_double(row, column));
    return {Type::real, real};
  }
  const auto *text = reinterpret_cast<const char *>(sqlite3_column_text(row, column));
  if (text == nullptr) return {};
  return {type == SQLITE_INTEGER ? Type::integer : Type::text,
          {text, static_cast<std::size_t>(sqlite3_column_bytes(row, column))}};
}

} // namespace

Result<void> TraceQuery::run(const std::string &sql, const Visitor &visitor) {
  // What it was opened for may name tables that only other times have; and it may be asked something else.
  if (impl_->narrowed && (sql != impl_->sql || !prepares(sql))) {
    ETWRELOG_TRY_LET(whole, open(impl_->trace, impl_->options, impl_->run));
    *this = std::move(whole);
  }
  const char *rest = sql.c_str();
  sqlite3 *database = impl_->database.get();
  while (*rest != '\0') {
    sqlite3_stmt *raw = nullptr;
    if (sqlite3_prepare_v2(database, rest, -1, &raw, &rest) != SQLITE_OK) return sql_error(database);
    const tables::SqliteStatement statement(raw);
    if (!statement) continue; // white space or a comment
    const auto count = static_cast<std::size_t>(sqlite3_column_count(raw));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i)
      names.emplace_back(sqlite3_column_name(raw, static_cast<int>(i)));
    if (count != 0 && visitor.columns)
      ETWRELOG_TRY(base::called("the visitor's columns", [&] { visitor.columns(names); }));
    std::vector<Value> values(count);
    std::vector<std::string> reals(count);
    for (;;) {
      const int step = sqlite3_step(raw);
      if (step == SQLITE_DONE) break;
      if (step != SQLITE_ROW) {
        if (!std::exchange(impl_->failed, false)) return sql_error(database);
        return impl_->failure;
      }
      for (std::size_t i = 0; i < count; ++i)
        values[i] = value_of(raw, static_cast<int>(i), reals[i]);
      if (visitor.row) ETWRELOG_TRY(base::called("the visitor's row", [&] { visitor.row(values); }));
    }
  }
  return {};
}

bool TraceQuery::prepares(const std::string &sql) const {
  for (const char *rest = sql.c_str(); *rest != '\0';) {
    sqlite3_stmt *raw = nullptr;
    const int prepared = sqlite3_prepare_v2(impl_->database.get(), rest, -1, &raw, &rest);
    const tables::SqliteStatement statement(raw);
    if (prepared != SQLITE_OK) return false;
  }
  return true;
}

std::vector<std::string> TraceQuery::tables() const {
  std::vector<std::string> names{"images", "processes", "samples", "threads"};
  for (const KindTable &kind : impl_->kinds)
    names.push_back(kind.name);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> TraceQuery::other_tables() const {
  return impl_->other_names;
}

bool TraceQuery::is_complete(const std::string &sql) {
  return sqlite3_complete(sql.c_str()) != 0;
}

std::vector<std::string> TraceQuery::problems() const {
  std::vector<std::string> all;
  const auto add = [&all](std::span<const std::string> problems) {
    for (const std::string &problem : problems)
      if (std::ranges::find(all, problem) == all.end()) all.push_back(problem);
  };
  add(impl_->survey.schemas.problems());
  add(impl_->known.problems());
  if (impl_->joins) add(impl_->joins->problems());
  return all;
}

} // namespace etwrelog
