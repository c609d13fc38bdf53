// What the coder of coupled segments is made of: probabilities in the logistic domain, the cells that learn
// them, and matches.
#pragma once

#include "base/platform.hpp"
#include "etwrelog/bytes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace etwrelog::etlz::contexts {

// --- The logistic domain: 256 is one unit of log odds. As in small.cpp.

inline constexpr int kLogisticTable[33] = {22,    36,    60,    98,    162,   267,   439,   720,   1179,
                                           1921,  3108,  4971,  7812,  11955, 17625, 24743, 32768, 40793,
                                           47911, 53581, 57724, 60565, 62428, 63615, 64357, 64816, 65097,
                                           65269, 65374, 65438, 65476, 65500, 65514};

inline constexpr int logistic(int x) {
  const int at = (x + 2048) >> 7, within = (x + 2048) & 127;
  return (kLogisticTable[at] * (128 - within) + kLogisticTable[at + 1] * within + 64) >> 7;
}

inline constexpr auto kSquash = [] {
  std::array<std::uint16_t, 4096> table{};
  for (int x = 0; x < 4096; ++x)
    table[static_cast<std::size_t>(x)] =
        static_cast<std::uint16_t>(logistic(std::clamp(x - 2048, -2047, 2047)));
  return table;
}();

inline constexpr int kMostOdds = 2047;
inline int squash(int x) {
  return kSquash.data()[x + 2048];
}

// The inverse, by the upper 12 bits of a probability.
inline constexpr auto kStretch = [] {
  std::array<std::int16_t, 4096> table{};
  int from = 0;
  for (int x = -kMostOdds; x <= kMostOdds; ++x) {
    const int to = kSquash[static_cast<std::size_t>(x + 2048)] >> 4;
    for (int p = from; p <= to; ++p)
      table[static_cast<std::size_t>(p)] = static_cast<std::int16_t>(x);
    from = std::max(from, to + 1);
  }
  for (int p = from; p < 4096; ++p)
    table[static_cast<std::size_t>(p)] = kMostOdds;
  return table;
}();

// --- Cells

// What a model knows in one place: a probability of 12 bits, and in the low 4 how often it was asked. Zero is
// a half, and never.
using Cell = std::uint16_t;
inline constexpr Cell kUnknown = 1u << 15;
inline constexpr unsigned kMostCount = 15;

inline constexpr auto kRates = [] {
  std::array<std::uint32_t, kMostCount + 1> table{};
  for (std::uint32_t n = 0; n <= kMostCount; ++n)
    table[n] = (65536 * 2) / (2 * n + 3);
  return table;
}();

inline unsigned count_of(Cell cell) {
  return cell & kMostCount;
}
// Rounded towards the bit, so that it never stands still.
inline void update(Cell &cell, unsigned bit) {
  const unsigned value = cell ^ kUnknown, count = value & kMostCount, p = value >> 4;
  const unsigned rate = kRates.data()[count];
  const unsigned up = p + (((4095 - p) * rate + 65535) >> 16), down = p - ((p * rate + 65535) >> 16);
  const unsigned moved = bit != 0 ? up : down;
  cell = static_cast<Cell>((moved << 4 | (count + (count < kMostCount ? 1 : 0))) ^ kUnknown);
}

// The models of one context over four bits. Two share a cache line.
struct Bucket {
  std::uint16_t check;
  Cell cell[15];
};
static_assert(sizeof(Bucket) == 32);
struct alignas(64) Line {
  Bucket bucket[2];
};

// Zeroed lines in large pages where the system has them: they are asked for all over the place.
class Lines {
public:
  void start(std::size_t count) {
    const std::size_t size = count * sizeof(Line);
    if (count != count_) {
      memory_.reset();
      count_ = 0;
      memory_.reset(static_cast<Line *>(::operator new (size, std::align_val_t{kPage})));
      count_ = count;
      base::advise_large_pages_within(memory_.get(), size);
    }
    std::memset(static_cast<void *>(memory_.get()), 0, size);
  }
  [[nodiscard]] Line *data() { return memory_.get(); }

private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  struct Free {
    void operator()(Line *lines) const { ::operator delete (lines, std::align_val_t{kPage}); }
  };
  std::unique_ptr<Line, Free> memory_;
  std::size_t count_ = 0;
};

inline std::uint64_t hash(std::uint64_t a, std::uint64_t b) {
  std::uint64_t v =
      (a + 0x632B'E59B'D9B4'E019ull) * 0x9E37'79B9'7F4A'7C15ull ^ (b + 1) * 0xC2B2'AE3D'27D4'EB4Full;
  v ^= v >> 29;
  v *= 0xD6E8'FEB8'6659'FD93ull;
  return v ^ v >> 32;
}

// A match: what stands behind the last place where the last bytes stood.
class Match {
public:
  struct Shape {
    unsigned ring_bits, head_bits; // at most
    unsigned least;                // bytes that have to be the same
  };
  explicit Match(const Shape &shape) : shape_(shape) {}

  void start(unsigned bits) {
    ring_.assign(std::size_t{1} << std::min(bits, shape_.ring_bits), 0);
    heads_.assign(std::size_t{1} << std::min(bits, shape_.head_bits), 0);
    end_ = 1, at_ = 0, length_ = 0, recent_ = 0;
  }
  [[nodiscard]] static std::uint64_t memory_bytes(unsigned bits, const Shape &shape) {
    return (std::uint64_t{1} << std::min(bits, shape.ring_bits)) +
           (std::uint64_t{4} << std::min(bits, shape.head_bits));
  }
  // The byte that is expected, or -1.
  [[nodiscard]] int expected() const { return at_ == 0 ? -1 : back(at_); }
  [[nodiscard]] unsigned length() const { return length_; }
  void add(unsigned byte) {
    if (at_ != 0 && back(at_) == static_cast<int>(byte)) {
      ++at_;
      length_ += length_ < kMostLength ? 1 : 0;
    } else {
      at_ = length_ = 0;
    }
    ring_[end_ & (ring_.size() - 1)] = static_cast<std::uint8_t>(byte);
    ++end_;
    recent_ = recent_ << 8 | byte;
    if (end_ <= shape_.least + 1) return;
    const std::uint64_t key =
        shape_.least < 8 ? recent_ & ((std::uint64_t{1} << (8 * shape_.least)) - 1) : recent_;
    std::uint32_t &head = heads_[hash(key, 1) >> 20 & (heads_.size() - 1)];
    if (at_ == 0 && head != 0 && end_ - head < ring_.size() - 2 * kMostLength) {
      unsigned n = 0;
      while (n < 60 && head - 1 - n > 0 && back(head - 1 - n) == back(end_ - 1 - n))
        ++n;
      if (n >= shape_.least) at_ = head, length_ = n;
    }
    if (at_ != 0 && end_ - at_ >= ring_.size() - 2 * kMostLength) at_ = length_ = 0;
    head = end_;
  }

private:
  static constexpr unsigned kMostLength = 511;
  [[nodiscard]] int back(std::uint32_t at) const { return ring_[at & (ring_.size() - 1)]; }
  Shape shape_;
  std::vector<std::uint8_t> ring_;
  std::vector<std::uint32_t> heads_;
  std::uint32_t end_ = 1, at_ = 0;
  unsigned length_ = 0;
  std::uint64_t recent_ = 0;
};

} // namespace etwrelog::etlz::contexts
