// Reads PDB files. Only pdb.cpp knows of LLVM; built without it, everything here says so.
#pragma once

#include "symbols/table.hpp"

#include <optional>

namespace etwrelog::symbols {

[[nodiscard]] bool pdb_support();

enum class PdbKind : std::uint8_t { none, msf, msfz };
[[nodiscard]] PdbKind pdb_kind(Bytes start); // by the first 32 bytes

// The identity that images name: the GUID, and the age of the debug information. `file` is the whole PDB.
[[nodiscard]] Result<Identity> pdb_identity(Bytes file);
// Functions, publics, calls put in place, lines. `path` is for the record only.
[[nodiscard]] Result<RawSymbols> read_pdb(Bytes file, const std::string &path);

// "?physics@game@@YAHH@Z" is "game::physics"; "_name@8" and "_name" of 32-bit code are "name". What is no
// decorated name stays as it is, and so does what would get too long (undecorated_size.hpp).
[[nodiscard]] std::string undecorated(std::string_view name, bool x86);

} // namespace etwrelog::symbols
