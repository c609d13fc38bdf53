// A schema compiled into a flat list of steps, and the loop that runs it over a payload.
//
// The loop reads front to back and tells a sink what it meets. It stops at the first field that does not fit.
// Elements of arrays are limited in number for each event: a count out of a hostile payload costs nothing.
#pragma once

#include "etwrelog/schema.hpp"

#include <algorithm>
#include <cstring>

namespace etwrelog::schema {

inline constexpr std::size_t kMaxFields = 4096;      // of one schema
inline constexpr unsigned kMaxDepth = 16;            // of structures
inline constexpr unsigned kMaxRegisters = 255;       // fields that lengths and counts refer to
inline constexpr std::size_t kMaxElements = 200'000; // of all arrays of one event, members counted too
inline constexpr std::size_t kMaxEmpty = 4096;       // of them those of no bytes, which a count alone makes

// Of the text of one event: 256 bytes for each of its own are more than any real one has. What goes on from
// there was made to fill memory and disk, by long names in arrays of bytes or of nothing.
constexpr std::size_t max_text(std::size_t payload) {
  constexpr std::size_t kLeast = 16u << 10, kMost = 32u << 20;
  return std::min(kMost, kLeast + 256 * std::min(payload, kMost));
}

inline constexpr std::uint8_t kNoRegister = 0xFF;
static_assert(kMaxRegisters <= kNoRegister);

// How JSON shows a value, where that takes no thought.
enum class JsonWay : std::uint8_t { other, number, signed_number, hex, wide_text, narrow_text };

struct Op {
  FieldType type;
  Format format;
  Measure length, repeat;
  bool optional;
  bool zero_ends;
  bool keeps_partial; // an array cut by the payload's end shows the elements before
  std::uint8_t reg;   // where its value is kept for later fields, or kNoRegister
  std::uint8_t size_reg, count_reg;
  std::uint16_t size, count, members;
  std::uint16_t field; // index in Schema::fields
  std::int16_t map;
  std::uint32_t key_at, key_size; // ,"Name": in Program::keys
  std::uint16_t fixed[2];         // bytes, for pointer sizes 4 and 8; 0 for those that vary
  JsonWay way;
};

} // namespace etwrelog::schema

namespace etwrelog {

struct Decoder::Program {
  explicit Program(const Schema &of);

  const Schema *schema;
  std::vector<schema::Op> ops; // as Schema::fields
  std::string keys;            // and some bytes behind them, for TextPen::put_padded()
  std::size_t top_level = 0;
  unsigned registers_used = 0;
  // Offset of each field for pointer sizes 4 and 8, as far as fields of fixed size reach; kNoOffset behind.
  static constexpr std::uint32_t kNoOffset = 0xFFFF'FFFF;
  std::vector<std::uint32_t> offsets[2];
  // How many single values of fixed size the program begins with, and what they come to.
  std::size_t fixed_values[2] = {0, 0}, fixed_bytes[2] = {0, 0};

  [[nodiscard]] std::string_view key(const schema::Op &op) const {
    return {keys.data() + op.key_at, op.key_size};
  }
};

} // namespace etwrelog

