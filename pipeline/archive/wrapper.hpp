// Traces in a gzip or zip file, packed so that this very file comes back.
//
// An archive of each trace, and a recipe for what was around: bytes that are kept, and deflate streams that
// are made again out of the traces and a few corrections (codec/deflate/predictor.hpp). What makes them is
// part of the archive format, no library: another version of zlib would change nothing.
#pragma once

#include "archive/archive.hpp"
#include "codec/deflate/predictor.hpp"
#include "etlz/wrapper.hpp"

namespace etwrelog::pipeline {

// A piece of a wrapper, in order; what lies between them is kept.
struct WrapperPiece {
  bool deflated = true; // else the trace's bytes as they are
  std::uint64_t at = 0, end = 0;
  std::size_t trace = 0;
  std::uint64_t from = 0, size = 0; // of the trace
};

inline constexpr std::size_t kMostPieces = 1u << 20; // of one wrapper

// Where a gzip or zip file has its traces, and in which order. nullopt where that cannot be said of all: they
// are encrypted, compressed in another way, or not where the file says.
struct WrapperPlan {
  std::vector<WrapperPiece> pieces;
  std::vector<std::size_t> order; // of the traces: as their pieces come
};
[[nodiscard]] Result<std::optional<WrapperPlan>>
plan_wrapper(const read::Input &wrapper, std::span<const std::unique_ptr<read::Input>> traces,
             const std::stop_token &stop);

// Whether an input is of a kind that can be packed in this way.
[[nodiscard]] bool may_be_wrapped(const read::Input &input);

// Packs a file of wrapped traces, having made it again out of the archive and compared. nullopt, and nothing
// written, where there are none in it, it cannot be made again, or packing it as any file takes little more.
[[nodiscard]] Result<std::optional<PackReport>> pack_wrapped(const read::Input &input, ByteSink &out,
                                                             const ArchiveOptions &options);

// As unpack_file.
[[nodiscard]] Result<UnpackReport> unpack_wrapped(const read::Input &archive, ByteSink *out,
                                                  const ArchiveOptions &options);

// --- For the two of them

using codec::deflate::Fetch;
using codec::deflate::Parameters;
using codec::deflate::Step;

// Reads of an input, until it is to stop.
[[nodiscard]] Fetch fetch_of(const read::Input &input, const std::stop_token &stop);

// That the archive is what was written, from end to end: far quicker than decoding it. Of what is read by
// its index alone, that the segments' headers say the same.
[[nodiscard]] Result<void> check_stored(const read::Input &archive, const ArchiveIndex &index,
                                        const std::stop_token &stop);
[[nodiscard]] Result<void> check_segment_headers(const read::Input &archive, const ArchiveIndex &index);

// What the first byte of each step in the stream of shapes says.
enum class RecipeStep : std::uint8_t {
  end = 0,
  kept = 1,     // varint: so many kept bytes
  copied = 2,   // varint: so many bytes of the trace
  deflated = 3, // varint: bytes of the trace; parameters (codec/deflate/matcher.hpp), then units
};
inline constexpr std::size_t kMostKept = 256u << 10; // in one step

} // namespace etwrelog::pipeline
