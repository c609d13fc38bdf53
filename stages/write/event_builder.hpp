// Builds events byte by byte, for the generator, for tests and for the few events that the tool writes
// itself. Offsets come from format.hpp and the layouts of kernel payloads; nothing is known here but the
// order of calls.
//
//   EventBuilder e(events);
//   e.system(0x0501, 3, 8, creator_thread, creator_process, time);
//   e.value(process).value(thread).rest();       // by the layout of hook and version
//   e.finish();                                  // sets Size, pads to 8
//
// One event at a time. Arguments are the caller's own, not a file's: they are asserted, not checked.
#pragma once

#include "etwrelog/event.hpp"
#include "etwrelog/kernel_events.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <vector>

namespace etwrelog::write {

// The fixed part of an EVENT_HEADER event.
struct EventFields {
  Guid provider;
  std::uint16_t id = 0;
  std::uint8_t version = 0, channel = 0, level = 0, opcode = 0;
  std::uint16_t task = 0;
  std::uint64_t keyword = 0;
  Guid activity{};
};

class EventBuilder {
public:
  // Appends to `out`, which starts on an 8-byte boundary of the buffer to be.
  explicit EventBuilder(std::vector<std::uint8_t> &out) : out_(&out) {}

  // --- Headers. Each starts an event; the one before has been finished.

  EventBuilder &system(std::uint16_t hook, std::uint8_t version, unsigned pointer_size, std::uint32_t thread,
                       std::uint32_t process, std::int64_t time) {
    start_kernel(pointer_size == 8 ? format::HeaderType::system64 : format::HeaderType::system32, hook,
                 version, time);
    store_ids(thread, process);
    return *this;
  }

  EventBuilder &compact(std::uint16_t hook, std::uint8_t version, unsigned pointer_size, std::uint32_t thread,
                        std::uint32_t process, std::int64_t time) {
    start_kernel(pointer_size == 8 ? format::HeaderType::compact64 : format::HeaderType::compact32, hook,
                 version, time);
    store_ids(thread, process);
    return *this;
  }

  // Up to seven PMC counters stand between header and payload.
  EventBuilder &perfinfo(std::uint16_t hook, std::uint8_t version, unsigned pointer_size, std::int64_t time,
                         std::span<const std::uint64_t> counters = {}) {
    assert(counters.size() <= format::kPerfinfoCounterMask);
    start_kernel(pointer_size == 8 ? format::HeaderType::perfinfo64 : format::HeaderType::perfinfo32, hook,
                 version, time);
    at()[format::kPerfinfoItemsAt] = static_cast<std::uint8_t>(counters.size());
    for (const std::uint64_t counter : counters)
      put(counter);
    return *this;
  }

  EventBuilder &classic(const Guid &guid, std::uint8_t opcode, std::uint16_t version, unsigned pointer_size,
                        std::uint32_t thread, std::uint32_t process, std::int64_t time,
                        std::uint8_t level = 0) {
    start(pointer_size == 8 ? format::HeaderType::full64 : format::HeaderType::full32, time);
    store_ids(thread, process);
    at()[format::kClassicOpcodeAt] = opcode;
    at()[format::kClassicLevelAt] = level;
    store(at() + format::kClassicVersionAt, version);
    store_guid(at() + format::kClassicGuidAt, guid);
    return *this;
  }

  // Extended items, if any, follow with item(), then the user data.
  EventBuilder &event(const EventFields &fields, unsigned pointer_size, std::uint32_t thread,
                      std::uint32_t process, std::int64_t time) {
    start(pointer_size == 8 ? format::HeaderType::event64 : format::HeaderType::event32, time);
    store_ids(thread, process);
    std::uint8_t *const e = at();
    store_guid(e + format::kEventProviderAt, fields.provider);
    store(e + format::kEventIdAt, fields.id);
    e[format::kEventVersionAt] = fields.version;
    e[format::kEventChannelAt] = fields.channel;
    e[format::kEventLevelAt] = fields.level;
    e[format::kEventOpcodeAt] = fields.opcode;
    store(e + format::kEventTaskAt, fields.task);
    store(e + format::kEventKeywordAt, fields.keyword);
    store_guid(e + format::kEventActivityAt, fields.activity);
    return *this;
  }

  EventBuilder &item(format::ItemType type, Bytes data) {
    std::uint8_t *const e = at();
    if (last_item_ != 0) e[last_item_ + format::kItemLinkageAt] = 1;
    store<std::uint16_t>(e + format::kEventFlagsAt, format::kEventFlagExtended);
    last_item_ = end_ - start_;
    const auto size = static_cast<std::size_t>(align8(format::kItemHeaderSize + data.size()));
    std::uint8_t *const i = extend(size);
    store(i, static_cast<std::uint16_t>(size));
    store(i + format::kItemTypeAt, static_cast<std::uint16_t>(type));
    store(i + format::kItemDataSizeAt, static_cast<std::uint16_t>(data.size()));
    std::copy(data.begin(), data.end(), i + format::kItemHeaderSize);
    return *this;
  }

