// The language of conditions on events:
//
//   condition  = both { "or" both } ;            both = term { "and" term } ;
//   term       = "not" term | "(" condition ")" | name operator value | name [ "not" ] "in" "(" values ")" ;
//   operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~" ;          (== and <> are taken too)
//   name       = column of all events | field | field "." member | "fields." field | "`any text`" ;
//   value      = number | 0x number | "text" | 'text' | true | false ;
//
// A comparison with what an event does not have is false, whatever the operator; `not` of it is true.
#pragma once

#include "etwrelog/error.hpp"
#include "where/number.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace etwrelog::where {

enum class Operator : std::uint8_t {
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  match,
  mismatch
};

struct Literal {
  enum class Kind : std::uint8_t { number, text, boolean, moment } kind = Kind::text;
  Number number;    // boolean: 0 or 1; moment, which a text may stand for: a FILETIME
  std::string text; // of all: as it is written, without quotes
};

struct Comparison {
  std::vector<std::string> path; // a field and its members
  bool only_fields = false;      // said "fields.": no column of all events is meant
  std::size_t name_at = 0, value_at = 0;
  Operator op = Operator::equal;
  std::vector<Literal> values; // one; of `in` any number: equal to any of them
};

struct Node {
  enum class Kind : std::uint8_t { both, either, negation, comparison } kind = Kind::comparison;
  std::uint32_t left = 0, right = 0; // of a comparison: `left` is its index
};

struct Syntax {
  std::string text;
  std::vector<Comparison> comparisons;
  std::vector<Node> nodes; // children before their parents: the root is the last
};

// Errors are `usage` and say where in the text and what was expected there.
[[nodiscard]] Result<Syntax> parse(std::string_view text);

// The error for something at a byte of the text of a condition.
[[nodiscard]] Error error_at(std::string_view text, std::size_t at, std::string what);

} // namespace etwrelog::where
