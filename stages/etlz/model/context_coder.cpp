#include "etlz/model/context_coder.hpp"

#include "etlz/model/context_cells.hpp"
#include "etlz/model/fixed_streams.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace etwrelog::etlz {
namespace {

using namespace contexts;

constexpr unsigned kContexts = 7;
constexpr unsigned kInputs = 16; // two of each context, two of the match
constexpr unsigned kSets = 3;    // of weights, each chosen in another way
constexpr unsigned kStreamSets = 1u << 13, kNodeSets = 1u << 13, kTrustSets = 1u << 10;
constexpr unsigned kSetsEnd[kSets] = {kStreamSets, kStreamSets + kNodeSets,
                                      kStreamSets + kNodeSets + kTrustSets};
constexpr unsigned kFinalSets = 1u << 13;
constexpr unsigned kRefinements = 1u << 12, kSteps = 33;
constexpr unsigned kFlagContexts = 5, kFlagBits = 20;
constexpr unsigned kSureValues = 16;
constexpr unsigned kSureMatch = 8; // bytes of a match from which on it is asked for first

constexpr Match::Shape kTextMatch{22, 18, 5}, kValueMatch{20, 16, 8};

// What is remembered of a stream.
struct Column {
  std::uint64_t bytes = 0; // the last eight
  std::uint64_t raw = 0;   // the last raw bits, and their symbol
};

inline bool is_text(std::uint32_t stream) {
  return stream >= kStreamWide && stream < kStreamText + kTextGroups;
}
inline bool is_map(std::uint32_t stream) {
  return stream == kStreamMapFrom || stream == kStreamMapTo;
}

} // namespace

struct ContextModel::State {
  unsigned bits = 0;
  Lines lines;
  std::vector<Cell> flags;
  std::vector<std::int16_t> weights, final_weights;
  std::vector<std::uint8_t> asked; // how often a set of weights was
  std::array<std::vector<std::uint16_t>, 2> refined;
  std::array<std::array<Cell, 64>, 2> match_cells{};
  Match text{kTextMatch}, values{kValueMatch};
  std::vector<Column> columns;

  // Of the symbols so far.
  std::uint64_t recent = 0, partial = 0;
  std::uint32_t last_stream = 0, word = 0, string_at = 0, type = 0;

  // Of the symbol at hand.
  unsigned count = 0; // contexts
  std::array<std::uint32_t, kContexts> context{};
  std::array<Bucket *, kContexts> bucket{};
  int expected = -1; // by the match
  std::array<Cell, 64> *match_of = nullptr;
  unsigned match_length = 0;
  alignas(16) std::array<std::int16_t, kInputs> input{};

  struct Choice { // of weights and refinements
    std::uint32_t set[kSets], last, refine[2];
  };

  void start(unsigned table_bits);
  Column &column(std::uint32_t stream) {
    if (stream >= columns.size()) columns.resize(stream + 64u);
    return columns[stream];
  }
  void find_buckets(std::uint32_t nibble, bool second);
  void put(unsigned at, Cell cell) {
    const unsigned value = cell ^ kUnknown;
    const unsigned n = value & kMostCount, p = value >> 4;
    std::int16_t *const to = input.data() + at;
    to[0] = kStretch.data()[p]; // 0 where n is
    to[1] = static_cast<std::int16_t>((static_cast<int>(p) - 2048) * static_cast<int>(n) >> 6);
  }
  template <class Coder> unsigned mixed(Coder &coder, unsigned inputs, const Choice &choice, unsigned given);
  template <class Coder>
  unsigned bit(Coder &coder, unsigned node, unsigned known, unsigned depth, const Choice &choice,
               unsigned given);
  template <class Coder>
  bool follows_text(Coder &coder, std::uint32_t stream, const Hint &hint, unsigned given);
  template <class Coder>
  bool follows_values(Coder &coder, std::uint32_t stream, const Hint &hint, unsigned given);
  void take(std::uint32_t stream, bool text_stream, unsigned byte);
};

