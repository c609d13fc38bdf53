// Events of any content that tell of each other, through every kind of profile and every export of profiles.
#include "profile_pass/profile.hpp"

#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_report.hpp"
#include "etwrelog/schema.hpp"
#include "tests/fuzz/any_events.hpp"

#include <cstdlib>

namespace {

using namespace etwrelog;

// Of a text, of a file, and of addresses of code.
constexpr const char *kLeaves[] = {"TypeName", "file", "InstructionPointer", "Routine"};

const NamedKinds &selected() {
  static const NamedKinds kinds = [] {
    const std::string names[] = {"GC/*",      "PerfInfo/Sample", "Thread/CSwitch",
                                 "Process/*", "DiskIO/*",        "PerfInfo/DPC"};
    return *NamedKinds::find(names, SchemaCatalog::builtin());
  }();
  return kinds;
}

std::uint64_t sum_of(const ProfileCounts &counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t of_class : counts.by_class)
    sum += of_class;
  return sum;
}

void check(const Profile &profile) {
  const ProfileCounts &all = profile.accounting.total;
  if (all.samples != sum_of(all) || all.fragments != all.claimed + all.other_event + all.orphaned)
    std::abort();
  for (std::size_t i = 1; i < profile.nodes.size(); ++i)
    if (profile.nodes[i].parent >= i || profile.nodes[i].frame >= profile.frames.size()) std::abort();
  for (const ProfileBy by : {ProfileBy::thread, ProfileBy::module, ProfileBy::line})
    (void)profile_rows(profile, by);
  for (std::size_t i = 0; i < static_cast<std::size_t>(ProfileFormat::count_); ++i)
    (void)write_profile(profile, static_cast<ProfileFormat>(i), {}, [](Bytes) { return Result<void>(); });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 2) return 0;
  const Result<pipeline::Trace> opened =
      pipeline::Trace::open(read::memory_input("fuzz.etl", fuzz::trace_of(Bytes(data, size).subspan(2))), {});
  if (!opened) return 0;
  pipeline::PassOptions graph;
  graph.threads = 1;
  ProfileOptions options;
  options.kind = static_cast<ProfileKind>(data[0] % 4);
  options.events = selected();
  options.names = (data[0] & 4) != 0;
  options.slices = (data[0] & 8) != 0;
  options.idle = (data[0] & 16) != 0;
  if ((data[0] & 64) != 0 && options.kind == ProfileKind::events)
    options.sum = (data[1] & 4) != 0 ? "AllocationAmount" : kSummedDuration,
    options.leaf = kLeaves[data[1] % 4];
  if ((data[0] & 32) != 0) options.to = etwrelog::Moment{true, 0.1 + data[1] * 1e-6, 0};
  if (const Result<ProfileResult> result = pipeline::make_profile(*opened, options, graph))
    check(result->profile);
  return 0;
}
