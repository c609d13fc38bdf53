#include "export_profile/out.hpp"

#include "base/called.hpp"
#include "etwrelog/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include <zlib.h>

namespace etwrelog::export_profile {

struct Out::Gzip {
  z_stream stream{};
  std::array<std::uint8_t, kPiece> room{};
};

Out::Out(const WriteBytes &write, bool gzip) : write_(write), compresses_(gzip) {
  buffer_.reserve(kPiece + 4096);
  if (!gzip) return;
  gzip_ = std::make_unique<Gzip>();
  // 15 + 16: a gzip header. zlib writes no time into it, so the same input gives the same bytes. At level 6 a
  // profile came to 8% less, in two and a half times the time.
  if (deflateInit2(&gzip_->stream, 4, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    gzip_.reset();
    error_.emplace();
    error_->kind = ErrorKind::io;
    error_->what = "no memory for the compressor";
  }
}

Out::~Out() {
  end_compressor();
}

void Out::end_compressor() {
  if (gzip_) deflateEnd(&gzip_->stream);
  gzip_.reset();
}

Result<void> Out::still_wanted() {
  return base::called("what takes the bytes", [&] { return write_({}); });
}

void Out::finished_bytes(Bytes bytes) {
  end_compressor();
  hand_over(bytes);
}

void Out::hand_over(Bytes bytes) {
  if (error_ || bytes.empty()) return;
  bytes_ += bytes.size();
  Result<void> done = base::called("what takes the bytes", [&] { return write_(bytes); });
  if (!done) error_ = std::move(done).error();
}

void Out::compress(bool last) {
  z_stream &z = gzip_->stream;
  z.next_in = reinterpret_cast<Bytef *>(buffer_.data());
  z.avail_in = static_cast<uInt>(buffer_.size());
  for (;;) {
    z.next_out = gzip_->room.data();
    z.avail_out = static_cast<uInt>(gzip_->room.size());
    const int status = deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
    hand_over({gzip_->room.data(), gzip_->room.size() - z.avail_out});
    if (last ? status == Z_STREAM_END : z.avail_out != 0) break;
  }
}

void Out::flush() {
  if (gzip_ && !error_)
    compress(false);
  else
    hand_over({reinterpret_cast<const std::uint8_t *>(buffer_.data()), buffer_.size()});
  buffer_.clear();
}

Result<std::uint64_t> Out::finish() {
  if (gzip_)
    compress(true);
  else
    flush();
  buffer_.clear();
  if (error_) return *error_;
  return bytes_;
}

Out &Out::number(std::int64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return text({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

Out &Out::unsigned_number(std::uint64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return text({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

Out &Out::fixed(double value, int decimals) {
  std::array<char, 64> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, decimals)
          .ptr;
  std::string_view shown(digits.data(), static_cast<std::size_t>(end - digits.data()));
  if (shown.find('.') != std::string_view::npos) {
    while (shown.back() == '0')
      shown.remove_suffix(1);
    if (shown.back() == '.') shown.remove_suffix(1);
  }
  return text(shown == "-0" ? "0" : shown);
}

Out &Out::exact(double value) {
  std::array<char, 400> digits; // a double can have 309 of them in front of the point
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr;
  return text({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

Out &Out::json(std::string_view value) {
  text("\"");
  std::size_t from = 0;
  for (std::size_t at = 0; at < value.size(); ++at) {
    const auto c = static_cast<unsigned char>(value[at]);
    if (c >= 0x20 && c != '"' && c != '\\' && c != '<') continue;
    text(value.substr(from, at - from));
    from = at + 1;
    if (c == '"' || c == '\\') {
      const char escaped[] = {'\\', static_cast<char>(c)};
      text({escaped, 2});
    } else {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", c);
      text({escaped.data(), 6});
    }
  }
  return text(value.substr(from)).text("\"");
}

Out &Out::xml(std::string_view value) {
  std::size_t from = 0;
  for (std::size_t at = 0; at < value.size(); ++at) {
    const char c = value[at];
    const std::string_view escaped = c == '<'   ? "&lt;"
                                     : c == '>' ? "&gt;"
                                     : c == '&' ? "&amp;"
                                     : c == '"' ? "&quot;"
                                                : std::string_view();
    if (escaped.empty()) continue;
    text(value.substr(from, at - from)).text(escaped);
    from = at + 1;
  }
  return text(value.substr(from));
}

namespace {

// Bytes of the UTF-8 sequence at the front, 0 if it is not valid or not allowed in XML.
std::size_t sequence(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  const std::size_t size = first < 0x80             ? 1
                           : (first & 0xE0) == 0xC0 ? 2
                           : (first & 0xF0) == 0xE0 ? 3
                           : (first & 0xF8) == 0xF0 ? 4
                                                    : 0;
  if (size == 0 || size > text.size()) return 0;
  if (size == 1) return 1;
  std::uint32_t value = first & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[size] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return 0;
  return value == 0xFFFE || value == 0xFFFF ? 0 : size;
}

} // namespace

std::string clean(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = sequence(text);
    if (size == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    const auto c = static_cast<unsigned char>(text[0]);
    const bool control = (size == 1 && (c < 0x20 || c == 0x7F)) ||
                         (size == 2 && c == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    const bool may_turn = size > 1 && (c == 0xD8 || c == 0xE2); // with what printable() leaves out besides
    if (control)
      out += ' ';
    else if (may_turn && printable(text.substr(0, size)) != text.substr(0, size))
      out += "\xEF\xBF\xBD";
    else
      out.append(text.substr(0, size));
    text.remove_prefix(size);
  }
  return out;
}

} // namespace etwrelog::export_profile
