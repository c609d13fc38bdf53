// The first pass of a relog with a selection: what processes and threads there were and, as far as memory
// allows, the events that may be kept. Buffers whose candidates are in memory are not read again.
#pragma once

#include "base/arena.hpp"
#include "filter/early_filter.hpp"
#include "output/buffer_cache.hpp"
#include "output/relog.hpp"

#include <mutex>

namespace etwrelog::pipeline {

class FirstPass {
public:
  // `memory`: most bytes of candidates to keep; with 0 none are looked for.
  FirstPass(const Trace &trace, const Selection &selection, std::uint64_t memory);

  // Fills result.skipped and result.warnings.
  [[nodiscard]] Result<filter::Lifetimes> run(const PassOptions &options, PassResult &result);

  // When the targets are known: what need not be read any more and, in the report, what that does not hold.
  [[nodiscard]] const BufferCache &settle(const filter::Lifetimes &lifetimes, const filter::Targets &targets,
                                          RelogReport &report);

  // Then: what the events refer to that the filter will keep. Candidates that cannot refer to anything new
  // are not looked at again.
  [[nodiscard]] Result<void> follow_references(const filter::Filter &filter,
                                               const filter::Lifetimes &lifetimes, const PassOptions &options,
                                               filter::Marks &marks);

  // What is kept of the buffer has been used for the last time: its memory serves for what is written from
  // now on. Nothing where none of it was kept.
  void give_back(const DecodedBuffer &buffer);

private:
  // What the first pass found out about one buffer.
  struct Looked {
    std::uint32_t version = 0; // of what was known
    filter::UsedIds used;
    std::array<std::uint32_t, filter::kReasons> dropped{};
    std::uint64_t dropped_bytes = 0;
    std::vector<write::Run> candidates; // until they are copied
    std::vector<Stretch> left_in_file;  // or they are read again: where they stand
    std::vector<Guid> providers;        // that the candidates need, once each
    bool needs_more = false;            // than these, or more than are counted
  };
  struct Part {
    filter::LifetimeRecords records;
    std::vector<Looked> looked;
    std::vector<DecodedBuffer> buffers; // of candidates alone
    std::uint64_t bytes = 0;            // of those that were copied
  };

  void look(Batch &batch, Part &part) const; // parallel
  void look_at(Batch &batch, const DecodedBuffer &buffer, const filter::NonTargets &known, Part &part,
               Looked &looked) const;
  static void note_need(const EventView &event, const filter::HookRule *rule, Looked &looked);
  void look_again(Batch &batch, Part &part);
  bool leave_in_file(const DecodedBuffer &buffer, std::uint64_t bytes, Looked &looked) const;
  void keep_candidates(const Batch &batch, Part &part) const;
  Result<void> merge(Batch &batch, Part &part);
  void note_news(const filter::LifetimeRecords &records);
  [[nodiscard]] bool may_be_target(const filter::LifetimeRecords::Process &process);
  [[nodiscard]] bool hurry(std::size_t records);
  void learn();
  [[nodiscard]] std::pair<std::shared_ptr<const filter::NonTargets>, std::uint32_t> known() const;
  [[nodiscard]] bool one_stream() const;

  const Trace &trace_;
  const Selection &selection_;
  const std::uint64_t memory_;
  const filter::EarlyFilter early_;
  filter::LifetimeRecords records_;
  std::vector<std::uint16_t> processors_;
  std::vector<filter::LifetimeRecords::Thread> threads_; // of the records, once these are used up
  mutable base::Arena memory_of_candidates_;
  BufferCache cache_;
  std::vector<std::pair<std::uint32_t, Looked>> looked_; // of cached buffers
  std::atomic<std::uint64_t> used_{0};
  mutable std::mutex learning_; // guards known_, version_
  std::shared_ptr<const filter::NonTargets> known_;
  std::uint32_t version_ = 0;
  filter::Mistakes mistakes_;
  std::size_t learnt_from_ = 0, hurried_ = 0; // records of processes and threads
  std::uint64_t read_ = 0;                    // bytes of the input
  bool something_new_ = false, contradicted_ = false;
};

} // namespace etwrelog::pipeline
