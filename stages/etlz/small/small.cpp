#include "etlz/small/small.hpp"

#include "base/blocks.hpp"
#include "etlz/backend/bit_coder.hpp"
#include "etwrelog/format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

namespace etwrelog::etlz {
namespace {

// Probabilities have 16 bits; mixing happens in the logistic domain, where 256 is one unit of log odds. All
// of it is integer arithmetic: the format must not depend on anybody's floating point.
constexpr int kLogisticTable[33] = {22,    36,    60,    98,    162,   267,   439,   720,   1179,
                                    1921,  3108,  4971,  7812,  11955, 17625, 24743, 32768, 40793,
                                    47911, 53581, 57724, 60565, 62428, 63615, 64357, 64816, 65097,
                                    65269, 65374, 65438, 65476, 65500, 65514};

int squash(int x) {
  x = std::clamp(x, -2047, 2047);
  const int at = (x + 2048) >> 7, within = (x + 2048) & 127;
  return (kLogisticTable[at] * (128 - within) + kLogisticTable[at + 1] * within + 64) >> 7;
}

// The inverse, by the upper 12 bits of a probability.
const auto kStretch = [] {
  std::array<std::int16_t, 4096> table{};
  int from = 0;
  for (int x = -2047; x <= 2047; ++x) {
    const int to = squash(x) >> 4;
    for (int p = from; p <= to; ++p)
      table[static_cast<std::size_t>(p)] = static_cast<std::int16_t>(x);
    from = std::max(from, to + 1);
  }
  for (int p = from; p < 4096; ++p)
    table[static_cast<std::size_t>(p)] = 2047;
  return table;
}();

// What a model knows in one place: a probability of 22 bits, how often it was asked in the low 10.
using Cell = std::uint32_t;
constexpr Cell kUnknown = 1u << 31;
constexpr unsigned kMostCount = 250;

const auto kRates = [] {
  std::array<std::uint32_t, 1024> table{};
  for (std::uint32_t n = 0; n < 1024; ++n)
    table[n] = (65536 * 2) / (2 * n + 4);
  return table;
}();

void update(Cell &cell, unsigned bit, unsigned most) {
  const std::uint32_t count = cell & 1023, p = cell >> 10;
  const std::int64_t target = bit != 0 ? (1 << 22) - 1 : 0;
  const auto moved = static_cast<std::uint32_t>(p + (target - static_cast<std::int64_t>(p)) *
                                                        static_cast<std::int64_t>(kRates[count]) / 65536);
  cell = moved << 10 | (count < most ? count + 1 : count);
}

constexpr unsigned kModels = 14; // by hash of a context
constexpr unsigned kGuesses = 2; // bytes that are guessed outright: by the longest match, by the row above
constexpr unsigned kUsed = 2 * kModels + 2 * kGuesses + 1;
constexpr unsigned kInputs = (kUsed + 7) / 8 * 8;
constexpr std::int32_t kMostWeight = (1 << 18) - 1; // 65536 is one
constexpr unsigned kSets = 3;                       // of weights, each chosen in another way
constexpr unsigned kSetSize = 1024;

std::uint32_t hash(std::uint64_t a, std::uint64_t b) {
  std::uint64_t v =
      (a + 0x632B'E59B'D9B4'E019ull) * 0x9E37'79B9'7F4A'7C15ull ^ (b + 1) * 0xC2B2'AE3D'27D4'EB4Full;
  v *= 0xD6E8'FEB8'6659'FD93ull;
  return static_cast<std::uint32_t>(v >> 32);
}

// Where in the trace a byte stands, as the bytes before it tell: in which kind of record, how far into it,
// and where the last record of the kind begins. Bytes that are no trace only make it guess badly.
class Records {
public:
  explicit Records(const std::uint8_t *bytes) : bytes_(bytes), last_(4096, 0) {}

  std::uint32_t kind = 0;        // hash
  std::size_t begin = 0, at = 0; // of the record; offset in it
  std::size_t above = 0;         // begin of the last record of the kind; behind this one if there was none

  // `next`: the number of bytes that are known.
  void step(std::size_t next) {
    at = next - begin;
    if (at == length_) {
      begin = next, at = 0, length_ = format::kBufferHeaderSize;
      above = previous_;
      previous_ = next;
      kind = 0;
    }
    const std::uint8_t *const p = bytes_ + begin;
    if (at == 4 && p[3] == format::kMarkerStructured) layout_ = &format::kHeaderLayouts[p[2]];
    if (at == 4 && p[3] != format::kMarkerStructured) layout_ = nullptr;
    if (at == 8) {
      std::uint64_t first = load<std::uint64_t>(p);
      std::uint32_t size = 0;
      if (layout_ != nullptr) {
        size = layout_->size_at == 4 ? load<std::uint16_t>(p + 4) : load<std::uint16_t>(p);
        first &= layout_->size_at == 4 ? ~0x0000'FFFF'0000'0000ull : ~std::uint64_t{0xFFFF};
        length_ = std::max<std::size_t>(8, align8(size));
      } else {
        first = 0;
      }
      enter(hash(first, 1));
    } else if (at == 0x30 && layout_ != nullptr && layout_->size_at == 0) {
      enter(hash(load<std::uint64_t>(p + 0x28), kind));
    }
  }

private:
  void enter(std::uint32_t new_kind) {
    kind = new_kind;
    std::uint32_t &last = last_[kind & 4095];
    above = last != 0 ? last - 1u : begin;
    last = static_cast<std::uint32_t>(begin + 1);
  }

  const std::uint8_t *bytes_;
  std::vector<std::uint32_t> last_;
  const format::HeaderLayout *layout_ = nullptr;
  std::size_t length_ = format::kBufferHeaderSize, previous_ = 0;
};

std::int16_t negated(std::int16_t v) {
  return static_cast<std::int16_t>(-v);
}

class Predictor {
public:
  Predictor(const std::uint8_t *bytes, std::size_t size)
      : bytes_(bytes), records_(bytes),
        bits_(std::clamp<unsigned>(static_cast<unsigned>(std::bit_width(size)) + 4, 14, 20)),
        cells_(std::size_t{kModels} << bits_, kUnknown), guesses_(kGuesses * 4096, kUnknown),
        matches_(std::size_t{1} << std::min(bits_, 16u), 0),
        weights_(std::size_t{kSets} * kSetSize * kInputs), rounded_(weights_.size()) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const std::size_t input = i % kInputs;
      weights_[i] = input < 2 * kModels ? (input % 2 == 0 ? 8000 : 2500) : input + 1 < kUsed ? 9000 : 0;
      rounded_[i] = static_cast<std::int16_t>(weights_[i] >> 4);
    }
    next_byte(0);
  }

