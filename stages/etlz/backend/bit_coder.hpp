// A coder for records of some hundred bytes, in which tables or a frame of zstd would be most of it: binary
// arithmetic coding with models that learn from the first bit on. Integers only: what it makes is part of the
// format (spec.md, section 6). One function describes a record for both ways: `Coder` is BitEncoder or
// BitDecoder, and each call returns the value, which the encoder is given and the decoder finds.
#pragma once

#include "etwrelog/bytes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace etwrelog::etlz {

// A probability that a bit is set, of 65536, and how often it was asked.
struct BitModel {
  std::uint16_t set = 1u << 15;
  std::uint8_t seen = 0;

  void update(bool bit) {
    const std::uint32_t rate = 655'360u / (10u * seen + 16u);
    const std::uint32_t moved = bit ? set + (((65'536u - set) * rate) >> 16) : set - ((set * rate) >> 16);
    set = static_cast<std::uint16_t>(std::clamp(moved, 1024u, 64'512u));
    if (seen < 19) ++seen;
  }
};

class BitEncoder {
public:
  explicit BitEncoder(std::vector<std::uint8_t> &out) : out_(out) {}
  // `set`: the probability.
  bool bit(std::uint32_t set, bool value) {
    const auto middle = low_ + static_cast<std::uint32_t>((std::uint64_t{high_ - low_} * set) >> 16);
    (value ? high_ : low_) = value ? middle : middle + 1;
    for (; (low_ ^ high_) >> 24 == 0; low_ <<= 8, high_ = high_ << 8 | 0xFF)
      out_.push_back(static_cast<std::uint8_t>(low_ >> 24));
    return value;
  }
  // The fewest bytes that name a number in the range; a reader takes zeros behind.
  void finish() {
    if (low_ == 0) return;
    for (unsigned bytes = 1; bytes <= 4; ++bytes) {
      const std::uint64_t step = std::uint64_t{1} << (32 - 8 * bytes);
      const std::uint64_t number = (low_ + step - 1) / step * step;
      if (number > high_) continue;
      for (unsigned i = 0; i < bytes; ++i)
        out_.push_back(static_cast<std::uint8_t>(number >> (24 - 8 * i)));
      return;
    }
  }
  [[nodiscard]] static bool overrun() { return false; }
  // For statistics alone.
  [[nodiscard]] double bits_written() const {
    return static_cast<double>(out_.size()) * 8 + 32 - std::log2(static_cast<double>(high_ - low_) + 1);
  }

private:
  std::vector<std::uint8_t> &out_;
  std::uint32_t low_ = 0, high_ = 0xFFFF'FFFF;
};

class BitDecoder {
public:
  explicit BitDecoder(Bytes bytes) : bytes_(bytes) {
    for (unsigned i = 0; i < 4; ++i)
      next();
  }
  bool bit(std::uint32_t set, bool) {
    const auto middle = low_ + static_cast<std::uint32_t>((std::uint64_t{high_ - low_} * set) >> 16);
    const bool value = code_ <= middle;
    (value ? high_ : low_) = value ? middle : middle + 1;
    for (; (low_ ^ high_) >> 24 == 0; low_ <<= 8, high_ = high_ << 8 | 0xFF)
      next();
    return value;
  }
  // More was read than the writer of a whole record leaves out.
  [[nodiscard]] bool overrun() const { return at_ > bytes_.size() + 4; }
  // All of it was needed.
  [[nodiscard]] bool at_end() const { return !overrun() && at_ >= bytes_.size(); }

private:
  void next() {
    code_ = code_ << 8 | (at_ < bytes_.size() ? bytes_[at_] : 0u);
    ++at_;
  }
  Bytes bytes_;
  std::size_t at_ = 0;
  std::uint32_t low_ = 0, high_ = 0xFFFF'FFFF, code_ = 0;
};

// Numbers of one meaning: how many bits they have, and the two below the leading one, are learnt.
class NumberModel {
public:
  template <class Coder> std::uint64_t code(Coder &coder, std::uint64_t value) {
    const auto given = static_cast<unsigned>(std::bit_width(value));
    unsigned node = 1;
    for (int i = 6; i >= 0; --i)
      node = node << 1 | (bit(coder, width_[node], (given >> i & 1) != 0) ? 1u : 0u);
    const unsigned width = std::min(node & 127u, 64u);
    if (width == 0) return 0;
    std::uint64_t found = 1;
    for (unsigned left = width - 1, known = 0; left-- > 0; ++known) {
      const bool is = (value >> left & 1) != 0;
      const bool it = known < 2 ? bit(coder, below_[width - 1][known == 0 ? 0 : 1 + (found & 1)], is)
                                : coder.bit(1u << 15, is);
      found = found << 1 | (it ? 1u : 0u);
    }
    return found;
  }

private:
  template <class Coder> static bool bit(Coder &coder, BitModel &model, bool value) {
    const bool it = coder.bit(model.set, value);
    model.update(it);
    return it;
  }
  std::array<BitModel, 128> width_{};
  std::array<std::array<BitModel, 3>, 64> below_{};
};

// Text, byte by byte with a zero behind, from the two bytes before. `primer` is what it has seen already.
class TextModel {
public:
  explicit TextModel(std::string_view primer);
  // `text` holds `known` bytes that the reader has; the rest is coded, or appended, at most `most` bytes.
  // False if there are more.
  template <class Coder> bool code(Coder &coder, std::string &text, std::size_t known, std::size_t most) {
    const std::string given = text;
    text.resize(known);
    unsigned before = 0;
    for (std::size_t i = known - std::min<std::size_t>(known, 2); i < known; ++i)
      before = before << 8 | static_cast<std::uint8_t>(given[i]);
    for (std::size_t i = known; !coder.overrun(); ++i) {
      const unsigned c = byte(coder, before, i < given.size() ? static_cast<std::uint8_t>(given[i]) : 0u);
      if (c == 0) return true;
      if (text.size() >= most) return false;
      text.push_back(static_cast<char>(c));
      before = (before << 8 | c) & 0xFFFF;
    }
    return false;
  }

private:
  static constexpr unsigned kSlotBits = 14;
  static constexpr std::array<std::uint32_t, 3> kMasks = {0, 0xFF, 0xFFFF}; // of the bytes before

  template <class Coder> unsigned byte(Coder &coder, unsigned before, unsigned value) {
    unsigned node = 1;
    for (unsigned i = 0; i < 8; ++i) {
      std::array<BitModel *, 3> models{};
      std::uint64_t sum = 0, weights = 0;
      for (unsigned order = 0; order < 3; ++order) {
        const std::uint32_t key = ((before & kMasks[order]) << 8 | node) * 4 + order;
        BitModel &model = slots_[(key * 0x9E37'79B1u) >> (32 - kSlotBits)];
        models[order] = &model;
        const auto off = static_cast<std::uint32_t>(std::abs(int{model.set} - 32'768));
        const std::uint64_t weight = std::uint64_t{16u * model.seen + 1u} * (off + 3277u) << (2 * order);
        sum += weight * model.set, weights += weight;
      }
      const auto set = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(sum / weights, 512, 65'024));
      const bool it = coder.bit(set, (value >> (7 - i) & 1) != 0);
      for (BitModel *const model : models)
        model->update(it);
      node = node << 1 | (it ? 1u : 0u);
    }
    return node & 0xFF;
  }
  std::vector<BitModel> slots_;
};

inline TextModel::TextModel(std::string_view primer) : slots_(std::size_t{1} << kSlotBits) {
  struct Nowhere {
    static bool bit(std::uint32_t, bool value) { return value; }
  } nowhere;
  unsigned before = 0;
  for (const char c : primer) {
    const unsigned value = static_cast<std::uint8_t>(c);
    static_cast<void>(byte(nowhere, before, value));
    before = value == 0 ? 0 : (before << 8 | value) & 0xFFFF;
  }
}

} // namespace etwrelog::etlz
