// From end to end: code of a PDB that the generator planted in a trace is named as llvm-symbolizer names it.
#include "etwrelog/profile_symbols.hpp"
#include "profile_pass/profile.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/symbol_files.hpp"
#include "tools/etwgen/generate.hpp"
#include "tools/etwgen/planted_pdb.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using namespace test_support;

TEST(PlantedPdb, SamplesAreNamedAsTheTruthSays) {
  if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";
  if (!demo_pdb()) GTEST_SKIP() << "no clang++ and lld-link here to make a PDB with";
  const auto answers = symbolizer_answers(*demo_pdb());
  if (answers.empty()) GTEST_SKIP() << "no llvm-symbolizer here to judge by";
  gen::Options options;
  options.profile = gen::find_profile("largef"); // few processes: most samples are those of the first program
  options.size = 8u << 20;
  options.cpus = 4;
  const auto planted = gen::read_planted_pdb(demo_pdb()->folder + "/demo.pdb");
  ASSERT_TRUE(planted) << planted.error().message();
  options.pdbs = {*planted};
  gen::MemorySink sink;
  const Result<gen::Generated> made = gen::generate(options, sink);
  ASSERT_TRUE(made);
  std::uint64_t samples = 0;
  std::map<std::vector<std::string>, std::uint64_t> expected, found; // by the innermost frames of samples
  std::map<std::uint32_t, std::uint64_t> lines, found_lines;
  for (const auto &[place, count] : made->truth.planted) {
    samples += count;
    const auto answer = answers.find(place.second);
    if (answer == answers.end()) continue; // between functions
    std::vector<std::string> chain;
    for (const Place &frame : answer->second)
      chain.push_back(frame.function);
    expected[chain] += count;
    if (chain.size() == 1) lines[answer->second.front().line] += count;
  }
  ASSERT_GT(samples, 500u);
  ASSERT_GE(expected.size(), 4u); // a function of its own, and calls put in place

  const Result<pipeline::Trace> trace = testing::open_trace(sink.bytes);
  ASSERT_TRUE(trace);
  Result<pipeline::ProfileResult> result = pipeline::make_profile(*trace, {}, {});
  ASSERT_TRUE(result);
  Profile &profile = result->profile;
  SymbolOptions where;
  where.folders = {demo_pdb()->folder};
  SymbolResolver resolver(where);
  std::vector<std::uint32_t> rva; // of the innermost frame, before frames of calls put in place are added
  for (const ProfileSample &sample : profile.samples)
    rva.push_back(static_cast<std::uint32_t>(profile.frames[profile.nodes[sample.node].frame].rva));
  name_native_code(profile, resolver);
  std::uint64_t in_demo = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    std::uint32_t at = profile.samples[i].node;
    const ProfileFrame &innermost = profile.frames[profile.nodes[at].frame];
    if (innermost.module == kNoIndex || profile.modules[innermost.module].name != "demo.dll") continue;
    ++in_demo;
    if (!answers.contains(rva[i])) continue;
    std::vector<std::string> chain;
    for (;; at = profile.nodes[at].parent) {
      const ProfileFrame &frame = profile.frames[profile.nodes[at].frame];
      chain.push_back(frame.function);
      if (frame.kind != FrameKind::inlined) break;
    }
    ++found[chain];
    if (chain.size() == 1) ++found_lines[innermost.line];
  }
  EXPECT_EQ(in_demo, samples);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found_lines, lines);
}

} // namespace
} // namespace etwrelog
