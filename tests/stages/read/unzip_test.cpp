// Traces out of zips, which anybody can make: what is taken, what is left alone, and what is refused.
#include "read/unzip.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/zip_files.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::SyntheticTrace;
using Buffer = std::vector<std::uint8_t>;

Buffer text(std::string_view words) {
  return {words.begin(), words.end()};
}

Buffer small_trace(std::int64_t first = 2'000'000) {
  SyntheticTrace t({.buffer_size = 0x1000});
  t.sample({first}, 7);
  return t.bytes();
}

auto unzipped(Buffer zip, const read::UnzipLimits &limits = {}) {
  return read::unzip(*read::memory_input("x.zip", std::move(zip)), {}, limits);
}

TEST(Unzip, TakesEveryTraceAndNothingElse) {
  const Buffer first = small_trace(), second = small_trace(3'000'000), third = small_trace(4'000'000);
  const auto traces = unzipped(testing::zip_of({{"metadata.xml", text("<Package/>")},
                                                {"a/User.ETL", first},
                                                {"x.etl.NGENPDB/m.pdb", text("Microsoft C/C++ MSF 7.00")},
                                                {"0f3e-11/capture", second}, // a .diagsession may do that
                                                {"../../up.etl", third},
                                                {"empty", {}},
                                                {"LogFile.txt", Buffer(100'000, 'x')}}));
  ASSERT_TRUE(traces) << traces.error().message();
  ASSERT_EQ(traces->size(), 3u);
  const std::vector<std::pair<std::string, Buffer>> expected = {
      {"a/User.ETL", first}, {"0f3e-11/capture", second}, {"../../up.etl", third}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const read::Input &trace = *(*traces)[i];
    EXPECT_EQ(trace.name(), "x.zip:" + expected[i].first);
    EXPECT_EQ(trace.file(), "x.zip");
    EXPECT_EQ(trace.member(), expected[i].first);
    Buffer bytes(trace.size());
    ASSERT_TRUE(trace.read_at(0, bytes));
    EXPECT_TRUE(bytes == expected[i].second);
  }
}

TEST(Unzip, NothingIsWrittenUnderTheNameOfAMember) {
  const testing::TempDir directory;
  const std::string outside = directory.file("outside.etl");
  const auto traces = unzipped(testing::zip_of({{outside, small_trace()}, {"../../up.etl", small_trace()}}));
  ASSERT_TRUE(traces) << traces.error().message();
  EXPECT_TRUE(directory.names().empty());
}

TEST(Unzip, TwoTracesOfOneNameAreRefused) {
  const auto traces =
      unzipped(testing::zip_of({{"a.etl", small_trace()}, {"a.etl", small_trace(3'000'000)}}));
  ASSERT_FALSE(traces);
  EXPECT_EQ(traces.error().file, "x.zip:a.etl");
  EXPECT_NE(traces.error().what.find("two traces"), std::string::npos);
  EXPECT_TRUE(
      unzipped(testing::zip_of({{"a.txt", text("a")}, {"a.etl", small_trace()}, {"a.txt", text("b")}})));
}

TEST(Unzip, MembersAndTracesAreBounded) {
  std::vector<testing::ZipMember> many;
  for (int i = 0; i < 5000; ++i)
    many.emplace_back("symbols/" + std::to_string(i) + ".pdb", text("pdb"));
  many.emplace_back("a.etl", small_trace());
  const Buffer zip = testing::zip_of(many);
  const auto found = unzipped(zip);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->size(), 1u) << "thousands of members are no harm";
  const auto members = unzipped(zip, {.members = 4000});
  ASSERT_FALSE(members);
  EXPECT_EQ(members.error().kind, ErrorKind::unsupported);
  many.clear();
  for (int i = 0; i < 300; ++i)
    many.emplace_back(std::to_string(i) + ".etl", small_trace());
  const auto traces = unzipped(testing::zip_of(many));
  ASSERT_FALSE(traces);
  EXPECT_NE(traces.error().message().find("at most 256"), std::string::npos) << traces.error().message();
}

// A central directory that names one member many times, as archives that fill disks have it.
Buffer overlapping(std::size_t copies) {
  Buffer zip = testing::zip_of({{"00.etl", Buffer(300'000, 0)}});
  const auto find = [&](std::string_view magic) {
    return static_cast<std::size_t>(std::search(zip.begin(), zip.end(), magic.begin(), magic.end()) -
                                    zip.begin());
  };
  const std::size_t directory = find("PK\x01\x02"), end = find("PK\x05\x06");
  const Buffer entry(zip.begin() + static_cast<std::ptrdiff_t>(directory),
                     zip.begin() + static_cast<std::ptrdiff_t>(end));
  Buffer tail(zip.begin() + static_cast<std::ptrdiff_t>(end), zip.end());
  zip.resize(end);
  for (std::size_t i = 1; i < copies; ++i) {
    Buffer copy = entry;
    constexpr std::size_t kNameAt = 46;
    copy[kNameAt] = static_cast<std::uint8_t>('0' + i / 10);
    copy[kNameAt + 1] = static_cast<std::uint8_t>('0' + i % 10);
    zip.insert(zip.end(), copy.begin(), copy.end());
  }
  for (const std::size_t at : {8u, 10u})
    store(tail.data() + at, static_cast<std::uint16_t>(copies));
  store(tail.data() + 12, static_cast<std::uint32_t>(copies * entry.size()));
  zip.insert(zip.end(), tail.begin(), tail.end());
  return zip;
}

TEST(Unzip, MembersThatOverlapDoNotFillTheDisk) {
  const auto all = unzipped(overlapping(60), {.bytes = 0});
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::corrupt);
  EXPECT_NE(all.error().what.find("reaches into"), std::string::npos) << all.error().message();
  const Buffer one = overlapping(1);
  EXPECT_TRUE(unzipped(one, {.bytes = 0}));
  EXPECT_TRUE(unzipped(one, {.of_one_byte = 1, .bytes = 300'000}));
  const auto refused = unzipped(one, {.of_one_byte = 1, .bytes = 299'999});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::corrupt);
  EXPECT_EQ(refused.error().file, "x.zip:00.etl");
  EXPECT_NE(refused.error().message().find("unpacks to more"), std::string::npos)
      << refused.error().message();
}

TEST(Unzip, DamageNamesTheMember) {
  Buffer zip = testing::zip_of({{"good.etl", small_trace()}, {"bad.etl", Buffer(50'000, 'q')}});
  // In the compressed data of the second member.
  const std::string_view name = "bad.etl";
  const auto at = std::search(zip.begin(), zip.end(), name.begin(), name.end());
  ASSERT_NE(at, zip.end());
  std::fill_n(at + static_cast<std::ptrdiff_t>(name.size()) + 40, 8, std::uint8_t{0xFF});
  const auto traces = unzipped(zip);
  ASSERT_FALSE(traces);
  EXPECT_EQ(traces.error().file, "x.zip:bad.etl") << traces.error().message();
}

constexpr unsigned kUtf8 = 0x800, kEncrypted = 1;
constexpr std::string_view kUmlaut = "\xC3\xBC.etl";

// Where the content of a stored member begins.
std::size_t content_of(const Buffer &zip, std::string_view name) {
  const Buffer bytes = text(name);
  const auto at = std::search(zip.begin(), zip.end(), bytes.begin(), bytes.end());
  EXPECT_NE(at, zip.end());
  return static_cast<std::size_t>(at - zip.begin()) + name.size();
}

TEST(Unzip, NamesOutsideAsciiAreTheirOwn) {
  const testing::StoredZip zip{.members = {{"a.etl", small_trace()}, {std::string(kUmlaut), small_trace()}},
                               .flags = kUtf8};
  const auto traces = unzipped(zip.bytes());
  ASSERT_TRUE(traces) << traces.error().message();
  ASSERT_EQ(traces->size(), 2u);
  EXPECT_EQ((*traces)[1]->member(), kUmlaut);
}

TEST(Unzip, ATraceThatCannotBeReadIsAnErrorWhateverItsName) {
  for (const std::string &name :
       {std::string(kUmlaut), std::string("b.001"), std::string("folder/capture")}) {
    testing::StoredZip zip{.members = {{"a.etl", small_trace()}, {name, small_trace()}}, .flags = kUtf8};
    ASSERT_EQ(unzipped(zip.bytes())->size(), 2u) << name;
    // In its first event: its head could be read, and is none of a trace.
    Buffer damaged = zip.bytes();
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(content_of(damaged, name)) + 0x48, 4, 0);
    zip.flags |= kEncrypted;
    const Buffer encrypted = zip.bytes();
    zip.flags = kUtf8;
    zip.method = 99;
    const Buffer unknown = zip.bytes();
    zip.method = 8;
    const Buffer undeflated = zip.bytes(); // bytes of a trace are no deflate stream
    const std::pair<const char *, Buffer> all[] = {
        {"damaged", damaged}, {"encrypted", encrypted}, {"unknown", unknown}, {"undeflated", undeflated}};
    for (const auto &[what, bad] : all) {
      const auto traces = unzipped(bad);
      ASSERT_FALSE(traces) << name << ' ' << what;
      EXPECT_EQ(traces.error().kind, ErrorKind::corrupt);
      EXPECT_EQ(traces.error().file.find("x.zip:"), 0u) << traces.error().message();
    }
    EXPECT_EQ(unzipped(damaged).error().file, "x.zip:" + name);
  }
}

TEST(Unzip, WhatIsClearlyNoTraceMayBeDamaged) {
  for (const std::string name : {"symbols/m.pdb/1/m.pdb", "LogFile.TXT", "a.xml", "shot.png"}) {
    Buffer zip = testing::StoredZip{.members = {{"a.etl", small_trace()}, {name, Buffer(1000, 'p')}}}.bytes();
    zip[content_of(zip, name)] ^= 1;
    const auto traces = unzipped(zip);
    ASSERT_TRUE(traces) << traces.error().message();
    EXPECT_EQ(traces->size(), 1u) << name;
  }
}

TEST(Unzip, FoldersAndLinksAreNoTraces) {
  for (const auto &[name, made_on, attributes, content] :
       {std::tuple{"a.etl/", 3u, 0u, text("")},
        {"a.etl", 0u, 0x10u, text("")},
        {"a.etl", 3u, 0120777u << 16, text("../real.etl")}}) {
    const auto traces = unzipped(
        testing::StoredZip{.members = {{name, content}}, .made_on = made_on, .attributes = attributes}
            .bytes());
    ASSERT_FALSE(traces);
    EXPECT_EQ(traces.error().kind, ErrorKind::unsupported) << traces.error().message();
  }
  // With content it is a file, whatever else is said of it.
  EXPECT_TRUE(unzipped(
      testing::StoredZip{.members = {{"a.etl", small_trace()}}, .made_on = 0, .attributes = 0x10}.bytes()));
}

// Which would be left out without a word.
TEST(Unzip, ACompressedTraceIsAnError) {
  for (const char *name : {"b.etl.gz", "B.ETL.ZST", "b.etlz.xz"}) {
    const auto traces = unzipped(testing::zip_of({{"a.etl", small_trace()}, {name, text("anything")}}));
    ASSERT_FALSE(traces) << name;
    EXPECT_EQ(traces.error().advice, Advice::unpack);
    EXPECT_EQ(traces.error().file, std::string("x.zip:") + name);
  }
  EXPECT_TRUE(unzipped(testing::zip_of({{"a.etl", small_trace()}, {"b.log.gz", text("anything")}})));
}

TEST(Unzip, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  const auto traces = read::unzip(*read::memory_input("x.zip", testing::zip_of({{"a.etl", small_trace()}})),
                                  {.stop = stop.get_token()});
  ASSERT_FALSE(traces);
  EXPECT_EQ(traces.error().kind, ErrorKind::cancelled);
}

} // namespace
} // namespace etwrelog
