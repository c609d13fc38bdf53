#include "api/time_order.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace etwrelog::pipeline {

using detail::EventRef;

TimeOrder::TimeOrder(std::span<const std::uint32_t> buffers) : streams_(buffers.size()) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    streams_[i].missing = buffers[i];
}

namespace {

// The first reference that is not before the end of a bound.
std::size_t end_of(const Block &block, const WindowBound &bound) {
  const std::span<const EventRef> refs = block.refs.all();
  const auto at = block.stream <= bound.stream
                      ? std::ranges::upper_bound(refs, bound.time, {}, &EventRef::time)
                      : std::ranges::lower_bound(refs, bound.time, {}, &EventRef::time);
  return static_cast<std::size_t>(at - refs.begin());
}

} // namespace

void TimeOrder::add(std::unique_ptr<Block> block) {
  Stream &stream = streams_[block->stream];
  --stream.missing;
  if (!block->has_events) return;
  // What can come behind this buffer reaches back into it at most, or begins after it.
  stream.safe = std::max(stream.safe, std::min(stream.newest, block->first));
  stream.newest = std::max(stream.newest, block->last);
  if (delivered_.takes(block->first, block->stream)) late_ += end_of(*block, delivered_);
  held_ += block->bytes();
  stream.blocks.push_back(std::move(block));
}

WindowBound TimeOrder::bound() const {
  WindowBound lowest{kLastTime, static_cast<std::uint32_t>(streams_.size())};
  for (std::uint32_t i = 0; i < streams_.size(); ++i)
    if (streams_[i].missing > 0) lowest = std::min(lowest, WindowBound{streams_[i].safe, i});
  return lowest;
}

std::uint32_t TimeOrder::awaited() const {
  return bound().stream;
}

std::uint64_t TimeOrder::bytes_kept_back() const {
  const WindowBound to = bound();
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < streams_.size(); ++i)
    for (const std::unique_ptr<Block> &block : streams_[i].blocks)
      if (!to.takes(block->last, i)) sum += block->bytes();
  return sum;
}

std::uint64_t TimeOrder::bytes_up_to(const WindowBound &to) const {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < streams_.size(); ++i)
    for (const std::unique_ptr<Block> &block : streams_[i].blocks)
      if (to.takes(block->first, i))
        sum += std::uint64_t{end_of(*block, to) - block->taken} * block->event_bytes;
  return sum;
}

// The end of a window that holds most of `most` bytes, found by halving the time. Late events are in it
// however many they are.
WindowBound TimeOrder::bound_within(const WindowBound &whole, std::uint64_t most) const {
  if (bytes_up_to(whole) <= most) return whole;
  const auto streams = static_cast<std::uint32_t>(streams_.size());
  WindowBound low = delivered_;                           // too little
  std::int64_t first = kLastTime, high = delivered_.time; // too much
  for (std::uint32_t i = 0; i < streams; ++i)
    for (const std::unique_ptr<Block> &block : streams_[i].blocks)
      if (whole.takes(block->first, i)) {
        first = std::min(first, block->first);
        high = std::max(high, std::min(block->last, whole.time));
      }
  std::uint64_t bytes = bytes_up_to(low);
  std::int64_t from = first > low.time ? first - 1 : low.time;
  while (bytes < most / 2) {
    const std::int64_t middle = std::midpoint(from, high);
    if (middle == from || middle == high) break;
    const std::uint64_t up_to = bytes_up_to({middle, streams});
    if (up_to <= most)
      from = middle, low = {middle, streams}, bytes = up_to;
    else
      high = middle;
  }
  return bytes != 0 ? low : std::min(whole, WindowBound{high, streams});
}

bool TimeOrder::take(Window &window, std::uint64_t most) {
  window.slices.clear();
  window.finished.clear();
  const WindowBound whole = std::max(bound(), delivered_);
  const WindowBound to = bound_within(whole, most);
  for (std::uint32_t i = 0; i < streams_.size(); ++i) {
    Stream &stream = streams_[i];
    std::size_t kept = 0;
    for (std::unique_ptr<Block> &block : stream.blocks) {
      if (to.takes(block->first, i)) {
        const std::size_t begin = block->taken;
        block->taken = end_of(*block, to);
        if (block->taken != begin) window.slices.push_back({block.get(), begin, block->taken});
      }
      if (to.takes(block->last, i)) {
        held_ -= block->bytes();
        window.finished.push_back(std::move(block));
      } else {
        std::swap(stream.blocks[kept++], block);
      }
    }
    stream.blocks.resize(kept);
  }
  delivered_ = std::max(delivered_, to);
  return to != whole;
}

