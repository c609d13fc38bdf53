// Events as tables. Workers decode into columns, one set for each kind of event of a batch; the writer gets
// them batch by batch, in order of time.
#include "base/platform.hpp"
#include "etwrelog/export.hpp"
#include "export/event_columns.hpp"
#include "export/joins.hpp"
#include "export/json_lines.hpp"
#include "export/selected.hpp"
#include "export/survey.hpp"
#include "tables/table.hpp"

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

namespace etwrelog {
namespace {

using pipeline::JsonLines;
using tables::Batch;
using tables::Column;
using tables::ColumnData;
using tables::ColumnType;

void append_hex(Bytes bytes, std::string &out) {
  for (const std::uint8_t byte : bytes)
    fmt::format_to(std::back_inserter(out), "{:02x}", byte);
}

using Kind = std::size_t; // ordinal of the schema
constexpr Kind kUndescribed = SIZE_MAX;

struct TablePart {
  std::map<Kind, Batch> batches;
  std::uint64_t events = 0;
  void clear() { *this = {}; }
};

class Rows {
public:
  Rows(const Clock &clock, const pipeline::ExportSurvey &survey, const JsonLines &lines,
       const pipeline::Joins *joins, bool by_kind)
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

  [[nodiscard]] std::vector<Column> columns(Kind kind) const {
    std::vector<Column> all = pipeline::common_columns();
    if (!by_kind_) {
      all.push_back({"fields", ColumnType::text});
    } else if (kind != kUndescribed) {
      const Schema &schema = *survey_.schemas.all()[kind];
      for (std::size_t i = 0; i < schema.fields.size(); i += 1u + schema.fields[i].members)
        all.push_back({std::string(schema.fields[i].name), pipeline::column_type(schema.fields[i])});
    }
    if (joins_)
      for (const pipeline::Joins::Column &column : joins_->columns())
        all.push_back({column.name, column.type});
    all.push_back({"raw", ColumnType::text});
    return all;
  }

