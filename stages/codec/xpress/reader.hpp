// Takes a plain XPRESS stream apart into its tokens, as XpressWriter puts them together.
#pragma once

#include "base/cpu.hpp"
#include "etwrelog/bytes.hpp"

#include <bit>

namespace etwrelog::codec {

struct XpressToken {
  std::uint32_t distance = 0; // 0: a literal
  std::uint32_t length = 1;

  bool operator==(const XpressToken &) const = default;
};

// A token that is not written as XpressWriter would write it makes finish() false, and so does a stream that
// ends too soon: what was read until then may be anything. The one who reads looks at whether a match lies
// within the content.
class XpressReader {
public:
  // What 32 tokens may take, and the last one looks at beyond its end. So many bytes of any value that can be
  // read follow the stream: only at every flag word is it seen whether there are more.
  static constexpr std::size_t kReadAhead = 32 * (2 + 1 + 1 + 2 + 4);

  explicit XpressReader(Bytes in) : at_(in.data()), end_(in.data() + in.size()) {}

  // Before each token. False: there are no more flags.
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool more() {
    if (flags_ << 1 != 0) [[likely]] { // more than the mark
      return true;
    }
    if (end_ - at_ < 4) {
      return false;
    }
    flags_ = std::uint64_t{load<std::uint32_t>(at_)} << 32 | kMark >> 32;
    at_ += 4;
    flags_read_ += 32;
    return true;
  }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool at_literal() const { return (flags_ & kMark) == 0; }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint8_t literal() {
    flags_ <<= 1;
    return *at_++;
  }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE XpressToken match() {
    flags_ <<= 1;
    const std::uint32_t word = load<std::uint16_t>(at_);
    at_ += 2;
    std::uint32_t code = word & 7;
    if (code == 7) {
      code = long_length();
    }
    return {(word >> 3) + 1, code + 3};
  }

  // Those read so far.
  [[nodiscard]] std::uint64_t tokens() const {
    return flags_read_ - (63u - static_cast<unsigned>(std::countr_zero(flags_)));
  }

  // Behind the last token.
  [[nodiscard]] bool finish() {
    if (flags_ == kMark && !more()) { // one that was used up is followed by another
      return false;
    }
    const bool ones = ((flags_ | (flags_ - 1)) == ~std::uint64_t{0});
    return regular_ && ones && at_ == end_ && (half_ == 0 || nibble_ == 0);
  }

private:
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 63;

  // The largest codes give no valid length; none is as large. Of two long lengths one takes a byte and leaves
  // its upper nibble to the other, and half of the nibbles are full: no branch on what cannot be foreseen.
  ETWRELOG_ALWAYS_INLINE std::uint32_t long_length() {
    const std::uint32_t both = *at_, left = 0 - half_;
    const std::uint32_t nibble = (nibble_ & left) | (both & 15 & ~left);
    nibble_ = both >> 4;
    at_ += half_ ^ 1;
    half_ ^= 1;
    const std::uint32_t has_byte = (nibble + 1) >> 4;
    const std::uint32_t byte = *at_ & (0 - has_byte);
    at_ += has_byte;
    if (byte < 255) [[likely]] {
      return 7 + nibble + byte;
    }
    std::uint32_t code = load<std::uint16_t>(at_);
    at_ += 2;
    if (code == 0) {
      code = load<std::uint32_t>(at_);
      at_ += 4;
      regular_ = regular_ && code > 0xFFFF;
    }
    regular_ = regular_ && code >= 7 + 15 + 255;
    return code < kNoLength ? code : kNoLength;
  }

  static constexpr std::uint32_t kNoLength = 1u << 31; // longer than any content

  const std::uint8_t *at_;
  const std::uint8_t *end_;
  std::uint32_t half_ = 0;      // 1: the next long length has the nibble that the last one left
  std::uint32_t nibble_ = 0;    // that one
  std::uint64_t flags_ = kMark; // those not used yet, the next one on top, then a one that marks the end
  std::uint64_t flags_read_ = 0;
  bool regular_ = true;
};

} // namespace etwrelog::codec
