#include "schema/manifest_builds.hpp"

#include "base/sort_unique.hpp"

#include <algorithm>

namespace etwrelog::schema {
namespace {

constexpr std::size_t kMaxTexts = 64u << 20; // bytes of different manifests
constexpr std::size_t kMaxWriters = 200'000;
constexpr std::size_t kMaxOwnBuilds = 8; // of one process; ids are used again

} // namespace

ManifestBuilds::Build ManifestBuilds::build_of(const Guid &provider, std::string_view text) {
  std::pair<Guid, std::string> key(provider, text);
  if (const auto known = texts_.find(key); known != texts_.end()) return {known->second, false};
  if (text_bytes_ + text.size() > kMaxTexts) return {kNone, true};
  text_bytes_ += text.size();
  memory_ += text.size() + 128;
  texts_.emplace(std::move(key), builds_);
  return {builds_++, true};
}

void ManifestBuilds::add_writer(const Guid &provider, std::uint32_t process, std::uint32_t build) {
  const Writer writer{provider, process};
  if (writers_.size() >= kMaxWriters && !writers_.contains(writer)) return;
  const auto [at, fresh] = writers_.try_emplace(writer);
  std::vector<std::uint32_t> &own = at->second;
  if (fresh) memory_ += sizeof(Writer) + sizeof own + 64;
  if ((own.empty() && !fresh) || std::ranges::find(own, build) != own.end()) return;
  own.push_back(build);
  if (own.size() > kMaxOwnBuilds) own.clear();
}

std::uint32_t ManifestBuilds::add_variant(std::uint32_t group, const Guid &provider, std::uint32_t build,
                                          const Schema *schema) {
  if (group == kNone) {
    group = static_cast<std::uint32_t>(groups_.size());
    groups_.emplace_back().provider = provider;
    memory_ += sizeof(Group);
  }
  Group &mine = groups_[group];
  if (build != kNone) mine.variants.push_back({build, schema});
  if (schema != nullptr && std::ranges::find(mine.schemas, schema) == mine.schemas.end())
    mine.schemas.push_back(schema);
  memory_ += 2 * (sizeof(Variant) + sizeof schema);
  return group;
}

const Schema *ManifestBuilds::variant_of(const Group &group, const Schema *usual,
                                         std::uint32_t build) const noexcept {
  const auto at = std::ranges::lower_bound(group.variants, build, {}, &Variant::build);
  return at != group.variants.end() && at->build == build ? at->schema : usual;
}

const Schema *ManifestBuilds::schema_of(std::uint32_t group, const Schema *usual,
                                        std::uint32_t process) const noexcept {
  const Group &mine = groups_[group];
  const Schema *found = nullptr;
  if (const auto writer = writers_.find({mine.provider, process}); writer != writers_.end())
    for (const std::uint32_t build : writer->second) {
      const Schema *const says = variant_of(mine, usual, build);
      const bool agrees = says != nullptr && (found == nullptr || found == says);
      found = agrees ? says : nullptr;
      if (!agrees) break;
    }
  if (found != nullptr) return found;
  if (!mine.guessed.set.load(std::memory_order_relaxed))
    mine.guessed.set.store(true, std::memory_order_relaxed);
  return usual;
}

std::vector<Guid> ManifestBuilds::guessed() const {
  std::vector<Guid> providers;
  for (const Group &group : groups_)
    if (group.guessed.set.load(std::memory_order_relaxed)) providers.push_back(group.provider);
  base::sort_unique(providers);
  return providers;
}

} // namespace etwrelog::schema
