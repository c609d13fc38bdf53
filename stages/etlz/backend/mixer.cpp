#include "etlz/backend/mixer.hpp"

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

// Part of a stream: lanes take turns with the same models, which hides the time that each symbol takes from
// the next of its lane.
struct Lane {
  std::uint8_t *at = nullptr;
  std::array<const std::uint8_t *, 3> beside{};
  std::uint64_t last = 0; // its last bytes
  Node *nodes[2] = {};    // at the places of its contexts
  Node mixed{};
  unsigned symbol = 0;
};
constexpr unsigned kMostLanes = 4;
constexpr std::size_t kLanesFrom = 16 * 1024; // bytes of a stream
constexpr unsigned lanes_of(std::size_t size) {
  return size < kLanesFrom ? 1 : kMostLanes;
}

} // namespace

struct Mixer::State {
  std::vector<Node> nodes[2]; // of the long and the short context
  // By nibble and how much either context has seen.
  std::array<std::array<std::array<std::uint16_t, kShortCounts>, kCounted + 1>, 2> weights{};
  std::vector<std::uint32_t> shares; // lane << 30 | start << 16 | size, in the order of coding

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

  // Codes a nibble of each lane by `code`, which is given the shares and returns the symbol. All of them see
  // the models as they were before.
  template <unsigned kLanes, class Code>
  void nibbles(Lane *lanes, unsigned low, unsigned slowest, Code &code) {
    std::uint16_t *weight[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) {
      Lane &lane = lanes[i];
      if (low != 0)
        for (Node *&n : lane.nodes)
          n += 1 + lane.symbol;
      const Node &a = *lane.nodes[0], &b = *lane.nodes[1];
      weight[i] = &weights[low][static_cast<unsigned>(a.below[0])][static_cast<unsigned>(b.below[0]) >> 2];
      blend(a, b, *weight[i], lane.mixed);
    }
    for (unsigned i = 0; i < kLanes; ++i)
      lanes[i].symbol = code(lanes[i], i, low != 0 ? 0 : 4);
    for (unsigned i = 0; i < kLanes; ++i) {
      Node &a = *lanes[i].nodes[0], &b = *lanes[i].nodes[1];
      const unsigned symbol = lanes[i].symbol;
      // Towards the model that gave the symbol more: the slope of the code length.
      const int slope = (share(a, symbol) - share(b, symbol)) * 1024 / share(lanes[i].mixed, symbol);
      *weight[i] = static_cast<std::uint16_t>(
          std::clamp(*weight[i] + std::clamp(slope, -16384, 16384) / 3, 256, kWeightOne - 256));
      update(a, symbol, slowest);
      update(b, symbol, slowest);
    }
  }

