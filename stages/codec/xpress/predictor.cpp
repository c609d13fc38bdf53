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

// 8 * 255 + 2 * 511 + 255, of slot6() and a byte; that of slot3() and a byte is 12 * 255.
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

constexpr std::uint32_t mix(std::uint64_t key) {
  return rotate(byte(key, 0) + byte(key, 3), 2) ^ rotate(byte(key, 1), 7);
}

// Slots of the second table, without the last byte, which is added.
constexpr std::uint32_t slot5(std::uint64_t key) {
  return 8 * (rotate(byte(key, 0), 3) ^ rotate(byte(key, 1) + byte(key, 2) + 0x61, 2)) + 2 * mix(key);
}
constexpr std::uint32_t slot6(std::uint64_t key) {
  return 8 * mix(key) + 2 * ((byte(key, 0) + 0xA8) ^ rotate(byte(key, 4), 5));
}

// How b2 and b4 enter in general is not known, except that such keys rarely meet others: they get slots of
// their own, by any hash. A 0xC0 with b0 = 0 is the one b4 that is common, and fits the rotation.
constexpr bool is_apart(std::uint64_t key) {
  return byte(key, 2) != 0 || (byte(key, 4) != 0 && byte(key, 0) != 0);
}
constexpr std::uint32_t slot_apart(std::uint64_t key) {
  constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
  return kLargestKnownSlot + 1 +
         static_cast<std::uint32_t>((key << 16) * kGolden >> (64 - XpressPredictor::kApartBits));
}

// Hands `use` what tells the slot of a key of `length` + 1 bytes, of all those that begin with the same
// `length` bytes as this one, and so have most of the computation in common. `first_slot` is slot3(key).
template <class Use>
ETWRELOG_ALWAYS_INLINE auto with_second_slots(std::uint32_t first_slot, std::uint64_t key,
                                              std::uint32_t length, Use &&use) {
  if (length == 3) {
    return use([first_slot](std::uint64_t k) { return first_slot + byte(k, 3); });
  }
  if (length == 4) {
    return use([begin = slot5(key)](std::uint64_t k) { return begin + byte(k, 4); });
  }
  if (is_apart(key)) {
    return use([](std::uint64_t k) { return slot_apart(k); });
  }
  return use([begin = slot6(key)](std::uint64_t k) { return begin + byte(k, 5); });
}

