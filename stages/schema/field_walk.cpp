// Finding fields in a payload by their layout.
#include "etwrelog/kernel_events.hpp"

#include "schema/program.hpp"

namespace etwrelog::kernel {
namespace {

// Offset just behind the terminator, or the end of the payload for a string that has none.
std::size_t string_end(Bytes payload, std::size_t at, std::size_t unit, std::size_t &length) {
  std::size_t end = at;
  while (end + unit <= payload.size()) {
    bool zero = true;
    for (std::size_t i = 0; i < unit; ++i)
      zero = zero && payload[end + i] == 0;
    if (zero) {
      length = end - at;
      return end + unit;
    }
    end += unit;
  }
  length = end - at;
  return payload.size();
}

} // namespace

std::optional<std::size_t> fixed_offset(std::span<const Field> fields, Role role, unsigned pointer_size) {
  std::size_t at = 0;
  for (const Field &field : fields) {
    if (field.role == role) return at;
    const std::size_t size = fixed_size(field.type, pointer_size);
    if (size == 0) return std::nullopt;
    at += size * field.repeat;
  }
  return std::nullopt;
}

bool FieldWalk::next(const Field *&field, Bytes &data) {
  if (fields_.empty() || at_ >= payload_.size()) return false;
  field = &fields_.front();
  fields_ = fields_.subspan(1);
  std::size_t length = fixed_size(field->type, pointer_size_) * field->repeat;
  std::size_t next = at_ + length;
  switch (field->type) {
  case FieldType::astr: next = string_end(payload_, at_, 1, length); break;
  case FieldType::wstr: next = string_end(payload_, at_, 2, length); break;
  case FieldType::pointers:
    length = (payload_.size() - at_) / pointer_size_ * pointer_size_;
    next = at_ + length;
    break;
  case FieldType::rest: length = payload_.size() - at_, next = payload_.size(); break;
  case FieldType::sid: {
    const auto size = sid_size(payload_.subspan(at_), pointer_size_);
    if (!size) return false;
    length = *size, next = at_ + length;
    break;
  }
  case FieldType::counted_pointers:
    if (payload_.size() - at_ < 4) return false;
    length = 4 + std::size_t{load<std::uint32_t>(payload_.data() + at_)} * pointer_size_, next = at_ + length;
    break;
  case FieldType::offset_map:
    if (payload_.size() - at_ < 2) return false;
    length = 2 + std::size_t{load<std::uint16_t>(payload_.data() + at_)} * 8, next = at_ + length;
    break;
  default: break;
  }
  if (next > payload_.size()) return false;
  data = payload_.subspan(at_, length);
  at_ = next;
  return true;
}

std::optional<std::size_t> sid_size(Bytes data, unsigned pointer_size) {
  const std::size_t token_user = std::size_t{2} * pointer_size;
  // No SID at all is four zero bytes; a zero pointer with a SID behind it has the SID's revision, 1, where it
  // belongs.
  const bool has_sid = data.size() >= token_user + 8 && data[token_user] == 1;
  if (data.size() >= 4 && load<std::uint32_t>(data.data()) == 0 && !has_sid) return 4;
  if (data.size() < token_user + 8) return std::nullopt;
  const std::size_t size = token_user + 8 + std::size_t{4} * data[token_user + 1];
  return size <= data.size() ? std::optional(size) : std::nullopt;
}

std::uint64_t field_value(Bytes data) {
  return schema::load_unsigned(data);
}

} // namespace etwrelog::kernel
