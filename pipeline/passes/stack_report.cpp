#include "passes/stack_report.hpp"

#include "base/errors.hpp"
#include "etwrelog/clr_events.hpp"
#include "passes/stack_collect.hpp"
#include "stacks/stack_events.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace stacks;

namespace {

struct Use {
  StackId stack;
  std::uint32_t process_id, thread_id, depth;
  std::int64_t event_time;
  Place place;
  std::uint16_t processor;
  StackKind kind;
  std::uint8_t pointer_size, header; // bytes
};

struct ReportPart {
  std::vector<Use> uses;
  std::vector<std::uint64_t> frames;
  std::uint64_t unresolved = 0, bytes_now = 0, item_bytes = 0, clr_bytes = 0;
};

// A set of numbers, for millions of them.
class NumberSet {
public:
  bool insert(std::uint64_t value) { // whether it is new
    if ((size_ + 1) * 2 > slots_.size()) grow();
    if (value == kEmpty) return std::exchange(has_empty_, true) ? false : (++size_, true);
    std::size_t i = place(value);
    for (; slots_[i] != kEmpty; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i] == value) return false;
    slots_[i] = value;
    ++size_;
    return true;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t memory() const { return slots_.size() * sizeof(std::uint64_t); }

private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  [[nodiscard]] std::size_t place(std::uint64_t value) const {
    return static_cast<std::size_t>((value * 0x9E37'79B9'7F4A'7C15ull) >> 20) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<std::uint64_t> old = std::exchange(
        slots_, std::vector<std::uint64_t>(std::max<std::size_t>(1024, slots_.size() * 2), kEmpty));
    for (const std::uint64_t value : old) {
      if (value == kEmpty) continue;
      std::size_t i = place(value);
      while (slots_[i] != kEmpty)
        i = (i + 1) & (slots_.size() - 1);
      slots_[i] = value;
    }
  }
  std::vector<std::uint64_t> slots_;
  std::size_t size_ = 0;
  bool has_empty_ = false;
};

bool is_kernel_kind(StackKind kind) {
  return kind < StackKind::item;
}

// Finds the stacks of one event.
class StackFinder {
public:
  StackFinder(const StackInventory &inventory, StackTable &table) : inventory_(inventory), table_(table) {}

  void look_at(const EventView &event, std::int64_t time, const DecodedBuffer &buffer, std::uint32_t at,
               ReportPart &work) const {
    const StackEventKind kind = stack_event_kind(event);
    const Place place = place_of(time, buffer, at);
    if (kind != StackEventKind::none) {
      StackFields fields;
      if (parse_stack_event(event, kind, fields)) kernel_event(event, kind, fields, place, buffer, work);
      return;
    }
    if (!event.is_event()) return;
    if (event.has_items()) items(event, place, buffer, work);
    if (clr::is_stack(event.provider(), event.id())) {
      const Bytes payload = event.payload();
      const std::size_t size =
          payload.size() < clr::kStackFramesAt ? 0 : payload.size() - clr::kStackFramesAt;
      if (payload.size() < clr::kStackFramesAt || size % event.pointer_size() != 0) return;
      load_frames(payload.subspan(clr::kStackFramesAt), event.pointer_size(), work.frames);
      work.clr_bytes += align8(event.size());
      add(StackKind::clr, event, event.pointer_size(), event.process_id(), event.thread_id(), time, place,
          buffer, work);
    }
  }

private:
  void kernel_event(const EventView &event, StackEventKind kind, const StackFields &fields, Place place,
                    const DecodedBuffer &buffer, ReportPart &work) const {
    work.bytes_now += align8(event.size());
    StackKind use = StackKind::walk_user;
    if (kind == StackEventKind::definition) return;
    if (kind == StackEventKind::walk) {
      load_frames(fields.frames, event.pointer_size(), work.frames);
      if (is_kernel_stack(work.frames, event.pointer_size())) use = StackKind::walk_kernel;
    } else {
      const bool kernel = refers_to_kernel(event);
      const KeyDefinition *definition = inventory_.definitions.resolve(fields.key, kernel, place);
      if (definition == nullptr || definition->stack == kNoStack) {
        ++work.unresolved;
        return;
      }
      inventory_.table->read(definition->stack, work.frames);
      use = kernel ? StackKind::reference_kernel : StackKind::reference_user;
    }
    add(use, event, event.pointer_size(), fields.process_id, fields.thread_id, fields.event_time, place,
        buffer, work);
  }

  void items(const EventView &event, Place place, const DecodedBuffer &buffer, ReportPart &work) const {
    ExtendedItems list = event.items();
    ExtendedItem item;
    while (list.next(item)) {
      const auto stack = stack_in(item);
      if (!stack || stack->by_key || stack->data.size() % stack->pointer_size != 0) continue;
      load_frames(stack->data, stack->pointer_size, work.frames);
      work.item_bytes += format::kItemHeaderSize + item.data.size();
      add(StackKind::item, event, stack->pointer_size, event.process_id(), event.thread_id(), place.time,
          place, buffer, work);
    }
  }

