#include "export/event_columns.hpp"

#include "base/cut_text.hpp"
#include "etwrelog/kernel_events.hpp"
#include "schema/event_names.hpp"
#include "schema/value_text.hpp"

#include <fmt/format.h>

namespace etwrelog::pipeline {

using tables::ColumnType;

const std::vector<tables::Column> &common_columns() {
  static const std::vector<tables::Column> columns = {{"time", ColumnType::timestamp},
                                                      {"timestamp", ColumnType::integer},
                                                      {"cpu", ColumnType::integer},
                                                      {"process_id", ColumnType::integer},
                                                      {"thread_id", ColumnType::integer},
                                                      {"process", ColumnType::text, true},
                                                      {"provider", ColumnType::text, true},
                                                      {"provider_id", ColumnType::text, true, {}, true},
                                                      {"event", ColumnType::text, true},
                                                      {"id", ColumnType::integer},
                                                      {"version", ColumnType::integer},
                                                      {"opcode", ColumnType::integer},
                                                      {"level", ColumnType::integer},
                                                      {"keyword", ColumnType::text, true},
                                                      {"activity", ColumnType::text, true, {}, true},
                                                      {"related_activity", ColumnType::text, true, {}, true}};
  return columns;
}

const std::vector<tables::Column> &last_columns() {
  static const std::vector<tables::Column> columns = {{"raw", ColumnType::text},
                                                      {"truncated", ColumnType::boolean}};
  return columns;
}

ColumnType column_type(const Field &field, bool numbers) {
  if (field.is_array()) return ColumnType::text;
  if (field.type == FieldType::f32 || field.type == FieldType::f64) return ColumnType::real;
  if (field.type == FieldType::boolean) return ColumnType::boolean;
  if (field.is_hexadecimal()) return numbers ? ColumnType::unsigned_integer : ColumnType::text;
  if (field.type > FieldType::i64 && field.type != FieldType::raw_time) return ColumnType::text;
  switch (field.format) {
  case Format::ip_address:
  case Format::characters: return ColumnType::text;
  default: return field.is_signed() ? ColumnType::integer : ColumnType::unsigned_integer;
  }
}

namespace {

std::string table_base(const SchemaCatalog &catalog, const Schema *schema, std::string_view of_kind) {
  std::string name = "undescribed";
  if (schema) {
    name = of_kind;
    if (!kernel::hook_of_class(schema->provider, schema->opcode)) {
      const std::string_view provider =
          schema->provider_name.empty() ? catalog.provider_name(schema->provider) : schema->provider_name;
      name =
          fmt::format("{}_{}", provider.empty() ? to_string(schema->provider) : std::string(provider), name);
    }
  }
  for (char &c : name) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!word) c = '_';
  }
  // SQLite keeps these names for itself. All formats and SQL over a trace call a table the same.
  if (base::lower(name.substr(0, 7)) == "sqlite_") name.insert(0, 1, '_');
  return name;
}

} // namespace

std::string table_base(const SchemaCatalog &catalog, const Schema *schema) {
  return table_base(catalog, schema, schema ? schema->name : std::string_view());
}

std::optional<std::string> other_table_base(const SchemaCatalog &catalog, const Schema &schema) {
  const std::string other = schema::other_event_name(schema);
  return other.empty() ? std::nullopt : std::optional(table_base(catalog, &schema, other));
}

TableNames::TableNames(std::initializer_list<std::string_view> others) {
  for (const std::string_view name : others)
    static_cast<void>(names_.take(name));
}

std::string TableNames::give(const SchemaCatalog &catalog, const Schema *schema) {
  return give(table_base(catalog, schema), schema);
}

std::optional<std::string> TableNames::give_other(const SchemaCatalog &catalog, const Schema &schema) {
  const std::optional<std::string> other = other_table_base(catalog, schema);
  return other ? std::optional(give(*other, &schema)) : std::nullopt;
}

std::string TableNames::give(const std::string &name, const Schema *schema) {
  if (names_.take(name)) return name;
  if (schema)
    if (std::string versioned = fmt::format("{}_v{}", name, schema->version); names_.take(versioned))
      return versioned;
  return names_.give(name, "_");
}

std::string CommonColumns::text_of(const Guid &guid) {
  std::string text;
  schema::append_guid(text, guid);
  return text;
}

std::string CommonColumns::keyword(const Event &event) {
  return fmt::format("0x{:x}", event.keyword());
}

} // namespace etwrelog::pipeline
