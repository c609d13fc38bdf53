// The byte streams of a segment: what the model writes and reads, before and after the entropy coder.
//
// Numbers go out in one of three shapes. A plane is one byte of a value in a stream of its own, so that bytes
// of like meaning lie together. A token is one byte telling magnitude and leading bits, with the remaining
// bits in the bit stream: the part of a time difference that is worth an entropy coder, and the part that is
// noise.
#pragma once

#include "base/raw_memory.hpp"
#include "etwrelog/bytes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

namespace etwrelog::etlz {

// --- Integers of a width known at run time ----------------------------------------------------------------

[[nodiscard]] inline std::uint64_t load_width(const std::uint8_t *at, unsigned width) {
  switch (width) {
  case 1: return *at;
  case 2: return load<std::uint16_t>(at);
  case 4: return load<std::uint32_t>(at);
  default: return load<std::uint64_t>(at);
  }
}
inline void store_width(std::uint8_t *at, unsigned width, std::uint64_t v) {
  switch (width) {
  case 1: *at = static_cast<std::uint8_t>(v); break;
  case 2: store(at, static_cast<std::uint16_t>(v)); break;
  case 4: store(at, static_cast<std::uint32_t>(v)); break;
  default: store(at, v);
  }
}

// --- Tokens

// Unsigned: 0..15 are themselves; above, the bit width and the two bits below the leading one, then width - 3
// raw bits. 64-bit values end at token 255.
struct Token {
  std::uint8_t symbol;
  std::uint8_t raw_bits;
  std::uint64_t raw;
};

[[nodiscard]] inline Token unsigned_token(std::uint64_t v) {
  if (v < 16) return {static_cast<std::uint8_t>(v), 0, 0};
  const unsigned width = static_cast<unsigned>(std::bit_width(v));
  const unsigned raw = width - 3;
  return {static_cast<std::uint8_t>(16 + (width - 5) * 4 + ((v >> raw) & 3)), static_cast<std::uint8_t>(raw),
          v & ((std::uint64_t{1} << raw) - 1)};
}

// What a symbol says of its value. Tables, because the ranges of symbols alternate without a pattern.
struct TokenMeaning {
  std::uint64_t base;
  std::uint8_t raw_bits;
  bool negative;
};
inline constexpr auto kUnsignedTokens = [] {
  std::array<TokenMeaning, 256> table{};
  for (unsigned symbol = 0; symbol < 256; ++symbol) {
    const unsigned raw = symbol < 16 ? 0 : (symbol - 16) / 4 + 2;
    table[symbol] = {symbol < 16 ? symbol : std::uint64_t{4 + (symbol & 3)} << raw,
                     static_cast<std::uint8_t>(raw), false};
  }
  return table;
}();

// Signed: 0..16 are the zigzag of -8..8; above, width of the magnitude, sign and one bit below the leading
// one. The sign stands in the token because most differences lean to one side.
[[nodiscard]] inline Token signed_token(std::uint64_t difference) {
  const bool negative = (difference >> 63) != 0;
  const std::uint64_t m = negative ? 0 - difference : difference;
  if (m <= 8) return {static_cast<std::uint8_t>(negative ? m * 2 - 1 : m * 2), 0, 0};
  const unsigned width = static_cast<unsigned>(std::bit_width(m)); // 4..64
  if (width > 62) return {255, 64, difference};
  const unsigned raw = width - 2;
  return {static_cast<std::uint8_t>(17 + (width - 4) * 4 + (negative ? 2 : 0) + ((m >> raw) & 1)),
          static_cast<std::uint8_t>(raw), m & ((std::uint64_t{1} << raw) - 1)};
}

inline constexpr auto kSignedTokens = [] {
  std::array<TokenMeaning, 256> table{};
  for (unsigned symbol = 0; symbol <= 16; ++symbol)
    table[symbol] = {(symbol + 1u) / 2, 0, (symbol & 1) != 0};
  for (unsigned symbol = 17; symbol < 255; ++symbol) {
    const unsigned raw = (symbol - 17) / 4 + 2;
    table[symbol] = {std::uint64_t{2 + ((symbol - 17) & 1u)} << raw, static_cast<std::uint8_t>(raw),
                     ((symbol - 17) & 2) != 0};
  }
  table[255] = {0, 64, false};
  return table;
}();

// --- Bits

class BitWriter {
public:
  void put(std::uint64_t bits, unsigned count) {
    if (count > 32) {
      put32(bits & 0xFFFF'FFFF, 32);
      put32(bits >> 32, count - 32);
    } else {
      put32(bits, count);
    }
  }
  // The bytes written; what is put behind them starts over.
  [[nodiscard]] Bytes finish() {
    if (held_ > 0) ++size_;
    buffer_ = 0, held_ = 0;
    return {bytes_.data(), std::exchange(size_, 0)};
  }

private:
  [[gnu::always_inline]] void put32(std::uint64_t bits, unsigned count) {
    if (bytes_.size() - size_ < 8) grow();
    buffer_ |= bits << held_;
    held_ += count;
    store(bytes_.data() + size_, buffer_); // whole bytes are kept, the last one is written again
    size_ += held_ >> 3;
    buffer_ >>= held_ & ~7u;
    held_ &= 7;
  }
  [[gnu::noinline, gnu::cold]] void grow() { bytes_.resize(std::max<std::size_t>(4096, bytes_.size() * 2)); }

  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
  std::uint64_t buffer_ = 0; // held_ < 8 bits between calls
  unsigned held_ = 0;
};

// Reads zeros past the end; `overrun()` then tells.
class BitReader {
public:
  BitReader() = default;
  explicit BitReader(Bytes bytes) : data_(bytes.data()), size_(bytes.size()) {}

