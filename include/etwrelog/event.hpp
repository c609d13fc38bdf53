// Events as views into a decoded buffer: no copy, no allocation. A view is valid as long as its buffer is,
// and may be read on any thread. Sizes and offsets are in bytes. What a header type has not is zero or
// kUnknownId; a malformed event ends the walk that meets it (WalkEnd), so that a view holds its whole header.
// What stands behind the header is untrusted: items and message parts are bounded by the event as they are
// read.
#pragma once

#include "etwrelog/format.hpp"

namespace etwrelog {

inline constexpr std::uint32_t kUnknownId = 0xFFFF'FFFF; // of a thread or process, as Windows writes it

// One extended data item of an EVENT_HEADER event.
struct ExtendedItem {
  format::ItemType type;
  Bytes data;
};

// A stack that stands in an item: its frames, or the key of a definition elsewhere in the trace.
struct StackItem {
  bool by_key = false;
  unsigned pointer_size = 8; // 4 or 8
  std::uint64_t match = 0;   // MatchId; not 0: under it the user's part of the stack is written later
  Bytes data;                // addresses, or the key

  [[nodiscard]] std::uint64_t key() const { return load_pointer(data.data(), pointer_size); } // if by_key
};

// nullopt of items without a stack, and of such that are too short for one.
[[nodiscard]] inline std::optional<StackItem> stack_in(const ExtendedItem &item) {
  using format::ItemType;
  StackItem stack;
  stack.by_key = item.type == ItemType::stack_key32 || item.type == ItemType::stack_key64;
  if (!stack.by_key && item.type != ItemType::stack_trace32 && item.type != ItemType::stack_trace64)
    return std::nullopt;
  stack.pointer_size = item.type == ItemType::stack_key32 || item.type == ItemType::stack_trace32 ? 4 : 8;
  const std::size_t data_at = stack.by_key ? format::kItemStackKeyAt : format::kItemStackFramesAt;
  if (item.data.size() < data_at + (stack.by_key ? stack.pointer_size : 0)) return std::nullopt;
  stack.match = load<std::uint64_t>(item.data.data());
  stack.data = item.data.subspan(data_at);
  return stack;
}

class EventView;
// The user's part of a stack whose event ended in the kernel: Windows writes it when the thread leaves that,
// as an event of Microsoft-Windows-Kernel-EventTracing with the MatchId of the item. nullopt of other events.
[[nodiscard]] std::optional<StackItem> later_stack(const EventView &event);
// By the header alone.
[[nodiscard]] bool is_later_stack(const EventView &event);

// Walks the packed items. A malformed item ends the walk and clears `ok()`.
class ExtendedItems {
public:
  ExtendedItems() = default;
  explicit ExtendedItems(Bytes items) : rest_(items), more_(true) {}

  [[nodiscard]] bool next(ExtendedItem &item); // false at the end or at a malformed item
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] Bytes rest() const { return rest_; } // after the last item: the user data

private:
  Bytes rest_;
  bool more_ = false;
  bool ok_ = true;
};

// The optional parts of a WPP message, which say of themselves where they are.
struct MessageParts {
  Guid guid;                   // zero when absent
  std::uint32_t component = 0; // when the component-id option is set
  std::uint32_t thread_id = kUnknownId, process_id = kUnknownId;
  std::int64_t time = 0;
  bool has_time = false;
  std::size_t payload_at = 0; // from the start of the event
};

class EventView {
public:
  EventView() = default;
  // `at` starts an event of `size` bytes whose header type is `type`, as split by for_each_event.
  EventView(const std::uint8_t *at, std::uint32_t size, format::HeaderType type)
      : at_(at), size_(size), type_(type) {}

