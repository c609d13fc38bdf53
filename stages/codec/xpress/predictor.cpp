#include "codec/xpress/predictor.hpp"

#include "base/cpu.hpp"
#include "base/errors.hpp"
#include "codec/correction_bytes.hpp"
#include "codec/match_length.hpp"
#include "codec/xpress/writer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace etwrelog::codec {
namespace {

using codec::XpressWriter;

constexpr std::uint32_t kMaxDistance = XpressWriter::kMaxDistance;
constexpr std::uint32_t kTakenAtOnce = 6;
constexpr std::size_t kLeftToSearch = 32;
constexpr std::size_t kLeftAfterMatch = 39;
constexpr std::size_t kMaxDecoded = std::size_t{1} << 30;

// 8 * 255 + 2 * 511 + 255, of slot6(); that of slot4() is 12 * 255.
constexpr std::uint32_t kLargestKnownSlot = 3317;

// Byte n of the eight at a position, and the rotation of one byte; in 32 bits, where the compiler keeps them
// anyway.
constexpr std::uint32_t byte(std::uint64_t key, unsigned n) {
  return static_cast<std::uint32_t>(key >> (8 * n)) & 0xFF;
}
constexpr std::uint32_t rotate(std::uint32_t value, unsigned n) {
  value &= 0xFF;
  return (value << n | value >> (8 - n)) & 0xFF;
}

constexpr std::uint32_t slot3(std::uint64_t key) {
  return byte(key, 0) + 8 * byte(key, 1) + 2 * byte(key, 2);
}

constexpr std::uint32_t slot4(std::uint64_t key) {
  return slot3(key) + byte(key, 3);
}

constexpr std::uint32_t mix(std::uint64_t key) {
  return rotate(byte(key, 0) + byte(key, 3), 2) ^ rotate(byte(key, 1), 7);
}

constexpr std::uint32_t slot5(std::uint64_t key) {
  const std::uint32_t h = rotate(byte(key, 0), 3) ^ rotate(byte(key, 1) + byte(key, 2) + 0x61, 2);
  return 8 * h + 2 * mix(key) + byte(key, 4);
}

// How b2 and b4 enter in general is not known, except that such keys rarely meet others: they get slots of
// their own, by any hash. A 0xC0 with b0 = 0 is the one b4 that is common, and fits the rotation.
constexpr std::uint32_t slot6(std::uint64_t key) {
  if (byte(key, 2) != 0 || (byte(key, 4) != 0 && byte(key, 0) != 0)) {
    constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
    return kLargestKnownSlot + 1 +
           static_cast<std::uint32_t>((key << 16) * kGolden >> (64 - XpressPredictor::kApartBits));
  }
  return 8 * mix(key) + 2 * ((byte(key, 0) + 0xA8) ^ rotate(byte(key, 4), 5)) + byte(key, 5);
}

constexpr std::uint32_t second_slot(std::uint64_t key, std::uint32_t length) {
  return length == 3 ? slot4(key) : length == 4 ? slot5(key) : slot6(key);
}

// From two positions whose first bytes differ by `difference`; both have 8 bytes.
std::uint32_t length_of_match(const std::uint8_t *earlier, const std::uint8_t *at, const std::uint8_t *end,
                              std::uint64_t difference) {
  return difference != 0 ? static_cast<std::uint32_t>(std::countr_zero(difference)) / 8
                         : 8 + static_cast<std::uint32_t>(codec::match_length(earlier + 8, at + 8, end));
}

std::uint32_t full_length(Bytes decoded, std::size_t pos, std::uint32_t distance) {
  const std::uint8_t *const at = decoded.data() + pos;
  return static_cast<std::uint32_t>(codec::match_length(at - distance, at, decoded.data() + decoded.size()));
}

Error corrupt(const char *what) {
  return base::corrupt(what);
}

} // namespace

struct XpressPredictor::Prediction {
  XpressToken token;
  std::uint32_t first_distance = 0; // of the first table's candidate, if that matched
};

namespace {

ETWRELOG_ALWAYS_INLINE void put(XpressWriter &writer, Bytes decoded, std::size_t pos,
                                const XpressToken &token) {
  if (token.distance == 0) {
    writer.literal(decoded[pos]);
  } else {
    writer.match(token.distance, token.length);
  }
}

} // namespace

