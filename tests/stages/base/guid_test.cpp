#include "etwrelog/format.hpp"
#include "etwrelog/guid.hpp"

#include <set>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

TEST(Guid, PrintsInTheMixedByteOrderOfTheFile) {
  const std::array<std::uint8_t, 16> bytes = {0xd0, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11,
                                              0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c};
  EXPECT_EQ(to_string(load_guid(bytes.data())), "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c");
  EXPECT_EQ(load_guid(bytes.data()), make_guid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c));
}

TEST(Guid, ParsesWhatItPrintsWithOrWithoutBraces) {
  const std::string text = to_string(format::kImageIdGuid);
  EXPECT_EQ(parse_guid(text), format::kImageIdGuid);
  EXPECT_EQ(parse_guid("{" + text + "}"), format::kImageIdGuid);
}

TEST(Guid, RefusesWhatIsNoGuid) {
  EXPECT_FALSE(parse_guid(""));
  EXPECT_FALSE(parse_guid("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7"));
  EXPECT_FALSE(parse_guid("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7g"));
  EXPECT_FALSE(parse_guid("3d6fa8d0+fe05-11d0-9dda-00c04fd7ba7c"));
}

// What a file's author who does not know the key may try: one half makes up for the other, or only few bits
// differ.
TEST(Guid, ChosenOnesDoNotAllHaveOneHash) {
  constexpr std::uint64_t kGuids = 2000;
  const auto of = [](std::uint64_t way, std::uint64_t i) -> Guid {
    switch (way) {
    case 0: return {i * 0x9E37'79B9'7F4A'7C15ull, i};
    case 1: return {i << 32 | i >> 32, i};
    case 2: return {i << 48, 0};
    case 3: return {0, i << 48};
    case 4: return {i, ~i + 1};
    default: return {i, i};
    }
  };
  for (std::uint64_t way = 0; way < 6; ++way) {
    std::set<std::size_t> hashes, places;
    for (std::uint64_t i = 0; i < kGuids; ++i) {
      const std::size_t hash = std::hash<Guid>()(of(way, i));
      hashes.insert(hash);
      places.insert(hash % 4093); // as many as a table of the standard library has of them
    }
    EXPECT_GT(hashes.size(), kGuids * 9 / 10) << way;
    EXPECT_GT(places.size(), kGuids / 2) << way; // chance leaves some 1580
  }
}

} // namespace
} // namespace etwrelog
