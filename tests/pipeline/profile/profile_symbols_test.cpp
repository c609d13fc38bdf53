// Names of native code in a profile: functions, lines, calls put in place, and the reasons where there are
// none.
#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_report.hpp"
#include "etwrelog/profile_symbols.hpp"
#include "tests/support/symbol_files.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using namespace test_support;

// One stack of two frames in demo.exe, then one in a module that nobody has a PDB of.
Profile profile_of(const DemoPdb &pdb, std::uint32_t inner_rva, std::uint32_t outer_return) {
  Profile p;
  p.duration = 1'000'000;
  p.processes = {{1, "demo.exe", ""}};
  p.threads = {{2, 0, ""}};
  for (const char *name : {"demo.exe", "other.dll", "bare.dll"}) {
    ProfileModule m;
    m.name = m.path = name;
    m.base = 0x140000000;
    m.size = 0x10000;
    p.modules.push_back(m);
  }
  p.modules[0].pdb_name = "C:\\build\\demo.pdb";
  p.modules[0].pdb_guid = pdb.guid;
  p.modules[0].pdb_age = pdb.age;
  p.modules[1].pdb_name = "other.pdb";
  p.modules[1].pdb_guid = pdb.guid;
  const auto frame = [&](std::uint32_t module, std::uint32_t rva, bool caller) {
    ProfileFrame f;
    f.module = module;
    f.rva = rva;
    f.address = p.modules[module].base + rva;
    f.caller = caller;
    f.kind = FrameKind::native;
    p.frames.push_back(f);
  };
  frame(0, outer_return, true);
  frame(0, inner_rva, false);
  frame(1, 0x1234, false);
  frame(2, 0x99, false);
  p.nodes.push_back({0, 0});
  p.nodes.push_back({1, 1});
  p.nodes.push_back({2, 2});
  p.nodes.push_back({0, 3});
  p.samples = {{10, 1, 0, 2}, {20, 1, 0, 3}, {30, 2, 0, 4}};
  return p;
}

std::vector<std::string> stack_of(const Profile &p, const ProfileSample &sample) {
  std::vector<std::string> stack;
  for (std::uint32_t at = sample.node; at != 0; at = p.nodes[at].parent)
    stack.push_back(frame_text(p, p.frames[p.nodes[at].frame]));
  std::ranges::reverse(stack);
  return stack;
}

TEST(ProfileSymbols, NamesFramesAndAddsThoseOfCallsPutInPlace) {
  if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";
  if (!demo_pdb()) GTEST_SKIP() << "no clang++ and lld-link here to make a PDB with";
  const DemoPdb &pdb = *demo_pdb();
  SymbolOptions options;
  options.folders = {pdb.folder};
  SymbolResolver resolver(options);
  // Where physics begins, and an address in it where a call was put in place.
  ModuleIdentity identity;
  identity.pdb_name = "demo.pdb";
  identity.pdb_guid = pdb.guid;
  identity.pdb_age = pdb.age;
  const auto symbols = resolver.load(identity);
  SymbolNames names;
  std::uint32_t deep = 0, update_end = 0;
  for (std::uint32_t rva = 0x1000; rva < 0x1400; ++rva) {
    if (!symbols->lookup(rva, names) || names.estimated) continue;
    if (deep == 0 && names.frames.size() == 3) deep = rva;
    if (names.frames.size() == 1 && names.frames[0].function == "game::Scene::update") update_end = rva + 1;
  }
  ASSERT_GT(deep, 0u);
  ASSERT_GT(update_end, 0u);
  // A call at the very end of a function returns to what lies behind it.
  Profile p = profile_of(pdb, deep, update_end);
  name_native_code(p, resolver);
  EXPECT_EQ(
      stack_of(p, p.samples[1]),
      (std::vector<std::string>{"demo.exe!game::Scene::update", "demo.exe!game::physics",
                                "demo.exe!game::inner", "demo.exe!game::Body::weight", "other.dll+0x1234"}));
  const ProfileFrame &innermost = p.frames[p.nodes[p.samples[0].node].frame];
  EXPECT_EQ(innermost.kind, FrameKind::inlined);
  EXPECT_TRUE(innermost.file.ends_with("demo.cpp"));
  EXPECT_GT(innermost.line, 0u);
  EXPECT_EQ(p.modules[0].symbols, Unresolved::none);
  EXPECT_EQ(p.modules[1].symbols, Unresolved::pdb_not_found);
  EXPECT_NE(p.modules[1].detail.find(pdb.folder), std::string::npos) << p.modules[1].detail;
  EXPECT_EQ(p.modules[2].symbols, Unresolved::no_identity);
  EXPECT_EQ(p.frames[2].why, Unresolved::pdb_not_found);
  EXPECT_EQ(p.frames[3].why, Unresolved::no_identity);
}

