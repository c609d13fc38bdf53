#include "profile/waits.hpp"

#include "profile/timeline.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace etwrelog::profile {
namespace {

constexpr std::uint8_t kStateReady = 1; // of a thread that was preempted: it waits for nothing

template <class T> std::vector<T> in_time(const Sequence<T> &sequence) {
  std::vector<T> items;
  items.reserve(sequence.size());
  for (std::size_t i = 0; i < sequence.chunks(); ++i) {
    const std::span<const T> chunk = sequence.chunk(i);
    items.insert(items.end(), chunk.begin(), chunk.end());
  }
  std::ranges::stable_sort(items, {}, &T::time);
  return items;
}

struct Away {
  std::int64_t out = 0, ready = 0;
  std::uint32_t waker = kUnknownId;
  std::uint16_t processor = 0;
  std::uint8_t reason = 0, state = 0;
  bool away = false, readied = false;
};

// Of each readied thread, which one ran on the processor where that was logged: the one switched to before,
// if the next switch there is away from it. Where it is not, or there is none, switches are missing (lost, or
// left out with the process that they were of), and others may have run in between.
// `whole`: Waits::whole.
std::vector<std::uint32_t> find_wakers(const std::vector<SwitchRecord> &switches,
                                       const std::vector<ReadyRecord> &readies, bool &whole) {
  struct Processor {
    std::uint32_t running = kUnknownId;
    std::vector<std::size_t> pending; // since that was switched to
  };
  std::unordered_map<std::uint16_t, Processor> processors;
  std::vector<std::uint32_t> wakers(readies.size(), kUnknownId);
  std::size_t next = 0, missing = 0;
  for (const SwitchRecord &record : switches) {
    for (; next < readies.size() && readies[next].time <= record.time; ++next)
      processors[readies[next].processor].pending.push_back(next);
    Processor &here = processors[record.processor];
    if (here.running == record.old_thread) {
      for (const std::size_t ready : here.pending)
        wakers[ready] = here.running;
    } else if (here.running != kUnknownId) {
      ++missing;
    }
    here.pending.clear();
    here.running = record.new_thread;
  }
  whole = missing <= switches.size() / 100; // what a lost buffer leaves out is less
  return wakers;
}

} // namespace

Waits find_waits(const Records &records) {
  const std::vector<SwitchRecord> switches = in_time(records.switches);
  const std::vector<ReadyRecord> readies = in_time(records.readies);
  Waits found;
  const std::vector<std::uint32_t> wakers = find_wakers(switches, readies, found.whole);
  std::unordered_map<std::uint32_t, Away, base::SeededHash> threads;
  std::vector<Wait> &waits = found.waits;
  std::size_t next = 0;
  for (const SwitchRecord &record : switches) {
    // A thread is readied before it is switched to, also where both bear the same time.
    for (; next < readies.size() && readies[next].time <= record.time; ++next) {
      const auto away = threads.find(readies[next].thread);
      if (away == threads.end() || !away->second.away || away->second.readied) continue;
      away->second.readied = true;
      away->second.ready = readies[next].time;
      away->second.waker = wakers[next];
    }
    if (record.old_thread != 0) {
      Away &away = threads[record.old_thread];
      away = {};
      away.out = away.ready = record.time;
      away.processor = record.processor;
      away.reason = record.reason;
      away.state = record.state;
      away.away = true;
      away.readied = record.state == kStateReady;
    }
    if (record.new_thread == 0) continue;
    Away &away = threads[record.new_thread];
    if (away.away)
      waits.push_back({record.subject, record.new_thread, away.out, away.readied ? away.ready : record.time,
                       record.time, away.waker, away.processor, away.reason});
    away.away = false;
  }
  return found;
}

SampledThreads find_sampled(const Records &records) {
  SampledThreads sampled;
  for (std::size_t i = 0; i < records.subjects.chunks(); ++i)
    for (const Subject &subject : records.subjects.chunk(i)) {
      const auto [place, fresh] = sampled.try_emplace(subject.processor, subject.thread);
      if (place->second != subject.thread) place->second = kUnknownId;
    }
  return sampled;
}

std::vector<Running> find_running(const Records &records, const SampledThreads &sampled, TimeRange cut) {
  std::map<std::uint16_t, Running> current;
  std::vector<Running> all;
  for (const SwitchRecord &record : in_time(records.switches)) {
    const auto [place, fresh] = current.try_emplace(record.processor);
    if (fresh && cut.from != kBeginning)
      place->second = {record.old_thread, cut.from, record.time, record.processor, true};
    Running &run = place->second;
    if (run.thread == record.old_thread && run.thread != 0) {
      run.to = record.time;
      all.push_back(run);
    }
    run = {record.new_thread, record.time, record.time, record.processor, false};
  }
  if (cut.to != kForever)
    for (auto &[processor, run] : current) {
      run.to = cut.to;
      run.cut_off = true;
      if (run.thread != 0) all.push_back(run);
    }
  // That switches are recorded at all is not known where there is none.
  if (cut.from != kBeginning && cut.to != kForever && !current.empty())
    for (const auto &[processor, thread] : sampled)
      if (!current.contains(processor) && thread != 0 && thread != kUnknownId)
        all.push_back({thread, cut.from, cut.to, processor, true});
  return all;
}

} // namespace etwrelog::profile