  [[nodiscard]] Bytes bytes() const { return {at_, size_}; } // padding to 8 excluded
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] format::HeaderType type() const { return type_; }
  [[nodiscard]] const format::HeaderLayout &layout() const {
    return format::kHeaderLayouts[static_cast<std::size_t>(type_)];
  }
  [[nodiscard]] unsigned pointer_size() const { return layout().pointer_size; }

  // Kernel events: SYSTEM, COMPACT and PERFINFO headers carry a hook id.
  [[nodiscard]] bool has_hook() const {
    const auto t = static_cast<unsigned>(type_);
    return (t >= 1 && t <= 4) || t == 0x10 || t == 0x11;
  }
  [[nodiscard]] bool is_event() const {
    return type_ == format::HeaderType::event32 || type_ == format::HeaderType::event64;
  }
  [[nodiscard]] bool is_classic() const {
    return type_ == format::HeaderType::full32 || type_ == format::HeaderType::full64 ||
           type_ == format::HeaderType::instance32 || type_ == format::HeaderType::instance64;
  }
  [[nodiscard]] bool is_perfinfo() const {
    return type_ == format::HeaderType::perfinfo32 || type_ == format::HeaderType::perfinfo64;
  }
  [[nodiscard]] bool is_message() const { return type_ == format::HeaderType::message; }

  [[nodiscard]] std::uint16_t hook() const { return load<std::uint16_t>(at_ + format::kHookAt); }

  // Ids in the header; kUnknownId where the type has none (PERFINFO) or the value is not known.
  [[nodiscard]] bool has_ids() const { return layout().thread_at != format::kNone; }
  [[nodiscard]] std::uint32_t thread_id() const {
    return has_ids() ? load<std::uint32_t>(at_ + layout().thread_at) : cold_thread_id();
  }
  [[nodiscard]] std::uint32_t process_id() const {
    return has_ids() ? load<std::uint32_t>(at_ + layout().thread_at + 4) : cold_process_id();
  }

  // Raw time stamp in units of the session clock. A WPP message may have none: then it has the time of its
  // predecessor in the buffer, which for_each_event hands on.
  [[nodiscard]] bool has_time() const { return layout().time_at != format::kNone || message_has_time(); }
  [[nodiscard]] std::int64_t header_time() const {
    return layout().time_at != format::kNone ? load<std::int64_t>(at_ + layout().time_at) : message_time();
  }

  // The provider: of EVENT_HEADER its GUID, of classic events the class GUID, of kernel events the class GUID
  // of the hook's group (zero for a group that is not documented), of WPP messages their message GUID if any.
  [[nodiscard]] Guid provider() const {
    if (is_event()) return load_guid(at_ + format::kEventProviderAt);
    return is_classic() ? load_guid(at_ + format::kClassicGuidAt) : cold_provider();
  }
  // EVENT_HEADER Id, hook id, WPP message number; 0 for classic events.
  [[nodiscard]] std::uint16_t id() const {
    if (is_event()) return load<std::uint16_t>(at_ + format::kEventIdAt);
    return has_hook() ? hook() : cold_id();
  }
  [[nodiscard]] std::uint16_t version() const { return has_hook() ? at_[0] : cold_version(); }
  // Of kernel events the low byte of the hook.
  [[nodiscard]] std::uint8_t opcode() const {
    if (is_event()) return at_[format::kEventOpcodeAt];
    if (has_hook()) return static_cast<std::uint8_t>(hook());
    return is_classic() ? at_[format::kClassicOpcodeAt] : std::uint8_t{0};
  }
  [[nodiscard]] std::uint8_t
  level() const; // 0 where the type has none, as for channel, task, keyword, activity
  [[nodiscard]] std::uint8_t channel() const {
    return is_event() ? at_[format::kEventChannelAt] : std::uint8_t{0};
  }
  [[nodiscard]] std::uint16_t task() const {
    return is_event() ? load<std::uint16_t>(at_ + format::kEventTaskAt) : std::uint16_t{0};
  }
  [[nodiscard]] std::uint64_t keyword() const {
    return is_event() ? load<std::uint64_t>(at_ + format::kEventKeywordAt) : 0;
  }
  [[nodiscard]] Guid activity() const {
    return is_event() ? load_guid(at_ + format::kEventActivityAt) : Guid{};
  }
  [[nodiscard]] Guid related_activity() const; // which this one was started by; zero where none is named

  [[nodiscard]] bool has_items() const {
    return is_event() && (load<std::uint16_t>(at_ + format::kEventFlagsAt) & format::kEventFlagExtended) != 0;
  }
  [[nodiscard]] ExtendedItems items() const {
    return has_items() ? ExtendedItems(bytes().subspan(layout().header_size)) : ExtendedItems();
  }

  // PMC counters and the PEBS index between a PERFINFO header and its payload.
  [[nodiscard]] Bytes perfinfo_items() const {
    return bytes().subspan(layout().header_size, perfinfo_items_size());
  }

  // The event's own data after all headers and items; empty if these are malformed.
  [[nodiscard]] Bytes payload() const {
    if (is_perfinfo()) return bytes().subspan(layout().header_size + perfinfo_items_size());
    if (has_items() || is_message()) return cold_payload();
    return bytes().subspan(layout().header_size);
  }

  [[nodiscard]] MessageParts message() const; // needs is_message()

