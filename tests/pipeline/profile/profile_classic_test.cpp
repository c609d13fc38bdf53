// Profiles of traces whose kernel events have classic headers, as programs that consume a session may write
// them again: the same as with the kernel's own headers.
#include "tests/pipeline/profile/profile_runs.hpp"
#include "tests/support/classic_headers.hpp"
#include "tests/support/generated.hpp"

namespace etwrelog {
namespace {

void expect_same_profile(const std::vector<std::uint8_t> &bytes, ProfileKind kind) {
  const Result<pipeline::Trace> known = open_trace(bytes), classic = open_trace(with_classic_headers(bytes));
  ASSERT_TRUE(known && classic);
  pipeline::ProfileOptions options;
  options.kind = kind;
  const Profile before = profile_of(*known, options).profile, after = profile_of(*classic, options).profile;
  if (kind == ProfileKind::cpu) expect_sums(after);
  ASSERT_GT(before.accounting.total.claimed, 100u);
  EXPECT_EQ(folded(after), folded(before));
  EXPECT_EQ(after.accounting.total.claimed, before.accounting.total.claimed);
  EXPECT_EQ(after.accounting.total.orphaned, before.accounting.total.orphaned);
  EXPECT_EQ(after.accounting.other_events, before.accounting.other_events);
}

class ProfileOfClassicEvents : public ::testing::TestWithParam<std::pair<bool, unsigned>> {};

TEST_P(ProfileOfClassicEvents, IsThatOfTheKernelsOwn) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 2 << 20;
  options.cpus = 2;
  options.processes = 4;
  options.stack_cache = GetParam().first;
  options.pointer_size = GetParam().second;
  const std::vector<std::uint8_t> bytes = generated(options);
  expect_same_profile(bytes, ProfileKind::cpu);
  expect_same_profile(bytes, ProfileKind::wait);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutStackKeys, ProfileOfClassicEvents,
                         ::testing::Values(std::pair(false, 8u), std::pair(true, 8u), std::pair(false, 4u),
                                           std::pair(true, 4u)));

// A program of 32 bits may pass on what a kernel of 64 bits wrote: its frames read as twice as many of 32
// bits, which nobody called.
TEST_F(Join, StacksOf64BitsBehindAHeaderOf32AreNobodys) {
  for (const std::uint64_t innermost : {kKernel, kUser, std::uint64_t{0x40'1000}}) {
    trace.sample({2'000'000}, 80);
    const std::size_t walk = trace.stack_walk({2'000'001}, 2'000'000, 8, 80, {innermost, kUser + 1});
    std::vector<std::uint8_t> bytes = trace.event(walk);
    const EventView event(bytes.data(), static_cast<std::uint32_t>(bytes.size()),
                          format::HeaderType::perfinfo64);
    SyntheticTrace narrow;
    narrow.process_rundown({1'000'001}, 8, 4, "game.exe");
    narrow.thread_rundown({1'000'002}, 80, 8);
    narrow.sample({2'000'000}, 80);
    narrow.emit({2'000'001}, [&](write::EventBuilder &e) {
      e.classic(kernel::class_guid(event.hook()), event.opcode(), 2, 4, kUnknownId, kUnknownId, 2'000'001)
          .bytes(event.payload());
    });
    const Profile profile = profile_of(narrow).profile;
    EXPECT_EQ(profile.accounting.total.samples, 1u);
    EXPECT_EQ(profile.accounting.total.fragments, 0u);
  }
}

} // namespace
} // namespace etwrelog
