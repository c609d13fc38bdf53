#include "schema/entry.hpp"

#include <unordered_map>

namespace etwrelog::schema {
namespace {

// Renames repeated names of one structure; inner ones are done on their own.
void make_unique(Entry &entry, std::size_t begin, std::size_t end, unsigned depth) {
  std::unordered_map<std::string_view, unsigned> seen;
  for (std::size_t i = begin; i < end; i += 1u + entry.fields[i].members) {
    Field &field = entry.fields[i];
    const std::string_view name = field.name;
    unsigned &n = seen[name];
    if (++n > 1) {
      std::string other;
      do
        other = std::string(name) + '#' + std::to_string(n++);
      while (seen.contains(other));
      --n;
      field.name = entry.keep(std::move(other));
      seen[field.name] = 1;
    }
    if (field.members != 0 && depth < kMaxDepth) make_unique(entry, i + 1, i + 1 + field.members, depth + 1);
  }
}

bool integer_type(unsigned in_type) {
  return in_type >= 3 && in_type <= 10;
}

// 3..10 are i8, u8, i16, u16 ... in both numberings.
FieldType integer_of(unsigned in_type) {
  constexpr FieldType kTypes[] = {FieldType::i8,  FieldType::u8,  FieldType::i16, FieldType::u16,
                                  FieldType::i32, FieldType::u32, FieldType::i64, FieldType::u64};
  return kTypes[in_type - 3];
}

unsigned integer_size(unsigned in_type) {
  return 1u << ((in_type - 3) / 2);
}

FieldType with_sign(unsigned size, bool is_signed) {
  switch (size) {
  case 1: return is_signed ? FieldType::i8 : FieldType::u8;
  case 2: return is_signed ? FieldType::i16 : FieldType::u16;
  case 4: return is_signed ? FieldType::i32 : FieldType::u32;
  default: return is_signed ? FieldType::i64 : FieldType::u64;
  }
}

void boolean(Field &field, unsigned size) {
  field.type = FieldType::boolean;
  field.size = static_cast<std::uint16_t>(size);
}

void counted(Field &field, FieldType type, Measure length) {
  field.type = type;
  field.length = length;
}

// What an out type says whatever the in type.
enum class Meaning {
  none,
  text,
  truth,
  hex,
  port,
  ipv4,
  ipv6,
  utf8,
  xml,
  json,
  datetime,
  as_signed,
  as_unsigned
};

// An integer whose out type gives it another meaning.
void apply_to_integer(Field &field, unsigned in_type, Meaning meaning) {
  const unsigned size = integer_size(in_type);
  field.type = integer_of(in_type);
  if (meaning == Meaning::port && size == 2) field.type = FieldType::u16, field.format = Format::port;
  if (meaning == Meaning::ipv4 && size == 4) field.type = FieldType::u32, field.format = Format::ip_address;
  if (meaning == Meaning::hex) field.type = with_sign(size, false), field.format = Format::hex;
  if (meaning == Meaning::datetime && size == 8) field.type = FieldType::filetime;
  if (meaning == Meaning::as_signed) field.type = with_sign(size, true);
  if (meaning == Meaning::as_unsigned) field.type = with_sign(size, false);
  if (meaning == Meaning::truth) boolean(field, size);
  if (meaning == Meaning::text && size <= 2)
    field.type = with_sign(size, false), field.format = Format::characters;
}

bool is_utf8(Meaning meaning) {
  return meaning == Meaning::utf8 || meaning == Meaning::xml || meaning == Meaning::json;
}

void apply_text_format(Field &field, Meaning meaning) {
  if (meaning == Meaning::xml) field.format = Format::xml;
  if (meaning == Meaning::json) field.format = Format::json;
}

Meaning tdh_meaning(unsigned out_type) {
  switch (out_type) {
  case 1: return Meaning::text;
  case 13: return Meaning::truth;
  case 16:
  case 17:
  case 18:
  case 19: return Meaning::hex;
  case 22: return Meaning::port;
  case 23: return Meaning::ipv4;
  case 24: return Meaning::ipv6;
  case 28: return Meaning::xml;
  case 34: return Meaning::json;
  case 35: return Meaning::utf8;
  default: return Meaning::none;
  }
}

Meaning trace_logging_meaning(unsigned out_type) {
  switch (out_type) {
  case 2: return Meaning::text;
  case 3: return Meaning::truth;
  case 4: return Meaning::hex;
  case 7: return Meaning::port;
  case 8: return Meaning::ipv4;
  case 9: return Meaning::ipv6;
  case 11: return Meaning::xml;
  case 12: return Meaning::json;
  case 16:
  case 33:
  case 38: return Meaning::datetime;
  case 17: return Meaning::as_signed;
  case 18: return Meaning::as_unsigned;
  case 35: return Meaning::utf8;
  default: return Meaning::none;
  }
}

// Types that both numberings share.
bool apply_common(Field &field, unsigned in_type, Meaning meaning) {
  if (integer_type(in_type)) {
    apply_to_integer(field, in_type, meaning);
    return true;
  }
  apply_text_format(field, meaning);
  const FieldType narrow = is_utf8(meaning) ? FieldType::utf8 : FieldType::astr;
  switch (in_type) {
  case 1: field.type = FieldType::wstr; return true;
  case 2: field.type = narrow; return true;
  case 11: field.type = FieldType::f32; return true;
  case 12: field.type = FieldType::f64; return true;
  case 13: boolean(field, 4); return true;
  case 15: field.type = FieldType::guid; return true;
  case 16: field.type = FieldType::pointer; return true;
  case 17: field.type = FieldType::filetime; return true;
  case 18: field.type = FieldType::systemtime; return true;
  case 19: field.type = FieldType::sid; return true;
  case 20:
  case 21:
    field.type = in_type == 20 ? FieldType::u32 : FieldType::u64;
    field.format = Format::hex;
    if (meaning == Meaning::as_signed || meaning == Meaning::as_unsigned) {
      field.type = with_sign(in_type == 20 ? 4 : 8, meaning == Meaning::as_signed);
      field.format = Format::plain;
    }
    return true;
  case 22: counted(field, FieldType::wstr, Measure::prefix16); return true;
  case 23: counted(field, narrow, Measure::prefix16); return true;
  case 25: counted(field, FieldType::binary, Measure::prefix16); break;
  default: return false;
  }
  if (meaning == Meaning::ipv6) field.format = Format::ip_address;
  return true;
}

} // namespace

std::optional<std::size_t> Entry::add(Field field, std::string name) {
  if (fields.size() >= kMaxFields) return std::nullopt;
  field.name = keep(std::move(name));
  fields.push_back(field);
  return fields.size() - 1;
}

bool same_shape(const Field &a, const Field &b) {
  return a.type == b.type && a.format == b.format && a.length == b.length && a.repeat == b.repeat &&
         a.size == b.size && (a.repeat != Measure::constant || a.count == b.count) &&
         a.size_field == b.size_field && a.count_field == b.count_field && a.members == b.members &&
         a.optional == b.optional && a.zero_ends == b.zero_ends && a.name == b.name;
}

std::int16_t Entry::add_map(std::shared_ptr<const ValueMap> map) {
  for (std::size_t i = 0; i < maps.size(); ++i)
    if (maps[i] == map) return static_cast<std::int16_t>(i);
  maps.push_back(std::move(map));
  return static_cast<std::int16_t>(maps.size() - 1);
}

std::string Entry::flaw() const {
  std::vector<bool> told(fields.size());
  std::size_t registers = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field &field = fields[i];
    for (const bool count : {false, true}) {
      if ((count ? field.repeat : field.length) != Measure::by_field) continue;
      const int of = count ? field.count_field : field.size_field;
      const std::string what = std::string(count ? "the count" : "the length") + " of field ";
      if (of < 0 || static_cast<std::size_t>(of) >= i)
        return what + std::string(field.name) + " is that of no field in front of it";
      const Field &teller = fields[static_cast<std::size_t>(of)];
      if (!teller.is_integer() || teller.is_array())
        return what + std::string(field.name) + " is in " + std::string(teller.name) +
               ", which is no integer";
      if (!told[static_cast<std::size_t>(of)] && ++registers > kMaxRegisters)
        return "more than 255 fields tell lengths and counts of others";
      told[static_cast<std::size_t>(of)] = true;
    }
  }
  return {};
}

