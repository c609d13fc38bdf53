#include "write/event_builder.hpp"

#include <gtest/gtest.h>

#include <string>

namespace etwrelog {
namespace {

using write::EventBuilder;

struct Walked {
  std::vector<EventView> events;
  WalkEnd end;
};
Walked walk(const std::vector<std::uint8_t> &bytes) {
  Walked walked;
  walked.end = for_each_event(
      bytes, [&](const EventView &e, std::int64_t, std::uint32_t) { walked.events.push_back(e); });
  return walked;
}

std::uint64_t field(const EventView &event, kernel::Role role) {
  const kernel::Layout *layout = kernel::find_layout(event.hook(), event.version());
  kernel::FieldWalk fields(layout->fields, event.payload(), event.pointer_size());
  const kernel::Field *f = nullptr;
  for (Bytes data; fields.next(f, data);)
    if (f->role == role) return kernel::field_value(data);
  ADD_FAILURE() << "no such field";
  return 0;
}

TEST(EventBuilder, WritesProcessStartsByTheirLayoutInBothPointerSizes) {
  for (const unsigned pointer_size : {4u, 8u}) {
    for (const std::uint8_t version : {2, 3, 4}) {
      std::vector<std::uint8_t> out;
      EventBuilder e(out);
      e.system(0x0301, version, pointer_size, 11, 22, 1000);
      e.value(0xFFFF'9000'1234'5678ull).value(4321).value(22).value(1).value(259);
      if (version >= 3) e.value(0x1AD000);
      if (version >= 4) e.value(0);
      const std::uint32_t parts[] = {21, 1, 2, 3, 1001};
      e.user(5, parts, 0xFFFF'A000'0000'0000ull).text("game.exe").text("\"C:\\Games\\game.exe\" -fast");
      if (version >= 4) e.rest(2);
      const std::uint32_t size = e.finish();

      const Walked walked = walk(out);
      ASSERT_TRUE(walked.end);
      ASSERT_EQ(walked.events.size(), 1u);
      const EventView &event = walked.events[0];
      EXPECT_EQ(event.size(), size);
      EXPECT_EQ(out.size(), align8(size));
      EXPECT_EQ(event.thread_id(), 11u);
      EXPECT_EQ(event.process_id(), 22u);
      EXPECT_EQ(event.header_time(), 1000);
      EXPECT_EQ(event.pointer_size(), pointer_size);
      EXPECT_EQ(field(event, kernel::Role::process_id), 4321u);
      EXPECT_EQ(field(event, kernel::Role::parent_id), 22u);
      kernel::FieldWalk fields(kernel::find_layout(0x0301, version)->fields, event.payload(), pointer_size);
      const kernel::Field *f = nullptr;
      Bytes data;
      std::string image;
      while (fields.next(f, data))
        if (f->role == kernel::Role::image_name) image.assign(data.begin(), data.end());
      EXPECT_EQ(image, "game.exe");
      EXPECT_EQ(fields.position(), event.payload().size()) << "a byte that the layout does not know";
    }
  }
}

TEST(EventBuilder, WritesStacksAndPatchesFields) {
  std::vector<std::uint8_t> out;
  EventBuilder e(out);
  const std::uint64_t frames[] = {0xFFFF'F800'0000'1000ull, 0x7FF6'0000'2000ull};
  e.perfinfo(0x1820, 2, 8, 500).value(490).value(7).value(8).stack(frames);
  e.set(kernel::Role::event_time, 480);
  EXPECT_EQ(e.finish(), 16u + 16u + 16u);
  const Walked walked = walk(out);
  ASSERT_EQ(walked.events.size(), 1u);
  EXPECT_EQ(walked.events[0].header_time(), 500);
  EXPECT_EQ(field(walked.events[0], kernel::Role::event_time), 480u);
  EXPECT_EQ(load<std::uint64_t>(walked.events[0].payload().data() + 24), frames[1]);
}

TEST(EventBuilder, KeepsCountersBetweenHeaderAndPayload) {
  std::vector<std::uint8_t> out;
  EventBuilder e(out);
  const std::uint64_t counters[] = {5, 6};
  e.perfinfo(0x0524, 4, 8, 9, counters).value(100).value(200).rest();
  e.finish();
  const Walked walked = walk(out);
  ASSERT_EQ(walked.events.size(), 1u);
  EXPECT_EQ(walked.events[0].perfinfo_items().size(), 16u);
  EXPECT_EQ(field(walked.events[0], kernel::Role::new_thread_id), 100u);
  EXPECT_EQ(walked.events[0].payload().size(), 24u);
}

TEST(EventBuilder, LinksExtendedItemsAndPutsUserDataBehindThem) {
  std::vector<std::uint8_t> out;
  EventBuilder e(out);
  const Guid provider = make_guid(0x12345678, 1, 2, 3, 4), activity = make_guid(9, 8, 7, 6, 5);
  const std::uint8_t traits[] = {7, 0, 'a', 'b', 'c', 'd', 0}, schema[] = {4, 0, 0, 0};
  e.event({.provider = provider, .id = 42, .level = 4, .keyword = 0x10, .activity = activity}, 8, 1, 2, 3);
  e.item(format::ItemType::provider_traits, traits).item(format::ItemType::schema_tl, schema);
  e.put<std::uint32_t>(0xABCD).wstr("hi");
  e.finish();
  e.classic(format::kImageIdGuid, 36, 2, 8, 5, 6, 4).pointer(0x1000).put<std::uint32_t>(6).astr("x.pdb");
  e.finish();
  e.message(17, provider, 8, 1, 2, 5).put<std::uint32_t>(99);
  e.finish();

  const Walked walked = walk(out);
  ASSERT_TRUE(walked.end);
  ASSERT_EQ(walked.events.size(), 3u);
  const EventView &first = walked.events[0];
  EXPECT_EQ(first.provider(), provider);
  EXPECT_EQ(first.id(), 42u);
  EXPECT_EQ(first.activity(), activity);
  ExtendedItems items = first.items();
  ExtendedItem item{};
  ASSERT_TRUE(items.next(item));
  EXPECT_EQ(item.data.size(), sizeof traits);
  ASSERT_TRUE(items.next(item));
  EXPECT_EQ(item.type, format::ItemType::schema_tl);
  EXPECT_FALSE(items.next(item));
  EXPECT_TRUE(items.ok());
  EXPECT_EQ(first.payload().size(), 10u);
  EXPECT_EQ(load<std::uint32_t>(first.payload().data()), 0xABCDu);
  EXPECT_EQ(walked.events[1].provider(), format::kImageIdGuid);
  EXPECT_EQ(walked.events[1].opcode(), 36u);
  EXPECT_EQ(walked.events[1].payload().size(), 8u + 4 + 6);
  EXPECT_EQ(walked.events[2].message().process_id, 2u);
  EXPECT_EQ(walked.events[2].header_time(), 5);
  EXPECT_EQ(load<std::uint32_t>(walked.events[2].payload().data()), 99u);
}

} // namespace
} // namespace etwrelog
