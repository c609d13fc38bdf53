#include "stacks/stack_database.hpp"
#include "tests/support/stack_samples.hpp"

#include <gtest/gtest.h>

namespace etwrelog::stacks {
namespace {

struct Sample {
  std::vector<StackReference> references;
  StackTable table;
  StackOrder order;

  explicit Sample(std::size_t count, std::uint64_t seed = 1) {
    test::StackSource source(seed);
    std::mt19937_64 random(seed);
    std::int64_t time = std::int64_t{1} << 40;
    for (std::size_t i = 0; i < count; ++i) {
      StackReference r;
      r.kind = static_cast<StackKind>(random() % kStackKinds);
      r.processor = static_cast<std::uint16_t>(random() % 4);
      r.thread_id = static_cast<std::uint32_t>(random() % 12 * 4);
      r.process_id = r.thread_id / 16 * 4;
      if (random() % 3 != 0) time += static_cast<std::int64_t>(random() % 20000) - 1000;
      r.event_time = random() % 999 == 0 ? static_cast<std::int64_t>(random()) : time;
      r.stack = order.number(table.intern(source.next(60, count > 100'000 ? 15 : 8), i % 7 == 0 ? 4 : 8));
      references.push_back(r);
    }
  }

  [[nodiscard]] std::vector<std::uint8_t> file() const {
    std::vector<std::uint8_t> bytes;
    auto sink = [&](Bytes piece) -> Result<void> {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return {};
    };
    StackDatabaseWriter writer(sink, 8, 3);
    for (const StackReference &r : references)
      EXPECT_TRUE(writer.add(r));
    EXPECT_TRUE(writer.finish(table, order));
    EXPECT_EQ(writer.size(), bytes.size());
    return bytes;
  }
};

void expect_reads_back(const Sample &sample) {
  const Result<StackDatabase> back = read_stack_database(sample.file());
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->references, sample.references);
  ASSERT_EQ(back->stacks.size(), sample.order.size());
  std::vector<std::uint64_t> frames;
  for (StackId n = 0; n < sample.order.size(); ++n) {
    EXPECT_EQ(sample.table.read(sample.order.id(n), frames), back->scopes[n]);
    EXPECT_EQ(frames, back->stacks[n]);
  }
}

TEST(StackDatabase, GivesBackReferencesAndStacks) {
  expect_reads_back(Sample(5000));
}
TEST(StackDatabase, HoldsMoreReferencesThanASection) {
  expect_reads_back(Sample(300'000, 2));
}
TEST(StackDatabase, HoldsNothing) {
  expect_reads_back(Sample(0));
}

TEST(StackDatabase, RefusesAFileThatWasCutOrChanged) {
  const std::vector<std::uint8_t> good = Sample(300).file();
  for (std::size_t size = 0; size < good.size(); size += 7)
    EXPECT_FALSE(read_stack_database(Bytes(good).first(size)));
  const StackDatabase whole = *read_stack_database(good);
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < good.size();
       at += 3) { // a few bits of a zstd frame mean nothing; its checksum guards the rest
    std::vector<std::uint8_t> bad = good;
    bad[at] ^= 0x10;
    const Result<StackDatabase> back = read_stack_database(bad);
    if (!back) continue;
    ++accepted;
    EXPECT_EQ(back->references, whole.references) << at;
    EXPECT_EQ(back->stacks, whole.stacks) << at;
  }
  EXPECT_LT(accepted, good.size() / 100);
}

TEST(StackDatabase, RefusesMoreThanTheLimit) {
  EXPECT_FALSE(read_stack_database(Sample(300).file(), 1000));
}

} // namespace
} // namespace etwrelog::stacks
