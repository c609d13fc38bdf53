// Call stacks by walking a call graph that is never stored: the callees of a function follow from its number.
//
// Functions lie in the images of a process (or of the kernel, or in JIT-compiled code), so every frame is an
// address inside one of them. Two stacks whose walks take the same turns share their outer frames, as real
// ones do.
#pragma once

#include "rng.hpp"

#include <span>
#include <vector>

namespace etwrelog::gen {

inline constexpr std::uint32_t kFunctionBytes = 256; // a slot per function; code takes up to 240 bytes of it
inline constexpr unsigned kMaxFrames = 96, kMaxLeaf = 6;

struct CodeRange {
  std::uint64_t start = 0; // of function 0
  std::uint32_t functions = 0;
  std::uint32_t weight = 1; // share of calls that go there
};

class CallGraph {
public:
  CallGraph() = default;
  // `outer` are the frames below every walk, innermost first: how a thread starts, how the kernel is entered.
  CallGraph(std::uint64_t seed, std::vector<CodeRange> ranges, std::vector<std::uint64_t> outer, bool kernel);

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  // Of the seed and all addresses: two runs of a program take the same turns at different places.
  [[nodiscard]] std::uint64_t identity() const { return identity_; }
  [[nodiscard]] bool kernel() const { return kernel_; }
  [[nodiscard]] std::span<const CodeRange> ranges() const { return ranges_; }
  [[nodiscard]] std::span<const std::uint64_t> outer() const { return outer_; }

  struct Function {
    std::uint32_t range = 0, index = 0;
  };
  [[nodiscard]] Function callee(Function caller, std::uint64_t turn) const {
    const std::uint64_t h =
        mix(seed_ ^ (std::uint64_t{caller.range} << 40) ^ (std::uint64_t{caller.index} << 4), turn);
    // Calls mostly stay in their image, near their caller: linkers lay out code that runs together side by
    // side. The others go where the weights say.
    if ((h & 15) < 12) {
      const std::uint32_t functions = ranges_[caller.range].functions;
      return {caller.range,
              static_cast<std::uint32_t>((caller.index + functions + (h >> 32) % 65 - 32) % functions)};
    }
    const std::uint32_t range = pick_[(h >> 8) & 0xFF];
    return {range, static_cast<std::uint32_t>(((h >> 32) * ranges_[range].functions) >> 32)};
  }
  // An instruction of the function: where it makes its `turn`th call, or any other of its 60.
  [[nodiscard]] std::uint64_t address(Function f, std::uint64_t turn) const {
    return ranges_[f.range].start + std::uint64_t{f.index} * kFunctionBytes +
           (mix((std::uint64_t{f.range} << 40) ^ f.index, turn) % 60) * 4;
  }
  [[nodiscard]] Function root(std::uint64_t kind) const { return callee({0, 0}, mix(kind)); }

private:
  std::uint64_t seed_ = 0, identity_ = 0;
  std::vector<CodeRange> ranges_;
  std::vector<std::uint8_t> pick_;
  std::vector<std::uint64_t> outer_;
  bool kernel_ = false;
};

// The hash of a stack, outermost frame first, so that bases can be hashed once and leaves added.
[[nodiscard]] constexpr std::uint64_t hash_frame(std::uint64_t hash, std::uint64_t frame) {
  return (hash ^ frame) * 0x9E37'79B9'7F4A'7C15ull ^ ((hash ^ frame) >> 29);
}

struct Base {
  std::uint64_t key = ~std::uint64_t{0}; // of the graph's seed: decides the turns
  std::uint64_t graph = 0;               // its identity: decides the addresses
  std::uint64_t hash = 0;
  CallGraph::Function top; // innermost function: leaves start here
  std::uint32_t count = 0;
  std::uint64_t frames[kMaxFrames]; // innermost first
};

// Recently walked bases, per thread of the generator. Only a memo: what it returns does not depend on what it
// holds.
class BaseCache {
public:
  BaseCache() : entries_(kEntries) {}
  const Base &find(const CallGraph &graph, std::uint64_t base, double mean_depth);

private:
  static constexpr std::size_t kEntries = 4096;
  std::vector<Base> entries_;
};

// Frames of leaf number `leaf` on a base, innermost first; returns their count. `hash` becomes the whole
// stack's.
[[nodiscard]] unsigned walk_leaf(const CallGraph &graph, const Base &base, std::uint64_t leaf,
                                 double mean_depth, std::uint64_t (&frames)[kMaxLeaf], std::uint64_t &hash);

} // namespace etwrelog::gen
