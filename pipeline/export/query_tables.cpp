// Kinds of events as virtual tables of SQLite: https://www.sqlite.org/vtab.html. A scan is a traversal in
// order of time; SQLite tells the conditions it has, and those on time and kind go into the Query of the
// traversal.
#include "export/query_tables.hpp"

#include "api/reading.hpp"
#include "base/cut_text.hpp"
#include "etwrelog/kernel_events.hpp"
#include "export/query_times.hpp"
#include "export/virtual_table.hpp"
#include "schema/event_names.hpp"
#include "schema/program.hpp"
#include "schema/value_text.hpp"
#include "where/condition.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sqlite3.h>

namespace etwrelog::pipeline {

using tables::ColumnType;
using tables::quoted_name;

namespace {

// Puts a value where SQLite asks for one.
struct ResultPut {
  sqlite3_context *context;
  void null() { sqlite3_result_null(context); }
  void number(std::int64_t value) { sqlite3_result_int64(context, value); }
  void text(std::string_view value) {
    sqlite3_result_text64(context, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  template <class Text> void repeated(std::uint64_t, Text &&value) { text(value()); }
};

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
  bool nothing = false;            // is wanted
  std::optional<DecodedSize> size; // of the event, once it was asked for
  bool is_joined = false;          // `joined` is what others say of the event
  Joins::Scratch joined;
  std::string text;
};

int connect(sqlite3 *database, void *context, int argc, const char *const *argv, sqlite3_vtab **made,
            char **why) {
  auto *impl = static_cast<TraceQuery::Impl *>(context);
  if (argc < 4) return SQLITE_ERROR;
  const KindTable &kind = impl->kinds[static_cast<std::size_t>(std::strtoul(argv[3], nullptr, 10))];
  std::vector<tables::Column> all = common_columns();
  if (kind.object)
    all.push_back({"fields", ColumnType::text});
  else
    for (const std::size_t field : kind.fields)
      all.push_back(
          {std::string(kind.schema->fields[field].name), impl->type_of(kind.schema->fields[field])});
  if (impl->joins)
    for (const Joins::Column &column : impl->joins->columns())
      all.push_back({column.name, column.type});
  all.insert(all.end(), last_columns().begin(), last_columns().end());
  const std::size_t shown = all.size();
  for (const std::size_t field : kind.renamed)
    all.push_back({std::string(schema::other_field_name(kind.schema->fields[field].name)),
                   impl->type_of(kind.schema->fields[field])});
  all.push_back({"machine", ColumnType::integer});
  tables::tell_apart(all);
  std::string columns;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!columns.empty()) columns += ", ";
    columns += quoted_name(all[i].name) + (all[i].type == ColumnType::text   ? " TEXT"
                                           : all[i].type == ColumnType::real ? " REAL"
                                                                             : " INTEGER");
    if (all[i].any_case) columns += " COLLATE NOCASE";
    if (i >= shown) columns += " HIDDEN"; // not part of *
  }
  const int declared = sqlite3_declare_vtab(database, fmt::format("CREATE TABLE x({})", columns).c_str());
  if (declared != SQLITE_OK) {
    *why = sqlite3_mprintf("%s: %s", kind.name.c_str(), sqlite3_errmsg(database));
    return declared;
  }
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

// Text in SQL, which is equal to no number and behind them all: numbers that are shown as "0x1f", and arrays
// of numbers.
bool is_text_of_numbers(const Table &table, int column) {
  const KindTable &kind = *table.kind;
  if (kind.object || kind.schema == nullptr || column < int{CommonColumns::kColumns}) return false;
  const auto behind = static_cast<std::size_t>(column) - CommonColumns::kColumns;
  if (behind >= kind.machine() || (behind >= kind.joined() && behind <= kind.truncated())) return false;
  const Field &field = kind.schema->fields[kind.field_of_column(behind)];
  if (table.impl->type_of(field) != ColumnType::text) return false;
  const bool plain = field.is_array() && field.type <= FieldType::i64 && field.format != Format::characters &&
                     field.format != Format::ip_address;
  return plain || field.is_hexadecimal();
}

// Which conditions a scan gets, a letter for each of its arguments: '<', '>', '=' on time, 'b', 'a', 'e' on
// the raw time stamp; 'c' processor, 'i' process id, 'p' provider, 'g' its id, 'v' event, all of them equal
// to something, or to one of several things where the letter is a capital; 'h' a text of numbers, compared
// with anything.
char letter_of(const Table &table, sqlite3_index_info *info, int i) {
  const auto &constraint = info->aConstraint[i];
  if (constraint.usable == 0) return 0;
  const bool equal = constraint.op == SQLITE_INDEX_CONSTRAINT_EQ;
  if (is_text_of_numbers(table, constraint.iColumn)) {
    const bool order =
        constraint.op == SQLITE_INDEX_CONSTRAINT_LT || constraint.op == SQLITE_INDEX_CONSTRAINT_LE ||
        constraint.op == SQLITE_INDEX_CONSTRAINT_GT || constraint.op == SQLITE_INDEX_CONSTRAINT_GE;
    return equal || order ? 'h' : 0;
  }
  switch (constraint.iColumn) {
  case CommonColumns::kTime:
  case CommonColumns::kTimestamp: {
    const bool raw = constraint.iColumn == CommonColumns::kTimestamp;
    if (constraint.op == SQLITE_INDEX_CONSTRAINT_GE || constraint.op == SQLITE_INDEX_CONSTRAINT_GT)
      return raw ? 'a' : '>';
    if (constraint.op == SQLITE_INDEX_CONSTRAINT_LE || constraint.op == SQLITE_INDEX_CONSTRAINT_LT)
      return raw ? 'b' : '<';
    if (equal) return raw ? 'e' : '=';
    return 0;
  }
  case CommonColumns::kCpu: return equal ? 'c' : 0;
  case CommonColumns::kProcessId: return equal ? 'i' : 0;
  case CommonColumns::kProviderId: return equal ? 'g' : 0;
  case CommonColumns::kProvider:
  case CommonColumns::kEvent: // letter by letter
    if (!equal || std::string_view(sqlite3_vtab_collation(info, i)) != "BINARY") return 0;
    return constraint.iColumn == CommonColumns::kProvider ? 'p' : 'v';
  default: return 0;
  }
}

int best_index(sqlite3_vtab *base, sqlite3_index_info *info) {
  const Table &table = *reinterpret_cast<const Table *>(base);
  std::string plan;
  double cost = 1e7;
  for (int i = 0; i < info->nConstraint; ++i) {
    const char letter = letter_of(table, info, i);
    if (letter == 0) continue;
    // All that stands behind an "in" at once, where SQLite would scan for each. Of times it may.
    const bool several = letter >= 'c' && letter != 'e' && sqlite3_vtab_in(info, i, 1) != 0;
    plan += several ? static_cast<char>(letter - 'a' + 'A') : letter;
    cost /= letter == 'h' ? 1 : letter == 'c' || letter == 'i' ? 2 : 10;
    info->aConstraintUsage[i].argvIndex =
        static_cast<int>(plan.size()); // SQLite checks the condition again itself
  }
  info->estimatedCost = cost;
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  const auto by_time = [](int column) {
    return column == CommonColumns::kTime || column == CommonColumns::kTimestamp;
  };
  if (info->nOrderBy == 1 && by_time(info->aOrderBy[0].iColumn) && info->aOrderBy[0].desc == 0)
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
  cursor->event = nullptr;
  cursor->size.reset();
  cursor->is_joined = false;
  if (cursor->nothing) return SQLITE_OK;
  while ((cursor->event = cursor->events->next()) != nullptr) {
    if (!impl.asked.contains(cursor->event->time())) continue;
    cursor->schema = impl.survey.schemas.find(*cursor->event);
    if (table->kind->schema == nullptr || cursor->schema == table->kind->schema) break;
  }
  if (cursor->event == nullptr && !cursor->events->status()) {
    impl.failure = cursor->events->status().error();
    impl.failed = true;
    return SQLITE_IOERR;
  }
  return SQLITE_OK;
}

// Kinds of events that a provider or event of that name has, and maybe others. False: no such kinds.
class WantedKinds {
public:
  WantedKinds(const TraceQuery::Impl &impl, const KindTable &table) : impl_(impl), table_(table) {}
  void restrict(char letter, std::vector<std::string> names) {
    if (letter == 'g')
      for (std::string &name : names)
        name = base::lower(name);
    (letter == 'p' ? provider_ : letter == 'g' ? provider_id_ : event_) = std::move(names);
    restricted_ = true;
  }
  bool make(EventSet &set) const {
    if (table_.schema != nullptr) {
      where::add_kind(set, *table_.schema);
      return fits(table_.schema, {});
    }
    if (!restricted_) return true;
    bool any = false;
    for (const Schema *schema : impl_.survey.schemas.all())
      if (fits(schema, {})) {
        where::add_kind(set, *schema);
        any = true;
      }
    // Events that nobody describes: by their provider alone.
    for (const Guid &provider : impl_.undescribed)
      if (fits(nullptr, provider)) {
        add_undescribed(set, provider);
        any = true;
      }
    return any;
  }

private:
  // Hooks of groups that no public source names have no provider.
  static void add_undescribed(EventSet &set, const Guid &provider) {
    set.add_provider(provider);
    for (unsigned hook = 0; provider == Guid{} && hook < 0x1'0000; ++hook)
      if (kernel::class_guid(static_cast<std::uint16_t>(hook)) == Guid{})
        set.add_kernel(static_cast<std::uint16_t>(hook));
  }
  [[nodiscard]] bool fits(const Schema *schema, const Guid &guid) const {
    if (!is_one_of(provider_id_, to_string(schema ? schema->provider : guid))) return false;
    if (schema == nullptr) return true; // its names depend on more than the provider
    std::string provider, name;
    names_of(impl_.survey.schemas, nullptr, schema, provider, name);
    return is_one_of(provider_, provider) && is_one_of(event_, name);
  }
  using Names = std::optional<std::vector<std::string>>; // none: any
  [[nodiscard]] static bool is_one_of(const Names &names, std::string_view name) {
    return !names || std::ranges::find(*names, name) != names->end();
  }

  const TraceQuery::Impl &impl_;
  const KindTable &table_;
  bool restricted_ = false;
  Names provider_, provider_id_, event_;
};

// SQL has every number before any text: all events would be before '2s'.
int refuse_text(sqlite3_vtab &table, bool raw, sqlite3_value *value) {
  sqlite3_free(table.zErrMsg);
  table.zErrMsg = sqlite3_mprintf(raw ? "timestamp is a number as the trace has it, and '%s' is none"
                                      : "time counts nanoseconds since 1970, and '%s' is no number: "
                                        "at('2.5s') and at('2026-01-31T12:00:00Z') are such times",
                                  sqlite3_value_text(value));
  return SQLITE_ERROR;
}

// Takes what a column is to be equal to, one value or all that stand behind an "in", as long as `take` can
// use it. False: the condition is for SQLite alone, which checks all of them anyway.
bool take_values(sqlite3_value *argument, bool several, const auto &take) {
  if (!several) return take(argument);
  sqlite3_value *value = nullptr;
  int code = sqlite3_vtab_in_first(argument, &value);
  for (; code == SQLITE_OK; code = sqlite3_vtab_in_next(argument, &value))
    if (sqlite3_value_type(value) != SQLITE_NULL && !take(value)) return false; // nothing equals null
  return code == SQLITE_DONE;
}

std::optional<std::vector<std::string>> names_in(sqlite3_value *argument, bool several) {
  std::vector<std::string> names;
  const bool all = take_values(argument, several, [&names](sqlite3_value *value) {
    if (sqlite3_value_type(value) != SQLITE_TEXT) return false;
    const auto *text = reinterpret_cast<const char *>(sqlite3_value_text(value));
    names.emplace_back(text, static_cast<std::size_t>(sqlite3_value_bytes(value)));
    return true;
  });
  if (!all) return std::nullopt;
  return names;
}

// Where all are whole numbers below the end.
template <class T>
std::optional<std::vector<T>> numbers_in(sqlite3_value *argument, bool several, std::int64_t end) {
  std::vector<T> numbers;
  const bool all = take_values(argument, several, [&numbers, end](sqlite3_value *value) {
    if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER) return false;
    const std::int64_t number = sqlite3_value_int64(value);
    if (number < 0 || number >= end) return false;
    numbers.push_back(static_cast<T>(number));
    return true;
  });
  if (!all) return std::nullopt;
  std::ranges::sort(numbers);
  return numbers;
}

// It would find nothing, or everything.
int refuse_number(sqlite3_vtab &table, sqlite3_value *value) {
  sqlite3_free(table.zErrMsg);
  table.zErrMsg = sqlite3_mprintf("what is shown in hexadecimal, as '0x1f', and lists, as '[1,2]', are text "
                                  "in SQL, and compared with %s: "
                                  "number(COLUMN) is the number, json_each(COLUMN) has those of a list",
                                  sqlite3_value_text(value));
  return SQLITE_ERROR;
}

// The first that is a number, or was one before it was to be compared with text; null if there is none.
sqlite3_value *number_among(sqlite3_value *argument, bool several) {
  sqlite3_value *found = nullptr;
  take_values(argument, several, [&found](sqlite3_value *value) {
    if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER &&
        sqlite3_value_numeric_type(value) != SQLITE_FLOAT)
      return true;
    found = value;
    return false;
  });
  return found;
}

int filter(sqlite3_vtab_cursor *base, int, const char *plan, int argc, sqlite3_value **argv) {
  auto *cursor = reinterpret_cast<Cursor *>(base);
  auto *table = reinterpret_cast<Table *>(base->pVtab);
  TraceQuery::Impl &impl = *table->impl;
  Query query;
  query.order = Order::time;
  Reading reading;
  WantedKinds kinds(impl, *table->kind);
  // A little more than asked for, as FILETIME is coarser than the clock; SQLite drops it.
  AskedTimes times;
  for (int i = 0; i < argc; ++i) {
    const bool several = plan[i] <= 'Z' && plan[i] >= 'A';
    const char op = several ? static_cast<char>(plan[i] - 'A' + 'a') : plan[i];
    if (op == 'p' || op == 'g' || op == 'v') {
      if (auto names = names_in(argv[i], several)) kinds.restrict(op, *std::move(names));
      continue;
    }
    if (op == 'h') {
      if (sqlite3_value *const number = number_among(argv[i], several))
        return refuse_number(*base->pVtab, number);
      continue;
    }
    if (op == 'c') {
      if (auto numbers = numbers_in<std::uint16_t>(argv[i], several, 0x1'0000))
        reading.processors = std::move(numbers);
      continue;
    }
    if (op == 'i') {
      if (auto numbers = numbers_in<std::uint32_t>(argv[i], several, kUnknownId))
        reading.processes = std::move(numbers);
      continue;
    }
    const bool raw = op == 'a' || op == 'b' || op == 'e';
    const int type = sqlite3_value_numeric_type(argv[i]);
    if (type == SQLITE_TEXT) return refuse_text(*base->pVtab, raw, argv[i]);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) continue; // no number: SQLite knows what that means
    const std::int64_t value = sqlite3_value_int64(argv[i]);
    const auto filetime = filetime_asked(impl.trace.clock(), raw, value);
    if (!filetime) continue;
    if (op == '>' || op == 'a' || op == '=' || op == 'e') times.not_before(*filetime);
    if (op == '<' || op == 'b' || op == '=' || op == 'e') times.not_after(*filetime);
  }
  cursor->nothing = !narrow(query, times, impl.asked, impl.trace.clock()) || !kinds.make(query.kinds);
  if (!cursor->nothing) cursor->events.emplace(read_events(impl.trace, query, reading, impl.run));
  return next(base);
}

int at_end(sqlite3_vtab_cursor *base) {
  return reinterpret_cast<Cursor *>(base)->event == nullptr ? 1 : 0;
}

// Of others "null" is no text: no SID, or an array or structure of more than any real event has.
bool is_shown_as_text(const Field &field) {
  if (field.format == Format::characters) return true;
  return !is_sid(field.type) && !field.is_array() && field.type != FieldType::structure;
}

void put_unsigned(std::uint64_t number, ResultPut put) {
  if (number > static_cast<std::uint64_t>(INT64_MAX))
    put.text(fmt::format("{}", number)); // SQLite has no such integer
  else
    put.number(static_cast<std::int64_t>(number));
}

void put_field(const FieldValue &value, const TraceQuery::Impl &impl, Cursor &cursor, ResultPut put) {
  const ColumnType type = impl.type_of(*value.field);
  switch (type) {
  case ColumnType::real:
    if (const auto real = value.real())
      sqlite3_result_double(put.context, *real);
    else
      put.null();
    return;
  case ColumnType::text:
    cursor.text.clear();
    value.append_text(cursor.text, impl.json());
    if (cursor.text == "null" && !is_shown_as_text(*value.field)) return put.null();
    put.text(cursor.text);
    return;
  default:
    if (const auto integer = value.integer(); !integer)
      put.null();
    else if (type == ColumnType::unsigned_integer)
      put_unsigned(value.field->is_signed() ? schema::load_unsigned(value.data) : *integer, put);
    else
      put.number(static_cast<std::int64_t>(*integer));
  }
}

// Whether the text of an event, or of one of its fields where each has a column, is given up.
bool is_overfull(const KindTable &kind, const Decoder &decoder, Bytes payload, const JsonOptions &options,
                 std::string &text) {
  if (kind.object) return text.clear(), decoder.append_json(payload, text, options).given_up;
  return std::ranges::any_of(kind.fields, [&](std::size_t index) {
    const Field &field = kind.schema->fields[index];
    if (field.type != FieldType::structure && !field.is_array()) return false;
    const std::optional<FieldValue> value = decoder.field(payload, index);
    if (!value) return false;
    text.clear();
    value->append_text(text, options);
    return text == "null" && !is_shown_as_text(field);
  });
}

// What fields cover, as an export has it. Asked once of an event.
const DecodedSize &size_of(Cursor &cursor, const KindTable &kind, TraceQuery::Impl &impl) {
  if (cursor.size) return *cursor.size;
  DecodedSize &size = cursor.size.emplace();
  if (cursor.schema == nullptr) return size;
  const Decoder &decoder = impl.decoders->of(*cursor.event, *cursor.schema);
  const Bytes payload = cursor.event->payload();
  size = decoder.decode(payload, {});
  if (!size.given_up && impl.wordy[cursor.schema->ordinal])
    size.given_up = is_overfull(kind, decoder, payload, impl.json(), cursor.text);
  if (size.given_up) size.covered = 0, size.truncated = false;
  return size;
}

// The bytes that no field shows.
void put_raw(Cursor &cursor, const KindTable &kind, TraceQuery::Impl &impl, ResultPut put) {
  const Bytes payload = cursor.event->payload();
  const std::size_t covered = size_of(cursor, kind, impl).covered;
  if (cursor.schema != nullptr && covered == payload.size()) return put.null();
  cursor.text.clear();
  schema::append_hex_bytes(cursor.text, payload.subspan(covered));
  put.text(cursor.text);
}

// What other events say of it, the number-th column of that.
void put_joined(Cursor &cursor, const Joins &joins, std::size_t number, ResultPut put) {
  if (!std::exchange(cursor.is_joined, true)) joins.look_up(*cursor.event, cursor.schema, cursor.joined);
  if (!cursor.joined.present[number]) return put.null();
  if (const auto value = cursor.joined.numbers[number]) return put.number(*value);
  put.text(cursor.joined.texts[number]);
}

int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int index) {
  auto *cursor = reinterpret_cast<Cursor *>(base);
  auto *table = reinterpret_cast<Table *>(base->pVtab);
  TraceQuery::Impl &impl = *table->impl;
  ResultPut put{context};
  const auto number = static_cast<std::size_t>(index);
  if (number < CommonColumns::kColumns) {
    impl.common->put_one(*cursor->event, cursor->schema, number, put);
    return SQLITE_OK;
  }
  const std::size_t behind = number - CommonColumns::kColumns;
  if (behind == table->kind->machine()) {
    put.number(cursor->event->machine());
    return SQLITE_OK;
  }
  if (behind >= table->kind->joined() && behind < table->kind->raw()) {
    put_joined(*cursor, *impl.joins, behind - table->kind->joined(), put);
    return SQLITE_OK;
  }
  if (behind == table->kind->raw()) {
    put_raw(*cursor, *table->kind, impl, put);
    return SQLITE_OK;
  }
  if (behind == table->kind->truncated()) {
    size_of(*cursor, *table->kind, impl).truncated ? put.number(1) : put.null();
    return SQLITE_OK;
  }
  if (cursor->schema == nullptr) {
    put.null();
    return SQLITE_OK;
  }
  const Decoder &decoder = impl.decoders->of(*cursor->event, *cursor->schema);
  if (table->kind->object) {
    cursor->text.clear();
    const DecodedSize size = decoder.append_json(cursor->event->payload(), cursor->text, impl.json());
    size.given_up ? put.null() : put.text(cursor->text);
    return SQLITE_OK;
  }
  // Nobody could read all of it: its bytes say the same.
  const bool wordy = impl.wordy[cursor->schema->ordinal];
  if (wordy && size_of(*cursor, *table->kind, impl).given_up) return put.null(), SQLITE_OK;
  const auto value = decoder.field(cursor->event->payload(), table->kind->field_of_column(behind));
  if (value)
    put_field(*value, impl, *cursor, put);
  else
    put.null();
  return SQLITE_OK;
}

// The event's own number, the same in every scan: for an "or" SQLite scans once for each side, and takes rows
// of one number for the same.
int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *row) {
  static_assert(format::kMaxBufferSize == 1u << 26, "offsets have 26 bits");
  const auto *cursor = reinterpret_cast<Cursor *>(base);
  const Position &at = cursor->event->position();
  const TraceQuery::Impl &impl = *reinterpret_cast<Table *>(base->pVtab)->impl;
  *row = static_cast<sqlite3_int64>((impl.first_buffers[at.source] + at.buffer) << 26 | at.offset);
  return SQLITE_OK;
}

sqlite3_module make_module() {
  sqlite3_module module = module_of<connect, best_index>(disconnect);
  module.xOpen = safe<open_cursor>;
  module.xClose = close_cursor;
  module.xFilter = safe<filter>;
  module.xNext = safe<next>;
  module.xEof = at_end;
  module.xColumn = safe<column>;
  module.xRowid = row_id;
  return module;
}

} // namespace

// Names stand in the text for each element of an array of structures, and once for all others. Without these
// each byte makes a few characters.
bool is_wordy(const Schema &schema) {
  constexpr std::size_t kShort = 8192; // half of what any event may have
  std::size_t names = 0;
  for (const Field &field : schema.fields) {
    if (field.type == FieldType::structure) return true;
    names += field.name.size();
  }
  return names > kShort;
}

const sqlite3_module &event_tables() {
  static const sqlite3_module module = make_module();
  return module;
}

} // namespace etwrelog::pipeline
