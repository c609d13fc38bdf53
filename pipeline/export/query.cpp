// A trace as virtual tables of SQLite: https://www.sqlite.org/vtab.html. A scan is a traversal in order of
// time; SQLite tells the conditions it has, and those on time and kind go into the Query of the traversal.
#include "etwrelog/query.hpp"

#include "export/event_columns.hpp"
#include "export/json_lines.hpp"
#include "export/survey.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <sqlite3.h>

namespace etwrelog {

namespace {

std::string quoted_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

struct Close {
  void operator()(sqlite3 *database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};

// Puts a value where SQLite asks for one.
struct Put {
  sqlite3_context *context;
  void null() { sqlite3_result_null(context); }
  void number(std::int64_t value) { sqlite3_result_int64(context, value); }
  void text(std::string_view value) {
    sqlite3_result_text64(context, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
};

struct KindTable {
  std::string name;
  const Schema *schema = nullptr;  // null: all events
  std::vector<std::size_t> fields; // indices of top-level fields
};

} // namespace

struct TraceQuery::Impl {
  Impl(const Trace &t, RunOptions r) : trace(t), run(std::move(r)) {}

  const Trace &trace;
  RunOptions run;
  pipeline::ExportSurvey survey;
  std::optional<pipeline::JsonLines> lines;
  std::optional<pipeline::CommonColumns> common;
  std::vector<Decoder> narrow, wide; // by ordinal
  std::vector<KindTable> kinds;
  Error failure; // of a traversal, until run() returns it
  bool failed = false;
  std::unique_ptr<sqlite3, Close> database; // last: its tables refer to the rest
};

namespace {

struct Table {
  sqlite3_vtab base{};
  TraceQuery::Impl *impl = nullptr;
  const KindTable *kind = nullptr;
};

struct Cursor {
  sqlite3_vtab_cursor base{};
  std::optional<EventCursor> events;
  const Event *event = nullptr;
  const Schema *schema = nullptr;
  sqlite3_int64 row = 0;
  std::string text;
};

int connect(sqlite3 *database, void *context, int argc, const char *const *argv, sqlite3_vtab **made,
            char **) {
  auto *impl = static_cast<TraceQuery::Impl *>(context);
  if (argc < 4) return SQLITE_ERROR;
  const KindTable &kind = impl->kinds[static_cast<std::size_t>(std::strtoul(argv[3], nullptr, 10))];
  std::string columns;
  std::set<std::string> taken;
  auto add = [&](const std::string &name, const char *type) {
    std::string unique = name, folded;
    for (int again = 2;; ++again) {
      folded = unique;
      std::ranges::transform(folded, folded.begin(),
                             [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
      if (taken.insert(folded).second) break;
      unique = fmt::format("{}#{}", name, again);
    }
    if (!columns.empty()) columns += ", ";
    columns += quoted_name(unique) + type;
  };
  auto sql_type = [](tables::ColumnType type) {
    return type == tables::ColumnType::text   ? " TEXT"
           : type == tables::ColumnType::real ? " REAL"
                                              : " INTEGER";
  };
  for (const tables::Column &column : pipeline::common_columns())
    add(column.name, sql_type(column.type));
  if (kind.schema)
    for (const std::size_t field : kind.fields)
      add(std::string(kind.schema->fields[field].name),
          sql_type(pipeline::column_type(kind.schema->fields[field])));
  else
    add("fields", " TEXT");
  const int declared = sqlite3_declare_vtab(database, fmt::format("CREATE TABLE x({})", columns).c_str());
  if (declared != SQLITE_OK) return declared;
  auto *table = new Table;
  table->impl = impl;
  table->kind = &kind;
  *made = &table->base;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab *table) {
  delete reinterpret_cast<Table *>(table);
  return SQLITE_OK;
}

// Which bounds a scan gets, in the order of its arguments: '<' and '>' on time, 'b' and 'a' on the raw time
// stamp.
int best_index(sqlite3_vtab *, sqlite3_index_info *info) {
  std::string plan;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto &constraint = info->aConstraint[i];
    if (constraint.usable == 0 || (constraint.iColumn != 0 && constraint.iColumn != 1)) continue;
    const bool raw = constraint.iColumn == 1;
    char kind = 0;
    if (constraint.op == SQLITE_INDEX_CONSTRAINT_GE || constraint.op == SQLITE_INDEX_CONSTRAINT_GT)
      kind = raw ? 'a' : '>';
    if (constraint.op == SQLITE_INDEX_CONSTRAINT_LE || constraint.op == SQLITE_INDEX_CONSTRAINT_LT)
      kind = raw ? 'b' : '<';
    if (constraint.op == SQLITE_INDEX_CONSTRAINT_EQ) kind = raw ? 'e' : '=';
    if (kind == 0) continue;
    plan += kind;
    info->aConstraintUsage[i].argvIndex =
        static_cast<int>(plan.size()); // SQLite checks the condition again itself
  }
  info->estimatedCost = plan.empty() ? 1e7 : 1e5;
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn <= 1 && info->aOrderBy[0].iColumn >= 0 &&
      info->aOrderBy[0].desc == 0)
    info->orderByConsumed = 1; // a scan is in order of time
  return SQLITE_OK;
}

int open_cursor(sqlite3_vtab *, sqlite3_vtab_cursor **made) {
  *made = &(new Cursor)->base;
  return SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor *cursor) {
  delete reinterpret_cast<Cursor *>(cursor);
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor *base) {
  auto *cursor = reinterpret_cast<Cursor *>(base);
  auto *table = reinterpret_cast<Table *>(base->pVtab);
  TraceQuery::Impl &impl = *table->impl;
  while ((cursor->event = cursor->events->next()) != nullptr) {
    cursor->schema = impl.survey.schemas.find(*cursor->event);
    if (table->kind->schema == nullptr || cursor->schema == table->kind->schema) break;
  }
  ++cursor->row;
  if (cursor->event == nullptr && !cursor->events->status()) {
    impl.failure = cursor->events->status().error();
    impl.failed = true;
    return SQLITE_IOERR;
  }
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor *base, int, const char *plan, int argc, sqlite3_value **argv) {
  auto *cursor = reinterpret_cast<Cursor *>(base);
  auto *table = reinterpret_cast<Table *>(base->pVtab);
  TraceQuery::Impl &impl = *table->impl;
  Query query;
  query.order = Order::time;
  // A little more than asked for, as FILETIME is coarser than the clock; SQLite drops it.
  std::int64_t from = INT64_MIN, to = INT64_MAX;
  for (int i = 0; i < argc; ++i) {
    const std::int64_t value = sqlite3_value_int64(argv[i]);
    const bool raw = plan[i] == 'a' || plan[i] == 'b' || plan[i] == 'e';
    if (!raw && (value < 0 || value / 100 > INT64_MAX - pipeline::kUnixEpoch - 1)) continue;
    const std::int64_t filetime =
        raw ? impl.trace.clock().to_filetime(value) : value / 100 + pipeline::kUnixEpoch;
    const char op = plan[i];
    if (op == '>' || op == 'a' || op == '=' || op == 'e') from = std::max(from, filetime - 1);
    if (op == '<' || op == 'b' || op == '=' || op == 'e') to = std::min(to, filetime + 1);
  }
  if (from != INT64_MIN) query.from = Moment{false, 0, from};
  if (to != INT64_MAX) query.to = Moment{false, 0, to};
  cursor->events.emplace(impl.trace.events(query, impl.run));
  cursor->row = 0;
  return next(base);
}

int at_end(sqlite3_vtab_cursor *base) {
  return reinterpret_cast<Cursor *>(base)->event == nullptr ? 1 : 0;
}

void put_field(const FieldValue &value, Cursor &cursor, Put put) {
  switch (pipeline::column_type(*value.field)) {
  case tables::ColumnType::real:
    if (const auto real = value.real())
      sqlite3_result_double(put.context, *real);
    else
      put.null();
    return;
  case tables::ColumnType::text:
    cursor.text.clear();
    value.append_text(cursor.text);
    put.text(cursor.text);
    return;
  default:
    if (const auto integer = value.integer(); !integer)
      put.null();
    else if (!value.field->is_signed() && *integer > static_cast<std::uint64_t>(INT64_MAX))
      put.text(fmt::format("{}", *integer)); // SQLite has no such integer
    else
      put.number(static_cast<std::int64_t>(*integer));
  }
}

int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int index) {
  auto *cursor = reinterpret_cast<Cursor *>(base);
  auto *table = reinterpret_cast<Table *>(base->pVtab);
  TraceQuery::Impl &impl = *table->impl;
  Put put{context};
  const auto number = static_cast<std::size_t>(index);
  const std::size_t common = pipeline::common_columns().size();
  if (number < common) {
    impl.common->put(*cursor->event, cursor->schema, number, put);
    return SQLITE_OK;
  }
  if (cursor->schema == nullptr) {
    put.null();
    return SQLITE_OK;
  }
  const std::size_t ordinal = cursor->schema->ordinal;
  const Decoder &decoder = cursor->event->pointer_size() == 4 ? impl.narrow[ordinal] : impl.wide[ordinal];
  if (table->kind->schema == nullptr) {
    cursor->text.clear();
    decoder.append_json(cursor->event->payload(), cursor->text);
    put.text(cursor->text);
    return SQLITE_OK;
  }
  const auto value = decoder.field(cursor->event->payload(), table->kind->fields[number - common]);
  if (value)
    put_field(*value, *cursor, put);
  else
    put.null();
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *row) {
  *row = reinterpret_cast<Cursor *>(base)->row;
  return SQLITE_OK;
}

sqlite3_module make_module() {
  sqlite3_module module{};
  module.xCreate = connect;
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xDestroy = disconnect;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}

const sqlite3_module kModule = make_module();

// A query reads the trace and nothing else: no other database, no file.
int authorize(void *, int action, const char *, const char *, const char *, const char *) {
  return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

Error sql_error(sqlite3 *database) {
  Error error;
  error.kind = ErrorKind::usage;
  error.what = fmt::format("SQL: {}", database ? sqlite3_errmsg(database) : "out of memory");
  return error;
}

struct Seen {
  std::vector<bool> ordinals;
  void clear() { ordinals.clear(); }
};

// The schemas that events of the trace have, by ordinal.
Result<Seen> kinds_seen(const Trace &trace, const SchemaCatalog &schemas, const RunOptions &run) {
  return trace.fold<Seen>(
      [&](Seen &part, EventBatch &batch) {
        part.ordinals.assign(schemas.all().size(), false);
        for (const Event &event : batch)
          if (const Schema *schema = schemas.find(event)) part.ordinals[schema->ordinal] = true;
      },
      [&](Seen &total, Seen &part) {
        total.ordinals.resize(schemas.all().size());
        for (std::size_t i = 0; i < part.ordinals.size(); ++i)
          if (part.ordinals[i]) total.ordinals[i] = true;
      },
      {}, run);
}

Result<void> execute(sqlite3 *database, const std::string &sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return sql_error(database);
  return {};
}

Result<void> add_processes(sqlite3 *database, const pipeline::ExportSurvey &survey, const Clock &clock) {
  Result<void> made =
      execute(database, "CREATE TABLE processes (machine INTEGER, process_id INTEGER, parent_id INTEGER, "
                        "session_id INTEGER, start INTEGER, end INTEGER, exit_status INTEGER, name TEXT, "
                        "command_line TEXT)");
  if (!made) return made;
  sqlite3_stmt *raw = nullptr;
  if (sqlite3_prepare_v2(database, "INSERT INTO processes VALUES (?,?,?,?,?,?,?,?,?)", -1, &raw, nullptr) !=
      SQLITE_OK)
    return sql_error(database);
  const std::unique_ptr<sqlite3_stmt, Close> insert(raw);
  // Null: since before the trace began, and after it ended.
  auto moment = [&](int place, std::int64_t time, bool known) {
    if (known)
      sqlite3_bind_int64(insert.get(), place, (clock.to_filetime(time) - pipeline::kUnixEpoch) * 100);
    else
      sqlite3_bind_null(insert.get(), place);
  };
  for (std::size_t machine = 0; machine < survey.lifetimes.size(); ++machine) {
    for (const filter::ProcessInstance &p : survey.lifetimes[machine].processes()) {
      sqlite3_bind_int64(insert.get(), 1, static_cast<sqlite3_int64>(machine));
      sqlite3_bind_int64(insert.get(), 2, p.pid);
      sqlite3_bind_int64(insert.get(), 3, p.parent);
      sqlite3_bind_int64(insert.get(), 4, p.session);
      moment(5, p.start, p.start != filter::kBeginning);
      moment(6, p.end, p.end != filter::kForever);
      sqlite3_bind_int64(insert.get(), 7, static_cast<std::int32_t>(p.exit_status));
      sqlite3_bind_text(insert.get(), 8, p.image_name.c_str(), -1, SQLITE_TRANSIENT);
      sqlite3_bind_text(insert.get(), 9, p.command_line.c_str(), -1, SQLITE_TRANSIENT);
      if (sqlite3_step(insert.get()) != SQLITE_DONE) return sql_error(database);
      sqlite3_reset(insert.get());
    }
  }
  return {};
}

} // namespace

TraceQuery::TraceQuery(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceQuery::TraceQuery(TraceQuery &&) noexcept = default;
TraceQuery &TraceQuery::operator=(TraceQuery &&) noexcept = default;
TraceQuery::~TraceQuery() = default;

Result<TraceQuery> TraceQuery::open(const Trace &trace, const ExportOptions &options, const RunOptions &run) {
  auto impl = std::make_unique<Impl>(trace, run);
  impl->run.progress = {}; // a scan is no phase with an end
  Result<pipeline::ExportSurvey> survey = pipeline::survey_for_export(trace, options.schemas, run);
  if (!survey) return std::move(survey).error();
  impl->survey = *std::move(survey);
  const SchemaCatalog &schemas = impl->survey.schemas;
  const Result<Seen> seen = kinds_seen(trace, schemas, run);
  if (!seen) return seen.error();
  impl->lines.emplace(schemas, trace.clock(), impl->survey.lifetimes, pipeline::JsonLines::Options{});
  impl->common.emplace(trace.clock(), impl->survey, *impl->lines);
  impl->kinds.push_back({"events", nullptr, {}});
  std::set<std::string> taken{"processes"};
  for (const Schema *schema : schemas.all()) {
    impl->narrow.emplace_back(*schema, 4);
    impl->wide.emplace_back(*schema, 8);
    if (schema->ordinal >= seen->ordinals.size() || !seen->ordinals[schema->ordinal]) continue;
    KindTable &kind = impl->kinds.emplace_back();
    kind.name = pipeline::table_name(schemas, schema, taken);
    kind.schema = schema;
    for (std::size_t i = 0; i < schema->fields.size(); i += 1u + schema->fields[i].members)
      kind.fields.push_back(i);
  }
  sqlite3 *raw = nullptr;
  const int opened = sqlite3_open(":memory:", &raw);
  impl->database.reset(raw);
  if (opened != SQLITE_OK) return sql_error(raw);
  if (sqlite3_create_module(raw, "trace", &kModule, impl.get()) != SQLITE_OK) return sql_error(raw);
  for (std::size_t i = 0; i < impl->kinds.size(); ++i)
    if (Result<void> made = execute(
            raw, fmt::format("CREATE VIRTUAL TABLE {} USING trace({})", quoted_name(impl->kinds[i].name), i));
        !made)
      return std::move(made).error();
  if (Result<void> made = add_processes(raw, impl->survey, trace.clock()); !made)
    return std::move(made).error();
  sqlite3_set_authorizer(raw, authorize, nullptr);
  return TraceQuery(std::move(impl));
}

Result<void> TraceQuery::run(const std::string &sql, const Visitor &visitor) {
  const char *rest = sql.c_str();
  sqlite3 *database = impl_->database.get();
  while (*rest != '\0') {
    sqlite3_stmt *raw = nullptr;
    if (sqlite3_prepare_v2(database, rest, -1, &raw, &rest) != SQLITE_OK) return sql_error(database);
    const std::unique_ptr<sqlite3_stmt, Close> statement(raw);
    if (!statement) continue; // white space or a comment
    const auto count = static_cast<std::size_t>(sqlite3_column_count(raw));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i)
      names.emplace_back(sqlite3_column_name(raw, static_cast<int>(i)));
    if (count != 0 && visitor.columns) visitor.columns(names);
    std::vector<std::optional<std::string>> values(count);
    for (;;) {
      const int step = sqlite3_step(raw);
      if (step == SQLITE_DONE) break;
      if (step != SQLITE_ROW) {
        if (!std::exchange(impl_->failed, false)) return sql_error(database);
        return impl_->failure;
      }
      for (std::size_t i = 0; i < count; ++i) {
        const auto *text = reinterpret_cast<const char *>(sqlite3_column_text(raw, static_cast<int>(i)));
        const int size = sqlite3_column_bytes(raw, static_cast<int>(i));
        values[i] = text ? std::optional<std::string>(std::string(text, static_cast<std::size_t>(size)))
                         : std::nullopt;
      }
      if (visitor.row) visitor.row(values);
    }
  }
  return {};
}

std::vector<std::string> TraceQuery::tables() const {
  std::vector<std::string> names{"processes"};
  for (const KindTable &kind : impl_->kinds)
    names.push_back(kind.name);
  std::ranges::sort(names);
  return names;
}

} // namespace etwrelog
