// Which pointer size the payload of an event was written with: what etwrelog::fitting_decoder() goes by.
#pragma once

#include "schema/program.hpp"

namespace etwrelog::schema {

// 4 or 8; `program`: of the event's schema.
[[nodiscard]] unsigned fitting_pointer_size(const EventView &event, const Decoder::Program &program);

// What is inside of a decoder.
[[nodiscard]] const Decoder::Program &program_of(const Decoder &decoder);
[[nodiscard]] unsigned pointer_size_of(const Decoder &decoder);

} // namespace etwrelog::schema
