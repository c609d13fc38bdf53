// PDB files that PerfView puts beside the trace into a .etl.zip, in the layout of a symbol store.
#pragma once

#include "etwrelog/bytes.hpp"

#include <functional>
#include <string>

namespace etwrelog::symbols {

// A member's name and content; true: this is the one that was looked for.
using VisitMember = std::function<bool(const std::string &, Bytes)>;

// Visits members of the archive whose last name is `name`, in any case, of at most `most` bytes: those in a
// folder called `key` first. True if one was the one.
[[nodiscard]] bool visit_zip_members(const std::string &path, const std::string &name, const std::string &key,
                                     std::uint64_t most, const VisitMember &visit);

} // namespace etwrelog::symbols
