// Plain XPRESS. A match costs the same at any distance, so the longest is the best at each length: fast takes
// it as it comes, normal looks one byte ahead, max weighs all ways through a block of input exactly.
//
// Archives name fast and normal as what makes a stream again (xpress/streams.hpp): their choices are frozen.
// A better one is another encoder beside them.
#include "codec/encoder.hpp"
#include "codec/match_finder.hpp"
#include "codec/xpress/row_finder.hpp"
#include "codec/xpress/writer.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace etwrelog::codec {
namespace {

constexpr std::size_t kMinMatch = XpressWriter::kMinMatch;
constexpr std::size_t kWindow = XpressWriter::kMaxDistance;

// Where a match from `pos` on ends at the latest.
[[nodiscard]] const std::uint8_t *match_end(Bytes in, std::size_t pos) {
  return in.data() + pos + std::min(in.size() - pos, XpressWriter::kMaxMatch);
}

class XpressFast final : public Encoder {
public:
  [[nodiscard]] std::size_t bound(std::size_t raw) const override { return XpressWriter::bound(raw); }

  [[nodiscard]] std::size_t encode(Bytes in, std::uint8_t *out, std::size_t limit) override {
    probe_.reset();
    XpressWriter writer(out);
    const std::uint8_t *const begin = in.data();
    std::size_t pos = 0;
    while (in.size() - pos >= kFinderNeeds) {
      if (writer.size() > limit) {
        return writer.size();
      }
      const Match match = probe_.find(begin, pos, kWindow, match_end(in, pos));
      if (match.length == 0) {
        writer.literal(begin[pos++]);
      } else {
        writer.match(match.distance, match.length);
        pos += match.length;
      }
    }
    while (pos < in.size()) {
      writer.literal(begin[pos++]);
    }
    return writer.finish();
  }

private:
  HashProbe probe_{13, 12};
};

class XpressNormal final : public Encoder {
public:
  [[nodiscard]] std::size_t bound(std::size_t raw) const override { return XpressWriter::bound(raw); }

  [[nodiscard]] std::size_t encode(Bytes in, std::uint8_t *out, std::size_t limit) override {
    RowFinder finder(tables_, in, kWindow);
    XpressWriter writer(out);
    const std::uint8_t *const begin = in.data();
    const std::size_t searched = in.size() - std::min(in.size(), RowFinder::kNeeds - 1);
    std::size_t pos = 0;
    Match match;
    while (pos < searched) {
      if (writer.size() > limit) {
        return writer.size();
      }
      if (match.length < kMinMatch) {
        writer.literal(begin[pos++]);
      } else {
        // A longer match at the next byte is worth the literal, unless it needs a longer escape.
        if (match.length < kLazyBelow && pos + 1 < searched) {
          const Match next = finder.find_longer(pos + 1, match.length, match_end(in, pos + 1));
          if (next.length > match.length && saved_bits(next.length) > saved_bits(match.length)) {
            writer.literal(begin[pos++]);
            match = next;
            continue;
          }
        }
        // The finder does not have all positions, so that the match may have begun before.
        while (match.length < XpressWriter::kMaxMatch && pos > match.distance &&
               begin[pos - 1] == begin[pos - 1 - match.distance] && writer.take_back_literal()) {
          --pos;
          ++match.length;
        }
        writer.match(match.distance, match.length);
        pos += match.length;
      }
      match = pos < searched ? finder.find(pos, match_end(in, pos)) : Match{};
    }
    while (pos < in.size()) {
      writer.literal(begin[pos++]);
    }
    return writer.finish();
  }

private:
  static constexpr std::size_t kLazyBelow = RowFinder::kNeeds;

  // Against literals. A nibble counts as half a byte: two matches share one.
  [[nodiscard]] static std::int64_t saved_bits(std::size_t length) {
    const int match = length < 10 ? 17 : length < 25 ? 21 : length < 280 ? 29 : 45;
    return static_cast<std::int64_t>(9 * length) - match;
  }

  RowTables tables_;
};

class XpressMax final : public Encoder {
public:
  explicit XpressMax(std::size_t max_input)
      : chain_(max_input, kWindow), matches_(std::min(max_input, kBlock)), steps_(matches_.size()),
        costs_(matches_.size() + 1) {}

