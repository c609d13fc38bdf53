// What the message of an event says.
#pragma once

#include "etwrelog/schema.hpp"

#include <span>
#include <string>
#include <string_view>

namespace etwrelog::pipeline {

inline constexpr std::size_t kLongestMessage = 64u << 10; // of bytes, as on Windows; what is longer is cut

// `message` with the values in their places: %1 is the first field, %1!08x! the same as printf writes it; %n
// a line feed, %t a tab, %% a percent sign. As FormatMessage has it, but that a format which does not fit its
// value, or that is none, is as good as !s!.
[[nodiscard]] std::string message_text(std::string_view message, const Schema &schema,
                                       std::span<const FieldValue> values);

} // namespace etwrelog::pipeline
