#include "export/query_state.hpp"

#include "base/errors.hpp"
#include "export/event_columns.hpp"
#include "schema/value_text.hpp"
#include "tables/sqlite_base.hpp"

#include <charconv>

#include <fmt/format.h>
#include <re2/re2.h>

namespace etwrelog::pipeline {
namespace {

// Rows for one table, bound from left to right.
class Insert {
public:
  Insert(sqlite3 *database, const std::string &table, int columns) : database_(database) {
    std::string places = "?";
    for (int i = 1; i < columns; ++i)
      places += ",?";
    sqlite3_stmt *raw = nullptr;
    const std::string sql = fmt::format("INSERT INTO {} VALUES ({})", table, places);
    good_ = sqlite3_prepare_v2(database, sql.c_str(), -1, &raw, nullptr) == SQLITE_OK;
    statement_.reset(raw);
  }
  Insert &number(std::int64_t value) { return sqlite3_bind_int64(statement_.get(), ++place_, value), *this; }
  Insert &text(const std::string &value) {
    sqlite3_bind_text(statement_.get(), ++place_, value.data(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }
  // SQLite has no integers of 2^63 and more: they are texts of their digits.
  Insert &unsigned_number(std::uint64_t value) {
    return value <= static_cast<std::uint64_t>(INT64_MAX) ? number(static_cast<std::int64_t>(value))
                                                          : text(fmt::format("{}", value));
  }
  Insert &null() { return sqlite3_bind_null(statement_.get(), ++place_), *this; }
  Result<void> row() {
    place_ = 0;
    if (!good_ || sqlite3_step(statement_.get()) != SQLITE_DONE) return sql_error(database_);
    sqlite3_reset(statement_.get());
    return {};
  }

private:
  sqlite3 *database_;
  tables::SqliteStatement statement_;
  int place_ = 0;
  bool good_ = false;
};

// Null: since before the trace began, and after it ended.
void add_moment(Insert &insert, const Clock &clock, std::int64_t time, bool known) {
  if (known)
    insert.number(unix_nanoseconds(clock.to_filetime(time)));
  else
    insert.null();
}

Result<void> add_processes(sqlite3 *database, const QueryState &state) {
  Result<void> made =
      execute(database, "CREATE TABLE processes (machine INTEGER, process_id INTEGER, parent_id INTEGER, "
                        "session_id INTEGER, start INTEGER, end INTEGER, exit_status INTEGER, name TEXT, "
                        "command_line TEXT)");
  if (!made) return made;
  Insert insert(database, "processes", 9);
  for (std::size_t machine = 0; machine < state.survey.lifetimes.size(); ++machine)
    for (const ProcessInstance &p : state.survey.lifetimes[machine].processes()) {
      insert.number(static_cast<std::int64_t>(machine)).number(p.pid).number(p.parent).number(p.session);
      add_moment(insert, state.clock, p.start, p.start != kBeginning);
      add_moment(insert, state.clock, p.end, p.end != kForever);
      insert.number(p.exit_status).text(p.image_name).text(p.command_line);
      if (Result<void> put = insert.row(); !put) return put;
    }
  return {};
}

Result<void> add_threads(sqlite3 *database, const QueryState &state) {
  Result<void> made =
      execute(database, "CREATE TABLE threads (machine INTEGER, thread_id INTEGER, process_id INTEGER, "
                        "start INTEGER, end INTEGER, name TEXT)");
  if (!made) return made;
  Insert insert(database, "threads", 6);
  for (std::uint32_t machine = 0; machine < state.survey.lifetimes.size(); ++machine)
    for (const Knowledge::ThreadSpan &span : state.known.threads(machine)) {
      insert.number(machine).number(span.thread).number(span.process);
      add_moment(insert, state.clock, span.start, span.start != kBeginning);
      add_moment(insert, state.clock, span.end, span.end != kForever);
      if (span.name.empty())
        insert.null();
      else
        insert.text(span.name);
      if (Result<void> put = insert.row(); !put) return put;
    }
  return {};
}

Result<void> add_images(sqlite3 *database, const QueryState &state) {
  Result<void> made =
      execute(database, fmt::format("CREATE TABLE images (machine INTEGER, process_id INTEGER, base{}, "
                                    "size INTEGER, start INTEGER, end INTEGER, path TEXT)",
                                    state.numbers ? "" : " TEXT"));
  if (!made) return made;
  Insert insert(database, "images", 7);
  for (std::uint32_t machine = 0; machine < state.survey.lifetimes.size(); ++machine) {
    const profile::Images &images = state.known.images(machine);
    for (std::uint32_t i = 0; i < images.size(); ++i) {
      const profile::Images::Image &image = images[i];
      insert.number(machine).number(image.pid);
      if (state.numbers)
        insert.unsigned_number(image.base);
      else
        insert.text(fmt::format("0x{:x}", image.base));
      insert.number(static_cast<std::int64_t>(image.size));
      add_moment(insert, state.clock, image.from, image.from > INT64_MIN / 2);
      add_moment(insert, state.clock, image.to, image.to < INT64_MAX / 2);
      if (Result<void> put = insert.text(image.path).row(); !put) return put;
    }
  }
  return {};
}

const QueryState &state_of(sqlite3_context *context) {
  return *static_cast<const QueryState *>(sqlite3_user_data(context));
}

std::string_view text_of(sqlite3_value *value) {
  const auto *text = reinterpret_cast<const char *>(sqlite3_value_text(value));
  return text ? std::string_view(text, static_cast<std::size_t>(sqlite3_value_bytes(value)))
              : std::string_view();
}

void put_text(sqlite3_context *context, std::string_view text) {
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// A number that fits an id, or nothing.
std::optional<std::uint32_t> id_of(sqlite3_value *value) {
  if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER) return std::nullopt;
  const std::int64_t number = sqlite3_value_int64(value);
  if (number < 0 || number >= kUnknownId) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

// The last argument of functions that may be told one; the first machine if they are not.
std::optional<std::uint32_t> machine_of(const QueryState &state, int argc, sqlite3_value **argv, int others) {
  const std::optional<std::uint32_t> machine = argc > others ? id_of(argv[others]) : 0;
  return machine && *machine < state.survey.lifetimes.size() ? machine : std::nullopt;
}

void process_of_thread(sqlite3_context *context, int argc, sqlite3_value **argv) {
  const QueryState &state = state_of(context);
  const auto thread = id_of(argv[0]), machine = machine_of(state, argc, argv, 2);
  if (!thread || !machine) return;
  if (const auto pid = state.survey.lifetimes[*machine].pid_of_thread(*thread, sqlite3_value_int64(argv[1])))
    sqlite3_result_int64(context, *pid);
}

void process_name(sqlite3_context *context, int argc, sqlite3_value **argv) {
  const QueryState &state = state_of(context);
  const auto pid = id_of(argv[0]), machine = machine_of(state, argc, argv, 2);
  if (!pid || !machine) return;
  const ProcessInstance *process = state.known.process(*machine, *pid, sqlite3_value_int64(argv[1]));
  if (process != nullptr && !process->image_name.empty()) put_text(context, process->image_name);
}

std::optional<std::uint64_t> address_of(sqlite3_value *value) {
  if (sqlite3_value_type(value) == SQLITE_INTEGER)
    return static_cast<std::uint64_t>(sqlite3_value_int64(value));
  std::string_view text = text_of(value);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t address = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), address, hex ? 16 : 10);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return address;
}

void module(sqlite3_context *context, int argc, sqlite3_value **argv) {
  const QueryState &state = state_of(context);
  const auto address = address_of(argv[2]);
  const auto machine = machine_of(state, argc, argv, 3);
  if (!address || !machine) return;
  std::string name;
  if (state.known.append_module(*machine, id_of(argv[0]).value_or(kUnknownId), sqlite3_value_int64(argv[1]),
                                *address, name))
    put_text(context, name);
}

void utc(sqlite3_context *context, int, sqlite3_value **argv) {
  if (sqlite3_value_numeric_type(argv[0]) != SQLITE_INTEGER) return;
  std::string text;
  const std::int64_t time = sqlite3_value_int64(argv[0]);
  const std::int64_t ticks = time / 100 - (time % 100 < 0 ? 1 : 0);
  if (schema::append_filetime(text, ticks + kUnixEpoch)) put_text(context, text);
}

void fail(sqlite3_context *context, const std::string &what) {
  sqlite3_result_error(context, what.c_str(), static_cast<int>(what.size()));
}

void at(sqlite3_context *context, int, sqlite3_value **argv) {
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL) return;
  const std::string_view text = text_of(argv[0]);
  const std::optional<Moment> moment = parse_moment(text);
  if (!moment)
    return fail(context,
                fmt::format("'{}' is neither a date and time nor seconds since the trace began", text));
  sqlite3_result_int64(context, unix_nanoseconds(moment->of(state_of(context).clock)));
}

// What is shown in hexadecimal is text, of which SQLite makes 0.
std::optional<std::uint64_t> number_in_hex(sqlite3_value *value) {
  if (sqlite3_value_type(value) != SQLITE_TEXT || !text_of(value).starts_with("0x")) return std::nullopt;
  return address_of(value);
}

bool is_whole(std::uint64_t number) {
  return number <= static_cast<std::uint64_t>(INT64_MAX); // SQLite has no larger ones
}

void number(sqlite3_context *context, int, sqlite3_value **argv) {
  if (const auto hex = number_in_hex(argv[0])) {
    if (is_whole(*hex))
      sqlite3_result_int64(context, static_cast<std::int64_t>(*hex));
    else
      sqlite3_result_double(context, static_cast<double>(*hex));
    return;
  }
  switch (sqlite3_value_numeric_type(argv[0])) {
  case SQLITE_INTEGER: return sqlite3_result_int64(context, sqlite3_value_int64(argv[0]));
  case SQLITE_FLOAT: return sqlite3_result_double(context, sqlite3_value_double(argv[0]));
  case SQLITE_NULL: return;
  default: fail(context, fmt::format("'{}' is no number", text_of(argv[0])));
  }
}

// sum(), avg() and total() as SQLite has them, but for numbers in hexadecimal.
struct Sum {
  std::int64_t whole, count;
  double real;
  bool overflow, is_real;
};

void add_to_sum(sqlite3_context *context, sqlite3_value *value, bool remove) {
  if (sqlite3_value_type(value) == SQLITE_NULL) return;
  auto *sum = static_cast<Sum *>(sqlite3_aggregate_context(context, sizeof(Sum)));
  if (sum == nullptr) return sqlite3_result_error_nomem(context);
  sum->count += remove ? -1 : 1;
  const std::optional<std::uint64_t> hex = number_in_hex(value);
  if (hex ? is_whole(*hex) : sqlite3_value_numeric_type(value) == SQLITE_INTEGER) {
    const std::int64_t one = hex ? static_cast<std::int64_t>(*hex) : sqlite3_value_int64(value);
    sum->real += static_cast<double>(one) * (remove ? -1 : 1);
    const bool over = remove ? __builtin_sub_overflow(sum->whole, one, &sum->whole)
                             : __builtin_add_overflow(sum->whole, one, &sum->whole);
    sum->overflow = sum->overflow || over;
    return;
  }
  const double one = hex ? static_cast<double>(*hex) : sqlite3_value_double(value);
  sum->real += remove ? -one : one;
  sum->is_real = true;
}

void step(sqlite3_context *context, int, sqlite3_value **argv) {
  add_to_sum(context, argv[0], false);
}
void inverse(sqlite3_context *context, int, sqlite3_value **argv) {
  add_to_sum(context, argv[0], true);
}
const Sum *sum_of(sqlite3_context *context) {
  const auto *sum = static_cast<const Sum *>(sqlite3_aggregate_context(context, 0));
  return sum != nullptr && sum->count > 0 ? sum : nullptr;
}
void tell_sum(sqlite3_context *context) {
  const Sum *const sum = sum_of(context);
  if (sum == nullptr) return;
  if (sum->is_real)
    sqlite3_result_double(context, sum->real);
  else if (sum->overflow)
    sqlite3_result_error(context, "integer overflow", -1);
  else
    sqlite3_result_int64(context, sum->whole);
}
void tell_average(sqlite3_context *context) {
  if (const Sum *const sum = sum_of(context))
    sqlite3_result_double(context, sum->real / static_cast<double>(sum->count));
}
void tell_total(sqlite3_context *context) {
  const Sum *const sum = sum_of(context);
  sqlite3_result_double(context, sum == nullptr ? 0 : sum->real);
}

void regexp(sqlite3_context *context, int, sqlite3_value **argv) {
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL || sqlite3_value_type(argv[1]) == SQLITE_NULL) return;
  auto *pattern = static_cast<re2::RE2 *>(sqlite3_get_auxdata(context, 0));
  if (pattern == nullptr) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_dot_nl(true);
    const std::string_view text = text_of(argv[0]);
    auto made = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
    if (!made->ok()) return fail(context, "no regular expression (RE2): " + made->error());
    const std::string_view tested = text_of(argv[1]);
    sqlite3_result_int(context,
                       re2::RE2::PartialMatch(re2::StringPiece(tested.data(), tested.size()), *made) ? 1 : 0);
    sqlite3_set_auxdata(context, 0, made.release(), [](void *old) { delete static_cast<re2::RE2 *>(old); });
    return;
  }
  const std::string_view tested = text_of(argv[1]);
  sqlite3_result_int(
      context, re2::RE2::PartialMatch(re2::StringPiece(tested.data(), tested.size()), *pattern) ? 1 : 0);
}

} // namespace

