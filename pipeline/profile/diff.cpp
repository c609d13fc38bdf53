#include "etwrelog/profile_diff.hpp"

#include "base/errors.hpp"
#include "filter/targets.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

namespace etwrelog {
namespace {

constexpr double kSure = 1.96; // standard errors of a 95 % interval
constexpr int kResamples = 1000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A function in one set of traces.
struct Side {
  std::vector<double> part, whole; // by trace
  double samples = 0;              // of the wholes: how sure a share is
  [[nodiscard]] double share() const {
    double parts = 0, wholes = 0;
    for (std::size_t i = 0; i < part.size(); ++i)
      parts += part[i], wholes += whole[i];
    return wholes > 0 ? parts / wholes : 0;
  }
};

// The same numbers everywhere and every time (SplitMix64).
class Numbers {
public:
  std::size_t below(std::size_t count) {
    std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15ull;
    z = (z ^ z >> 30) * 0xBF58'476D'1CE4'E5B9ull;
    z = (z ^ z >> 27) * 0x94D0'49BB'1331'11EBull;
    return static_cast<std::size_t>((z ^ z >> 31) % count);
  }

private:
  std::uint64_t state_ = 1;
};

double resampled(const Side &side, Numbers &numbers) {
  double parts = 0, wholes = 0;
  for (std::size_t i = 0; i < side.part.size(); ++i) {
    const std::size_t at = numbers.below(side.part.size());
    parts += side.part[at];
    wholes += side.whole[at];
  }
  return wholes > 0 ? parts / wholes : 0;
}

double relative_change(double before, double after) {
  if (before > 0) return (after - before) / before;
  return after > 0 ? kInfinity : 0;
}

struct Interval {
  double low = 0, high = 0, relative_low = 0, relative_high = 0;
};

Interval bootstrap(const Side &before, const Side &after) {
  std::vector<double> change, relative;
  Numbers numbers;
  for (int i = 0; i < kResamples; ++i) {
    const double a = resampled(before, numbers), b = resampled(after, numbers);
    change.push_back(b - a);
    relative.push_back(relative_change(a, b));
  }
  std::ranges::sort(change);
  std::ranges::sort(relative);
  const auto at = [](const std::vector<double> &values, double quantile) {
    return values[static_cast<std::size_t>(quantile * (kResamples - 1))];
  };
  return {at(change, 0.025), at(change, 0.975), at(relative, 0.025), at(relative, 0.975)};
}

// Counts of samples: normal intervals, of the ratio on the scale of its logarithm.
Interval counted(double p, double n, double q, double m, double variance_p, double variance_q) {
  const double error = kSure * std::sqrt(variance_p / n + variance_q / m);
  Interval interval{q - p - error, q - p + error, 0, 0};
  const double relative = relative_change(p, q);
  if (p <= 0 || q <= 0) {
    interval.relative_low = p > 0 ? -1 : error < q ? kInfinity : 0;
    interval.relative_high = p > 0 ? (error < p ? -1 : kInfinity) : kInfinity;
    return interval;
  }
  const double log_error = kSure * std::sqrt(variance_p / (p * p * n) + variance_q / (q * q * m));
  interval.relative_low = (1 + relative) * std::exp(-log_error) - 1;
  interval.relative_high = (1 + relative) * std::exp(log_error) - 1;
  return interval;
}

ProfileVerdict verdict_of(double before, double after, const Interval &interval) {
  if (interval.low <= 0 && interval.high >= 0) return ProfileVerdict::same;
  if (before == 0) return ProfileVerdict::appeared;
  if (after == 0) return ProfileVerdict::vanished;
  return after > before ? ProfileVerdict::more : ProfileVerdict::less;
}

ProfileChange change_of(std::string name, double before, double after, const Interval &interval) {
  return {std::move(name),
          before,
          after,
          interval.low,
          interval.high,
          interval.relative_low,
          interval.relative_high,
          verdict_of(before, after, interval)};
}

ProfileChange function_change(const std::string &name, const Side &before, const Side &after) {
  const double p = before.share(), q = after.share();
  if (before.part.size() > 1 && after.part.size() > 1) return change_of(name, p, q, bootstrap(before, after));
  const double n = before.samples, m = after.samples;
  if (n <= 0 || m <= 0) return change_of(name, p, q, {});
  return change_of(name, p, q, counted(p, n, q, m, p * (1 - p), q * (1 - q)));
}

// How many samples of one weight would tell as much.
double sample_count(const Profile &profile) {
  if (profile.counts() && profile.summed.empty()) return static_cast<double>(total_weight(profile));
  double sum = 0, squares = 0;
  for (const ProfileSample &sample : profile.samples) {
    const auto weight = static_cast<double>(sample.weight);
    sum += weight, squares += weight * weight;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

// Seconds a trace; samples stand for their interval. Events: how many, or what they add up to.
ProfileChange total_change(std::span<const Profile> before, std::span<const Profile> after) {
  const auto side = [](std::span<const Profile> profiles) {
    Side result;
    for (const Profile &profile : profiles) {
      const std::uint64_t unit = profile.weight_ns() == 0 ? kUsualIntervalNs : profile.weight_ns();
      const bool amounts = profile.kind == ProfileKind::events && profile.counts();
      const double seconds = amounts ? 1 : static_cast<double>(unit) * 1e-9;
      result.part.push_back(static_cast<double>(total_weight(profile)) * seconds);
      result.whole.push_back(1);
      result.samples += sample_count(profile);
    }
    return result;
  };
  const Side a = side(before), b = side(after);
  const double n = a.samples, m = b.samples;
  if (a.part.size() > 1 && b.part.size() > 1)
    return change_of("total", a.share(), b.share(), bootstrap(a, b));
  // A count of samples: its variance is the count itself.
  const double p = a.share(), q = b.share();
  if (n <= 0 || m <= 0) return change_of("total", p, q, {});
  return change_of("total", p, q, counted(p, 1, q, 1, p * p / n, q * q / m));
}

} // namespace

const char *verdict_text(ProfileVerdict verdict) {
  switch (verdict) {
  case ProfileVerdict::more: return "more";
  case ProfileVerdict::less: return "less";
  case ProfileVerdict::appeared: return "appeared";
  case ProfileVerdict::vanished: return "vanished";
  default: return "same";
  }
}

double ProfileChange::relative() const {
  return relative_change(before, after);
}

ProfileDiff profile_diff(std::span<const Profile> before, std::span<const Profile> after) {
  std::map<std::string, std::pair<Side, Side>> functions;
  const auto gather = [&](std::span<const Profile> profiles, bool second) {
    for (std::size_t i = 0; i < profiles.size(); ++i)
      for (const ProfileRow &row : profile_rows(profiles[i], ProfileBy::function)) {
        auto &[a, b] = functions[row.name];
        a.part.resize(before.size());
        b.part.resize(after.size());
        (second ? b : a).part[i] = static_cast<double>(row.total);
      }
  };
  gather(before, false);
  gather(after, true);
  const auto wholes_of = [](std::span<const Profile> profiles) {
    Side all;
    for (const Profile &profile : profiles) {
      all.whole.push_back(static_cast<double>(total_weight(profile)));
      all.samples += sample_count(profile);
    }
    return all;
  };
  const Side all_before = wholes_of(before), all_after = wholes_of(after);
  ProfileDiff diff;
  diff.total = total_change(before, after);
  for (auto &[name, sides] : functions) {
    for (const auto &[side, all] :
         {std::pair(&sides.first, &all_before), std::pair(&sides.second, &all_after)})
      side->whole = all->whole, side->samples = all->samples;
    diff.changes.push_back(function_change(name, sides.first, sides.second));
  }
  std::ranges::stable_sort(diff.changes, std::greater<>(), [](const ProfileChange &change) {
    return std::abs(change.after - change.before);
  });
  return diff;
}

Result<ProfileCondition> parse_condition(std::string_view text) {
  const auto trim = [](std::string_view word) {
    while (!word.empty() && word.front() == ' ')
      word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ')
      word.remove_suffix(1);
    return word;
  };
  const Error error = base::ErrorBuilder(ErrorKind::usage, "\"" + std::string(text) + "\" is no condition")
                          .expected("one like \"total > +5%\" or \"game.exe!Render > +10%\"");
  // The last comparison: names hold < and > where they are templates.
  const std::size_t sign = text.find_last_of("<>");
  if (sign == text.npos) return error;
  ProfileCondition condition;
  condition.name = trim(text.substr(0, sign));
  condition.above = text[sign] == '>';
  std::string_view number = trim(text.substr(sign + 1));
  if (!number.empty() && number.front() == '+') number.remove_prefix(1);
  if (number.empty() || number.back() != '%' || condition.name.empty()) return error;
  number.remove_suffix(1);
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), condition.limit);
  if (code != std::errc() || end != number.data() + number.size() || !std::isfinite(condition.limit))
    return error;
  condition.limit /= 100;
  return condition;
}

bool names_any(const ProfileDiff &diff, const ProfileCondition &condition) {
  return condition.name == "total" || std::ranges::any_of(diff.changes, [&](const ProfileChange &change) {
           return filter::matches_wildcard(condition.name, change.name);
         });
}

std::vector<ProfileChange> matching_changes(const ProfileDiff &diff, const ProfileCondition &condition) {
  const auto holds = [&](const ProfileChange &change) {
    if (change.verdict == ProfileVerdict::same) return false;
    return condition.above ? change.relative_low > condition.limit : change.relative_high < condition.limit;
  };
  std::vector<ProfileChange> found;
  if (condition.name == "total") {
    if (holds(diff.total)) found.push_back(diff.total);
    return found;
  }
  for (const ProfileChange &change : diff.changes)
    if (filter::matches_wildcard(condition.name, change.name) && holds(change)) found.push_back(change);
  return found;
}

} // namespace etwrelog
