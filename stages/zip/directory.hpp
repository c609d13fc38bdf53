// What a zip file says of its members in its central directory, which stands at the end.
#pragma once

#include "base/input.hpp"

#include <vector>

namespace etwrelog::zip {

struct Member {
  std::string name; // in the bytes that the file has it in: UTF-8 or somebody's code page
  unsigned flags = 0, method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, size = 0;
  std::uint64_t entry_at = 0, head_at = 0, data_at = 0; // in the directory, of the local header, behind that
  bool file = true;                                     // no folder and no link
};

inline constexpr unsigned kEncrypted = 1, kDescribed = 8; // flags; the latter: sizes stand behind it
// Stands where a number does not fit, which is then in the part for 64 bits.
inline constexpr std::uint32_t kElsewhere = 0xFFFF'FFFF;
inline constexpr unsigned kStored = 0, kDeflated = 8; // methods

// All members, in the order of the file. An error where the directory and the rest of the file do not say the
// same, or where there is anything in the file that belongs to no member: what a cut, damaged or appended
// file has lost could be whole traces. Refused are more members than `most`.
[[nodiscard]] Result<std::vector<Member>> members_of(const base::InputBytes &zip,
                                                     std::size_t most = 1u << 17);

} // namespace etwrelog::zip
