// The event decoder: every accessor of every event in one buffer, and the walk over its fields.
#include "etwrelog/event.hpp"
#include "filter/filter.hpp"
#include "schema/event_names.hpp"
#include "tests/support/known_fields.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace etwrelog;
  std::uint64_t sum = 0;
  auto add = [&sum](Bytes bytes) {
    for (const std::uint8_t byte : bytes)
      sum = sum * 31 + byte;
  };
  schema::TypeCounts types;
  schema::EventNames names;
  filter::LifetimeRecords records;
  const filter::Lifetimes nothing;
  filter::Position position;
  (void)for_each_event(Bytes(data, size), [&](const EventView &event, std::int64_t time, std::uint32_t) {
    sum += static_cast<std::uint64_t>(time) + event.thread_id() + event.process_id() + event.id() +
           event.version() + event.opcode() + event.level() + event.channel() + event.task() +
           event.keyword() + event.provider().low + event.activity().high;
    if (event.has_time()) sum += static_cast<std::uint64_t>(event.header_time());
    add(event.bytes());
    add(event.payload());
    add(event.perfinfo_items());
    ExtendedItems items = event.items();
    ExtendedItem item;
    while (items.next(item))
      add(item.data);
    add(items.rest());
    const std::span<const kernel::Field> layout = testing::known_fields(event);
    if (!layout.empty()) {
      kernel::FieldWalk walk(layout, event.payload(), event.pointer_size());
      const kernel::Field *field = nullptr;
      for (Bytes value; walk.next(field, value);)
        add(value), sum += kernel::field_value(value);
    }
    types.add(event);
    if (schema::EventNames::teaches(event)) names.learn(event, time);
    sum += names.name(type_of(event)).size() + type_key(type_of(event)).size();
    records.add(event, time, 0);
    (void)filter::owner_of(event, time, position, nothing);
  });
  names.settle();
  const std::uint16_t processors[] = {0};
  const filter::Lifetimes lifetimes(std::move(records), processors, false);
  sum += lifetimes.processes().size();
  [[maybe_unused]] static volatile std::uint64_t sink;
  sink = sum;
  return 0;
}
