#include "stages/encode/etlz_mixer.hpp"

#include <algorithm>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace etwrelog::etlz {
namespace {

constexpr unsigned kTotalBits = 14;
constexpr int kTotal = 1 << kTotalBits;
constexpr unsigned kSymbols = 16;
constexpr unsigned kNodes = 1 + kSymbols; // the high nibble, and the low one behind each high one

// How often a nibble below i occurs, of kTotal. Element 0 would always be 0: it counts the updates instead.
struct alignas(32) Node {
  std::int16_t below[kSymbols];
};

constexpr auto kTargets = [] { // where an update with a symbol moves to; every symbol keeps a share
  std::array<Node, kSymbols> targets{};
  for (unsigned s = 0; s < kSymbols; ++s)
    for (unsigned i = 0; i < kSymbols; ++i)
      targets[s].below[i] = static_cast<std::int16_t>(i <= s ? i : unsigned{kTotal} - kSymbols + i);
  return targets;
}();

// A node moves by 1/2, then less and less, as the average of what it saw would.
constexpr unsigned kCounted = 31;
constexpr auto kRates = [] {
  std::array<std::uint8_t, kCounted> rates{};
  for (unsigned n = 0; n < kCounted; ++n)
    rates[n] = n < 1 ? 1 : n < 3 ? 2 : n < 6 ? 3 : n < 12 ? 4 : 5;
  return rates;
}();

constexpr int kWeightOne = 1 << 15;
constexpr unsigned kShortCounts = 8;

// b + (a - b) * weight / 2^15, rounded down. Strictly increasing where both are.
inline void blend(const Node &a, const Node &b, int weight, Node &out) {
#ifdef __SSE2__
  const __m128i w = _mm_set1_epi16(static_cast<std::int16_t>(weight));
  for (unsigned i = 0; i < kSymbols; i += 8) {
    const __m128i x = _mm_load_si128(reinterpret_cast<const __m128i *>(a.below + i));
    const __m128i y = _mm_load_si128(reinterpret_cast<const __m128i *>(b.below + i));
    const __m128i d = _mm_sub_epi16(x, y);
    _mm_store_si128(reinterpret_cast<__m128i *>(out.below + i),
                    _mm_add_epi16(y, _mm_mulhi_epi16(_mm_add_epi16(d, d), w)));
  }
#else
  for (unsigned i = 0; i < kSymbols; ++i) {
    const int d = a.below[i] - b.below[i];
    out.below[i] = static_cast<std::int16_t>(b.below[i] + ((2 * d * weight) >> 16));
  }
#endif
  out.below[0] = 0;
}

// The last symbol whose share begins at or before `point`.
inline unsigned find(const Node &n, unsigned point) {
#ifdef __SSE2__
  const __m128i p = _mm_set1_epi16(static_cast<std::int16_t>(point));
  const __m128i low = _mm_cmpgt_epi16(_mm_load_si128(reinterpret_cast<const __m128i *>(n.below)), p);
  const __m128i high = _mm_cmpgt_epi16(_mm_load_si128(reinterpret_cast<const __m128i *>(n.below + 8)), p);
  const unsigned above = static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
  return static_cast<unsigned>(std::countr_zero(above | 0x1'0000u)) - 1;
#else
  unsigned s = 0;
  for (unsigned i = 1; i < kSymbols; ++i)
    s += n.below[i] <= static_cast<int>(point) ? 1u : 0u;
  return s;
#endif
}

inline void update(Node &n, unsigned symbol, unsigned slowest) {
  const auto count = static_cast<unsigned>(n.below[0]);
  const unsigned rate = count < kCounted ? std::min<unsigned>(kRates[count], slowest) : slowest;
  const Node &target = kTargets[symbol];
#ifdef __SSE2__
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(rate));
  for (unsigned i = 0; i < kSymbols; i += 8) {
    const __m128i x = _mm_load_si128(reinterpret_cast<const __m128i *>(n.below + i));
    const __m128i t = _mm_load_si128(reinterpret_cast<const __m128i *>(target.below + i));
    _mm_store_si128(reinterpret_cast<__m128i *>(n.below + i),
                    _mm_add_epi16(x, _mm_sra_epi16(_mm_sub_epi16(t, x), shift)));
  }
#else
  for (unsigned i = 0; i < kSymbols; ++i)
    n.below[i] = static_cast<std::int16_t>(n.below[i] + ((target.below[i] - n.below[i]) >> rate));
#endif
  n.below[0] = static_cast<std::int16_t>(std::min(count + 1, kCounted));
}

inline int share(const Node &n, unsigned symbol) {
  const int from = symbol == 0 ? 0 : n.below[symbol];
  return (symbol + 1 < kSymbols ? n.below[symbol + 1] : kTotal) - from;
}

} // namespace

struct Mixer::State {
  std::vector<Node> nodes[2]; // of the long and the short context
  // By nibble and how much either context has seen.
  std::array<std::array<std::array<std::uint16_t, kShortCounts>, kCounted + 1>, 2> weights{};
  std::vector<std::uint32_t> shares; // start << 16 | size, in the order of coding
  Node mixed{};