void Entry::seal() {
  make_unique(*this, 0, fields.size(), 0);
  schema.fields = fields;
  schema.maps = maps;
}

std::size_t Entry::memory() const {
  std::size_t bytes = sizeof *this + 256 + fields.size() * sizeof(Field) + maps.size() * sizeof maps[0];
  for (const std::string &text : texts)
    bytes += sizeof text + text.capacity();
  return bytes;
}

bool apply_tdh_type(Field &field, unsigned in_type, unsigned out_type) {
  const Meaning meaning = tdh_meaning(out_type);
  switch (out_type) {
  case 20: field.format = Format::process_id; break;
  case 21: field.format = Format::thread_id; break;
  case 25: field.format = Format::socket_address; break;
  case 30: field.format = Format::win32_error; break;
  case 31: field.format = Format::ntstatus; break;
  case 32: field.format = Format::hresult; break;
  case 37: field.format = Format::address; break;
  default: break;
  }
  switch (in_type) {
  case 14:
    field.type = FieldType::binary;
    if (meaning == Meaning::ipv6) field.format = Format::ip_address;
    return true;
  case 300: counted(field, FieldType::wstr, Measure::prefix16); return true;
  case 301:
    counted(field, is_utf8(meaning) ? FieldType::utf8 : FieldType::astr, Measure::prefix16);
    return true;
  case 302: counted(field, FieldType::wstr, Measure::prefix16be); return true;
  case 303: counted(field, FieldType::astr, Measure::prefix16be); return true;
  case 304: counted(field, FieldType::wstr, Measure::to_end); return true;
  case 305:
    counted(field, is_utf8(meaning) ? FieldType::utf8 : FieldType::astr, Measure::to_end);
    return true;
  case 306: field.type = FieldType::u16, field.format = Format::characters; return true;
  case 307: field.type = FieldType::u8, field.format = Format::characters; return true;
  case 308: field.type = FieldType::pointer; return true;
  case 309: counted(field, FieldType::binary, Measure::prefix32); return true;
  case 310: field.type = FieldType::token_sid; return true;
  default: return in_type != 24 && apply_common(field, in_type, meaning);
  }
}

bool apply_trace_logging_type(Field &field, unsigned in_type, unsigned out_type) {
  const Meaning meaning = trace_logging_meaning(out_type);
  switch (out_type) {
  case 5: field.format = Format::process_id; break;
  case 6: field.format = Format::thread_id; break;
  case 10: field.format = Format::socket_address; break;
  case 13: field.format = Format::win32_error; break;
  case 14: field.format = Format::ntstatus; break;
  case 15: field.format = Format::hresult; break;
  case 37: field.format = Format::address; break;
  default: break;
  }
  if (in_type == 14) return apply_common(field, 25, meaning);
  return apply_common(field, in_type, meaning);
}

std::string task_and_opcode(std::string_view task, std::string_view opcode) {
  if (opcode.starts_with("win:")) opcode.remove_prefix(4);
  if (task.empty()) return std::string(opcode);
  if (opcode.empty() || opcode == "Info") return std::string(task);
  return std::string(task) + "/" + std::string(opcode);
}

} // namespace etwrelog::schema
