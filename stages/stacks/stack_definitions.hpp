// Which definition answers which reference. A reference precedes its definition; the definition answers all
// references to its key since the key's previous definition, in the order of time over all processors. A key
// is an address and is used again for other stacks, so it means nothing without a time.
#pragma once

#include "stacks/stack_table.hpp"

#include <vector>

namespace etwrelog::stacks {

// A moment in a trace: time, and where times are equal the place in the file, which is the order of one
// processor.
struct Place {
  std::int64_t time = 0;
  std::uint64_t order = 0;
  auto operator<=>(const Place &) const = default;
};

struct KeyDefinition {
  std::uint64_t key = 0;
  bool kernel = false; // by the outermost frame: a kernel and a user key of the same value are two keys
  Place place;
  StackId stack = kNoStack; // in the table that the frames were interned in; kNoStack: cannot be stored
  bool needed = false;      // by a reference that will not be rewritten: the definition has to stay
};

class StackDefinitions {
public:
  void add(const KeyDefinition &definition) { definitions_.push_back(definition); } // in any order
  // When all are added.
  void sort();

  // Null when no definition follows.
  [[nodiscard]] const KeyDefinition *resolve(std::uint64_t key, bool kernel, Place reference) const;
  // For a reference that does not tell its part: the first definition of either kind.
  [[nodiscard]] const KeyDefinition *resolve_any(std::uint64_t key, Place reference) const;
  [[nodiscard]] KeyDefinition *resolve_any(std::uint64_t key, Place reference);
  // The definition event that stands at this place.
  [[nodiscard]] const KeyDefinition *at(std::uint64_t key, bool kernel, Place place) const;

  [[nodiscard]] std::size_t size() const { return definitions_.size(); }
  [[nodiscard]] bool empty() const { return definitions_.empty(); }
  [[nodiscard]] std::size_t memory() const { return definitions_.capacity() * sizeof(KeyDefinition); }
  [[nodiscard]] std::size_t keys() const;

private:
  std::vector<KeyDefinition> definitions_; // by key, kind and place once sorted
};

} // namespace etwrelog::stacks
