// An entropy coder for the streams that zstd leaves large, at the level that has the time: each nibble is
// coded by the average of two adaptive models that see different contexts. Integers only, so that every
// machine makes the same bytes.
#pragma once

#include "etlz/model/streams.hpp"

#include <array>
#include <memory>
#include <vector>

namespace etwrelog::etlz {

// What the two models of a stream know. A context is a set of bytes that are known already: the low three
// bits stand for the last three bytes of the stream, the next three for the byte at the same place in the
// three last streams of the same size.
struct MixerSetup {
  std::uint8_t long_context = 0, short_context = 0;
  std::uint8_t table_bits = 0; // 4..most_table_bits, of contexts by hash
  std::uint8_t slowest = 5;    // rate of adaption, as a shift: 4..7

  // What a stream of this size may use: filling the tables must not take longer than decoding it.
  [[nodiscard]] static constexpr unsigned most_table_bits(std::size_t size) {
    return std::clamp<unsigned>(static_cast<unsigned>(std::bit_width(size)), 10, 18) - 4;
  }
  [[nodiscard]] bool valid(std::size_t size) const {
    return long_context < 64 && short_context < 64 && table_bits >= 4 &&
           table_bits <= most_table_bits(size) && slowest >= 4 && slowest <= 7;
  }
  [[nodiscard]] unsigned siblings() const { // how many other streams are looked at
    const unsigned s = (long_context | short_context) >> 3u;
    return s >= 4 ? 3 : s >= 2 ? 2 : s;
  }
};

using Siblings = std::array<const std::uint8_t *, 3>; // the nearest before the stream first

// Memory of one thread.
class Mixer {
public:
  Mixer();
  ~Mixer();
  Mixer(const Mixer &) = delete;
  Mixer &operator=(const Mixer &) = delete;

  // Replaces `out`.
  void encode(Bytes content, const MixerSetup &setup, const Siblings &siblings,
              std::vector<std::uint8_t> &out);
  // Fills `content`; false when `in` is not what encode made of it.
  [[nodiscard]] bool decode(Bytes in, const MixerSetup &setup, const Siblings &siblings,
                            MutableBytes content);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace etwrelog::etlz
