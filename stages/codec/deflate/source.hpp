// Bytes that are read piece by piece: compressed ones bit by bit, decoded ones with what lies 32 kB before.
#pragma once

#include "codec/deflate/format.hpp"
#include "etwrelog/error.hpp"

#include <functional>
#include <optional>

namespace etwrelog::codec::deflate {

// Fills what it is given from an offset on; less only at the end.
using Fetch = std::function<Result<std::size_t>(std::uint64_t at, MutableBytes into)>;
inline constexpr std::size_t kFirstPiece = 4096; // bytes that are fetched first

// What a stream decodes to. Around the place that was asked for last, bytes are in memory: the further it
// goes, the more. Many streams may be short.
class Content {
public:
  // `size` bytes, which must be there.
  Content(Fetch fetch, std::uint64_t size);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Has the window before `at`, and kAhead bytes from there on or all that are left. False when they cannot
  // be read: error() says why.
  [[nodiscard]] bool reach(std::uint64_t at) {
    return at >= begin_ + std::min<std::uint64_t>(at, kWindow) && (at + kAhead <= end_ || end_ == size_)
               ? true
               : load(at);
  }
  static constexpr std::size_t kAhead = 1024;
  // The byte at a place that was reached. What follows it is behind it.
  [[nodiscard]] const std::uint8_t *byte(std::uint64_t at) const { return bytes_.data() + (at - begin_); }
  [[nodiscard]] const std::optional<Error> &error() const { return error_; }

private:
  [[nodiscard]] bool load(std::uint64_t at);

  Fetch fetch_;
  std::uint64_t size_, begin_ = 0, end_ = 0;
  std::size_t piece_ = kFirstPiece; // to be read next
  std::vector<std::uint8_t> bytes_;
  std::optional<Error> error_;
};

// Bits, the lowest of each byte first. Read as Content is.
class BitReader {
public:
  BitReader(Fetch fetch, std::uint64_t at);

  // Brings in at least so many bits (56 at most), or all that are left.
  void fill(unsigned bits) {
    if (held_ < bits) more();
  }
  [[nodiscard]] unsigned available() const { return held_; }
  [[nodiscard]] std::uint64_t peek() const { return hold_; } // zeros behind the end
  void drop(unsigned bits) {
    hold_ >>= bits;
    held_ -= bits;
  }
  // False at the end of the input.
  [[nodiscard]] bool take(unsigned bits, unsigned &value) {
    fill(bits);
    if (held_ < bits) return false;
    value = static_cast<unsigned>(hold_ & ((std::uint64_t{1} << bits) - 1));
    drop(bits);
    return true;
  }
  // Bits up to the next whole byte.
  [[nodiscard]] unsigned until_byte() const { return held_ % 8; }
  // Offset of the next byte; between bytes only.
  [[nodiscard]] std::uint64_t at() const { return at_ - (chunk_end_ - next_) - held_ / 8; }
  [[nodiscard]] const std::optional<Error> &error() const { return error_; }

private:
  void more();

  Fetch fetch_;
  std::uint64_t at_; // behind the chunk
  std::vector<std::uint8_t> chunk_;
  std::size_t piece_ = kFirstPiece, next_ = 0, chunk_end_ = 0;
  std::uint64_t hold_ = 0;
  unsigned held_ = 0;
  std::optional<Error> error_;
};

// Symbols of a prefix code, by a table.
class SymbolTable {
public:
  void make(const Code &code);
  // False where no code stands, or the input ends in it. Up to 15 bits are there, or the last of the input.
  [[nodiscard]] bool take(BitReader &bits, unsigned &symbol) const {
    const std::uint16_t entry = entries_[bits.peek() & mask_];
    const unsigned length = entry & 15u;
    if (length == 0 || length > bits.available()) return false;
    bits.drop(length);
    symbol = entry >> 4;
    return true;
  }

private:
  std::vector<std::uint16_t> entries_ = {0}; // symbol << 4 | length
  std::uint64_t mask_ = 0;
};

} // namespace etwrelog::codec::deflate
