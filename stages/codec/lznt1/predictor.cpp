#include "codec/lznt1/predictor.hpp"

#include "base/errors.hpp"
#include "codec/correction_bytes.hpp"
#include "codec/lznt1/format.hpp"
#include "codec/match_length.hpp"

#include <algorithm>

namespace etwrelog::codec {
namespace {

using codec::kLznt1Chunk;
using codec::kLznt1MinMatch;

constexpr std::size_t kMaxDecoded = std::size_t{1} << 30;
constexpr unsigned kMaxCandidates = 32;
constexpr unsigned kSignature = 0x3000;
constexpr unsigned kCompressed = 0x8000;

enum Flags : std::uint8_t { kLongest = 1, kHasStored = 2, kZeroEnd = 4, kAllFlags = 7 };

constexpr std::size_t bound(std::size_t raw) {
  return raw + raw / 8 + (raw / kLznt1Chunk + 1) * 4 + 16;
}

std::uint32_t full_length(Bytes chunk, std::size_t pos, std::size_t distance) {
  const std::uint8_t *const at = chunk.data() + pos;
  const std::size_t length = codec::match_length(at - distance, at, chunk.data() + chunk.size());
  return static_cast<std::uint32_t>(std::min(length, codec::lznt1_max_match(pos)));
}

Error corrupt(const char *what) {
  return base::corrupt(what);
}

} // namespace

// While encoding: the original stream knows the tokens, and every difference is noted.
class Lznt1Predictor::Comparing {
public:
  Comparing(Bytes compressed, std::vector<std::uint8_t> &corrections)
      : in_(compressed), corrections_(corrections), limit_(corrections.size() + compressed.size() / 2) {}

  // Reads the header of the next chunk.
  [[nodiscard]] bool begin_chunk(Bytes chunk, bool &stored) {
    if (in_.size() < 2) {
      return false;
    }
    const unsigned header = load<std::uint16_t>(in_.data());
    const std::size_t size = (header & 0xFFF) + 1u;
    if ((header & 0x7000) != kSignature || in_.size() - 2 < size) {
      return false;
    }
    data_ = in_.subspan(2, size);
    in_ = in_.subspan(2 + size);
    left_in_group_ = 0;
    stored = (header & kCompressed) == 0;
    return !stored || size == chunk.size();
  }

  [[nodiscard]] bool token(Bytes chunk, std::size_t pos, Token &token) {
    Token actual;
    if (!next(pos, actual) || actual.distance > pos || actual.length > chunk.size() - pos) {
      return false;
    }
    if (actual == token) {
      ++since_;
      return true;
    }
    put_number(corrections_, since_);
    since_ = 0;
    const bool whole = actual.distance == 0 || actual.length == full_length(chunk, pos, actual.distance);
    put_number(corrections_, 2 * std::uint64_t{actual.distance} + (whole ? 0 : 1));
    if (!whole) {
      put_number(corrections_, actual.length - kLznt1MinMatch);
    }
    token = actual;
    return corrections_.size() <= limit_;
  }

  [[nodiscard]] bool end_chunk() { return data_.empty(); }

private:
  [[nodiscard]] bool next(std::size_t pos, Token &token) {
    if (left_in_group_ == 0) {
      if (data_.empty()) {
        return false;
      }
      flags_ = data_[0];
      data_ = data_.subspan(1);
      left_in_group_ = 8;
    }
    --left_in_group_;
    const bool match = (flags_ & 1) != 0;
    flags_ >>= 1;
    if (data_.size() < (match ? 2u : 1u)) {
      return false;
    }
    token = {};
    if (match) {
      const unsigned length_bits = 16 - codec::lznt1_distance_bits(pos);
      const unsigned word = load<std::uint16_t>(data_.data());
      token = {(word >> length_bits) + 1,
               (word & ((1u << length_bits) - 1)) + static_cast<unsigned>(kLznt1MinMatch)};
    }
    data_ = data_.subspan(match ? 2 : 1);
    return true;
  }

  Bytes in_;
  Bytes data_; // of the chunk, as far as it is not read yet
  std::vector<std::uint8_t> &corrections_;
  std::size_t limit_;
  std::uint64_t since_ = 0;
  unsigned flags_ = 0;
  unsigned left_in_group_ = 0;
};

// While restoring: the corrections know, and the chunks are written.
class Lznt1Predictor::Restoring {
public:
  Restoring(Bytes corrections, std::uint8_t *out) : corrections_(corrections), begin_(out), at_(out) {
    if (corrections_.empty() || (corrections_[0] & ~kAllFlags) != 0) {
      ok_ = false;
      return;
    }
    flags_ = corrections_[0];
    corrections_ = corrections_.subspan(1);
    stored_list_ = corrections_;
    if ((flags_ & kHasStored) != 0) {
      ok_ = take_number(corrections_, stored_left_) && stored_left_ <= corrections_.size();
      stored_list_ = corrections_;
      std::uint64_t skipped = 0;
      for (std::uint64_t n = 0; ok_ && n < stored_left_; ++n) {
        ok_ = take_number(corrections_, skipped);
      }
    }
    ok_ = ok_ && next_gap() && next_stored();
  }

