// The token stream of plain XPRESS as Windows writes it.
#pragma once

#include "base/cpu.hpp"
#include "codec/xpress/format.hpp"
#include "etwrelog/bytes.hpp"

#include <cassert>
#include <cstring>

namespace etwrelog::codec {

class XpressWriter {
public:
  static constexpr std::size_t kMinMatch = kXpressMinMatch;
  static constexpr std::size_t kMaxDistance = 8191; // the format could say 8192; Windows never does

  // A length in 32 bits was never seen from Windows, and libfwnt refuses those of more than 15 bits. Both are
  // what an encoder may use: match() writes whatever token the format has, as a stream of another's making
  // may hold it.
  static constexpr std::size_t kMaxMatch = 32768;

  // Literals cost a byte and a flag; a match never costs more than the literals it replaces.
  [[nodiscard]] static constexpr std::size_t bound(std::size_t raw) { return raw + raw / 32 * 4 + 16; }

  explicit XpressWriter(std::uint8_t *out) : begin_(out), at_(out + 4), flags_at_(out) {}

  ETWRELOG_ALWAYS_INLINE void literal(std::uint8_t byte) {
    *at_++ = byte;
    flag(0);
  }

  ETWRELOG_ALWAYS_INLINE void match(std::size_t distance, std::size_t length) {
    assert(distance >= 1 && distance <= kMaxDistance + 1 && length >= kMinMatch);
    const std::uint32_t code = static_cast<std::uint32_t>(length - kMinMatch);
    const std::uint32_t token = static_cast<std::uint32_t>(distance - 1) << 3;
    store(at_, static_cast<std::uint16_t>(token | (code < 7 ? code : 7)));
    at_ += 2;
    if (code >= 7) {
      long_length(code);
    }
    flag(1);
  }

  // Takes the last token back. False where that is none, no literal, or its flag is written already.
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool take_back_literal() {
    if (count_ == 0 || (flags_ & 1) != 0) {
      return false;
    }
    --at_;
    flags_ >>= 1;
    --count_;
    return true;
  }

  // Fills the unused flags with ones, the sign of the end; a stream whose last word is used up gets another.
  [[nodiscard]] std::size_t finish() {
    const unsigned left = 32 - count_;
    store(flags_at_, left == 32 ? 0xFFFF'FFFFu : flags_ << left | ((1u << left) - 1));
    return static_cast<std::size_t>(at_ - begin_);
  }

  // Whether the next length of 10 or more finds a nibble to share.
  [[nodiscard]] bool half_byte_open() const { return half_open_ != 0; }

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }

private:
  ETWRELOG_ALWAYS_INLINE void flag(std::uint32_t bit) {
    flags_ = flags_ << 1 | bit;
    if (++count_ == 32) {
      store(flags_at_, flags_);
      flags_at_ = at_;
      at_ += 4;
      count_ = 0;
    }
  }

  // Whether a nibble is open, and whether one is full, is hard to foresee: no branch there. The byte that may
  // follow is written in any case; a length of 10 or more leaves room for it.
  ETWRELOG_ALWAYS_INLINE void long_length(std::uint32_t code) {
    const std::uint32_t nibble = code - 7 < 15 ? code - 7 : 15;
    std::uint8_t *const choice[2] = {at_, half_byte_};
    std::uint8_t *const to = choice[half_open_];
    *to = static_cast<std::uint8_t>(half_value_ | nibble << (4 * half_open_));
    at_ += 1 - half_open_;
    half_byte_ = to;
    half_value_ = nibble & (half_open_ - 1);
    half_open_ ^= 1;
    *at_ = static_cast<std::uint8_t>(code - 7 - 15);
    if (code < 7 + 15 + 255) [[likely]] {
      at_ += nibble == 15 ? 1 : 0;
      return;
    }
    *at_++ = 255;
    const bool wide = code > 0xFFFF;
    store(at_, wide ? std::uint16_t{0} : static_cast<std::uint16_t>(code));
    at_ += 2;
    if (!wide) return;
    store(at_, code);
    at_ += 4;
  }

  std::uint8_t *begin_;
  std::uint8_t *at_;
  std::uint8_t *flags_at_;
  std::uint8_t *half_byte_ = nullptr;
  std::uint32_t half_open_ = 0, half_value_ = 0; // its lower nibble
  std::uint32_t flags_ = 0;
  unsigned count_ = 0;
};

} // namespace etwrelog::codec