// What walk() asks whether a token is what the rules say, and if not, which one it is. While encoding the
// original stream knows, and every difference is noted. Its tokens are written again on the way: whether they
// give the stream is then known without a second walk.
class XpressPredictor::Comparing {
public:
  Comparing(Bytes compressed, Bytes decoded, std::vector<std::uint8_t> &corrections, std::uint8_t *out)
      : reader_(compressed), decoded_(decoded), corrections_(corrections),
        limit_(corrections.size() + compressed.size() / 2), writer_(out) {}

  [[nodiscard]] bool literal(std::size_t pos, std::size_t left) { return is(pos, left, {}); }
  [[nodiscard]] bool match(std::size_t pos, std::size_t left, const XpressToken &token) {
    return is(pos, left, token);
  }

  [[nodiscard]] bool another(std::size_t pos, std::size_t, Prediction &prediction) {
    if (!readable_) {
      return false;
    }
    ++counts.corrected;
    note(pos, actual_, prediction.first_distance);
    since_ = 0;
    prediction.token = actual_;
    return corrections_.size() <= limit_;
  }

  // The size of the stream that was written.
  [[nodiscard]] std::size_t finish() { return writer_.finish(); }

  Counts counts;

private:
  bool is(std::size_t pos, std::size_t left, const XpressToken &foreseen) {
    readable_ = reader_.next(pos, left, actual_);
    if (!readable_) {
      return false;
    }
    put(writer_, decoded_, pos, actual_);
    ++counts.tokens;
    const bool same = actual_ == foreseen;
    since_ += same ? 1 : 0;
    return same;
  }

  void note(std::size_t pos, const XpressToken &actual, std::uint32_t first_distance) {
    put_number(corrections_, since_);
    if (actual.distance == 0) {
      put_number(corrections_, 0);
      return;
    }
    const bool whole = actual.length == full_length(decoded_, pos, actual.distance);
    if (whole && actual.distance == first_distance) {
      put_number(corrections_, 1);
      return;
    }
    put_number(corrections_, 2 * std::uint64_t{actual.distance} + (whole ? 0 : 1));
    if (!whole) {
      put_number(corrections_, actual.length - 3);
    }
  }

  XpressReader reader_;
  Bytes decoded_;
  std::vector<std::uint8_t> &corrections_;
  std::size_t limit_;
  XpressWriter writer_;
  XpressToken actual_;
  bool readable_ = true;
  std::uint64_t since_ = 0;
};

// While restoring the corrections know, and the token is written. All of it is inlined: a call that takes its
// address would keep it in memory.
class XpressPredictor::Restoring {
public:
  // `expected`: of which stream it is only asked whether this is the one; then it ends soon after it is not.
  Restoring(Bytes decoded, Bytes corrections, std::uint8_t *out, Bytes expected)
      : decoded_(decoded), corrections_(corrections), writer_(out), written_(out), expected_(expected) {
    ok_ = next_gap();
  }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool literal(std::size_t pos, std::size_t) {
    if (gap_ == 0) [[unlikely]] {
      return false;
    }
    --gap_;
    writer_.literal(decoded_[pos]);
    return true;
  }
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool match(std::size_t, std::size_t, const XpressToken &token) {
    if (gap_ == 0) [[unlikely]] {
      return false;
    }
    --gap_;
    writer_.match(token.distance, token.length);
    return true;
  }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool another(std::size_t pos, std::size_t left,
                                                    Prediction &prediction) {
    ok_ = ok_ && (exhausted_ ? as_expected() : correct(pos, left, prediction) && next_gap());
    if (ok_) {
      put(writer_, decoded_, pos, prediction.token);
    }
    return ok_;
  }

  // The size of the stream; nothing if a correction was not reached.
  [[nodiscard]] std::optional<std::size_t> finish() {
    return ok_ && exhausted_ ? std::optional(writer_.finish()) : std::nullopt;
  }

private:
  ETWRELOG_ALWAYS_INLINE bool next_gap() {
    exhausted_ = corrections_.empty();
    gap_ = stretch_;
    return exhausted_ || take_number(corrections_, gap_);
  }

