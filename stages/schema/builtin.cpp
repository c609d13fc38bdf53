// The built-in schemas, and what kernel events have besides fields: a provider's name and whose they are.
#include "etwrelog/kernel_events.hpp"
#include "etwrelog/provider_names.hpp"
#include "schema/entry.hpp"

namespace etwrelog::schema {
namespace {

std::vector<BuiltinEntry> read_tables() {
  std::vector<BuiltinEntry> all;
  for (const std::string_view table : builtin_tables())
    for (BuiltinEntry &row : read_notation(table)) {
      Schema &s = row.entry->schema;
      if (const auto hook = hook_of(s)) {
        s.scope = kernel::scope_of(*hook);
        s.provider_name = "Windows Kernel";
      } else if (s.classic) {
        s.provider_name = etwrelog::provider_name(s.provider);
      }
      s.ordinal = static_cast<std::uint32_t>(all.size());
      all.push_back(std::move(row));
    }
  return all;
}

} // namespace

std::span<const BuiltinEntry> builtin_entries() {
  static const std::vector<BuiltinEntry> all = read_tables();
  return all;
}

std::optional<std::uint16_t> hook_of(const Schema &schema) {
  return schema.classic ? kernel::hook_of_class(schema.provider, schema.opcode) : std::nullopt;
}

} // namespace etwrelog::schema