  [[nodiscard]] bool longest() const { return (flags_ & kLongest) != 0; }
  [[nodiscard]] bool ok() const { return ok_; }

  [[nodiscard]] bool begin_chunk(Bytes chunk, bool &stored) {
    stored = until_stored_ == 0;
    --until_stored_;
    header_ = at_;
    at_ += 2;
    if (!stored) {
      group_ = nullptr;
      tokens_in_group_ = 8;
      return true;
    }
    std::copy(chunk.begin(), chunk.end(), at_);
    at_ += chunk.size();
    store(header_, static_cast<std::uint16_t>(kSignature | (chunk.size() - 1)));
    return next_stored();
  }

  [[nodiscard]] bool token(Bytes chunk, std::size_t pos, Token &token) {
    if (gap_ == 0) [[unlikely]] {
      if (!correct(chunk, pos, token) || !next_gap()) {
        return false;
      }
    } else {
      --gap_;
    }
    if (tokens_in_group_ == 8) {
      group_ = at_++;
      *group_ = 0;
      tokens_in_group_ = 0;
    }
    if (token.distance == 0) {
      *at_++ = chunk[pos];
    } else {
      const unsigned length_bits = 16 - codec::lznt1_distance_bits(pos);
      const unsigned length = token.length - static_cast<unsigned>(kLznt1MinMatch);
      store(at_, static_cast<std::uint16_t>((token.distance - 1) << length_bits | length));
      at_ += 2;
      *group_ = static_cast<std::uint8_t>(*group_ | 1u << tokens_in_group_);
    }
    ++tokens_in_group_;
    return true;
  }

  [[nodiscard]] bool end_chunk() {
    const std::size_t size = static_cast<std::size_t>(at_ - header_) - 2;
    store(header_, static_cast<std::uint16_t>(kCompressed | kSignature | ((size - 1) & 0xFFF)));
    return size <= 0x1000;
  }

  // The size of the stream; nothing if a correction or a stored chunk was not reached.
  [[nodiscard]] std::optional<std::size_t> finish() {
    if (!exhausted_ || until_stored_ < (std::uint64_t{1} << 62)) {
      return std::nullopt;
    }
    if ((flags_ & kZeroEnd) != 0) {
      store(at_, std::uint16_t{0});
      at_ += 2;
    }
    return static_cast<std::size_t>(at_ - begin_);
  }

private:
  bool next_gap() {
    exhausted_ = corrections_.empty();
    gap_ = ~std::uint64_t{0}; // more tokens than any buffer has
    return exhausted_ || take_number(corrections_, gap_);
  }

  bool next_stored() {
    until_stored_ = ~std::uint64_t{0};
    if (stored_left_ == 0) {
      return true;
    }
    --stored_left_;
    return take_number(stored_list_, until_stored_);
  }

  bool correct(Bytes chunk, std::size_t pos, Token &token) {
    std::uint64_t what = 0;
    if (!take_number(corrections_, what) || what == 1 || what / 2 > pos) {
      return false;
    }
    token = {};
    if (what == 0) {
      return true;
    }
    const std::size_t distance = static_cast<std::size_t>(what / 2);
    std::uint64_t length = 0;
    if (what % 2 == 0) {
      length = full_length(chunk, pos, distance);
    } else if (take_number(corrections_, length)) {
      length += kLznt1MinMatch;
    }
    if (length < kLznt1MinMatch || length > std::min(chunk.size() - pos, codec::lznt1_max_match(pos))) {
      return false;
    }
    token = {static_cast<std::uint32_t>(distance), static_cast<std::uint32_t>(length)};
    return true;
  }

