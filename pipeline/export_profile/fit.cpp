#include "export_profile/fit.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace etwrelog::export_profile {
namespace {

std::vector<std::uint64_t> totals_by_node(const Profile &profile) {
  std::vector<std::uint64_t> totals(profile.nodes.size(), 0);
  for (const ProfileSample &sample : profile.samples)
    totals[sample.node] += sample.weight;
  for (std::size_t i = totals.size(); i-- > 1;)
    totals[profile.nodes[i].parent] += totals[i];
  return totals;
}

// Nodes of at least this total are few enough.
std::uint64_t threshold(std::vector<std::uint64_t> totals, std::size_t most) {
  if (totals.size() <= most) return 0;
  const auto at = totals.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(totals.begin(), at, totals.end(), std::greater<>());
  return *at + 1;
}

void add_up_samples(Profile &profile, std::size_t buckets) {
  struct Key {
    std::uint64_t bucket;
    std::size_t first;
  };
  const std::int64_t width = std::max<std::int64_t>(
      1, (profile.duration + static_cast<std::int64_t>(buckets)) / static_cast<std::int64_t>(buckets));
  std::vector<ProfileSample> &samples = profile.samples;
  const auto bucket = [&](const ProfileSample &s) { return s.time / width; };
  std::stable_sort(samples.begin(), samples.end(), [&](const ProfileSample &a, const ProfileSample &b) {
    return std::tuple(bucket(a), a.thread, a.node, a.sample_class) <
           std::tuple(bucket(b), b.thread, b.node, b.sample_class);
  });
  std::size_t kept = 0;
  for (const ProfileSample &next : samples) {
    ProfileSample *last = kept == 0 ? nullptr : &samples[kept - 1];
    if (last != nullptr && bucket(*last) == bucket(next) && last->thread == next.thread &&
        last->node == next.node && last->sample_class == next.sample_class)
      last->weight += next.weight;
    else
      samples[kept++] = next;
  }
  samples.resize(kept);
  std::stable_sort(samples.begin(), samples.end(),
                   [](const ProfileSample &a, const ProfileSample &b) { return a.time < b.time; });
}

// Tables without what nothing refers to any more.
void drop_unused_frames(Profile &profile) {
  std::vector<std::uint32_t> to(profile.frames.size(), kNoIndex);
  std::vector<ProfileFrame> frames;
  for (ProfileNode &node : profile.nodes) {
    if (node.frame == kNoIndex) continue;
    std::uint32_t &frame = to[node.frame];
    if (frame == kNoIndex) {
      frame = static_cast<std::uint32_t>(frames.size());
      frames.push_back(std::move(profile.frames[node.frame]));
    }
    node.frame = frame;
  }
  profile.frames = std::move(frames);
}

} // namespace

Profile reduce_profile(const Profile &profile, std::size_t nodes, std::size_t buckets,
                       std::uint64_t &merged) {
  Profile out = profile;
  merged = 0;
  const std::vector<std::uint64_t> totals = totals_by_node(profile);
  if (const std::uint64_t least = nodes == 0 ? 0 : threshold(totals, nodes); least > 1) {
    ProfileFrame other;
    other.kind = FrameKind::annotation;
    other.function = kOther;
    other.why = Unresolved::none;
    const auto other_frame = static_cast<std::uint32_t>(out.frames.size());
    out.frames.push_back(std::move(other));
    out.nodes.assign(1, ProfileNode{});
    std::vector<std::uint32_t> to(profile.nodes.size(), 0), other_of(1, kNoIndex);
    std::vector<bool> is_other(1, false);
    const auto add = [&](std::uint32_t parent, std::uint32_t frame, bool is_rest) {
      out.nodes.push_back({parent, frame});
      other_of.push_back(kNoIndex);
      is_other.push_back(is_rest);
      return static_cast<std::uint32_t>(out.nodes.size() - 1);
    };
    for (std::size_t i = 1; i < profile.nodes.size(); ++i) {
      const std::uint32_t parent = to[profile.nodes[i].parent];
      if (is_other[parent]) {
        to[i] = parent;
      } else if (totals[i] >= least) {
        to[i] = add(parent, profile.nodes[i].frame, false);
      } else if (totals[i] != 0) {
        if (other_of[parent] == kNoIndex) {
          const std::uint32_t made = add(parent, other_frame, true);
          other_of[parent] = made;
        }
        to[i] = other_of[parent];
      }
    }
    for (ProfileSample &sample : out.samples) {
      sample.node = to[sample.node];
      if (is_other[sample.node]) merged += sample.weight;
    }
    drop_unused_frames(out);
  }
  if (buckets != 0) add_up_samples(out, buckets);
  return out;
}

Result<const Profile *> fit_profile(const Job &job,
                                    const std::function<std::uint64_t(const Profile &)> &estimate,
                                    Profile &room, bool timed) {
  if (estimate(job.profile) <= job.max_bytes) return &job.profile;
  struct Step {
    std::size_t nodes, buckets;
  };
  constexpr Step kSteps[] = {{500'000, 0},   {200'000, 0},  {200'000, 4096}, {100'000, 2048}, {50'000, 1024},
                             {20'000, 1024}, {10'000, 512}, {5'000, 256},    {2'000, 128},    {500, 64},
                             {100, 32},      {20, 16},      {5, 4}};
  for (Step step : kSteps) {
    if (!timed) step.buckets = 0;
    std::uint64_t merged = 0;
    room = {}; // before there is another
    room = reduce_profile(job.profile, step.nodes, step.buckets, merged);
    if (estimate(room) > job.max_bytes) continue;
    job.report.merged_weight = merged;
    if (merged != 0)
      job.report.notes.push_back(fmt::format("to stay below {} bytes, {} {} are summed up in \"{}\"",
                                             grouped(job.max_bytes), grouped(merged), unit_of(job.profile),
                                             kOther));
    if (step.buckets != 0)
      job.report.notes.push_back(
          fmt::format("to stay below {} bytes, equal stacks of a thread within {:.3g} ms are one sample",
                      grouped(job.max_bytes),
                      static_cast<double>(job.profile.duration) / 1e6 / static_cast<double>(step.buckets)));
    return &room;
  }
  return does_not_fit(job.max_bytes);
}

Error does_not_fit(std::uint64_t max_bytes) {
  return base::ErrorBuilder(
      ErrorKind::usage, fmt::format("the profile does not fit into {} bytes, however much of it is merged",
                                    grouped(max_bytes)));
}

std::int64_t least_slice(const Job &job, std::size_t most) {
  const std::vector<ProfileSlice> &slices = job.profile.slices;
  if (slices.size() <= most) return 0;
  std::vector<std::int64_t> lengths;
  for (const ProfileSlice &slice : slices)
    lengths.push_back(slice.end - slice.start);
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(most), lengths.end(),
                   std::greater<>());
  const std::int64_t least = lengths[most] + 1;
  std::uint64_t count = 0, sum = 0;
  for (const ProfileSlice &slice : slices)
    if (slice.end - slice.start < least) ++count, sum += static_cast<std::uint64_t>(slice.end - slice.start);
  job.report.merged_weight += sum / 1000;
  job.report.notes.push_back(
      fmt::format("to stay below {} bytes, {} slices of less than {:.3f} µs are left out, {:.3f} ms in all",
                  grouped(job.max_bytes), grouped(count), static_cast<double>(least) / 1e3,
                  static_cast<double>(sum) / 1e6));
  return least;
}

} // namespace etwrelog::export_profile
