// A profile as text for people and as JSON.
#pragma once

#include "etwrelog/profile_report.hpp"

#include <nlohmann/json.hpp>

namespace etwrelog::cli {

// What is told of the whole profile, before a selection cuts it down.
struct ProfileOverview {
  std::uint64_t weight = 0;
  std::vector<ProfileRow> processes;
};
[[nodiscard]] ProfileOverview profile_overview(const Profile &profile);

struct ProfileText {
  ProfileBy by = ProfileBy::function;
  std::size_t top = 30;
  bool tree = false;
  double min_share = 0.01;
  ProfileOverview all;
  bool of_some = false; // processes or threads, which were asked for
  std::string chosen;   // the process that was chosen because it is the busiest
};

void print_profile(const Profile &profile, const ProfileText &text);
[[nodiscard]] nlohmann::json profile_json(const Profile &profile, const ProfileText &text);

} // namespace etwrelog::cli
