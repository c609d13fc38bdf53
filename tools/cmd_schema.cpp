// etwrelog schema: the kinds of events in a trace, their fields, and where they are described.
#include "etwrelog/export.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct SchemaFlags : RunFlags {
  std::vector<std::string> inputs, schemas;
  std::string where;
  SelectionFlags selection;
  bool salvage = false;
};

json field_json(std::span<const Field> fields, std::size_t at) {
  const Field &field = fields[at];
  json row = {{"name", field.name}, {"type", type_text(fields, at)}};
  if (field.type != FieldType::structure) return row;
  json members = json::array();
  for (std::size_t i = at + 1; i <= at + field.members; i += 1u + fields[i].members)
    members.push_back(field_json(fields, i));
  row["fields"] = members;
  return row;
}

json kind_json(const ExportKind &kind) {
  json row = {
      {"name", kind.name},     {"provider_id", to_string(kind.provider)},
      {"id", kind.id},         {"version", kind.version},
      {"opcode", kind.opcode}, {"opcodes", kind.opcodes},
      {"events", kind.events}, {"source", kind.origin ? json(origin_name(*kind.origin)) : json(nullptr)}};
  if (kind.schema == nullptr) return row;
  json fields = json::array();
  const auto all = kind.schema->fields;
  for (std::size_t i = 0; i < all.size(); i += 1u + all[i].members)
    fields.push_back(field_json(all, i));
  row["fields"] = fields;
  if (!kind.schema->message.empty()) row["message"] = kind.schema->message;
  return row;
}

void print_fields(std::span<const Field> fields, std::size_t begin, std::size_t end, int indent) {
  for (std::size_t i = begin; i < end; i += 1u + fields[i].members) {
    print_row("{:{}}{:<{}} {}", "", indent, fields[i].name, 40 - indent, type_text(fields, i));
    if (fields[i].type == FieldType::structure)
      print_fields(fields, i + 1, i + 1 + fields[i].members, indent + 2);
  }
}

int run_schema(const SchemaFlags &flags) {
  ExportOptions options;
  Result<Selection> selection = flags.selection.selection();
  if (!selection) return report(selection.error());
  options.selection = *std::move(selection);
  options.where = flags.where;
  for (const std::string &path : flags.schemas)
    if (Result<std::size_t> added = add_schema_files(options.schemas, path); !added)
      return report(added.error());
  Bar bar(flags.progress);
  RunReport told;
  RunOptions run = flags.run(bar);
  run.report = &told;
  Result<Trace> trace = open_trace(flags.inputs, {.salvage = flags.salvage}, run);
  if (!trace) return report(trace.error());
  if (Result<void> named = flags.selection.find_names(*trace, options.schemas, run, options.selection);
      !named)
    return report(named.error());
  const Result<ExportReport> done = describe_kinds(*trace, options, run);
  if (!done) return report(about_condition(done.error()));
  for (const std::string &problem : done->problems)
    warn(flags.inputs.front(), problem);
  const int status = report_damage(source_names(*trace), told.warnings, told.skipped);
  if (flags.json) {
    json kinds = json::array();
    for (const ExportKind &kind : done->kinds)
      kinds.push_back(kind_json(kind));
    print_text("{}\n", text_of({{"events", done->events}, {"kinds", kinds}}));
    return status;
  }
  for (const ExportKind &kind : done->kinds) {
    print_row("{}  (id {}, version {}, opcode{} {}): {}, {} events", kind.name, kind.id, kind.version,
              kind.opcodes.size() > 1 ? "s" : "", fmt::join(kind.opcodes, ", "),
              kind.origin ? origin_name(*kind.origin) : "not described", human_count(kind.events));
    if (kind.schema != nullptr) print_fields(kind.schema->fields, 0, kind.schema->fields.size(), 4);
  }
  return status;
}

void add_schema_command(CLI::App &app, int &exit_status) {
  auto flags = std::make_shared<SchemaFlags>();
  CLI::App *command =
      app.add_subcommand("schema", "Kinds of events with their fields, and where they are described");
  command
      ->add_option("TRACE", flags->inputs,
                   "Traces: " + trace_files() + "; several are read as one; - for standard input")
      ->required();
  command->add_option("--schemas", flags->schemas, "Folder (or file) of .man, .xml and .tmf schemas")
      ->allow_extra_args(false);
  command->add_option("--where", flags->where, "Only events that fulfil a condition, as for export");
  command->add_flag("--salvage", flags->salvage, "Step over damage");
  flags->selection.add_to(*command);
  flags->add_to(*command);
  flags->add_json_to(*command);
  command->callback([flags, &exit_status] { exit_status = run_schema(*flags); });
}

const Command kSchema(46, add_schema_command);

} // namespace
} // namespace etwrelog::cli
