// What tables call events and their fields, and the columns that every event has: for tables that are written
// and for those that are asked.
#pragma once

#include "etwrelog/trace.hpp"
#include "export/json_lines.hpp"
#include "export/survey.hpp"
#include "tables/table.hpp"

#include <set>

namespace etwrelog::pipeline {

// 100 ns between 1601 and 1970.
inline constexpr std::int64_t kUnixEpoch = 116'444'736'000'000'000;

[[nodiscard]] const std::vector<tables::Column> &common_columns();

// Numbers where a column of numbers holds every value, else the text that JSON lines have.
[[nodiscard]] tables::ColumnType column_type(const Field &field);

// "DiskIo_Read"; of other than kernel events with the provider in front. Not in `taken`, and then it is.
[[nodiscard]] std::string table_name(const SchemaCatalog &catalog, const Schema *schema,
                                     std::set<std::string> &taken);

// Values of the columns that every event has. All that it is made of outlives it; any thread.
class CommonColumns {
public:
  CommonColumns(const Clock &clock, const ExportSurvey &survey, const JsonLines &lines)
      : clock_(clock), survey_(survey), lines_(lines) {
    for (const Schema *schema : survey.schemas.all()) {
      Names &names = names_.emplace_back();
      names_of(survey.schemas, nullptr, schema, names.provider, names.event);
      names.provider_id = to_string(schema->provider);
    }
  }

  // Calls put.null(), put.number(i64) or put.text(string_view) with the value of the index-th of
  // common_columns().
  template <class Put>
  void put(const Event &event, const Schema *schema, std::size_t index, Put &&put) const {
    auto id = [&](std::uint32_t value) {
      if (value == kUnknownId)
        put.null();
      else
        put.number(value);
    };
    switch (index) {
    case 0: put.number((clock_.to_filetime(event.time()) - kUnixEpoch) * 100); break;
    case 1: put.number(event.time()); break;
    case 2: put.number(event.processor()); break;
    case 3: id(event.process_id()); break;
    case 4: id(event.thread_id()); break;
    case 5:
      if (const std::string *name = process_name(event))
        put.text(*name);
      else
        put.null();
      break;
    case 6:
    case 8: {
      if (schema != nullptr) {
        const Names &names = names_[schema->ordinal];
        put.text(index == 6 ? names.provider : names.event);
        break;
      }
      std::string provider, name;
      lines_.names(event, schema, provider, name);
      put.text(index == 6 ? provider : name);
      break;
    }
    case 7:
      if (schema != nullptr)
        put.text(names_[schema->ordinal].provider_id);
      else
        put.text(to_string(event.provider()));
      break;
    case 9: put.number(event.has_hook() || event.is_classic() ? 0 : event.id()); break;
    case 10: put.number(event.version()); break;
    case 11: put.number(event.opcode()); break;
    case 12: put.number(event.level()); break;
    case 13:
      if (event.keyword() == 0)
        put.text("0x0");
      else
        put.text(keyword(event));
      break;
    default:
      if (const Guid activity = event.activity(); activity != Guid{})
        put.text(to_string(activity));
      else
        put.null();
    }
  }

private:
  [[nodiscard]] const std::string *process_name(const Event &event) const;
  [[nodiscard]] static std::string keyword(const Event &event);

  struct Names {
    std::string provider, provider_id, event;
  };
  Clock clock_;
  const ExportSurvey &survey_;
  const JsonLines &lines_;
  std::vector<Names> names_; // by ordinal
};

} // namespace etwrelog::pipeline
