#include "where/compare.hpp"

#include "etwrelog/clock.hpp"
#include "schema/json_sink.hpp"

#include <algorithm>

namespace etwrelog::where {
namespace {

// `order`: below, at or above 0 as the value is below, at or above the literal.
bool fits(Operator op, int order) {
  switch (op) {
  case Operator::equal:
  case Operator::unequal: return order == 0; // the latter is turned round by who asks
  case Operator::less: return order < 0;
  case Operator::less_equal: return order <= 0;
  case Operator::greater: return order > 0;
  case Operator::greater_equal: return order >= 0;
  case Operator::match:
  case Operator::mismatch: break;
  }
  return false;
}

template <class T> int order_of(const T &a, const T &b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

bool is_negation(Operator op) {
  return op == Operator::unequal || op == Operator::mismatch;
}

// "{9E81...}" as GUIDs are shown.
std::string folded_guid(std::string_view text) {
  const auto guid = parse_guid(text);
  return guid ? to_string(*guid) : std::string(text);
}

} // namespace

Result<Test> Test::make(const Comparison &comparison, std::string_view text) {
  Test test;
  test.op_ = comparison.op;
  test.literals_ = comparison.values;
  test.numeric_ =
      std::ranges::all_of(test.literals_, [](const Literal &l) { return l.kind != Literal::Kind::text; });
  if (comparison.op == Operator::match || comparison.op == Operator::mismatch) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_dot_nl(true);
    auto pattern = std::make_shared<const re2::RE2>(comparison.values[0].text, options);
    if (!pattern->ok())
      return error_at(text, comparison.value_at, "no regular expression (RE2): " + pattern->error());
    test.pattern_ = std::move(pattern);
  }
  for (const Literal &literal : test.literals_) {
    Literal moment = literal;
    if (const auto filetime = parse_filetime(literal.text); literal.kind == Literal::Kind::text && filetime) {
      moment.kind = Literal::Kind::integer;
      moment.bits = static_cast<std::uint64_t>(*filetime);
      moment.negative = *filetime < 0;
      moment.real = static_cast<double>(*filetime);
    }
    test.moments_.push_back(std::move(moment));
    test.guids_.push_back(folded_guid(literal.text));
  }
  return test;
}

void Test::replace(std::vector<Literal> literals) {
  literals_ = std::move(literals);
  numeric_ = true;
}

template <class Compare> bool Test::any(Compare &&compare) const {
  return std::ranges::any_of(literals_, compare) != is_negation(op_);
}

bool Test::integer(std::uint64_t bits, bool negative) const {
  return any([&](const Literal &literal) {
    switch (literal.kind) {
    case Literal::Kind::text: return false;
    case Literal::Kind::real: {
      const double value =
          negative ? static_cast<double>(static_cast<std::int64_t>(bits)) : static_cast<double>(bits);
      return fits(op_, order_of(value, literal.real));
    }
    default: // numbers of one sign are in the order of their two's complements
      if (negative != literal.negative) return fits(op_, negative ? -1 : 1);
      return fits(op_, order_of(bits, literal.bits));
    }
  });
}

bool Test::real(double value) const {
  return any([&](const Literal &literal) {
    return literal.kind != Literal::Kind::text && fits(op_, order_of(value, literal.real));
  });
}

bool Test::single(float value) const {
  return any([&](const Literal &literal) {
    return literal.kind != Literal::Kind::text &&
           fits(op_, order_of(value, static_cast<float>(literal.real)));
  });
}

bool Test::positive(std::string_view text) const {
  if (pattern_) return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern_);
  return std::ranges::any_of(literals_,
                             [&](const Literal &literal) { return fits(op_, text.compare(literal.text)); });
}

bool Test::text(std::string_view value) const {
  return positive(value) != is_negation(op_);
}

bool Test::texts(std::string_view value, std::string_view other) const {
  return (positive(value) || positive(other)) != is_negation(op_);
}

bool Test::guid(std::string_view shown) const {
  if (pattern_) return text(shown);
  return std::ranges::any_of(guids_, [&](const std::string &guid) {
           return fits(op_, shown.compare(guid));
         }) != is_negation(op_);
}

bool Test::value(const schema::Op &op, Bytes data, unsigned pointer_size, const ValueMap *map,
                 std::string &scratch) const {
  const bool one = op.repeat == Measure::natural || op.format != Format::characters;
  const bool whole =
      op.type <= FieldType::i64 || (op.type >= FieldType::boolean && op.type <= FieldType::filetime);
  if (one && !pattern_) {
    if (op.type == FieldType::filetime) {
      const auto ticks = load<std::int64_t>(data.data());
      return std::ranges::any_of(moments_, [&](const Literal &literal) {
               if (literal.kind == Literal::Kind::text) return false;
               if (literal.kind == Literal::Kind::real)
                 return fits(op_, order_of(static_cast<double>(ticks), literal.real));
               const bool negative = ticks < 0;
               if (negative != literal.negative) return fits(op_, negative ? -1 : 1);
               return fits(op_, order_of(static_cast<std::uint64_t>(ticks), literal.bits));
             }) != is_negation(op_);
    }
    if (numeric_ && op.type == FieldType::boolean)
      return integer(schema::load_unsigned(data) != 0 ? 1 : 0, false);
    if (numeric_ && whole) {
      std::uint64_t bits = schema::load_unsigned(data);
      if (op.format == Format::port && data.size() == 2) bits = (bits & 0xFF) << 8 | bits >> 8;
      const bool is_signed =
          (op.type >= FieldType::i8 && op.type <= FieldType::i64) || op.type == FieldType::raw_time;
      const unsigned unused = 64 - 8 * static_cast<unsigned>(data.size());
      if (is_signed && unused < 64)
        bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
      return integer(bits, is_signed && static_cast<std::int64_t>(bits) < 0);
    }
    if (numeric_ && op.type == FieldType::f32) {
      const auto value = load<float>(data.data());
      return value == value && single(value);
    }
    if (numeric_ && op.type == FieldType::f64) {
      const auto value = load<double>(data.data());
      return value == value && real(value);
    }
  }
  scratch.clear();
  schema::append_value(scratch, op, data, pointer_size, nullptr);
  if (scratch == "null") return false; // no SID, no number
  schema::unquote_json(scratch, 0);
  if (op.type == FieldType::guid && one) return guid(scratch);
  if (map != nullptr && one && whole)
    if (const std::string name = map->text(schema::load_unsigned(data)); !name.empty())
      return texts(scratch, name);
  return text(scratch);
}

} // namespace etwrelog::where