  // `count` bytes of each lane, one of each after the other.
  template <unsigned kLanes, class Code>
  void run_lanes(Lane *lanes, std::size_t count, const MixerSetup &setup, Code &code) {
    auto bytes_of = [](unsigned bits) {
      return std::uint64_t{(bits & 1) * 0xFFu | (bits >> 1 & 1) * 0xFF00u | (bits >> 2 & 1) * 0xFF'0000u};
    };
    const std::uint64_t masks[2] = {bytes_of(setup.long_context) | bytes_of(setup.long_context >> 3u) << 24,
                                    bytes_of(setup.short_context) | bytes_of(setup.short_context >> 3u)
                                                                        << 24};
    const unsigned shift = 64u - setup.table_bits, beside = setup.siblings();
    for (; count > 0; --count) {
      for (unsigned l = 0; l < kLanes; ++l) {
        Lane &lane = lanes[l];
        std::uint64_t known = lane.last & 0xFF'FFFF;
        for (unsigned i = 0; i < beside; ++i)
          known |= std::uint64_t{*lane.beside[i]++} << (24 + 8 * i);
        for (unsigned m = 0; m < 2; ++m)
          lane.nodes[m] =
              nodes[m].data() +
              static_cast<std::size_t>((((known & masks[m]) + 1) * 0x9E37'79B9'7F4A'7C15ull) >> shift) *
                  kNodes;
      }
      nibbles<kLanes>(lanes, 0, setup.slowest, code);
      unsigned high[kLanes];
      for (unsigned l = 0; l < kLanes; ++l)
        high[l] = lanes[l].symbol;
      nibbles<kLanes>(lanes, 1, setup.slowest, code);
      for (unsigned l = 0; l < kLanes; ++l) {
        Lane &lane = lanes[l];
        *lane.at = static_cast<std::uint8_t>(high[l] << 4 | lane.symbol);
        lane.last = lane.last << 8 | *lane.at++;
      }
    }
  }

  template <class Code>
  void run(MutableBytes content, const MixerSetup &setup, const Siblings &siblings, Code &&code) {
    start(setup.table_bits);
    const unsigned count = lanes_of(content.size());
    const std::size_t each = content.size() / count;
    Lane lanes[kMostLanes];
    for (unsigned l = 0; l < count; ++l) {
      lanes[l].at = content.data() + l * each;
      for (unsigned i = 0; i < setup.siblings(); ++i)
        lanes[l].beside[i] = siblings[i] + l * each;
    }
    if (count == 1) return run_lanes<1>(lanes, each, setup, code);
    run_lanes<kMostLanes>(lanes, each, setup, code);
    // The last lane has what is left.
    code.lane = count - 1;
    run_lanes<1>(lanes + (count - 1), content.size() - each * count, setup, code);
  }
};

namespace {

constexpr std::uint64_t kLowest = std::uint64_t{1} << 31;

// Collects the shares of the symbols that are there.
struct Collect {
  std::vector<std::uint32_t> &shares;
  unsigned lane = 0; // of the first
  unsigned operator()(const Lane &l, unsigned i, unsigned shift) const {
    const unsigned symbol = *l.at >> shift & 15u;
    shares.push_back((lane + i) << 30 | static_cast<std::uint32_t>(l.mixed.below[symbol]) << 16 |
                     static_cast<std::uint32_t>(share(l.mixed, symbol)));
    return symbol;
  }
};

// Decodes symbols by their shares from the states of an rANS coder with 32-bit words.
struct Draw {
  const std::uint8_t *at, *end;
  std::array<std::uint64_t, kMostLanes> states{};
  unsigned lane = 0; // of the first
  bool overrun = false;
  std::uint32_t word() {
    if (end - at < 4) {
      overrun = true;
      return 0;
    }
    at += 4;
    return load<std::uint32_t>(at - 4);
  }
  unsigned operator()(const Lane &l, unsigned i, unsigned) {
    std::uint64_t &state = states[lane + i];
    const auto point = static_cast<unsigned>(state & (kTotal - 1));
    const unsigned symbol = find(l.mixed, point);
    state = static_cast<std::uint64_t>(share(l.mixed, symbol)) * (state >> kTotalBits) + point -
            static_cast<unsigned>(l.mixed.below[symbol]);
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
  s.run(out, setup, siblings, Collect{s.shares});
  // Last symbol first, into words that the decoder reads the other way round.
  std::vector<std::uint32_t> words;
  std::array<std::uint64_t, kMostLanes> states;
  states.fill(kLowest);
  for (auto p = s.shares.rbegin(); p != s.shares.rend(); ++p) {
    const std::uint64_t size = *p & 0xFFFF, start = *p >> 16 & 0x3FFF;
    std::uint64_t &state = states[*p >> 30];
    if (state >= size << (63 - kTotalBits)) {
      words.push_back(static_cast<std::uint32_t>(state));
      state >>= 32;
    }
    state = (state / size << kTotalBits) + state % size + start;
  }
  const unsigned lanes = lanes_of(content.size());
  out.resize(8 * lanes + words.size() * 4);
  std::uint8_t *at = out.data();
  for (unsigned l = 0; l < lanes; ++l, at += 8)
    store(at, states[l]);
  for (auto word = words.rbegin(); word != words.rend(); ++word, at += 4)
    store(at, *word);
}

bool Mixer::decode(Bytes in, const MixerSetup &setup, const Siblings &siblings, MutableBytes content) {
  const unsigned lanes = lanes_of(content.size());
  if (in.size() < 8 * lanes || !setup.valid(content.size())) return false;
  Draw draw{in.data() + 8 * lanes, in.data() + in.size()};
  for (unsigned l = 0; l < lanes; ++l) {
    draw.states[l] = load<std::uint64_t>(in.data() + 8 * l);
    if (draw.states[l] < kLowest) return false;
  }
  state_->run(content, setup, siblings, draw);
  const auto first = draw.states.begin();
  return !draw.overrun && draw.at == draw.end &&
         std::all_of(first, first + lanes, [](std::uint64_t state) { return state == kLowest; });
}

} // namespace etwrelog::etlz
