#include "stages/encode/encoder.hpp"
#include "stages/encode/match_length.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace etwrelog::codecs {
namespace {

constexpr std::size_t kChunkSize = 4096;
constexpr std::size_t kMinMatch = 3;

constexpr unsigned distance_bits(std::size_t done) {
  return done <= 16 ? 4u : static_cast<unsigned>(std::bit_width(done - 1));
}

class Lznt1Encoder final : public Encoder {
public:
  [[nodiscard]] std::size_t bound(std::size_t raw) const override {
    // A chunk is first written compressed: at worst a flag byte for eight literals, and the header.
    return raw + raw / kChunkSize * 2 + kChunkSize / 8 + 16;
  }

  [[nodiscard]] std::size_t encode(Bytes in, std::uint8_t *out, std::size_t) override {
    std::size_t written = 0;
    for (std::size_t pos = 0; pos < in.size(); pos += kChunkSize) {
      const Bytes chunk = in.subspan(pos, std::min(kChunkSize, in.size() - pos));
      written += encode_chunk(chunk, out + written);
    }
    return written;
  }

private:
  std::size_t encode_chunk(Bytes in, std::uint8_t *out) {
    table_.fill(0);
    std::uint8_t *at = out + 2;
    std::uint8_t *flags_at = at++;
    unsigned flags = 0;
    unsigned count = 0;
    const std::uint8_t *const begin = in.data();
    std::size_t pos = 0;
    while (pos < in.size()) {
      if (count == 8) {
        *flags_at = static_cast<std::uint8_t>(flags);
        flags_at = at++;
        flags = count = 0;
      }
      std::size_t length = 0;
      std::size_t distance = 0;
      if (in.size() - pos >= 4) {
        const std::uint32_t bytes = load<std::uint32_t>(begin + pos);
        std::uint16_t &entry = table_[bytes * 2654435761u >> 20];
        if (entry != 0) {
          distance = pos + 1 - entry;
          length = match_length(begin + pos - distance, begin + pos, begin + in.size());
        }
        entry = static_cast<std::uint16_t>(pos + 1);
      }
      if (length < kMinMatch) {
        *at++ = begin[pos++];
      } else {
        const unsigned length_bits = 16 - distance_bits(pos);
        length = std::min(length, kMinMatch + (std::size_t{1} << length_bits) - 1);
        store(at, static_cast<std::uint16_t>((distance - 1) << length_bits | (length - kMinMatch)));
        at += 2;
        flags |= 1u << count;
        pos += length;
      }
      ++count;
    }
    *flags_at = static_cast<std::uint8_t>(flags);
    const std::size_t size = static_cast<std::size_t>(at - out) - 2;
    if (size >= in.size()) {
      std::memcpy(out + 2, begin, in.size());
      store(out, static_cast<std::uint16_t>(0x3000 | (in.size() - 1)));
      return in.size() + 2;
    }
    store(out, static_cast<std::uint16_t>(0xB000 | (size - 1)));
    return size + 2;
  }

  std::array<std::uint16_t, 4096> table_{}; // position + 1
};

} // namespace

std::unique_ptr<Encoder> make_lznt1_encoder(Level, std::size_t) { return std::make_unique<Lznt1Encoder>(); }

} // namespace etwrelog::codecs