  Bytes corrections_;
  Bytes stored_list_;
  std::uint64_t stored_left_ = 0;
  std::uint64_t until_stored_ = 0;
  std::uint64_t gap_ = 0;
  std::uint8_t *begin_;
  std::uint8_t *at_;
  std::uint8_t *header_ = nullptr;
  std::uint8_t *group_ = nullptr;
  unsigned tokens_in_group_ = 8;
  unsigned flags_ = 0;
  bool exhausted_ = false;
  bool ok_ = true;
};

Lznt1Predictor::Lznt1Predictor(std::size_t max_decoded)
    : max_decoded_(std::min(max_decoded, kMaxDecoded)), stream_(bound(max_decoded_)) {}

template <class Source> bool Lznt1Predictor::walk(Bytes decoded, bool longest, Source &source) {
  for (std::size_t at = 0; at < decoded.size(); at += kLznt1Chunk) {
    const Bytes chunk = decoded.subspan(at, std::min(kLznt1Chunk, decoded.size() - at));
    bool stored = false;
    if (!source.begin_chunk(chunk, stored) || (!stored && !walk_chunk(chunk, longest, source))) {
      return false;
    }
  }
  return true;
}

template <class Source> bool Lznt1Predictor::walk_chunk(Bytes chunk, bool longest, Source &source) {
  head_.fill(0);
  entered_ = 0;
  for (std::uint32_t pos = 0; pos < chunk.size();) {
    Token token;
    if (chunk.size() - pos >= 4) {
      token = longest ? predict_longest(chunk, pos) : predict_one(chunk, pos);
    }
    if (!source.token(chunk, pos, token)) {
      return false;
    }
    pos += token.length;
  }
  return source.end_chunk();
}

Lznt1Predictor::Token Lznt1Predictor::predict_one(Bytes chunk, std::uint32_t pos) {
  std::uint16_t &entry = head_[load<std::uint32_t>(chunk.data() + pos) * 2654435761u >> 20];
  const std::uint32_t candidate = entry;
  entry = static_cast<std::uint16_t>(pos + 1);
  if (candidate == 0) {
    return {};
  }
  const std::uint32_t distance = pos + 1 - candidate;
  const std::uint32_t length = full_length(chunk, pos, distance);
  return length < kLznt1MinMatch ? Token{} : Token{distance, length};
}

Lznt1Predictor::Token Lznt1Predictor::predict_longest(Bytes chunk, std::uint32_t pos) {
  const auto slot = [&](std::uint32_t at) {
    return load<std::uint32_t>(chunk.data() + at) * 0x9E37'7900u >> 20;
  };
  for (; entered_ < pos; ++entered_) {
    std::uint16_t &head = head_[slot(entered_)];
    previous_[entered_] = head;
    head = static_cast<std::uint16_t>(entered_ + 1);
  }
  Token best;
  std::uint32_t candidate = head_[slot(pos)];
  for (unsigned n = 0; candidate != 0 && n < kMaxCandidates; ++n) {
    const std::uint32_t distance = pos + 1 - candidate;
    const std::uint32_t length = full_length(chunk, pos, distance);
    if (length >= kLznt1MinMatch && length > best.length) {
      best = {distance, length};
    }
    candidate = previous_[candidate - 1];
  }
  return best;
}

bool Lznt1Predictor::encode(Bytes compressed, Bytes decoded, std::vector<std::uint8_t> &corrections) {
  const std::size_t before = corrections.size();
  std::vector<std::uint8_t> other;
  const bool one = encode_by(false, compressed, decoded, corrections);
  if (one && corrections.size() - before < 8) {
    return true;
  }
  if (encode_by(true, compressed, decoded, other) && (!one || other.size() < corrections.size() - before)) {
    corrections.resize(before);
    corrections.insert(corrections.end(), other.begin(), other.end());
    return true;
  }
  return one;
}

bool Lznt1Predictor::encode_by(bool longest, Bytes compressed, Bytes decoded,
                               std::vector<std::uint8_t> &corrections) {
  const std::size_t before = corrections.size();
  if (decoded.size() > max_decoded_) {
    return false;
  }
  // What stands before the tokens' corrections: the flags and the stored chunks.
  std::vector<std::uint64_t> stored;
  std::uint64_t since = 0;
  std::size_t at = 0;
  std::size_t chunks = 0;
  for (; chunks * kLznt1Chunk < decoded.size() && compressed.size() - at >= 2; ++chunks) {
    const unsigned header = load<std::uint16_t>(compressed.data() + at);
    at += std::min<std::size_t>(compressed.size() - at, 2 + (header & 0xFFF) + 1u);
    if ((header & kCompressed) != 0) {
      ++since;
    } else {
      stored.push_back(since);
      since = 0;
    }
  }
  const bool zero_end = compressed.size() - at == 2 && load<std::uint16_t>(compressed.data() + at) == 0;
  corrections.push_back(static_cast<std::uint8_t>(
      (longest ? kLongest : 0) | (stored.empty() ? 0 : kHasStored) | (zero_end ? kZeroEnd : 0)));
  if (!stored.empty()) {
    put_number(corrections, stored.size());
    for (const std::uint64_t gap : stored) {
      put_number(corrections, gap);
    }
  }
  Comparing comparing(compressed, corrections);
  if (walk(decoded, longest, comparing)) {
    const std::optional<std::size_t> size = write(decoded, Bytes(corrections).subspan(before));
    if (size && std::ranges::equal(Bytes(stream_.data(), *size), compressed)) {
      return true;
    }
  }
  corrections.resize(before);
  return false;
}

Result<void> Lznt1Predictor::restore(Bytes decoded, Bytes corrections, MutableBytes compressed) {
  if (decoded.size() > max_decoded_) {
    return corrupt("LZNT1 corrections: content larger than announced");
  }
  const std::optional<std::size_t> size = write(decoded, corrections);
  if (!size) {
    return corrupt("LZNT1 corrections: do not fit the content");
  }
  if (*size != compressed.size()) {
    return corrupt("LZNT1 corrections: the stream comes out at another size");
  }
  std::copy_n(stream_.begin(), *size, compressed.begin());
  return {};
}

std::optional<std::size_t> Lznt1Predictor::write(Bytes decoded, Bytes corrections) {
  Restoring restoring(corrections, stream_.data());
  return restoring.ok() && walk(decoded, restoring.longest(), restoring) ? restoring.finish() : std::nullopt;
}

} // namespace etwrelog::codec
