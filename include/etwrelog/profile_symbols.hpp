// Names for the native code of a profile, out of the PDBs of its modules. Experimental, like the profile
// itself. One call at a time on a profile that is changed. What cannot be found is no error: its modules and
// frames say why.
#pragma once

#include "etwrelog/profile.hpp"
#include "etwrelog/symbols.hpp"

#include <vector>

namespace etwrelog {

struct ModuleUse {
  std::uint32_t module = 0;          // in Profile::modules
  std::uint64_t self = 0, total = 0; // weight of samples: in it innermost, through it
};
// Modules with samples, the most used first.
[[nodiscard]] std::vector<ModuleUse> module_use(const Profile &profile);
[[nodiscard]] ModuleIdentity identity_of(const ProfileModule &module);

// Gives function, file and line to frames of native code that have none yet, and adds a frame for each call
// that the compiler put in place. Modules and frames that stay without a name say why. Only modules with
// samples are looked for, the most used first.
void name_native_code(Profile &profile, SymbolResolver &resolver);

} // namespace etwrelog
