// LZNT1. Chunks of 4096 bytes, each on its own; one that does not shrink is stored. Every match costs the
// same, so only its length counts.
#include "codec/encoder.hpp"
#include "codec/lznt1/format.hpp"
#include "codec/match_finder.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace etwrelog::codec {
namespace {

constexpr std::size_t kChunk = kLznt1Chunk;
constexpr std::size_t kMinMatch = kLznt1MinMatch;

// The tokens of one chunk.
class ChunkWriter {
public:
  explicit ChunkWriter(std::uint8_t *out) : begin_(out), flags_at_(out), at_(out + 1) {}

  void literal(std::uint8_t byte) {
    open_group();
    *at_++ = byte;
    ++count_;
  }

  void match(std::size_t done, std::size_t distance, std::size_t length) {
    open_group();
    const unsigned length_bits = 16 - lznt1_distance_bits(done);
    store(at_, static_cast<std::uint16_t>((distance - 1) << length_bits | (length - kMinMatch)));
    at_ += 2;
    flags_ |= 1u << count_++;
  }

  [[nodiscard]] std::size_t finish() {
    *flags_at_ = static_cast<std::uint8_t>(flags_);
    return static_cast<std::size_t>(at_ - begin_);
  }

private:
  // A flag byte stands only before a token that there is.
  void open_group() {
    if (count_ == 8) {
      *flags_at_ = static_cast<std::uint8_t>(flags_);
      flags_at_ = at_++;
      flags_ = count_ = 0;
    }
  }

  std::uint8_t *begin_;
  std::uint8_t *flags_at_;
  std::uint8_t *at_;
  unsigned flags_ = 0;
  unsigned count_ = 0;
};

// Parser: reset(in), then parse(start, end, writer) for each chunk in order.
template <class Parser> class Lznt1Encoder final : public Encoder {
public:
  explicit Lznt1Encoder(std::size_t max_input) : parser_(max_input) {}

  [[nodiscard]] std::size_t bound(std::size_t raw) const override {
    // A chunk is first written compressed: at worst a flag byte for eight literals, and the header.
    return raw + raw / kChunk * 2 + kChunk / 8 + 16;
  }

  [[nodiscard]] std::size_t encode(Bytes in, std::uint8_t *out, std::size_t limit) override {
    parser_.reset(in);
    std::size_t written = 0;
    for (std::size_t start = 0; start < in.size() && written <= limit; start += kChunk) {
      const std::size_t raw = std::min(kChunk, in.size() - start);
      std::uint8_t *const at = out + written;
      ChunkWriter writer(at + 2);
      parser_.parse(start, start + raw, writer);
      const std::size_t size = writer.finish();
      if (size < raw) {
        store(at, static_cast<std::uint16_t>(0xB000 | (size - 1)));
        written += 2 + size;
      } else {
        store(at, static_cast<std::uint16_t>(0x3000 | (raw - 1)));
        std::memcpy(at + 2, in.data() + start, raw);
        written += 2 + raw;
      }
    }
    return written;
  }

private:
  Parser parser_;
};

class FastParser {
public:
  explicit FastParser(std::size_t) {}

  void reset(Bytes in) {
    in_ = in;
    probe_.reset();
  }

  void parse(std::size_t start, std::size_t end, ChunkWriter &writer) {
    const std::uint8_t *const begin = in_.data();
    std::size_t pos = start;
    while (pos < end && in_.size() - pos >= kFinderNeeds) {
      const std::size_t done = pos - start;
      const std::size_t room = std::min(end - pos, lznt1_max_match(done));
      const Match match = probe_.find(begin, pos, done, begin + pos + room);
      if (match.length < kMinMatch) {
        writer.literal(begin[pos++]);
      } else {
        writer.match(done, match.distance, match.length);
        pos += match.length;
      }
    }
    while (pos < end) {
      writer.literal(begin[pos++]);
    }
  }

private:
  Bytes in_;
  HashProbe probe_{12, 11};
};

class NormalParser {
public:
  explicit NormalParser(std::size_t max_input) : chain_(max_input, kChunk) {}

