// Which image or owner something had, where events that would tell were lost.
#include "profile/images.hpp"
#include "profile/timeline.hpp"

#include <gtest/gtest.h>

namespace etwrelog::profile {
namespace {

constexpr std::uint32_t kReused = 100;
constexpr std::uint64_t kBase = 0x1'4000'0000;

ImageRecord image(std::int64_t time, const char *path, bool leaves = false, bool rundown = false) {
  return {{time, 0}, leaves, rundown, kReused, 0, kBase, 0x1000, path};
}
IdentityRecord identity(std::int64_t time, const char *pdb, std::uint32_t time_stamp = 0) {
  IdentityRecord record;
  record.at.time = time, record.pid = kReused, record.base = kBase, record.time_stamp = time_stamp;
  record.guid = make_guid(static_cast<std::uint32_t>(time), 1, 2, 3, 4), record.pdb_name = pdb;
  return record;
}

// The PDBs of the images by their times, "-" for none.
std::string pdbs(std::vector<ImageRecord> records, std::vector<IdentityRecord> identities) {
  Images images;
  images.build(std::move(records), {}, identities);
  std::string all;
  for (std::uint32_t i = 0; i < images.size(); ++i)
    all += (i == 0 ? "" : " ") + (images[i].identity ? images[i].identity->pdb_name : std::string("-"));
  return all;
}

TEST(ImageIdentity, IsNeverThatOfAnotherImageAtTheSameBase) {
  const std::vector<ImageRecord> three = {image(10, "a"), image(20, "a", true), image(30, "b"),
                                          image(40, "b", true), image(50, "c")};
  EXPECT_EQ(pdbs(three, {identity(10, "a.pdb")}), "a.pdb - -");
  EXPECT_EQ(pdbs(three, {identity(35, "b.pdb")}), "- b.pdb -");
  EXPECT_EQ(pdbs(three, {identity(60, "c.pdb")}), "- - c.pdb");
  EXPECT_EQ(pdbs(three, {identity(12, "a.pdb"), identity(30, "b.pdb"), identity(90, "c.pdb")}),
            "a.pdb b.pdb c.pdb");
}

TEST(ImageIdentity, MayStandOutsideOfTheTimeOfItsImageWhereNoOtherIsMeant) {
  const std::vector<ImageRecord> two = {image(10, "a"), image(20, "a", true), image(30, "b"),
                                        image(40, "b", true)};
  EXPECT_EQ(pdbs(two, {identity(25, "x.pdb")}), "- -"); // of which it is, nobody can tell
  EXPECT_EQ(pdbs(two, {identity(5, "a.pdb"), identity(45, "b.pdb")}), "a.pdb b.pdb");
}

TEST(ImageIdentity, IsRefusedOfAnotherBuild) {
  ImageRecord loaded = image(10, "a");
  loaded.time_stamp = 7;
  EXPECT_EQ(pdbs({loaded}, {identity(10, "a.pdb", 7)}), "a.pdb");
  EXPECT_EQ(pdbs({loaded}, {identity(10, "a.pdb", 8)}), "-");
}

TEST(ImageTimes, OfWhatWasNotSeenToLoadBeginWithItsProcessAndBehindWhatWasThere) {
  std::vector<IdentityRecord> none;
  const std::vector<ProcessRecord> starts = {{{100, 0}, 1, kReused, "b.exe", ""}};
  Images of_process;
  of_process.build({image(900, "two", true, true)}, starts, none);
  EXPECT_EQ(of_process.find(kReused, 50, kBase), Images::kNone);
  EXPECT_NE(of_process.find(kReused, 100, kBase), Images::kNone);
  Images of_base;
  of_base.build({image(10, "one"), image(20, "one", true), image(900, "two", true, true)}, {}, none);
  ASSERT_NE(of_base.find(kReused, 20, kBase), Images::kNone);
  EXPECT_EQ(of_base[of_base.find(kReused, 20, kBase)].path, "one");
  EXPECT_EQ(of_base[of_base.find(kReused, 21, kBase)].path, "two");
  Images of_nothing;
  of_nothing.build({image(900, "two", true, true)}, {}, none);
  EXPECT_NE(of_nothing.find(kReused, -50, kBase), Images::kNone);
}

TEST(ImageTimes, UserImagesOfSystemAreNobodyElses) {
  std::vector<IdentityRecord> none;
  Images images;
  images.build({{{10, 0}, false, false, 4, 0, 0x7FF9'0000'0000, 0x1000, "ntdll.dll"},
                {{10, 0}, false, false, 4, 0, 0xFFFF'F800'0000'0000, 0x1000, "ntoskrnl.exe"}},
               {}, none);
  EXPECT_EQ(images.find_kernel(20, 0x7FF9'0000'0010), Images::kNone);
  EXPECT_NE(images.find_kernel(20, 0xFFFF'F800'0000'0010), Images::kNone);
}

// The owner of an id at a time; -1 for none.
int owner(const Timeline &timeline, std::int64_t time) {
  const std::uint32_t span = timeline.find(kReused, time);
  return span == Timeline::kNone ? -1 : static_cast<int>(timeline[span].value);
}

TEST(TimelineOwners, AnEndTellsOfAnOwnerWhoseStartWasLost) {
  Timeline threads;
  threads.add(kReused, {10, 0}, 1, 1);
  threads.add(kReused, {20, 0}, 2, 1);
  threads.add(kReused, {90, 0}, 4, 2);
  threads.close(true);
  EXPECT_EQ(owner(threads, 20), 1);
  EXPECT_EQ(owner(threads, 21), 2);
  EXPECT_EQ(owner(threads, 99), 2);
}

TEST(TimelineOwners, ANameThatIsCutAtTheEndIsNoOtherProcess) {
  for (const bool ends_tell : {false, true}) {
    Timeline timeline;
    timeline.add(kReused, {10, 0}, 1, 1);
    timeline.add(kReused, {50, 0}, 2, 2);
    timeline.close(ends_tell);
    EXPECT_EQ(owner(timeline, 60), ends_tell ? 2 : 1);
  }
}

} // namespace
} // namespace etwrelog::profile
