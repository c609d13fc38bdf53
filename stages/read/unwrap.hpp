// Compressed streams around a trace: gzip, xz, zstd, bzip2. Decoded here with the libraries alone, one layer,
// every checksum checked: no program is run and nothing behind the stream goes unnoticed.
#pragma once

#include "read/input.hpp"

#include <functional>

namespace etwrelog::read {

enum class Wrapping : std::uint8_t { none, zip, gzip, xz, zstd, bzip2, other };

// By the first bytes. `other`: an archive of a kind that is not read.
[[nodiscard]] Wrapping wrapping_of(const Input &input);
[[nodiscard]] Wrapping wrapping_of(Bytes head);

// The traces in a wrapped input: all of a zip, or the one that anything else is.
[[nodiscard]] Result<std::vector<std::unique_ptr<Input>>> unwrap(const Input &input,
                                                                 const RunOptions &run = {});

// Hands everything that gzip, xz, zstd or bzip2 hold to `sink`, piece by piece: all members, one behind the
// other, as their own tools do. Fails on damage, on a cut stream and on anything behind it that is no member
// (padding with zeros aside, where the format has it).
[[nodiscard]] Result<void> decode_stream(const Input &input, Wrapping wrapping,
                                         const std::function<Result<void>(Bytes)> &sink,
                                         const RunOptions &run = {});

} // namespace etwrelog::read