Error sql_error(sqlite3 *database) {
  return base::ErrorBuilder(ErrorKind::usage,
                            fmt::format("SQL: {}", database ? sqlite3_errmsg(database) : "out of memory"));
}

Result<void> execute(sqlite3 *database, const std::string &sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return sql_error(database);
  return {};
}

Result<void> add_state(sqlite3 *database, const QueryState &state) {
  struct Function {
    const char *name;
    int arguments;
    void (*call)(sqlite3_context *, int, sqlite3_value **);
  };
  constexpr Function kFunctions[] = {{"process_of_thread", 2, process_of_thread},
                                     {"process_of_thread", 3, process_of_thread},
                                     {"process_name", 2, process_name},
                                     {"process_name", 3, process_name},
                                     {"module", 3, module},
                                     {"module", 4, module},
                                     {"utc", 1, utc},
                                     {"at", 1, at},
                                     {"number", 1, number},
                                     {"regexp", 2, regexp}};
  for (const Function &f : kFunctions)
    if (sqlite3_create_function(database, f.name, f.arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                const_cast<QueryState *>(&state), f.call, nullptr, nullptr) != SQLITE_OK)
      return sql_error(database);
  struct Aggregate {
    const char *name;
    void (*tell)(sqlite3_context *);
  };
  constexpr Aggregate kAggregates[] = {{"sum", tell_sum}, {"avg", tell_average}, {"total", tell_total}};
  for (const Aggregate &a : kAggregates)
    if (sqlite3_create_window_function(database, a.name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, step,
                                       a.tell, a.tell, inverse, nullptr) != SQLITE_OK)
      return sql_error(database);
  if (Result<void> made = add_processes(database, state); !made) return made;
  if (Result<void> made = add_threads(database, state); !made) return made;
  return add_images(database, state);
}

Result<void> add_samples(sqlite3 *database, std::span<const std::string> tables) {
  if (tables.empty())
    return execute(
        database,
        "CREATE TABLE samples (time INTEGER, timestamp INTEGER, cpu INTEGER, process_id INTEGER, "
        "thread_id INTEGER, process TEXT, address TEXT, module TEXT, count INTEGER, machine INTEGER)");
  std::string select;
  for (const std::string &table : tables) {
    if (!select.empty()) select += " UNION ALL ";
    const std::string process = "process_of_thread(ThreadId, timestamp, machine)";
    select += fmt::format("SELECT time, timestamp, cpu, {0} AS process_id, ThreadId AS thread_id, "
                          "process_name({0}, timestamp, machine) AS process, InstructionPointer AS address, "
                          "module({0}, timestamp, InstructionPointer, machine) AS module, Count AS count, "
                          "machine FROM {1}",
                          process, tables::quoted_name(table));
  }
  return execute(database, "CREATE VIEW samples AS " + select);
}

} // namespace etwrelog::pipeline
