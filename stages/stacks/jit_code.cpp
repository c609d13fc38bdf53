#include "stacks/jit_code.hpp"

#include "etwrelog/clr_events.hpp"

#include <algorithm>
#include <tuple>

namespace etwrelog::stacks {

void JitCode::add(const EventView &event, std::int64_t time) {
  if (!event.is_event()) return;
  const Guid provider = event.provider();
  if (provider != format::kClrGuid && provider != format::kClrRundownGuid) return;
  const std::uint16_t id = event.id();
  if (clr::is_method_unload(provider, id)) ++unloads_;
  if (!clr::is_method_load(provider, id) && !clr::is_method_rundown(provider, id)) return;
  const Bytes payload = event.payload();
  if (payload.size() < clr::kMethodFixedSize) return;
  if ((load<std::uint32_t>(payload.data() + clr::kMethodFlagsAt) & clr::kMethodJitted) == 0) return;
  const auto start = load<std::uint64_t>(payload.data() + clr::kMethodStartAt);
  const auto size = load<std::uint32_t>(payload.data() + clr::kMethodSizeAt);
  if (start == 0 || size == 0 || start > ~std::uint64_t{size}) return;
  methods_.push_back({event.process_id(), start, start + size,
                      load<std::uint64_t>(payload.data() + clr::kMethodIdAt), time});
}

void JitCode::append(JitCode &&later) {
  methods_.insert(methods_.end(), later.methods_.begin(), later.methods_.end());
  unloads_ += later.unloads_;
  later.clear();
}

void JitCode::clear() {
  methods_.clear();
  ranges_.clear();
  unloads_ = reused_ = 0;
}

void JitCode::finish() {
  std::ranges::sort(methods_, {},
                    [](const Method &m) { return std::tuple(m.process_id, m.start, m.end, m.id, m.time); });
  std::uint64_t furthest = 0;
  for (std::size_t i = 1; i < methods_.size(); ++i) {
    const Method &before = methods_[i - 1], &method = methods_[i];
    if (before.process_id != method.process_id) {
      furthest = 0;
      continue;
    }
    furthest = std::max(furthest, before.end);
    if (method.start < furthest && method.id != before.id) ++reused_;
  }
  for (const Method &method : methods_)
    ranges_.emplace_back(method.start, method.end);
  methods_ = {};
  std::ranges::sort(ranges_);
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].first <= ranges_[last].second)
      ranges_[last].second = std::max(ranges_[last].second, ranges_[i].second);
    else
      ranges_[++last] = ranges_[i];
  }
  if (!ranges_.empty()) ranges_.resize(last + 1);
}

bool JitCode::contains(std::uint64_t address) const {
  auto after =
      std::ranges::upper_bound(ranges_, address, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
  return after != ranges_.begin() && address < std::prev(after)->second;
}

} // namespace etwrelog::stacks