namespace etwrelog::schema {

// Bytes of a value whose type alone says it; 0 for those that vary.
[[nodiscard]] constexpr std::size_t fixed_size(FieldType type, std::uint16_t size, unsigned pointer_size) {
  switch (type) {
  case FieldType::u8:
  case FieldType::i8: return 1;
  case FieldType::u16:
  case FieldType::i16: return 2;
  case FieldType::u32:
  case FieldType::i32:
  case FieldType::f32: return 4;
  case FieldType::u64:
  case FieldType::i64:
  case FieldType::f64:
  case FieldType::raw_time:
  case FieldType::filetime: return 8;
  case FieldType::boolean: return size;
  case FieldType::pointer: return pointer_size;
  case FieldType::systemtime:
  case FieldType::guid: return 16;
  default: return 0;
  }
}

[[nodiscard]] inline std::uint64_t load_unsigned(Bytes data) {
  switch (data.size()) {
  case 1: return data[0];
  case 2: return load<std::uint16_t>(data.data());
  case 4: return load<std::uint32_t>(data.data());
  case 8: return load<std::uint64_t>(data.data());
  default: return 0;
  }
}

[[nodiscard]] inline std::int64_t load_signed(Bytes data) {
  switch (data.size()) {
  case 1: return static_cast<std::int8_t>(data[0]);
  case 2: return load<std::int16_t>(data.data());
  case 4: return load<std::int32_t>(data.data());
  case 8: return load<std::int64_t>(data.data());
  default: return 0;
  }
}

// The sink:
//   void value(const Op &, Bytes)             a single value, or all elements of a string of characters
//   void begin_structure(const Op &), end_structure(const Op &)
//   void begin_array(const Op &, Bytes rest), end_array(const Op &, std::uint32_t elements, Bytes data)
//   void begin_element(const Op &), end_element(const Op &)     of arrays of structures
//   void element(const Op &, Bytes)           of other arrays
//   void elements(const Op &, Bytes, std::size_t unit)   may be missing: all of them, each of that size
//   std::size_t mark(); void rollback(std::size_t mark)
//   bool full()                               nothing more can be taken: the event is given up
template <class Sink> class Run {
public:
  Run(const Decoder::Program &program, Bytes payload, unsigned pointer_size, Sink &sink)
      : program_(program), ops_(program.ops.data()), payload_(payload), pointer_size_(pointer_size),
        wide_(pointer_size == 8 ? 1 : 0), sink_(&sink) {
    std::memset(registers_, 0, program.registers_used * sizeof registers_[0]);
  }
  // Goes on where another run stands, with another sink.
  template <class Other>
  Run(const Run<Other> &other, Sink &sink)
      : program_(other.program_), ops_(other.ops_), payload_(other.payload_),
        pointer_size_(other.pointer_size_), wide_(other.wide_), sink_(&sink), at_(other.at_),
        elements_(other.elements_), empty_(other.empty_) {
    std::memcpy(registers_, other.registers_, program_.registers_used * sizeof registers_[0]);
  }
  void redirect(Sink &sink) { sink_ = &sink; }

  // False if the payload ends inside a field or the event was given up.
  bool all() { return fields(fixed(), program_.ops.size()); }
  // Stops before the op with this index.
  bool until(std::size_t end) { return fields(0, end); }
  bool one(std::size_t index) { return step(index); }

  [[nodiscard]] std::size_t position() const { return at_; }
  [[nodiscard]] bool gave_up() const { return gave_up_; }

private:
  template <class> friend class Run;
  [[nodiscard]] std::size_t left() const { return payload_.size() - at_; }

  [[nodiscard]] std::uint64_t register_at(std::uint8_t number) const {
    return number != kNoRegister ? registers_[number] : 0;
  }

  // What a program begins with and needs no questions, if the payload has all of it. Returns where to go on.
  std::size_t fixed() {
    if (payload_.size() < program_.fixed_bytes[wide_]) return 0;
    const std::size_t count = program_.fixed_values[wide_];
    for (const Op *op = ops_; op != ops_ + count; ++op) {
      const Bytes data(payload_.data() + at_, op->fixed[wide_]);
      at_ += data.size();
      if (op->reg != kNoRegister) registers_[op->reg] = load_unsigned(data);
      sink_->value(*op, data);
    }
    return count;
  }

  bool fields(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += 1u + ops_[i].members)
      if (!step(i)) return false;
    return true;
  }

  bool step(std::size_t index) {
    const Op &op = ops_[index];
    if (op.optional && left() < 2) return true;
    if (op.repeat != Measure::natural) return array(op, index);
    if (op.type == FieldType::structure) {
      sink_->begin_structure(op);
      const bool whole = fields(index + 1, index + 1 + op.members);
      sink_->end_structure(op);
      return whole;
    }
    Bytes data;
    if (!fetch(op, data)) return false;
    if (op.reg != kNoRegister) registers_[op.reg] = load_unsigned(data);
    sink_->value(op, data);
    return !cut_;
  }

  bool count_of(const Op &op, std::uint64_t &count) {
    switch (op.repeat) {
    case Measure::constant: count = op.count; return true;
    case Measure::by_field: count = register_at(op.count_reg); return true;
    case Measure::prefix16: return prefix(2, false, count);
    default: count = ~std::uint64_t{0}; return true;
    }
  }