private:
  // Cut to what the event holds: a lying count yields an empty payload, never a read past the event.
  [[nodiscard]] std::size_t perfinfo_items_size() const {
    if (!is_perfinfo()) return 0;
    const std::uint8_t bits = at_[format::kPerfinfoItemsAt];
    const std::size_t items =
        (bits & format::kPerfinfoCounterMask) + ((bits & format::kPerfinfoPebsBit) != 0 ? 1u : 0u);
    const std::size_t room = size_ - layout().header_size;
    return items * 8 < room ? items * 8 : room;
  }
  [[nodiscard]] std::uint32_t cold_thread_id() const;
  [[nodiscard]] std::uint32_t cold_process_id() const;
  [[nodiscard]] bool message_has_time() const;
  [[nodiscard]] std::int64_t message_time() const;
  [[nodiscard]] Bytes cold_payload() const;
  [[nodiscard]] Guid cold_provider() const;
  [[nodiscard]] std::uint16_t cold_id() const;
  [[nodiscard]] std::uint16_t cold_version() const;

  const std::uint8_t *at_ = nullptr;
  std::uint32_t size_ = 0;
  format::HeaderType type_{};
};

// How a walk over a buffer's events ended.
struct WalkEnd {
  enum class Reason : std::uint8_t {
    complete,   // at the end of the valid bytes or at the fill (is_fill)
    bad_marker, // the dword at `at` starts no event; 0xFFFFFFFF where other bytes than the fill follow
    bad_size,   // Size is below the header's length
    overrun,    // the event runs past the valid bytes
  };
  Reason reason = Reason::complete;
  std::uint32_t at = 0;    // offset in `events` where the walk stopped
  std::uint32_t found = 0; // the marker or the Size at fault

  explicit operator bool() const { return reason == Reason::complete; }
};

// Whether bytes are what Windows fills a buffer with behind its last event: 0xFF up to the end.
[[nodiscard]] bool is_fill(Bytes bytes);

namespace detail {

// for_each_event, with the time of what comes before the first event that has one.
template <class Visit> WalkEnd walk_events(Bytes events, std::int64_t time, Visit &&visit) {
  const std::uint8_t *const base = events.data();
  const std::size_t end = events.size();
  std::size_t at = 0;
  auto stop = [&](WalkEnd::Reason reason, std::uint32_t found) {
    return WalkEnd{reason, static_cast<std::uint32_t>(at), found};
  };
  while (at + 8 <= end) {
    const std::uint32_t marker = load<std::uint32_t>(base + at);
    if (marker == format::kEndOfEvents && is_fill(events.subspan(at))) break;
    const std::uint8_t family = static_cast<std::uint8_t>(marker >> 24);
    std::uint8_t type = static_cast<std::uint8_t>(marker >> 16);
    if (family == format::kMarkerMessage)
      type = static_cast<std::uint8_t>(format::HeaderType::message);
    else if (family != format::kMarkerStructured)
      return stop(WalkEnd::Reason::bad_marker, marker);
    const format::HeaderLayout &layout = format::kHeaderLayouts[type];
    const std::uint32_t size = load<std::uint16_t>(base + at + layout.size_at);
    if (size < layout.header_size) return stop(WalkEnd::Reason::bad_size, size);
    if (size > end - at) return stop(WalkEnd::Reason::overrun, size);
    const EventView event(base + at, size, static_cast<format::HeaderType>(type));
    if (event.has_time()) time = event.header_time();
    visit(event, time, static_cast<std::uint32_t>(at));
    at += align8(size);
  }
  return stop(WalkEnd::Reason::complete, 0);
}

// Whether the first event, if it is one, has no place for a time in its header. Few messages and nothing else
// that Windows writes.
[[nodiscard]] inline bool begins_timeless(Bytes events) {
  if (events.size() < 8) return false;
  const std::uint32_t marker = load<std::uint32_t>(events.data());
  return marker >> 24 != format::kMarkerStructured ||
         format::kHeaderLayouts[marker >> 16 & 0xFF].time_at == format::kNone;
}

} // namespace detail

// The time of the first of a buffer's events that has one; `timeless` where none has.
[[nodiscard]] std::int64_t first_event_time(Bytes events, std::int64_t timeless);

// Calls visit(const EventView &, std::int64_t time, std::uint32_t offset) for each event of a buffer's
// decoded events (the bytes after the buffer header). `time` is the event's own or, where it has none (a WPP
// message may have none), its predecessor's; in front of the first with a time, that one's; in a buffer
// without any, `timeless`. Stops at the first damage; the events before it have been visited.
template <class Visit> WalkEnd for_each_event(Bytes events, Visit &&visit, std::int64_t timeless = 0) {
  const std::int64_t before = detail::begins_timeless(events) ? first_event_time(events, timeless) : timeless;
  return detail::walk_events(events, before, std::forward<Visit>(visit));
}

} // namespace etwrelog
