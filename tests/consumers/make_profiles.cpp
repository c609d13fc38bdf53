// Writes a made-up profile in every format into a folder, and beside them what is in it, for
// tests/consumers/run.
#include "etwrelog/profile_export.hpp"
#include "tests/support/synthetic_profile.hpp"

#include <cstdio>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

namespace {

using namespace etwrelog;

int save(const std::string &path, const Profile &profile, ProfileFormat format,
         const ProfileExportOptions &options = {}) {
  std::ofstream file(path, std::ios::binary);
  const auto done = write_profile(profile, format, options, [&](Bytes bytes) {
    file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return Result<void>();
  });
  if (done && file.flush()) return 0;
  std::fprintf(stderr, "%s: %s\n", path.c_str(), done ? "cannot write" : done.error().message().c_str());
  return 1;
}

// Counted from the samples, not from the tree that exports are made of.
nlohmann::json facts(const Profile &profile, std::int64_t from, std::int64_t to, std::uint32_t process) {
  std::map<std::string, std::uint64_t> self, total;
  std::uint64_t all = 0;
  for (const ProfileSample &s : profile.samples) {
    if (s.time < from || s.time > to || (process != kNoIndex && profile.threads[s.thread].process != process))
      continue;
    all += s.weight;
    std::map<std::string, bool> seen;
    for (std::uint32_t at = s.node; at != 0; at = profile.nodes[at].parent) {
      const std::string name = frame_text(profile, profile.frames[profile.nodes[at].frame]);
      if (at == s.node) self[name] += s.weight;
      if (!std::exchange(seen[name], true)) total[name] += s.weight;
    }
  }
  return {{"sum", all}, {"self", self}, {"total", total}, {"from", from}, {"to", to}};
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_profiles FOLDER\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  const Profile profile = test_support::synthetic_profile({.slices = true});
  Profile bytes = profile; // events that weigh what they say
  bytes.kind = ProfileKind::events;
  bytes.interval_ns = 0;
  bytes.events = {"FileIO/Read"};
  bytes.summed = "IoSize";
  for (ProfileSample &sample : bytes.samples)
    sample.weight = 4096;
  const Profile hostile = test_support::synthetic_profile({.slices = true, .hostile_names = true});
  int failed = 0;
  for (const auto &[name, format] :
       {std::pair("x.folded", ProfileFormat::folded), std::pair("x.svg", ProfileFormat::svg),
        std::pair("x.html", ProfileFormat::html), std::pair("x.speedscope.json", ProfileFormat::speedscope),
        std::pair("x.firefox.json.gz", ProfileFormat::firefox), std::pair("x.pb.gz", ProfileFormat::pprof),
        std::pair("x.trace.json", ProfileFormat::chrome)}) {
    failed |= save(folder + name, profile, format);
    failed |= save(folder + "hostile-" + name, hostile, format);
    if (format != ProfileFormat::chrome) failed |= save(folder + "bytes-" + name, bytes, format);
  }
  failed |= save(folder + "icicle.svg", profile, ProfileFormat::svg, {.icicle = true});
  std::ofstream(folder + "facts.json") << nlohmann::json{
      {"all", facts(profile, 0, profile.duration, kNoIndex)},
      {"part", facts(profile, 1'000'000'000, 2'500'000'000, kNoIndex)},
      {"game", facts(profile, 0, profile.duration, 0)},
      {"game_part", facts(profile, 1'000'000'000, 2'500'000'000, 0)},
  };
  return failed;
}
