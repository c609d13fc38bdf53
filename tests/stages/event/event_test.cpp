#include "etwrelog/select.hpp"
#include "tests/support/known_fields.hpp"
#include "write/event_builder.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

namespace etwrelog {
namespace {

using format::HeaderType;
using write::EventBuilder;

struct Walk {
  std::vector<EventView> events;
  std::vector<std::int64_t> times;
  std::vector<std::uint32_t> offsets;
  WalkEnd end;
};
Walk walk(Bytes bytes) {
  Walk w;
  w.end = for_each_event(bytes, [&](const EventView &e, std::int64_t time, std::uint32_t at) {
    w.events.push_back(e);
    w.times.push_back(time);
    w.offsets.push_back(at);
  });
  return w;
}

// Reads whatever can be read of an event. Its only result is that nothing bad happens.
std::uint64_t touch_all(const EventView &event, std::int64_t time) {
  std::uint64_t sum = static_cast<std::uint64_t>(time) + event.size() + event.pointer_size() +
                      event.thread_id() + event.process_id() + event.id() + event.version() + event.opcode() +
                      event.level() + event.channel() + event.task() + event.keyword() +
                      event.provider().low + event.activity().high + event.perfinfo_items().size() +
                      (event.has_time() ? static_cast<std::uint64_t>(event.header_time()) : 0);
  auto add = [&sum](Bytes bytes) {
    for (const std::uint8_t byte : bytes)
      sum = sum * 31 + byte;
  };
  add(event.bytes());
  add(event.payload());
  add(event.perfinfo_items());
  ExtendedItems items = event.items();
  ExtendedItem item;
  while (items.next(item))
    add(item.data);
  add(items.rest());
  if (event.is_message()) sum += event.message().payload_at;
  const std::span<const kernel::Field> layout = testing::known_fields(event);
  if (!layout.empty()) {
    kernel::FieldWalk fields(layout, event.payload(), event.pointer_size());
    const kernel::Field *field = nullptr;
    for (Bytes data; fields.next(field, data);) {
      add(data);
      sum += kernel::field_value(data);
    }
  }
  return sum;
}

// One event of each kind there is, and what an accessor must say of it.
std::vector<std::uint8_t> one_of_each() {
  std::vector<std::uint8_t> out;
  EventBuilder e(out);
  const std::uint64_t counters[] = {1, 2, 3};
  const Guid guid = make_guid(0x11111111, 2, 3, 4, 5);
  for (const unsigned size : {4u, 8u}) {
    e.system(0x0501, 3, size, 1, 2, 10).value(3).value(4).rest();
    e.finish();
    e.compact(0x0501, 3, size, 1, 2, 11).value(3).value(4).rest();
    e.finish();
    e.perfinfo(0x0F2E, 2, size, 12).value(0x1000).value(5).rest();
    e.finish();
    e.perfinfo(0x0524, 4, size, 13, counters).value(6).value(7).rest();
    e.finish();
    e.classic(guid, 9, 2, size, 1, 2, 14, 4).put<std::uint32_t>(8);
    e.finish();
    const std::uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    e.event({.provider = guid,
             .id = 7,
             .version = 1,
             .channel = 11,
             .level = 4,
             .opcode = 1,
             .task = 2,
             .keyword = 3},
            size, 1, 2, 15);
    e.item(format::ItemType::related_activity, data).item(format::ItemType::stack_trace64, data);
    e.put<std::uint32_t>(8);
    e.finish();
    e.event({.provider = guid, .id = 8}, size, 1, 2, 16).wstr("text");
    e.finish();
    e.message(3, guid, size, 1, 2, 17).put<std::uint32_t>(8);
    e.finish();
    // INSTANCE has no builder: nobody has seen one in a file.
    std::vector<std::uint8_t> instance(0x50);
    instance[2] = size == 8 ? 0x15 : 0x0B;
    instance[3] = 0xC0;
    store<std::uint16_t>(instance.data(), 0x4C);
    instance[4] = 6, instance[5] = 3, instance[6] = 2;
    store<std::uint32_t>(&instance[8], 1);
    store<std::uint32_t>(&instance[12], 2);
    store<std::int64_t>(&instance[16], 18);
    store_guid(&instance[0x18], guid);
    store<std::uint32_t>(&instance[0x48], 8);
    out.insert(out.end(), instance.begin(), instance.end());
  }
  for (const std::uint8_t type : {0x0C, 0x0D, 0x0E, 0x00, 0x16, 0x7F, 0xFF}) { // obsolete or still to come
    std::vector<std::uint8_t> unknown(24, 0xAA);
    store<std::uint16_t>(unknown.data(), 20);
    unknown[2] = type;
    unknown[3] = 0xC0;
    out.insert(out.end(), unknown.begin(), unknown.end());
  }
  return out;
}

TEST(EventSet, TellsEventsByTheirHeaders) {
  const Guid provider = make_guid(0xAAAA0001, 1, 2, 3, 4), other = make_guid(0xAAAA0002, 1, 2, 3, 4);
  std::vector<std::uint8_t> bytes;
  EventBuilder b(bytes);
  b.perfinfo(0x0F2E, 2, 8, 1).value(1).finish();
  b.system(0x0524, 4, 8, 1, 2, 3).finish();
  b.classic(provider, 7, 1, 8, 1, 2, 3).finish();
  b.classic(provider, 8, 1, 8, 1, 2, 3).finish();
  b.event({.provider = other, .id = 70}, 8, 1, 2, 3).finish();
  const Walk w = walk(bytes);
  ASSERT_EQ(w.events.size(), 5u);
  auto told = [&](const EventSet &set) {
    std::string answers;
    for (const EventView &event : w.events)
      answers += set.contains(event) ? '1' : '0';
    return answers;
  };
  EXPECT_EQ(told(EventSet()), "11111");
  EXPECT_EQ(told(EventSet().add_kernel(0x0F2E)), "10000");
  EXPECT_EQ(told(EventSet().add_provider(provider)), "00110");
  EXPECT_EQ(told(EventSet().add_event(provider, 8)), "00010");
  EXPECT_EQ(told(EventSet().add_event(other, 70).add_event(other, 3).add_kernel(0x0524)), "01001");
  EXPECT_EQ(told(EventSet().add_event(other, 71)), "00000");
  EXPECT_EQ(told(EventSet().add_provider(provider).add_event(provider, 9)), "00110"); // all stay all
  EXPECT_EQ(told(EventSet().add_provider(kernel::group_guid(0x0F))), "10000"); // a class of kernel events
}

// Its hook is one of those of processes, its class is that of the other events of images.
TEST(EventSet, LoadingAnImageIsOfTheClassOfImages) {
  const Guid process = kernel::group_guid(0x03), image = kernel::group_guid(0x14);
  std::vector<std::uint8_t> bytes;
  EventBuilder b(bytes);
  b.system(kernel::kHookImageLoad, 2, 8, 1, 2, 3).finish();
  const Walk w = walk(bytes);
  ASSERT_EQ(w.events.size(), 1u);
  EXPECT_EQ(w.events[0].provider(), image);
  EXPECT_TRUE(EventSet().add_provider(image).contains(w.events[0]));
  EXPECT_FALSE(EventSet().add_provider(process).contains(w.events[0]));
}

TEST(EventWalk, SplitsEveryHeaderType) {
  const std::vector<std::uint8_t> bytes = one_of_each();
  const Walk w = walk(bytes);
  ASSERT_TRUE(w.end);
  EXPECT_EQ(w.end.at, bytes.size());
  const HeaderType types[] = {HeaderType::system32,   HeaderType::compact32, HeaderType::perfinfo32,
                              HeaderType::perfinfo32, HeaderType::full32,    HeaderType::event32,
                              HeaderType::event32,    HeaderType::message,   HeaderType::instance32};
  ASSERT_EQ(w.events.size(), 2 * std::size(types) + 7);
  for (std::size_t i = 0; i < 2 * std::size(types); ++i) {
    const EventView &e = w.events[i];
    const bool wide = i >= std::size(types);
    const HeaderType narrow = types[i % std::size(types)];
    const std::map<HeaderType, HeaderType> wider = {
        {HeaderType::system32, HeaderType::system64},     {HeaderType::compact32, HeaderType::compact64},
        {HeaderType::perfinfo32, HeaderType::perfinfo64}, {HeaderType::full32, HeaderType::full64},
        {HeaderType::event32, HeaderType::event64},       {HeaderType::instance32, HeaderType::instance64},
        {HeaderType::message, HeaderType::message}};
    EXPECT_EQ(e.type(), wide ? wider.at(narrow) : narrow) << i;
    EXPECT_TRUE(e.is_message() || e.pointer_size() == (wide ? 8u : 4u)) << i;
    EXPECT_EQ(e.has_ids(), !e.is_perfinfo() && !e.is_message()) << i;
    EXPECT_EQ(e.thread_id(), e.is_perfinfo() ? kUnknownId : 1u) << i;
    EXPECT_EQ(e.process_id(), e.is_perfinfo() ? kUnknownId : 2u) << i;
    EXPECT_EQ(w.times[i], static_cast<std::int64_t>(10 + i % std::size(types))) << i;
    EXPECT_EQ(e.has_hook(), i % std::size(types) < 4) << i;
  }
  for (std::size_t i = 2 * std::size(types); i < w.events.size(); ++i) {
    EXPECT_FALSE(w.events[i].has_time());
    EXPECT_EQ(w.times[i], 18) << "an event without a time has its predecessor's";
    EXPECT_EQ(w.events[i].size(), 20u);
    EXPECT_EQ(w.events[i].process_id(), kUnknownId);
    EXPECT_EQ(w.events[i].payload().size(), 12u);
  }
}

TEST(EventView, ReadsEveryFieldOfClassicAndManifestEvents) {
  const std::vector<std::uint8_t> bytes = one_of_each();
  const Walk w = walk(bytes);
  const Guid guid = make_guid(0x11111111, 2, 3, 4, 5);
  const EventView &classic = w.events[4], &event = w.events[5], &instance = w.events[8];
  EXPECT_EQ(classic.provider(), guid);
  EXPECT_EQ(classic.opcode(), 9);
  EXPECT_EQ(classic.level(), 4);
  EXPECT_EQ(classic.version(), 2);
  EXPECT_EQ(classic.payload().size(), 4u);
  EXPECT_EQ(event.provider(), guid);
  EXPECT_EQ(event.id(), 7);
  EXPECT_EQ(event.version(), 1);
  EXPECT_EQ(event.channel(), 11);
  EXPECT_EQ(event.level(), 4);
  EXPECT_EQ(event.opcode(), 1);
  EXPECT_EQ(event.task(), 2);
  EXPECT_EQ(event.keyword(), 3u);
  EXPECT_EQ(event.payload().size(), 4u) << "behind two items";
  EXPECT_EQ(instance.provider(), guid);
  EXPECT_EQ(instance.opcode(), 6);
  EXPECT_EQ(instance.level(), 3);
  EXPECT_EQ(instance.payload().size(), 4u);
}

TEST(EventView, PutsPerfinfoPayloadBehindCountersAndPebsIndex) {
  for (const unsigned size : {4u, 8u})
    for (unsigned counters = 0; counters <= 7; ++counters)
      for (const bool pebs : {false, true}) {
        std::vector<std::uint8_t> event(16 + 8 * (counters + (pebs ? 1 : 0)) + 24);
        event[0] = 4;
        event[1] = static_cast<std::uint8_t>(counters | (pebs ? 0x80 : 0));
        event[2] = size == 8 ? 0x11 : 0x10;
        event[3] = 0xC0;
        store(&event[4], static_cast<std::uint16_t>(event.size()));
        store<std::uint16_t>(&event[6], 0x0524);
        const std::size_t payload = event.size() - 24;
        store<std::uint32_t>(&event[payload], 77);
        const Walk w = walk(event);
        ASSERT_EQ(w.events.size(), 1u);
        EXPECT_EQ(w.events[0].perfinfo_items().size(), payload - 16);
        ASSERT_EQ(w.events[0].payload().size(), 24u);
        EXPECT_EQ(load<std::uint32_t>(w.events[0].payload().data()), 77u);
        // A count that lies leaves no payload rather than someone else's bytes.
        for (std::size_t cut = 16; cut < payload; ++cut) {
          const EventView shorter(event.data(), static_cast<std::uint32_t>(cut), w.events[0].type());
          EXPECT_TRUE(shorter.payload().empty());
          EXPECT_EQ(shorter.perfinfo_items().size(), cut - 16);
        }
      }
}

TEST(EventView, ReadsWppMessagesWithEveryCombinationOfOptions) {
  for (unsigned options = 0; options < 0x100; ++options) {
    std::vector<std::uint8_t> event(8);
    event[3] = 0x90;
    store<std::uint16_t>(&event[4], 321);
    store(&event[6], static_cast<std::uint16_t>(options));
    auto put = [&event](auto value) {
      event.resize(event.size() + sizeof value);
      store(event.data() + event.size() - sizeof value, value);
    };
    const Guid guid{0x1111, 0x2222};
    if (options & 0x01) put(std::uint32_t{5});
    if (options & 0x04)
      put(std::uint32_t{6});
    else if (options & 0x02)
      put(guid);
    if (options & 0x18) put(std::int64_t{777});
    if (options & 0x20) put(std::uint32_t{8}), put(std::uint32_t{9});
    const std::size_t arguments = event.size();
    put(std::uint32_t{0xABCD});
    store(event.data(), static_cast<std::uint16_t>(event.size()));

    const Walk w = walk(event);
    ASSERT_EQ(w.events.size(), 1u) << options;
    const EventView &e = w.events[0];
    EXPECT_EQ(e.id(), 321u);
    EXPECT_EQ(e.has_time(), (options & 0x08) != 0) << options;
    EXPECT_EQ(w.times[0], (options & 0x08) != 0 ? 777 : 0) << options;
    EXPECT_EQ(e.thread_id(), (options & 0x20) != 0 ? 8u : kUnknownId) << options;
    EXPECT_EQ(e.process_id(), (options & 0x20) != 0 ? 9u : kUnknownId) << options;
    EXPECT_EQ(e.provider(), (options & 0x06) == 0x02 ? guid : Guid{}) << options;
    EXPECT_EQ(e.message().component, (options & 0x04) != 0 ? 6u : 0u) << options;
    EXPECT_EQ(e.message().payload_at, arguments) << options;
    EXPECT_EQ(e.payload().size(), 4u) << options;
    for (std::uint32_t cut = 8; cut < event.size(); ++cut) {
      const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[cut]);
      std::copy_n(event.begin(), cut, exact.get());
      (void)touch_all(EventView(exact.get(), cut, HeaderType::message), 0);
    }
  }
}

// Items: related activity, stack, traits, schema in every subset, then user data.
TEST(EventView, WalksEveryCombinationOfExtendedItems) {
  const format::ItemType types[] = {format::ItemType::related_activity, format::ItemType::sid,
                                    format::ItemType::stack_trace32,    format::ItemType::stack_trace64,
                                    format::ItemType::provider_traits,  format::ItemType::schema_tl,
                                    format::ItemType::stack_key64,      static_cast<format::ItemType>(0x77)};
  for (unsigned subset = 1; subset < 256; ++subset) {
    std::vector<std::uint8_t> out;
    EventBuilder e(out);
    e.event({}, 8, 1, 2, 3);
    std::vector<std::size_t> sizes;
    for (unsigned i = 0; i < 8; ++i)
      if (subset >> i & 1) {
        sizes.push_back((subset * 7 + i) % 33);
        e.item(types[i], std::vector<std::uint8_t>(sizes.back(), static_cast<std::uint8_t>(i)));
      }
    e.put<std::uint64_t>(0x1234);
    e.finish();
    const Walk w = walk(out);
    ASSERT_EQ(w.events.size(), 1u);
    ExtendedItems items = w.events[0].items();
    ExtendedItem item;
    std::size_t n = 0;
    for (unsigned i = 0; i < 8; ++i)
      if (subset >> i & 1) {
        ASSERT_TRUE(items.next(item));
        EXPECT_EQ(item.type, types[i]);
        EXPECT_EQ(item.data.size(), sizes[n++]);
      }
    EXPECT_FALSE(items.next(item));
    EXPECT_TRUE(items.ok());
    ASSERT_EQ(w.events[0].payload().size(), 8u);
    EXPECT_EQ(load<std::uint64_t>(w.events[0].payload().data()), 0x1234u);
  }
}

TEST(EventView, EndsTheItemsAtAMalformedOne) {
  std::vector<std::uint8_t> out;
  EventBuilder e(out);
  e.event({}, 8, 1, 2, 3)
      .item(format::ItemType::sid, std::vector<std::uint8_t>(12))
      .item(format::ItemType::sid, std::vector<std::uint8_t>(12));
  e.put<std::uint64_t>(1);
  e.finish();
  const std::size_t first = 0x50, second = first + 24;
  struct Case {
    std::size_t at;
    std::uint16_t value;
    std::size_t good;
  };
  for (const Case &bad :
       {Case{first, 0, 0}, Case{first, 7, 0}, Case{first, 19, 0}, Case{first, 0xFFFF, 0},
        Case{first + 6, 17, 0}, Case{first + 6, 0xFFFF, 0}, Case{second, 0, 1}, Case{second, 33, 1},
        Case{second + 6, 100, 1},
        Case{second + 4, 1, 2}}) { // the last: one more item promised, 8 bytes of zeros there
    std::vector<std::uint8_t> bytes = out;
    store(&bytes[bad.at], bad.value);
    const Walk w = walk(bytes);
    ASSERT_EQ(w.events.size(), 1u);
    ExtendedItems items = w.events[0].items();
    ExtendedItem item;
    std::size_t good = 0;
    while (items.next(item))
      ++good;
    EXPECT_EQ(good, bad.good) << bad.at << ' ' << bad.value;
    EXPECT_FALSE(items.ok());
    EXPECT_TRUE(w.events[0].payload().empty()) << "user data cannot be told behind a malformed item";
  }
}

TEST(EventWalk, StopsAtDamageAndSaysWhere) {
  std::vector<std::uint8_t> out;
  EventBuilder e(out);
  e.system(0x0501, 3, 8, 1, 2, 10).rest();
  const std::uint32_t first = e.finish();
  e.perfinfo(0x0F2E, 2, 8, 12).rest();
  e.finish();
  const auto second = static_cast<std::size_t>(align8(first));
  auto stop = [&](std::size_t at, auto value) {
    std::vector<std::uint8_t> bad = out;
    store(&bad[second + at], value);
    const Walk w = walk(bad);
    EXPECT_EQ(w.events.size(), 1u) << "the events before the damage stay";
    EXPECT_EQ(w.end.at, second);
    return w.end;
  };
  EXPECT_EQ(stop(3, std::uint8_t{0x40}).reason, WalkEnd::Reason::bad_marker);
  EXPECT_EQ(stop(0, std::uint32_t{0}).reason, WalkEnd::Reason::bad_marker);
  EXPECT_EQ(stop(4, std::uint16_t{15}).reason, WalkEnd::Reason::bad_size);
  EXPECT_EQ(stop(4, std::uint16_t{0}).found, 0u);
  EXPECT_EQ(stop(4, std::uint16_t{33}).reason, WalkEnd::Reason::overrun);
  EXPECT_EQ(stop(4, std::uint16_t{0xFFFF}).found, 0xFFFFu);
  // What fills a buffer goes up to its end: an event whose marker was overwritten is no end.
  EXPECT_EQ(stop(0, std::uint32_t{0xFFFF'FFFF}).reason, WalkEnd::Reason::bad_marker);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(second), out.end(), std::uint8_t{0xFF});
  EXPECT_EQ(walk(out).end.reason, WalkEnd::Reason::complete) << "the fill is no damage";
  out.back() = 0xFE;
  EXPECT_EQ(walk(out).end.reason, WalkEnd::Reason::bad_marker);
  EXPECT_EQ(walk(out).end.at, second);
}

TEST(EventWalk, TakesTheLastEventWithoutItsPadding) {
  std::vector<std::uint8_t> out;
  EventBuilder e(out);
  e.classic({}, 1, 1, 8, 1, 2, 3).put<std::uint8_t>(9);
  out.resize(e.finish()); // 49 bytes
  const Walk w = walk(out);
  EXPECT_EQ(w.events.size(), 1u);
  EXPECT_TRUE(w.end);
}

// Cuts a run of all kinds at every byte, in an allocation of exactly that size.
TEST(EventWalk, NeverReadsPastACutBuffer) {
  const std::vector<std::uint8_t> bytes = one_of_each();
  std::uint64_t sum = 0;
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[cut]);
    std::copy_n(bytes.begin(), cut, exact.get());
    const WalkEnd end =
        for_each_event(Bytes(exact.get(), cut), [&](const EventView &event, std::int64_t time,
                                                    std::uint32_t) { sum += touch_all(event, time); });
    EXPECT_LE(end.at, align8(cut));
  }
  EXPECT_NE(sum, 0u);
}

// Cuts each event by its own Size: then everything in it must make do with less.
TEST(EventView, NeverReadsPastACutEvent) {
  const std::vector<std::uint8_t> bytes = one_of_each();
  const Walk w = walk(bytes);
  std::uint64_t sum = 0;
  for (const EventView &event : w.events)
    for (std::uint32_t cut = event.layout().header_size; cut <= event.size(); ++cut) {
      const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[cut]);
      std::copy_n(event.bytes().begin(), cut, exact.get());
      sum += touch_all(EventView(exact.get(), cut, event.type()), 0);
    }
  EXPECT_NE(sum, 0u);
}

TEST(EventView, SurvivesFlippedBytes) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::vector<std::uint8_t> good = one_of_each();
  std::uint64_t sum = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[good.size()]);
    std::copy(good.begin(), good.end(), exact.get());
    for (int i = 0; i < 6; ++i)
      exact[random() % good.size()] = static_cast<std::uint8_t>(random());
    (void)for_each_event(
        Bytes(exact.get(), good.size()),
        [&](const EventView &event, std::int64_t time, std::uint32_t) { sum += touch_all(event, time); });
  }
  EXPECT_NE(sum, 0u);
}

} // namespace
} // namespace etwrelog
