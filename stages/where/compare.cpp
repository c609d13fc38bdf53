#include "where/compare.hpp"

#include "etwrelog/clock.hpp"
#include "schema/json_sink.hpp"

#include <algorithm>
#include <cmath>

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
      moment.kind = Literal::Kind::number;
      moment.number = Number::of(*filetime);
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
  const std::uint64_t size = negative ? ~bits + 1 : bits;
  return any([&](const Literal &literal) {
    return literal.kind != Literal::Kind::text && fits(op_, order(size, negative, literal.number));
  });
}

bool Test::real(double value) const {
  return any([&](const Literal &literal) {
    return literal.kind != Literal::Kind::text && fits(op_, order(value, literal.number));
  });
}

bool Test::single(float value) const {
  return any([&](const Literal &literal) {
    return literal.kind != Literal::Kind::text && fits(op_, order(value, literal.number));
  });
}

bool Test::moment(std::int64_t filetime) const {
  const std::int64_t nanoseconds = unix_nanoseconds(filetime);
  return any([&](const Literal &literal) {
    const std::int64_t value = literal.kind == Literal::Kind::moment ? filetime : nanoseconds;
    const auto bits = static_cast<std::uint64_t>(value);
    return fits(op_, order(value < 0 ? ~bits + 1 : bits, value < 0, literal.number));
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
      const auto ticks = load<std::uint64_t>(data.data());
      const bool negative = static_cast<std::int64_t>(ticks) < 0;
      return std::ranges::any_of(moments_, [&](const Literal &literal) {
               return literal.kind != Literal::Kind::text &&
                      fits(op_, order(negative ? ~ticks + 1 : ticks, negative, literal.number));
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
      return std::isfinite(value) && single(value); // what is no number is null
    }
    if (numeric_ && op.type == FieldType::f64) {
      const auto value = load<double>(data.data());
      return std::isfinite(value) && real(value);
    }
  }
  scratch.clear();
  schema::append_value(scratch, op, data, pointer_size, nullptr);
  if (scratch == "null") return false; // no SID, no number
  schema::unquote_json(scratch, 0);
  if (op.type == FieldType::guid && one) return guid(scratch);
  if (map != nullptr && one && whole)
    if (const std::string name = map->text(schema::load_unsigned(data), data.size()); !name.empty())
      return texts(scratch, name);
  return text(scratch);
}

} // namespace etwrelog::where