  // That the next bit is set, of 65536: 1 to 65535.
  [[nodiscard]] unsigned probability() {
    // Cells of the four bits of a nibble lie together.
    if (depth_ == 0 || depth_ == 4)
      for (unsigned m = 0; m < kModels; ++m)
        places_[m] =
            (m << bits_) + ((contexts_[m] ^ node_ * 0x9E37'79B1u) * 0x85EB'CA6Bu >> (36 - bits_) << 4);
    const unsigned within = depth_ < 4 ? node_ : (node_ & ((1u << (depth_ - 4)) - 1)) | 1u << (depth_ - 4);
    for (unsigned m = 0; m < kModels; ++m) {
      at_[m] = places_[m] + within;
      add(2 * m, cells_[at_[m]]);
    }
    for (unsigned g = 0; g < kGuesses; ++g) {
      const unsigned i = 2 * (kModels + g);
      agrees_[g] = guessed_[g] >= 0 && ((guessed_[g] | 0x100) >> (8 - depth_)) == static_cast<int>(node_);
      if (!agrees_[g]) {
        inputs_[i] = inputs_[i + 1] = 0;
        continue;
      }
      expected_[g] = static_cast<unsigned>(guessed_[g]) >> (7 - depth_) & 1;
      guess_at_[g] =
          g * 4096 + std::min(lengths_[g], 63u) * 32 + (g == 1 ? std::min<unsigned>(depth_, 7) : 0);
      add(i, guesses_[guess_at_[g]]);
      if (expected_[g] == 0) inputs_[i] = negated(inputs_[i]), inputs_[i + 1] = negated(inputs_[i + 1]);
    }
    inputs_[kUsed - 1] = 256;
    const unsigned long_match = agrees_[0] ? 1 + std::min(lengths_[0] / 4, 14u) : 0;
    const unsigned row = agrees_[1] ? 1 + std::min(lengths_[1], 14u) : 0;
    chosen_[0] = std::min<unsigned>(static_cast<unsigned>(records_.at), 127) * 8 + depth_;
    chosen_[1] = long_match * 16 + row;
    chosen_[2] = node_;
    int sum = 0;
    for (unsigned set = 0; set < kSets; ++set) {
      const std::int16_t *const w = rounded_.data() + (set * kSetSize + chosen_[set]) * kInputs;
      std::int32_t dot = 0; // 33 products of 15 and 11 bits
      for (unsigned i = 0; i < kInputs; ++i)
        dot += std::int32_t{w[i]} * inputs_[i];
      outputs_[set] = std::clamp(dot >> 12, -2047, 2047);
      sum += outputs_[set];
    }
    mixed_ = squash(sum / static_cast<int>(kSets));
    return static_cast<unsigned>(std::clamp(mixed_, 1, 65535));
  }

  void update_with(unsigned bit) {
    for (unsigned set = 0; set < kSets; ++set) {
      const int error = (static_cast<int>(bit) << 16) - squash(outputs_[set]);
      const std::size_t first = (set * kSetSize + chosen_[set]) * kInputs;
      std::int32_t *const w = weights_.data() + first;
      std::int16_t *const rounded = rounded_.data() + first;
      const std::int32_t rate = error * 5;
      for (unsigned i = 0; i < kInputs; ++i) {
        w[i] = std::clamp(w[i] + ((inputs_[i] * rate + 0x8000) >> 16), -kMostWeight, kMostWeight);
        rounded[i] = static_cast<std::int16_t>(w[i] >> 4);
      }
    }
    for (unsigned m = 0; m < kModels; ++m)
      update(cells_[at_[m]], bit, kMostCount);
    for (unsigned g = 0; g < kGuesses; ++g)
      if (agrees_[g]) update(guesses_[guess_at_[g]], expected_[g] == bit ? 1 : 0, 1000);
    node_ = node_ << 1 | bit;
    if (++depth_ == 8) depth_ = 0, node_ = 1;
  }

  // The byte before `count` is whole.
  void next_byte(std::size_t count) {
    if (count != 0) {
      for (unsigned g = 0; g < kGuesses; ++g)
        lengths_[g] = guessed_[g] == bytes_[count - 1] ? lengths_[g] + 1 : 0;
      records_.step(count);
    }
    auto back = [&](std::size_t n) -> std::uint64_t { return count >= n ? bytes_[count - n] : 0; };
    std::uint64_t last = 0;
    for (std::size_t n = 1; n <= 8; ++n)
      last |= back(n) << 8 * (n - 1);
    const std::size_t at = records_.at;
    const std::size_t row = records_.above;
    const bool has_row = row + at < count && row != records_.begin;
    const std::uint64_t above = has_row ? bytes_[row + at] : 0x100;
    const std::uint64_t left_above = has_row && at > 0 ? bytes_[row + at - 1] : 0;
    const std::uint64_t right_above = has_row && row + at + 1 < count ? bytes_[row + at + 1] : 0x100;
    const std::uint64_t place = std::uint64_t{records_.kind} << 16 | std::min<std::size_t>(at, 0xFFFF);
    const std::uint64_t delta = (back(1) - left_above) & 0xFF;
    const std::uint64_t contexts[kModels] = {
        0,
        last & 0xFF,
        last & 0xFFFF,
        last & 0xFF'FFFF,
        last & 0xFFFF'FFFF,
        last & 0xFFFF'FFFF'FFFF,
        place,
        place << 16 ^ above << 8 ^ back(1) << 40,
        place ^ above << 48 ^ delta << 56,
        place ^ back(1) << 48 ^ back(2) << 56,
        (at & 7) | back(8) << 8 | back(1) << 16,
        back(2) | back(4) << 8 | back(1) << 16 | back(3) << 24 | (at & 1) << 32,
        (at & 7) | back(8) << 8 | back(16) << 16 | above << 24,
        above | right_above << 12 | left_above << 24 | back(1) << 40,
    };
    for (unsigned m = 0; m < kModels; ++m)
      contexts_[m] = hash(contexts[m], m);
    // The longest match, found by the last five bytes.
    if (lengths_[0] > 0 && match_ != 0)
      ++match_;
    else
      match_ = 0, lengths_[0] = 0;
    if (count >= 5) {
      std::uint32_t &slot = matches_[hash(last & 0xFF'FFFF'FFFF, 99) & (matches_.size() - 1)];
      if (match_ == 0 && slot != 0) {
        match_ = slot;
        while (lengths_[0] < 40 && lengths_[0] < match_ &&
               bytes_[match_ - 1 - lengths_[0]] == bytes_[count - 1 - lengths_[0]])
          ++lengths_[0];
        if (lengths_[0] < 5) match_ = 0, lengths_[0] = 0;
      }
      slot = static_cast<std::uint32_t>(count);
    }
    guessed_[0] = match_ != 0 ? bytes_[match_] : -1;
    guessed_[1] = has_row ? static_cast<int>(above) : -1;
  }

private:
  // Two inputs of a cell: its opinion, and that weighed by how sure it is. None where nothing was seen.
  void add(unsigned i, Cell cell) {
    const unsigned count = cell & 1023;
    const int opinion = count == 0 ? 0 : kStretch[cell >> 20];
    inputs_[i] = static_cast<std::int16_t>(opinion);
    inputs_[i + 1] = static_cast<std::int16_t>(count == 0 ? 0
                                                          : (static_cast<int>(cell >> 16) - 32768) *
                                                                static_cast<int>(std::min(count, 15u)) / 512);
  }

  const std::uint8_t *bytes_;
  Records records_;
  unsigned bits_;
  base::BlockVector<Cell> cells_, guesses_;
  base::BlockVector<std::uint32_t> matches_; // by hash: where the byte behind stands
  base::BlockVector<std::int32_t> weights_;
  base::BlockVector<std::int16_t> rounded_; // of the weights, to mix with
  std::array<std::uint32_t, kModels> contexts_{};
  std::array<std::uint32_t, kModels> places_{}, at_{};
  std::array<std::int16_t, kInputs> inputs_{};
  std::array<unsigned, kSets> chosen_{};
  std::array<int, kSets> outputs_{};
  std::array<int, kGuesses> guessed_{-1, -1};
  std::array<unsigned, kGuesses> lengths_{}, expected_{}, guess_at_{};
  std::array<bool, kGuesses> agrees_{};
  std::size_t match_ = 0;
  unsigned node_ = 1, depth_ = 0; // the bits of this byte so far, behind a leading one
  int mixed_ = 0;
};

} // namespace

void encode_small(Bytes content, std::vector<std::uint8_t> &out) {
  Predictor predictor(content.data(), content.size());
  BitEncoder coder(out);
  for (std::size_t i = 0; i < content.size(); ++i) {
    for (unsigned depth = 0; depth < 8; ++depth) {
      const unsigned bit = content[i] >> (7 - depth) & 1;
      coder.bit(predictor.probability(), bit != 0);
      predictor.update_with(bit);
    }
    predictor.next_byte(i + 1);
  }
  coder.finish();
}

bool decode_small(Bytes coded, MutableBytes content) {
  Predictor predictor(content.data(), content.size());
  BitDecoder coder(coded);
  for (std::size_t i = 0; i < content.size(); ++i) {
    unsigned byte = 0;
    for (unsigned depth = 0; depth < 8; ++depth) {
      const unsigned bit = coder.bit(predictor.probability(), false) ? 1 : 0;
      predictor.update_with(bit);
      byte = byte << 1 | bit;
    }
    content[i] = static_cast<std::uint8_t>(byte);
    predictor.next_byte(i + 1);
  }
  return coder.at_end();
}

} // namespace etwrelog::etlz
