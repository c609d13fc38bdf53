// One comparison with one value.
#pragma once

#include "schema/program.hpp"
#include "where/syntax.hpp"

#include <memory>

#include <re2/re2.h>

namespace etwrelog::where {

// A comparison ready for use; any thread.
class Test {
public:
  // Fails for a regular expression that is none.
  static Result<Test> make(const Comparison &comparison, std::string_view text);

  // With an integer: `negative` ones as two's complement.
  [[nodiscard]] bool integer(std::uint64_t bits, bool negative) const;
  [[nodiscard]] bool real(double value) const;
  // `single`: a 32-bit number, of which literals have more digits.
  [[nodiscard]] bool single(float value) const;
  [[nodiscard]] bool text(std::string_view value) const;
  [[nodiscard]] bool texts(std::string_view value, std::string_view other) const; // two names of one thing
  // Whatever case and braces the literals have.
  [[nodiscard]] bool guid(std::string_view shown) const;
  // With a moment, which literals that are numbers name in nanoseconds since 1970.
  [[nodiscard]] bool moment(std::int64_t filetime) const;
  // With a field's value; what stands in `scratch` is lost.
  [[nodiscard]] bool value(const schema::Op &op, Bytes data, unsigned pointer_size, const ValueMap *map,
                           std::string &scratch) const;

  [[nodiscard]] bool is_pattern() const { return pattern_ != nullptr; }
  // All literals are numbers, true or false.
  [[nodiscard]] bool is_numeric() const { return numeric_; }
  [[nodiscard]] Operator op() const { return op_; }
  [[nodiscard]] const std::vector<Literal> &literals() const { return literals_; }
  void replace(std::vector<Literal> literals); // by numbers and moments

private:
  template <class Compare> [[nodiscard]] bool any(Compare &&compare) const;
  [[nodiscard]] bool positive(std::string_view text) const;

  Operator op_ = Operator::equal;
  std::vector<Literal> literals_;
  std::vector<Literal> moments_;   // of a FILETIME
  std::vector<std::string> guids_; // in the way that GUIDs are shown
  bool numeric_ = false;
  std::shared_ptr<const re2::RE2> pattern_;
};

} // namespace etwrelog::where