ETWRELOG_ALWAYS_INLINE std::uint32_t second_slot(std::uint64_t key, std::uint32_t length) {
  return with_second_slots(slot3(key), key, length, [key](auto &&slot_of) { return slot_of(key); });
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

// Takes down the tokens that the rules get wrong.
class XpressPredictor::Noting {
public:
  Noting(Bytes decoded, std::vector<std::uint8_t> &corrections, std::size_t most)
      : decoded_(decoded), corrections_(corrections), limit_(corrections.size() + most) {}

  // The token at `pos` is not the one foreseen; `tokens` were read, with this one. False if there are more
  // corrections than pay.
  [[nodiscard]] bool other(std::uint64_t tokens, std::size_t pos, const XpressToken &actual,
                           std::uint32_t first_distance) {
    put_number(corrections_, tokens - 1 - noted_);
    noted_ = tokens;
    ++corrected_;
    if (actual.distance == 0) {
      put_number(corrections_, 0);
    } else {
      const bool whole = actual.length == full_length(decoded_, pos, actual.distance);
      if (whole && actual.distance == first_distance) {
        put_number(corrections_, 1);
      } else {
        put_number(corrections_, 2 * std::uint64_t{actual.distance} + (whole ? 0 : 1));
        if (!whole) {
          put_number(corrections_, actual.length - 3);
        }
      }
    }
    return corrections_.size() <= limit_;
  }

  [[nodiscard]] std::uint64_t corrected() const { return corrected_; }

private:
  Bytes decoded_;
  std::vector<std::uint8_t> &corrections_;
  std::size_t limit_;
  std::uint64_t noted_ = 0; // tokens up to and with the last correction
  std::uint64_t corrected_ = 0;
};

// What walk() asks whether a token is what the rules say, and if not, which one it is: the corrections know.
// The token is written. All of it is inlined: a call that takes its address would keep it in memory.
class XpressPredictor::Restoring {
public:
  Restoring(Bytes decoded, Bytes corrections, std::uint8_t *out)
      : decoded_(decoded), corrections_(corrections), writer_(out) {
    ok_ = next_gap();
  }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool literal(std::size_t pos) {
    if (gap_ == 0) [[unlikely]] {
      return false;
    }
    --gap_;
    writer_.literal(decoded_[pos]);
    return true;
  }
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool match(const XpressToken &token) {
    if (gap_ == 0) [[unlikely]] {
      return false;
    }
    --gap_;
    writer_.match(token.distance, token.length);
    return true;
  }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool another(std::size_t pos, std::size_t left,
                                                    Prediction &prediction) {
    ok_ = ok_ && correct(pos, left, prediction) && next_gap();
    if (!ok_) {
      return false;
    }
    if (prediction.token.distance == 0) {
      writer_.literal(decoded_[pos]);
    } else {
      writer_.match(prediction.token.distance, prediction.token.length);
    }
    return true;
  }

  // The size of the stream; nothing if a correction was not reached.
  [[nodiscard]] std::optional<std::size_t> finish() {
    return ok_ && exhausted_ ? std::optional(writer_.finish()) : std::nullopt;
  }

private:
  ETWRELOG_ALWAYS_INLINE bool next_gap() {
    exhausted_ = corrections_.empty();
    gap_ = UINT64_MAX; // more tokens than there can be
    return exhausted_ || take_number(corrections_, gap_);
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
  std::uint64_t gap_ = 0;
  bool exhausted_ = false;
  bool ok_ = true;
};

XpressPredictor::XpressPredictor(std::size_t max_decoded)
    : max_decoded_(std::min(max_decoded, kMaxDecoded)),
      stream_(XpressWriter::bound(max_decoded_) + XpressReader::kReadAhead) {}

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

// What the first table has for a position; it and the candidate have eight bytes. An entry is a position, and
// above it the three bytes there: for the same bytes two entries differ by the distance, for others by far
// more. So one comparison tells whether the candidate matches and is not too far back, of which it is hard to
// foresee which fails, and no byte of the candidate is needed for it.
struct XpressPredictor::Lookup {
  static_assert(kMaxDecoded < std::uint64_t{1} << 39);
  static constexpr std::uint64_t kNone = std::uint64_t{1} << 39; // further from every entry than any distance

  std::uint64_t key = 0, before = 0;
  std::uint32_t slot = 0;

  ETWRELOG_ALWAYS_INLINE void look_up(const FirstTable &table, const std::uint8_t *begin, std::size_t pos) {
    const std::uint8_t *const at = begin + pos;
    key = load<std::uint64_t>(at);
    // As slot3(), from the memory: fewer steps than to take the key apart.
    slot = std::uint32_t{at[0]} + 8 * std::uint32_t{at[1]} + 2 * std::uint32_t{at[2]};
    before = table[slot];
  }
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint64_t entry(std::size_t pos) const { return key << 40 | pos; }
  // Makes this position the one that the table has.
  ETWRELOG_ALWAYS_INLINE void enter(FirstTable &table, std::size_t pos) const { table[slot] = entry(pos); }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint32_t candidate() const {
    return static_cast<std::uint32_t>(before);
  }
  // To the candidate if it has the same three bytes, otherwise more than any.
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint64_t distance(std::size_t pos) const {
    return entry(pos) - before;
  }
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE bool matches(std::size_t pos) const {
    return distance(pos) - 1 < kMaxDistance;
  }
};

// Of a position whose first candidate matches.
ETWRELOG_ALWAYS_INLINE XpressPredictor::Prediction
XpressPredictor::search(const std::uint8_t *begin, std::size_t pos, std::size_t size, const Lookup &here) {
  const std::uint8_t *const at = begin + pos;
  const std::uint8_t *const end = begin + size;
  const auto distance = static_cast<std::uint32_t>(here.distance(pos));
  const auto theirs = load<std::uint64_t>(at - distance);
  XpressToken token{distance, length_of_match(at - distance, at, end, theirs ^ here.key)};
  if (token.length < kTakenAtOnce) {
    token = search_further(at, end, static_cast<std::uint32_t>(pos), here.key, theirs, token);
  }
  return {token, distance};
}

ETWRELOG_ALWAYS_INLINE bool XpressPredictor::walk(Bytes decoded, Restoring &source) {
  first_.fill(Lookup::kNone);
  second_.fill(0);
  const std::uint8_t *const begin = decoded.data();
  std::size_t pos = 0;
  // A position is looked up while the one before it is decided on, as if that were a literal: half of them
  // are, and where the processor had expected a match, the way that it then takes begins with what is there.
  Lookup here;
  if (decoded.size() >= kLeftToSearch) {
    here.look_up(first_, begin, 0);
  }
  while (decoded.size() - pos >= kLeftToSearch) {
    const Lookup now = here;
    now.enter(first_, pos);
    here.look_up(first_, begin, pos + 1);
    Prediction prediction;
    if (!now.matches(pos)) {
      if (source.literal(pos)) [[likely]] {
        ++pos;
        continue;
      }
    } else {
      prediction = search(begin, pos, decoded.size(), now);
      const std::size_t next = pos + prediction.token.length;
      const bool goes_on = decoded.size() - next >= kLeftAfterMatch;
      here.look_up(first_, begin, goes_on ? next : pos);
      if (source.match(prediction.token)) [[likely]] {
        pos = next;
        if (!goes_on) [[unlikely]] {
          break;
        }
        continue;
      }
    }
    if (!source.another(pos, decoded.size() - pos, prediction)) {
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
    if (!source.literal(pos) && !source.another(pos, decoded.size() - pos, none)) {
      return false;
    }
    pos += none.token.length;
  }
  return true;
}

namespace {

// Whether the match of exactly `length` bytes is the longest; `at` has these and kLeftToSearch bytes. Nearly
// all are shorter than those that are compared without a branch.
ETWRELOG_ALWAYS_INLINE bool is_longest(const std::uint8_t *earlier, const std::uint8_t *at,
                                       const std::uint8_t *end, std::uint32_t length) {
  static_assert(kLeftToSearch == 32);
  const std::uint32_t equal = codec::equal32(earlier, at);
  if (length < 32) {
    return equal == length;
  }
  if (equal < 32 || length > static_cast<std::size_t>(end - at)) {
    return false;
  }
  std::uint32_t same = 32;
  while (length - same >= 32 && codec::equal32(earlier + same, at + same) == 32) {
    same += 32;
  }
  return same + codec::match_length(earlier + same, at + same, end) == length;
}

} // namespace

// Whether the rules give a match of this length with the first table's candidate. If so, the tables are as
// the search would have left them, otherwise as they were. To find that out takes fewer steps than to search.
ETWRELOG_ALWAYS_INLINE bool XpressPredictor::confirm_first(const Lookup &here, Bytes decoded, std::size_t pos,
                                                           std::uint32_t length) {
  const std::uint8_t *const begin = decoded.data();
  if (length >= kTakenAtOnce) {
    return is_longest(begin + here.candidate(), begin + pos, begin + decoded.size(), length);
  }
  return with_second_slots(here.slot, here.key, length, [&](auto &&slot_of) {
    // What the second table has must not be longer: not even by one byte.
    const std::uint32_t second = second_[slot_of(here.key)];
    const std::uint64_t others = load<std::uint64_t>(begin + second) ^ here.key;
    const auto theirs = load<std::uint64_t>(begin + here.candidate());
    const std::uint64_t difference = theirs ^ here.key;
    const bool longer =
        others << (56 - 8 * length) == 0 && static_cast<std::uint32_t>(pos) - second - 1 < kMaxDistance;
    if (longer || static_cast<std::uint32_t>(std::countr_zero(difference)) / 8 != length) {
      return false;
    }
    second_[slot_of(theirs)] = here.candidate();
    return true;
  });
}

struct XpressPredictor::Following {
  Bytes decoded;
  XpressReader reader;
  std::size_t pos = 0;
  // Where follow_first() stops at another token: that one, which was read, and what the first table had for
  // it.
  XpressToken token;
  Lookup here;
};

// As walk(), but which token comes next is taken from the stream, and what the rules say is compared with it:
// so the branches are on what is known long before the tables have been read. Goes on as long as there are
// literals and matches with the first candidate. There is no call in the loop, which needs all registers.
ETWRELOG_NOINLINE XpressPredictor::Stop XpressPredictor::follow_first(Following &at) {
  const Bytes decoded = at.decoded;
  XpressReader reader = at.reader;
  std::size_t pos = at.pos;
  Stop stop = Stop::search_over;
  while (decoded.size() - pos >= kLeftToSearch) {
    if (!reader.more()) [[unlikely]] {
      stop = Stop::wrong;
      break;
    }
    Lookup here;
    here.look_up(first_, decoded.data(), pos);
    here.enter(first_, pos);
    if (reader.at_literal()) {
      if (reader.literal() != decoded[pos]) [[unlikely]] {
        stop = Stop::wrong;
        break;
      }
      if (here.matches(pos)) [[unlikely]] {
        at.here = here;
        at.token = {};
        stop = Stop::another;
        break;
      }
      ++pos;
      continue;
    }
    const auto [distance, length] = reader.match();
    if (distance != here.distance(pos) || !here.matches(pos) || !confirm_first(here, decoded, pos, length)) {
      at.here = here;
      at.token.distance = distance;
      at.token.length = length;
      stop = distance > pos || length > decoded.size() - pos ? Stop::wrong : Stop::another;
      break;
    }
    pos += length;
    if (decoded.size() - pos < kLeftAfterMatch) [[unlikely]] {
      break;
    }
  }
  at.reader = reader;
  at.pos = pos;
  return stop;
}

bool XpressPredictor::follow(Following &at, Noting &noting) {
  first_.fill(Lookup::kNone);
  second_.fill(0);
  const std::uint8_t *const begin = at.decoded.data();
  const std::size_t size = at.decoded.size();
  Stop stop = follow_first(at);
  while (stop == Stop::another) {
    const Prediction prediction =
        at.here.matches(at.pos) ? search(begin, at.pos, size, at.here) : Prediction{};
    if (at.token != prediction.token &&
        !noting.other(at.reader.tokens(), at.pos, at.token, prediction.first_distance)) {
      return false;
    }
    at.pos += at.token.length;
    const bool over = at.token.distance != 0 && size - at.pos < kLeftAfterMatch;
    stop = over ? Stop::search_over : follow_first(at);
  }
  if (stop == Stop::wrong) {
    return false;
  }
  while (at.pos < size) {
    if (!at.reader.more()) {
      return false;
    }
    XpressToken token;
    if (at.reader.at_literal()) {
      if (at.reader.literal() != begin[at.pos]) {
        return false;
      }
    } else {
      token = at.reader.match();
      if (token.distance > at.pos || token.length > size - at.pos ||
          !noting.other(at.reader.tokens(), at.pos, token, 0)) {
        return false;
      }
    }
    at.pos += token.length;
  }
  return at.reader.finish();
}

bool XpressPredictor::encode(Bytes compressed, Bytes decoded, std::vector<std::uint8_t> &corrections) {
  if (decoded.size() > max_decoded_ || compressed.size() > XpressWriter::bound(decoded.size())) {
    return false;
  }
  // Where the reader may read past its end.
  std::ranges::copy(compressed, stream_.begin());
  std::fill_n(stream_.begin() + static_cast<std::ptrdiff_t>(compressed.size()), XpressReader::kReadAhead,
              std::uint8_t{0});
  const std::size_t before = corrections.size();
  Noting noting(decoded, corrections, compressed.size() / 2);
  Following at{decoded, XpressReader(Bytes(stream_).first(compressed.size())), 0, {}, {}};
  if (!follow(at, noting)) {
    corrections.resize(before);
    return false;
  }
  counts_.tokens += at.reader.tokens();
  counts_.corrected += noting.corrected();
  return true;
}

Result<void> XpressPredictor::restore(Bytes decoded, Bytes corrections, MutableBytes compressed) {
  if (decoded.size() > max_decoded_) {
    return corrupt("XPRESS corrections: content larger than announced");
  }
  Restoring restoring(decoded, corrections, stream_.data());
  const std::optional<std::size_t> size = walk(decoded, restoring) ? restoring.finish() : std::nullopt;
  if (!size) {
    return corrupt("XPRESS corrections: do not fit the content");
  }
  if (*size != compressed.size()) {
    return corrupt("XPRESS corrections: the stream comes out at another size");
  }
  std::copy_n(stream_.begin(), *size, compressed.begin());
  return {};
}

} // namespace etwrelog::codec
