#include "tools/topics.hpp"

#include "tools/cli.hpp"

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

constexpr ExitMeaning kMeanings[] = {
    {kDone, "done"},
    {kFailed, "failed: what failed left no output (of several files the others are there), or a condition of "
              "diff --fail-if holds or names nothing"},
    {kUsage, "wrong usage"},
    {kDamageSkipped, "done; damage was skipped on request (--salvage)"},
    {kIncomplete, "what was asked for is written, whole, but what was to follow could not be done: the "
                  "original not deleted, the report not written, the folder not synced"},
};

constexpr std::string_view kSelection =
    R"(Everything given must hold; an option given several times means any of its values.
  -p NAME|ID        events of processes of that image name (* and ?; "game" is game.exe, too) or id; ids
                    count by lifetime
  --children        and of their descendants
  --cmdline REGEX   of processes whose command line contains it (RE2)
  --exclude NAME    but not of these
  --from, --to      a time: 12.5s after the start, or UTC such as 2026-01-31T10:00:00; ends included
  --provider P[:KEYWORDS[:LEVEL]]   by name or GUID
  --event NAME|ID   events of that name, from any of its slashes on and with * and ?, as stats, schema and
                    export show them: GC/AllocationTick, CSwitch, "DiskIO/*"; or ids, hook ids of kernel
                    events, opcodes of classic events
  --opcode, --task, --channel, --activity   by what the header says of them
  --cpu N           of that processor
  --keep-system     with a process also events of no process: DPC, ISR and others
With a process go the stacks, images, file names and manifests that its events refer to.)";

constexpr std::string_view kOutputs =
    R"(An output exists whole or not at all. An existing file is replaced only with --force; never an input, never a
file that the same run has made, never anything but a regular file.)";

constexpr std::string_view kSizes =
    R"(Sizes take K, M, G (powers of 1024). Times take s, ms, us, m, h or a UTC date. Numbers that are printed use
powers of 1000 and say their unit; --json prints exact integers.)";

std::string inputs_text() {
  return fmt::format(
      R"(Traces (.etl) from Windows 7 on, 32 and 64-bit, compressed or not, logs never closed, circular logs and files cut
off by a crash; archives (.etlz) as if they were traces; either inside a {}; "-" is standard
input. All traces of a .zip, as PerfView's .etl.zip and Visual Studio's .diagsession are, are one trace. --salvage steps
over damage, lists what it skipped, and exits with 3.)",
      wrappings());
}

// Broken between words, as wide as the other topics.
std::string statuses_text() {
  constexpr std::size_t kWidth = 115;
  std::string text;
  for (const ExitMeaning &meaning : kMeanings) {
    std::string line = fmt::format("{}  ", meaning.status);
    std::string_view rest = meaning.text;
    while (line.size() + rest.size() > kWidth) {
      const std::size_t end = rest.rfind(' ', kWidth - line.size());
      text += line + std::string(rest.substr(0, end)) + "\n";
      rest.remove_prefix(end + 1);
      line = "   ";
    }
    text += line + std::string(rest) + (meaning.status == kIncomplete ? "" : "\n");
  }
  return text;
}

} // namespace

std::span<const ExitMeaning> exit_meanings() {
  return kMeanings;
}

std::span<const Topic> topics() {
  static const Topic kTopics[] = {
      {"selection", "Which events a command works on", std::string(kSelection)},
      {"inputs", "What is read", inputs_text()},
      {"outputs", "What is written", std::string(kOutputs)},
      {"exit-status", "What the exit status says", statuses_text()},
      {"sizes", "Sizes, times and numbers", std::string(kSizes)},
  };
  return kTopics;
}

} // namespace etwrelog::cli