// Exported where nobody has the PDB, named where somebody has.
// They read like others, so that profiles compare whatever PDBs there are.
TEST(ProfileSymbols, NamesOfTheNearestPublicSymbolAreMarked) {
  if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";
  for (const bool debug : {false, true}) {
    const std::optional<DemoPdb> &pdb = demo_pdb(debug);
    if (!pdb) GTEST_SKIP() << "no clang++ and lld-link here to make a PDB with";
    SymbolOptions options;
    options.folders = {pdb->folder};
    SymbolResolver resolver(options);
    Profile profile = profile_of(*pdb, 0x1004, 0x1008);
    name_native_code(profile, resolver);
    std::set<std::string> marked;
    for (const ProfileRow &row : profile_rows(profile, ProfileBy::function))
      if (row.estimated) marked.insert(row.name);
    std::size_t in_tree = 0;
    for (const ProfileTreeRow &row : profile_tree(profile, 0)) {
      in_tree += row.estimated;
      EXPECT_EQ(row.estimated, marked.contains(row.name)) << row.name;
    }
    EXPECT_EQ(marked.empty(), debug);
    EXPECT_EQ(in_tree == 0, debug);
    EXPECT_EQ(estimated_weight(profile), debug ? 0u : 1u);
    for (const ProfileRow &row : profile_rows(profile, ProfileBy::module))
      EXPECT_FALSE(row.estimated) << row.name;
    for (const ProfileFormat format : {ProfileFormat::svg, ProfileFormat::html, ProfileFormat::folded}) {
      std::string file;
      ASSERT_TRUE(write_profile(profile, format, {}, [&](Bytes bytes) {
        file.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
        return Result<void>();
      }));
      const std::string mark = format == ProfileFormat::html ? "\"estimated\":[" : "(nearest public symbol)";
      const std::size_t at = file.find(mark);
      const bool is_marked = at != std::string::npos && file[at + mark.size()] != ']';
      EXPECT_EQ(is_marked, !debug && format != ProfileFormat::folded) << profile_format_name(format);
    }
  }
}

TEST(ProfileSymbols, NamesAnExportLater) {
  if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";
  if (!demo_pdb()) GTEST_SKIP() << "no clang++ and lld-link here to make a PDB with";
  SymbolOptions options;
  options.folders = {demo_pdb()->folder};
  SymbolResolver resolver(options);
  for (std::uint32_t rva = 0x1000; rva < 0x1100; rva += 5) {
    const Profile bare = profile_of(*demo_pdb(), rva, rva + 0x40);
    Profile named = bare;
    name_native_code(named, resolver);
    for (const ProfileFormat format :
         {ProfileFormat::firefox, ProfileFormat::speedscope, ProfileFormat::pprof}) {
      std::vector<std::uint8_t> file;
      ASSERT_TRUE(write_profile(bare, format, {}, [&](Bytes bytes) {
        file.insert(file.end(), bytes.begin(), bytes.end());
        return Result<void>();
      }));
      Result<ReadProfile> read = read_profile(file);
      ASSERT_TRUE(read) << read.error().message();
      name_native_code(read->profile, resolver);
      // One of the samples stands in demo.exe alone; where times are lost, so is the order.
      const auto in_demo = [](const Profile &p) {
        std::vector<std::vector<std::string>> stacks;
        for (const ProfileSample &sample : p.samples)
          if (stack_of(p, sample).back().starts_with("demo.exe")) stacks.push_back(stack_of(p, sample));
        return stacks;
      };
      EXPECT_EQ(in_demo(read->profile), in_demo(named))
          << profile_format_name(format) << " 0x" << std::hex << rva;
    }
  }
}

TEST(ProfileSymbols, CountsModulesOnceASample) {
  const Profile p = profile_of({}, 0x1000, 0x1100);
  const std::vector<ModuleUse> use = module_use(p);
  ASSERT_EQ(use.size(), 3u);
  EXPECT_EQ(std::tie(use[0].module, use[0].self, use[0].total), std::make_tuple(2u, 2ull, 2ull));
  for (const ModuleUse &one : use)
    if (one.module == 0) {
      EXPECT_EQ(std::make_pair(one.self, one.total), std::make_pair(std::uint64_t{1}, std::uint64_t{2}));
    }
}

} // namespace
} // namespace etwrelog
