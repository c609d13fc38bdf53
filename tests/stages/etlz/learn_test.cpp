// What is learnt of events that no table knows.
#include "etlz/model/learn.hpp"

#include <random>

#include <gtest/gtest.h>

namespace etwrelog::etlz {
namespace {

using P = Predictor;

// Events of five numbers: a key out of twelve, what belongs to the key, the key plus a distance, the process
// of the header, and a clock.
class Events {
public:
  explicit Events(std::size_t count) {
    std::mt19937 random(3);
    std::uint32_t clock = 77'000'000;
    payloads_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t key = 0x10'0000 + static_cast<std::uint32_t>(random() % 12) * 0x1'3579;
      const std::uint32_t process = 400 + static_cast<std::uint32_t>(random() % 900) * 4;
      clock += 1000 + static_cast<std::uint32_t>(random() % 100);
      const std::uint32_t values[] = {clock, key * 2654435761u, key, key + 0x40, process};
      payloads_[i].resize(sizeof values);
      std::memcpy(payloads_[i].data(), values, sizeof values);
      samples_.push_back({payloads_[i], i, 8, process});
    }
  }
  [[nodiscard]] std::vector<Bytes> payloads() const { return {payloads_.begin(), payloads_.end()}; }
  [[nodiscard]] std::span<const Sample> samples() const { return samples_; }

private:
  std::vector<std::vector<std::uint8_t>> payloads_;
  std::vector<Sample> samples_;
};
enum : std::uint8_t { kClock, kOfKey, kKey, kBehindKey, kProcess };

TEST(LearnedPlan, FindsByWhatEarlierEventsAreFoundAgain) {
  const Events events(200);
  Plan plan = learned_plan(events.payloads());
  ASSERT_EQ(plan.fields.size(), 5u);
  learn_relations(plan, events.samples());
  // Either tells the other.
  EXPECT_TRUE(plan.lead == kKey || plan.lead == kOfKey || plan.lead == kBehindKey) << int{plan.lead};
  EXPECT_EQ(plan.fields[plan.lead].first, P::match);
  // What is not the lead follows from it, or from its neighbour.
  for (const std::uint8_t field : {kOfKey, kKey, kBehindKey}) {
    const P first = plan.fields[field].first;
    EXPECT_TRUE(field == plan.lead || first == P::lookup || first == P::field) << int{field};
  }
}

TEST(LearnedPlan, FindsIdsOfTheHeaderAndClocks) {
  const Events events(200);
  Plan plan = learned_plan(events.payloads());
  learn_relations(plan, events.samples());
  EXPECT_EQ(plan.fields[kProcess].first, P::slot);
  EXPECT_EQ(plan.fields[kProcess].first_arg, static_cast<std::uint8_t>(Slot::process_id));
  EXPECT_EQ(plan.fields[kClock].residual, Residual::signed_token);
  EXPECT_EQ(plan.fields[kClock].base, P::previous);
}

TEST(LearnedPlan, FindsFieldsAtADistanceFromOthers) {
  // Keys that never come back: nothing can be looked up.
  std::vector<std::vector<std::uint8_t>> payloads(100);
  std::vector<Sample> samples;
  std::mt19937 random(4);
  for (std::vector<std::uint8_t> &p : payloads) {
    const auto base = static_cast<std::uint32_t>(random());
    const std::uint32_t values[] = {base, 7, base + 0x6000};
    p.resize(sizeof values);
    std::memcpy(p.data(), values, sizeof values);
    samples.push_back({p, samples.size(), 8, 4});
  }
  Plan plan = learned_plan(std::vector<Bytes>(payloads.begin(), payloads.end()));
  learn_relations(plan, samples);
  EXPECT_EQ(plan.fields[2].first, P::field);
  EXPECT_EQ(plan.fields[2].first_arg, 0u);
}

TEST(LearnedPlan, LearnsNothingFromTooFew) {
  const Events events(20);
  Plan plan = learned_plan(events.payloads());
  learn_relations(plan, events.samples());
  EXPECT_EQ(plan.lead, 0xFF);
  for (const PlanField &f : plan.fields)
    EXPECT_EQ(f.first, P::lookup);
}

TEST(LearnedPlan, KeepsWhatFieldsReferToWhenSomeAreCutOffOrPutFirst) {
  const Events events(200);
  Plan plan = learned_plan(events.payloads());
  learn_relations(plan, events.samples());
  const std::uint8_t lead = plan.lead;
  put_first(plan, field_of(Kind::items, 0, "items"));
  EXPECT_EQ(plan.lead, lead + 1);
  for (unsigned fields = 1; fields <= plan.fields.size(); ++fields) {
    const Plan cut = cut_plan(plan, fields, false);
    for (const PlanField &f : cut.fields)
      for (const auto &[predictor, arg] :
           {std::pair{f.first, f.first_arg}, {f.second, f.second_arg}, {f.base, f.base_arg}})
        if (predictor == P::field || predictor == P::chain) {
          EXPECT_LT(arg, fields);
        }
    std::vector<std::uint8_t> bytes;
    write_plan(bytes, cut);
    InStream in{Bytes(bytes)};
    Plan back;
    EXPECT_TRUE(read_plan(in, back)) << fields;
  }
}

} // namespace
} // namespace etwrelog::etlz
