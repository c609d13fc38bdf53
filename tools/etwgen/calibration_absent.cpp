// Stands in for calibration.cpp where libdeflate or liblzma was not found.
#include "calibration.hpp"

#include <fmt/format.h>

namespace etwrelog::gen {

int check_calibration(const Profile *, std::optional<std::uint64_t>, std::uint64_t, unsigned) {
  fmt::print(stderr,
             "etwgen: error: built without libdeflate and liblzma, by which the profiles are measured\n");
  return 1;
}

} // namespace etwrelog::gen
