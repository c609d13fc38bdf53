// The match finders of all encoders. They only propose matches; what one is worth, and which positions are
// offered at all, is the encoder's affair (one that imitates Windows would enter token starts only).
//
// Positions are entered in rising order. Distances are limited per call, so that a format with independent
// chunks needs no reset between them; entries too far back are simply not taken.
#pragma once

#include "base/cpu.hpp"
#include "codec/match_length.hpp"

#include <algorithm>
#include <cassert>
#include <vector>

namespace etwrelog::codec {

struct Match {
  std::size_t length = 0; // 0: none
  std::size_t distance = 0;
};

// Bytes that must follow a position for it to be entered or matched.
inline constexpr std::size_t kFinderNeeds = 8;

// Two candidates a position: the latest with the same five bytes, and failing that the latest with the same
// three. Only positions that are asked for are entered.
class HashProbe {
public:
  HashProbe(unsigned long_bits, unsigned short_bits)
      : long_shift_(64 - long_bits), short_shift_(32 - short_bits), long_(std::size_t{1} << long_bits),
        short_(std::size_t{1} << short_bits) {}

  void reset() {
    std::fill(long_.begin(), long_.end(), 0);
    std::fill(short_.begin(), short_.end(), 0);
  }

  // kFinderNeeds bytes can be read at begin + pos; the match ends at `end` at the latest.
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE Match find(const std::uint8_t *begin, std::size_t pos,
                                                  std::size_t max_distance, const std::uint8_t *end) {
    const std::uint8_t *const at = begin + pos;
    const auto bytes = load<std::uint64_t>(at);
    const auto low = static_cast<std::uint32_t>(bytes);
    std::uint32_t &long_entry = long_[(bytes << 24) * 0x9E37'79B1'85EB'CA87u >> long_shift_];
    std::uint32_t &short_entry = short_[(low << 8) * 2654435761u >> short_shift_];
    const std::size_t here = pos + 1; // 0 is none
    const std::size_t long_distance = long_entry != 0 ? here - long_entry : ~std::size_t{0};
    const std::size_t short_distance = short_entry != 0 ? here - short_entry : ~std::size_t{0};
    long_entry = short_entry = static_cast<std::uint32_t>(here);
    if (long_distance <= max_distance && load<std::uint32_t>(at - long_distance) == low) {
      return {match_length(at - long_distance, at, end), long_distance};
    }
    if (short_distance <= max_distance &&
        ((load<std::uint32_t>(at - short_distance) ^ low) & 0xFF'FFFF) == 0) {
      return {match_length(at - short_distance, at, end), short_distance};
    }
    return {};
  }

private:
  unsigned long_shift_;
  unsigned short_shift_;
  std::vector<std::uint32_t> long_; // position + 1
  std::vector<std::uint32_t> short_;
};

// All earlier positions: the latest by a hash of three bytes, and chains by a hash of four.
class HashChain {
public:
  HashChain(std::size_t max_input, std::size_t window)
      : mask_(std::bit_ceil(std::min(window, std::max<std::size_t>(max_input, 1)) + 1) - 1),
        head3_(std::size_t{1} << kBits3), head4_(std::size_t{1} << kBits4), previous_(mask_ + 1) {}

  void reset(Bytes in) {
    in_ = in;
    next_ = 0;
    std::fill(head3_.begin(), head3_.end(), 0);
    std::fill(head4_.begin(), head4_.end(), 0);
  }

  // Calls better(length, distance) for every match at `pos` that is longer than `beat` and all before it,
  // nearest first, having looked at `depth` candidates of the chain. Enters all positions up to `pos`, none
  // twice.
  template <class Better>
  ETWRELOG_ALWAYS_INLINE void visit(std::size_t pos, std::size_t beat, unsigned depth,
                                    std::size_t max_distance, const std::uint8_t *end, const Better &better) {
    if (in_.size() - pos < kFinderNeeds) {
      return;
    }
    enter_up_to(pos);
    const std::uint8_t *const at = in_.data() + pos;
    const auto bytes = load<std::uint32_t>(at);
    std::uint32_t &head3 = head3_[hash3(bytes)];
    std::uint32_t &head4 = head4_[hash4(bytes)];
    const std::size_t here = pos + 1; // 0 is none
    if (beat < 3 && head3 != 0 && here - head3 <= max_distance) {
      const std::size_t distance = here - head3;
      if (((load<std::uint32_t>(at - distance) ^ bytes) & 0xFF'FFFF) == 0) {
        const std::size_t length = match_length(at - distance, at, end);
        if (length > beat) {
          better(length, distance);
          beat = length;
        }
      }
    }
    const auto room = static_cast<std::size_t>(end - at);
    for (std::size_t candidate = head4; depth != 0 && candidate != 0 && beat < room; --depth) {
      const std::size_t distance = here - candidate;
      if (distance > max_distance) {
        break;
      }
      const std::uint8_t *const from = at - distance;
      // Whatever is longer has the same four bytes around the end of the best so far.
      const std::size_t probe = beat < 4 ? 0 : beat - 3;
      if (load<std::uint32_t>(from + probe) == load<std::uint32_t>(at + probe)) {
        const std::size_t length = match_length(from, at, end);
        if (length > beat) {
          better(length, distance);
          beat = length;
        }
      }
      candidate = previous_[candidate & mask_];
    }
    previous_[here & mask_] = head4;
    head3 = head4 = static_cast<std::uint32_t>(here);
    next_ = here;
  }

  // The longest of them.
  [[nodiscard]] Match find(std::size_t pos, std::size_t beat, unsigned depth, std::size_t max_distance,
                           const std::uint8_t *end) {
    Match best;
    visit(pos, beat, depth, max_distance, end, [&best](std::size_t length, std::size_t distance) {
      best = {length, distance};
    });
    return best;
  }

private:
  static constexpr unsigned kBits3 = 13;
  static constexpr unsigned kBits4 = 14;
  [[nodiscard]] static std::uint32_t hash3(std::uint32_t bytes) {
    return (bytes << 8) * 2654435761u >> (32 - kBits3);
  }
  [[nodiscard]] static std::uint32_t hash4(std::uint32_t bytes) {
    return bytes * 2654435761u >> (32 - kBits4);
  }

  void enter_up_to(std::size_t pos) {
    assert(next_ <= pos);
    for (; next_ < pos; ++next_) {
      const auto bytes = load<std::uint32_t>(in_.data() + next_);
      std::uint32_t &head4 = head4_[hash4(bytes)];
      const auto here = static_cast<std::uint32_t>(next_ + 1);
      previous_[here & mask_] = head4;
      head3_[hash3(bytes)] = head4 = here;
    }
  }

  Bytes in_;
  std::size_t next_ = 0; // the first position not entered
  std::size_t mask_;
  std::vector<std::uint32_t> head3_; // position + 1
  std::vector<std::uint32_t> head4_;
  std::vector<std::uint32_t> previous_;
};

} // namespace etwrelog::codec
