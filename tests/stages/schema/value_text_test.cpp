// Texts are escaped many characters at once; one by one they are the same.
#include "schema/value_text.hpp"

#include <random>

#include <gtest/gtest.h>

namespace etwrelog::schema {
namespace {

// As RFC 8259 has it, a character at a time.
void add_escaped(std::string &out, unsigned c) {
  constexpr char kDigits[] = "0123456789abcdef";
  if (c == '"' || c == '\\')
    out += '\\', out += static_cast<char>(c);
  else if (c == '\n')
    out += "\\n";
  else if (c == '\r')
    out += "\\r";
  else if (c == '\t')
    out += "\\t";
  else if (c < 0x20)
    out += "\\u00", out += kDigits[c >> 4], out += kDigits[c & 15];
  else if (c < 0x80)
    out += static_cast<char>(c);
  else if (c < 0x800)
    out += static_cast<char>(0xC0 | c >> 6), out += static_cast<char>(0x80 | (c & 0x3F));
  else
    out += static_cast<char>(0xE0 | c >> 12), out += static_cast<char>(0x80 | (c >> 6 & 0x3F)),
        out += static_cast<char>(0x80 | (c & 0x3F));
}

TEST(ValueText, EscapesManyCharactersAtOnceAsOneByOne) {
  std::mt19937 random(1);
  constexpr char16_t kOdd[] = {u'"', u'\\', u'\n', 0x1F, 0x7F, 0xE9, 0x4E2D};
  for (std::size_t size = 0; size < 90; ++size)
    for (int round = 0; round < 40; ++round) {
      std::vector<std::uint8_t> units, bytes;
      std::string wide = "before ", narrow = "before ";
      for (std::size_t i = 0; i < size; ++i) {
        // Mostly plain, so that whole stretches are; now and then one that is not, at any place.
        const unsigned c = random() % 24 == 0 ? kOdd[random() % std::size(kOdd)] : 0x20 + random() % 0x5F;
        units.push_back(static_cast<std::uint8_t>(c)), units.push_back(static_cast<std::uint8_t>(c >> 8));
        add_escaped(wide, c);
        bytes.push_back(static_cast<std::uint8_t>(c));
        add_escaped(narrow, c & 0xFF);
      }
      std::string out = "before ";
      append_json_utf16(out, units);
      EXPECT_EQ(out, wide);
      out = "before ";
      append_json_cp1252(out, bytes);
      EXPECT_EQ(out, narrow);
    }
}

TEST(ValueText, WritesHexadecimalNumbersOfAnyLength) {
  for (unsigned bits = 0; bits <= 64; ++bits) {
    const std::uint64_t value = bits == 0 ? 0 : 0x8123'4567'89AB'CDEFu >> (64 - bits);
    std::string quoted, plain;
    {
      TextPen pen(quoted);
      put_quoted_hex(pen, value);
    }
    append_hex(plain, value);
    EXPECT_EQ(quoted, '"' + plain + '"');
  }
}

// As many as fill the pen several times over, long ones and short ones.
TEST(ValueText, WritesListsOfHexadecimalNumbersAsOneByOne) {
  for (const std::size_t size : {4, 8})
    for (std::size_t count : {0, 1, 2, 47, 48, 49, 200}) {
      std::vector<std::uint8_t> values(count * size);
      std::string listed = "[", expected = listed;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t value = 0x9E37'79B9'7F4A'7C15u * (i + 1) >> (i * 7 % 64),
                            cut = size == 4 ? value & 0xFFFF'FFFF : value;
        std::memcpy(&values[i * size], &cut, size);
        expected += i == 0 ? "\"" : ",\"";
        append_hex(expected, cut);
        expected += '"';
      }
      {
        TextPen pen(listed);
        put_quoted_hexes(pen, values, size);
        pen.put(']');
      }
      EXPECT_EQ(listed, expected + "]");
    }
}

TEST(ValueText, APenKeepsTheOrderOfPiecesOfAnyLength) {
  std::string out = "begin:", expected = out;
  {
    TextPen pen(out);
    for (std::size_t size = 0; size < 3000; size += 97) {
      const std::string piece(size, static_cast<char>('a' + size % 26));
      pen.put_long(piece), pen.put(','), put_unsigned(pen, size);
      expected += piece + "," + std::to_string(size);
      EXPECT_EQ(pen.size(), expected.size());
    }
    const std::size_t mark = pen.size();
    pen.put("what goes again"), pen.cut(mark);
  }
  EXPECT_EQ(out, expected);
}

TEST(ValueText, NumbersHaveTheDigitsThatTheyHave) {
  const auto digits = [](std::uint64_t value) {
    std::string out;
    TextPen pen(out);
    put_unsigned(pen, value);
    pen.flush();
    return out;
  };
  for (std::uint64_t value = 0; value < 120'000; ++value)
    ASSERT_EQ(digits(value), std::to_string(value));
  std::uint64_t random = 1;
  for (int i = 0; i < 200'000; ++i) {
    random = random * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    const std::uint64_t value = random >> (i % 64);
    ASSERT_EQ(digits(value), std::to_string(value));
  }
  std::uint64_t power = 1;
  for (int i = 0; i < 20; ++i, power *= 10)
    for (const std::uint64_t value : {power - 1, power, power + 1, power * 9 + (power - 1)})
      EXPECT_EQ(digits(value), std::to_string(value));
  EXPECT_EQ(digits(UINT64_MAX), "18446744073709551615");
}

} // namespace
} // namespace etwrelog::schema
