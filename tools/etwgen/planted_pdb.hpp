// What a trace has to say of a program so that its PDB is found and names its code.
#pragma once

#include "machine.hpp"

#include "etwrelog/error.hpp"

namespace etwrelog::gen {

[[nodiscard]] Result<PlantedPdb> read_planted_pdb(const std::string &path);

} // namespace etwrelog::gen
