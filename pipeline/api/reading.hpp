// What other parts of the library ask of a traversal beyond its public Query.
#pragma once

#include "etwrelog/trace.hpp"

namespace etwrelog::pipeline {

// A filter that chooses no event but says how to read: no buffer of another processor; and what is wanted
// from outside the time out of an archive's index, where it has a time and an order but no place.
[[nodiscard]] Filter reading_filter(const etwrelog::Trace &trace, std::optional<std::uint16_t> only_processor,
                                    bool state_from_index);

// Where an event lies in its file; of a compressed buffer, and of an archive, where its buffer lies.
[[nodiscard]] std::uint64_t file_offset(const etwrelog::Trace &trace, const Position &position);

} // namespace etwrelog::pipeline
