#include "where/number.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace etwrelog::where {
namespace {

// From these on the types have whole numbers only.
constexpr double kWholeDoubles = 4503599627370496.0, kWholeFloats = 8388608.0; // 2^52, 2^23

template <class T> int compare(const T &a, const T &b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// Of digits without zeros in front.
int compare_digits(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? compare(a.size(), b.size()) : compare(a, b);
}

template <class T> bool read(std::string_view text, T &value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}

// The whole part and whether there is more, from digits of which the first `point` stand in front of it.
void split(std::string_view digits, std::int64_t point, Number &number) {
  constexpr std::int64_t kMostDigits = 20; // of 2^64
  const auto count = static_cast<std::int64_t>(digits.size());
  number.huge = point > kMostDigits;
  for (std::int64_t i = 0; i < point && !number.huge; ++i) {
    const unsigned digit = i < count ? static_cast<unsigned>(digits[static_cast<std::size_t>(i)] - '0') : 0;
    number.huge = number.whole > (std::numeric_limits<std::uint64_t>::max() - digit) / 10;
    number.whole = number.whole * 10 + digit;
  }
  if (number.huge) number.whole = 0;
  const auto behind = static_cast<std::size_t>(std::clamp<std::int64_t>(point, 0, count));
  number.fraction = digits.find_first_not_of('0', behind) != std::string_view::npos;
}

} // namespace

Number Number::of(std::uint64_t whole, bool negative) {
  Number number;
  number.whole = whole, number.negative = negative && whole != 0;
  char digits[24], nearest[64];
  const std::string_view all(
      digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, whole).ptr - digits));
  const auto real = static_cast<double>(whole);
  const char *const end =
      std::to_chars(nearest, nearest + sizeof nearest, real, std::chars_format::fixed).ptr;
  const int rest = compare_digits(all, {nearest, static_cast<std::size_t>(end - nearest)});
  number.real = number.negative ? -real : real;
  number.single = static_cast<float>(number.real);
  number.rest = number.negative ? -rest : rest;
  return number;
}

Number Number::of(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return of(value < 0 ? ~bits + 1 : bits, value < 0);
}

std::optional<Number> Number::parse(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] | 32) == 'x') {
    std::uint64_t whole = 0;
    const char *const end = digits.data() + digits.size();
    const auto read_hex = std::from_chars(digits.data() + 2, end, whole, 16);
    if (read_hex.ec != std::errc() || read_hex.ptr != end) return std::nullopt;
    return of(whole, negative);
  }
  Number number;
  if (!read(text, number.real) || !std::isfinite(number.real)) return std::nullopt;
  if (!read(text, number.single))
    number.single = std::fabs(number.real) > 1 ? std::copysign(std::numeric_limits<float>::infinity(),
                                                               static_cast<float>(number.real > 0 ? 1 : -1))
                                               : 0;
  const std::size_t e = digits.find_first_of("eE");
  std::int64_t exponent = 0;
  number.written = e == std::string_view::npos;
  if (!number.written) {
    std::string_view behind = digits.substr(e + 1);
    if (behind.starts_with('+')) behind.remove_prefix(1);
    if (!read(behind, exponent)) return std::nullopt;
    digits = digits.substr(0, e);
  }
  const std::size_t dot = std::min(digits.find('.'), digits.size());
  std::string all(digits.substr(0, dot));
  if (dot != digits.size()) all += digits.substr(dot + 1);
  const std::size_t zeros = std::min(all.find_first_not_of('0'), all.size());
  if (zeros == all.size()) { // nothing but zeros
    number.real = 0, number.single = 0;
    return number;
  }
  all.erase(0, zeros);
  number.negative = negative;
  const std::int64_t point = static_cast<std::int64_t>(dot) - static_cast<std::int64_t>(zeros) + exponent;
  split(all, point, number);
  if (!number.written || (number.fraction && std::fabs(number.real) < kWholeDoubles)) return number;
  char nearest[400];
  const char *const end =
      std::to_chars(nearest, nearest + sizeof nearest, std::fabs(number.real), std::chars_format::fixed).ptr;
  const int rest = compare_digits(std::string_view(all).substr(0, static_cast<std::size_t>(point)),
                                  {nearest, static_cast<std::size_t>(end - nearest)});
  number.rest = rest != 0 ? rest : number.fraction ? 1 : 0;
  if (negative) number.rest = -number.rest;
  return number;
}

std::optional<std::int64_t> Number::integer() const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  if (huge || fraction || whole > (negative ? kMost : kMost - 1)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? ~whole + 1 : whole);
}

int order(std::uint64_t value, bool negative, const Number &number) {
  negative = negative && value != 0;
  if (negative != number.negative) return negative ? -1 : 1;
  const int found = number.huge             ? -1
                    : value != number.whole ? compare(value, number.whole)
                                            : -static_cast<int>(number.fraction);
  return negative ? -found : found;
}

int order(double value, const Number &number) {
  const int found = compare(value, number.real);
  return found != 0 ? found : -number.rest;
}

int order(float value, const Number &number) {
  if (number.written && (!number.fraction || std::fabs(number.real) >= kWholeFloats))
    return order(static_cast<double>(value), number);
  return compare(value, number.single);
}

} // namespace etwrelog::where
