// The frame coding of the stack table: whatever goes in comes out, and equal means equal.
#include "stacks/stack_table.hpp"

#include <cstdlib>
#include <cstring>
#include <map>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace etwrelog::stacks;
  StackTable::Options options;
  options.shards = 2;
  if (size != 0 && (*data & 1) != 0)
    options.hash = [](Frames f, std::uint32_t) { return StackHash{f.size() % 3, 0}; };
  StackTable table(options);
  std::map<std::pair<std::vector<std::uint64_t>, std::uint32_t>, StackId> known;
  std::vector<std::uint64_t> stack, back;
  // The input as a small program: keep some of the outer frames, put new ones on top.
  for (std::size_t at = 1; at + 2 <= size;) {
    const std::size_t keep = data[at] % 64, add = data[at + 1] % 16, width = 1 + data[at + 1] / 32;
    at += 2;
    if (keep < stack.size()) stack.erase(stack.begin(), stack.end() - static_cast<std::ptrdiff_t>(keep));
    for (std::size_t i = 0; i < add && at < size; ++i) {
      std::uint64_t frame = stack.empty() ? 0 : stack.front();
      const std::size_t n = width < size - at ? width : size - at;
      std::memcpy(&frame, data + at, n);
      at += n;
      stack.insert(stack.begin(), frame);
    }
    const std::uint32_t scope = stack.size() % 2 == 0 ? 4 : 8;
    const StackId id = table.intern(stack, scope);
    const auto [entry, fresh] = known.try_emplace({stack, scope}, id);
    if (id == kNoStack || entry->second != id || table.size() != known.size() ||
        (fresh && id + 1 != known.size()))
      std::abort();
  }
  for (const auto &[key, id] : known)
    if (table.read(id, back) != key.second || back != key.first || table.find(key.first, key.second) != id)
      std::abort();
  return 0;
}
