#include "export_profile/fit.hpp"

#include "base/cut_text.hpp"
#include "base/errors.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etwrelog {
namespace {

constexpr std::string_view kNames[] = {"folded", "svg", "html", "speedscope", "firefox", "pprof", "chrome"};
static_assert(std::size(kNames) == static_cast<std::size_t>(ProfileFormat::count_));

struct Ending {
  std::string_view text;
  ProfileFormat format;
};
constexpr Ending kEndings[] = {
    {".folded", ProfileFormat::folded},
    {".collapsed", ProfileFormat::folded},
    {".svg", ProfileFormat::svg},
    {".html", ProfileFormat::html},
    {".htm", ProfileFormat::html},
    {".speedscope.json", ProfileFormat::speedscope},
    {".firefox.json.gz", ProfileFormat::firefox},
    {".pb.gz", ProfileFormat::pprof},
    {".pprof", ProfileFormat::pprof},
    {".trace.json", ProfileFormat::chrome},
};

Error unsupported(std::string what) {
  return base::unsupported(std::move(what));
}

Result<ProfileExportReport> finished(export_profile::Out &out, const ProfileExportOptions &options,
                                     ProfileExportReport report) {
  ETWRELOG_TRY_LET(bytes, out.finish());
  if (options.max_bytes != 0 && bytes > options.max_bytes)
    return export_profile::does_not_fit(options.max_bytes);
  report.bytes = bytes;
  return report;
}

} // namespace

std::string_view profile_format_name(ProfileFormat format) {
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<ProfileFormat> parse_profile_format(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<ProfileFormat>(found - std::begin(kNames));
}

std::optional<ProfileFormat> profile_format_of_path(std::string_view path) {
  const std::string lower = base::lower(path);
  for (const Ending &ending : kEndings)
    if (lower.size() > ending.text.size() && lower.ends_with(ending.text)) return ending.format;
  return std::nullopt;
}

Result<ProfileExportReport> write_profile(const Profile &profile, ProfileFormat format,
                                          const ProfileExportOptions &options, const WriteBytes &write) {
  using namespace export_profile;
  constexpr std::uint64_t kPageBytes = 20'000'000, kOtherBytes = 256'000'000;
  ProfileExportReport report;
  const std::uint64_t max_bytes = options.max_bytes != 0          ? options.max_bytes
                                  : format == ProfileFormat::html ? kPageBytes
                                                                  : kOtherBytes;
  const bool shows_times =
      format == ProfileFormat::html || format == ProfileFormat::firefox || format == ProfileFormat::chrome;
  if (shows_times && profile.samples.size() > 1 &&
      std::ranges::all_of(profile.samples, [](const ProfileSample &sample) { return sample.time == 0; }))
    report.notes.push_back(
        "the samples have no times, as after pprof or speedscope: all stand at the beginning");
  const Job job{profile, options, max_bytes, report};
  Out out(write, format == ProfileFormat::firefox || format == ProfileFormat::pprof);
  Result<void> done;
  switch (format) {
  case ProfileFormat::folded: done = write_folded(job, out); break;
  case ProfileFormat::svg: done = write_svg(job, out); break;
  case ProfileFormat::html: done = write_html(job, out); break;
  case ProfileFormat::speedscope: done = write_speedscope(job, out); break;
  case ProfileFormat::firefox: done = write_firefox(job, out); break;
  case ProfileFormat::pprof: done = write_pprof(job, out); break;
  case ProfileFormat::chrome: done = write_chrome(job, out); break;
  case ProfileFormat::count_: return unsupported("no such format of a profile");
  }
  if (!done) return std::move(done).error();
  return finished(out, options, std::move(report));
}

Result<ProfileExportReport> write_profile_diff(std::span<const Profile> before,
                                               std::span<const Profile> after, ProfileFormat format,
                                               const ProfileExportOptions &options, const WriteBytes &write) {
  using namespace export_profile;
  if (format != ProfileFormat::svg && format != ProfileFormat::folded)
    return unsupported(
        fmt::format("a comparison has no {} format, only svg and folded", profile_format_name(format)));
  if (before.empty() || after.empty()) return unsupported("a comparison needs a profile on both sides");
  ProfileExportReport report;
  Out out(write);
  const DiffTree diff = build_diff_tree(before, after);
  if (format == ProfileFormat::folded) {
    write_diff_folded(diff, unit_of(after[0]), out);
  } else {
    ETWRELOG_TRY(write_diff_svg(diff, unit_of(after[0]), options,
                                options.max_bytes != 0 ? options.max_bytes : 256'000'000, report, out));
  }
  return finished(out, options, std::move(report));
}

namespace export_profile {

std::string grouped(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;)
    text.insert(at -= 3, 1, ',');
  return text;
}

std::string file_name(const std::string &path) {
  return path.substr(path.find_last_of("/\\") + 1); // npos + 1 is 0
}

std::string title_of(const Profile &profile, const ProfileExportOptions &options) {
  if (!options.title.empty()) return clean(options.title);
  std::string name;
  for (const std::string &run : profile.runs)
    name.append(name.empty() ? "" : " + ").append(file_name(run));
  if (name.empty()) name = file_name(profile.trace);
  std::string what = profile.kind == ProfileKind::cpu     ? "Processor time"
                     : profile.kind == ProfileKind::wait  ? "Time waiting"
                     : profile.kind == ProfileKind::ready ? "Time ready to run"
                                                          : "Events";
  if (!profile.events.empty()) what = fmt::format("{}", fmt::join(profile.events, ", "));
  if (!profile.summed.empty()) what = fmt::format("{} of {}", profile.summed, what);
  std::string title = name.empty() ? what : fmt::format("{}: {}", what, name);
  if (const std::string stretch = stretch_text(profile); !stretch.empty()) title += ", " + stretch;
  return clean(title);
}

std::string stretch_text(const Profile &profile) {
  if (!profile.stretch) return {};
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
  return fmt::format("{:.9g} s to {:.9g} s", seconds(profile.stretch->from), seconds(profile.stretch->to));
}

std::string Unit::text(double of) const {
  return grouped(static_cast<std::uint64_t>(std::llround(of / static_cast<double>(weight))));
}

const char *kind_to_note(const Profile &profile) {
  const bool told = profile.kind == ProfileKind::wait || profile.counts_samples();
  return told ? nullptr : profile_kind_name(profile.kind);
}

Unit unit_of(const Profile &profile) {
  return profile.counts() ? Unit{clean(profile_unit(profile)), 1} : Unit{"µs", 1000};
}

std::string subtitle_of(const Profile &profile) {
  std::uint64_t total = 0;
  for (const ProfileSample &sample : profile.samples)
    total += sample.weight;
  std::string text = unit_of(profile).text_with_name(static_cast<double>(total));
  if (profile.counts_samples() && profile.interval_ns != 0)
    text += fmt::format(" every {:.4g} ms", static_cast<double>(profile.interval_ns) / 1e6);
  text += fmt::format(" · {:.4g} s", static_cast<double>(profile.length()) / 1e9);
  if (profile.stretch)
    text += fmt::format(" from {:.4g} s on", static_cast<double>(profile.stretch->from) / 1e9);
  if (profile.processors != 0) text += fmt::format(" · {} processors", profile.processors);
  if (profile.events_lost != 0) text += fmt::format(" · {} events lost", grouped(profile.events_lost));
  if (profile.buffers_lost != 0) text += fmt::format(" · {} buffers lost", grouped(profile.buffers_lost));
  return text;
}

} // namespace export_profile
} // namespace etwrelog
