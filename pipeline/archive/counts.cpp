// What the index of an archive says of a trace as a whole.
#include "archive/segments.hpp"
#include "passes/statistics.hpp"

namespace etwrelog::pipeline {
namespace {

// An input that somebody else owns.
class UnownedInput final : public read::Input {
public:
  explicit UnownedInput(const read::Input &input) : read::Input(input.name()), input_(input) {}
  [[nodiscard]] std::uint64_t size() const override { return input_.size(); }
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return input_.read_at(offset, into);
  }

private:
  const read::Input &input_;
};

constexpr std::size_t kMostStacks = 2u << 20; // of a trace that is counted: some 100 bytes each

} // namespace

bool to_be_counted(const read::Input &input, bool trace, const ArchiveOptions &options) {
  return trace && (options.counts || input.size() >= options.count_from);
}

Result<Trace> open_again(const read::Input &input) {
  return Trace::open(std::make_unique<UnownedInput>(input), {false, true});
}

Result<std::vector<std::uint8_t>> count_trace(const read::Input &input, const ArchiveOptions &options,
                                              SharedProgress &progress) {
  const Result<Trace> trace = open_again(input);
  if (!trace) return std::vector<std::uint8_t>();
  PassOptions graph(options.run);
  std::string phase;
  std::uint64_t before = 0;
  graph.progress = [&](const Progress &now) {
    if (phase.empty()) phase = now.phase;
    if (phase != now.phase) return; // a look at a few buffers again
    progress.advance(now.done - before, kCountingShare);
    before = now.done;
  };
  const Result<Statistics> statistics = collect_statistics(*trace, graph, {.stacks = kMostStacks});
  if (!statistics) {
    if (statistics.error().kind == ErrorKind::cancelled || statistics.error().kind == ErrorKind::io)
      return statistics.error();
    return std::vector<std::uint8_t>();
  }
  if (!statistics->skipped.empty() || statistics->warnings != trace->scan().warnings)
    return std::vector<std::uint8_t>();
  const std::string record = statistics_record(*statistics, session_of(trace->header()));
  return std::vector<std::uint8_t>(record.begin(), record.end());
}

} // namespace etwrelog::pipeline