  [[nodiscard]] std::uint64_t get(unsigned count) {
    if (count > 32) {
      const std::uint64_t low = get32(32);
      return low | (get32(count - 32) << 32);
    }
    return get32(count);
  }
  [[nodiscard]] bool overrun() const { return bit_ > std::uint64_t{size_} * 8; }

private:
  std::uint64_t get32(unsigned count) {
    const std::size_t byte = bit_ >> 3;
    const std::uint64_t v =
        (byte + 8 <= size_ ? load<std::uint64_t>(data_ + byte) : last_bytes(byte)) >> (bit_ & 7);
    bit_ += count;
    return v & ((std::uint64_t{1} << count) - 1);
  }
  [[gnu::noinline]] std::uint64_t last_bytes(std::size_t byte) const {
    std::uint64_t v = 0;
    if (byte < size_) std::memcpy(&v, data_ + byte, size_ - byte);
    return v;
  }
  const std::uint8_t *data_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t bit_ = 0;
};

// --- Byte streams

class OutStream {
public:
  [[gnu::always_inline]] void put(std::uint8_t byte) { bytes_.append(byte); }
  void put(Bytes bytes) { bytes_.append(bytes); }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }

private:
  base::Buffer bytes_;
};

// Yields zeros past the end and remembers that it did: the model checks once per buffer, not per byte.
class InStream {
public:
  InStream() = default;
  explicit InStream(Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] std::uint8_t get() {
    if (at_ == end_) {
      overrun_ = true;
      return 0;
    }
    return *at_++;
  }
  // An empty span when fewer are left.
  [[nodiscard]] Bytes get(std::size_t count) {
    if (count > static_cast<std::size_t>(end_ - at_)) {
      overrun_ = true;
      return {};
    }
    const Bytes result(at_, count);
    at_ += count;
    return result;
  }
  [[nodiscard]] Bytes rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  [[nodiscard]] bool overrun() const { return overrun_; }
  [[nodiscard]] bool at_end() const { return at_ == end_; }

private:
  const std::uint8_t *at_ = nullptr;
  const std::uint8_t *end_ = nullptr;
  bool overrun_ = false;
};

// --- Varints of the segment's own tables

inline void put_varint(std::vector<std::uint8_t> &out, std::uint64_t v) {
  while (v >= 0x80) {
    out.push_back(static_cast<std::uint8_t>(v | 0x80));
    v >>= 7;
  }
  out.push_back(static_cast<std::uint8_t>(v));
}

[[nodiscard]] inline std::uint64_t get_varint(InStream &in) {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = in.get();
    v |= std::uint64_t{byte & 0x7Fu} << shift;
    if ((byte & 0x80) == 0) break;
  }
  return v;
}

} // namespace etwrelog::etlz
