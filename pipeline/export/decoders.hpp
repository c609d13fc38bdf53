// A decoder for each event of a trace.
#pragma once

#include "etwrelog/schema.hpp"

namespace etwrelog::pipeline {

// Compiled once for all schemas of a catalog, which outlives it; any thread.
class Decoders {
public:
  explicit Decoders(const SchemaCatalog &catalog) {
    for (const Schema *schema : catalog.all()) {
      narrow_.emplace_back(*schema, 4);
      wide_.emplace_back(*schema, 8);
    }
  }
  // `schema`: the catalog's own of this event.
  [[nodiscard]] const Decoder &of(const EventView &event, const Schema &schema) const {
    return fitting_decoder(event, narrow_[schema.ordinal], wide_[schema.ordinal]);
  }

private:
  std::vector<Decoder> narrow_, wide_; // by ordinal
};

} // namespace etwrelog::pipeline
