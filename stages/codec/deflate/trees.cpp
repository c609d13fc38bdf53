#include "codec/deflate/trees.hpp"

#include <algorithm>
#include <span>

namespace etwrelog::codec::deflate {
namespace {

constexpr unsigned kMostSymbols = kLiteralSymbols, kMostNodes = 2 * kMostSymbols + 1;

class Tree {
public:
  // Lengths of at most `longest` bits; as many as there are symbols up to the last that has one.
  std::vector<std::uint8_t> lengths(std::span<const std::uint32_t> counts, unsigned longest) {
    const auto symbols = static_cast<unsigned>(counts.size());
    int last = -1;
    size_ = 0;
    for (unsigned symbol = 0; symbol < symbols; ++symbol)
      if (counts[symbol] != 0) {
        last = static_cast<int>(symbol);
        add(symbol, counts[symbol]);
      }
    while (size_ < 2) {
      const unsigned symbol = last < 2 ? static_cast<unsigned>(++last) : 0;
      add(symbol, 1);
    }
    for (unsigned k = size_ / 2; k >= 1; --k)
      sink(k);
    join(symbols);
    return measure(symbols, static_cast<unsigned>(last) + 1, longest);
  }

private:
  void add(unsigned symbol, std::uint32_t count) {
    heap_[++size_] = static_cast<std::uint16_t>(symbol);
    count_[symbol] = count;
    depth_[symbol] = 0;
  }
  [[nodiscard]] bool before(unsigned a, unsigned b) const {
    return count_[a] < count_[b] || (count_[a] == count_[b] && depth_[a] <= depth_[b]);
  }
  void sink(unsigned k) {
    const std::uint16_t node = heap_[k];
    for (unsigned child = 2 * k; child <= size_; child *= 2) {
      if (child < size_ && before(heap_[child + 1], heap_[child])) ++child;
      if (before(node, heap_[child])) break;
      heap_[k] = heap_[child];
      k = child;
    }
    heap_[k] = node;
  }
  // Joins the two rarest until one is left. order_ has all nodes, the last joined first.
  void join(unsigned next) {
    order_.clear();
    do {
      const unsigned rarest = heap_[1];
      heap_[1] = heap_[size_--];
      sink(1);
      const unsigned second = heap_[1];
      order_.push_back(static_cast<std::uint16_t>(rarest));
      order_.push_back(static_cast<std::uint16_t>(second));
      count_[next] = count_[rarest] + count_[second];
      depth_[next] = static_cast<std::uint16_t>(std::max(depth_[rarest], depth_[second]) + 1);
      parent_[rarest] = parent_[second] = static_cast<std::uint16_t>(next);
      heap_[1] = static_cast<std::uint16_t>(next++);
      sink(1);
    } while (size_ >= 2);
    order_.push_back(heap_[1]);
    std::ranges::reverse(order_);
  }
  [[nodiscard]] std::vector<std::uint8_t> measure(unsigned symbols, unsigned used, unsigned longest) {
    std::array<unsigned, kLongestCode + 1> leaves{};
    std::array<unsigned, kMostNodes> bits{};
    int too_long = 0;
    for (std::size_t i = 1; i < order_.size(); ++i) {
      const unsigned node = order_[i];
      unsigned length = bits[parent_[node]] + 1;
      if (length > longest) {
        length = longest;
        ++too_long;
      }
      bits[node] = length;
      if (node < symbols) ++leaves[length];
    }
    std::vector<std::uint8_t> lengths(used, 0);
    if (too_long == 0) {
      for (unsigned symbol = 0; symbol < used; ++symbol)
        lengths[symbol] = static_cast<std::uint8_t>(bits[symbol]);
      return lengths;
    }
    for (; too_long > 0; too_long -= 2) {
      unsigned length = longest - 1;
      while (leaves[length] == 0)
        --length;
      --leaves[length];
      leaves[length + 1] += 2;
      --leaves[longest];
    }
    // The rarest get the longest.
    std::size_t from = order_.size();
    for (unsigned length = longest; length >= 1; --length)
      for (unsigned n = leaves[length]; n > 0;) {
        const unsigned node = order_[--from];
        if (node >= symbols) continue;
        lengths[node] = static_cast<std::uint8_t>(length);
        --n;
      }
    return lengths;
  }

  std::array<std::uint16_t, kMostNodes> heap_{};
  std::array<std::uint32_t, kMostNodes> count_{};
  std::array<std::uint16_t, kMostNodes> depth_{}, parent_{};
  std::vector<std::uint16_t> order_;
  unsigned size_ = 0;
};

struct Said {
  std::uint8_t symbol, more;
};

// What says the lengths of one code.
void say(std::span<const std::uint8_t> lengths, std::vector<Said> &out) {
  int before = -1;
  for (std::size_t at = 0; at < lengths.size();) {
    const int length = lengths[at];
    const unsigned most = length == 0 ? 138 : length == before ? 6 : 7;
    const unsigned least = length == 0 || length == before ? 3 : 4;
    unsigned count = 1;
    while (count < most && at + count < lengths.size() && lengths[at + count] == length)
      ++count;
    at += count;
    const auto symbol = static_cast<std::uint8_t>(length);
    if (count < least) {
      out.insert(out.end(), count, {symbol, 0});
    } else if (length != 0) {
      if (length != before) {
        out.push_back({symbol, 0});
        --count;
      }
      out.push_back({16, static_cast<std::uint8_t>(count - 3)});
    } else if (count <= 10) {
      out.push_back({17, static_cast<std::uint8_t>(count - 3)});
    } else {
      out.push_back({18, static_cast<std::uint8_t>(count - 11)});
    }
    before = length;
  }
}

} // namespace

void predict_head(const Frequencies &block, std::vector<std::uint8_t> &head) {
  Tree tree;
  Frequencies all = block;
  ++all.literals[kEndOfBlock];
  const std::vector<std::uint8_t> literals = tree.lengths(all.literals, kLongestCode);
  const std::vector<std::uint8_t> distances = tree.lengths(all.distances, kLongestCode);
  std::vector<Said> said;
  say(literals, said);
  say(distances, said);
  std::array<std::uint32_t, kLengthSymbols> counts{};
  for (const Said &s : said)
    ++counts[s.symbol];
  std::vector<std::uint8_t> lengths = tree.lengths(counts, 7);
  lengths.resize(kLengthSymbols, 0);
  unsigned count = kLengthSymbols;
  while (count > 4 && lengths[kLengthOrder[count - 1]] == 0)
    --count;
  head.assign({static_cast<std::uint8_t>(literals.size() - 257),
               static_cast<std::uint8_t>(distances.size() - 1), static_cast<std::uint8_t>(count - 4)});
  for (unsigned i = 0; i < count; ++i)
    head.push_back(lengths[kLengthOrder[i]]);
  for (const Said &s : said) {
    head.push_back(s.symbol);
    if (s.symbol >= 16) head.push_back(s.more);
  }
}

} // namespace etwrelog::codec::deflate
