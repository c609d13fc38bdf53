// One field of the events that a profile is of: what they weigh, or by what their stacks are told apart.
#pragma once

#include "etwrelog/schema.hpp"
#include "etwrelog/select.hpp"

#include <optional>
#include <string>
#include <vector>

namespace etwrelog::pipeline {

class EventField {
public:
  enum class Of : std::uint8_t { numbers, anything };

  EventField() = default; // of no field
  // By its name, without regard to case. Error: no_match about the option where no kind has it; of numbers:
  // one that is one number.
  static Result<EventField> make(const NamedKinds &kinds, const std::string &name, Of what, Option option);

  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] const std::string &name() const { return name_; } // as the first kind spells it
  [[nodiscard]] bool is_code() const { return is_code_; }         // of every kind: an address of code
  // nullopt: the event has none. Any thread.
  [[nodiscard]] std::optional<FieldValue> of(const EventView &event) const;

private:
  struct Place {
    std::size_t index; // in Schema::fields
    Decoder narrow, wide;
  };
  std::string name_;
  bool is_code_ = false;
  SchemaCatalog catalog_;                    // which the decoders need
  std::vector<std::optional<Place>> places_; // by ordinal
};

inline constexpr std::uint64_t kMostWeight = 1'000'000'000'000'000; // so that sums keep within 64 bits
// What a number weighs; nullopt of one below 0 or above that, which is none that anything weighs.
[[nodiscard]] std::optional<std::uint64_t> weight_of(const FieldValue &value);

} // namespace etwrelog::pipeline
