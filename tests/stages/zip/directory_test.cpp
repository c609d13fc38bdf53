// The central directory of a zip against the rest of the file: what they do not both say is an error, as it
// may be a trace that is lost.
#include "read/input.hpp"
#include "tests/support/zip_files.hpp"
#include "zip/directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace etwrelog {
namespace {

using testing::StoredZip;
using Buffer = std::vector<std::uint8_t>;
using Sizes = StoredZip::Sizes;

auto members(Buffer zip) {
  return zip::members_of(*read::memory_input("x.zip", std::move(zip)));
}

StoredZip two_members() {
  return {.members = {{"a.etl", Buffer(100, 'a')}, {"b.etl", Buffer(50, 'b')}}};
}

// Where a mark stands, the last one.
std::size_t mark_in(const Buffer &zip, std::uint8_t third, std::uint8_t fourth) {
  const Buffer mark = {'P', 'K', third, fourth};
  const auto at = std::find_end(zip.begin(), zip.end(), mark.begin(), mark.end());
  EXPECT_NE(at, zip.end());
  return static_cast<std::size_t>(at - zip.begin());
}

void expect_corrupt(const Buffer &zip, const std::string &what, std::uint64_t at) {
  const auto found = members(zip);
  ASSERT_FALSE(found) << what;
  EXPECT_EQ(found.error().kind, ErrorKind::corrupt);
  EXPECT_EQ(found.error().file.find("x.zip"), 0u);
  EXPECT_NE(found.error().what.find(what), std::string::npos) << found.error().message();
  EXPECT_EQ(found.error().offset, at) << found.error().message();
  EXPECT_FALSE(found.error().expected.empty()) << found.error().message();
  EXPECT_FALSE(found.error().found.empty()) << found.error().message();
}

TEST(ZipDirectory, TakesWhatProgramsWrite) {
  for (const Sizes sizes :
       {Sizes::known, Sizes::described, Sizes::described_without_mark, Sizes::large, Sizes::described_large})
    for (const bool large_end : {false, true})
      for (const std::string &comment :
           {std::string(), std::string(0xFFFF, 'c'), std::string("PK\5\6, and what looks like an end")}) {
        StoredZip zip = two_members();
        zip.sizes = sizes;
        zip.large_end = large_end;
        zip.comment = comment;
        const Buffer bytes = zip.bytes();
        const auto found = members(bytes);
        ASSERT_TRUE(found) << static_cast<int>(sizes) << found.error().message();
        ASSERT_EQ(found->size(), 2u);
        const zip::Member &second = (*found)[1];
        EXPECT_EQ(second.name, "b.etl");
        EXPECT_EQ(second.size, 50u);
        EXPECT_EQ(bytes[static_cast<std::size_t>(second.data_at)], 'b');
      }
  EXPECT_TRUE(members(StoredZip{}.bytes())) << "an empty one";
}

TEST(ZipDirectory, MayBeSigned) {
  Buffer zip = two_members().bytes();
  const std::size_t end = mark_in(zip, 5, 6);
  const Buffer signature = {'P', 'K', 5, 5, 3, 0, 1, 2, 3};
  zip[end + 12] = static_cast<std::uint8_t>(zip[end + 12] + signature.size()); // the size of the directory
  zip.insert(zip.begin() + static_cast<std::ptrdiff_t>(end), signature.begin(), signature.end());
  const auto found = members(zip);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->size(), 2u);
}

TEST(ZipDirectory, NamesAreThoseOfTheSystemThatWroteThem) {
  const auto name_of = [](const std::string &name, unsigned made_on) {
    const auto found = members(StoredZip{.members = {{name, {1}}}, .made_on = made_on}.bytes());
    return found ? found->front().name : found.error().message();
  };
  EXPECT_EQ(name_of("a\\b.etl", 0), "a/b.etl");
  EXPECT_EQ(name_of("a\\b.etl", 3), "a\\b.etl");
  EXPECT_EQ(name_of("\x81.etl", 0), "\x81.etl");
  EXPECT_EQ(name_of("", 0), "member 0");
}