  // What of it is not in the output has not been passed: position() is in front of it.
  bool array(const Op &op, std::size_t index) {
    const std::size_t before = at_;
    std::uint64_t count = 0;
    if (!count_of(op, count)) return at_ = before, false;
    const std::size_t mark = sink_->mark(), begin = at_;
    if (op.format == Format::characters) {
      const std::size_t unit = op.type == FieldType::u16 ? 2 : 1;
      if (count > left() / unit) return at_ = before, false;
      sink_->value(op, take(static_cast<std::size_t>(count) * unit));
      return true;
    }
    sink_->begin_array(op, payload_.subspan(begin));
    std::uint32_t n = 0;
    const bool whole = elements(op, index, count, n);
    if (whole || op.keeps_partial) {
      sink_->end_array(op, n, payload_.subspan(begin, at_ - begin));
    } else {
      sink_->rollback(mark);
      at_ = before;
    }
    return whole;
  }

  bool elements(const Op &op, std::size_t index, std::uint64_t count, std::uint32_t &n) {
    const bool to_end = op.repeat == Measure::to_end;
    const std::size_t unit = op.fixed[wide_];
    // All at once, where a sink wants them so and nothing can go wrong on the way.
    if constexpr (requires(Sink & sink) { sink.elements(op, Bytes(), unit); }) {
      const std::uint64_t all = unit == 0 ? 0 : to_end ? left() / unit : count;
      if (unit != 0 && all <= left() / unit && all <= kMaxElements - elements_ && !sink_->full()) {
        elements_ += static_cast<std::size_t>(all);
        n = static_cast<std::uint32_t>(all);
        sink_->elements(op, take(static_cast<std::size_t>(all) * unit), unit);
        return true;
      }
    }
    for (; n < count; ++n) {
      if (to_end && left() < std::max<std::size_t>(unit, 1)) return true;
      // Elements of no bytes are there all the same.
      if (left() == 0 && !element_is_empty(op, index)) return false;
      elements_ += 1u + op.members;
      if (elements_ > kMaxElements || empty_ > kMaxEmpty || sink_->full()) {
        gave_up_ = true;
        return false;
      }
      const std::size_t before = at_;
      if (op.type == FieldType::structure) {
        sink_->begin_element(op);
        const bool whole = fields(index + 1, index + 1 + op.members);
        sink_->end_element(op);
        if (!whole) return ++n, false;
      } else {
        Bytes data;
        if (!fetch(op, data)) return false;
        sink_->element(op, data);
        if (cut_) return ++n, false;
      }
      if (at_ == before) ++empty_;
    }
    return true;
  }

  // Whether a field, where no byte is left, is there with none.
  [[nodiscard]] bool is_empty(std::size_t index) const {
    const Op &op = ops_[index];
    if (op.optional) return true;
    switch (op.repeat) {
    case Measure::natural: return element_is_empty(op, index);
    case Measure::constant: return op.count == 0 || element_is_empty(op, index);
    case Measure::by_field: return register_at(op.count_reg) == 0 || element_is_empty(op, index);
    case Measure::to_end: return true;
    default: return false;
    }
  }
  [[nodiscard]] bool element_is_empty(const Op &op, std::size_t index) const {
    if (op.type == FieldType::structure) {
      for (std::size_t i = index + 1; i < index + 1 + op.members; i += 1u + ops_[i].members)
        if (!is_empty(i)) return false;
      return true;
    }
    if (op.type < FieldType::astr || op.fixed[wide_] != 0) return false;
    switch (op.length) {
    case Measure::natural: return op.type == FieldType::binary;
    case Measure::constant: return op.size == 0;
    case Measure::by_field: return register_at(op.size_reg) == 0;
    case Measure::to_end: return true;
    default: return false;
    }
  }

  Bytes take(std::size_t n) {
    const Bytes data = payload_.subspan(at_, n);
    at_ += n;
    return data;
  }

