// Events as the records that Windows' ProcessTrace hands out.
#pragma once

#include "etwrelog/consumer.h"
#include "etwrelog/event.hpp"

#include <vector>

namespace etwrelog::consumer {

// What a record says beside the event itself.
struct RecordContext {
  std::int64_t time = 0;
  std::uint16_t processor = 0;
  bool private_session = false;
  void *user_context = nullptr;
};

// Fills a record with what it then points to: the event's memory and the maker's own list of items, both
// until the next call. False for header types that Windows has had no record for since Vista.
class RecordMaker {
public:
  [[nodiscard]] bool fill(EVENT_RECORD &record, const EventView &event, const RecordContext &context);

private:
  void add_item(std::uint16_t type, Bytes data);
  void take_stored_items(const EventView &event);
  void take_perfinfo_items(const EventView &event);

  std::vector<EVENT_HEADER_EXTENDED_DATA_ITEM> items_;
};

// The older form of the same, made from a record of that event.
void fill_classic(EVENT_TRACE &trace, const EVENT_RECORD &record, const EventView &event);

} // namespace etwrelog::consumer
