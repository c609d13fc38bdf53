#include "etwrelog/text.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

std::string from_units(std::u16string_view units) {
  return utf8_from_utf16({reinterpret_cast<const std::uint8_t *>(units.data()), units.size() * 2});
}
std::string from_bytes(std::string_view bytes) {
  return utf8_from_bytes({reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size()});
}

TEST(Text, ConvertsUtf16OfEveryLength) {
  EXPECT_EQ(from_units(u"a\u00e9\u20ac\U0001F600"), "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(from_units(u""), "");
}

TEST(Text, FindsWhatIsNotAsciiWhereverItStands) {
  for (std::size_t length = 1; length < 20; ++length)
    for (std::size_t at = 0; at < length; ++at)
      for (const char16_t other : {u'\u0080', u'\u00ff', u'\u0100', u'\u7f00'}) {
        std::u16string units;
        for (std::size_t i = 0; i < length; ++i)
          units += static_cast<char16_t>(u'a' + i);
        units[at] = other;
        const std::string text = from_units(units);
        EXPECT_EQ(utf16_from_utf8(text), units) << length << ", " << at;
        EXPECT_EQ(from_bytes(text), text);
        std::string bytes(length, 'a');
        bytes[at] = '\xE9';
        EXPECT_EQ(from_bytes(bytes), std::string(at, 'a') + "\u00e9" + std::string(length - at - 1, 'a'));
      }
}

TEST(Text, ReplacesUnpairedSurrogates) {
  const char16_t high[] = {0xD83D, u'x'}, low[] = {0xDE00, u'x'}, last[] = {u'x', 0xD83D},
                 twice[] = {0xD83D, 0xD83D, 0xDE00};
  EXPECT_EQ(from_units({high, 2}), "\xEF\xBF\xBDx");
  EXPECT_EQ(from_units({low, 2}), "\xEF\xBF\xBDx");
  EXPECT_EQ(from_units({last, 2}), "x\xEF\xBF\xBD");
  EXPECT_EQ(from_units({twice, 3}), "\xEF\xBF\xBD\xF0\x9F\x98\x80");
}

TEST(Text, IgnoresAnOddLastByte) {
  const std::uint8_t bytes[] = {'a', 0, 'b'};
  EXPECT_EQ(utf8_from_utf16(bytes), "a");
}

TEST(Text, TakesValidUtf8AsItIsAndTheRestAsLatin1) {
  EXPECT_EQ(from_bytes("grün.exe"), "grün.exe");
  EXPECT_EQ(from_bytes("gr\xFCn.exe"), "grün.exe");
  EXPECT_EQ(from_bytes("\xC0\x80"), "\xC3\x80\xC2\x80") << "an overlong form is not UTF-8";
  EXPECT_EQ(from_bytes("\xED\xA0\x80").size(), 6u) << "nor is a surrogate";
  EXPECT_EQ(from_bytes("\xF4\x90\x80\x80").size(), 8u) << "nor is a code point past U+10FFFF";
  EXPECT_EQ(from_bytes("a\xE2\x82"), "a\xC3\xA2\xC2\x82") << "nor is a sequence that ends early";
}

TEST(Text, RoundTripsThroughUtf16) {
  for (const std::string text : {"", "a", "grün", "\xF0\x9F\x98\x80 ok", "\xEF\xBF\xBD"})
    EXPECT_EQ(from_units(utf16_from_utf8(text)), text);
  EXPECT_EQ(utf16_from_utf8("\xFF\x80 x\xF0"), (std::u16string{0xFFFD, 0xFFFD, u' ', u'x', 0xFFFD}));
}

} // namespace
} // namespace etwrelog