  void reset(Bytes in) {
    in_ = in;
    chain_.reset(in);
  }

  void parse(std::size_t start, std::size_t end, ChunkWriter &writer) {
    const auto find = [&](std::size_t pos, std::size_t beat, unsigned depth) {
      const std::size_t room = std::min(end - pos, lznt1_max_match(pos - start));
      return chain_.find(pos, beat, depth, pos - start, in_.data() + pos + room);
    };
    std::size_t pos = start;
    Match match = find(pos, kMinMatch - 1, kDepth);
    while (pos < end) {
      if (match.length >= kMinMatch) {
        if (match.length < kLazyBelow && pos + 1 < end) {
          const Match next = find(pos + 1, match.length, kLazyDepth);
          if (next.length > match.length) {
            writer.literal(in_[pos++]);
            match = next;
            continue;
          }
        }
        writer.match(pos - start, match.distance, match.length);
        pos += match.length;
      } else {
        writer.literal(in_[pos++]);
      }
      if (pos < end) {
        match = find(pos, kMinMatch - 1, kDepth);
      }
    }
  }

private:
  static constexpr unsigned kDepth = 64;
  static constexpr unsigned kLazyDepth = 32;
  static constexpr std::size_t kLazyBelow = 128;
  Bytes in_;
  HashChain chain_;
};

class MaxParser {
public:
  explicit MaxParser(std::size_t max_input) : chain_(max_input, kChunk) {}

  void reset(Bytes in) {
    in_ = in;
    chain_.reset(in);
  }

  void parse(std::size_t start, std::size_t end, ChunkWriter &writer) {
    const std::size_t size = end - start;
    Match last;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t room = std::min(size - i, lznt1_max_match(i));
      // What is left of the match a byte before need not be found again.
      last.length = std::min(last.length > kMinMatch ? last.length - 1 : 0, room);
      const std::size_t beat = std::max(last.length, kMinMatch - 1);
      const Match match = chain_.find(start + i, beat, kDepth, i, in_.data() + start + i + room);
      matches_[i] = last = match.length != 0 ? match : last;
    }
    // From the end: what the rest costs at best, in bits. A match always costs 17 of them.
    costs_[size] = 0;
    for (std::size_t i = size; i-- > 0;) {
      std::uint32_t best = costs_[i + 1] + 9;
      std::size_t step = 1;
      for (std::size_t length = matches_[i].length, n = 0; length >= kMinMatch && n < 32; --length, ++n) {
        if (costs_[i + length] + 17 < best) {
          best = costs_[i + length] + 17;
          step = length;
        }
      }
      costs_[i] = best;
      steps_[i] = static_cast<std::uint16_t>(step);
    }
    for (std::size_t i = 0; i < size; i += steps_[i]) {
      if (steps_[i] == 1) {
        writer.literal(in_[start + i]);
      } else {
        writer.match(i, matches_[i].distance, steps_[i]);
      }
    }
  }

private:
  static constexpr unsigned kDepth = 96;
  Bytes in_;
  HashChain chain_;
  std::array<Match, kChunk> matches_{}; // the longest at each position
  std::array<std::uint32_t, kChunk + 1> costs_{};
  std::array<std::uint16_t, kChunk> steps_{};
};

} // namespace

std::unique_ptr<Encoder> make_lznt1_encoder(Level level, std::size_t max_input) {
  switch (level) {
  case Level::fast: return std::make_unique<Lznt1Encoder<FastParser>>(max_input);
  case Level::normal: return std::make_unique<Lznt1Encoder<NormalParser>>(max_input);
  case Level::max:
  case Level::ultra: break;
  }
  return std::make_unique<Lznt1Encoder<MaxParser>>(max_input);
}

} // namespace etwrelog::codec
