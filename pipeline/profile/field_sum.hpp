// What the events of a profile weigh where a field of theirs is added up.
#pragma once

#include "etwrelog/schema.hpp"
#include "etwrelog/select.hpp"

#include <optional>
#include <string>
#include <vector>

namespace etwrelog::pipeline {

class FieldSum {
public:
  FieldSum() = default; // of no field
  // Of a field that is one number, by its name without regard to case. Error: no_match where no kind has it.
  static Result<FieldSum> make(const NamedKinds &kinds, const std::string &field);

  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] const std::string &field() const { return field_; } // as the first kind spells it
  // nullopt: the event does not say it, or what it says weighs nothing: less than 0, or more than 10^15.
  // Any thread.
  [[nodiscard]] std::optional<std::uint64_t> of(const EventView &event) const;

private:
  struct Place {
    std::size_t index; // in Schema::fields
    Decoder narrow, wide;
  };
  std::string field_;
  SchemaCatalog catalog_;                    // which the decoders need
  std::vector<std::optional<Place>> places_; // by ordinal
};

} // namespace etwrelog::pipeline
