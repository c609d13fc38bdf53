// Takes a plain XPRESS stream apart into its tokens.
#pragma once

#include "etwrelog/bytes.hpp"

namespace etwrelog::codec {

struct XpressToken {
  std::uint32_t distance = 0; // 0: a literal
  std::uint32_t length = 1;

  bool operator==(const XpressToken &) const = default;
};

// Reads within the stream and yields no match that reaches outside the content, whatever the bytes. That
// lengths and spare flags are written as Windows does is not looked at: whoever writes the tokens again can
// compare.
class XpressReader {
public:
  explicit XpressReader(Bytes in) : at_(in.data()), end_(in.data() + in.size()) {}

  // The token for the content's position `pos`, with `left` > 0 bytes of content from there on.
  [[nodiscard]] bool next(std::size_t pos, std::size_t left, XpressToken &token) {
    if (count_ == 0) {
      if (end_ - at_ < 4) {
        return false;
      }
      flags_ = load<std::uint32_t>(at_);
      at_ += 4;
      count_ = 32;
    }
    --count_;
    if ((flags_ >> count_ & 1) == 0) {
      token = {};
      if (at_ == end_) {
        return false;
      }
      ++at_;
      return true;
    }
    if (end_ - at_ < 2) {
      return false;
    }
    const std::uint32_t word = load<std::uint16_t>(at_);
    at_ += 2;
    std::uint64_t length = word & 7;
    if (length == 7 && !long_length(length)) {
      return false;
    }
    const std::uint32_t distance = (word >> 3) + 1;
    if (distance > pos || length + 3 > left) {
      return false;
    }
    token = {distance, static_cast<std::uint32_t>(length + 3)};
    return true;
  }

private:
  [[nodiscard]] bool long_length(std::uint64_t &length) {
    if (half_byte_ == nullptr) {
      if (at_ == end_) {
        return false;
      }
      half_byte_ = at_++;
      length += *half_byte_ & 15u;
    } else {
      length += *half_byte_ >> 4;
      half_byte_ = nullptr;
    }
    if (length < 7 + 15) {
      return true;
    }
    if (at_ == end_) {
      return false;
    }
    const std::uint8_t more = *at_++;
    length += more;
    if (more < 255) {
      return true;
    }
    if (end_ - at_ < 2) {
      return false;
    }
    length = load<std::uint16_t>(at_);
    at_ += 2;
    if (length != 0) {
      return true;
    }
    if (end_ - at_ < 4) {
      return false;
    }
    length = load<std::uint32_t>(at_);
    at_ += 4;
    return true;
  }

  const std::uint8_t *at_;
  const std::uint8_t *end_;
  const std::uint8_t *half_byte_ = nullptr;
  std::uint32_t flags_ = 0;
  unsigned count_ = 0;
};

} // namespace etwrelog::codec
