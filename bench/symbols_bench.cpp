// How long a PDB takes: to a table in memory, from a table in a file to the first name, and a look-up.
//   symbols_bench FILE.pdb [ROUNDS]
// The best round of each counts. Processor time, as a machine that does other things too cannot change that
// much.
#include "base/mapping.hpp"
#include "base/output_file.hpp"
#include "symbols/pdb.hpp"
#include "symbols/table.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

namespace etwrelog {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int fail(const Error &error) {
  std::fprintf(stderr, "symbols_bench: %s\n", error.message().c_str());
  return 1;
}

int run(const std::string &path, int rounds) {
  double reading = 1e9, sorting = 1e9, opening = 1e9, looking = 1e9;
  std::vector<std::uint8_t> table;
  std::uint64_t bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    const Result<base::Mapping> file = base::Mapping::open(path);
    if (!file) return fail(file.error());
    bytes = file->bytes().size();
    const double begin = processor_seconds();
    Result<symbols::RawSymbols> raw = symbols::read_pdb(file->bytes(), path);
    if (!raw) return fail(raw.error());
    const double read = processor_seconds();
    table = symbols::make_table(std::move(*raw));
    reading = std::min(reading, read - begin);
    sorting = std::min(sorting, processor_seconds() - read);
  }
  const std::string kept = (std::filesystem::temp_directory_path() /
                            fmt::format("symbols_bench.{}.sym", static_cast<const void *>(table.data())))
                               .string();
  Result<base::OutputFile> file = base::OutputFile::create(kept, true);
  if (!file) return fail(file.error());
  if (const Result<void> written = file->append(table); !written) return fail(written.error());
  if (const Result<void> done = file->commit(); !done) return fail(done.error());
  SymbolNames names;
  for (int round = 0; round < rounds; ++round) {
    const double begin = processor_seconds();
    const Result<base::Mapping> mapping = base::Mapping::open(kept);
    if (!mapping) return fail(mapping.error());
    const Result<symbols::TableView> view = symbols::TableView::open(mapping->bytes());
    if (!view) return fail(view.error());
    if (view->functions() == 0) break;
    view->lookup(view->function(view->functions() / 2).rva, names);
    const double open = processor_seconds();
    constexpr std::size_t kLookups = 100'000;
    for (std::size_t i = 0; i < kLookups; ++i)
      view->lookup(view->function(i * 7919 % view->functions()).rva + 1, names);
    opening = std::min(opening, open - begin);
    looking = std::min(looking, (processor_seconds() - open) / kLookups);
  }
  std::filesystem::remove(kept);
  const Result<symbols::TableView> view = symbols::TableView::open(table);
  fmt::print("{}: {:.1f} MB\n  read {:.3f} s, sort {:.3f} s: a table of {:.1f} MB, {} functions\n"
             "  open and first name {:.3f} ms, a name {:.2f} us\n",
             path, static_cast<double>(bytes) / 1e6, reading, sorting,
             static_cast<double>(table.size()) / 1e6, view ? view->functions() : 0, opening * 1e3,
             looking * 1e6);
  return 0;
}

} // namespace
} // namespace etwrelog

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: symbols_bench FILE.pdb [ROUNDS]\n");
    return 2;
  }
  return etwrelog::run(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 3);
}
