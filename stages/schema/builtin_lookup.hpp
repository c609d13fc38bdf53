// The built-in schemas by what is asked for.
#pragma once

#include "schema/entry.hpp"

#include <unordered_map>

namespace etwrelog::schema {

// What tells kinds of events apart: a provider or class, and numbers.
struct Key {
  Guid guid;
  std::uint64_t rest = 0; // id, version, opcode

  bool operator==(const Key &) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key &key) const noexcept {
    return std::hash<Guid>()(key.guid) ^ static_cast<std::size_t>((key.rest + 1) * 0x9E37'79B9'7F4A'7C15ull);
  }
};
inline Key key_of(const Guid &guid, unsigned id, unsigned version, unsigned opcode) {
  return {guid, std::uint64_t{id} << 32 | std::uint64_t{version} << 8 | opcode};
}

class BuiltinLookup {
public:
  BuiltinLookup() {
    for (const BuiltinEntry &row : builtin_entries()) {
      const Schema &s = row.entry->schema;
      const Key key = key_of(s.provider, s.classic ? 0u : s.id, 0, s.classic ? s.opcode : 0u);
      std::uint16_t &group = (s.classic ? classes_ : events_)[key];
      if (group == 0) {
        groups_.emplace_back();
        group = static_cast<std::uint16_t>(groups_.size());
      }
      if (const auto hook = hook_of(s)) hooks_[*hook] = group;
      groups_[group - 1u].push_back({s.version, row.last_version, &s});
    }
  }

  // Null: nothing is known of that version.
  [[nodiscard]] const Schema *of_hook(std::uint16_t hook, std::uint16_t version) const {
    return in_group(hooks_[hook], version);
  }
  [[nodiscard]] const Schema *of_event(const Guid &provider, unsigned id, std::uint16_t version) const {
    return in(events_, key_of(provider, id, 0, 0), version);
  }
  [[nodiscard]] const Schema *of_class(const Guid &guid, unsigned opcode, std::uint16_t version) const {
    return in(classes_, key_of(guid, 0, 0, opcode), version);
  }

private:
  struct Row {
    std::uint16_t first, last; // versions
    const Schema *schema;
  };
  using Groups = std::unordered_map<Key, std::uint16_t, KeyHash>; // index + 1 into groups_

  [[nodiscard]] const Schema *in_group(std::uint16_t group, std::uint16_t version) const {
    if (group == 0) return nullptr;
    for (const Row &row : groups_[group - 1u])
      if (version >= row.first && version <= row.last) return row.schema;
    return nullptr;
  }
  [[nodiscard]] const Schema *in(const Groups &groups, const Key &key, std::uint16_t version) const {
    const auto found = groups.find(key);
    return found == groups.end() ? nullptr : in_group(found->second, version);
  }

  std::vector<std::vector<Row>> groups_;
  std::vector<std::uint16_t> hooks_ = std::vector<std::uint16_t>(65'536);
  Groups classes_, events_; // by class and opcode; by provider and id
};

[[nodiscard]] inline const BuiltinLookup &builtin_lookup() {
  static const BuiltinLookup lookup;
  return lookup;
}

} // namespace etwrelog::schema