  // The token is as foreseen, and there are no more corrections; but it is time to look at what was written.
  // A stream of another encoder is told by its first tokens, and those of Windows are not looked at often.
  // Where nothing is expected the tokens come by this way all the same, so that what explains() has seen is
  // in every step what restore() does.
  ETWRELOG_ALWAYS_INLINE bool as_expected() {
    gap_ = stretch_ = std::min(2 * stretch_, kLongStretch);
    if (expected_.empty()) {
      return true;
    }
    const std::size_t settled = writer_.settled();
    if (settled > expected_.size() ||
        std::memcmp(written_ + compared_, expected_.data() + compared_, settled - compared_) != 0) {
      return false;
    }
    compared_ = settled;
    return true;
  }

  ETWRELOG_ALWAYS_INLINE bool correct(std::size_t pos, std::size_t left, Prediction &prediction) {
    std::uint64_t what = 0;
    if (!take_number(corrections_, what)) {
      return false;
    }
    if (what == 0) {
      prediction.token = {};
      return true;
    }
    const std::uint64_t distance = what == 1 ? prediction.first_distance : what / 2;
    if (distance == 0 || distance > pos || distance > kMaxDistance + 1) {
      return false;
    }
    std::uint64_t length = 0;
    if (what != 1 && what % 2 != 0) {
      if (!take_number(corrections_, length)) {
        return false;
      }
      length += 3;
    } else {
      length = full_length(decoded_, pos, static_cast<std::uint32_t>(distance));
    }
    if (length < 3 || length > left) {
      return false;
    }
    prediction.token = {static_cast<std::uint32_t>(distance), static_cast<std::uint32_t>(length)};
    return true;
  }

  Bytes decoded_;
  Bytes corrections_;
  XpressWriter writer_;
  static constexpr std::uint64_t kLongStretch = 1024;

  const std::uint8_t *written_;
  Bytes expected_;
  std::size_t compared_ = 0;
  std::uint64_t stretch_ = 64; // tokens
  std::uint64_t gap_ = 0;
  bool exhausted_ = false;
  bool ok_ = true;
};

XpressPredictor::XpressPredictor(std::size_t max_decoded)
    : max_decoded_(std::min(max_decoded, kMaxDecoded)), stream_(XpressWriter::bound(max_decoded_)) {}

ETWRELOG_ALWAYS_INLINE XpressToken XpressPredictor::search_further(const std::uint8_t *at,
                                                                   const std::uint8_t *end, std::uint32_t pos,
                                                                   std::uint64_t key, std::uint64_t first,
                                                                   XpressToken token) {
  const std::uint32_t first_length = token.length;
  const std::uint32_t first_distance = token.distance;
  while (token.length < kTakenAtOnce) {
    std::uint32_t &slot = second_[second_slot(key, token.length)];
    const std::uint32_t distance = pos - slot;
    if (distance - 1 >= kMaxDistance) {
      break;
    }
    const std::uint64_t theirs = load<std::uint64_t>(at - distance);
    const std::uint32_t length = length_of_match(at - distance, at, end, theirs ^ key);
    if (length <= token.length) {
      break;
    }
    const std::uint32_t taken_over = slot;
    slot = pos;
    if (length < kTakenAtOnce) {
      second_[second_slot(theirs, length)] = taken_over;
    }
    token = {distance, length};
  }
  second_[second_slot(first, first_length)] = pos - first_distance;
  return token;
}

// What the first table has for a position; it and the candidate have eight bytes.
struct XpressPredictor::Lookup {
  std::uint64_t key = 0, theirs = 0;
  std::uint32_t slot = 0, candidate = 0;

  ETWRELOG_ALWAYS_INLINE void look_up(const FirstTable &table, const std::uint8_t *begin, std::size_t pos) {
    key = load<std::uint64_t>(begin + pos);
    slot = slot3(key);
    candidate = table[slot];
    theirs = load<std::uint64_t>(begin + candidate);
  }
};

