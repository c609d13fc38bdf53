// Events as tables. Workers decode into columns, one set for each kind of event of a batch; the writer gets
// them batch by batch, in order of time.
#include "api/reading.hpp"
#include "base/errors.hpp"
#include "base/io.hpp"
#include "base/output_file.hpp"
#include "base/platform.hpp"
#include "base/private_folder.hpp"
#include "etwrelog/export.hpp"
#include "export/rows.hpp"
#include "export/table_folder.hpp"
#include "tables/table.hpp"

#include <map>

#include <fmt/format.h>

namespace etwrelog {
namespace {

constexpr std::size_t kCopied = 1u << 20; // at once, of a file that is made elsewhere

using pipeline::FieldColumns;
using pipeline::RowBatches;
using pipeline::Rows;
using pipeline::TableRows;

constexpr FieldColumns kOneTable{.by_kind = false}, kTyped{.numbers = true, .lists = true};

// Made anew where a worker begins, not where its rows have been written: that is what all wait for.
struct TablePart {
  RowBatches rows;
  std::uint64_t events = 0; // of a whole
  void clear() {}
};

class StreamTarget final : public tables::ByteTarget {
public:
  explicit StreamTarget(OutputStream &stream) : stream_(stream) {}
  Result<void> append(std::string_view bytes) override { return stream_.write(bytes); }

private:
  OutputStream &stream_;
};

Result<ExportReport> write_tables(const Trace &trace, tables::TableWriter &writer, FieldColumns fields,
                                  const ExportOptions &options, const RunOptions &run) {
  ETWRELOG_TRY_LET(made, TableRows::make(trace, options, fields, run));
  TableRows &all = *made;
  const Rows &rows = *all.rows;
  const SchemaCatalog &schemas = all.survey.schemas;
  std::map<Rows::Kind, std::size_t> numbers;
  pipeline::TableNames names;
  if (!rows.by_kind()) {
    ETWRELOG_TRY(writer.add_table("events", rows.columns(RowBatches::kUndescribed)));
    numbers.emplace(RowBatches::kUndescribed, 0);
  }
  auto map = [&](TablePart &part, EventBatch &batch) {
    part.rows.clear();
    Rows::Adder adder(rows, part.rows);
    for (const Event &event : batch)
      adder.add(event, schemas.find(event));
    adder.finish();
  };
  auto merge = [&](TablePart &total, TablePart &part) -> Result<void> {
    total.events += part.rows.events();
    return part.rows.for_each([&](Rows::Kind kind, const tables::Batch &batch) -> Result<void> {
      const auto [number, fresh] = numbers.try_emplace(kind, numbers.size());
      if (fresh) {
        const Schema *schema = kind == RowBatches::kUndescribed ? nullptr : schemas.all()[kind];
        const std::string name = names.give(schemas, schema);
        if (Result<void> added = writer.add_table(name, rows.columns(kind)); !added) return added;
      }
      if (Result<void> fits = batch.check_size(); !fits) {
        fits.error().file = trace.sources().front().name;
        return fits;
      }
      return writer.write(number->second, batch);
    });
  };
  ETWRELOG_TRY_LET(done, all.selected->fold<TablePart>(trace, map, merge, Order::time, run));
  ETWRELOG_TRY(writer.finish());
  ExportReport report;
  report.events = done.events;
  const auto problems = schemas.problems();
  report.problems.assign(problems.begin(), problems.end());
  if (all.joins)
    report.problems.insert(report.problems.end(), all.joins->problems().begin(), all.joins->problems().end());
  report.schemas = std::move(all.survey.schemas);
  return report;
}

// DuckDB makes its files itself, by their names.
Result<ExportReport> write_by_duckdb(const Trace &trace, OutputStream &stream, TableFormat format,
                                     const ExportOptions &options, const RunOptions &run) {
  ETWRELOG_TRY_LET(folder, base::PrivateFolder::make("events")); // what is to become the output
  const bool parquet = format == TableFormat::parquet;
  ETWRELOG_TRY_LET(writer, parquet ? tables::duckdb_writer(folder.in("database"), run.stop,
                                                           [&](const std::string &) { return folder.file(); })
                                   : tables::duckdb_writer(folder.file(), run.stop));
  const FieldColumns fields = parquet ? kOneTable : FieldColumns{.lists = true};
  ETWRELOG_TRY_LET(report, write_tables(trace, *writer, fields, options, run));
  writer.reset();
  ETWRELOG_TRY_LET(file, base::File::open_read(folder.file()));
  std::vector<std::uint8_t> chunk(kCopied);
  for (std::uint64_t at = 0;;) {
    ETWRELOG_TRY_LET(got, file.read_at(at, chunk));
    if (got == 0) return report;
    ETWRELOG_TRY(stream.write(Bytes(chunk).first(got)));
    at += got;
  }
}

Result<ExportReport> write_sqlite(const Trace &trace, base::OutputFile &file, const ExportOptions &options,
                                  const RunOptions &run) {
  ETWRELOG_TRY_LET(writer, tables::sqlite_writer(file, run.stop));
  return write_tables(trace, *writer, {.few = true}, options, run);
}

// By way of a database, which DuckDB copies each table out of.
Result<ExportReport> write_parquet_folder(const Trace &trace, pipeline::NewFolder folder,
                                          const ExportOptions &options, const RunOptions &run) {
  ETWRELOG_TRY_LET(place, base::PrivateFolder::make("events"));
  ETWRELOG_TRY_LET(writer, tables::duckdb_writer(place.file(), run.stop, [&](const std::string &table) {
                     return folder.file_for(table).path;
                   }));
  ETWRELOG_TRY_LET(report, write_tables(trace, *writer, kTyped, options, run));
  writer.reset();
  ETWRELOG_TRY_LET(bytes, folder.commit());
  report.bytes = bytes;
  return report;
}

// SQLite writes here and there: straight into the output if that is a file.
Result<ExportReport> export_sqlite(const Trace &trace, const Output &output, const ExportOptions &options,
                                   const RunOptions &run) {
  if (output.kind() == Output::Kind::path) {
    ETWRELOG_TRY(pipeline::check_output(trace, output));
    ETWRELOG_TRY_LET(file, base::OutputFile::create(output.name(), output.existing() == Existing::replace));
    ETWRELOG_TRY_LET(report, write_sqlite(trace, file, options, run));
    report.bytes = file.size();
    ETWRELOG_TRY(file.commit());
    return report;
  }
  ETWRELOG_TRY_LET(stream, OutputStream::open(output));
  ETWRELOG_TRY_LET(file, base::OutputFile::create_spool());
  ETWRELOG_TRY_LET(report, write_sqlite(trace, file, options, run));
  std::vector<std::uint8_t> chunk(kCopied);
  while (stream.size() < file.size()) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(kCopied, file.size() - stream.size()));
    ETWRELOG_TRY(file.read_at(stream.size(), MutableBytes(chunk).first(part)));
    ETWRELOG_TRY(stream.write(Bytes(chunk).first(part)));
  }
  report.bytes = stream.size();
  ETWRELOG_TRY(stream.commit());
  return report;
}

