// The notation of the built-in tables:
//
//   class GUID Name            classic and kernel events: by class, opcode and version
//   provider GUID Name         manifest events: by provider, id and version
//   N Name, N Name | versions | field field ...
//
// Versions are "2", "0-2", "3+" (and all later ones), apart by blanks. A field is name:type, then in this
// order
//   (n), (Field) bytes or characters (a number, by a field), *n, *Field, * elements (the same, or up to the
//   end), ? optional, @role.
// Types: u8..u64 i8..i64 f32 f64 bool x32 x64 (shown in hex) ptr time ft guid sid tsid astr utf8 wstr bin ip4
// ip6 port status. A string of (n) characters ends at its first zero.
#include "base/cut_text.hpp"
#include "schema/entry.hpp"

#include <array>
#include <cassert>
#include <charconv>

namespace etwrelog::schema {
namespace {

struct TypeName {
  std::string_view name;
  FieldType type;
  Format format;
  std::uint16_t size;
};
constexpr TypeName kTypes[] = {
    {"u8", FieldType::u8, Format::plain, 0},          {"u16", FieldType::u16, Format::plain, 0},
    {"u32", FieldType::u32, Format::plain, 0},        {"u64", FieldType::u64, Format::plain, 0},
    {"i8", FieldType::i8, Format::plain, 0},          {"i16", FieldType::i16, Format::plain, 0},
    {"i32", FieldType::i32, Format::plain, 0},        {"i64", FieldType::i64, Format::plain, 0},
    {"f32", FieldType::f32, Format::plain, 0},        {"f64", FieldType::f64, Format::plain, 0},
    {"bool", FieldType::boolean, Format::plain, 4},   {"bool8", FieldType::boolean, Format::plain, 1},
    {"x32", FieldType::u32, Format::hex, 0},          {"x64", FieldType::u64, Format::hex, 0},
    {"ptr", FieldType::pointer, Format::plain, 0},    {"code", FieldType::pointer, Format::address, 0},
    {"time", FieldType::raw_time, Format::plain, 0},  {"ft", FieldType::filetime, Format::plain, 0},
    {"guid", FieldType::guid, Format::plain, 0},      {"sid", FieldType::sid, Format::plain, 0},
    {"tsid", FieldType::token_sid, Format::plain, 0}, {"astr", FieldType::astr, Format::plain, 0},
    {"utf8", FieldType::utf8, Format::plain, 0},      {"wstr", FieldType::wstr, Format::plain, 0},
    {"bin", FieldType::binary, Format::plain, 0},     {"lznt1", FieldType::binary, Format::lznt1_text, 0},
    {"ip4", FieldType::u32, Format::ip_address, 0},   {"ip6", FieldType::binary, Format::ip_address, 16},
    {"port", FieldType::u16, Format::port, 0},        {"status", FieldType::u32, Format::ntstatus, 0},
};

constexpr std::array<std::string_view, static_cast<std::size_t>(Role::count_)> kRoles = {
    "none",         "process_id",  "parent_id",   "thread_id",           "new_thread_id", "old_thread_id",
    "event_time",   "stack_key",   "frames",      "image_base",          "image_size",    "image_checksum",
    "image_time",   "file_object", "file_key",    "exit_status",         "session_id",    "image_name",
    "command_line", "file_name",   "thread_name", "instruction_pointer", "method_id",     "module_id",
    "code_address", "code_size",   "type_name",   "method_name",         "signature",     "registry_key"};

std::string_view cut(std::string_view &rest, char separator) {
  return base::trimmed(base::cut(rest, separator));
}

unsigned decimal(std::string_view text) {
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The table is ours: a mistake in it is one of this program, which the tests of the tables find.
void add_field(Entry &entry, std::string_view text) {
  const std::string_view name = cut(text, ':');
  Field field;
  if (const std::size_t role = text.find('@'); role != std::string_view::npos) {
    for (std::size_t i = 0; i < kRoles.size(); ++i)
      if (kRoles[i] == text.substr(role + 1)) field.role = static_cast<Role>(i);
    assert(field.role != Role::none);
    text = text.substr(0, role);
  }
  if (text.ends_with('?')) field.optional = true, text.remove_suffix(1);
  if (const std::size_t star = text.find('*'); star != std::string_view::npos) {
    const std::string_view count = text.substr(star + 1);
    field.repeat = count.empty() ? Measure::to_end : Measure::by_field;
    if (!count.empty() && is_digit(count.front()))
      field.repeat = Measure::constant, field.count = static_cast<std::uint16_t>(decimal(count));
    else if (!count.empty())
      for (std::size_t i = 0; i < entry.fields.size(); ++i)
        if (entry.fields[i].name == count) field.count_field = static_cast<std::int16_t>(i);
    assert(field.repeat != Measure::by_field || field.count_field >= 0);
    text = text.substr(0, star);
  }
  if (const std::size_t open = text.find('('); open != std::string_view::npos) {
    const std::string_view size = text.substr(open + 1, text.size() - open - 2);
    if (is_digit(size.front())) {
      field.length = Measure::constant, field.zero_ends = true;
      field.size = static_cast<std::uint16_t>(decimal(size));
    } else {
      field.length = Measure::by_field;
      for (std::size_t i = 0; i < entry.fields.size(); ++i)
        if (entry.fields[i].name == size) field.size_field = static_cast<std::int16_t>(i);
      assert(field.size_field >= 0);
    }
    text = text.substr(0, open);
  }
  bool known = false;
  for (const TypeName &type : kTypes) {
    if (type.name != text) continue;
    field.type = type.type, field.format = type.format, known = true;
    if (type.size != 0) field.size = type.size;
    if (type.type == FieldType::binary && type.size != 0) field.length = Measure::constant;
    if (type.type == FieldType::binary && field.length == Measure::natural) field.length = Measure::to_end;
  }
  assert(known);
  static_cast<void>(known);
  entry.add(field, std::string(name));
}

struct Owner {
  Guid guid;
  std::string name;
  bool classic = false;
};

void add_rows(const Owner &owner, std::string_view line, std::vector<BuiltinEntry> &out) {
  std::string_view ids = cut(line, '|');
  const std::string_view versions = cut(line, '|');
  while (!ids.empty()) {
    std::string_view event = cut(ids, ',');
    const unsigned id = decimal(cut(event, ' '));
    const std::string_view name = base::trimmed(event);
    std::string_view ranges = versions;
    while (!ranges.empty()) {
      const std::string_view range = cut(ranges, ' ');
      if (range.empty()) continue;
      std::string_view last = range;
      const unsigned first = decimal(cut(last, '-'));
      BuiltinEntry row;
      row.last_version = static_cast<std::uint16_t>(range.ends_with('+') ? 0xFFFF
                                                    : last.empty()       ? first
                                                                         : decimal(last));
      row.entry = std::make_unique<Entry>();
      Schema &s = row.entry->schema;
      s.provider = owner.guid, s.classic = owner.classic, s.version = static_cast<std::uint16_t>(first);
      if (owner.classic)
        s.opcode = static_cast<std::uint8_t>(id);
      else
        s.id = static_cast<std::uint16_t>(id);
      const std::size_t slash = name.find('/');
      const std::string_view task = owner.classic ? std::string_view(owner.name) : name.substr(0, slash);
      const std::string_view opcode = owner.classic                     ? name
                                      : slash == std::string_view::npos ? std::string_view()
                                                                        : name.substr(slash + 1);
      s.task = row.entry->keep(std::string(task));
      s.opcode_name = row.entry->keep(std::string(opcode));
      s.name =
          row.entry->keep(opcode.empty() ? std::string(task) : std::string(task) + "/" + std::string(opcode));
      if (!owner.classic) s.provider_name = row.entry->keep(owner.name);
      std::string_view fields = line;
      while (!fields.empty())
        if (const std::string_view field = cut(fields, ' '); !field.empty()) add_field(*row.entry, field);
      row.entry->seal();
      out.push_back(std::move(row));
    }
  }
}

} // namespace

std::vector<BuiltinEntry> read_notation(std::string_view table) {
  std::vector<BuiltinEntry> out;
  Owner owner;
  std::string pending; // a row goes on in lines that begin with a blank
  auto flush = [&] {
    if (!pending.empty()) add_rows(owner, pending, out);
    pending.clear();
  };
  while (!table.empty()) {
    const std::size_t end = table.find('\n');
    const std::string_view line = table.substr(0, end);
    table = end == std::string_view::npos ? std::string_view() : table.substr(end + 1);
    if (line.starts_with(' ')) {
      pending += line;
      continue;
    }
    flush();
    std::string_view rest = line;
    if (line.starts_with("class ") || line.starts_with("provider ")) {
      owner.classic = cut(rest, ' ') == "class";
      const auto guid = parse_guid(cut(rest, ' '));
      assert(guid);
      owner.guid = *guid;
      owner.name = base::trimmed(rest);
    } else if (!line.empty()) {
      pending = line;
    }
  }
  flush();
  return out;
}

} // namespace etwrelog::schema
