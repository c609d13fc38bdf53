#include "profile/who_ran.hpp"

#include <algorithm>
#include <iterator>

namespace etwrelog::profile {

void WhoRan::add(std::uint16_t processor, const Switch &to) {
  if (processors_.size() <= processor) processors_.resize(processor + std::size_t{1});
  processors_[processor].push_back(to);
}

void WhoRan::sort() {
  for (std::vector<Switch> &switches : processors_)
    std::ranges::stable_sort(switches, {}, &Switch::time);
}

std::uint32_t WhoRan::on(std::uint16_t processor, std::int64_t time) const {
  if (processor >= processors_.size() || processors_[processor].empty()) return kUnknownId;
  const std::vector<Switch> &switches = processors_[processor];
  const auto next = std::ranges::upper_bound(switches, time, {}, &Switch::time);
  if (next == switches.begin()) return next->old_thread;
  const std::uint32_t thread = std::prev(next)->new_thread;
  return next == switches.end() || next->old_thread == thread ? thread : kUnknownId;
}

} // namespace etwrelog::profile