  void add(StackKind kind, const EventView &event, unsigned pointer_size, std::uint32_t process,
           std::uint32_t thread, std::int64_t event_time, Place place, const DecodedBuffer &buffer,
           ReportPart &work) const {
    const StackId stack = table_.intern(work.frames, stack_scope(pointer_size));
    if (stack == kNoStack) return; // no input has that many
    work.uses.push_back({stack, process, thread, static_cast<std::uint32_t>(work.frames.size()), event_time,
                         place, buffer.header.processor(), kind, static_cast<std::uint8_t>(pointer_size),
                         event.layout().header_size});
  }

  const StackInventory &inventory_;
  StackTable &table_;
};

// Takes the uses in the order of the trace.
class StackCounter {
public:
  StackCounter(StackReport &report, const StackReportOptions &options, bool has_keys, unsigned pointer_size)
      : report_(report), options_(options) {
    if (!options.simulate.empty()) timeline_.emplace(options.simulate, has_keys, pointer_size);
  }

  Result<void> count(const Use &use) {
    const std::uint32_t number = order_.number(use.stack);
    if (number == counts_.size()) {
      counts_.push_back(0);
      kinds_.push_back(0);
    }
    ++counts_[number];
    const auto kind = static_cast<unsigned>(use.kind);
    add(report_.kinds[kind], use, (kinds_[number] & 1u << kind) == 0);
    const bool kernel = is_kernel_kind(use.kind);
    if (kernel) {
      const bool fresh = (kinds_[number] & kKernelKinds) == 0;
      add(report_.kernel_stacks, use, fresh);
      const std::size_t plain = walk_size(use.depth, use.pointer_size, use.header);
      report_.bytes_plain += plain;
      const bool worth = use.depth > 1;
      report_.bytes_cached += worth ? reference_size(use.pointer_size, use.header) : plain;
      report_.bytes_database += 20;
      if (fresh) {
        if (worth) report_.bytes_cached += definition_size(use.depth, use.pointer_size);
        report_.bytes_database += 8 + std::uint64_t{use.depth} * use.pointer_size;
      }
      if (timeline_)
        timeline_->add(use.place, use.stack,
                       use.kind == StackKind::reference_kernel || use.kind == StackKind::reference_user);
    }
    kinds_[number] = static_cast<std::uint8_t>(kinds_[number] | 1u << kind);
    add(report_.all, use, counts_[number] == 1);
    add(report_.processes[use.process_id], use,
        in_process_.insert(std::uint64_t{use.process_id} << 32 | number));
    add(report_.processors[use.processor], use,
        on_processor_.insert(std::uint64_t{use.processor} << 32 | number));
    if (use.depth >= report_.depths.size()) report_.depths.resize(use.depth + 1u);
    ++report_.depths[use.depth].events;
    if (counts_[number] == 1) ++report_.depths[use.depth].stacks;
    if (options_.database == nullptr) return {};
    return options_.database->add(
        {use.kind, use.processor, use.process_id, use.thread_id, use.event_time, number});
  }

  Result<void> finish(const StackTable &table) {
    repeats();
    top(table);
    std::vector<std::uint64_t> frames;
    NumberSet distinct;
    for (StackId n = 0; n < order_.size(); ++n) {
      table.read(order_.id(n), frames);
      for (const std::uint64_t frame : frames)
        distinct.insert(frame);
    }
    report_.distinct_frames = distinct.size();
    report_.table_bytes = table.memory().total();
    if (timeline_) {
      timeline_->play_rest(table);
      report_.simulations = timeline_->results();
      report_.recorded = timeline_->recorded();
      if (report_.recorded) report_.recorded->definitions = report_.definitions;
    }
    recommend();
    return options_.database != nullptr ? options_.database->finish(table, order_) : Result<void>();
  }

  // No later use is before this time.
  void play(std::int64_t before, const StackTable &table) {
    if (timeline_) timeline_->play(before, table);
  }
  [[nodiscard]] std::size_t memory() const {
    return counts_.capacity() * sizeof(counts_[0]) + kinds_.capacity() + order_.memory() +
           in_process_.memory() + on_processor_.memory() + (timeline_ ? timeline_->memory() : 0);
  }

private:
  static constexpr std::uint8_t kKernelKinds = 0x0F;

  static void add(StackGroup &group, const Use &use, bool fresh) {
    ++group.events;
    group.frames += use.depth;
    group.distinct += fresh ? 1 : 0;
  }

