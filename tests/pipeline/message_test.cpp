// Messages say values as their formats have it.
#include "export/message.hpp"
#include "write/event_builder.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

constexpr std::string_view kTmf = R"(11223344-5566-7788-99aa-bbccddeeff00 module // SRC=a.c
#typev a_c1 1 "%0x" //
{
number, ItemLong -- 10
long, ItemULongLong -- 11
pointer, ItemPtr -- 12
text, ItemString -- 13
real, ItemDouble -- 14
status, ItemNTSTATUS -- 15
}
)";

class Message : public ::testing::Test {
protected:
  Message() {
    EXPECT_TRUE(catalog_.add_tmf(kTmf));
    write::EventBuilder builder(bytes_);
    builder.message(1, make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00), 8, 8, 4, 1000)
        .put(std::uint32_t{0xFFFFFFFF})
        .put(std::uint64_t{0xABCDEF0123})
        .put(std::uint64_t{0x7FF612345678})
        .astr("ab")
        .put(3.25)
        .put(std::uint32_t{0xC0000005});
    (void)builder.finish();
  }
  std::string said(std::string_view message) {
    EventView event;
    for_each_event(bytes_, [&](const EventView &one, std::int64_t, std::uint32_t) { event = one; });
    const Schema *schema = catalog_.find(event);
    if (schema == nullptr) return "unknown";
    const Decoder decoder(*schema, event.pointer_size());
    std::vector<FieldValue> values(decoder.value_count());
    values.resize(decoder.decode(event.payload(), values).values);
    return pipeline::message_text(message, *schema, values);
  }

  SchemaCatalog catalog_;
  std::vector<std::uint8_t> bytes_;
};

TEST_F(Message, IsCutWhereItWasMadeToFillMemory) {
  std::string many;
  for (int i = 0; i < 10'000; ++i)
    many += "%4!999s!";
  const std::string text = said(many);
  EXPECT_GT(text.size(), 16u << 10);
  EXPECT_LT(text.size(), 32u << 10);
}

TEST_F(Message, NumbersAreInTheBaseAndWidthOfTheirFormat) {
  EXPECT_EQ(said("%1!d! %1!u! 0x%1!x! 0x%1!08X! %1!I64x! %1!lX! %1!o!"),
            "-1 4294967295 0xffffffff 0xFFFFFFFF ffffffff FFFFFFFF 37777777777");
  EXPECT_EQ(said("%2!I64X! %2!llu! %2!#x! [%2!14x!] [%2!-14x!]"),
            "ABCDEF0123 737894400291 0xabcdef0123 [    abcdef0123] [abcdef0123    ]");
  EXPECT_EQ(said("%3!p!"), "00007FF612345678");
  EXPECT_EQ(said("50% of %1!d! at 100%C %%done%0 never"), "50 of -1 at 100C %done");
  EXPECT_EQ(said("%5!.1f! %5!8.2f! %5!s!"), "3.2     3.25 3.25");
}

TEST_F(Message, TextsTakeTheirWidthAndWhatFitsNoFormatIsShownAsItIs) {
  EXPECT_EQ(said("[%4!s!] [%4!5s!] [%4!-5s!] [%4!.1s!]"), "[ab] [   ab] [ab   ] [a]");
  EXPECT_EQ(said("%4!x! %4!d! %1!f! %1!*.*s! %1!zz! %1"), "ab ab -1 -1 -1 -1");
  EXPECT_EQ(said("%6!x! %6!s!"), "c0000005 3221225477");
}

TEST_F(Message, CharactersAreShownAsSuch) {
  EXPECT_EQ(said("%2!c!|%1!c!"), "737894400291|-1"); // which are none
  EXPECT_EQ(said("a%%b%n%9%7"), "a%b\n");
}

} // namespace
} // namespace etwrelog
