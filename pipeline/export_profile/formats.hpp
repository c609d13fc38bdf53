// One function a format. Each writes the whole file to `out` and notes what it had to merge.
#pragma once

#include "export_profile/out.hpp"
#include "export_profile/tree.hpp"

#include <span>

namespace etwrelog::export_profile {

struct Job {
  const Profile &profile;
  const ProfileExportOptions &options;
  std::uint64_t max_bytes;
  ProfileExportReport &report;
};

Result<void> write_folded(const Job &job, Out &out);
Result<void> write_svg(const Job &job, Out &out);
Result<void> write_html(const Job &job, Out &out);
Result<void> write_speedscope(const Job &job, Out &out);
Result<void> write_firefox(const Job &job, Out &out);
Result<void> write_pprof(const Job &job, Out &out);
Result<void> write_chrome(const Job &job, Out &out);

// What people read weights in.
struct Unit {
  std::string name;                                // profile_unit(), but "µs" for nanoseconds
  std::uint64_t weight;                            // of one
  [[nodiscard]] std::string text(double of) const; // "1,234"
  [[nodiscard]] std::string text_with_name(double of) const { return text(of).append(" ").append(name); }
};
[[nodiscard]] Unit unit_of(const Profile &profile);
// Of a profile whose kind its weights do not tell: numbers are of samples, and times of waits, unless it is
// said. Null otherwise.
[[nodiscard]] const char *kind_to_note(const Profile &profile);

// Two profiles over one tree. `total` and `self` of a node are those of `after`.
struct DiffTree {
  CallTree tree;
  std::vector<double> before; // totals, brought to the total of `after`
  std::vector<double> before_self;
  std::vector<std::uint64_t> before_counts; // self, as counted
};
[[nodiscard]] DiffTree build_diff_tree(std::span<const Profile> before, std::span<const Profile> after);
void write_diff_folded(const DiffTree &diff, const Unit &unit, Out &out);
Result<void> write_diff_svg(const DiffTree &diff, const Unit &unit, const ProfileExportOptions &options,
                            std::uint64_t max_bytes, ProfileExportReport &report, Out &out);

[[nodiscard]] std::string title_of(const Profile &profile, const ProfileExportOptions &options);
[[nodiscard]] std::string file_name(const std::string &path);   // its last part
[[nodiscard]] std::string stretch_text(const Profile &profile); // "0.5 s to 1.25 s"; empty for all of it
// "12,345 samples every 1 ms · 3.2 s · 4 processors"; with what was lost.
[[nodiscard]] std::string subtitle_of(const Profile &profile);
[[nodiscard]] std::string grouped(std::uint64_t count); // "1,234,567"

} // namespace etwrelog::export_profile
