#include "profile_pass/profile.hpp"

#include "base/errors.hpp"
#include "base/pages.hpp"
#include "base/threads.hpp"
#include "filter/filter.hpp"
#include "profile/build.hpp"
#include "profile/join.hpp"
#include "profile_pass/collect.hpp"
#include "schema/entry.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <map>

#include <fmt/format.h>

namespace etwrelog::pipeline {

namespace {

// Calls `tell` with each interval and how much there was of it: samples, or, where there are none,
// nanoseconds of the time that was asked for. What held before the first is not told: the same.
template <class Tell> void each_interval(const Profile &profile, const Tell &tell) {
  const std::vector<ProfileInterval> &all = profile.intervals;
  const std::int64_t from = profile.stretch ? profile.stretch->from : 0,
                     to = profile.stretch ? profile.stretch->to : profile.duration;
  const bool samples = profile.kind == ProfileKind::cpu && !profile.samples.empty();
  auto sample = profile.samples.begin();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool last = i + 1 == all.size();
    std::int64_t amount = 0;
    if (samples) {
      const auto first = sample;
      sample = last ? profile.samples.end()
                    : std::ranges::lower_bound(sample, profile.samples.end(), all[i + 1].time, {},
                                               &ProfileSample::time);
      amount = sample - first;
    } else {
      amount = (last ? to : std::clamp(all[i + 1].time, from, to)) -
               (i == 0 ? from : std::clamp(all[i].time, from, to));
    }
    tell(all[i].interval_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(0, amount)));
  }
}

// Sets interval_ns, and lets samples weigh their time where they were taken at several intervals. What to say
// of that, if anything.
std::optional<std::string> settle_intervals(Profile &profile) {
  if (profile.kind == ProfileKind::events) return std::nullopt; // each is what it is
  std::map<std::uint64_t, std::uint64_t> amounts;
  each_interval(profile, [&](std::uint64_t interval, std::uint64_t amount) {
    if (amount != 0) amounts[interval] += amount;
  });
  if (amounts.empty()) {
    if (!profile.intervals.empty()) profile.interval_ns = profile.intervals.front().interval_ns;
    return std::nullopt;
  }
  const auto amount_of = [](const auto &one) { return one.second; };
  const auto [usual, amount] = *std::ranges::max_element(amounts, {}, amount_of);
  profile.interval_ns = usual;
  if (amounts.size() == 1 || profile.kind != ProfileKind::cpu || profile.samples.empty()) return std::nullopt;
  const char *how = "samples are counted by the time that each stands for";
  if (amounts.contains(0)) {
    profile.interval_ns = 0;
    how = "one interval is 0, so that each counts as one sample";
  } else {
    auto sample = profile.samples.begin();
    each_interval(profile, [&](std::uint64_t interval, std::uint64_t samples) {
      for (; samples != 0; --samples, ++sample)
        sample->weight = interval;
    });
    profile.by_time = true;
  }
  return fmt::format("the sampling interval changed: {} of {} samples were not taken every {:.4g} ms; {}",
                     profile.samples.size() - amount, profile.samples.size(),
                     static_cast<double>(usual) * 1e-6, how);
}

// Where a stretch ends within the trace, what runs there runs on. `length`: of the trace, in nanoseconds, as
// its header tells; 0: it was not closed, and only the switches tell how far it reaches.
profile::TimeRange cut_off(profile::TimeRange time, const profile::Records &records, const Clock &clock,
                           std::int64_t length) {
  const auto at = [&clock](std::int64_t raw) { return clock.to_seconds(raw) * 1e9; };
  if (time.from != profile::kBeginning && at(time.from) <= 0) time.from = profile::kBeginning;
  if (time.to == profile::kForever) return time;
  if (length != 0) {
    if (at(time.to) >= static_cast<double>(length)) time.to = profile::kForever;
  } else {
    std::int64_t last = profile::kBeginning;
    for (std::size_t i = 0; i < records.switches.size(); ++i)
      last = std::max(last, records.switches[i].time);
    time.to = std::min(time.to, last);
  }
  return time;
}

// What stands for a field where none is called so: the file that an event is about, and how long it took what
// it ends, as an export joins them.
constexpr const char *kFile = "file";

std::vector<EventField> fields_of_files(const ProfileOptions &options) {
  std::vector<EventField> found;
  if (!schema::same_name(options.leaf, kFile)) return found;
  for (const char *name : {"FileObject", "FileKey"})
    if (Result<EventField> made =
            EventField::make(options.events, name, EventField::Of::anything, Option::leaf))
      found.push_back(*std::move(made));
  return found;
}

} // namespace