  void start(unsigned table_bits) {
    Node fresh{};
    for (unsigned i = 1; i < kSymbols; ++i)
      fresh.below[i] = static_cast<std::int16_t>(i * (kTotal / kSymbols));
    for (std::vector<Node> &n : nodes)
      n.assign(std::size_t{kNodes} << table_bits, fresh);
    for (unsigned i = 0; i <= kCounted; ++i)
      for (auto &w : weights)
        w[i].fill(static_cast<std::uint16_t>(kWeightOne / 4 + i * (kWeightOne / 2) / kCounted));
  }

  // Codes a nibble by `code`, which is given the shares and returns the symbol.
  template <class Code> unsigned nibble(Node &a, Node &b, unsigned low, unsigned slowest, Code &&code) {
    std::uint16_t &weight =
        weights[low][static_cast<unsigned>(a.below[0])][static_cast<unsigned>(b.below[0]) >> 2];
    blend(a, b, weight, mixed);
    const unsigned symbol = code(mixed);
    // Towards the model that gave the symbol more: the slope of the code length.
    const int slope = (share(a, symbol) - share(b, symbol)) * 1024 / share(mixed, symbol);
    weight = static_cast<std::uint16_t>(
        std::clamp(weight + std::clamp(slope, -16384, 16384) / 3, 256, kWeightOne - 256));
    update(a, symbol, slowest);
    update(b, symbol, slowest);
    return symbol;
  }