void ContextModel::State::start(unsigned table_bits) {
  bits = table_bits;
  lines.start(std::size_t{1} << (bits - 1));
  flags.assign(std::size_t{1} << std::min(bits, kFlagBits), 0);
  const std::size_t sets = kSetsEnd[kSets - 1];
  weights.resize(sets * kInputs);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t k = i % kInputs;
    weights[i] = k >= 2 * kContexts ? 5000 : k % 2 == 0 ? 4800 : 2000;
  }
  asked.assign(sets, 0);
  final_weights.assign(std::size_t{kFinalSets} * kSets, 65536 / 4 / kSets);
  for (std::vector<std::uint16_t> &r : refined) {
    r.resize(std::size_t{kRefinements} * kSteps);
    for (std::size_t i = 0; i < r.size(); ++i)
      r[i] = static_cast<std::uint16_t>(
          squash(std::clamp((static_cast<int>(i % kSteps) - 16) * 128, -2047, 2047)));
  }
  match_cells = {};
  text.start(bits);
  values.start(bits);
  columns.clear();
  recent = partial = 0;
  last_stream = word = string_at = type = 0;
}

// Of the four bits behind `nibble` known ones.
void ContextModel::State::find_buckets(std::uint32_t nibble, bool second) {
  const unsigned shift = 33 - bits;
  Line *place[kContexts];
  std::uint32_t checks[kContexts];
  Line *const first = lines.data();
  const std::uint32_t *const contexts = context.data();
  const unsigned n = count;
  for (unsigned i = 0; i < n; ++i) {
    std::uint32_t h = contexts[i] * 0x9E37'79B1u;
    h ^= h >> 15;
    h *= 0x85EB'CA6Bu;
    std::uint32_t line = h >> shift;
    std::uint32_t check = h;
    if (second) { // near the first, in the same page of memory
      check = (check ^ nibble * 0x9E37u) * 0xCA6Bu + i;
      line ^= (check ^ check >> 9) & 63u;
    }
    checks[i] = (check & 0xFFFF) | 1u;
    place[i] = first + line;
    __builtin_prefetch(place[i]);
  }
  Bucket **const found = bucket.data();
  for (unsigned i = 0; i < n; ++i) {
    Bucket *at = place[i]->bucket;
    if (at[0].check != checks[i]) {
      if (at[1].check == checks[i]) {
        ++at;
      } else {
        // Whoever was asked less often goes.
        if (count_of(at[1].cell[0]) < count_of(at[0].cell[0])) ++at;
        *at = Bucket{static_cast<std::uint16_t>(checks[i]), {}};
      }
    }
    found[i] = at;
  }
}

namespace {

inline int product(const std::int16_t *w, const std::int16_t *x, unsigned n) {
#ifdef __SSE2__
  __m128i sum = _mm_setzero_si128();
  for (unsigned i = 0; i < n; i += 8) {
    const __m128i p = _mm_madd_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(w + i)),
                                     _mm_load_si128(reinterpret_cast<const __m128i *>(x + i)));
    sum = _mm_add_epi32(sum, _mm_srai_epi32(p, 8));
  }
  sum = _mm_add_epi32(sum, _mm_srli_si128(sum, 8));
  sum = _mm_add_epi32(sum, _mm_srli_si128(sum, 4));
  return _mm_cvtsi128_si32(sum);
#else
  int sum = 0;
  for (unsigned i = 0; i < n; i += 2)
    sum += (w[i] * x[i] + w[i + 1] * x[i + 1]) >> 8;
  return sum;
#endif
}

// Moves weights by x * error / 2^16, rounded.
inline void train(std::int16_t *w, const std::int16_t *x, unsigned n, int error) {
#ifdef __SSE2__
  const __m128i e = _mm_set1_epi16(static_cast<std::int16_t>(error)), one = _mm_set1_epi16(1);
  for (unsigned i = 0; i < n; i += 8) {
    const __m128i in = _mm_load_si128(reinterpret_cast<const __m128i *>(x + i));
    __m128i *const at = reinterpret_cast<__m128i *>(w + i);
    const __m128i d = _mm_srai_epi16(_mm_add_epi16(_mm_mulhi_epi16(_mm_add_epi16(in, in), e), one), 1);
    _mm_storeu_si128(at, _mm_adds_epi16(_mm_loadu_si128(at), d));
  }
#else
  for (unsigned i = 0; i < n; ++i) {
    const int d = (((2 * x[i] * error) >> 16) + 1) >> 1;
    w[i] = static_cast<std::int16_t>(std::clamp(w[i] + d, -32768, 32767));
  }
#endif
}

} // namespace

