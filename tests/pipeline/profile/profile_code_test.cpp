// Code that runtimes made: which method ran at an address, by the lists in the trace.
#include "etwrelog/clr_events.hpp"
#include "tests/pipeline/profile/profile_runs.hpp"

namespace etwrelog {
namespace {

void put_text(std::vector<std::uint8_t> &to, std::string_view text) {
  for (const char c : text)
    to.insert(to.end(), {static_cast<std::uint8_t>(c), 0});
  to.insert(to.end(), {0, 0});
}

std::vector<std::uint8_t> method(std::uint64_t id, std::uint64_t start, std::uint32_t size,
                                 std::uint32_t flags, std::string_view type, std::string_view name) {
  std::vector<std::uint8_t> bytes(36);
  store(bytes.data(), id);
  store(bytes.data() + 8, std::uint64_t{0x99});
  store(bytes.data() + 16, start);
  store(bytes.data() + 24, size);
  store(bytes.data() + 32, flags);
  put_text(bytes, type);
  put_text(bytes, name);
  put_text(bytes, "void ()");
  return bytes;
}

class Methods : public Join {
protected:
  void clr(std::int64_t time, std::uint16_t id, const std::vector<std::uint8_t> &payload,
           bool rundown = false) {
    trace.manifest_event(
        {time}, {.provider = rundown ? format::kClrRundownGuid : format::kClrGuid, .id = id, .version = 1},
        80, 8, payload);
  }
  Lines lines() {
    pipeline::ProfileOptions options;
    options.names = true;
    return folded(profile_of(trace, options).profile);
  }
  static constexpr std::uint64_t kCode = 0x7FFA'0000'0000;
};

TEST_F(Methods, AListAtTheEndNamesWhatRanBefore) {
  trace.sample({2'000'000}, 80, kCode + 0x10);
  trace.sample({2'000'100}, 80, kCode + 0x100); // just behind
  clr(3'000'000, 144, method(1, kCode, 0x100, 4u << 7 | 8, "Contoso.Program", "Main"), true);
  std::vector<std::uint8_t> module(24);
  store(module.data(), std::uint64_t{0x99});
  put_text(module, "C:\\app\\Contoso.dll");
  clr(3'000'001, 154, module, true);
  EXPECT_EQ(lines(), (Lines{{"game.exe (8);[no stack];Contoso.dll!Contoso.Program.Main", 1},
                            {"game.exe (8);[no stack];0x7ffa00000100", 1}}));
}

// The same method, compiled anew where it is worth it: one row, and what of it ran at which tier.
TEST_F(Methods, RowsTellTheTiers) {
  clr(1'900'000, 143, method(1, kCode, 0x100, 3u << 7 | 8, "A", "Hot"));
  for (int i = 0; i < 2; ++i)
    trace.sample({2'000'000 + i}, 80, kCode + 0x10);
  clr(2'500'000, 143, method(1, kCode + 0x1000, 0x100, 4u << 7 | 8, "A", "Hot"));
  for (int i = 0; i < 5; ++i)
    trace.sample({3'000'000 + i}, 80, kCode + 0x1010);
  clr(3'500'000, 143, method(2, kCode + 0x2000, 0x100, 4u << 7 | 8, "A", "Cold"));
  trace.sample({3'600'000}, 80, kCode + 0x2010);
  pipeline::ProfileOptions options;
  options.names = true;
  const Profile profile = profile_of(trace, options).profile;
  const std::vector<ProfileRow> rows = profile_rows(profile, ProfileBy::function);
  using Tiers = std::vector<std::pair<std::string, std::uint64_t>>;
  std::map<std::string, Tiers> found;
  for (const ProfileRow &row : rows)
    if (!row.tiers.empty()) found[row.name] = row.tiers;
  EXPECT_EQ(found, (std::map<std::string, Tiers>{{"A.Hot", {{"OptimizedTier1", 5}, {"QuickJitted", 2}}},
                                                 {"A.Cold", {{"OptimizedTier1", 1}}}}));
}

TEST_F(Methods, AtAReusedAddressTheTimeDecides) {
  clr(2'000'000, 143, method(1, kCode, 0x100, 8, "A", "First"));
  trace.sample({2'000'100}, 80, kCode + 0x10);
  trace.stack_walk({2'000'101}, 2'000'100, 8, 80, {kCode + 0x10});
  clr(2'500'000, 144, method(1, kCode, 0x100, 8, "A", "First"));
  clr(3'000'000, 143, method(2, kCode, 0x80, 8, "A", "Second"));
  trace.sample({3'000'100}, 80, kCode + 0x10);
  trace.stack_walk({3'000'101}, 3'000'100, 8, 80, {kCode + 0x10}); // the same stack as before
  EXPECT_EQ(lines(), (Lines{{"game.exe (8);A.First", 1}, {"game.exe (8);A.Second", 1}}));
}

std::vector<std::uint64_t> by_line(const Profile &profile, std::initializer_list<const char *> names) {
  std::map<std::string, std::uint64_t> rows;
  for (const ProfileRow &row : profile_rows(profile, ProfileBy::line))
    rows[row.name] = row.self;
  std::vector<std::uint64_t> counts;
  for (const char *name : names)
    counts.push_back(rows[name]);
  return counts;
}

TEST_F(Methods, AMapTellsTheInstructionOfTheIntermediateLanguage) {
  clr(1'900'000, 143, method(1, kCode, 0x100, 8, "A", "Run"));
  std::vector<std::uint8_t> map(19);
  store(map.data(), std::uint64_t{1});
  store(map.data() + 17, std::uint16_t{4});
  // The offsets in the IL, then those in the code: prolog, two instructions out of order, epilog.
  for (const std::uint32_t offset : {0xFFFF'FFFEu, 0x1Cu, 0x08u, 0xFFFF'FFFDu, 0x00u, 0x40u, 0x10u, 0xF0u}) {
    map.resize(map.size() + 4);
    store(map.data() + map.size() - 4, offset);
  }
  clr(3'000'000, 150, map, true);
  std::int64_t time = 2'000'000;
  for (const std::uint64_t at : {0x00, 0x10, 0x3F, 0x40, 0xEF, 0xF0})
    trace.sample({time += 100}, 80, kCode + at);
  map[17] = 0xFF; // more entries than there are
  map[0] = 2;
  clr(3'000'001, 150, map, true);
  pipeline::ProfileOptions options;
  options.names = true;
  EXPECT_EQ(by_line(profile_of(trace, options).profile, {"A.Run (IL+0x8)", "A.Run (IL+0x1c)", "A.Run"}),
            (std::vector<std::uint64_t>{2, 2, 2}));
}

TEST_F(Methods, ScriptsTellTheirFileAndWhereAFunctionBegins) {
  const auto script = [&](std::int64_t time, std::uint16_t id, const std::vector<std::uint8_t> &payload) {
    trace.manifest_event({time}, {.provider = clr::kScriptGuid, .id = id}, 80, 8, payload);
  };
  std::vector<std::uint8_t> source(20), function(48);
  store(source.data(), std::uint64_t{77});
  put_text(source, "https://example.org/app.js");
  store(function.data() + 8, kCode);
  store(function.data() + 16, std::uint64_t{0x100});
  store(function.data() + 24, 5u);
  store(function.data() + 32, std::uint64_t{77});
  store(function.data() + 40, 12u);
  store(function.data() + 44, 9u);
  put_text(function, "draw");
  script(1'900'000, 9, function);
  script(3'000'000, 40, source);
  trace.sample({2'000'000}, 80, kCode + 0x20);
  pipeline::ProfileOptions options;
  options.names = true;
  EXPECT_EQ(by_line(profile_of(trace, options).profile, {"draw (https://example.org/app.js:12:9)"}),
            (std::vector<std::uint64_t>{1}));
}

} // namespace
} // namespace etwrelog
