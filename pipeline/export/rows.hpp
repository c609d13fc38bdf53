// Events as rows of tables: all in one table with their fields as JSON, or one table for each kind of event.
#pragma once

#include "export/event_columns.hpp"
#include "export/joins.hpp"
#include "export/selected.hpp"

#include <map>
#include <memory>
#include <optional>

namespace etwrelog::pipeline {

using Kind = std::size_t; // ordinal of the schema
inline constexpr Kind kUndescribed = SIZE_MAX;

struct TablePart {
  std::map<Kind, tables::Batch> batches;
  std::uint64_t events = 0;
  void clear() { *this = {}; }
};

// Any thread; what it is made of outlives it.
class Rows {
public:
  // `joins`: null for none. Not by kind: everything is kUndescribed.
  Rows(const Clock &clock, const ExportSurvey &survey, const JsonLines &lines, const Joins *joins,
       bool by_kind);

  [[nodiscard]] std::vector<tables::Column> columns(Kind kind) const;

  struct Scratch { // of a thread
    std::vector<FieldValue> values;
    Joins::Scratch joined;
  };
  // `schema`: the catalog's for this event.
  void add(const Event &event, const Schema *schema, TablePart &part, Scratch &scratch) const;

private:
  void add_common(const Event &event, const Schema *schema, tables::Batch &batch) const;
  void add_fields(const Event &event, const Schema *schema, tables::Batch &batch,
                  std::vector<FieldValue> &values) const;
  void add_joined(const Event &event, const Schema *schema, tables::Batch &batch,
                  Joins::Scratch &scratch) const;

  CommonColumns common_;
  const ExportSurvey &survey_;
  const Joins *joins_;
  bool by_kind_;
  std::vector<Decoder> narrow_, wide_; // by ordinal
  // By ordinal and index of a field: its column behind the common ones.
  std::vector<std::vector<std::uint16_t>> places_;
};

// All that the rows of a trace take; stays where it is.
struct TableRows {
  // One pass, and what the joins cost.
  static Result<std::unique_ptr<TableRows>> make(const etwrelog::Trace &trace, const ExportOptions &options,
                                                 bool by_kind, const RunOptions &run);

  ExportSurvey survey;
  std::optional<Selected> selected;
  std::optional<JsonLines> lines;
  std::optional<Joins> joins;
  std::optional<Rows> rows;
};

} // namespace etwrelog::pipeline