TEST(ZipDirectory, NothingMayBeInFrontBetweenOrBehind) {
  const Buffer whole = two_members().bytes();
  const std::size_t directory = whole.size() - 22 - 2 * (46 + 5);
  Buffer behind = whole;
  behind.insert(behind.end(), 7, 'x');
  expect_corrupt(behind, "something follows", whole.size());
  Buffer twice = whole; // the traces of the first would be lost
  twice.insert(twice.end(), whole.begin(), whole.end());
  expect_corrupt(twice, "end of central directory", 2 * whole.size() - 22);
  // The same with the second one's places right.
  Buffer joined = StoredZip{.members = {{"lost.etl", Buffer(30, 'l')}}}.bytes();
  const auto before = static_cast<std::uint32_t>(joined.size());
  joined.insert(joined.end(), whole.begin(), whole.end());
  const auto add = [&joined, before](std::size_t at) {
    store(joined.data() + at, load<std::uint32_t>(joined.data() + at) + before);
  };
  add(before + directory + 42);
  add(before + directory + 46 + 5 + 42);
  add(joined.size() - 22 + 16);
  expect_corrupt(joined, "no member", 0);
  // A member that the directory leaves out.
  Buffer left_out = whole;
  left_out.erase(left_out.begin() + static_cast<std::ptrdiff_t>(directory),
                 left_out.begin() + static_cast<std::ptrdiff_t>(directory) + 46 + 5);
  std::uint8_t *const end = left_out.data() + left_out.size() - 22;
  store(end + 8, std::uint16_t{1});
  store(end + 10, std::uint16_t{1});
  store(end + 12, std::uint32_t{46 + 5});
  expect_corrupt(left_out, "no member", 0);
}

TEST(ZipDirectory, CutAnywhereItIsAnError) {
  for (const bool large_end : {false, true}) {
    StoredZip zip = two_members();
    zip.sizes = Sizes::described;
    zip.large_end = large_end;
    zip.comment = "comment";
    const Buffer whole = zip.bytes();
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(members(Buffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)))) << size;
  }
}

TEST(ZipDirectory, MembersAreAsItSays) {
  const Buffer whole = two_members().bytes();
  const std::size_t second = mark_in(whole, 3, 4), entry = mark_in(whole, 1, 2);
  const auto with_flip = [&whole](std::size_t at) {
    Buffer flipped = whole;
    flipped[at] ^= 1;
    return flipped;
  };
  for (const std::size_t at : {second, entry + 42})
    EXPECT_FALSE(members(with_flip(at))) << at;
  expect_corrupt(with_flip(second + 6), "flags", second + 6);
  expect_corrupt(with_flip(second + 8), "method", second + 8);
  expect_corrupt(with_flip(second + 14), "CRC-32", second + 14);
  expect_corrupt(with_flip(entry + 16), "CRC-32", second + 14);
  expect_corrupt(with_flip(second + 18), "compressed size", second + 18);
  expect_corrupt(with_flip(entry + 24), "size", second + 22);
  expect_corrupt(with_flip(second + 30), "name", second + 30);
  expect_corrupt(with_flip(entry + 46), "name", second + 30);
  expect_corrupt(with_flip(entry), "central directory", entry);
  expect_corrupt(with_flip(whole.size() - 22 + 10), "number of entries", whole.size() - 22);
  StoredZip described = two_members();
  described.sizes = Sizes::described;
  Buffer wrong = described.bytes();
  const std::size_t descriptor = mark_in(wrong, 7, 8);
  wrong[descriptor + 4] ^= 1;
  expect_corrupt(wrong, "data descriptor", descriptor);
}

// Whatever its fields say, nothing outside the file is read and no memory taken for it.
TEST(ZipDirectory, EveryFieldIsBounded) {
  for (const Sizes sizes : {Sizes::known, Sizes::described, Sizes::large, Sizes::described_large}) {
    StoredZip zip = two_members();
    zip.sizes = sizes;
    zip.large_end = sizes == Sizes::large;
    const Buffer whole = zip.bytes();
    for (std::size_t at = 0; at < whole.size(); ++at)
      for (const std::uint8_t value : {0x00, 0x7F, 0xFF}) {
        Buffer bad = whole;
        std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(at), std::min<std::size_t>(8, bad.size() - at),
                    value);
        const auto found = members(bad);
        if (!found) continue;
        for (const zip::Member &member : *found)
          EXPECT_LE(member.data_at + member.packed, whole.size()) << at;
      }
  }
}

TEST(ZipDirectory, MoreMembersThanAskedForAreRefused) {
  const auto found = zip::members_of(*read::memory_input("x.zip", two_members().bytes()), 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::unsupported);
}

} // namespace
} // namespace etwrelog