Result<void> check_format(TableFormat format) {
  if (format <= TableFormat::duckdb) return {};
  return base::ErrorBuilder(ErrorKind::usage, "there is no such format of tables")
      .found(std::to_string(static_cast<unsigned>(format)));
}

} // namespace

Result<ExportReport> export_tables(const Trace &trace, const std::string &folder, TableFormat format,
                                   const ExportOptions &options, const RunOptions &run) {
  ETWRELOG_TRY(check_format(format));
  std::string ending;
  pipeline::TableFolder::MakeWriter make;
  switch (format) {
  case TableFormat::csv:
    ending = ".csv", make = [](tables::ByteTarget &target) { return tables::csv_writer(target); };
    break;
  case TableFormat::tsv:
    ending = ".tsv", make = [](tables::ByteTarget &target) { return tables::csv_writer(target, '\t'); };
    break;
  case TableFormat::arrow:
    ending = ".arrow", make = [](tables::ByteTarget &target) { return tables::arrow_writer(target, true); };
    break;
  case TableFormat::arrow_stream:
    ending = ".arrows", make = [](tables::ByteTarget &target) { return tables::arrow_writer(target, false); };
    break;
  case TableFormat::parquet: ending = ".parquet"; break;
  default:
    return base::unsupported(
        "SQLite and DuckDB have a table for each kind of event in one file, not in a folder");
  }
  ETWRELOG_TRY_LET(place, pipeline::NewFolder::make(folder, ending));
  if (!make) return write_parquet_folder(trace, std::move(place), options, run);
  const bool text = format == TableFormat::csv || format == TableFormat::tsv;
  pipeline::TableFolder writer(std::move(place), std::move(make));
  ETWRELOG_TRY_LET(report, write_tables(trace, writer, text ? FieldColumns{} : kTyped, options, run));
  report.bytes = writer.bytes();
  return report;
}

Result<ExportReport> export_table(const Trace &trace, const Output &output, TableFormat format,
                                  const ExportOptions &options, const RunOptions &run) {
  ETWRELOG_TRY(check_format(format));
  if (format == TableFormat::sqlite) return export_sqlite(trace, output, options, run);
  ETWRELOG_TRY_LET(stream, pipeline::open_output(trace, output));
  StreamTarget target(stream);
  Result<ExportReport> report = [&]() -> Result<ExportReport> {
    std::unique_ptr<tables::TableWriter> writer;
    switch (format) {
    case TableFormat::sqlite: break; // above
    case TableFormat::parquet:
    case TableFormat::duckdb: return write_by_duckdb(trace, stream, format, options, run);
    case TableFormat::csv: writer = tables::csv_writer(target); break;
    case TableFormat::tsv: writer = tables::csv_writer(target, '\t'); break;
    case TableFormat::arrow: writer = tables::arrow_writer(target, true); break;
    case TableFormat::arrow_stream: writer = tables::arrow_writer(target, false); break;
    }
    return write_tables(trace, *writer, kOneTable, options, run);
  }();
  if (!report) return report;
  report->bytes = stream.size();
  ETWRELOG_TRY(stream.commit());
  return report;
}

} // namespace etwrelog