  // One byte after the other; `code` as above.
  template <class Code>
  void run(std::size_t size, const MixerSetup &setup, const Siblings &siblings, std::uint8_t *content,
           Code &&code) {
    start(setup.table_bits);
    auto bytes_of = [](unsigned bits) {
      return std::uint64_t{(bits & 1) * 0xFFu | (bits >> 1 & 1) * 0xFF00u | (bits >> 2 & 1) * 0xFF'0000u};
    };
    const std::uint64_t long_mask = bytes_of(setup.long_context) | bytes_of(setup.long_context >> 3u) << 24;
    const std::uint64_t short_mask = bytes_of(setup.short_context) | bytes_of(setup.short_context >> 3u)
                                                                         << 24;
    const unsigned shift = 64u - setup.table_bits, beside = setup.siblings();
    std::uint64_t last = 0;
    for (std::size_t at = 0; at < size; ++at) {
      std::uint64_t known = last & 0xFF'FFFF;
      for (unsigned i = 0; i < beside; ++i)
        known |= std::uint64_t{siblings[i][at]} << (24 + 8 * i);
      auto place = [&](std::uint64_t mask) {
        return static_cast<std::size_t>((((known & mask) + 1) * 0x9E37'79B9'7F4A'7C15ull) >> shift) * kNodes;
      };
      Node *const a = nodes[0].data() + place(long_mask);
      Node *const b = nodes[1].data() + place(short_mask);
      content[at] = code.next(content[at]);
      const unsigned high = nibble(a[0], b[0], 0, setup.slowest, [&](const Node &n) { return code(n, 4); });
      const unsigned low =
          nibble(a[1 + high], b[1 + high], 1, setup.slowest, [&](const Node &n) { return code(n, 0); });
      content[at] = static_cast<std::uint8_t>(high << 4 | low);
      last = last << 8 | content[at];
    }
  }
};

namespace {

constexpr std::uint64_t kLowest = std::uint64_t{1} << 31;

// Collects the shares of the symbols that are there.
struct Collect {
  std::vector<std::uint32_t> &shares;
  unsigned byte = 0;
  std::uint8_t next(std::uint8_t b) {
    byte = b;
    return b;
  }
  unsigned operator()(const Node &n, unsigned shift) const {
    const unsigned symbol = byte >> shift & 15;
    shares.push_back(static_cast<std::uint32_t>(n.below[symbol]) << 16 |
                     static_cast<std::uint32_t>(share(n, symbol)));
    return symbol;
  }
};

// Decodes symbols by their shares from the state of an rANS coder with 32-bit words.
struct Draw {
  const std::uint8_t *at, *end;
  std::uint64_t state = 0;
  bool overrun = false;
  std::uint32_t word() {
    if (end - at < 4) {
      overrun = true;
      return 0;
    }
    at += 4;
    return load<std::uint32_t>(at - 4);
  }
  static std::uint8_t next(std::uint8_t) { return 0; }
  unsigned operator()(const Node &n, unsigned) {
    const auto point = static_cast<unsigned>(state & (kTotal - 1));
    const unsigned symbol = find(n, point);
    state = static_cast<std::uint64_t>(share(n, symbol)) * (state >> kTotalBits) + point -
            static_cast<unsigned>(n.below[symbol]);
    if (state < kLowest) state = state << 32 | word();
    return symbol;
  }
};

} // namespace

Mixer::Mixer() : state_(std::make_unique<State>()) {}
Mixer::~Mixer() = default;

void Mixer::encode(Bytes content, const MixerSetup &setup, const Siblings &siblings,
                   std::vector<std::uint8_t> &out) {
  State &s = *state_;
  s.shares.clear();
  out.assign(content.begin(), content.end());
  s.run(content.size(), setup, siblings, out.data(), Collect{s.shares});
  // Last symbol first, into words that the decoder reads the other way round.
  std::vector<std::uint32_t> words;
  std::uint64_t state = kLowest;
  for (auto p = s.shares.rbegin(); p != s.shares.rend(); ++p) {
    const std::uint64_t size = *p & 0xFFFF, start = *p >> 16;
    if (state >= size << (63 - kTotalBits)) {
      words.push_back(static_cast<std::uint32_t>(state));
      state >>= 32;
    }
    state = (state / size << kTotalBits) + state % size + start;
  }
  out.resize(8 + words.size() * 4);
  store(out.data(), state);
  for (std::size_t i = 0; i < words.size(); ++i)
    store(out.data() + 8 + 4 * i, words[words.size() - 1 - i]);
}

bool Mixer::decode(Bytes in, const MixerSetup &setup, const Siblings &siblings, MutableBytes content) {
  if (in.size() < 8 || !setup.valid(content.size())) return false;
  Draw draw{in.data() + 8, in.data() + in.size(), load<std::uint64_t>(in.data())};
  if (draw.state < kLowest) return false;
  state_->run(content.size(), setup, siblings, content.data(), draw);
  return !draw.overrun && draw.at == draw.end && draw.state == kLowest;
}

} // namespace etwrelog::etlz
