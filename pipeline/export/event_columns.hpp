// What tables call events and their fields, and the columns that every event has: for tables that are written
// and for those that are asked.
#pragma once

#include "etwrelog/trace.hpp"
#include "export/json_lines.hpp"
#include "export/survey.hpp"
#include "tables/names.hpp"
#include "tables/table.hpp"

#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace etwrelog::pipeline {

[[nodiscard]] const std::vector<tables::Column> &common_columns();
// What fields do not say, behind all others: the bytes that they leave as hex, and whether the event ends
// inside a field, which is true or null.
[[nodiscard]] const std::vector<tables::Column> &last_columns();

// Numbers where a column of numbers holds every value, else the text that JSON lines have. `numbers`: also
// where that text is hexadecimal, of signed fields, too: the same bits.
[[nodiscard]] tables::ColumnType column_type(const Field &field, bool numbers = false);
// Of these a value may be none, which is null.
[[nodiscard]] constexpr bool is_sid(FieldType type) {
  return type == FieldType::sid || type == FieldType::token_sid;
}

// Calls visit(index in Schema::fields) for those that are no members of others: the columns of a table.
template <class Visit> void for_each_top_field(const Schema &schema, Visit &&visit) {
  for (std::size_t i = 0; i < schema.fields.size(); i += 1u + schema.fields[i].members)
    visit(i);
}

// SQLite takes 2,000 columns of a table; some are common, joined and hidden ones. Kinds of events with more
// fields than this have one column with an object there.
constexpr std::size_t kMostFieldColumns = 1'900;
[[nodiscard]] inline bool too_many_columns(const Schema &schema) {
  std::size_t fields = 0;
  for_each_top_field(schema, [&fields](std::size_t) { ++fields; });
  return fields > kMostFieldColumns;
}

// "DiskIo_Read"; of other than kernel events with the provider in front, and "_" before what would begin with
// "sqlite_". Versions of a kind share it.
[[nodiscard]] std::string table_base(const SchemaCatalog &catalog, const Schema *schema);
// The same by what statistics call the kind; nullopt where that is no other name.
[[nodiscard]] std::optional<std::string> other_table_base(const SchemaCatalog &catalog, const Schema &schema);

// The same, or with a version or number behind it where another table has it.
class TableNames {
public:
  // `others` that no kind of event gets.
  explicit TableNames(std::initializer_list<std::string_view> others = {kEvents});
  [[nodiscard]] std::string give(const SchemaCatalog &catalog, const Schema *schema);
  // By what statistics call the kind; nullopt where that is no other name. When all have their own.
  [[nodiscard]] std::optional<std::string> give_other(const SchemaCatalog &catalog, const Schema &schema);

  static constexpr std::string_view kEvents = "events"; // the view of all, or the one table

private:
  [[nodiscard]] std::string give(const std::string &name, const Schema *schema);

  tables::DistinctNames names_;
};

// Values of the columns that every event has. All that it is made of outlives it; any thread.
class CommonColumns {
public:
  // Their numbers among common_columns().
  enum : std::size_t {
    kTime,
    kTimestamp,
    kCpu,
    kProcessId,
    kThreadId,
    kProcess, // as ExportSurvey::process_of() tells it
    kProvider,
    kProviderId,
    kEvent,
    kId,
    kVersion,
    kOpcode,
    kLevel,
    kKeyword,
    kActivity,
    kRelatedActivity,
    kColumns
  };

  CommonColumns(const Clock &clock, const ExportSurvey &survey) : clock_(clock), survey_(survey) {
    for (const Schema *schema : survey.schemas.all()) {
      Names &names = names_.emplace_back();
      names_of(survey.schemas, nullptr, schema, names[0], names[2]);
      names[1] = to_string(schema->provider);
    }
  }

  // Calls put.null(), put.number(i64), put.text(string_view) or put.repeated(u64, [] { return text; }), where
  // the number stands for one and the same text of that column, with the value of the Index-th of
  // common_columns().
  template <std::size_t Index, class Put>
  void put(const Event &event, const Schema *schema, Put &&put) const {
    if constexpr (Index == kTime) {
      put.number(unix_nanoseconds(clock_.to_filetime(event.time())));
    } else if constexpr (Index == kTimestamp) {
      put.number(event.time());
    } else if constexpr (Index == kCpu) {
      put.number(event.processor());
    } else if constexpr (Index == kProcessId || Index == kThreadId) {
      const std::uint32_t id = Index == kProcessId ? event.process_id() : event.thread_id();
      id == kUnknownId ? put.null() : put.number(id);
    } else if constexpr (Index == kProcess) {
      const std::uint32_t process = survey_.process_of(event);
      if (process == ExportSurvey::kNone) return put.null();
      put.repeated(std::uint64_t{event.machine()} << 32 | process, [&]() -> std::string_view {
        return shown_name(survey_.lifetimes[event.machine()].processes()[process].image_name);
      });
    } else if constexpr (Index >= kProvider && Index <= kEvent) {
      if (schema != nullptr) {
        put.repeated(schema->ordinal,
                     [&]() -> std::string_view { return names_[schema->ordinal][Index - kProvider]; });
      } else if constexpr (Index == kProviderId) {
        put.text(to_string(event.provider()));
      } else {
        std::string provider, name;
        names_of(survey_.schemas, &event, schema, provider, name);
        put.text(Index == kProvider ? provider : name);
      }
    } else if constexpr (Index == kId) {
      put.number(event.has_hook() || event.is_classic() ? 0 : event.id());
    } else if constexpr (Index == kVersion) {
      put.number(event.version());
    } else if constexpr (Index == kOpcode) {
      put.number(event.opcode());
    } else if constexpr (Index == kLevel) {
      put.number(level_of(event, schema));
    } else if constexpr (Index == kKeyword) {
      put.repeated(event.keyword(), [&] { return keyword(event); });
    } else {
      static_assert(Index == kActivity || Index == kRelatedActivity);
      const Guid activity = Index == kActivity ? event.activity() : event.related_activity();
      activity != Guid{} ? put.text(text_of(activity)) : put.null();
    }
  }
  // Of all columns, one after the other: calls each(index, value), of which value(event, schema, put) is
  // put() of that column. `index` is a std::integral_constant.
  template <class Each> void for_each(Each &&each) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (each(std::integral_constant<std::size_t, I>(),
            [this](const Event &event, const Schema *schema, auto &&value) {
              this->put<I>(event, schema, value);
            }),
       ...);
    }
    (std::make_index_sequence<kColumns>());
  }
  // One of them.
  template <class Put>
  void put_one(const Event &event, const Schema *schema, std::size_t index, Put &&value) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      static_cast<void>(((I == index && (put<I>(event, schema, value), true)) || ...));
    }
    (std::make_index_sequence<kColumns>());
  }

  // Every event has a number there.
  [[nodiscard]] static constexpr bool is_number(std::size_t index) {
    return index <= kCpu || (index >= kId && index <= kLevel);
  }
  // provider, provider_id and event of a kind: columns from kProvider on.
  [[nodiscard]] const std::array<std::string, 3> &names(const Schema &schema) const {
    return names_[schema.ordinal];
  }

private:
  [[nodiscard]] static std::string text_of(const Guid &guid);
  [[nodiscard]] static std::string keyword(const Event &event);

  using Names = std::array<std::string, 3>; // provider, provider_id, event
  Clock clock_;
  const ExportSurvey &survey_;
  std::vector<Names> names_; // by ordinal
};

} // namespace etwrelog::pipeline
