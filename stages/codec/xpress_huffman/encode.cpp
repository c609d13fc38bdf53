// XPRESS-Huffman. Blocks of 65536 bytes with their own code; matches reach back over blocks but end with
// theirs. Fast takes the first match, normal the one that seems to save most, looking a byte ahead; max
// parses each block anew with the costs of the code that the parse before led to.
#include "codec/encoder.hpp"
#include "codec/match_finder.hpp"
#include "codec/xpress/format.hpp"
#include "codec/xpress_huffman/huffman_code.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace etwrelog::codec {
namespace {

constexpr std::size_t kBlock = 65536;
constexpr std::size_t kWindow = 65535;
constexpr std::size_t kMinMatch = kXpressMinMatch;
constexpr std::size_t kMaxMatch = 32768; // libfwnt refuses lengths of more than 15 bits
constexpr std::size_t kTableBytes = 256;
constexpr unsigned kEndSymbol = 256;

struct Token {
  std::uint32_t length = 0; // 0: a literal
  std::uint16_t value = 0;  // the literal, or the distance
};

// Where a match from `pos` on ends at the latest.
[[nodiscard]] const std::uint8_t *match_end(Bytes in, std::size_t pos, std::size_t end) {
  return in.data() + pos + std::min(end - pos, kMaxMatch);
}

[[nodiscard]] unsigned distance_bits(std::size_t distance) {
  return static_cast<unsigned>(std::bit_width(distance)) - 1;
}

[[nodiscard]] unsigned match_symbol(std::size_t length, std::size_t distance) {
  return 256 + (distance_bits(distance) << 4) +
         static_cast<unsigned>(std::min<std::size_t>(length - kMinMatch, 15));
}

// Bits of the length that stand outside the symbol.
[[nodiscard]] unsigned extra_bits(std::size_t length) {
  return length < 15 + kMinMatch ? 0 : length < 15 + 255 + kMinMatch ? 8 : 24;
}

// 16-bit words, each in the place where the decoder reads it: two are reserved ahead, plain bytes go behind
// them.
class BitWriter {
public:
  explicit BitWriter(std::uint8_t *out) : word_at_(out), next_word_at_(out + 2), at_(out + 4) {}

  // n <= 16
  void bits(std::uint32_t value, unsigned n) {
    held_ = held_ << n | value;
    count_ += n;
    if (count_ > 16) { // not sooner: the decoder reads a word when it lacks a bit
      count_ -= 16;
      store(word_at_, static_cast<std::uint16_t>(held_ >> count_));
      word_at_ = next_word_at_;
      next_word_at_ = at_;
      at_ += 2;
    }
  }
  void byte(std::uint8_t value) { *at_++ = value; }
  void word(std::uint16_t value) {
    store(at_, value);
    at_ += 2;
  }
  [[nodiscard]] std::uint8_t *finish() {
    store(word_at_, static_cast<std::uint16_t>(held_ << (16 - count_)));
    store(next_word_at_, std::uint16_t{0});
    return at_;
  }

private:
  std::uint8_t *word_at_;
  std::uint8_t *next_word_at_;
  std::uint8_t *at_;
  std::uint32_t held_ = 0; // the lower count_ bits count
  unsigned count_ = 0;
};

void count_tokens(const std::vector<Token> &tokens, bool last, HuffmanCode::Counts &counts) {
  counts.fill(0);
  for (const Token &t : tokens) {
    ++counts[t.length == 0 ? t.value : match_symbol(t.length, t.value)];
  }
  counts[kEndSymbol] += last ? 1 : 0;
}

std::uint8_t *write_block(const std::vector<Token> &tokens, const HuffmanCode &code, bool last,
                          std::uint8_t *out) {
  for (unsigned i = 0; i < kTableBytes; ++i) {
    out[i] = static_cast<std::uint8_t>(code.length(2 * i) | code.length(2 * i + 1) << 4);
  }
  BitWriter writer(out + kTableBytes);
  for (const Token &t : tokens) {
    if (t.length == 0) {
      writer.bits(code.code(t.value), code.length(t.value));
      continue;
    }
    const unsigned symbol = match_symbol(t.length, t.value);
    writer.bits(code.code(symbol), code.length(symbol));
    const std::uint32_t rest = t.length - kMinMatch;
    if (rest >= 15) {
      writer.byte(static_cast<std::uint8_t>(std::min<std::uint32_t>(rest - 15, 255)));
      if (rest >= 15 + 255) {
        writer.word(static_cast<std::uint16_t>(rest));
      }
    }
    const unsigned bits = distance_bits(t.value);
    writer.bits(t.value - (1u << bits), bits);
  }
  if (last) {
    writer.bits(code.code(kEndSymbol), code.length(kEndSymbol));
  }
  return writer.finish();
}

// Parser: reset(in), then parse(start, end, last, tokens) for each block in order.
template <class Parser> class HuffmanEncoder final : public Encoder {
public:
  explicit HuffmanEncoder(std::size_t max_input) : parser_(max_input) {
    tokens_.reserve(std::min(max_input, kBlock));
  }

  // No code is longer than 15 bits; a match of three bytes takes 30 at most.
  [[nodiscard]] std::size_t bound(std::size_t raw) const override {
    return 2 * raw + (raw / kBlock + 1) * (kTableBytes + 16);
  }

  [[nodiscard]] std::size_t encode(Bytes in, std::uint8_t *out, std::size_t limit) override {
    parser_.reset(in);
    std::uint8_t *at = out;
    std::size_t start = 0;
    do {
      const std::size_t end = start + std::min(kBlock, in.size() - start);
      const bool last = end == in.size();
      tokens_.clear();
      parser_.parse(start, end, last, tokens_);
      HuffmanCode::Counts counts;
      count_tokens(tokens_, last, counts);
      code_.build(counts);
      at = write_block(tokens_, code_, last, at);
      start = end;
    } while (start < in.size() && static_cast<std::size_t>(at - out) <= limit);
    return in.empty() ? 0 : static_cast<std::size_t>(at - out);
  }

private:
  Parser parser_;
  HuffmanCode code_;
  std::vector<Token> tokens_;
};

void add_literal(std::vector<Token> &tokens, std::uint8_t byte) {
  tokens.push_back({0, byte});
}
void add_match(std::vector<Token> &tokens, std::size_t length, std::size_t distance) {
  tokens.push_back({static_cast<std::uint32_t>(length), static_cast<std::uint16_t>(distance)});
}

class FastParser {
public:
  explicit FastParser(std::size_t) {}

