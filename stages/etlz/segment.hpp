// A segment: some MiB of consecutive bytes of the file, coded so that they can be decoded alone.
#pragma once

#include "etlz/backend/backend.hpp"
#include "etlz/container.hpp"

#include "etwrelog/archive.hpp"

#include <functional>
#include <stop_token>
#include <string>

namespace etwrelog::etlz {

// A stretch of the file: a buffer, or bytes that are none.
struct Part {
  bool buffer = false;
  std::uint64_t at = 0; // in the segment
  std::uint64_t size = 0;
};

// What the index keeps of a segment.
struct SegmentFacts {
  std::int64_t first_time = 0, last_time = 0; // 0, 0 when the segment has no event with a time
  std::uint64_t events = 0, buffers = 0;
  std::uint64_t stream_bytes = 0;  // of streams and objects, that a decoder needs room for
  std::uint64_t scratch_bytes = 0; // the largest compressed buffer, decoded
  std::vector<std::uint32_t> processes,
      threads; // sorted: ids in event headers and payload fields of that meaning
};

// Whether a buffer may stand there, by its header.
[[nodiscard]] bool plausible(const std::uint8_t *at, std::size_t left);

// Bytes of a part once its buffer is decompressed, as its header claims. A compressed buffer that claims to
// hold more than any real one is kept as it stands: there decoded_size() is `part.size`, and believable()
// false.
[[nodiscard]] bool believable(const format::BufferHeader &header);
[[nodiscard]] std::size_t decoded_size(const Part &part, Bytes bytes);

// What a part counts towards the size of a segment: its decoded bytes, slack behind events no more than it
// must for memory's sake, so that the little that is in a sparse trace shares one segment.
[[nodiscard]] std::size_t part_weight(const Part &part, Bytes bytes);

// Splits bytes into parts. Looks for the next buffer after damage. Stops after the part that brings their
// weight to `target`, or before a buffer that the bytes end in, unless it is the first or `final` says
// that nothing follows. Returns the bytes covered.
[[nodiscard]] std::size_t split_parts(Bytes bytes, bool final, std::size_t target, std::vector<Part> &parts);

// Encodes and decodes segments; owns the scratch memory. One a thread.
class SegmentCoder {
public:
  SegmentCoder();
  ~SegmentCoder();

  // Once this is requested encode(), decode() and gives() end at the next part, and what they give means
  // nothing: a segment takes many seconds at ultra.
  void stop_with(std::stop_token stop);
  // Appends the coded segment to `out`. Returns how it is coded: SegmentMethod::model, or at ultra coupled;
  // zstd, which is left to the caller, where it takes more streams than a decoder has.
  SegmentMethod encode(Bytes bytes, std::span<const Part> parts, Level level, std::vector<std::uint8_t> &out,
                       SegmentFacts *facts = nullptr, std::vector<ColumnCost> *explain = nullptr);
  // The events of a part that encode() has just taken, decompressed; empty where there are none that it knows
  // of: no buffer, or a compressed one that is kept as it is.
  [[nodiscard]] Bytes events(std::size_t part) const;
  // `method` is what encode() returned; `bytes` has the size of the original segment. `limit` bounds the
  // memory for streams and objects, `scratch` that for one decoded buffer.
  [[nodiscard]] bool decode(SegmentMethod method, Bytes coded, MutableBytes bytes, std::size_t limit,
                            std::size_t scratch);
  // Whether decode() would give these very bytes: decodes all of them, part by part, and compares each. Of
  // what encode() has just made; takes over its memory.
  [[nodiscard]] bool gives(SegmentMethod method, Bytes coded, Bytes bytes, std::size_t limit,
                           std::size_t scratch);

  // Little content as one stream, for small archives (spec.md, 4). False if it comes to more than `most`
  // bytes, where slack behind events counts for nothing, or if `worth` says of it that the slow coder is not
  // to be tried.
  [[nodiscard]] bool encode_small(Bytes bytes, std::span<const Part> parts, std::size_t most,
                                  const std::function<bool(Bytes)> &worth, std::vector<std::uint8_t> &out);
  // `limit` bounds the memory for the content, that of a buffer when decompressed included.
  [[nodiscard]] bool decode_small(Bytes coded, MutableBytes bytes, std::uint64_t limit);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace etwrelog::etlz
