// Files of profiles back into profiles, one function a format. What they read is input like any other: a
// number out of place is an error, and nothing is taken for granted.
#pragma once

#include "etwrelog/profile_export.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>

namespace etwrelog::import_profile {

// May throw what nlohmann::json and base::whole_number throw at values that are not what they should be.
// `room`: room_for() the file.
[[nodiscard]] Result<ReadProfile> read_firefox(const nlohmann::json &file, std::uint64_t room);
[[nodiscard]] Result<ReadProfile> read_speedscope(const nlohmann::json &file, std::uint64_t room);
[[nodiscard]] Result<ReadProfile> read_pprof(Bytes file);

[[nodiscard]] Error broken(const std::string &what);

// "6434DC46..." of 32 hexadecimal digits and, behind them, the age; false where it is none.
[[nodiscard]] bool read_identity(std::string_view text, ProfileModule &module);
// What follows "0x"; false unless that is all.
[[nodiscard]] bool read_hex(std::string_view text, std::uint64_t &value);
[[nodiscard]] std::string last_part(const std::string &path); // behind the last \ or /

// Of what is timed instead of counted: samples of the processor, "ready", events; all else are waits.
inline void set_timed_kind(std::string_view name, Profile &profile) {
  profile.kind = ProfileKind::wait;
  for (const ProfileKind kind : {ProfileKind::cpu, ProfileKind::ready, ProfileKind::events})
    if (name == profile_kind_name(kind)) profile.kind = kind;
  profile.by_time = profile.kind == ProfileKind::cpu || profile.kind == ProfileKind::events;
}

// Of what is counted: events; all else are samples.
inline void set_counted_kind(std::string_view name, Profile &profile) {
  if (name == profile_kind_name(ProfileKind::events)) profile.kind = ProfileKind::events;
}

// A name as the formats write it that keep no more: "module!function", "[no stack]", "0x7ffe0300".
[[nodiscard]] ProfileFrame named_frame(std::string text);

// Bytes that what is read from a file may take. A file names a text or a place as often as it likes, and each
// time it costs what it costs: a stack of pprof's is a byte or two for each place, and a node of 80 here.
[[nodiscard]] inline std::uint64_t room_for(std::uint64_t file) {
  return (std::uint64_t{64} << 20) + 128 * file;
}

// Grows a profile: processes, threads and stacks that come again keep their numbers.
class Builder {
public:
  explicit Builder(std::uint64_t room) : room_(room) {}
  Profile profile;

  // Nothing more is added: the result is what too_large() says.
  [[nodiscard]] bool full() const { return taken_ > room_; }
  [[nodiscard]] static Error too_large();
  // Behind those that are there.
  void frame(ProfileFrame frame);
  void module(ProfileModule module);

  // "game.exe (1234)" and its id, or kNoIndex.
  std::uint32_t process(const std::string &text, std::uint32_t pid);
  // "Render (567)" and its id.
  std::uint32_t thread(std::uint32_t process, const std::string &text, std::uint32_t tid);
  // A call by the frame upon the stack.
  std::uint32_t node(std::uint32_t parent, std::uint32_t frame);

private:
  void take(std::size_t bytes) { taken_ += bytes + kOfEach; }

  static constexpr std::size_t kOfEach = 64; // of a map or vector, about
  std::uint64_t room_, taken_ = 0;
  std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> processes_;
  std::map<std::tuple<std::uint32_t, std::string, std::uint32_t>, std::uint32_t> threads_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> nodes_;
};

} // namespace etwrelog::import_profile
