#include "stacks/stack_definitions.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace etwrelog::stacks {

namespace {

auto rank(const KeyDefinition &d) {
  return std::tuple(d.key, d.kernel, d.place);
}

} // namespace

void StackDefinitions::sort() {
  std::ranges::sort(definitions_, {}, rank);
}

const KeyDefinition *StackDefinitions::resolve(std::uint64_t key, bool kernel, Place reference) const {
  const auto wanted = std::tuple(key, kernel, reference);
  const auto found = std::ranges::lower_bound(definitions_, wanted, {}, rank);
  if (found == definitions_.end() || found->key != key || found->kernel != kernel) return nullptr;
  return &*found;
}

const KeyDefinition *StackDefinitions::resolve_any(std::uint64_t key, Place reference) const {
  const KeyDefinition *user = resolve(key, false, reference), *kernel = resolve(key, true, reference);
  return user == nullptr || (kernel != nullptr && kernel->place < user->place) ? kernel : user;
}

KeyDefinition *StackDefinitions::resolve_any(std::uint64_t key, Place reference) {
  return const_cast<KeyDefinition *>(std::as_const(*this).resolve_any(key, reference));
}

const KeyDefinition *StackDefinitions::at(std::uint64_t key, bool kernel, Place place) const {
  const KeyDefinition *found = resolve(key, kernel, place);
  return found != nullptr && found->place == place ? found : nullptr;
}

std::size_t StackDefinitions::keys() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < definitions_.size(); ++i)
    count += i == 0 || definitions_[i].key != definitions_[i - 1].key;
  return count;
}

} // namespace etwrelog::stacks
