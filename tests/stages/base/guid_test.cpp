#include "etwrelog/format.hpp"
#include "etwrelog/guid.hpp"

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

} // namespace
} // namespace etwrelog