template <class Coder>
[[gnu::always_inline]] inline unsigned ContextModel::State::mixed(Coder &coder, unsigned inputs,
                                                                  const Choice &choice, unsigned given) {
  std::int16_t *set[kSets];
  int out[kSets];
  for (unsigned s = 0; s < kSets; ++s) {
    set[s] = weights.data() + std::size_t{choice.set[s]} * kInputs;
    out[s] = std::clamp(product(set[s], input.data(), inputs) >> 6, -kMostOdds, kMostOdds);
  }
  std::int16_t *const last = final_weights.data() + std::size_t{choice.last} * kSets;
  int odds = 0;
  for (unsigned s = 0; s < kSets; ++s)
    odds += out[s] * last[s];
  odds = std::clamp(odds >> 14, -kMostOdds, kMostOdds);
  const int p = squash(odds);
  const int place = (odds + 2048) * 32, step = std::min(place >> 12, 31), within = place - (step << 12);
  std::uint16_t *const first = refined[0].data() + std::size_t{choice.refine[0]} * kSteps + step;
  std::uint16_t *const other = refined[1].data() + std::size_t{choice.refine[1]} * kSteps + step;
  const int a = (first[0] * (4096 - within) + first[1] * within) >> 12;
  const int b = (other[0] * (4096 - within) + other[1] * within) >> 12;
  const int final_p = std::clamp((2 * p + a + b) >> 2, 16, 65520);
  const unsigned it = coder.bit(static_cast<std::uint32_t>(final_p), given != 0) ? 1 : 0;

  const int near = within > 2048 ? 1 : 0, to = it != 0 ? 65535 : 0;
  first[near] = static_cast<std::uint16_t>(first[near] + ((to - first[near]) >> 6));
  other[near] = static_cast<std::uint16_t>(other[near] + ((to - other[near]) >> 6));
  const int is = static_cast<int>(it << 16), missed = (is - p) >> 2;
  for (unsigned s = 0; s < kSets; ++s) {
    const int d = (out[s] * missed + (1 << 16)) >> 17;
    last[s] = static_cast<std::int16_t>(std::clamp(last[s] + d, -32767, 32767));
  }
  for (unsigned s = 0; s < kSets; ++s) {
    std::uint8_t &n = asked[choice.set[s]];
    const int rate = 160 + (280 >> (n >> 4));
    n = static_cast<std::uint8_t>(n + (n < 255 ? 1 : 0));
    const int error = std::clamp(((is - squash(out[s])) * rate) >> 10, -32767, 32767);
    train(set[s], input.data(), inputs, error);
  }
  return it;
}

template <class Coder>
[[gnu::always_inline]] inline unsigned ContextModel::State::bit(Coder &coder, unsigned node, unsigned known,
                                                                unsigned depth, const Choice &choice,
                                                                unsigned given) {
  Cell *cell[kContexts];
  Bucket *const *const buckets = bucket.data();
  std::int16_t *const in = input.data();
  const unsigned n = count;
  for (unsigned i = 0; i < n; ++i) {
    cell[i] = &buckets[i]->cell[node];
    put(2 * i, *cell[i]);
  }
  for (unsigned i = n; i < kContexts; ++i)
    in[2 * i] = in[2 * i + 1] = 0;
  Cell *matched = nullptr;
  unsigned foretold = 0;
  input[2 * kContexts] = input[2 * kContexts + 1] = 0;
  if (expected >= 0 && (static_cast<unsigned>(expected) | 256u) >> (8 - depth) == known) {
    foretold = static_cast<unsigned>(expected) >> (7 - depth) & 1;
    matched = &(*match_of)[match_length];
    put(2 * kContexts, *matched);
    if (foretold == 0) {
      input[2 * kContexts] = static_cast<std::int16_t>(-input[2 * kContexts]);
      input[2 * kContexts + 1] = static_cast<std::int16_t>(-input[2 * kContexts + 1]);
    }
  }
  const unsigned it = mixed(coder, kInputs, choice, given);
  for (unsigned i = 0; i < n; ++i)
    update(*cell[i], it);
  if (matched != nullptr) update(*matched, foretold == it ? 1 : 0);
  return it;
}

