// What stands around the archives of wrapped traces: which traces there are, and what makes the wrapper (a
// gzip or zip file) out of them again. See spec.md, section 5.
#pragma once

#include "etlz/container.hpp"
#include "etwrelog/codec.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace etwrelog::etlz {

struct WrappedTrace {
  std::string name; // in the wrapper; empty where it names none
  std::uint64_t archive_size = 0, original_size = 0;
};

inline constexpr std::size_t kWrapperHeadSize = 32; // without the list of traces
inline constexpr std::uint64_t kMostWrapperList = 16u << 20;
inline constexpr std::size_t kMostWrappedTraces = 4096;

struct WrapperHead {
  std::uint64_t list_size = 0, list_hash = 0;
};
// Appends head and list.
void write_wrapper_head(std::span<const WrappedTrace> traces, std::vector<std::uint8_t> &out);
[[nodiscard]] Result<WrapperHead> read_wrapper_head(Bytes bytes);
[[nodiscard]] Result<std::vector<WrappedTrace>> read_wrapper_list(const WrapperHead &head, Bytes bytes);

// The recipe comes in chunks of these streams: what is done, the corrections of deflate streams
// (codec/deflate/predictor.hpp) and bytes that are kept as they are.
enum class Recipe : std::uint8_t { shape, heads, places, distances, kept, count_ };
inline constexpr std::size_t kRecipeStreams = static_cast<std::size_t>(Recipe::count_);

inline constexpr std::size_t kChunkHeadSize = 16;
inline constexpr std::uint64_t kMostChunk = 2u << 20; // decoded and stored
struct ChunkHead {
  std::uint64_t size = 0, hash = 0; // of what follows
};
[[nodiscard]] ChunkHead read_chunk_head(const std::uint8_t *bytes);

// Packs chunks and unpacks them.
class ChunkCoder {
public:
  ChunkCoder();
  ~ChunkCoder();
  ChunkCoder(const ChunkCoder &) = delete;
  ChunkCoder &operator=(const ChunkCoder &) = delete;

  // Appends a chunk, head included. `level` is for kept bytes; of corrections there are few.
  void pack(const std::array<Bytes, kRecipeStreams> &streams, Level level, std::vector<std::uint8_t> &out);
  // What follows a head. The streams live until the next call. False if it is damaged.
  [[nodiscard]] bool unpack(Bytes chunk, std::array<Bytes, kRecipeStreams> &streams);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace etwrelog::etlz