void RefList::grow(std::size_t needed) {
  const std::size_t wanted = std::max({needed, capacity() + capacity() / 2, std::size_t{1024}});
  memory_.grow_keeping(wanted * sizeof(EventRef), size_ * sizeof(EventRef));
}

namespace {

constexpr unsigned kDigitBits = 11; // at most
constexpr unsigned kMaxDigits = 4;
constexpr std::size_t kFewRefs = 256; // below, counting digits costs more than comparing

using Ranges = std::span<const OrderScratch::Range>;
using Counts = std::array<std::array<std::uint32_t, std::size_t{1} << kDigitBits>, kMaxDigits>;

struct Digits {
  std::uint64_t lowest;
  unsigned bits, count; // of each digit; of them
  [[nodiscard]] std::size_t of(const EventRef &ref, unsigned digit) const {
    return ((static_cast<std::uint64_t>(ref.time) - lowest) >> (digit * bits)) &
           ((std::size_t{1} << bits) - 1);
  }
};

void scatter(std::span<const EventRef> from, std::uint32_t number, const Digits &digits, unsigned digit,
             std::uint32_t *starts, EventRef *to) {
  for (const EventRef &ref : from)
    to[starts[digits.of(ref, digit)]++] = {ref.time, ref.offset, number};
}

// Least digit first, each pass keeping the order of the one before: no comparison, and no matter how many
// streams there are. Ranges are in order of stream and position, which so decides between events at the same
// time.
void sort_by_digits(Ranges ranges, const Digits &digits, RefList &refs, RefList &other) {
  thread_local Counts counts; // 32 KiB
  for (unsigned digit = 0; digit < digits.count; ++digit)
    std::fill_n(counts[digit].begin(), std::size_t{1} << digits.bits, 0u);
  for (const OrderScratch::Range &range : ranges)
    for (const EventRef &ref : range.refs)
      for (unsigned digit = 0; digit < digits.count; ++digit)
        ++counts[digit][digits.of(ref, digit)];
  for (unsigned digit = 0; digit < digits.count; ++digit) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < std::size_t{1} << digits.bits; ++i)
      sum += std::exchange(counts[digit][i], sum);
  }
  for (const OrderScratch::Range &range : ranges)
    scatter(range.refs, range.number, digits, 0, counts[0].data(), refs.all().data());
  for (unsigned digit = 1; digit < digits.count; ++digit) {
    other.resize_for_overwrite(refs.size());
    for (const EventRef &ref : refs.all())
      other.all()[counts[digit][digits.of(ref, digit)]++] = ref;
    refs.swap(other);
  }
}

void copy_ranges(Ranges ranges, RefList &refs) {
  EventRef *to = refs.all().data();
  for (const OrderScratch::Range &range : ranges)
    for (const EventRef &ref : range.refs)
      *to++ = {ref.time, ref.offset, range.number};
}

} // namespace

void order_window(const Window &window, std::vector<detail::BufferView> &buffers, RefList &refs,
                  OrderScratch &scratch) {
  buffers.clear();
  scratch.ranges.clear();
  std::size_t count = 0;
  std::int64_t lowest = kLastTime, highest = kFirstTime;
  bool in_order = true;
  for (const Window::Slice &slice : window.slices) {
    const Block &block = *slice.block;
    const std::span<const EventRef> part = block.refs.all().subspan(slice.begin, slice.end - slice.begin);
    in_order = in_order && highest <= part.front().time;
    lowest = std::min(lowest, part.front().time);
    highest = std::max(highest, part.back().time);
    scratch.ranges.push_back({part, static_cast<std::uint32_t>(buffers.size())});
    buffers.push_back(block.view);
    count += part.size();
  }
  refs.resize_for_overwrite(count);
  Digits digits{};
  digits.lowest = static_cast<std::uint64_t>(lowest);
  const auto bits =
      static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(highest) - digits.lowest));
  digits.count = (bits + kDigitBits - 1) / kDigitBits;
  if (in_order) {
    copy_ranges(scratch.ranges, refs);
  } else if (count < kFewRefs || digits.count > kMaxDigits) {
    copy_ranges(scratch.ranges, refs);
    std::ranges::stable_sort(refs.all(), {}, &EventRef::time);
  } else {
    digits.bits = (bits + digits.count - 1) / digits.count;
    sort_by_digits(scratch.ranges, digits, refs, scratch.refs);
  }
}

} // namespace etwrelog::pipeline
