// The way back: the bytes of an event made anew from what its fields are shown as. What comes out equals the
// payload, or the reading of the payload is wrong; but for values that no text tells whole, which are named.
#pragma once

#include "schema/program.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace etwrelog::schema {

// The bytes of a value that is shown as `text` (as append_value() writes it, without quotes), appended. False
// if it is no such text.
[[nodiscard]] bool encode_value(const Op &op, std::string_view text, unsigned pointer_size,
                                std::vector<std::uint8_t> &out);

class EncodeSink {
public:
  EncodeSink(Bytes payload, unsigned pointer_size, std::vector<std::uint8_t> &out, std::string &scratch)
      : payload_(payload), pointer_size_(pointer_size), out_(out), text_(scratch) {
    out_.clear();
  }

  void value(const Op &op, Bytes data);
  void element(const Op &op, Bytes data) { single(op, data); }
  void begin_structure(const Op &) {}
  void end_structure(const Op &) {}
  void begin_array(const Op &op, Bytes) {
    starts_.push_back(out_.size());
    if (op.repeat == Measure::prefix16) out_.insert(out_.end(), 2, 0);
  }
  void end_array(const Op &op, std::uint32_t elements, Bytes) {
    if (op.repeat == Measure::prefix16)
      store(out_.data() + starts_.back(), static_cast<std::uint16_t>(elements));
    starts_.pop_back();
  }
  void begin_element(const Op &) {}
  void end_element(const Op &) {}
  [[nodiscard]] std::size_t mark() const { return out_.size(); }
  void rollback(std::size_t mark) {
    out_.resize(mark);
    starts_.pop_back();
  }
  [[nodiscard]] bool full() const { return false; }

  // Why some value of the event has not all of its bytes in its text; empty if none.
  [[nodiscard]] std::string_view lost() const { return lost_; }

private:
  void single(const Op &op, Bytes data);
  void string(const Op &op, Bytes data, bool characters);
  void put_prefix(Measure measure, std::size_t count);
  void lose(std::string_view why) {
    if (lost_.empty()) lost_ = why;
  }
  // The value as text, in text_.
  void show(const Op &op, Bytes data);

  Bytes payload_;
  unsigned pointer_size_;
  std::vector<std::uint8_t> &out_;
  std::string &text_;
  std::vector<std::size_t> starts_; // of open arrays
  std::string_view lost_;
};

} // namespace etwrelog::schema