  [[nodiscard]] std::size_t bound(std::size_t raw) const override { return XpressWriter::bound(raw); }

  [[nodiscard]] std::size_t encode(Bytes in, std::uint8_t *out, std::size_t limit) override {
    chain_.reset(in);
    XpressWriter writer(out);
    for (std::size_t start = 0; start < in.size(); start += kBlock) {
      const std::size_t size = std::min(kBlock, in.size() - start);
      find_matches(in, start, size);
      weigh(size);
      bool half = writer.half_byte_open();
      for (std::size_t i = 0; i < size;) {
        const std::size_t length = steps_[i][half ? 1 : 0];
        if (length == 1) {
          writer.literal(in[start + i]);
        } else {
          writer.match(matches_[i].distance, length);
          half = writer.half_byte_open();
        }
        i += length;
      }
      if (writer.size() > limit) {
        return writer.size();
      }
    }
    return writer.finish();
  }

private:
  static constexpr std::size_t kBlock = std::size_t{1} << 17; // memory stays bounded; matches end at its end
  static constexpr unsigned kDepth = 64;
  static constexpr std::size_t kLongEnough = 280; // inside such a match no other is looked for

  struct Step {
    std::uint32_t length = 0;
    std::uint32_t distance = 0;
  };

  void find_matches(Bytes in, std::size_t start, std::size_t size) {
    const Bytes block = in.first(start + size);
    Match last;
    for (std::size_t i = 0; i < size; ++i) {
      // What is left of the match a byte before need not be found again, and where it is long not even
      // improved.
      last.length = last.length > kMinMatch ? last.length - 1 : 0;
      if (last.length < kLongEnough) {
        const Match match = chain_.find(start + i, std::max(last.length, kMinMatch - 1), kDepth, kWindow,
                                        match_end(block, start + i));
        last = match.length != 0 ? match : last;
      }
      matches_[i] = {static_cast<std::uint32_t>(last.length), static_cast<std::uint32_t>(last.distance)};
    }
  }

  // From the end: what the rest costs at best, with no nibble open and with one. Exact but for the flag
  // words.
  void weigh(std::size_t size) {
    costs_[size] = {0, 0};
    for (std::size_t i = size; i-- > 0;) {
      const std::size_t longest = matches_[i].length;
      for (unsigned half = 0; half < 2; ++half) {
        std::uint32_t best = costs_[i + 1][half] + 9;
        std::uint32_t step = 1;
        const auto consider = [&](std::size_t length, std::uint32_t bits, unsigned after) {
          const std::uint32_t cost = costs_[i + length][after] + bits;
          if (cost < best) {
            best = cost;
            step = static_cast<std::uint32_t>(length);
          }
        };
        for (std::size_t length = std::min<std::size_t>(longest, 9); length >= kMinMatch; --length) {
          consider(length, 17, half);
        }
        const std::uint32_t nibble = half != 0 ? 17 : 25;
        for (std::size_t length = std::min<std::size_t>(longest, 24); length >= 10; --length) {
          consider(length, nibble, 1 - half);
        }
        // Longer ones near their end and the limit of their escape: in between is never better by much.
        for (std::size_t length = std::min<std::size_t>(longest, 279), n = 0; length >= 25 && n < 16;
             --length, ++n) {
          consider(length, nibble + 8, 1 - half);
        }
        for (std::size_t length = longest, n = 0; length >= 280 && n < 16; --length, ++n) {
          consider(length, nibble + 24, 1 - half);
        }
        costs_[i][half] = best;
        steps_[i][half] = step;
      }
    }
  }

  HashChain chain_;
  std::vector<Step> matches_; // the longest at each position of the block
  std::vector<std::array<std::uint32_t, 2>> steps_;
  std::vector<std::array<std::uint32_t, 2>> costs_;
};

} // namespace

std::unique_ptr<Encoder> make_xpress_encoder(Level level, std::size_t max_input) {
  switch (level) {
  case Level::fast: return std::make_unique<XpressFast>();
  case Level::normal: return std::make_unique<XpressNormal>();
  case Level::max:
  case Level::ultra: break;
  }
  return std::make_unique<XpressMax>(max_input);
}

} // namespace etwrelog::codec
