// etwrelog query: SQL over a trace.
#include "etwrelog/query.hpp"
#include "etwrelog/text.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/process.hpp"
#include "tools/reference.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <tuple>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

struct QueryFlags : RunFlags {
  std::vector<std::string> words, schemas; // traces, and behind them perhaps SQL
  std::string from, to;
  JoinFlags joins;
  bool salvage = false, numbers = false;
};

// Columns by tabs; line ends and tabs inside a value as \n and \t, other signs that terminals obey as \x1b.
std::string cell(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return printable(out);
}

TraceQuery::Visitor as_text() {
  TraceQuery::Visitor visitor;
  visitor.columns = [](std::span<const std::string> names) {
    for (std::size_t i = 0; i < names.size(); ++i)
      print_text("{}{}", i == 0 ? "" : "\t", cell(names[i]));
    print_text("\n");
  };
  visitor.row = [](TraceQuery::Row row) {
    for (std::size_t i = 0; i < row.size(); ++i)
      print_text("{}{}", i == 0 ? "" : "\t", cell(row[i].text));
    print_text("\n");
  };
  return visitor;
}

// An object has a name once: "count(*)" and "count(*)#2".
std::vector<std::string> told_apart(std::span<const std::string> columns) {
  std::vector<std::string> names;
  for (const std::string &column : columns) {
    std::string name = column;
    for (int i = 2; std::ranges::find(names, name) != names.end(); ++i)
      name = fmt::format("{}#{}", column, i);
    names.push_back(std::move(name));
  }
  return names;
}

nlohmann::ordered_json json_value(const TraceQuery::Value &value) {
  switch (value.type) {
  case TraceQuery::Value::Type::null: break;
  case TraceQuery::Value::Type::text: return value.text;
  case TraceQuery::Value::Type::integer:
  case TraceQuery::Value::Type::real: // what JSON has no number for, as infinity, is null
    if (auto number = nlohmann::ordered_json::parse(value.text, nullptr, false); number.is_number())
      return number;
  }
  return nullptr;
}

TraceQuery::Visitor as_json(std::shared_ptr<std::vector<std::string>> names) {
  TraceQuery::Visitor visitor;
  visitor.columns = [names](std::span<const std::string> all) { *names = told_apart(all); };
  visitor.row = [names](TraceQuery::Row row) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < row.size(); ++i)
      object[(*names)[i]] = json_value(row[i]);
    print_text("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  return visitor;
}

// What printing throws would come out of the library as an error of its visitor; main() knows better what to
// say of standard output.
Result<void> run_sql(TraceQuery &query, const std::string &sql, const TraceQuery::Visitor &visitor) {
  std::exception_ptr thrown;
  const auto kept = [&thrown](const auto &print, const auto &values) {
    try {
      print(values);
    } catch (...) {
      thrown = std::current_exception();
      throw;
    }
  };
  TraceQuery::Visitor keeping;
  if (visitor.columns)
    keeping.columns = [&](std::span<const std::string> names) { kept(visitor.columns, names); };
  keeping.row = [&](TraceQuery::Row row) { kept(visitor.row, row); };
  Result<void> done = query.run(sql, keeping);
  if (thrown) std::rethrow_exception(thrown);
  return done;
}

// Without the provider a name is none, but whose it is can be told; else the nearest one.
std::string table_meant(std::string_view name, const TraceQuery &query) {
  std::vector<std::string> all = query.tables(), others = query.other_tables();
  std::ranges::move(others, std::back_inserter(all));
  for (const std::string &table : all)
    if (table.size() > name.size() && table[table.size() - name.size() - 1] == '_' &&
        same_in_any_case(std::string_view(table).substr(table.size() - name.size()), name))
      return table;
  return nearest(name, all);
}

// What SQLite says of a name that is none, with what it may have been meant to be.
Error with_what_there_is(Error error, const TraceQuery &query) {
  constexpr std::string_view kNoTable = "SQL: no such table: ", kNoColumn = "SQL: no such column: ";
  if (error.what.starts_with(kNoTable)) {
    const std::string meant = table_meant(std::string_view(error.what).substr(kNoTable.size()), query);
    error.what += meant.empty() ? "; .tables in the place of the statement lists them"
                                : fmt::format("; did you mean \"{}\"?", meant);
  } else if (error.what.starts_with(kNoColumn)) {
    const std::string_view column = std::string_view(error.what).substr(kNoColumn.size());
    const std::string_view join = JoinFlags::adding(column.substr(column.rfind('.') + 1));
    error.what += join.empty()
                      ? "; \"etwrelog schema\" lists the fields of each kind"
                      : fmt::format("; tables of events have what other events say with --join {}", join);
  }
  return error;
}

// Lists what can be asked, at the prompt and in the place of a statement, as sqlite3 does.
constexpr std::string_view kTables = ".tables";
void print_tables(const TraceQuery &query) {
  for (const std::string &name : query.tables())
    print_text("{}\n", name);
}

