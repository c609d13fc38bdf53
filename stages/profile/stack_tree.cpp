#include "profile/stack_tree.hpp"

namespace etwrelog::profile {

void StackTree::add(const FramedStacks &stacks, std::vector<std::uint32_t> &innermost) {
  std::span<const std::uint32_t> rest(stacks.frames);
  const auto take = [&rest](std::size_t count) {
    const auto frames = rest.first(count);
    rest = rest.subspan(count);
    return frames;
  };
  for (const FramedStacks::Stack &stack : stacks.stacks) {
    std::uint32_t node = stack.note != kNoIndex ? child(0, stack.note) : 0;
    const auto user = take(stack.user_frames);
    if (stack.user == users_.size()) users_.push_back(below(0, user));
    if (stack.user != kNoIndex) node = users_[stack.user];
    innermost.push_back(below(node, take(stack.other_frames)));
  }
}

} // namespace etwrelog::profile
