// Manifests in several events: joined by provider, process and thread in the order of time, whatever the
// order in which they come.
#include "schema/manifest_pieces.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace etwrelog::schema {
namespace {

constexpr Guid kSpeaker = make_guid(0xccddeeff, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);

struct Spoken {
  std::int64_t time;
  unsigned number, total;
  std::string_view text;
  std::uint32_t thread = 1;
};

std::vector<std::string> joined(const std::vector<Spoken> &spoken, std::size_t *torn = nullptr) {
  ManifestPieces pieces, later;
  for (std::size_t i = 0; i < spoken.size(); ++i) { // as if two batches had them
    const Spoken &s = spoken[i];
    (i < spoken.size() / 2 ? pieces : later)
        .add({kSpeaker, 0, 4, s.thread, s.number, s.total, s.text}, s.time);
  }
  pieces.merge(later);
  ManifestJoiner joiner;
  std::vector<std::string> wholes;
  for (const ManifestPiece &piece : pieces.in_order())
    if (auto whole = joiner.add(piece)) wholes.push_back(*std::move(whole));
  if (torn != nullptr) *torn = joiner.torn().size();
  return wholes;
}

using Texts = std::vector<std::string>;

TEST(ManifestPieces, AreJoinedInOrderOfTimeWhateverTheirOrder) {
  std::vector<Spoken> spoken = {{10, 0, 3, "a"}, {11, 1, 3, "b"}, {12, 2, 3, "c"},
                                {20, 0, 3, "A"}, {21, 1, 3, "B"}, {22, 2, 3, "C"}};
  std::vector<std::size_t> order(spoken.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    std::vector<Spoken> mixed;
    for (const std::size_t i : order)
      mixed.push_back(spoken[i]);
    ASSERT_EQ(joined(mixed), (Texts{"abc", "ABC"}));
  } while (std::ranges::next_permutation(order).found);
}

TEST(ManifestPieces, OfAClockThatStandsStillAreInTheOrderOfTheFile) {
  EXPECT_EQ(joined({{5, 0, 2, "a"}, {5, 1, 2, "b"}, {5, 0, 2, "A"}, {5, 1, 2, "B"}}), (Texts{"ab", "AB"}));
  EXPECT_EQ(joined({{5, 1, 2, "b"}, {5, 0, 2, "a"}}), Texts{"ab"});
}

TEST(ManifestPieces, OfSeveralThreadsDoNotMix) {
  EXPECT_EQ(joined({{1, 0, 2, "a", 1}, {2, 0, 2, "A", 2}, {3, 1, 2, "b", 1}, {4, 1, 2, "B", 2}}),
            (Texts{"ab", "AB"}));
}

TEST(ManifestPieces, AreSaidToBeTornUnlessAnotherIsWhole) {
  std::size_t torn = 0;
  EXPECT_EQ(joined({{1, 0, 2, "a"}}, &torn), Texts{});
  EXPECT_EQ(torn, 1u);
  EXPECT_EQ(joined({{1, 1, 2, "b"}}, &torn), Texts{});
  EXPECT_EQ(torn, 1u);
  EXPECT_EQ(joined({{1, 0, 2, "a"}, {2, 0, 2, "a"}, {3, 1, 2, "b"}}, &torn), Texts{"ab"}); // began anew
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(joined({{1, 1, 3, "x"}, {2, 0, 2, "a"}, {3, 1, 2, "b"}}, &torn), Texts{"ab"});
  EXPECT_EQ(torn, 1u);
}

TEST(ManifestPieces, AreLimited) {
  ManifestPieces pieces;
  std::string text(1u << 20, 'x');
  for (unsigned i = 0; i < 70; ++i) {
    text[0] = static_cast<char>('0' + i);
    pieces.add({kSpeaker, 0, 4, 1, i, 70, text}, i);
  }
  EXPECT_TRUE(pieces.too_many());
  EXPECT_EQ(pieces.in_order().size(), kMaxPendingBytes >> 20);
  ManifestJoiner joiner;
  for (const ManifestPiece &piece : pieces.in_order())
    EXPECT_FALSE(joiner.add(piece));
  EXPECT_TRUE(joiner.too_many()); // of one no more than 16 MiB
}

} // namespace
} // namespace etwrelog::schema