  void reset(Bytes in) {
    in_ = in;
    probe_.reset();
  }

  void parse(std::size_t start, std::size_t end, bool, std::vector<Token> &tokens) {
    const std::uint8_t *const begin = in_.data();
    std::size_t pos = start;
    while (pos < end && in_.size() - pos >= kFinderNeeds) {
      const Match match = probe_.find(begin, pos, kWindow, match_end(in_, pos, end));
      // Three bytes from afar cost more than three literals.
      if (match.length < kMinMatch || (match.length == kMinMatch && match.distance > kNear)) {
        add_literal(tokens, begin[pos++]);
      } else {
        add_match(tokens, match.length, match.distance);
        pos += match.length;
      }
    }
    while (pos < end) {
      add_literal(tokens, begin[pos++]);
    }
  }

private:
  static constexpr std::size_t kNear = 2048;
  Bytes in_;
  HashProbe probe_{14, 12};
};

class NormalParser {
public:
  explicit NormalParser(std::size_t max_input) : chain_(max_input, kWindow) {}

  void reset(Bytes in) {
    in_ = in;
    chain_.reset(in);
  }

  void parse(std::size_t start, std::size_t end, bool, std::vector<Token> &tokens) {
    std::size_t pos = start;
    Found found = find(pos, end, kMinMatch - 1, kDepth);
    while (pos < end) {
      if (found.saved > 0) {
        if (found.match.length < kLazyBelow && pos + 1 < end) {
          const Found next = find(pos + 1, end, found.match.length, kLazyDepth);
          if (next.saved > found.saved) {
            add_literal(tokens, in_[pos++]);
            found = next;
            continue;
          }
        }
        add_match(tokens, found.match.length, found.match.distance);
        pos += found.match.length;
      } else {
        add_literal(tokens, in_[pos++]);
      }
      if (pos < end) {
        found = find(pos, end, kMinMatch - 1, kDepth);
      }
    }
  }

private:
  static constexpr unsigned kDepth = 16;
  static constexpr unsigned kLazyDepth = 8;
  static constexpr std::size_t kLazyBelow = 48;

  struct Found {
    Match match;
    int saved = 0; // bits against literals, by the averages of real traces
  };

  [[nodiscard]] Found find(std::size_t pos, std::size_t end, std::size_t beat, unsigned depth) {
    Found best;
    chain_.visit(pos, beat, depth, kWindow, match_end(in_, pos, end),
                 [&best](std::size_t length, std::size_t distance) {
                   const int saved = kLiteralBits * static_cast<int>(length) - kSymbolBits -
                                     static_cast<int>(distance_bits(distance) + extra_bits(length));
                   if (saved > best.saved) {
                     best = {{length, distance}, saved};
                   }
                 });
    return best;
  }

  static constexpr int kLiteralBits = 6;
  static constexpr int kSymbolBits = 6;
  Bytes in_;
  HashChain chain_;
};

class MaxParser {
public:
  explicit MaxParser(std::size_t max_input)
      : chain_(max_input, kWindow), costs_(std::min(max_input, kBlock) + 1), steps_(costs_.size()),
        first_(costs_.size()) {
    matches_.reserve(costs_.size() * kPerPosition);
  }

