// Images and methods that overlap in space and time, few or very many: the answer is what the rule says of
// all.
#include "profile/images.hpp"
#include "profile/methods.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace etwrelog::profile {
namespace {

constexpr std::uint32_t kProcess = 100;
constexpr std::int64_t kLast = 1000;
constexpr std::uint64_t kSpace = 4000;

class Overlap : public ::testing::TestWithParam<int> {
protected:
  struct Known {
    std::int64_t from, to;
    std::uint64_t base, size;
  };

  std::uint64_t any(std::uint64_t below) { return random_() % below; }
  // Of those that are there the one with the highest base.
  void expect_found(const Images &images, const std::vector<Known> &known) {
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t address = any(kSpace + 200);
      const auto time = static_cast<std::int64_t>(any(kLast));
      std::optional<std::uint64_t> expected;
      for (const Known &image : known)
        if (image.base <= address && address - image.base < image.size && image.from <= time &&
            time <= image.to)
          expected = std::max(expected.value_or(0), image.base);
      const std::uint32_t found = images.find(kProcess, time, address);
      ASSERT_EQ(found != Images::kNone, expected.has_value()) << address << " at " << time;
      if (expected) {
        ASSERT_EQ(images[found].base, *expected) << address << " at " << time;
      }
    }
  }
  std::mt19937 random_{static_cast<unsigned>(GetParam())};
};

ImageRecord image_record(std::int64_t time, std::size_t number, std::uint64_t base, std::uint64_t size,
                         bool leaves) {
  ImageRecord record;
  record.at = {time, number};
  record.pid = kProcess;
  record.base = base;
  record.size = size;
  record.leaves = leaves;
  return record;
}

// What of many images is there: of those that hold the address at the time the one with the highest base.
// None was seen when it was loaded, so that one lay at a base since the one before it there had left.
TEST_P(Overlap, TheImageThatBeginsLastInSpaceWins) {
  std::vector<Known> known;
  std::set<std::uint64_t> bases;
  std::vector<ImageRecord> records;
  for (int i = 0; i < GetParam(); ++i) {
    const std::uint64_t base = any(kSpace);
    if (!bases.insert(base).second) continue;
    std::int64_t from = 0;
    for (std::uint64_t more = 1 + any(3); more-- > 0;) {
      const auto to = from + static_cast<std::int64_t>(any(300));
      const std::uint64_t size = any(4) == 0 ? kSpace : any(100);
      records.push_back(image_record(to, records.size(), base, size, true));
      known.push_back({from, to, base, size});
      from = to + 1;
    }
    if (any(3) == 0) {
      const std::uint64_t size = any(100);
      records.push_back(image_record(kLast, records.size(), base, size, true));
      records.back().rundown = true;
      known.push_back({from, kLast, base, size});
    }
  }
  Images images;
  std::vector<IdentityRecord> identities;
  images.build(records, {}, identities);
  expect_found(images, known);
}

// Where unloads were lost: what is loaded where others lie ends them, at whatever base they began.
TEST_P(Overlap, AnImageThatIsLoadedTakesThePlaceOfOthers) {
  std::vector<Known> known;
  std::vector<ImageRecord> records;
  for (int i = 0; i < std::min(GetParam(), 900); ++i) {
    const Known loaded{1 + i, kLast, any(kSpace), 1 + any(200)};
    for (Known &other : known)
      if (other.base < loaded.base + loaded.size && loaded.base < other.base + other.size)
        other.to = std::min(other.to, loaded.from - 1);
    known.push_back(loaded);
    records.push_back(image_record(loaded.from, records.size(), loaded.base, loaded.size, false));
  }
  Images images;
  std::vector<IdentityRecord> identities;
  images.build(records, {}, identities);
  expect_found(images, known);
}

// Of the methods that hold the address the last that had come by then, or else the first to come.
TEST_P(Overlap, TheMethodThatCameLastWins) {
  Methods::Events events;
  std::vector<MethodRecord> &records = events.methods;
  for (int i = 0; i < GetParam(); ++i) {
    MethodRecord &record = records.emplace_back();
    record.at = {10 + 2 * i, static_cast<std::uint64_t>(i)};
    record.pid = kProcess;
    record.id = static_cast<std::uint64_t>(i);
    record.start = any(2) == 0 ? any(kSpace) : any(8); // many at the same place
    record.size = any(4) == 0 ? kSpace : 1 + any(100);
    record.name = std::to_string(i);
  }
  std::shuffle(records.begin(), records.end(), random_);
  const std::vector<MethodRecord> known = records;
  Methods methods;
  methods.build(std::move(events));
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t address = any(kSpace + 200);
    const auto time = static_cast<std::int64_t>(any(20 + 2 * static_cast<std::uint64_t>(GetParam())));
    const MethodRecord *best = nullptr, *first = nullptr;
    for (const MethodRecord &record : known) {
      if (address < record.start || address - record.start >= record.size) continue;
      if (record.at.time <= time && (best == nullptr || record.at.time > best->at.time)) best = &record;
      if (first == nullptr || record.at.time < first->at.time) first = &record;
    }
    const MethodRecord *expected = best != nullptr ? best : first;
    const std::uint32_t found = methods.find(kProcess, time, address);
    ASSERT_EQ(found != Methods::kNone, expected != nullptr) << address << " at " << time;
    if (expected != nullptr) {
      ASSERT_EQ(methods[found].name, expected->name) << address << " at " << time;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, Overlap, ::testing::Values(1, 20, 80, 1000));

} // namespace
} // namespace etwrelog::profile
