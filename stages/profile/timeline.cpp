#include "profile/timeline.hpp"

#include <algorithm>

namespace etwrelog::profile {

namespace {
constexpr std::uint8_t kStart = 1, kEnd = 2, kRundownStart = 3;
}

void Timeline::close(bool ends_tell_owner) {
  std::ranges::sort(rows_, {}, [](const Row &row) { return std::pair(row.id, row.at); });
  for (std::size_t i = 0; i < rows_.size();) {
    std::size_t end = i;
    while (end < rows_.size() && rows_[end].id == rows_[i].id)
      ++end;
    const auto first = static_cast<std::uint32_t>(spans_.size());
    close_id(std::span(rows_).subspan(i, end - i), ends_tell_owner);
    ranges_[rows_[i].id] = {first, static_cast<std::uint32_t>(spans_.size()) - first};
    i = end;
  }
  rows_.clear();
  rows_.shrink_to_fit();
}

void Timeline::close_id(std::span<const Row> rows, bool ends_tell_owner) {
  const std::size_t begin = spans_.size();
  const auto opens = [](const Row &row) { return row.opcode == kStart || row.opcode == kRundownStart; };
  bool opened = false;
  std::int64_t previous = kBeginning;
  for (const Row &row : rows) {
    if (!opens(row)) {
      const bool of_last =
          opened && (spans_.back().value == row.value || (!ends_tell_owner && spans_.back().end == kForever));
      if (of_last) { // only tells when: the id stays its owner's
        if (row.opcode == kEnd && spans_.back().end == kForever) spans_.back().end = row.at.time;
        continue;
      }
      // Its start was lost: it does not lie before its predecessor's end.
      if (opened) previous = spans_.back().end == kForever ? row.at.time : spans_.back().end + 1;
      Span span{previous, row.value};
      if (row.opcode == kEnd) span.end = row.at.time;
      spans_.push_back(span);
      previous = row.at.time == kForever ? kForever : row.at.time + 1;
      continue;
    }
    const bool first = !opened;
    opened = true;
    const bool any = spans_.size() > begin;
    if (row.opcode == kRundownStart && any && spans_.back().value == row.value) continue;
    Span span{row.at.time, row.value};
    if (row.opcode == kRundownStart && first && !any) span.from = kBeginning;
    if (row.opcode == kStart) span.start = row.at.time;
    spans_.push_back(span);
  }
}

std::uint32_t Timeline::find(std::uint32_t id, std::int64_t time, TimeRange &valid) const {
  const auto range = ranges_.find(id);
  if (range == ranges_.end()) return kNone;
  const auto begin = spans_.begin() + range->second.first, end = begin + range->second.count;
  const auto behind =
      std::upper_bound(begin, end, time, [](std::int64_t at, const Span &s) { return at < s.from; });
  if (behind != end) valid.to = std::min(valid.to, behind->from - 1);
  if (behind == begin) return kNone;
  valid.from = std::max(valid.from, std::prev(behind)->from);
  return static_cast<std::uint32_t>(behind - spans_.begin()) - 1;
}

std::uint32_t count_changes(std::span<const std::int64_t> changes, std::int64_t time, TimeRange &valid) {
  const auto behind = std::ranges::upper_bound(changes, time);
  if (behind != changes.end()) valid.to = std::min(valid.to, *behind - 1);
  if (behind != changes.begin()) valid.from = std::max(valid.from, *std::prev(behind));
  return static_cast<std::uint32_t>(behind - changes.begin());
}

} // namespace etwrelog::profile
