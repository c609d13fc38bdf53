// Bytes on their way to the caller: buffered, counted, compressed on request; the first failure is kept.
#pragma once

#include "etwrelog/profile_export.hpp"

#include <memory>

namespace etwrelog::export_profile {

class Out {
public:
  explicit Out(const WriteBytes &write, bool gzip = false);
  ~Out();
  Out(const Out &) = delete;
  Out &operator=(const Out &) = delete;

  Out &text(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() >= kPiece) flush();
    return *this;
  }
  Out &number(std::int64_t value);
  Out &unsigned_number(std::uint64_t value);
  Out &fixed(double value, int decimals); // without trailing zeros
  Out &exact(double value);               // as short as reads back the same
  Out &json(std::string_view text);       // quoted and escaped, also against "</script>"
  Out &xml(std::string_view text);        // escaped for text and for attributes

  [[nodiscard]] bool compresses() const { return compresses_; }
  // Hands over nothing: whether the caller wants to go on, who has no other way to stop.
  [[nodiscard]] Result<void> still_wanted();
  // A whole file that another Out made, as it is; nothing else may be written.
  void finished_bytes(Bytes bytes);

  // Everything is handed over; what was written is complete.
  [[nodiscard]] Result<std::uint64_t> finish();

private:
  static constexpr std::size_t kPiece = 1u << 16;
  struct Gzip;
  void end_compressor();
  void flush();
  void hand_over(Bytes bytes);
  void compress(bool last);

  const WriteBytes &write_;
  const bool compresses_;
  std::string buffer_;
  std::unique_ptr<Gzip> gzip_;
  std::uint64_t bytes_ = 0;
  std::optional<Error> error_;
};

// Valid UTF-8 without control characters, as every format here wants it: names of programs and of functions
// can be anything in a hostile trace. What is not valid becomes U+FFFD, and so does what separates
// lines or turns the direction of writing; control characters become blanks.
[[nodiscard]] std::string clean(std::string_view text);

} // namespace etwrelog::export_profile
