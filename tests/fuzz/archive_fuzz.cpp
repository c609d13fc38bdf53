// Archives from anywhere, with right checksums: the first byte chooses what the rest of the input is.
//   0, 1  the entries of the index of an archive, which is then opened as a trace, counted, relogged by time
//         and process, unpacked
//   2     the statistics in such an index
//   3     a whole archive: unpacked, salvaged, opened
// Nothing may crash, hang or take more memory than it is given; what is relogged reads back.
#include "output/relog.hpp"
#include "passes/statistics.hpp"
#include "tests/fuzz/archive_parts.hpp"

#include <cstdlib>

#include <unistd.h>

namespace {

using namespace etwrelog;

constexpr std::uint64_t kMemory = 64u << 20;

const std::vector<testing::ArchiveParts> &bases() {
  static const std::vector<testing::ArchiveParts> all = [] {
    std::vector<testing::ArchiveParts> made;
    for (const Codec codec : {Codec::none, Codec::xpress})
      made.push_back(testing::take_apart(testing::packed(testing::incompressible_trace(codec))));
    return made;
  }();
  return all;
}

void use_as_trace(std::unique_ptr<read::Input> archive, std::uint8_t how) {
  Result<std::unique_ptr<read::Input>> input = pipeline::open_archive(std::move(archive), kMemory);
  if (!input) return;
  Result<pipeline::Trace> trace =
      pipeline::Trace::open(std::move(*input), {.salvage = (how & 1) != 0, .file_order = (how & 2) != 0});
  if (!trace || trace->decoded_bytes() > 32u << 20) return;
  pipeline::PassOptions graph;
  graph.threads = 1;
  graph.batch_bytes = 1u << 16;
  if ((how & 4) != 0) {
    (void)pipeline::collect_statistics(*trace, graph);
    return;
  }
  static const std::string output = (std::filesystem::temp_directory_path() /
                                     ("etwrelog-archive-fuzz-" + std::to_string(::getpid()) + ".etl"))
                                        .string();
  static const int registered = std::atexit([] { std::filesystem::remove(output); });
  (void)registered;
  pipeline::RelogOptions options;
  options.output = output;
  options.replace_output = true;
  options.graph = graph;
  if ((how & 8) != 0) options.selection.from = Moment{true, 0.01, 0};
  if ((how & 16) != 0) options.selection.to = Moment{true, 0.03, 0};
  if ((how & 32) != 0) options.selection.processes = {"100"};
  pipeline::RelogReport report;
  if (!pipeline::relog(*trace, options, report)) return;
  if (!pipeline::Trace::open(output, {})) std::abort();
}

void unpack(const read::Input &archive) {
  pipeline::ArchiveOptions options;
  options.run.threads = 1;
  options.run.memory = kMemory;
  (void)pipeline::unpack_file(archive, nullptr, options);
  options.salvage = true;
  (void)pipeline::unpack_file(archive, nullptr, options);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 2) return 0;
  const Bytes rest(data + 2, size - 2);
  const testing::ArchiveParts &base = bases()[data[0] & 1];
  testing::ArchiveBytes bytes;
  switch (data[0] & 3) {
  case 2: bytes = testing::put_together(base, base.entries, rest); break;
  case 3: bytes = testing::made_plausible(rest); break;
  default: bytes = testing::put_together(base, rest, base.facts);
  }
  const auto input = read::memory_input("fuzz", bytes);
  unpack(*input);
  use_as_trace(read::memory_input("fuzz", std::move(bytes)), data[1]);
  return 0;
}
