// Which build of an EventSource a process runs. Each process writes the manifest of its own build, and two
// builds may say different things of one event: what an event says is decided by who wrote it.
#pragma once

#include "base/seed.hpp"
#include "etwrelog/schema.hpp"

#include <atomic>
#include <map>
#include <unordered_map>

namespace etwrelog::schema {

class ManifestBuilds {
public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  // The number of the build of that provider whose manifest is this text, and whether it is new. kNone, which
  // is always new, if there are too many texts.
  struct Build {
    std::uint32_t number;
    bool fresh;
  };
  [[nodiscard]] Build build_of(const Guid &provider, std::string_view text);
  // Of too many processes some are not noted: they are as those without a manifest.
  void add_writer(const Guid &provider, std::uint32_t process, std::uint32_t build);

  // The kinds of events of which builds say other things than the first one did, in the order of builds.
  // `group`: kNone for a new one. What the builds that are not named mean is the first one's; what one for
  // which there is no room means, null, nobody knows. Returns the group.
  std::uint32_t add_variant(std::uint32_t group, const Guid &provider, std::uint32_t build,
                            const Schema *schema);
  // What the builds of a group say, each once.
  [[nodiscard]] std::span<const Schema *const> schemas(std::uint32_t group) const {
    return group == kNone ? std::span<const Schema *const>() : groups_[group].schemas;
  }
  // Whether it is the last that was added to the group.
  [[nodiscard]] bool is_last(std::uint32_t group, std::uint32_t build) const {
    return group != kNone && !groups_[group].variants.empty() &&
           groups_[group].variants.back().build == build;
  }

  // What an event of that process means. `usual`: what the first build says; it is also taken, and noted
  // as a guess, where the process has no manifest in the trace, or several that say different things.
  [[nodiscard]] const Schema *schema_of(std::uint32_t group, const Schema *usual,
                                        std::uint32_t process) const noexcept;
  // The providers whose events were guessed.
  [[nodiscard]] std::vector<Guid> guessed() const;

  [[nodiscard]] std::size_t memory() const { return memory_; } // about

private:
  // A mark that readers set.
  struct Mark {
    Mark() = default;
    Mark(const Mark &other) noexcept : set(other.set.load(std::memory_order_relaxed)) {}
    Mark &operator=(const Mark &) = delete;
    std::atomic<bool> set = false;
  };
  struct Variant {
    std::uint32_t build;
    const Schema *schema; // null: not kept
  };
  struct Group {
    Guid provider;
    std::vector<Variant> variants; // in the order of builds
    std::vector<const Schema *> schemas;
    mutable Mark guessed;
  };
  struct Writer {
    Guid provider;
    std::uint32_t process;
    bool operator==(const Writer &) const = default;
  };
  struct WriterHash {
    std::size_t operator()(const Writer &writer) const noexcept {
      return std::hash<Guid>()(writer.provider) ^ base::SeededHash()(writer.process);
    }
  };

  [[nodiscard]] const Schema *variant_of(const Group &group, const Schema *usual,
                                         std::uint32_t build) const noexcept;

  std::map<std::pair<Guid, std::string>, std::uint32_t, std::less<>> texts_;
  std::uint32_t builds_ = 0;
  std::unordered_map<Writer, std::vector<std::uint32_t>, WriterHash> writers_; // their builds; none: too many
  std::vector<Group> groups_;
  std::size_t text_bytes_ = 0, memory_ = 0;
};

} // namespace etwrelog::schema