  void repeats() {
    for (const std::uint64_t count : counts_) {
      const auto bucket = static_cast<std::size_t>(std::bit_width(count)) - 1;
      while (report_.repeats.size() <= bucket)
        report_.repeats.push_back({std::uint64_t{1} << report_.repeats.size(), 0, 0});
      ++report_.repeats[bucket].stacks;
      report_.repeats[bucket].events += count;
    }
  }

  void top(const StackTable &table) {
    std::vector<std::uint32_t> numbers(counts_.size());
    for (std::uint32_t n = 0; n < numbers.size(); ++n)
      numbers[n] = n;
    const std::size_t shown = std::min(options_.top, numbers.size());
    std::partial_sort(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(shown), numbers.end(),
                      [this](std::uint32_t a, std::uint32_t b) {
                        return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
                      });
    for (std::size_t i = 0; i < shown; ++i) {
      StackReport::Top &row = report_.top.emplace_back();
      row.count = counts_[numbers[i]];
      table.read(order_.id(numbers[i]), row.frames);
    }
  }

  void recommend() {
    std::uint64_t best = ~std::uint64_t{0};
    for (const CacheSimulation &s : report_.simulations)
      best = std::min(best, s.cached_bytes);
    auto cost = [](const CacheSimulation &s) { return std::pair(s.settings.bytes, s.settings.buckets); };
    for (std::size_t i = 0; i < report_.simulations.size(); ++i) {
      const CacheSimulation &s = report_.simulations[i];
      if (s.cached_bytes > best + best / 100) continue;
      if (!report_.recommended || cost(s) < cost(report_.simulations[*report_.recommended]))
        report_.recommended = i;
    }
  }

  StackReport &report_;
  const StackReportOptions &options_;
  StackOrder order_;
  std::vector<std::uint64_t> counts_; // by number
  std::vector<std::uint8_t> kinds_;   // by number, a bit a kind
  NumberSet in_process_, on_processor_;
  std::optional<StackTimeline> timeline_;
};

} // namespace

Result<StackReport> report_stacks(Traces traces, const StackReportOptions &options,
                                  const PassOptions &graph) {
  PassResult collecting, met;
  ETWRELOG_TRY_LET(inventory, collect_stacks(traces, graph, collecting, options.memory));
  // From the last buffer to the first: the earliest that comes from here on.
  std::vector<std::int64_t> &coming = inventory.first_stack;
  for (std::size_t i = coming.size(); i-- > 1;)
    coming[i - 1] = std::min(coming[i - 1], coming[i]);
  const std::size_t inventory_memory = inventory.memory();

  StackReport report;
  report.definitions = inventory.definitions.size();
  report.keys = inventory.definitions.keys();
  StackTable table;
  const StackFinder finder(inventory, table);
  StackCounter counter(report, options, report.definitions != 0, traces.front()->header().pointer_size);
  for (std::size_t i = 0; i < traces.size(); ++i)
    add_to(met, {0, traces[i]->scan().skipped, traces[i]->scan().warnings}, traces, i);

  const auto count = [&](const Trace &trace, std::uint32_t first) {
    Pass<ReportPart> pass;
    pass.name = "counting stacks";
    pass.work = [&](Batch &batch, ReportPart &work) {
      work.uses.clear();
      work.unresolved = work.bytes_now = work.item_bytes = work.clr_bytes = 0;
      for (const DecodedBuffer &buffer : batch.buffers) {
        const DecodedBuffer here = numbered(buffer, first);
        trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
          finder.look_at(event, time, here, at, work);
        });
      }
    };
    pass.merge = [&](Batch &batch, ReportPart &work) -> Result<void> {
      report.unresolved += work.unresolved;
      report.bytes_now += work.bytes_now;
      report.item_bytes += work.item_bytes;
      report.clr_bytes += work.clr_bytes;
      for (const Use &use : work.uses)
        ETWRELOG_TRY(counter.count(use));
      const std::size_t next = first + batch.first + batch.count;
      counter.play(next < coming.size() ? coming[next] : StackInventory::kNoStackTime, table);
      if (inventory_memory + table.memory().total() + counter.memory() > options.memory)
        return too_little_stack_memory("the stacks of the trace", options.memory);
      return {};
    };
    return run_pass(trace, pass, graph);
  };
  ETWRELOG_TRY(run_over(traces, met, count));
  ETWRELOG_TRY(counter.finish(table));
  report.warnings = std::move(met.warnings);
  report.skipped = std::move(met.skipped);
  if (report.unresolved != 0)
    report.warnings.push_back(
        fmt::format("{} references to stack keys have no definition in the trace", report.unresolved));
  return report;
}

Result<StackReport> report_stacks(const Trace &trace, const StackReportOptions &options,
                                  const PassOptions &graph) {
  const Trace *const one = &trace;
  return report_stacks({&one, 1}, options, graph);
}

} // namespace etwrelog::pipeline
