// The traces in a zip: PerfView's .etl.zip, Visual Studio's .diagsession, or any other.
#pragma once

#include "read/input.hpp"

namespace etwrelog::read {

struct UnzipLimits {
  // A recording with the symbols of all its processes has some thousand members, and a few traces.
  std::size_t members = 1u << 17, traces = 256;
  // Deflate makes at most 1032 bytes of one. More in all: the members overlap, as in archives that are made
  // to fill disks. Other methods do better on zeros; so many bytes are always allowed.
  std::uint64_t of_one_byte = 1032, bytes = std::uint64_t{1} << 30;
};

// Every member that is a trace, in the order of the archive: what is called .etl or .etlz must be one, of
// what is called otherwise the first bytes decide (a .diagsession may give its traces any name). All else in
// it is left alone. Each becomes a nameless temporary file; nothing is written under a member's name.
//
// An error names the member. What cannot be unpacked is one unless its name is that of something else, as
// .pdb: it may be a trace. So is whatever zip/directory.hpp finds wrong. Refused are archives with more
// members or traces than a recording has, with two traces of one name, with traces that are compressed once
// more, and those that unpack to more than their own bytes can hold.
[[nodiscard]] Result<std::vector<std::unique_ptr<Input>>>
unzip(const Input &input, const RunOptions &run = {}, const UnzipLimits &limits = {});

} // namespace etwrelog::read