  // A WPP message with GUID, time stamp and ids, the form that current tools emit.
  EventBuilder &message(std::uint16_t number, const Guid &guid, unsigned pointer_size, std::uint32_t thread,
                        std::uint32_t process, std::int64_t time) {
    using namespace format;
    start_ = end_ = out_->size();
    type_ = HeaderType::message;
    layout_ = nullptr;
    std::uint8_t *const e = extend(kHeaderLayouts[static_cast<std::size_t>(type_)].header_size);
    e[3] = kMarkerMessage;
    store(e + kMessageNumberAt, number);
    store<std::uint16_t>(
        e + kMessageOptionsAt,
        static_cast<std::uint16_t>(kMessageGuid | kMessageTime | kMessageSystemInfo |
                                   (pointer_size == 8 ? kMessagePointer64 : kMessagePointer32)));
    pointer_size_ = pointer_size;
    return put(guid).put(time).put(thread).put(process);
  }

  // --- Payload, field by field as the caller says.

  template <class T> EventBuilder &put(T value) {
    store(extend(sizeof(T)), value);
    return *this;
  }
  EventBuilder &pointer(std::uint64_t value) {
    if (pointer_size_ == 8) return put(value);
    return put(static_cast<std::uint32_t>(value));
  }
  EventBuilder &bytes(Bytes data) {
    std::copy(data.begin(), data.end(), extend(data.size()));
    return *this;
  }
  EventBuilder &zeros(std::size_t count) {
    (void)extend(count);
    return *this;
  }
  EventBuilder &astr(std::string_view text) {
    std::copy(text.begin(), text.end(), extend(text.size() + 1));
    return *this;
  }
  // ASCII text as UTF-16; other text comes as UTF-16 already.
  EventBuilder &wstr(std::string_view text) {
    std::uint8_t *p = extend(2 * text.size() + 2);
    for (const char c : text) {
      *p = static_cast<std::uint8_t>(c);
      p += 2;
    }
    return *this;
  }
  EventBuilder &wstr(std::u16string_view text) {
    std::uint8_t *p = extend(2 * text.size() + 2);
    for (const char16_t c : text) {
      store(p, c);
      p += 2;
    }
    return *this;
  }
  // TOKEN_USER image (a stale pointer and attributes), then S-1-authority-parts.
  EventBuilder &sid(std::uint8_t authority, std::span<const std::uint32_t> parts,
                    std::uint64_t stale_pointer = 0) {
    pointer(stale_pointer).zeros(pointer_size_);
    std::uint8_t *const p = extend(8);
    p[0] = 1;
    p[1] = static_cast<std::uint8_t>(parts.size());
    p[7] = authority;
    for (const std::uint32_t part : parts)
      put(part);
    return *this;
  }
  EventBuilder &frames(std::span<const std::uint64_t> addresses) {
    std::uint8_t *p = extend(addresses.size() * pointer_size_);
    if (pointer_size_ == 8) {
      if (!addresses.empty()) std::memcpy(p, addresses.data(), addresses.size_bytes());
      return *this;
    }
    for (const std::uint64_t address : addresses) {
      store(p, static_cast<std::uint32_t>(address));
      p += 4;
    }
    return *this;
  }

  // --- Payload by the layout of the event's hook and version, one field (or one of `repeat`) a call.