  void reset(Bytes in) {
    in_ = in;
    chain_.reset(in);
  }

  void parse(std::size_t start, std::size_t end, bool last, std::vector<Token> &tokens) {
    find_matches(start, end);
    for (unsigned s = 0; s < HuffmanCode::kSymbols; ++s) {
      bits_[s] = s < 256 ? 7 : 6;
    }
    HuffmanCode::Counts counts;
    for (int round = 0;; ++round) {
      weigh(start, end - start);
      tokens.clear();
      for (std::size_t i = 0; i < end - start; i += steps_[i].length) {
        if (steps_[i].length == 1) {
          add_literal(tokens, in_[start + i]);
        } else {
          add_match(tokens, steps_[i].length, steps_[i].distance);
        }
      }
      if (round == kRounds) {
        return;
      }
      count_tokens(tokens, last, counts);
      code_.build(counts);
      for (unsigned s = 0; s < HuffmanCode::kSymbols; ++s) {
        bits_[s] = code_.length(s) != 0 ? code_.length(s) : kUnusedBits;
      }
    }
  }

private:
  static constexpr unsigned kDepth = 64;
  static constexpr std::size_t kPerPosition = 8;
  static constexpr std::size_t kLongEnough = 280;
  static constexpr int kRounds = 3;
  static constexpr std::uint32_t kUnusedBits = 12;

  struct Candidate {
    std::uint32_t length;
    std::uint32_t distance;
  };

  // Of each position the nearest match of each length, by rising length; at most kPerPosition, the longest of
  // all in.
  void find_matches(std::size_t start, std::size_t end) {
    matches_.clear();
    const std::size_t size = end - start;
    std::size_t skip_to = 0;
    for (std::size_t i = 0; i < size; ++i) {
      first_[i] = static_cast<std::uint32_t>(matches_.size());
      const std::size_t own = matches_.size();
      if (i < skip_to) {
        // Inside a long match what is left of it will do.
        const Candidate before = matches_[own - 1];
        if (before.length > kMinMatch) {
          matches_.push_back({before.length - 1, before.distance});
        }
        continue;
      }
      chain_.visit(
          start + i, kMinMatch - 1, kDepth, kWindow, match_end(in_, start + i, end),
          [&](std::size_t length, std::size_t distance) {
            if (matches_.size() - own == kPerPosition) {
              matches_.pop_back();
            }
            matches_.push_back({static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(distance)});
          });
      if (matches_.size() > own && matches_.back().length >= kLongEnough) {
        skip_to = i + matches_.back().length - kLongEnough / 2;
      }
    }
    first_[size] = static_cast<std::uint32_t>(matches_.size());
  }

  void weigh(std::size_t start, std::size_t size) {
    costs_[size] = 0;
    for (std::size_t i = size; i-- > 0;) {
      std::uint32_t best = costs_[i + 1] + bits_[in_[start + i]];
      Candidate step{1, 0};
      std::uint32_t shortest = kMinMatch;
      for (std::uint32_t m = first_[i]; m < first_[i + 1]; ++m) {
        const Candidate &match = matches_[m];
        const std::uint32_t base = distance_bits(match.distance);
        // Long ones only near their end: in between is never better by much.
        const std::uint32_t from = std::max(shortest, match.length > 40 ? match.length - 16 : kMinMatch32);
        for (std::uint32_t length = from; length <= match.length; ++length) {
          const std::uint32_t cost =
              costs_[i + length] + bits_[match_symbol(length, match.distance)] + base + extra_bits(length);
          if (cost < best) {
            best = cost;
            step = {length, match.distance};
          }
        }
        shortest = match.length + 1;
      }
      costs_[i] = best;
      steps_[i] = step;
    }
  }

  static constexpr std::uint32_t kMinMatch32 = kMinMatch;
  Bytes in_;
  HashChain chain_;
  HuffmanCode code_;
  std::array<std::uint32_t, HuffmanCode::kSymbols> bits_{};
  std::vector<std::uint32_t> costs_;
  std::vector<Candidate> steps_;
  std::vector<std::uint32_t> first_; // of each position's in matches_
  std::vector<Candidate> matches_;
};

} // namespace

std::unique_ptr<Encoder> make_xpress_huffman_encoder(Level level, std::size_t max_input) {
  switch (level) {
  case Level::fast: return std::make_unique<HuffmanEncoder<FastParser>>(max_input);
  case Level::normal: return std::make_unique<HuffmanEncoder<NormalParser>>(max_input);
  case Level::max:
  case Level::ultra: break;
  }
  return std::make_unique<HuffmanEncoder<MaxParser>>(max_input);
}

} // namespace etwrelog::codec
