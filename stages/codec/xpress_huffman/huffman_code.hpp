// Code lengths of at most 15 bits for the 512 symbols of XPRESS-Huffman, and the canonical codes that follow.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace etwrelog::codec {

class HuffmanCode {
public:
  static constexpr unsigned kSymbols = 512;
  static constexpr unsigned kMaxBits = 15;
  using Counts = std::array<std::uint32_t, kSymbols>;

  // Always a complete code, for decoders insist on that: of fewer than two symbols it is given more.
  void build(const Counts &counts) {
    lengths_.fill(0);
    std::array<std::pair<std::uint32_t, std::uint16_t>, kSymbols> used;
    std::size_t n = 0;
    for (unsigned s = 0; s < kSymbols; ++s) {
      if (counts[s] != 0) {
        used[n++] = {counts[s], static_cast<std::uint16_t>(s)};
      }
    }
    for (std::uint16_t s = 0; n < 2; ++s) {
      if (counts[s] == 0) {
        used[n++] = {0, s};
      }
    }
    std::sort(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(n)); // by count, then symbol: no ties
    std::array<std::uint32_t, kMaxBits + 1> per_length = length_counts(used, n);
    // The rarest get the longest.
    std::size_t i = 0;
    for (unsigned bits = kMaxBits; bits != 0; --bits) {
      for (std::uint32_t k = 0; k < per_length[bits]; ++k) {
        lengths_[used[i++].second] = static_cast<std::uint8_t>(bits);
      }
    }
    std::array<std::uint32_t, kMaxBits + 1> next{};
    std::uint32_t code = 0;
    for (unsigned bits = 1; bits <= kMaxBits; ++bits) {
      code = (code + (bits == 1 ? 0 : per_length[bits - 1])) << 1;
      next[bits] = code;
    }
    for (unsigned s = 0; s < kSymbols; ++s) {
      codes_[s] = lengths_[s] != 0 ? static_cast<std::uint16_t>(next[lengths_[s]]++) : std::uint16_t{0};
    }
  }

  [[nodiscard]] unsigned length(unsigned symbol) const { return lengths_[symbol]; }
  [[nodiscard]] unsigned code(unsigned symbol) const { return codes_[symbol]; }

private:
  using Used = std::array<std::pair<std::uint32_t, std::uint16_t>, kSymbols>;

  // How many symbols get each length: Huffman's tree over the sorted counts, then cut to kMaxBits.
  static std::array<std::uint32_t, kMaxBits + 1> length_counts(const Used &used, std::size_t n) {
    // Nodes in order of creation: leaves 0..n-1, then inner ones; both runs are sorted, so two queues do.
    std::array<std::uint64_t, 2 * kSymbols> weight;
    std::array<std::uint16_t, 2 * kSymbols> parent;
    for (std::size_t i = 0; i < n; ++i) {
      weight[i] = used[i].first;
    }
    std::size_t leaf = 0;
    std::size_t inner = n;
    for (std::size_t made = n; made < 2 * n - 1; ++made) {
      const auto take = [&] {
        return leaf < n && (inner == made || weight[leaf] <= weight[inner]) ? leaf++ : inner++;
      };
      const std::size_t a = take();
      const std::size_t b = take();
      weight[made] = weight[a] + weight[b];
      parent[a] = parent[b] = static_cast<std::uint16_t>(made);
    }
    std::array<std::uint32_t, kMaxBits + 1> per_length{};
    std::array<std::uint16_t, 2 * kSymbols> depth;
    depth[2 * n - 2] = 0;
    std::uint64_t used_up = 0; // of 2^15 code points
    for (std::size_t i = 2 * n - 2; i-- > 0;) {
      depth[i] = static_cast<std::uint16_t>(depth[parent[i]] + 1);
      if (i < n) {
        const unsigned bits = std::min<unsigned>(depth[i], kMaxBits);
        ++per_length[bits];
        used_up += 1u << (kMaxBits - bits);
      }
    }
    // Cutting may overdraw the code: lengthen the cheapest until it fits, then give what is left over back.
    while (used_up > 1u << kMaxBits) {
      unsigned bits = kMaxBits - 1;
      while (per_length[bits] == 0) {
        --bits;
      }
      --per_length[bits];
      ++per_length[bits + 1];
      used_up -= 1u << (kMaxBits - bits - 1);
    }
    for (unsigned bits = 2; bits <= kMaxBits; ++bits) {
      while (per_length[bits] != 0 && used_up + (1u << (kMaxBits - bits)) <= 1u << kMaxBits) {
        --per_length[bits];
        ++per_length[bits - 1];
        used_up += 1u << (kMaxBits - bits);
      }
    }
    return per_length;
  }

  std::array<std::uint8_t, kSymbols> lengths_{};
  std::array<std::uint16_t, kSymbols> codes_{};
};

} // namespace etwrelog::codec
