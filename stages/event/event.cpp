#include "etwrelog/event.hpp"
#include "etwrelog/kernel_events.hpp"

#include <algorithm>
#include <optional>

namespace etwrelog {

using namespace format;

bool is_fill(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0xFF; });
}

std::int64_t first_event_time(Bytes events, std::int64_t timeless) {
  std::optional<std::int64_t> first;
  static_cast<void>(
      detail::walk_events(events, timeless, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        if (!first && event.has_time()) first = time;
      }));
  return first.value_or(timeless);
}

bool ExtendedItems::next(ExtendedItem &item) {
  if (!more_) return false;
  more_ = false;
  ok_ = false;
  if (rest_.size() < kItemHeaderSize) return false;
  const std::size_t size = load<std::uint16_t>(rest_.data());
  const std::size_t data_size = load<std::uint16_t>(rest_.data() + kItemDataSizeAt);
  if (size < kItemHeaderSize + data_size || size > rest_.size()) return false;
  item.type = static_cast<ItemType>(load<std::uint16_t>(rest_.data() + kItemTypeAt));
  item.data = rest_.subspan(kItemHeaderSize, data_size);
  more_ = (load<std::uint16_t>(rest_.data() + kItemLinkageAt) & 1) != 0;
  ok_ = true;
  rest_ = rest_.subspan(size);
  return true;
}

MessageParts EventView::message() const {
  MessageParts parts;
  const std::uint16_t options = load<std::uint16_t>(at_ + kMessageOptionsAt);
  std::size_t at = layout().header_size;
  auto take = [&](std::size_t bytes) -> const std::uint8_t * {
    if (bytes > size_ - at) {
      at = size_; // the rest is absent
      return nullptr;
    }
    const std::uint8_t *found = at_ + at;
    at += bytes;
    return found;
  };
  if ((options & kMessageSequence) != 0) (void)take(4);
  if ((options & kMessageComponentId) != 0) {
    if (const std::uint8_t *p = take(4)) parts.component = load<std::uint32_t>(p);
  } else if ((options & kMessageGuid) != 0) {
    if (const std::uint8_t *p = take(16)) parts.guid = load_guid(p);
  }
  if ((options & (kMessageTime | kMessageTimePerf)) != 0) {
    if (const std::uint8_t *p = take(8); p && (options & kMessageTime) != 0) {
      parts.time = load<std::int64_t>(p);
      parts.has_time = true;
    }
  }
  if ((options & kMessageSystemInfo) != 0) {
    if (const std::uint8_t *p = take(8)) {
      parts.thread_id = load<std::uint32_t>(p);
      parts.process_id = load<std::uint32_t>(p + 4);
    }
  }
  parts.payload_at = at;
  return parts;
}

bool is_later_stack(const EventView &event) {
  constexpr std::uint16_t kId = 18;
  return event.is_event() && event.id() == kId && event.provider() == kKernelEventTracingGuid;
}

std::optional<StackItem> later_stack(const EventView &event) {
  if (!is_later_stack(event)) return std::nullopt;
  std::optional<StackItem> stack;
  ExtendedItems items = event.items();
  for (ExtendedItem item{}; items.next(item);)
    if (const auto in_item = stack_in(item); in_item && !in_item->by_key) stack = in_item;
  if (!stack) { // the payload is as such an item
    const bool wide = event.pointer_size() == 8;
    stack = stack_in({wide ? ItemType::stack_trace64 : ItemType::stack_trace32, event.payload()});
  }
  if (!stack || stack->match == 0 || stack->data.size() < stack->pointer_size) return std::nullopt;
  return stack;
}

std::uint32_t EventView::cold_thread_id() const {
  return is_message() ? message().thread_id : kUnknownId;
}
std::uint32_t EventView::cold_process_id() const {
  return is_message() ? message().process_id : kUnknownId;
}
bool EventView::message_has_time() const {
  return is_message() && message().has_time;
}
std::int64_t EventView::message_time() const {
  return is_message() ? message().time : 0;
}

Bytes EventView::cold_payload() const {
  if (is_message()) return bytes().subspan(message().payload_at);
  ExtendedItems walk = items();
  ExtendedItem item;
  while (walk.next(item)) {
  }
  return walk.ok() ? walk.rest() : Bytes();
}

Guid EventView::cold_provider() const {
  if (has_hook()) return kernel::class_guid(hook());
  return is_message() ? message().guid : Guid{};
}

std::uint16_t EventView::cold_id() const {
  return is_message() ? load<std::uint16_t>(at_ + kMessageNumberAt) : std::uint16_t{0};
}

std::uint16_t EventView::cold_version() const {
  if (is_event()) return at_[kEventVersionAt];
  return is_classic() ? load<std::uint16_t>(at_ + kClassicVersionAt) : std::uint16_t{0};
}

Guid EventView::related_activity() const {
  if (!has_items()) return {};
  ExtendedItems walk = items();
  ExtendedItem item{};
  while (walk.next(item))
    if (item.type == ItemType::related_activity && item.data.size() >= 16) return load_guid(item.data.data());
  return {};
}

std::uint8_t EventView::level() const {
  if (is_event()) return at_[kEventLevelAt];
  return is_classic() ? at_[kClassicLevelAt] : std::uint8_t{0};
}

} // namespace etwrelog