Result<ProfileResult> make_profile(Traces traces, const ProfileOptions &options, const PassOptions &graph) {
  const Trace &first = *traces[earliest(traces)];
  Selection selection;
  selection.from = options.from;
  selection.to = options.to;
  const filter::TimeRange selected = filter::selected_time(selection, first.clock());
  ETWRELOG_TRY(filter::check_range(selected));
  const profile::TimeRange time{selected.from, selected.to};
  EventField sum, leaf;
  std::optional<Clock> durations;
  if (!options.sum.empty()) {
    Result<EventField> made =
        EventField::make(options.events, options.sum, EventField::Of::numbers, Option::sum);
    if (made)
      sum = *std::move(made);
    else if (!options.events.empty() && schema::same_name(options.sum, kSummedDuration))
      durations = first.clock();
    else
      return std::move(made).error();
  }
  std::vector<EventField> files;
  if (!options.leaf.empty()) {
    Result<EventField> made =
        EventField::make(options.events, options.leaf, EventField::Of::anything, Option::leaf);
    if (made)
      leaf = *std::move(made);
    else if (files = fields_of_files(options); files.empty())
      return std::move(made).error();
  }
  const std::string summed = durations ? kSummedDuration : sum.name(),
                    leaf_name = files.empty() ? leaf.name() : kFile;
  std::deque<Trace> narrowed;
  std::vector<const Trace *> read;
  for (const Trace *trace : traces)
    read.push_back(&narrowed.emplace_back(trace->within(time.from, time.to)));
  ETWRELOG_TRY_LET(collected,
                   collect_profile(read,
                                   {options.kind, options.events, std::move(sum), std::move(leaf), durations,
                                    std::move(files), options.names, options.slices, time},
                                   graph));
  const std::size_t events_found = collected.records.subjects.size();
  if (durations && events_found != 0 && collected.weightless == events_found)
    return base::no_match(
               "none of these events has a number called \"duration\", or ends what began in the trace")
        .about(Option::sum)
        .in(first.input().name());
  const unsigned threads = graph.threads != 0 ? graph.threads : default_threads();
  ProfileResult result;
  const profile::ParallelFor parallel = [threads](std::size_t count,
                                                  const std::function<void(std::size_t)> &body) {
    base::parallel_for(threads, count, body);
  };
  result.profile.accounting.lent_user_halves = profile::join(collected.records, parallel);
  const profile::ReadFrames read_frames = [&](std::uint32_t stack, std::vector<std::uint64_t> &frames) {
    collected.stacks->read(stack, frames);
  };
  profile::Methods methods;
  if (options.names) methods.build(std::move(collected.code));
  Profile &profile = result.profile;
  profile.trace = traces.size() == 1 ? first.input().name() : first.input().file();
  const std::span<const std::string> events = options.events.names();
  if (options.kind == ProfileKind::events) profile.events.assign(events.begin(), events.end());
  profile.summed = summed;
  profile.by_time = durations.has_value();
  profile.start_time = first.header().start_time;
  constexpr std::int64_t kLongest = kProfileTimeLimit / 100;
  for (const Trace *trace : traces) {
    const LogfileHeader &header = trace->header();
    profile.processors = std::max(profile.processors, header.processors);
    profile.events_lost += header.events_lost;
    profile.buffers_lost += header.buffers_lost + trace->incomplete_buffers();
    profile.lost_known = profile.lost_known && header.closed();
    if (header.end_time > profile.start_time && profile.start_time >= 0)
      profile.duration =
          std::max(profile.duration, std::min(header.end_time - profile.start_time, kLongest) * 100);
  }
  profile::build(collected.records, first.clock(), read_frames,
                 {options.idle || options.kind == ProfileKind::events, options.slices, options.kind, time,
                  cut_off(time, collected.records, first.clock(), profile.duration), leaf_name,
                  options.names ? &methods : nullptr, graph.stop},
                 parallel, profile);
  if (graph.stop.stop_requested()) return base::cancelled().in(first.input().name());
  if (!profile.samples.empty()) profile.duration = std::max(profile.duration, profile.samples.back().time);
  if (options.from || options.to) {
    const auto place = [&](std::int64_t raw) {
      const double ns = first.clock().to_seconds(raw) * 1e9;
      return static_cast<std::int64_t>(std::clamp(ns, 0.0, static_cast<double>(profile.duration)));
    };
    profile.stretch = {options.from ? place(time.from) : 0, options.to ? place(time.to) : profile.duration};
  }
  result.events = std::move(collected.events);
  result.unreadable = collected.unreadable;
  result.weightless = collected.weightless;
  PassResult met;
  for (std::size_t i = 0; i < traces.size(); ++i)
    add_to(met, {0, traces[i]->scan().skipped, traces[i]->scan().warnings}, traces, i);
  result.warnings = std::move(met.warnings);
  std::ranges::move(collected.pass.warnings, std::back_inserter(result.warnings));
  if (std::optional<std::string> changed = settle_intervals(profile))
    result.warnings.push_back(*std::move(changed));
  result.skipped = std::move(met.skipped);
  std::ranges::move(collected.pass.skipped, std::back_inserter(result.skipped));
  collected = {};
  base::give_back_memory(); // what is made of the profile needs some, too
  return result;
}

Result<ProfileResult> make_profile(const Trace &trace, const ProfileOptions &options,
                                   const PassOptions &graph) {
  const Trace *const one = &trace;
  return make_profile({&one, 1}, options, graph);
}

} // namespace etwrelog::pipeline
