// A whole run over a hostile trace: statistics, or a relog that the first bytes choose options for. What was
// written must read back without an error.
#include "output/relog.hpp"
#include "passes/statistics.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace etwrelog;
  if (size < 4) return 0;
  static const std::string output =
      (std::filesystem::temp_directory_path() / ("etwrelog-fuzz-" + std::to_string(::getpid()) + ".etl"))
          .string();
  static const int registered = std::atexit([] { std::remove(output.c_str()); });
  (void)registered;
  const std::uint8_t choice = data[0], what = data[1], level = data[2];
  pipeline::PassOptions graph;
  graph.threads = 1;
  graph.batch_bytes = (choice & 1) != 0 ? 1 : 1 << 20;
  const bool salvage = (choice & 2) != 0, keep = (choice & 4) != 0;
  const Result<pipeline::Trace> trace = pipeline::Trace::open(
      read::memory_input("fuzz.etl", {data + 4, data + size}), {.salvage = salvage, .file_order = keep});
  if (!trace) return 0;
  if (trace->decoded_bytes() > 32u << 20) return 0; // claims, not content: slow, and no more to find
  if ((choice & 8) != 0) {
    (void)pipeline::collect_statistics(*trace, graph);
    return 0;
  }
  pipeline::RelogOptions options;
  options.output = output;
  options.replace_output = true;
  options.codec = std::array{Codec::none, Codec::xpress, Codec::lznt1, Codec::none}[choice >> 4 & 3];
  options.level = level % 2 != 0 ? Level::fast : Level::normal;
  options.keep_grouping = keep;
  options.count = (choice & 0x40) != 0;
  options.graph = graph;
  if ((what & 1) != 0) options.selection.processes = {"*"};
  if ((what & 2) != 0) options.selection.exclude = {"a*"};
  if ((what & 4) != 0) options.selection.from = Moment{true, 0.001 * data[3], 0};
  if ((what & 8) != 0) options.selection.to = Moment{false, 0, 132'500'000'000'000'000};
  if ((what & 16) != 0) options.selection.events = {0x0F2E, 0x0524, 143};
  if ((what & 32) != 0) options.selection.processors = {0, 1};
  if ((what & 64) != 0) options.selection.children = true;
  options.selection.keep_system = (what & 128) != 0;
  pipeline::RelogReport report;
  if (!pipeline::relog(*trace, options, report)) return 0;
  const Result<pipeline::Trace> back = pipeline::Trace::open(output, {});
  if (!back) {
    std::fprintf(stderr, "%s\n", back.error().message().c_str());
    std::abort();
  }
  std::uint64_t events = 0;
  pipeline::Batch batch;
  for (std::size_t i = 0; i < back->buffers().size(); ++i) {
    batch.first = i;
    batch.count = 1;
    batch.events = 0;
    back->load(batch);
    for (const pipeline::DecodedBuffer &buffer : batch.buffers)
      back->visit(batch, buffer, [](const EventView &, std::int64_t, std::uint32_t) {});
    if (batch.error) {
      std::fprintf(stderr, "%s\n", batch.error->message().c_str());
      std::abort();
    }
    events += batch.events;
  }
  if (events != report.events_out) {
    std::fprintf(stderr, "%llu events written, %llu read back\n",
                 static_cast<unsigned long long>(report.events_out), static_cast<unsigned long long>(events));
    std::abort();
  }
  return 0;
}
