// A profile as a file that other people's viewers, or any browser, open. Experimental, like the profile
// itself. No state, any thread; `write` is called on the caller's, in order, and its error ends the call.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"
#include "etwrelog/profile.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace etwrelog {

enum class ProfileFormat : std::uint8_t {
  folded,     // one line a stack: what flamegraph.pl, inferno, speedscope read
  svg,        // a flame graph that needs nothing but a browser
  html,       // a page to look around in, without any other file
  speedscope, // www.speedscope.app
  firefox,    // profiler.firefox.com, gzip
  pprof,      // go tool pprof, gzip
  chrome,     // ui.perfetto.dev, chrome://tracing: what each thread did when
  count_,
};
[[nodiscard]] std::string_view profile_format_name(ProfileFormat format);               // "speedscope"
[[nodiscard]] std::optional<ProfileFormat> parse_profile_format(std::string_view name); // by that name
[[nodiscard]] std::optional<ProfileFormat>
profile_format_of_path(std::string_view path); // "x.pb.gz" is pprof

struct ProfileExportOptions {
  std::string title{};              // of pictures; empty: made from the profile
  std::string program = "etwrelog"; // who wrote the file
  // No file is larger: what is least is merged, and most of the size used, which takes several attempts. 0:
  // 20 MB for html, 256 MB for others, no limit for folded.
  std::uint64_t max_bytes = 0;
  bool icicle = false;  // svg: the root on top
  bool threads = false; // folded, svg: a thread's frames stand above the thread, not the process
};

struct ProfileExportReport {
  std::uint64_t bytes = 0;
  // What was left out or merged to keep the file small, in samples (waits and slices: nanoseconds); 0 if all
  // is there.
  std::uint64_t merged_weight = 0;
  std::vector<std::string> notes; // lines for people
};

// Called with the file's bytes in order, and with none while a size is searched for; a failure ends the
// export and is its result. What does not fit into `max_bytes` is an error (usage), maybe behind the last
// byte.
using WriteBytes = std::function<Result<void>(Bytes)>;

// The same profile gives the same bytes. What a format cannot hold is an error (unsupported) before anything
// is written.
[[nodiscard]] Result<ProfileExportReport> write_profile(const Profile &profile, ProfileFormat format,
                                                        const ProfileExportOptions &options,
                                                        const WriteBytes &write);

// A profile out of a file that write_profile() wrote as firefox, speedscope or pprof (its content tells), as
// far as the format holds it: for names that are given later, by name_native_code(), on another machine too.
// Frames without a name keep their module, its GUID and age, and their RVA. What has a name keeps it, in
// speedscope and pprof with the module in front. There is no accounting; pprof and speedscope have no times.
struct ReadProfile {
  Profile profile;
  ProfileFormat format = ProfileFormat::firefox; // what the file was
  std::string title;                             // for ProfileExportOptions
};
// `max_bytes`: of the file and of what it unpacks to; some ten times as much memory is needed. Errors:
// corrupt; unsupported for files of other programs and versions; limit.
[[nodiscard]] Result<ReadProfile> read_profile(Bytes file, std::uint64_t max_bytes = std::uint64_t{1} << 30);

// Two sets of profiles in one picture. Counts are brought to the same total; `svg` has the widths of `after`
// and the colours of the change, and a part of its own for what vanished; `folded` has two counts a line,
// before and after.
[[nodiscard]] Result<ProfileExportReport>
write_profile_diff(std::span<const Profile> before, std::span<const Profile> after, ProfileFormat format,
                   const ProfileExportOptions &options, const WriteBytes &write);

} // namespace etwrelog