// A statement may go over several lines; it ends with a semicolon.
int prompt(TraceQuery &query, const TraceQuery::Visitor &visitor) {
  const bool asks = process::is_terminal(0);
  int status = kDone;
  std::string statement, line;
  const auto ask = [&] {
    if (Result<void> done = run_sql(query, std::exchange(statement, {}), visitor); !done)
      status = report(with_what_there_is(done.error(), query));
    std::fflush(stdout);
  };
  for (;;) {
    if (asks) process::print_message(statement.empty() ? "etwrelog> " : "      ... ");
    if (!std::getline(std::cin, line)) break;
    if (statement.empty() && (line == ".quit" || line == ".exit")) break;
    if (statement.empty() && line == kTables) {
      print_tables(query);
      continue;
    }
    statement += line + "\n";
    if (TraceQuery::is_complete(statement)) ask();
  }
  if (!statement.empty()) ask(); // the last one needs no semicolon
  return status;
}

// A statement has blanks; where it was forgotten, the last argument is a trace.
bool names_a_trace(const std::string &word) {
  std::error_code failed;
  return std::filesystem::exists(word, failed) ||
         (word.find_first_of(" \t\n") == std::string::npos && is_trace_file_name(word));
}

int run_query(QueryFlags &flags) {
  std::string sql;
  // SQL is what has a blank in it and names no file; a prompt where there is none.
  if (flags.words.size() > 1) {
    sql = flags.words.back();
    flags.words.pop_back();
    if (names_a_trace(sql))
      return report(usage_error(fmt::format("\"{}\" is a trace, not SQL: the last argument must be the SQL "
                                            "statement (of a single trace alone there is a prompt)",
                                            printable(sql))));
  }
  const Result<ExportJoins> joins = flags.joins.joins(flags.words);
  if (!joins) return report(joins.error());
  SchemaCatalog known;
  for (const std::string &path : flags.schemas)
    if (Result<std::size_t> added = add_schema_files(known, path); !added) return report(added.error());
  Bar bar(flags.progress);
  RunReport told;
  RunOptions run = flags.run(bar);
  run.report = &told;
  Result<Trace> trace = open_trace(flags.words, {.salvage = flags.salvage}, run);
  if (!trace) return report(trace.error());
  ExportOptions options;
  options.schemas = known;
  options.numbers = flags.numbers;
  options.joins = *joins;
  const std::unique_ptr<SymbolResolver> resolver = flags.joins.resolver(flags.words, flags.threads);
  options.symbols = resolver.get();
  for (const auto &[text, option, moment] : {std::tuple(&flags.from, Option::from, &options.selection.from),
                                             std::tuple(&flags.to, Option::to, &options.selection.to)}) {
    Result<std::optional<Moment>> when = moment_of(*text, option);
    if (!when) return report(when.error());
    *moment = *when;
  }
  Result<TraceQuery> query = TraceQuery::open(*trace, options, run, sql == kTables ? "" : sql);
  if (!query) return report(query.error());
  const TraceQuery::Visitor visitor =
      flags.json ? as_json(std::make_shared<std::vector<std::string>>()) : as_text();
  int status = kDone;
  if (sql == kTables)
    print_tables(*query);
  else if (sql.empty())
    status = prompt(*query, visitor);
  else if (Result<void> done = run_sql(*query, sql, visitor); !done)
    return report(with_what_there_is(done.error(), *query));
  for (const std::string &problem : query->problems())
    warn(flags.words.front(), problem);
  warn_of(resolver.get());
  warn_of_no_names(resolver.get(), flags.words.front());
  return std::max(status, report_damage(source_names(*trace), told.warnings, told.skipped));
}

void add_query_command(CLI::App &app, int &exit_status) {
  auto flags = std::make_shared<QueryFlags>();
  CLI::App *command = app.add_subcommand("query", "Ask a trace in SQL");
  command
      ->add_option("TRACE", flags->words,
                   "Traces (" + trace_files() +
                       "), then one SQL statement, or .tables to list what can be asked; with a single "
                       "argument a prompt")
      ->required();
  command->add_option("--schemas", flags->schemas, "Folder (or file) of .man, .xml and .tmf schemas")
      ->allow_extra_args(false);
  command->add_option("--from", flags->from,
                      "Nothing before: 12.5s, 2m, or UTC time; of an archive nothing else is read");
  command->add_option("--to", flags->to, "Nothing after");
  flags->joins.add_to(*command);
  command->add_flag(
      "--numbers", flags->numbers,
      "Addresses and hexadecimal numbers as numbers, 31 instead of '0x1f'; of 2^63 and more, as "
      "many addresses are, texts of their digits");
  command->add_flag("--salvage", flags->salvage, "Step over damage");
  flags->add_to(*command);
  flags->add_json_to(*command, "A JSON object a row");
  command->footer("  etwrelog query T.etl \"select process, count(*) from PerfInfo_SampleProf group by 1\"\n"
                  "  etwrelog query T.etl \"select count(*) from events where time < at('2.5s')\"\n"
                  "  etwrelog query T.etl --join file,duration \"select file, sum(duration_ns) from "
                  "DiskIo_Read group by 1\"\n"
                  "  etwrelog query T.etl \"select name from sqlite_master\"");
  command->callback([flags, &exit_status] { exit_status = run_query(*flags); });
}

const Command kQuery(47, add_query_command);

} // namespace
} // namespace etwrelog::cli