  EventBuilder &value(std::uint64_t v) {
    const std::size_t size = kernel::fixed_size(advance(), pointer_size_);
    assert(size != 0 && size <= sizeof v && "not an integer field");
    store(extend(sizeof v), v & (~std::uint64_t{0} >> (8 * (sizeof v - size))));
    end_ -= sizeof v - size;
    return *this;
  }
  EventBuilder &value(const Guid &guid) {
    [[maybe_unused]] const kernel::FieldType type = advance();
    assert(type == kernel::FieldType::guid);
    return put(guid);
  }
  EventBuilder &text(std::string_view ascii) {
    const kernel::FieldType type = advance();
    assert(type == kernel::FieldType::astr || type == kernel::FieldType::wstr);
    return type == kernel::FieldType::astr ? astr(ascii) : wstr(ascii);
  }
  EventBuilder &user(std::uint8_t authority, std::span<const std::uint32_t> parts,
                     std::uint64_t stale_pointer = 0) {
    [[maybe_unused]] const kernel::FieldType type = advance();
    assert(type == kernel::FieldType::sid);
    return sid(authority, parts, stale_pointer);
  }
  EventBuilder &stack(std::span<const std::uint64_t> addresses) {
    [[maybe_unused]] const kernel::FieldType type = advance();
    assert(type == kernel::FieldType::pointers);
    return frames(addresses);
  }
  // Zero, or empty strings, for `count` fields that do not matter; all remaining ones by default. Open-ended
  // fields (frames, undocumented tails) stay empty.
  EventBuilder &rest(std::size_t count = SIZE_MAX) {
    for (; count > 0 && layout_ != nullptr && field_ < layout_->fields.size(); --count) {
      switch (const kernel::FieldType type = advance()) {
      case kernel::FieldType::sid: zeros(4); break;
      case kernel::FieldType::astr: zeros(1); break;
      case kernel::FieldType::wstr: zeros(2); break;
      default: zeros(kernel::fixed_size(type, pointer_size_));
      }
    }
    return *this;
  }
  // Overwrites a field that was put already and has only fields of fixed size before it.
  EventBuilder &set(kernel::Role role, std::uint64_t v) {
    assert(layout_ != nullptr);
    for (const kernel::Field &field : layout_->fields) {
      if (field.role != role) continue;
      std::uint8_t *const p = at() + payload_ + *kernel::fixed_offset(layout_->fields, role, pointer_size_);
      std::memcpy(p, &v, kernel::fixed_size(field.type, pointer_size_));
      return *this;
    }
    assert(false && "no such field");
    return *this;
  }

  // --- The end of the event: Size without, `out` with padding to 8. Returns Size.

  std::uint32_t finish() {
    const std::size_t size = end_ - start_;
    assert(size <= format::kMaxEventSize);
    store(at() + format::kHeaderLayouts[static_cast<std::size_t>(type_)].size_at,
          static_cast<std::uint16_t>(size));
    out_->resize(start_ + static_cast<std::size_t>(align8(size)));
    return static_cast<std::uint32_t>(size);
  }

  [[nodiscard]] unsigned pointer_size() const { return pointer_size_; }
  [[nodiscard]] std::size_t size() const { return end_ - start_; } // so far

private:
  void start(format::HeaderType type, std::int64_t time) {
    start_ = end_ = out_->size();
    assert(start_ % 8 == 0);
    type_ = type;
    layout_ = nullptr;
    last_item_ = 0;
    const format::HeaderLayout &header = format::kHeaderLayouts[static_cast<std::size_t>(type)];
    pointer_size_ = header.pointer_size;
    std::uint8_t *const e = extend(header.header_size);
    e[2] = static_cast<std::uint8_t>(type);
    e[3] = format::kMarkerStructured;
    store(e + header.time_at, time);
  }

  void start_kernel(format::HeaderType type, std::uint16_t hook, std::uint8_t version, std::int64_t time) {
    start(type, time);
    at()[0] = version;
    store(at() + format::kHookAt, hook);
    if (hook != hook_ || version != version_) { // most events follow one of their own kind
      hook_ = hook;
      version_ = version;
      found_ = kernel::find_layout(hook, version);
    }
    layout_ = found_;
    field_ = 0;
    repeat_ = 0;
    payload_ = end_ - start_;
  }

  void store_ids(std::uint32_t thread, std::uint32_t process) {
    const format::HeaderLayout &header = format::kHeaderLayouts[static_cast<std::size_t>(type_)];
    store(at() + header.thread_at, thread);
    store(at() + header.thread_at + 4, process);
  }

  // The type of the next element of the layout.
  kernel::FieldType advance() {
    assert(layout_ != nullptr && field_ < layout_->fields.size());
    const kernel::Field &field = layout_->fields[field_];
    if (++repeat_ >= field.repeat) {
      ++field_;
      repeat_ = 0;
    }
    return field.type;
  }

  [[nodiscard]] std::uint8_t *at() const { return out_->data() + start_; }
  std::uint8_t *extend(std::size_t count) {
    // Grown ahead of need, as most fields are a few bytes; finish() takes the rest back.
    if (count > out_->size() - end_) out_->resize(end_ + count + kAhead);
    end_ += count;
    return out_->data() + end_ - count;
  }

  std::vector<std::uint8_t> *out_;
  static constexpr std::size_t kAhead = 112;
  std::size_t start_ = 0, end_ = 0;         // of the event, in `out`
  std::size_t payload_ = 0, last_item_ = 0; // from its start
  format::HeaderType type_{};
  unsigned pointer_size_ = 8;
  const kernel::Layout *layout_ = nullptr, *found_ = nullptr;
  std::size_t field_ = 0, repeat_ = 0;
  std::uint16_t hook_ = 0;
  std::uint16_t version_ = 0xFFFF;
};

} // namespace etwrelog::write
