#include "stages/encode/encoder.hpp"
#include "stages/encode/match_length.hpp"
#include "stages/encode/xpress_writer.hpp"

#include <algorithm>
#include <vector>

namespace etwrelog::codecs {
namespace {

// Greedy, one candidate a position.
class XpressFast final : public Encoder {
public:
  XpressFast() : table_(std::size_t{1} << kHashBits) {}

  [[nodiscard]] std::size_t bound(std::size_t raw) const override { return XpressWriter::bound(raw); }

  [[nodiscard]] std::size_t encode(Bytes in, std::uint8_t *out, std::size_t) override {
    std::fill(table_.begin(), table_.end(), 0);
    XpressWriter writer(out);
    const std::uint8_t *const begin = in.data();
    const std::uint8_t *const end = begin + in.size();
    std::size_t pos = 0;
    while (in.size() - pos >= 4) {
      const std::uint32_t bytes = load<std::uint32_t>(begin + pos);
      std::uint32_t &entry = table_[bytes * 2654435761u >> (32 - kHashBits)];
      const std::size_t distance = pos + 1 - entry;
      const bool known = entry != 0;
      entry = static_cast<std::uint32_t>(pos + 1);
      if (known && distance <= XpressWriter::kMaxDistance && load<std::uint32_t>(begin + pos - distance) == bytes) {
        const std::size_t length = 4 + match_length(begin + pos - distance + 4, begin + pos + 4, end);
        writer.match(distance, length);
        pos += length;
      } else {
        writer.literal(begin[pos++]);
      }
    }
    while (pos < in.size()) {
      writer.literal(begin[pos++]);
    }
    return writer.finish();
  }

private:
  static constexpr unsigned kHashBits = 13;
  std::vector<std::uint32_t> table_; // position + 1
};

} // namespace

std::unique_ptr<Encoder> make_xpress_encoder(Level, std::size_t) { return std::make_unique<XpressFast>(); }

} // namespace etwrelog::codecs
