#include "stacks/stack_table.hpp"
#include "tests/support/stack_samples.hpp"

#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace etwrelog::stacks {
namespace {

using test::Stack;
using test::StackSource;

std::vector<Stack> samples(std::size_t count, std::uint64_t seed, std::size_t max_depth = 60) {
  StackSource source(seed);
  std::vector<Stack> stacks;
  while (stacks.size() < count)
    stacks.push_back(source.next(max_depth));
  return stacks;
}

void expect_reads_back(const StackTable &table, StackId id, const Stack &stack, std::uint32_t scope) {
  std::vector<std::uint64_t> frames = {1, 2, 3};
  ASSERT_NE(id, kNoStack);
  EXPECT_EQ(table.read(id, frames), scope);
  EXPECT_EQ(frames, stack);
  EXPECT_EQ(table.depth(id), stack.size());
}

// Against std::map, which needs no hash.
void compare_with_map(StackTable &table, const std::vector<Stack> &stacks) {
  std::map<std::pair<Stack, std::uint32_t>, StackId> model;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const std::uint32_t scope = i % 5 == 0 ? 4 : 8;
    const auto known = model.find({stacks[i], scope});
    EXPECT_EQ(table.find(stacks[i], scope), known == model.end() ? kNoStack : known->second);
    const StackId id = table.intern(stacks[i], scope);
    if (known != model.end())
      ASSERT_EQ(id, known->second);
    else
      ASSERT_TRUE(model.emplace(std::pair(stacks[i], scope), id).second && id == model.size() - 1);
  }
  EXPECT_EQ(table.size(), model.size());
  for (const auto &[stack, id] : model)
    expect_reads_back(table, id, stack.first, stack.second);
}

TEST(StackTable, AgreesWithAnOrderedMap) {
  StackTable table;
  compare_with_map(table, samples(20000, 1));
}

TEST(StackTable, SurvivesEveryHashBeingEqual) {
  StackTable::Options options;
  options.hash = [](Frames, std::uint32_t) { return StackHash{7, 7}; };
  StackTable table(options);
  compare_with_map(table, samples(700, 2));
}

StackHash hash_of_few_bits(Frames frames, std::uint32_t scope) {
  const std::uint64_t h = (frames.empty() ? 0 : frames.front() % 37) + scope;
  return {h, h % 3};
}

TEST(StackTable, SurvivesHashesOfFewBits) {
  StackTable::Options options;
  options.hash = hash_of_few_bits;
  StackTable table(options);
  compare_with_map(table, samples(3000, 3));
}

// Looked up in groups of all sizes, some stacks new and some twice in a group.
void compare_groups(StackTable &table, const std::vector<Stack> &stacks) {
  std::map<std::pair<Stack, std::uint32_t>, StackId> model;
  std::vector<StackQuery> queries;
  std::vector<StackId> ids;
  for (std::size_t begin = 0, size = 0; begin < stacks.size(); begin += size, size = size % 101 + 1) {
    queries.clear();
    for (std::size_t i = begin; i < std::min(begin + size, stacks.size()); ++i)
      queries.push_back({stacks[i], i % 5 == 0 ? 4u : 8u});
    ids.assign(queries.size(), 12345);
    table.intern(queries, ids.data());
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const auto [known, fresh] = model.emplace(std::pair(stacks[begin + i], queries[i].scope), ids[i]);
      ASSERT_EQ(known->second, ids[i]);
    }
  }
  EXPECT_EQ(table.size(), model.size());
  for (const auto &[stack, id] : model)
    expect_reads_back(table, id, stack.first, stack.second);
}

TEST(StackTable, LooksUpGroupsAsOneByOne) {
  StackTable table;
  compare_groups(table, samples(20000, 9));
  StackTable::Options options;
  options.hash = hash_of_few_bits;
  StackTable colliding(options);
  compare_groups(colliding, samples(2000, 10));
}

TEST(StackTable, RefusesStacksOfAGroupThatDoNotFit) {
  StackTable table;
  const Stack known = {1, 2, 3}, deep(kMaxStackFrames + 1, 7);
  const StackId id = table.intern(known, 8);
  const std::vector<StackQuery> queries = {{deep, 8}, {known, 8}, {deep, 8}};
  std::vector<StackId> ids(3);
  table.intern(queries, ids.data());
  EXPECT_EQ(ids, (std::vector<StackId>{kNoStack, id, kNoStack}));
  table.intern(std::span<const StackQuery>(), nullptr);
}

