// SQLite plans the statements against stand-ins: tables that are made when a statement names them, have the
// columns that it names, and note the conditions that they get. Nothing is run.
#include "export/query_times.hpp"

#include "export/event_columns.hpp"
#include "export/query_state.hpp"
#include "export/virtual_table.hpp"
#include "tables/sqlite_base.hpp"
#include "where/condition.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <sqlite3.h>

namespace etwrelog::pipeline {
namespace {

struct Plan {
  const Clock &clock;
  std::set<std::string> tables, columns; // that the statements name; columns beside those of all events
  AskedTimes times;
};

struct PlannedTable {
  sqlite3_vtab base{};
  Plan *plan = nullptr;
};

int connect_plan(sqlite3 *database, void *context, int, const char *const *, sqlite3_vtab **made, char **) {
  auto *plan = static_cast<Plan *>(context);
  std::string columns;
  for (const tables::Column &column : common_columns())
    columns += fmt::format("{}{}{}", columns.empty() ? "" : ", ", tables::quoted_name(column.name),
                           column.type == tables::ColumnType::text ? " TEXT" : " INTEGER");
  for (const std::string &name : plan->columns)
    columns += ", " + tables::quoted_name(name);
  const int declared = sqlite3_declare_vtab(database, fmt::format("CREATE TABLE x({})", columns).c_str());
  if (declared != SQLITE_OK) return declared;
  auto *table = new PlannedTable;
  table->plan = plan;
  *made = &table->base;
  return SQLITE_OK;
}

int disconnect_plan(sqlite3_vtab *table) {
  delete reinterpret_cast<PlannedTable *>(table);
  return SQLITE_OK;
}

// Called for what all rows of a table must fulfil, and for branches of it: the widest is what counts.
int plan_index(sqlite3_vtab *table, sqlite3_index_info *info) {
  Plan &plan = *reinterpret_cast<PlannedTable *>(table)->plan;
  AskedTimes times;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto &constraint = info->aConstraint[i];
    if (constraint.usable == 0 || constraint.iColumn < 0 || constraint.iColumn > 1) continue;
    const bool equal = constraint.op == SQLITE_INDEX_CONSTRAINT_EQ;
    const bool from =
        equal || constraint.op == SQLITE_INDEX_CONSTRAINT_GE || constraint.op == SQLITE_INDEX_CONSTRAINT_GT;
    const bool to =
        equal || constraint.op == SQLITE_INDEX_CONSTRAINT_LE || constraint.op == SQLITE_INDEX_CONSTRAINT_LT;
    sqlite3_value *value = nullptr;
    if ((!from && !to) || sqlite3_vtab_rhs_value(info, i, &value) != SQLITE_OK || value == nullptr) continue;
    if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER) continue;
    const std::optional<std::int64_t> filetime =
        filetime_asked(plan.clock, constraint.iColumn == 1, sqlite3_value_int64(value));
    if (!filetime) continue;
    if (from) times.not_before(*filetime);
    if (to) times.not_after(*filetime);
  }
  plan.times.from = std::min(plan.times.from, times.from);
  plan.times.to = std::max(plan.times.to, times.to);
  info->estimatedCost = 1e6;
  return SQLITE_OK;
}

sqlite3_module make_planning_module() {
  sqlite3_module module = module_of<connect_plan, plan_index>(disconnect_plan);
  // Nothing is ever opened, but a module must say how.
  module.xOpen = [](sqlite3_vtab *, sqlite3_vtab_cursor **) { return SQLITE_ERROR; };
  module.xClose = [](sqlite3_vtab_cursor *) { return SQLITE_OK; };
  module.xFilter = [](sqlite3_vtab_cursor *, int, const char *, int, sqlite3_value **) {
    return SQLITE_ERROR;
  };
  module.xNext = [](sqlite3_vtab_cursor *) { return SQLITE_ERROR; };
  module.xEof = [](sqlite3_vtab_cursor *) { return 1; };
  module.xColumn = [](sqlite3_vtab_cursor *, sqlite3_context *, int) { return SQLITE_ERROR; };
  module.xRowid = [](sqlite3_vtab_cursor *, sqlite3_int64 *) { return SQLITE_ERROR; };
  return module;
}

const sqlite3_module kPlanningModule = make_planning_module();

enum class Outcome : std::uint8_t { planned, again, unclear };

// Takes up a name that the statement needs.
Outcome learn_name(sqlite3 *database, Plan &plan) {
  const std::string_view message = sqlite3_errmsg(database);
  for (const auto &[start, names] : {std::pair(std::string_view("no such table: "), &plan.tables),
                                     std::pair(std::string_view("no such column: "), &plan.columns)})
    if (message.starts_with(start)) {
      std::string_view name = message.substr(start.size());
      if (names == &plan.columns) name = name.substr(name.rfind('.') + 1); // of one table: table.column
      return names->emplace(name).second ? Outcome::again : Outcome::unclear;
    }
  return Outcome::unclear;
}

Outcome make_plan(const std::string &sql, Plan &plan) {
  plan.times = {INT64_MAX, INT64_MIN};
  const ExportSurvey nothing;
  const Knowledge unknown;
  const QueryState empty{nothing, unknown, plan.clock}; // outlives the database
  sqlite3 *raw = nullptr;
  const int opened = sqlite3_open(":memory:", &raw);
  const tables::SqliteDatabase database(raw);
  if (opened != SQLITE_OK || sqlite3_create_module(raw, "plan", &kPlanningModule, &plan) != SQLITE_OK)
    return Outcome::unclear;
  if (!add_state(raw, empty)) return Outcome::unclear;
  for (const std::string &table : plan.tables)
    if (!execute(raw, fmt::format("CREATE VIRTUAL TABLE {} USING plan", tables::quoted_name(table))))
      return Outcome::unclear;
  for (const char *rest = sql.c_str(); *rest != '\0';) {
    sqlite3_stmt *prepared = nullptr;
    if (sqlite3_prepare_v2(raw, rest, -1, &prepared, &rest) != SQLITE_OK) return learn_name(raw, plan);
    const tables::SqliteStatement statement(prepared);
    // What makes views or tables may give its own meaning to `time`.
    if (statement && sqlite3_stmt_readonly(prepared) == 0) return Outcome::unclear;
  }
  return Outcome::planned;
}

} // namespace

std::optional<std::int64_t> filetime_asked(const Clock &clock, bool raw, std::int64_t value) {
  if (!raw && (value < 0 || value == INT64_MAX)) return std::nullopt;
  const std::int64_t filetime = raw ? clock.to_filetime(value) : value / 100 + kUnixEpoch;
  if (filetime == INT64_MIN || filetime == INT64_MAX) return std::nullopt;
  // As AskedTimes asks for it.
  for (const std::int64_t bound : {filetime - 1, filetime + 1})
    if (!where::is_sound_bound(clock, bound)) return std::nullopt;
  return filetime;
}

std::optional<AskedTimes> times_of(const std::string &sql, const Clock &clock) {
  constexpr int kMostNames = 256;
  Plan plan{clock, {}, {}, {}};
  for (int i = 0; i < kMostNames; ++i) {
    const Outcome outcome = make_plan(sql, plan);
    if (outcome == Outcome::again) continue;
    const bool all = plan.times.from == INT64_MIN && plan.times.to == INT64_MAX;
    const bool none = plan.times.from > plan.times.to; // no table, or conditions that exclude each other
    if (outcome == Outcome::unclear || all || none) return std::nullopt;
    return plan.times;
  }
  return std::nullopt;
}

} // namespace etwrelog::pipeline
