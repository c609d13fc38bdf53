// Which keys of the registry events are about. The kernel calls a key by the address of its control block
// (KCB), "KeyHandle" in its events, and tells the whole name when it makes and drops one, and of all that are
// there at the end; everything else has names that begin at such a key.
#pragma once

#include "passes/object_names.hpp"

namespace etwrelog::pipeline {

// What a kernel event of this hook tells: the whole name of a key.
[[nodiscard]] std::optional<ObjectName> key_name_of(const EventView &event, std::uint16_t hook,
                                                    std::int64_t time);

// Appends the whole name of the key that a kernel event is about: "\REGISTRY\MACHINE\SOFTWARE\Contoso". Of an
// event about a value that is the key that has it. False, and nothing appended, if it is about none, or one
// that `keys` does not name. Events before Windows Vista have numbers of another kind.
[[nodiscard]] bool append_key_of(const EventView &event, std::uint16_t hook, std::int64_t time,
                                 const ObjectNames &keys, std::string &out);

} // namespace etwrelog::pipeline