TEST(StackTable, KeepsEveryAddressExactly) {
  StackTable table;
  const std::vector<Stack> stacks = {
      {},
      {0},
      {~0ull},
      {0x0000'8000'0000'0000ull, 0xFFFF'7FFF'FFFF'FFFFull, 0xDEAD'BEEF'0000'0001ull}, // not canonical
      {0x00FF'8000'1234'5678ull, 0xFF00'0000'0000'0001ull},                           // five-level paging
      {1, 1, 1, 1},
      {0x1'0000'0001ull, 0x2'0000'0001ull, 0x1'0000'0001ull},
      {0xFFFF'FFFFull, 0x1'0000'0000ull},
      {8}, // equals a scope
      {8, 8},
      {8, 0xFFFF'8000'0000'0008ull},
      {0xFFFF'8000'0000'0008ull, 0xFFFF'8000'0000'0008ull},
  };
  std::vector<StackId> ids;
  for (const Stack &stack : stacks)
    ids.push_back(table.intern(stack, 8));
  for (std::size_t i = 0; i < stacks.size(); ++i)
    expect_reads_back(table, ids[i], stacks[i], 8);
  EXPECT_EQ(table.size(), stacks.size());
}

// Stretches of the same upper half are written as runs of their own.
TEST(StackTable, HoldsStacksOfManyModules) {
  std::mt19937_64 random(12);
  std::vector<Stack> stacks;
  for (int i = 0; i < 4000; ++i) {
    Stack stack = !stacks.empty() && random() % 2 == 0 ? stacks[random() % stacks.size()] : Stack();
    if (!stack.empty())
      stack.erase(stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(random() % stack.size()));
    for (std::size_t stretch = random() % 5; stretch-- > 0;) {
      const std::uint64_t high = random() % 8 == 0 ? random() << 32 : (0x7FF0 + random() % 4) << 32;
      for (std::size_t n = random() % 40; n-- > 0;)
        stack.insert(stack.begin(), high | (random() & 0xFFFF'FFFF));
    }
    stacks.push_back(std::move(stack));
  }
  StackTable table;
  compare_with_map(table, stacks);
}

TEST(StackTable, TellsScopesApart) {
  StackTable table;
  const Stack stack = {0x1000, 0x2000};
  const StackId a = table.intern(stack, 4), b = table.intern(stack, 8), c = table.intern(stack, 8 | 77u << 8);
  EXPECT_NE(a, b);
  EXPECT_NE(b, c);
  expect_reads_back(table, a, stack, 4);
  expect_reads_back(table, c, stack, 8 | 77u << 8);
}

TEST(StackTable, HoldsAnOuterPartOfAKnownStack) {
  StackTable table;
  const Stack whole = samples(200, 4).back();
  const StackId id = table.intern(whole, 8);
  for (std::size_t skip = 1; skip <= whole.size(); ++skip) {
    const Stack outer(whole.begin() + static_cast<std::ptrdiff_t>(skip), whole.end());
    const StackId part = table.intern(outer, 8);
    EXPECT_NE(part, id);
    expect_reads_back(table, part, outer, 8);
  }
}

TEST(StackTable, HoldsTheDeepestStacksAnEventCanCarry) {
  StackTable table;
  std::vector<Stack> stacks;
  for (const std::size_t depth : {239u, 240u, 241u, 480u, 481u, 8187u, 16380u, 65534u}) {
    Stack stack(depth);
    for (std::size_t i = 0; i < depth; ++i)
      stack[i] = depth % 2 == 0 ? 0x7FF8'0000'0000ull + i * 16 : i << 31 | depth;
    stacks.push_back(stack);
    stack.front() ^= 1;
    stacks.push_back(stack);
  }
  std::vector<StackId> ids;
  for (const Stack &stack : stacks)
    ids.push_back(table.intern(stack, 8));
  for (std::size_t i = 0; i < stacks.size(); ++i)
    expect_reads_back(table, ids[i], stacks[i], 8);
  EXPECT_EQ(table.intern(Stack(65535, 1), 8), kNoStack);
}

TEST(StackTable, RefusesNewStacksWhenFullAndStillKnowsTheOldOnes) {
  StackTable::Options options;
  options.max_bytes = 200'000;
  StackTable table(options);
  const std::vector<Stack> stacks = samples(50000, 5);
  std::vector<StackId> ids;
  for (const Stack &stack : stacks)
    ids.push_back(table.intern(stack, 8));
  std::size_t refused = 0;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    if (ids[i] == kNoStack)
      ++refused;
    else
      EXPECT_EQ(table.intern(stacks[i], 8), ids[i]);
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(table.memory().total(), options.max_bytes + 100'000);
}

// The made-up stacks share a little less than real ones; the real mix has its own test.
TEST(StackTable, NeedsAboutAHundredBytesAStack) {
  StackSource source(6);
  StackTable table;
  std::size_t frames = 0;
  while (table.size() < 100'000) {
    const std::uint32_t before = table.size();
    const Stack stack = source.next();
    const StackId id = table.intern(stack, 8);
    if (table.size() != before) frames += table.depth(id);
  }
  const double per_stack = double(table.memory().total()) / table.size();
  EXPECT_GT(double(frames) / table.size(), 18);
  EXPECT_LT(per_stack, 105) << table.memory().records << ' ' << table.memory().slots << ' '
                            << table.memory().prefixes << ' ' << table.memory().directory;
}

TEST(StackTable, GivesTheSameIdsForAnyNumberOfThreads) {
  const std::vector<Stack> stacks = samples(30000, 7);
  std::vector<std::vector<StackId>> numbers;
  for (const std::size_t threads : {1u, 2u, 4u}) {
    StackTable table;
    std::vector<StackId> ids(stacks.size());
    std::vector<std::thread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] { // neighbours race for the same stacks
        for (std::size_t i = t; i < stacks.size(); i += threads)
          ids[i] = table.intern(stacks[i], 8);
      });
    for (std::thread &worker : workers)
      worker.join();
    StackOrder order;
    numbers.emplace_back();
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      numbers.back().push_back(order.number(ids[i]));
      EXPECT_EQ(order.id(numbers.back().back()), ids[i]);
    }
    EXPECT_EQ(order.size(), table.size());
  }
  EXPECT_EQ(numbers[0], numbers[1]);
  EXPECT_EQ(numbers[0], numbers[2]);
}

// All threads insert everything, each in its own order, and read while the others insert.
TEST(StackTable, MergesEqualStacksOfRacingThreads) {
  const std::vector<Stack> stacks = samples(8009, 8); // prime: every stride visits all
  StackTable table;
  std::vector<std::vector<StackId>> ids(4, std::vector<StackId>(stacks.size()));
  std::vector<std::thread> workers;
  for (std::size_t t = 0; t < ids.size(); ++t)
    workers.emplace_back([&, t] {
      std::vector<std::uint64_t> frames;
      std::vector<StackQuery> queries;
      std::vector<StackId> found(50);
      std::vector<std::size_t> places;
      auto look_up = [&] { // of every thread but the first in groups
        if (t == 0) {
          for (std::size_t i = 0; i < queries.size(); ++i)
            found[i] = table.intern(queries[i].frames, 8);
        } else {
          table.intern(queries, found.data());
        }
        for (std::size_t i = 0; i < places.size(); ++i) {
          table.read(found[i], frames);
          ids[t][places[i]] = frames == stacks[places[i]] ? found[i] : kNoStack;
        }
        queries.clear();
        places.clear();
      };
      for (std::size_t i = 0; i < stacks.size(); ++i) {
        places.push_back((i * (2 * t + 1) + t * 1000) % stacks.size());
        queries.push_back({stacks[places.back()], 8});
        if (places.size() == found.size()) look_up();
      }
      look_up();
    });
  for (std::thread &worker : workers)
    worker.join();
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    ASSERT_NE(ids[0][i], kNoStack);
    for (std::size_t t = 1; t < ids.size(); ++t)
      ASSERT_EQ(ids[t][i], ids[0][i]);
  }
}

} // namespace
} // namespace etwrelog::stacks
