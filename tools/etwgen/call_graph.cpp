#include "call_graph.hpp"

#include <algorithm>
#include <bit>

namespace etwrelog::gen {
namespace {

// Which call a function makes next: the first in half of all cases, and so on.
std::uint64_t turn_of(std::uint64_t bits) {
  return static_cast<std::uint64_t>(std::countr_zero(bits | (1ull << 15)));
}

// A count with this mean, at least 1, spread to about half and double.
unsigned spread(std::uint64_t bits, double mean, unsigned most) {
  const double u = static_cast<double>(bits >> 40) / 16777216.0,
               v = static_cast<double>(bits & 0xFF'FFFF) / 16777216.0;
  const double factor = 0.35 + 1.3 * (u + v) / 2;
  return static_cast<unsigned>(std::clamp(mean * factor + 0.5, 1.0, static_cast<double>(most)));
}

} // namespace

CallGraph::CallGraph(std::uint64_t seed, std::vector<CodeRange> ranges, std::vector<std::uint64_t> outer,
                     bool kernel)
    : seed_(seed), identity_(mix(seed)), ranges_(std::move(ranges)), outer_(std::move(outer)),
      kernel_(kernel) {
  for (const CodeRange &r : ranges_)
    identity_ = mix(identity_, r.start);
  for (const std::uint64_t frame : outer_)
    identity_ = mix(identity_, frame);
  std::uint64_t total = 0, upto = 0;
  for (const CodeRange &r : ranges_)
    total += r.weight;
  std::size_t i = 0;
  for (unsigned slot = 0; slot < 256; ++slot) {
    while (i + 1 < ranges_.size() && (upto + ranges_[i].weight) * 256 <= slot * total)
      upto += ranges_[i++].weight;
    pick_.push_back(static_cast<std::uint8_t>(i));
  }
}

const Base &BaseCache::find(const CallGraph &graph, std::uint64_t base, double mean_depth) {
  const std::uint64_t key = mix(graph.seed(), base);
  Base &b = entries_[(key ^ graph.identity()) % kEntries];
  if (b.key == key && b.graph == graph.identity()) return b;
  b.key = key;
  b.graph = graph.identity();
  Rng rng(key);
  const unsigned outer = static_cast<unsigned>(graph.outer().size());
  const unsigned depth =
      std::min(spread(rng.next(), mean_depth, kMaxFrames - kMaxLeaf), kMaxFrames - kMaxLeaf - outer);
  std::uint64_t frames[kMaxFrames];
  unsigned n = 0;
  // A handful of roots: what kinds of threads a process has, which services of the kernel are called.
  CallGraph::Function f = graph.root(turn_of(rng.next()));
  while (n < depth) {
    const std::uint64_t bits = rng.next();
    const std::uint64_t turn = turn_of(bits);
    frames[n++] = graph.address(f, turn);
    f = graph.callee(f, turn);
    // Now and then a few functions call each other over and over: parsers, trees, nested windows.
    const unsigned period = 1 + static_cast<unsigned>(bits >> 20 & 1);
    if ((bits >> 32 & 15) != 0 || n < period) continue;
    for (unsigned left = period * static_cast<unsigned>(1 + (bits >> 40 & 3)); left > 0 && n < depth;
         --left, ++n)
      frames[n] = frames[n - period];
  }
  b.top = f;
  b.count = 0;
  while (n > 0)
    b.frames[b.count++] = frames[--n];
  for (const std::uint64_t frame : graph.outer())
    b.frames[b.count++] = frame;
  b.hash = 0x1234'5678'9ABC'DEF0ull;
  for (unsigned i = b.count; i > 0; --i)
    b.hash = hash_frame(b.hash, b.frames[i - 1]);
  return b;
}

unsigned walk_leaf(const CallGraph &graph, const Base &base, std::uint64_t leaf, double mean_depth,
                   std::uint64_t (&frames)[kMaxLeaf], std::uint64_t &hash) {
  const std::uint64_t bits = mix(base.key, leaf);
  const unsigned count = spread(bits, mean_depth, kMaxLeaf);
  CallGraph::Function f = base.top;
  std::uint64_t h = base.hash;
  for (unsigned i = count; i > 0; --i) {
    // The outer calls of a leaf repeat from leaf to leaf; the innermost instruction is its own.
    const std::uint64_t turn = i == 1 ? bits >> 32 : (bits >> (8 * i)) & 3;
    frames[i - 1] = graph.address(f, turn);
    h = hash_frame(h, frames[i - 1]);
    f = graph.callee(f, turn);
  }
  hash = h;
  return count;
}

} // namespace etwrelog::gen
