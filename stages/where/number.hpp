// Numbers as conditions have them, compared with values of events without rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace etwrelog::where {

struct Number {
  bool negative = false;   // below zero
  bool huge = false;       // 2^64 or more, without the sign
  bool fraction = false;   // there is something behind the point
  std::uint64_t whole = 0; // in front of it, without the sign; of huge ones nothing
  double real = 0;         // the nearest there is
  float single = 0;        // too
  bool written = true;     // digit by digit, without an exponent
  int rest = 0;            // the number less `real`, below, at or above 0; 0 where the nearest is meant

  static Number of(std::uint64_t whole, bool negative);
  static Number of(std::int64_t value);
  // "-17", "0x1f", "1.5e3"; none for what is no number, or none that a double can come near to.
  static std::optional<Number> parse(std::string_view text);

  // The number, if it is one of these.
  [[nodiscard]] std::optional<std::int64_t> integer() const;
};

// Below, at or above 0 as the value is below, at or above the number. Integers without their sign.
[[nodiscard]] int order(std::uint64_t value, bool negative, const Number &number);
// Of reals: exact with whole numbers that are written without an exponent. Others stand for the nearest
// number that the type has, as 0.1 does: it is shown as that.
[[nodiscard]] int order(double value, const Number &number);
[[nodiscard]] int order(float value, const Number &number);

} // namespace etwrelog::where