// Whether text goes on as it did where the last bytes stood before. One question instead of eight.
template <class Coder>
bool ContextModel::State::follows_text(Coder &coder, std::uint32_t stream, const Hint &hint, unsigned given) {
  const auto next = static_cast<unsigned>(text.expected());
  const unsigned length = std::min(text.length(), 63u) / 2;
  const std::uint64_t h = columns[stream].bytes;
  const std::uint64_t keys[kFlagContexts] = {
      hash(next * 64 + length, stream * 8), hash(h & 0xFFFF, next * 8 + 1),
      hash(h & 0xFFFF'FFFF, next * 8 + 2), hash(word, next * 8 + 3),
      hash(hint.lookup, std::uint64_t{string_at} * 2048 + next * 8 + 4)};
  Cell *cell[kFlagContexts];
  for (unsigned i = 0; i < kFlagContexts; ++i) {
    cell[i] = &flags[keys[i] & (flags.size() - 1)];
    put(2 * i, *cell[i]);
  }
  for (unsigned i = 2 * kFlagContexts; i < 16; ++i)
    input[i] = 0;
  input[2 * kFlagContexts] = 256;
  const unsigned group = stream - kStreamWide;
  const Choice choice{
      {kStreamSets - 16 + (group & 15), kSetsEnd[0] + kNodeSets - 32 + length, kSetsEnd[1] + 512 + next},
      kFinalSets - 16 + (group & 15),
      {kRefinements - 256 + next, kRefinements - 1024 + length * 16 + (group & 15)}};
  const unsigned it = mixed(coder, 16, choice, given == next ? 1 : 0);
  for (Cell *const c : cell)
    update(*c, it);
  return it != 0;
}

// The same for what is no text.
template <class Coder>
bool ContextModel::State::follows_values(Coder &coder, std::uint32_t stream, const Hint &hint,
                                         unsigned given) {
  const auto next = static_cast<unsigned>(values.expected());
  const unsigned length = std::min(values.length() / 8, 31u);
  const std::uint64_t h = columns[stream].bytes, which = std::uint64_t{stream} << 12 | next << 4;
  const std::uint64_t keys[kFlagContexts] = {
      hash(length, which), hash(h & 0xFF, which + 1), hash(hint.lookup, partial ^ (which + 2)),
      hash(hint.previous, partial ^ (which + 3)), hash(hint.thread, partial ^ (which + 4))};
  Cell *cell[kFlagContexts];
  for (unsigned i = 0; i < kFlagContexts; ++i) {
    cell[i] = &flags.data()[keys[i] & (flags.size() - 1)];
    put(2 * i, *cell[i]);
  }
  for (unsigned i = 2 * kFlagContexts; i < 16; ++i)
    input[i] = 0;
  input[2 * kFlagContexts] = 256;
  const Choice choice{
      {(stream * 8 + 7) & (kStreamSets - 1), kSetsEnd[0] + kNodeSets - 64 + length, kSetsEnd[1] + 511},
      (stream * 8 + 7) & (kStreamSets - 1),
      {static_cast<std::uint32_t>(hash(stream, next + 512)) & (kRefinements - 1),
       kRefinements - 1056 + length}};
  const unsigned it = mixed(coder, 16, choice, given == next ? 1 : 0);
  for (Cell *const c : cell)
    update(*c, it);
  return it != 0;
}

void ContextModel::State::take(std::uint32_t stream, bool text_stream, unsigned byte) {
  Column &c = columns[stream];
  c.bytes = c.bytes << 8 | byte;
  recent = recent << 8 | byte;
  last_stream = stream;
  if (stream == kStreamTypes) type = byte;
  if (!text_stream) {
    values.add(byte);
    return;
  }
  text.add(byte);
  const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte >= 128;
  word = letter ? (word + byte + 1) * 0x2F0B'4C47u : 0;
  string_at = byte == 0 ? 0 : string_at + 1;
}

template <class Coder>
unsigned ContextModel::byte(Coder &coder, std::uint32_t stream, const Hint &hint, unsigned given) {
  State &s = *state_;
  const std::uint64_t h = s.column(stream).bytes;
  const bool text = is_text(stream), map = is_map(stream);
  s.partial = stream == s.last_stream + 1 && !text && !map ? hash(s.partial, s.recent & 255) : 0;
  unsigned state = 0;
  if (text && s.text.length() >= kSureMatch) {
    const auto next = static_cast<unsigned>(s.text.expected());
    if (s.follows_text(coder, stream, hint, given)) {
      s.take(stream, true, next);
      return next;
    }
    state = 15;
  }
  if (!text && s.values.length() >= kSureValues) {
    const auto next = static_cast<unsigned>(s.values.expected());
    if (s.follows_values(coder, stream, hint, given)) {
      s.take(stream, false, next);
      return next;
    }
    state = 15;
  }
  const std::uint64_t of_stream = std::uint64_t{stream} << 32;
  s.count = 0;
  auto add = [&s](std::uint64_t a, std::uint64_t b) {
    s.context[s.count] = static_cast<std::uint32_t>(hash(a, b * 64 + s.count));
    ++s.count;
  };
  if (text) {
    add(h & 0xFF, stream);
    add(h & 0xFFFF, 1);
    add(h & 0xFF'FFFF, 1);
    add(h & 0xFFFF'FFFF, 1);
    add(h & 0xFFFF'FFFF'FFFF, 1);
    add(s.word, h & 0xFF);
    add(hint.lookup, s.string_at << 8);
  } else if (stream == kStreamRaw || stream == kStreamGuid || stream == kStreamCorrections) {
    add(0, of_stream);
    add(h & 0xFF, of_stream + 1);
    add(h & 0xFFFF, of_stream + 2);
    add(hint.previous, of_stream + 3);
  } else if (map) {
    add(h & 0xFF, of_stream + 1);
    add(h & 0xFFFF, of_stream + 2);
    add(s.recent & 0xFFFF'FFFF, of_stream);
    add(hint.lookup, of_stream);
    add(hint.previous, of_stream);
    add(hint.lead, of_stream);
    add(hint.thread, of_stream);
  } else {
    const std::uint64_t partial = s.partial ^ of_stream;
    add(h & 0xFF, of_stream + 1);
    add(h & 0xFF'FFFF, of_stream + 3);
    add(s.recent & 0xFFFF, of_stream + 6);
    add(hint.previous, partial);
    add(hint.lead, partial);
    add(hint.thread, partial);
    add(hint.lookup * std::uint64_t{31} + hint.thread, partial);
  }
  const Match &match = text ? s.text : s.values;
  s.expected = state != 0 ? -1 : match.expected();
  s.match_of = &s.match_cells[text ? 0 : 1];
  const unsigned length = match.length();
  s.match_length = text ? std::min(length, 63u) : std::min(length / 4, 63u);
  if (s.expected >= 0) state = 1 + std::min(13u, text ? length / 2 : length / 8);
  State::Choice choice{};
  unsigned known = 1;
  for (unsigned k = 0; k < 8; ++k) {
    if (k == 0 || k == 4) s.find_buckets(known, k != 0);
    const unsigned node = k < 4 ? known - 1 : ((known & ((1u << (k - 4)) - 1)) | 1u << (k - 4)) - 1;
    unsigned trust = 0;
    for (unsigned i = 0; i < 3; ++i) {
      const unsigned at = text ? i + 2 : i == 2 ? 6 : i + 3;
      const unsigned n = at < s.count ? count_of(s.bucket[at]->cell[node]) : 0;
      trust = trust * 4 + std::min(3u, n / 2);
    }
    choice.set[0] = (stream * 8 + k) & (kStreamSets - 1);
    choice.set[1] = kSetsEnd[0] + (((text ? state + 16 : state) * 256 + known) & (kNodeSets - 1));
    choice.set[2] = kSetsEnd[1] + (text ? 64 : 0) + trust + (k >= 4 ? 128 : 0);
    choice.last = choice.set[0];
    choice.refine[0] = hash(stream, known) & (kRefinements - 1);
    choice.refine[1] =
        (text ? ((h & 0xFF) * 256 + known) * 0x9E37'79B1u >> 18 : hash(hint.lookup, stream * 256 + known)) &
        (kRefinements - 1);
    known = known << 1 | s.bit(coder, node, known, k, choice, given >> (7 - k) & 1);
  }
  s.take(stream, text, known & 0xFF);
  return known & 0xFF;
}

template <class Coder>
std::uint64_t ContextModel::bits(Coder &coder, std::uint32_t stream, unsigned symbol, const Hint &hint,
                                 std::uint64_t given, unsigned count) {
  State &s = *state_;
  Column &column = s.column(stream);
  const std::uint64_t of_stream = (std::uint64_t{stream} << 32) + (std::uint64_t{1} << 60);
  s.expected = -1;
  std::uint64_t found = 0, prefix = 1;
  State::Choice choice{};
  for (unsigned left = count; left > 0;) {
    const unsigned take = left % 4 != 0 ? left % 4 : 4;
    s.count = 0;
    auto add = [&s, of_stream](std::uint64_t a, std::uint64_t b) {
      s.context[s.count] = static_cast<std::uint32_t>(hash(a, (b * 64 + s.count) ^ of_stream));
      ++s.count;
    };
    const std::uint64_t place = prefix * 64 + left;
    add(prefix, symbol * 64 + left);
    add(column.raw, place);
    add(hint.lookup, place);
    add(hint.previous, place);
    add(hint.lead, place);
    add(hint.thread, place);
    add(s.recent & 0xFFFF, place);
    s.find_buckets(0, false);
    unsigned known = 1;
    for (unsigned k = 0; k < take; ++k) {
      --left;
      unsigned trust = 0;
      for (unsigned i = 2; i < 5; ++i)
        trust = trust * 4 + std::min(3u, count_of(s.bucket[i]->cell[known - 1]) / 2);
      choice.set[0] = kStreamSets - 128 + left;
      choice.set[1] = kSetsEnd[0] + kNodeSets - 2048 + (stream & 1023);
      choice.set[2] = kSetsEnd[1] + 256 + trust;
      choice.last = kFinalSets - 128 + left;
      choice.refine[0] = kRefinements - 128 + left;
      choice.refine[1] = kRefinements - 64 + left;
      const unsigned it = s.bit(coder, known - 1, known, 0, choice, static_cast<unsigned>(given >> left & 1));
      known = known << 1 | it;
      prefix = prefix << 1 | it;
      found = found << 1 | it;
    }
  }
  column.raw = found * 256 + symbol;
  s.partial = hash(s.partial, found);
  return found;
}

ContextModel::ContextModel() : state_(std::make_unique<State>()) {}
ContextModel::~ContextModel() = default;

void ContextModel::start(unsigned bits) {
  state_->start(bits);
}

std::uint64_t ContextModel::memory_bytes(unsigned bits) {
  const std::uint64_t fixed = std::uint64_t{kSetsEnd[kSets - 1]} * (2 * kInputs + 1) +
                              std::uint64_t{kFinalSets} * 2 * kSets +
                              std::uint64_t{2} * kRefinements * kSteps * 2;
  return (std::uint64_t{32} << bits) + (std::uint64_t{2} << std::min(bits, kFlagBits)) +
         Match::memory_bytes(bits, kTextMatch) + Match::memory_bytes(bits, kValueMatch) + fixed;
}

template unsigned ContextModel::byte(BitEncoder &, std::uint32_t, const Hint &, unsigned);
template unsigned ContextModel::byte(BitDecoder &, std::uint32_t, const Hint &, unsigned);
template std::uint64_t ContextModel::bits(BitEncoder &, std::uint32_t, unsigned, const Hint &, std::uint64_t,
                                          unsigned);
template std::uint64_t ContextModel::bits(BitDecoder &, std::uint32_t, unsigned, const Hint &, std::uint64_t,
                                          unsigned);

} // namespace etwrelog::etlz