  struct Scratch {
    std::vector<FieldValue> values;
    pipeline::Joins::Scratch joined;
  };
  void add(const Event &event, TablePart &part, Scratch &scratch) const {
    const Schema *schema = survey_.schemas.find(event);
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

private:
  struct Put {
    ColumnData &column;
    void null() { column.add_null(); }
    void number(std::int64_t value) { column.add_number(static_cast<std::uint64_t>(value)); }
    void text(std::string_view value) { column.add_text(value); }
  };
  void add_common(const Event &event, const Schema *schema, Batch &batch) const {
    for (std::size_t i = 0; i < pipeline::common_columns().size(); ++i)
      common_.put(event, schema, i, Put{batch.columns[i]});
  }

  void add_joined(const Event &event, const Schema *schema, Batch &batch,
                  pipeline::Joins::Scratch &scratch) const {
    joins_->look_up(event, schema, scratch);
    const std::size_t count = joins_->columns().size(), first = batch.columns.size() - 1 - count;
    for (std::size_t i = 0; i < count; ++i) {
      if (scratch.numbers[i])
        batch.columns[first + i].add_number(static_cast<std::uint64_t>(*scratch.numbers[i]));
      else if (scratch.present[i])
        batch.columns[first + i].add_text(scratch.texts[i]);
    }
  }

  void add_fields(const Event &event, const Schema *schema, Batch &batch,
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
    const Decoder *decoder = event.pointer_size() == 4 ? &narrow_[schema->ordinal] : &wide_[schema->ordinal];
    values.resize(decoder->value_count());
    DecodedSize size = decoder->decode(payload, values);
    // Some tools write payloads of 64-bit systems behind 32-bit headers: the layout that fits is the right
    // one.
    if (event.type() == format::HeaderType::full32 && schema->origin == Origin::builtin &&
        (size.truncated || size.covered < payload.size())) {
      const DecodedSize again = wide_[schema->ordinal].decode(payload, values);
      if (!again.truncated && again.covered == payload.size()) {
        size = again;
        decoder = &wide_[schema->ordinal];
      } else {
        size = decoder->decode(payload, values);
      }
    }
    if (by_kind_) {
      for (std::size_t i = 0; i < size.values; ++i) {
        const auto index = static_cast<std::size_t>(values[i].field - schema->fields.data());
        add_value(values[i],
                  batch.columns[pipeline::common_columns().size() + places_[schema->ordinal][index]]);
      }
    } else {
      ColumnData &fields = batch.columns[pipeline::common_columns().size()];
      decoder->append_json(payload, fields.begin_text());
      fields.end_text();
    }
    if (size.covered < payload.size()) add_raw(payload.subspan(size.covered));
  }

  static void add_value(const FieldValue &value, ColumnData &column) {
    switch (pipeline::column_type(*value.field)) {
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

  pipeline::CommonColumns common_;
  const pipeline::ExportSurvey &survey_;
  const pipeline::Joins *joins_; // null: none
  bool by_kind_;
  std::vector<Decoder> narrow_, wide_; // by ordinal
  std::vector<std::vector<std::uint16_t>>
      places_; // by ordinal and index of a field: its column behind the common ones
};

class StreamTarget final : public tables::ByteTarget {
public:
  explicit StreamTarget(OutputStream &stream) : stream_(stream) {}
  Result<void> append(std::string_view bytes) override { return stream_.write(bytes); }

private:
  OutputStream &stream_;
};

// A folder of our own for a database that is being made; gone when this is.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::random_device random;
    std::error_code failed;
    for (int i = 0; i < 16 && path_.empty(); ++i) {
      const auto path = std::filesystem::temp_directory_path(failed) /
                        fmt::format("etwrelog-{:08x}{:08x}", random(), random());
      if (!failed && std::filesystem::create_directory(path, failed) && !failed) path_ = path;
    }
    if (!path_.empty()) base::add_temporary(file());
  }
  ~TemporaryFolder() {
    if (path_.empty()) return;
    base::forget_temporary(file());
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  [[nodiscard]] bool made() const { return !path_.empty(); }
  [[nodiscard]] std::string file() const {
    return (path_ / "events").string();
  } // what is to become the output
  [[nodiscard]] std::string other() const { return (path_ / "database").string(); }

private:
  std::filesystem::path path_;
};

Result<ExportReport> write_tables(const Trace &trace, tables::TableWriter &writer, bool by_kind,
                                  const ExportOptions &options, const RunOptions &run) {
  Result<pipeline::ExportSurvey> survey = pipeline::survey_for_export(trace, options.schemas, run);
  if (!survey) return std::move(survey).error();
  Result<pipeline::Selected> selected =
      pipeline::Selected::make(trace, options.selection, options.where, *survey);
  if (!selected) return std::move(selected).error();
  const JsonLines lines(survey->schemas, trace.clock(), survey->lifetimes, {});
  std::optional<pipeline::Joins> joins;
  if (options.joins.any()) {
    Result<pipeline::Joins> made = pipeline::Joins::make(trace, *survey, options.joins, run);
    if (!made) return std::move(made).error();
    joins = *std::move(made);
  }
  const Rows rows(trace.clock(), *survey, lines, joins ? &*joins : nullptr, by_kind);
  std::map<Kind, std::size_t> numbers;
  std::set<std::string> taken;
  if (!by_kind) {
    if (Result<void> made = writer.add_table("events", rows.columns(kUndescribed)); !made)
      return std::move(made).error();
    numbers.emplace(kUndescribed, 0);
  }
  auto map = [&](TablePart &part, EventBatch &batch) {
    Rows::Scratch memory;
    pipeline::Selected::Scratch scratch;
    for (const Event &event : batch)
      if (selected->contains(event, scratch)) rows.add(event, part, memory);
  };
  auto merge = [&](TablePart &total, TablePart &part) -> Result<void> {
    total.events += part.events;
    for (const auto &[kind, batch] : part.batches) {
      const auto [number, fresh] = numbers.try_emplace(kind, numbers.size());
      if (fresh) {
        const Schema *schema = kind == kUndescribed ? nullptr : survey->schemas.all()[kind];
        const std::string name = pipeline::table_name(survey->schemas, schema, taken);
        if (Result<void> made = writer.add_table(name, rows.columns(kind)); !made) return made;
      }
      if (Result<void> written = writer.write(number->second, batch); !written) return written;
    }
    return {};
  };
  Result<TablePart> done = selected->nothing()
                               ? Result<TablePart>(TablePart{})
                               : trace.fold<TablePart>(map, merge, selected->query(Order::time), run);
  if (!done) return std::move(done).error();
  if (Result<void> finished = writer.finish(); !finished) return std::move(finished).error();
  ExportReport report;
  report.events = done->events;
  const auto problems = survey->schemas.problems();
  report.problems.assign(problems.begin(), problems.end());
  if (joins)
    report.problems.insert(report.problems.end(), joins->problems().begin(), joins->problems().end());
  report.schemas = std::move(survey->schemas);
  return report;
}

Result<ExportReport> write_database(const Trace &trace, OutputStream &stream, TableFormat format,
                                    const ExportOptions &options, const RunOptions &run) {
  const TemporaryFolder folder;
  if (!folder.made()) {
    Error error;
    error.kind = ErrorKind::io;
    error.what = "no folder can be made for temporary files ($TMPDIR)";
    return error;
  }
  Result<std::unique_ptr<tables::TableWriter>> writer =
      format == TableFormat::parquet  ? tables::duckdb_writer(folder.other(), folder.file())
      : format == TableFormat::duckdb ? tables::duckdb_writer(folder.file(), {})
                                      : tables::sqlite_writer(folder.file());
  if (!writer) return std::move(writer).error();
  Result<ExportReport> report = write_tables(trace, **writer, format != TableFormat::parquet, options, run);
  if (!report) return report;
  writer->reset();
  const Result<base::File> file = base::File::open_read(folder.file());
  if (!file) return file.error();
  std::vector<std::uint8_t> chunk(1u << 20);
  for (std::uint64_t at = 0;;) {
    const Result<std::size_t> got = file->read_at(at, chunk);
    if (!got) return got.error();
    if (*got == 0) return report;
    if (Result<void> put = stream.write(Bytes(chunk).first(*got)); !put) return std::move(put).error();
    at += *got;
  }
}

} // namespace

Result<ExportReport> export_table(const Trace &trace, const Output &output, TableFormat format,
                                  const ExportOptions &options, const RunOptions &run) {
  std::vector<Input> inputs;
  for (const SourceInfo &source : trace.sources())
    inputs.emplace_back(source.name);
  Result<OutputStream> stream = OutputStream::open(output, inputs);
  if (!stream) return std::move(stream).error();
  StreamTarget target(*stream);
  Result<ExportReport> report = [&]() -> Result<ExportReport> {
    std::unique_ptr<tables::TableWriter> writer;
    switch (format) {
    case TableFormat::sqlite:
    case TableFormat::parquet:
    case TableFormat::duckdb: return write_database(trace, *stream, format, options, run);
    case TableFormat::csv: writer = tables::csv_writer(target); break;
    case TableFormat::tsv: writer = tables::csv_writer(target, '\t'); break;
    case TableFormat::arrow: writer = tables::arrow_writer(target, true); break;
    case TableFormat::arrow_stream: writer = tables::arrow_writer(target, false); break;
    }
    return write_tables(trace, *writer, false, options, run);
  }();
  if (!report) return report;
  report->bytes = stream->size();
  if (Result<void> committed = stream->commit(); !committed) return std::move(committed).error();
  return report;
}

} // namespace etwrelog
