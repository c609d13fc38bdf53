#include "calibration.hpp"

#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace etwrelog::gen {
namespace {

constexpr std::uint64_t kDefaultSize = 64'000'000;

class Table {
public:
  void row(const char *name, const char *unit, double measured, double published, double tolerance) {
    const double off = measured / published - 1;
    const bool good = std::abs(off) <= tolerance;
    fmt::print("  {:<34} {:>14} {:>14} {:>+8.1f}%  {}\n", name, text(measured, unit), text(published, unit),
               off * 100, good ? "ok" : fmt::format("outside {:.0f}%", tolerance * 100));
    if (!good) ++bad;
  }
  int bad = 0;

private:
  static std::string text(double v, const char *unit) {
    if (unit[0] == '%') return fmt::format("{:.2f}%", v * 100);
    if (unit[0] == 'M') return fmt::format("{:.2f} MB", v / 1e6);
    if (unit[0] == 's') return fmt::format("{:.1f} s", v);
    return fmt::format("{:.0f}", v);
  }
};

int check(const Profile &profile, std::optional<std::uint64_t> size, std::uint64_t seed, unsigned threads) {
  const Published &p = *profile.published;
  Options options;
  options.profile = &profile;
  options.cpus = profile.cpus;
  options.seed = seed;
  options.threads = threads;

  // Counts at the published size: generated whole, kept nowhere.
  options.size = static_cast<std::uint64_t>(p.size);
  NullSink nowhere;
  Result<Generated> full = generate(options, nowhere);
  if (!full) return 1;
  const Truth &t = full->truth;

  // Ratios on a smaller trace. Its rundown shrinks with it, as on a machine with fewer processes: otherwise a
  // rundown made for gigabytes would fill it.
  options.size = std::min(size.value_or(kDefaultSize), static_cast<std::uint64_t>(p.size));
  options.processes = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(*options.size / 4'000'000, 8, 60));
  MemorySink memory;
  Result<Generated> part = generate(options, memory);
  if (!part) return 1;
  const Ratios r = measure(memory.bytes);

  Table table;
  fmt::print(
      "{}: ratios measured on {:.1f} MB, counts on the whole {:.1f} MB; {:.1f} MB held {} distinct stacks\n",
      profile.name, static_cast<double>(memory.bytes.size()) / 1e6, static_cast<double>(t.raw_bytes) / 1e6,
      static_cast<double>(memory.bytes.size()) / 1e6, part->truth.distinct_stacks());
  fmt::print("  {:<34} {:>14} {:>14} {:>9}\n", "", "measured", "published", "off");
  table.row("duration", "s", full->seconds, p.duration_s, 0.15);
  table.row("size", "M", static_cast<double>(t.raw_bytes), p.size, 0.15);
  table.row("stack bytes", "M", static_cast<double>(t.stack_bytes()), p.stack_bytes, 0.15);
  table.row("stack events", "", static_cast<double>(t.stack_events()), p.stack_events, 0.15);
  table.row("distinct stacks", "", static_cast<double>(t.distinct_stacks()), p.distinct_stacks, 0.15);
  table.row("LZNT1 per buffer, whole", "%", r.lznt1_whole, p.lznt1_whole, 0.15);
  table.row("LZNT1 per buffer, stacks only", "%", r.lznt1_stacks, p.lznt1_stacks, 0.15);
  table.row("deflate", "%", r.deflate, p.deflate, 0.30);
  table.row("LZMA2", "%", r.lzma, p.lzma, 0.15);
  return table.bad;
}

} // namespace

int check_calibration(const Profile *only, std::optional<std::uint64_t> size, std::uint64_t seed,
                      unsigned threads) {
  int bad = 0;
  for (const Profile &profile : all_profiles())
    if (profile.published && (only == nullptr || only == &profile))
      bad += check(profile, size, seed, threads);
  fmt::print("{}\n", bad == 0 ? "all rows within their tolerance"
                              : fmt::format("{} rows outside their tolerance", bad));
  return bad == 0 ? 0 : 1;
}

} // namespace etwrelog::gen
