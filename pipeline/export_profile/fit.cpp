#include "export_profile/fit.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <tuple>

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

// A parent is as heavy as its child and stands before it, so that whole stacks remain.
using HeaviestNodes = Heaviest<std::uint64_t>;

bool are_all(const HeaviestNodes &kept) {
  return kept.cut_weight.value_or(0) == 0; // others have no samples
}

// False, and nothing changed, where less than a tenth of the samples would go: for that little nobody wants
// to lose the times.
bool add_up_samples(Profile &profile, std::size_t buckets) {
  const std::int64_t width = std::max<std::int64_t>(
      1, (profile.duration + static_cast<std::int64_t>(buckets)) / static_cast<std::int64_t>(buckets));
  std::vector<ProfileSample> samples = profile.samples;
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
  if (kept > samples.size() - samples.size() / 10) return false;
  samples.resize(kept);
  std::stable_sort(samples.begin(), samples.end(),
                   [](const ProfileSample &a, const ProfileSample &b) { return a.time < b.time; });
  profile.samples = std::move(samples);
  return true;
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

void merge_nodes(const Profile &profile, const std::vector<std::uint64_t> &totals, const HeaviestNodes &kept,
                 Reduced &reduced) {
  Profile &out = reduced.profile;
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
  for (std::uint32_t i = 1; i < profile.nodes.size(); ++i) {
    const std::uint32_t parent = to[profile.nodes[i].parent];
    if (is_other[parent]) {
      to[i] = parent;
    } else if (kept.has(totals[i], i)) {
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
    if (is_other[sample.node]) reduced.merged += sample.weight;
  }
  drop_unused_frames(out);
}

// What is given up one after the other: many stacks first, then points of time as well.
struct Step {
  std::size_t nodes, buckets;
};
constexpr Step kSteps[] = {
    {500'000, 0},   {200'000, 0},   {200'000, 65'536}, {200'000, 16'384}, {200'000, 4096}, {100'000, 2048},
    {50'000, 1024}, {20'000, 1024}, {10'000, 512},     {5'000, 256},      {2'000, 128},    {1'000, 96},
    {500, 64},      {200, 48},      {100, 32},         {50, 24},          {20, 16},        {10, 8},
    {5, 4}};
constexpr std::size_t kLastStep = (std::size(kSteps) - 1) * kFine;

std::size_t between(std::size_t from, std::size_t to, std::size_t at) {
  return from - (from - to) * (at % kFine) / kFine;
}

Step step_at(const Profile &profile, bool timed, std::size_t at) {
  Step from = kSteps[at / kFine];
  if (at / kFine == 0) from.nodes = std::max(from.nodes, profile.nodes.size());
  if (at % kFine != 0) {
    const Step to = kSteps[at / kFine + 1];
    from.nodes = between(from.nodes, to.nodes, at);
    if (to.buckets != 0) from.buckets = between(from.buckets != 0 ? from.buckets : 1u << 18, to.buckets, at);
  }
  if (!timed) from.buckets = 0;
  return from;
}

// A file on trial.
struct Attempt {
  std::uint64_t size = 0;
  bool too_large = false, kept = true;
  std::string bytes; // all of them, if kept
  ProfileExportReport report;
};

// Larger files are rendered once more for the caller: the profile needs its memory.
constexpr std::uint64_t kKeptBytes = 32u << 20;

} // namespace

std::optional<Reduced> reduce_profile(const Profile &profile, std::size_t nodes, std::size_t buckets) {
  const std::vector<std::uint64_t> totals = totals_by_node(profile);
  const HeaviestNodes kept = heaviest(totals.size(), nodes, [&totals](std::size_t i) { return totals[i]; });
  if (are_all(kept) && buckets == 0) return std::nullopt;
  Reduced out{profile};
  if (!are_all(kept)) merge_nodes(profile, totals, kept, out);
  if (buckets != 0) out.added_up = add_up_samples(out.profile, buckets);
  if (are_all(kept) && !out.added_up) return std::nullopt;
  return out;
}

Result<void> write_largest(std::uint64_t max_bytes, ProfileExportReport &report, std::size_t last,
                           const Render &render, Out &out) {
  constexpr unsigned kMostAttempts = 8;
  const ProfileExportReport before = report;
  std::optional<Attempt> best;
  std::size_t best_at = 0, too_much = 0;
  unsigned attempts = 0;
  std::optional<Error> failed;
  // False where the search need not go on.
  const auto attempt = [&](std::size_t at) {
    Attempt now;
    const WriteBytes take = [&](Bytes bytes) -> Result<void> {
      if (const Result<void> wanted = out.still_wanted(); !wanted) {
        failed = wanted.error();
        return *failed;
      }
      now.size += bytes.size();
      now.too_large = now.size > max_bytes;
      now.kept = now.size <= kKeptBytes && !now.too_large;
      if (now.kept)
        now.bytes.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
      else
        now.bytes = std::string(); // its memory, too
      if (now.too_large) return does_not_fit(max_bytes);
      return {};
    };
    report = before;
    Out trial(take, out.compresses());
    const bool rendered = render(at, trial);
    if (rendered) ++attempts;
    const Result<std::uint64_t> done = rendered ? trial.finish() : Result<std::uint64_t>(0);
    if (!done && !now.too_large && !failed) failed = done.error();
    if (failed) return false;
    if (!rendered || now.too_large) {
      too_much = at;
      return true;
    }
    now.report = std::move(report);
    best_at = at;
    best = std::move(now);
    return best_at != 0 && best->size < max_bytes - max_bytes / 16;
  };
  bool on = attempt(0);
  while (on && attempts < kMostAttempts && (best ? best_at : last) - too_much > 1)
    on = attempt(too_much + ((best ? best_at : last) - too_much) / 2);
  if (!failed && !best) static_cast<void>(attempt(last));
  if (failed) return *std::move(failed);
  if (!best) return does_not_fit(max_bytes);
  if (best->kept) {
    report = std::move(best->report);
    out.finished_bytes({reinterpret_cast<const std::uint8_t *>(best->bytes.data()), best->bytes.size()});
  } else {
    report = before;
    static_cast<void>(render(best_at, out));
  }
  return {};
}

Result<void> write_fitting(const Job &job, const Shrinking &how, const RenderProfile &render, Out &out) {
  const std::size_t slices = how.slice_bytes == 0 ? 0 : job.profile.slices.size();
  const std::size_t quarter =
      how.slice_bytes == 0 ? 0 : static_cast<std::size_t>(job.max_bytes / 4 / how.slice_bytes);
  const std::size_t slice_steps = halving_steps(slices, quarter);
  const auto less = [&](std::size_t given_up, Out &to) {
    if (given_up == 0) {
      render(job.profile, {}, to);
      return true;
    }
    if (given_up < slice_steps) {
      render(job.profile, longest_slices(job, halved(slices, quarter, given_up)), to);
      return true;
    }
    const std::size_t at = given_up - slice_steps;
    const std::size_t most_slices = std::min(slices, quarter) * (kLastStep - at) / kLastStep;
    const Step step = step_at(job.profile, how.timed, at);
    const std::optional<Reduced> reduced = reduce_profile(job.profile, step.nodes, step.buckets);
    if (!reduced && most_slices == slices) return false;
    ProfileExportReport &report = job.report;
    if (reduced && reduced->merged != 0) {
      report.merged_weight = reduced->merged;
      report.notes.push_back(
          fmt::format("to stay below {} bytes, {} are summed up in \"{}\"", grouped(job.max_bytes),
                      unit_of(job.profile).text_with_name(static_cast<double>(reduced->merged)), kOther));
    }
    if (reduced && reduced->added_up)
      report.notes.push_back(
          fmt::format("to stay below {} bytes, equal stacks of a thread within {:.3g} ms are one sample",
                      grouped(job.max_bytes),
                      static_cast<double>(job.profile.duration) / 1e6 / static_cast<double>(step.buckets)));
    const ShownSlices shown = how.slice_bytes == 0 ? ShownSlices{} : longest_slices(job, most_slices);
    render(reduced ? reduced->profile : job.profile, shown, to);
    return true;
  };
  return write_largest(job.max_bytes, job.report, slice_steps + kLastStep, less, out);
}

Error does_not_fit(std::uint64_t max_bytes) {
  return base::ErrorBuilder(
      ErrorKind::usage, fmt::format("the profile does not fit into {} bytes, however much of it is merged",
                                    grouped(max_bytes)));
}

std::size_t halving_steps(std::size_t count, std::size_t least) {
  std::size_t steps = 0;
  for (; count > least; count >>= 1)
    ++steps;
  return steps * kFine;
}

std::size_t halved(std::size_t count, std::size_t least, std::size_t at) {
  return between(std::max(least, count >> (at / kFine)), std::max(least, count >> (at / kFine + 1)), at);
}

ShownSlices longest_slices(const Job &job, std::size_t most) {
  const std::vector<ProfileSlice> &slices = job.profile.slices;
  const auto length = [&slices](std::size_t i) { return slices[i].end - slices[i].start; };
  const ShownSlices shown{heaviest(slices.size(), most, length)};
  if (!shown.cut_weight) return shown;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (!shown.shows(slices[i], i)) sum += static_cast<std::uint64_t>(length(i));
  job.report.merged_weight += sum;
  job.report.notes.push_back(
      fmt::format("to stay below {} bytes, {} slices of at most {:.3f} µs are left out, {:.3f} ms in all",
                  grouped(job.max_bytes), grouped(slices.size() - most),
                  static_cast<double>(*shown.cut_weight) / 1e3, static_cast<double>(sum) / 1e6));
  return shown;
}

} // namespace etwrelog::export_profile
