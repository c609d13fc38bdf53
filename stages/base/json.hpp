// Numbers of JSON that anyone may have written. nlohmann::json makes any number into any type it is asked
// for, which for one that does not fit, such as 1e300 as a count, is undefined: whole numbers of files are
// taken from here.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace etwrelog::base {

// Throws std::out_of_range unless the value is a number without a fraction that fits.
template <std::unsigned_integral T> [[nodiscard]] T whole_number(const nlohmann::json &value) {
  if (value.is_number_float()) { // programs that hold all numbers as double may write 5 as 5.0
    constexpr double kEnd = 2.0 * (std::numeric_limits<T>::max() / 2 + 1); // exact, as the most is not
    const auto number = value.get<double>();
    if (number >= 0 && number < kEnd && static_cast<double>(static_cast<T>(number)) == number)
      return static_cast<T>(number);
  } else if (value.is_number_unsigned()) { // any that is not negative
    const auto number = value.get<std::uint64_t>();
    if (number <= std::numeric_limits<T>::max()) return static_cast<T>(number);
  }
  throw std::out_of_range((value.is_number() ? value.dump() : value.type_name()) +
                          std::string(" is not a whole number from 0 to ") +
                          std::to_string(std::numeric_limits<T>::max()));
}

// `otherwise` if the object has no such member.
template <std::unsigned_integral T>
[[nodiscard]] T whole_number(const nlohmann::json &object, const char *name, T otherwise) {
  const auto at = object.find(name);
  return at == object.end() ? otherwise : whole_number<T>(*at);
}

// JSON all of whose numbers are whole, of at most 64 bits; throws std::exceptions.
[[nodiscard]] inline nlohmann::json parse_whole_numbers(std::string_view text) {
  return nlohmann::json::parse(text, [](int, nlohmann::json::parse_event_t, const nlohmann::json &value) {
    if (value.is_number_float()) throw std::out_of_range("a number that is not whole");
    return true;
  });
}

} // namespace etwrelog::base
