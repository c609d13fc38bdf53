#include "export/rows.hpp"

#include <fmt/format.h>

namespace etwrelog::pipeline {

using tables::Batch;
using tables::Column;
using tables::ColumnData;
using tables::ColumnType;

namespace {

void append_hex(Bytes bytes, std::string &out) {
  for (const std::uint8_t byte : bytes)
    fmt::format_to(std::back_inserter(out), "{:02x}", byte);
}

// A value of a column that every event has.
struct Put {
  ColumnData &column;
  void null() { column.add_null(); }
  void number(std::int64_t value) { column.add_number(static_cast<std::uint64_t>(value)); }
  void text(std::string_view value) { column.add_text(value); }
};

void add_value(const FieldValue &value, ColumnData &column) {
  switch (column_type(*value.field)) {
  case ColumnType::real:
    if (const auto real = value.real())
      column.add_real(*real);
    else
      column.add_null(); // no number
    return;
  case ColumnType::text:
    value.append_text(column.begin_text());
    column.end_text();
    return;
  default:
    if (const auto integer = value.integer())
      column.add_number(*integer);
    else
      column.add_null();
  }
}

} // namespace

Rows::Rows(const Clock &clock, const ExportSurvey &survey, const JsonLines &lines, const Joins *joins,
           bool by_kind)
    : common_(clock, survey, lines), survey_(survey), joins_(joins), by_kind_(by_kind) {
  for (const Schema *schema : survey.schemas.all()) {
    narrow_.emplace_back(*schema, 4);
    wide_.emplace_back(*schema, 8);
    std::vector<std::uint16_t> &places = places_.emplace_back(schema->fields.size());
    std::uint16_t place = 0;
    for (std::size_t i = 0; i < schema->fields.size(); i += 1u + schema->fields[i].members)
      places[i] = place++;
  }
}

std::vector<Column> Rows::columns(Kind kind) const {
  std::vector<Column> all = common_columns();
  if (!by_kind_) {
    all.push_back({"fields", ColumnType::text});
  } else if (kind != kUndescribed) {
    const Schema &schema = *survey_.schemas.all()[kind];
    for (std::size_t i = 0; i < schema.fields.size(); i += 1u + schema.fields[i].members)
      all.push_back({std::string(schema.fields[i].name), column_type(schema.fields[i])});
  }
  if (joins_)
    for (const Joins::Column &column : joins_->columns())
      all.push_back({column.name, column.type});
  all.push_back({"raw", ColumnType::text});
  return all;
}

void Rows::add(const Event &event, const Schema *schema, TablePart &part, Scratch &scratch) const {
  const Kind kind = by_kind_ && schema ? schema->ordinal : kUndescribed;
  Batch &batch = part.batches[kind];
  if (batch.columns.empty())
    for (const Column &column : columns(kind))
      batch.columns.emplace_back(column.type);
  add_common(event, schema, batch);
  add_fields(event, schema, batch, scratch.values);
  if (joins_) add_joined(event, schema, batch, scratch.joined);
  ++batch.rows;
  ++part.events;
  // What an event lacks is null.
  for (ColumnData &column : batch.columns)
    if (column.rows() < batch.rows) column.add_null();
}

void Rows::add_common(const Event &event, const Schema *schema, Batch &batch) const {
  for (std::size_t i = 0; i < common_columns().size(); ++i)
    common_.put(event, schema, i, Put{batch.columns[i]});
}

void Rows::add_joined(const Event &event, const Schema *schema, Batch &batch, Joins::Scratch &scratch) const {
  joins_->look_up(event, schema, scratch);
  const std::size_t count = joins_->columns().size(), first = batch.columns.size() - 1 - count;
  for (std::size_t i = 0; i < count; ++i) {
    if (scratch.numbers[i])
      batch.columns[first + i].add_number(static_cast<std::uint64_t>(*scratch.numbers[i]));
    else if (scratch.present[i])
      batch.columns[first + i].add_text(scratch.texts[i]);
  }
}

void Rows::add_fields(const Event &event, const Schema *schema, Batch &batch,
                      std::vector<FieldValue> &values) const {
  const Bytes payload = event.payload();
  ColumnData &raw = batch.columns.back();
  auto add_raw = [&](Bytes bytes) {
    append_hex(bytes, raw.begin_text());
    raw.end_text();
  };
  if (schema == nullptr) {
    if (!payload.empty()) add_raw(payload);
    return;
  }
  const Decoder &decoder = fitting_decoder(event, narrow_[schema->ordinal], wide_[schema->ordinal]);
  values.resize(decoder.value_count());
  const DecodedSize size = decoder.decode(payload, values);
  if (by_kind_) {
    for (std::size_t i = 0; i < size.values; ++i) {
      const auto index = static_cast<std::size_t>(values[i].field - schema->fields.data());
      add_value(values[i], batch.columns[common_columns().size() + places_[schema->ordinal][index]]);
    }
  } else {
    ColumnData &fields = batch.columns[common_columns().size()];
    decoder.append_json(payload, fields.begin_text());
    fields.end_text();
  }
  if (size.covered < payload.size()) add_raw(payload.subspan(size.covered));
}

Result<std::unique_ptr<TableRows>> TableRows::make(const Trace &trace, const ExportOptions &options,
                                                   bool by_kind, const RunOptions &run) {
  auto made = std::make_unique<TableRows>();
  Result<ExportSurvey> survey = survey_for_export(trace, options.schemas, run);
  if (!survey) return std::move(survey).error();
  made->survey = *std::move(survey);
  Result<Selected> selected = Selected::make(trace, options.selection, options.where, made->survey);
  if (!selected) return std::move(selected).error();
  made->selected = *std::move(selected);
  made->lines.emplace(made->survey.schemas, trace.clock(), made->survey.lifetimes, JsonLines::Options{});
  if (options.joins.any()) {
    Result<Joins> joins = Joins::make(trace, made->survey, options.joins, run);
    if (!joins) return std::move(joins).error();
    made->joins = *std::move(joins);
  }
  made->rows.emplace(trace.clock(), made->survey, *made->lines, made->joins ? &*made->joins : nullptr,
                     by_kind);
  return made;
}

} // namespace etwrelog::pipeline
