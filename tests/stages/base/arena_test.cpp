#include "base/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace etwrelog::base {
namespace {

TEST(Arena, GivesPiecesThatDoNotOverlapToAnyThread) {
  Arena arena;
  struct Piece {
    std::uint8_t *at;
    std::size_t size;
    std::uint8_t filled;
  };
  // From nothing to more than a chunk.
  constexpr std::size_t kSizes[] = {0, 1, 7, 8, 4096, 300'000, 700'001, 3'000'000, 24};
  std::vector<std::vector<Piece>> taken(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < taken.size(); ++t)
      threads.emplace_back([&, t] {
        for (int round = 0; round < 3; ++round)
          for (const std::size_t size : kSizes) {
            const auto fill = static_cast<std::uint8_t>(1 + t * 50 + taken[t].size());
            std::uint8_t *const at = arena.take(size);
            std::fill_n(at, size, fill);
            taken[t].push_back({at, size, fill});
          }
      });
  }
  for (const std::vector<Piece> &pieces : taken)
    for (const Piece &piece : pieces) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.at) % 8, 0u);
      EXPECT_TRUE(std::all_of(piece.at, piece.at + piece.size,
                              [&](std::uint8_t byte) { return byte == piece.filled; }));
    }
}

TEST(Arena, KeepsWhatHasNotBeenGivenBack) {
  Arena arena;
  constexpr std::size_t kPiece = 512u << 10; // some share a chunk
  std::vector<MutableBytes> pieces;
  for (int i = 0; i < 16; ++i) {
    pieces.emplace_back(arena.take(kPiece), kPiece);
    std::ranges::fill(pieces.back(), static_cast<std::uint8_t>(1 + i));
  }
  for (std::size_t i = 0; i < pieces.size(); i += 2) { // one of two, in halves
    arena.give_back(pieces[i].first(kPiece / 2));
    arena.give_back(pieces[i].subspan(kPiece / 2));
  }
  arena.give_back({});
  for (std::size_t i = 1; i < pieces.size(); i += 2)
    EXPECT_TRUE(std::ranges::all_of(pieces[i], [i](std::uint8_t byte) { return byte == 1 + i; })) << i;
  for (std::size_t i = 1; i < pieces.size(); i += 2)
    arena.give_back(pieces[i]);
  std::uint8_t *const again = arena.take(kPiece); // the arena is as good as before
  std::fill_n(again, kPiece, std::uint8_t{7});
}

} // namespace
} // namespace etwrelog::base