  bool prefix(std::size_t bytes, bool swapped, std::uint64_t &value) {
    if (left() < bytes) return false;
    value = load_unsigned(take(bytes));
    if (swapped) value = (value & 0xFF) << 8 | value >> 8;
    return true;
  }

  bool sized(std::uint64_t bytes, Bytes &data) {
    if (bytes > left()) return false;
    data = take(static_cast<std::size_t>(bytes));
    return true;
  }

  bool fetch(const Op &op, Bytes &data) {
    if (const std::size_t n = op.fixed[wide_]; n != 0) {
      if (n > left()) return false;
      data = take(n);
      return true;
    }
    switch (op.type) {
    case FieldType::sid: return left() >= 2 && sized(8 + 4 * std::size_t{payload_[at_ + 1]}, data);
    case FieldType::token_sid: return token_sid(data);
    case FieldType::structure: return false;
    default: break;
    }
    const std::size_t before = at_;
    return variable(op, data) || (at_ = before, false);
  }

  // A TOKEN_USER image (two pointers) and the SID behind it; or a zero dword, unless a SID follows all the
  // same.
  bool token_sid(Bytes &data) {
    if (left() < 4) return false;
    const std::size_t second = at_ + 2 * pointer_size_;
    const bool absent = load<std::uint32_t>(payload_.data() + at_) == 0 &&
                        (second >= payload_.size() || payload_[second] != 1);
    if (absent) {
      at_ += 4;
      data = {};
      return true;
    }
    if (left() < 2 * pointer_size_ + 2) return false;
    const std::size_t size = 8 + 4 * std::size_t{payload_[second + 1]};
    if (size > payload_.size() - second) return false;
    at_ = second;
    data = take(size);
    return true;
  }

  // Strings and binary data.
  bool variable(const Op &op, Bytes &data) {
    const std::size_t unit = op.type == FieldType::wstr ? 2 : 1;
    std::uint64_t n = 0;
    switch (op.length) {
    case Measure::natural: return op.type == FieldType::binary ? sized(0, data) : terminated(unit, data);
    case Measure::constant: return sized(op.size * unit, data);
    case Measure::by_field: {
      const std::uint64_t units = register_at(op.size_reg);
      return units <= left() && sized(units * unit, data);
    }
    case Measure::prefix16: return prefix(2, false, n) && sized(n, data);
    case Measure::prefix16be: return prefix(2, true, n) && sized(n, data);
    case Measure::prefix32: return prefix(4, false, n) && sized(n, data);
    case Measure::to_end: return sized(left(), data);
    }
    return false;
  }

  // Ends with a zero or, at the latest, with the payload; an empty rest holds no string. Half a character at
  // the end is of the string, which is cut there: no other field begins with it.
  bool terminated(std::size_t unit, Bytes &data) {
    if (left() < unit) return false;
    const std::uint8_t *const base = payload_.data();
    std::size_t end = at_;
    if (unit == 1) {
      const void *zero = std::memchr(base + at_, 0, left());
      end = zero == nullptr ? payload_.size()
                            : static_cast<std::size_t>(static_cast<const std::uint8_t *>(zero) - base);
    } else {
      // Four at once: the highest bit of a zero becomes set, and of what is above one at most.
      constexpr std::uint64_t kOnes = 0x0001'0001'0001'0001, kHighest = 0x8000'8000'8000'8000;
      for (; end + 8 <= payload_.size(); end += 8) {
        const auto four = load<std::uint64_t>(base + end);
        if (((four - kOnes) & ~four & kHighest) != 0) break;
      }
      while (end + 2 <= payload_.size() && load<std::uint16_t>(base + end) != 0)
        end += 2;
    }
    data = payload_.subspan(at_, end - at_);
    at_ = end + unit <= payload_.size() ? end + unit : end;
    cut_ = at_ == end && end != payload_.size();
    return true;
  }

  const Decoder::Program &program_;
  const Op *ops_;
  Bytes payload_;
  unsigned pointer_size_, wide_;
  Sink *sink_;
  std::size_t at_ = 0;
  std::size_t elements_ = 0, empty_ = 0;
  bool gave_up_ = false, cut_ = false; // the latter: inside a character
  std::uint64_t registers_[kMaxRegisters];
};

} // namespace etwrelog::schema