template <class Source> ETWRELOG_ALWAYS_INLINE bool XpressPredictor::walk(Bytes decoded, Source &source) {
  first_.fill(0);
  second_.fill(0);
  const std::uint8_t *const begin = decoded.data();
  const std::uint8_t *const end = begin + decoded.size();
  std::size_t pos = 0;
  // A position is looked up while the one before it is decided on, as if that were a literal: half of them
  // are, and where the processor had expected a match, the way that it then takes begins with what is there.
  Lookup here;
  if (decoded.size() >= kLeftToSearch) {
    here.look_up(first_, begin, 0);
  }
  while (decoded.size() - pos >= kLeftToSearch) {
    const std::size_t left = decoded.size() - pos;
    const std::uint8_t *const at = begin + pos;
    const std::uint64_t key = here.key;
    const std::uint32_t distance = static_cast<std::uint32_t>(pos) - here.candidate;
    const std::uint64_t theirs = here.theirs;
    const std::uint64_t difference = theirs ^ key;
    first_[here.slot] = static_cast<std::uint32_t>(pos);
    here.look_up(first_, begin, pos + 1);
    // One branch for all three, as which of them fails is hard to foresee. An empty slot looks like position
    // 0, and does no harm: had that the same three bytes, it would have filled the slot.
    Prediction prediction;
    if (((difference & 0xFF'FFFF) != 0) | (distance - 1 >= kMaxDistance)) {
      if (source.literal(pos, left)) [[likely]] {
        ++pos;
        continue;
      }
    } else {
      prediction.first_distance = distance;
      prediction.token = {distance, length_of_match(at - distance, at, end, difference)};
      if (prediction.token.length < kTakenAtOnce) {
        prediction.token =
            search_further(at, end, static_cast<std::uint32_t>(pos), key, theirs, prediction.token);
      }
      const std::size_t next = pos + prediction.token.length;
      const bool goes_on = decoded.size() - next >= kLeftAfterMatch;
      here.look_up(first_, begin, goes_on ? next : pos);
      if (source.match(pos, left, prediction.token)) [[likely]] {
        pos = next;
        if (!goes_on) [[unlikely]] {
          break;
        }
        continue;
      }
    }
    if (!source.another(pos, left, prediction)) {
      return false;
    }
    pos += prediction.token.length;
    if (decoded.size() - pos < (prediction.token.distance != 0 ? kLeftAfterMatch : kLeftToSearch)) {
      break;
    }
    here.look_up(first_, begin, pos);
  }
  while (pos < decoded.size()) {
    Prediction none;
    const std::size_t left = decoded.size() - pos;
    if (!source.literal(pos, left) && !source.another(pos, left, none)) {
      return false;
    }
    pos += none.token.length;
  }
  return true;
}

bool XpressPredictor::encode(Bytes compressed, Bytes decoded, std::vector<std::uint8_t> &corrections) {
  const std::size_t before = corrections.size();
  if (decoded.size() > max_decoded_) {
    return false;
  }
  Comparing comparing(compressed, decoded, corrections, stream_.data());
  if (walk(decoded, comparing)) {
    const std::size_t size = comparing.finish();
    if (std::ranges::equal(Bytes(stream_.data(), size), compressed)) {
      counts_.tokens += comparing.counts.tokens;
      counts_.corrected += comparing.counts.corrected;
      return true;
    }
  }
  corrections.resize(before);
  return false;
}

bool XpressPredictor::explains(Bytes compressed, Bytes decoded) {
  if (decoded.size() > max_decoded_) {
    return false;
  }
  const std::optional<std::size_t> size = write(decoded, {}, compressed);
  return size && std::ranges::equal(Bytes(stream_.data(), *size), compressed);
}

Result<void> XpressPredictor::restore(Bytes decoded, Bytes corrections, MutableBytes compressed) {
  if (decoded.size() > max_decoded_) {
    return corrupt("XPRESS corrections: content larger than announced");
  }
  const std::optional<std::size_t> size = write(decoded, corrections, {});
  if (!size) {
    return corrupt("XPRESS corrections: do not fit the content");
  }
  if (*size != compressed.size()) {
    return corrupt("XPRESS corrections: the stream comes out at another size");
  }
  std::copy_n(stream_.begin(), *size, compressed.begin());
  return {};
}

std::optional<std::size_t> XpressPredictor::write(Bytes decoded, Bytes corrections, Bytes expected) {
  Restoring restoring(decoded, corrections, stream_.data(), expected);
  return walk(decoded, restoring) ? restoring.finish() : std::nullopt;
}

} // namespace etwrelog::codec
