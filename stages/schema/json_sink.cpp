#include "schema/json_sink.hpp"

#include "etwrelog/codec.hpp"

namespace etwrelog::schema {
namespace {

// Without the zeros at its end, or what stands behind the first one.
Bytes text_of(const Op &op, Bytes data) {
  if (op.length == Measure::natural && op.repeat == Measure::natural) return data;
  const std::size_t unit = op.type == FieldType::wstr || op.type == FieldType::u16 ? 2 : 1;
  auto zero_at = [&](std::size_t i) { return data[i] == 0 && (unit == 1 || data[i + 1] == 0); };
  std::size_t n = data.size() / unit * unit;
  if (op.zero_ends) {
    for (std::size_t i = 0; i < n; i += unit)
      if (zero_at(i)) return data.first(i);
    return data.first(n);
  }
  while (n != 0 && zero_at(n - unit))
    n -= unit;
  return data.first(n);
}

void append_string(std::string &out, const Op &op, Bytes data) {
  out += '"';
  switch (op.type) {
  case FieldType::wstr:
  case FieldType::u16:
  case FieldType::i16: append_json_utf16(out, data); break;
  case FieldType::utf8: append_json_utf8(out, data); break;
  default: append_json_cp1252(out, data); break;
  }
  out += '"';
}

// False if it is not what it claims to be.
bool append_lznt1_text(std::string &out, Bytes data) {
  constexpr std::uint32_t kLargest = 4u << 20;
  if (data.size() < 4) return false;
  const std::uint32_t size = load<std::uint32_t>(data.data());
  if (size > kLargest) return false;
  std::vector<std::uint8_t> text(size);
  if (!decompress(Codec::lznt1, data.subspan(4), text)) return false;
  while (text.size() >= 2 && text[text.size() - 1] == 0 && text[text.size() - 2] == 0)
    text.resize(text.size() - 2);
  append_json_utf16(out, text);
  return true;
}

void append_binary(std::string &out, const Op &op, Bytes data) {
  out += '"';
  if (op.format == Format::lznt1_text && append_lznt1_text(out, data)) {
    out += '"';
    return;
  }
  if (op.format == Format::ip_address && data.size() == 16)
    append_ipv6(out, data.data());
  else
    append_hex_bytes(out, data);
  out += '"';
}

void append_hexadecimal(std::string &out, std::uint64_t value, bool as_number) {
  if (as_number) return append_unsigned(out, value);
  out += '"', append_hex(out, value), out += '"';
}

void append_integer(std::string &out, const Op &op, Bytes data, const ValueMap *map, bool numbers) {
  const std::uint64_t value = load_unsigned(data);
  if (map != nullptr) {
    if (const std::string name = map->text(value, data.size()); !name.empty()) {
      append_json_string(out, name);
      return;
    }
  }
  switch (op.format) {
  case Format::hex:
  case Format::address: return append_hexadecimal(out, value, numbers);
  case Format::port:
    if (data.size() != 2) break;
    append_unsigned(out, (value & 0xFF) << 8 | value >> 8);
    return;
  case Format::ip_address:
    if (data.size() != 4) break;
    out += '"', append_ipv4(out, data.data()), out += '"';
    return;
  case Format::characters:
    if (data.size() > 2) break;
    append_string(out, op, data);
    return;
  default: break;
  }
  if (op.type >= FieldType::i8 && op.type <= FieldType::i64)
    append_signed(out, load_signed(data));
  else
    append_unsigned(out, value);
}

} // namespace

void append_value(std::string &out, const Op &op, Bytes data, unsigned, const ValueMap *map, bool numbers) {
  switch (op.type) {
  case FieldType::f32: append_float(out, load<float>(data.data())); break;
  case FieldType::f64: append_double(out, load<double>(data.data())); break;
  case FieldType::boolean: out += load_unsigned(data) != 0 ? "true" : "false"; break;
  case FieldType::pointer: append_hexadecimal(out, load_unsigned(data), numbers); break;
  case FieldType::raw_time: append_signed(out, load<std::int64_t>(data.data())); break;
  case FieldType::filetime:
    out += '"';
    if (append_filetime(out, load<std::int64_t>(data.data()))) {
      out += '"';
    } else {
      out.pop_back();
      append_signed(out, load<std::int64_t>(data.data()));
    }
    break;
  case FieldType::systemtime: out += '"', append_systemtime(out, data.data()), out += '"'; break;
  case FieldType::guid: out += '"', append_guid(out, load_guid(data.data())), out += '"'; break;
  case FieldType::sid:
  case FieldType::token_sid:
    if (data.size() < 8) {
      out += "null";
      break;
    }
    out += '"', append_sid(out, data), out += '"';
    break;
  case FieldType::astr:
  case FieldType::utf8:
  case FieldType::wstr: append_string(out, op, text_of(op, data)); break;
  case FieldType::binary: append_binary(out, op, data); break;
  case FieldType::structure: out += "null"; break;
  default:
    if (op.repeat != Measure::natural && op.format == Format::characters)
      append_string(out, op, text_of(op, data));
    else
      append_integer(out, op, data, map, numbers);
  }
}

} // namespace etwrelog::schema
