#include "api/traversal.hpp"

#include "base/errors.hpp"
#include "filter/filter.hpp"
#include "run/guarded.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace etwrelog::pipeline {

using detail::BufferView;
using detail::EventRef;

namespace {

constexpr std::uint64_t kBatchBytes = 1u << 20; // decoded: what a core's cache holds between steps
constexpr std::uint64_t kMostOfWindow =
    2 * kBatchBytes; // twice what is loaded: what was held up is made up for

// `sorted`: none for any.
template <class T> bool is_one_of(const std::optional<std::vector<T>> &sorted, T value) {
  return !sorted || std::ranges::binary_search(*sorted, value);
}

} // namespace

Walk::Walk(const OpenedTrace &trace, const Query &query, const Reading &reading, const RunOptions &run)
    : trace_(trace), order_(query.order), run_(run), kind_set_(query.kinds), with_state_(query.with_state),
      reading_(reading), sources_(trace), began_(std::chrono::steady_clock::now()), progress_(run_.progress) {
  if (!kind_set_.empty()) kinds_ = &kind_set_;
  if (query.filter != nullptr) {
    const std::shared_ptr<const Filter::Impl> &filter = FilterParts::of(*query.filter);
    if (!filter->everything) filter_ = filter;
  }
  timed_ = query.from || query.to;
  if (timed_) {
    Selection selection;
    selection.from = query.from;
    selection.to = query.to;
    const filter::TimeRange range = filter::selected_time(selection, trace_.clock);
    from_ = range.from;
    to_ = range.to;
  }
}

Result<std::unique_ptr<Walk>> Walk::start(const etwrelog::Trace &trace, const Query &query,
                                          const Reading &reading, const RunOptions &run) {
  if (query.order > Order::time)
    return base::bad_option(Option::order, "there is no such order")
        .found(std::to_string(static_cast<unsigned>(query.order)));
  if (trace.single_pass()) return detail::Traversal::needs_spool(trace);
  if (query.filter != nullptr && !FilterParts::is_of(*query.filter, trace))
    return base::bad_option(Option::processes, "the filter was prepared for another trace");
  std::unique_ptr<Walk> walk(new Walk(detail::Traversal::of(trace), query, reading, run));
  ETWRELOG_TRY(walk->plan());
  return walk;
}

Result<void> Walk::plan() {
  ETWRELOG_TRY(filter::check_range({from_, to_}));
  for (const auto &source : trace_.sources)
    total_bytes_ += source->stored_bytes();
  progress_.begin("reading events", total_bytes_);
  leave_out_by_time();
  return order_ == Order::time ? plan_time_order() : Result<void>();
}

// Where state is wanted, too, all of an archive is read, as the index has its events, but not the place where
// each stands; unless nobody asks for that.
void Walk::leave_out_by_time() {
  if (!timed_ || (with_state_ && !reading_.state_from_index)) return;
  sources_ = SourcesInTime(trace_, from_, to_);
  sum_.buffers_left_out += sources_.buffers_left_out();
}

// Of `reading_.processes` nothing is known before a buffer is read.
bool Walk::may_hold(const Trace &, const read::BufferSpan &buffer, bool one_stream) const {
  return one_stream || is_one_of(reading_.processors, buffer.processor);
}

// A buffer is due when the last but one before it in its stream has been delivered, for then the window needs
// to know that nothing in it comes earlier. When that is, only its events would tell; the time at which it
// was written is near enough to load in that order, and where it is not, buffers are held for longer
// (fetch_awaited).
Result<void> Walk::plan_time_order() {
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::vector<std::uint32_t>> buffers_of;
  for (std::uint32_t s = 0; s < trace_.sources.size(); ++s) {
    const Trace &source = *trace_.sources[s];
    const bool one_stream = (source.header().log_file_mode & format::kModeOneStream) != 0;
    for (std::uint32_t b = 0; b < source.buffers().size(); ++b)
      if (may_hold(source, source.buffers()[b], one_stream))
        buffers_of[{s, one_stream ? std::uint16_t{0} : source.buffers()[b].processor}].push_back(b);
  }
  std::vector<std::pair<std::int64_t, Planned>> due;
  std::vector<std::uint32_t> counts;
  std::uint64_t needed = 0;
  for (const auto &[key, buffers] : buffers_of) {
    const auto stream = static_cast<std::uint32_t>(counts.size());
    counts.push_back(static_cast<std::uint32_t>(buffers.size()));
    const std::span<const read::BufferSpan> spans = trace_.sources[key.first]->buffers();
    std::int64_t latest = kFirstTime;
    std::uint64_t largest = 0;
    for (std::uint32_t i = 0; i < buffers.size(); ++i) {
      // Never before its predecessor.
      if (i >= 2) latest = std::max(latest, trace_.clocks[key.first](spans[buffers[i - 2]].time_stamp));
      due.push_back({latest, {key.first, buffers[i], stream, i}});
      largest =
          std::max<std::uint64_t>(largest, std::uint64_t{spans[buffers[i]].size} + spans[buffers[i]].decoded);
    }
    needed += 2 * largest;
  }
  // Buffers of all streams, a batch under way, and what refers to their events.
  needed += (needed + 2 * kBatchBytes) / 2;
  if (needed > run_.memory)
    return base::over_limit("the order of time")
        .in(trace_.infos.front().name)
        .about(Option::memory)
        .expected(std::to_string(needed) + " bytes of memory or more")
        .found(std::to_string(run_.memory))
        .advise(Advice::raise_memory);
  hold_limit_ = std::max(needed, run_.memory / 4);
  std::ranges::sort(due, {},
                    [](const auto &d) { return std::tuple(d.first, d.second.source, d.second.buffer); });
  of_stream_.resize(counts.size());
  added_.resize(counts.size());
  for (const auto &[when, planned] : due) {
    of_stream_[planned.stream].push_back(static_cast<std::uint32_t>(load_order_.size()));
    load_order_.push_back(planned);
  }
  windows_ = std::make_unique<TimeOrder>(counts);
  return {};
}

// Three a thread, and one for the caller, or what the memory affords.
std::size_t Walk::slots(unsigned threads) const {
  std::uint64_t largest = kBatchBytes;
  for (const auto &source : trace_.sources)
    for (const read::BufferSpan &span : source->buffers())
      largest = std::max<std::uint64_t>(largest, std::uint64_t{span.size} + span.decoded);
  const std::uint64_t afforded = run_.memory / 4 / (2 * largest);
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(threads == 1 ? 2 : std::uint64_t{threads} * 3 + 1,
                                                            2, std::max<std::uint64_t>(2, afforded)));
}

Result<void> Walk::do_step(Result<void> (Walk::*step)(WalkSlot &), WalkSlot &slot) {
  Result<void> done = guarded([&] { return (this->*step)(slot); });
  if (!done) return base::in_file(std::move(done).error(), trace_.infos.front().name);
  return {};
}

Result<void> Walk::hand_out(WalkSlot &slot, const Handler &map) {
  const bool by_reference = order_ == Order::time || selective() || !trace_.clocks[slot.source].same();
  detail::Traversal::set(*slot.events, slot.ordinal, slot.buffers, slot.refs.all(), by_reference);
  if (!map) return {};
  ETWRELOG_TRY(map(slot));
  return settle(slot);
}

Result<void> Walk::run(const Handler &map, const Handler &merge) {
  std::deque<WalkSlot> memory(slots(threads_of(run_.threads)));
  const RunSettings settings{run_.threads, run_.stop};
  Steps<WalkSlot> steps;
  const auto merged = [&](WalkSlot &slot) -> Result<void> {
    ETWRELOG_TRY(merge(slot));
    account(slot);
    return {};
  };
  steps.locate = [this](const WalkSlot &, Error error) {
    return error.kind == ErrorKind::cancelled ? base::in_file(std::move(error), trace_.infos.front().name)
                                              : std::move(error);
  };
  if (order_ == Order::file) {
    steps.next = [this](WalkSlot &slot) { return next_stored(slot); };
    steps.work = [&](WalkSlot &slot) -> Result<void> {
      ETWRELOG_TRY(do_step(&Walk::load_stored, slot));
      return hand_out(slot, map);
    };
    steps.merge = merged;
    return run_steps(steps, memory, settings);
  }
  const auto sorted = [&](WalkSlot &slot) -> Result<void> {
    ETWRELOG_TRY(do_step(&Walk::sort_window, slot));
    return hand_out(slot, map);
  };
  steps.next = [this](WalkSlot &slot) {
    if (all_planned()) return false;
    next_in_time(slot);
    return true;
  };
  steps.work = [this](WalkSlot &slot) { return do_step(&Walk::load_blocks, slot); };
  steps.merge = [this](WalkSlot &slot) { return do_step(&Walk::open_window, slot); };
  steps.finish = sorted;
  steps.emit = merged;
  ETWRELOG_TRY(run_steps(steps, memory, settings));
  // What no window had room for while there was something to load.
  steps.next = [this](WalkSlot &slot) -> Result<bool> {
    if (!more_) return false;
    next_in_time(slot);
    ETWRELOG_TRY(do_step(&Walk::open_window, slot));
    return true;
  };
  steps.work = sorted;
  steps.merge = merged;
  steps.finish = steps.emit = {};
  return run_steps(steps, memory, settings);
}

Result<void> Walk::begin(Handler map) {
  const unsigned threads = threads_of(run_.threads);
  ETWRELOG_TRY(check_threads(threads));
  const auto step = [this](Result<void> (Walk::*doing)(WalkSlot &)) {
    return [this, doing](WalkSlot &slot) {
      if (slot.error) return;
      if (Result<void> done = do_step(doing, slot); !done) slot.error = std::move(done).error();
    };
  };
  PumpSteps<WalkSlot> steps;
  std::function<void(WalkSlot &)> sort;
  if (order_ == Order::file) {
    steps.next = [this](WalkSlot &slot) { return next_stored(slot) ? Further::batch : Further::none; };
    steps.work = step(&Walk::load_stored);
    steps.in_order = [](WalkSlot &) {};
  } else {
    // Behind the last buffer there may be events yet that no window had room for.
    steps.next = [this](WalkSlot &slot) {
      if (all_planned()) {
        if (opened_ != issued_) return Further::later;
        if (!more_) return Further::none;
      }
      next_in_time(slot);
      return Further::batch;
    };
    steps.work = step(&Walk::load_blocks);
    steps.in_order = [this, open = step(&Walk::open_window)](WalkSlot &slot) {
      open(slot);
      ++opened_;
    };
    sort = step(&Walk::sort_window);
  }
  steps.finish = [this, sort, map = std::move(map)](WalkSlot &slot) {
    if (sort) sort(slot);
    if (slot.error) return;
    if (Result<void> done = guarded([&] { return hand_out(slot, map); }); !done)
      slot.error = std::move(done).error();
  };
  pump_.emplace(std::move(steps), threads, slots(threads), [] { return std::make_unique<WalkSlot>(); });
  return {};
}

namespace {

void reset(WalkSlot &slot, std::uint64_t ordinal) {
  slot.ordinal = ordinal;
  slot.stored_bytes = slot.decoded_bytes = 0;
  slot.buffers.clear();
  slot.refs.clear();
  slot.error.reset();
  slot.skipped.clear();
  slot.warnings.clear();
}

} // namespace

bool Walk::next_stored(WalkSlot &slot) {
  while (next_source_ < trace_.sources.size() &&
         next_buffer_ == trace_.sources[next_source_]->buffers().size()) {
    ++next_source_;
    next_buffer_ = 0;
  }
  if (next_source_ == trace_.sources.size()) return false;
  reset(slot, issued_++);
  slot.source = next_source_;
  slot.batch.first = next_buffer_;
  slot.batch.count = 0;
  const std::span<const read::BufferSpan> spans = trace_.sources[next_source_]->buffers();
  std::uint64_t bytes = 0;
  for (; next_buffer_ < spans.size(); ++next_buffer_, ++slot.batch.count) {
    const std::uint64_t more = std::max(spans[next_buffer_].decoded, spans[next_buffer_].size);
    if (slot.batch.count > 0 && bytes + more > kBatchBytes) break;
    bytes += more;
    slot.stored_bytes += spans[next_buffer_].size;
    slot.decoded_bytes += spans[next_buffer_].decoded;
  }
  return true;
}

void Walk::next_in_time(WalkSlot &slot) {
  reset(slot, issued_++);
  slot.blocks.clear();
  slot.first_planned = next_buffer_;
  std::uint64_t bytes = 0;
  for (; next_buffer_ < load_order_.size(); ++next_buffer_) {
    const Planned &planned = load_order_[next_buffer_];
    const read::BufferSpan &span = trace_.sources[planned.source]->buffers()[planned.buffer];
    const std::uint64_t more = std::max(span.decoded, span.size);
    if (next_buffer_ > slot.first_planned && bytes + more > kBatchBytes) break;
    bytes += more;
    slot.stored_bytes += span.size;
    slot.decoded_bytes += span.decoded;
  }
  slot.planned = next_buffer_ - slot.first_planned;
}

BufferView Walk::view_of(std::uint32_t source, const DecodedBuffer &buffer) const {
  const SourceInfo &info = trace_.infos[source];
  BufferView view;
  view.events = buffer.events.data();
  view.size = static_cast<std::uint32_t>(buffer.events.size());
  view.source = source;
  view.buffer = buffer.index;
  view.machine = info.machine;
  const bool one_stream = (info.header.log_file_mode & format::kModeOneStream) != 0;
  view.processor = one_stream ? std::uint16_t{0} : buffer.header.processor();
  if (!detail::begins_timeless(buffer.events)) return view;
  view.begins_timeless = true;
  view.first_time = trace_.clocks[source](first_event_time(buffer.events, info.header.first_stamp));
  return view;
}

Walk::Chooser Walk::chooser_of(const BufferView &view, const DecodedBuffer &buffer) const {
  Chooser chooser{view, {}, {}};
  if (filter_) chooser.keeper = filter_->keeper(view.source, view.machine, buffer);
  if (reading_.chooser) chooser.chooses = reading_.chooser();
  return chooser;
}

bool Walk::wanted(const EventView &event, std::int64_t time, std::int64_t raw, std::uint32_t at,
                  Chooser &chooser) const {
  if (filter_ && !chooser.keeper.keeps(event, raw)) return false;
  if (kinds_ != nullptr && !kinds_->contains(event)) return false;
  if (!is_one_of(reading_.processes, event.process_id())) return false;
  if (timed_ && (time < from_ || time > to_) && !(with_state_ && filter::is_state(event))) return false;
  const BufferView &view = chooser.view;
  if (!is_one_of(reading_.processors, view.processor)) return false;
  return !chooser.chooses ||
         chooser.chooses(Event(event, time, {view.source, view.buffer, at}, view.processor, view.machine));
}

void Walk::refer(std::uint32_t source, Batch &batch, const DecodedBuffer &buffer, std::uint32_t number,
                 const BufferView &view, RefList &refs) const {
  const ClockMap &clock = trace_.clocks[source];
  Chooser chooser = chooser_of(view, buffer);
  trace_.sources[source]->visit(batch, buffer,
                                [&](const EventView &event, std::int64_t raw, std::uint32_t at) {
                                  const std::int64_t time = clock(raw);
                                  if (!selective() || wanted(event, time, raw, at, chooser))
                                    refs.push({time, at, number});
                                });
}

void Walk::refer(std::uint32_t source, Block &block) const {
  const DecodedBuffer &buffer = block.batch.buffers.front();
  const ClockMap &clock = trace_.clocks[source];
  bool sorted = true;
  std::int64_t oldest = kLastTime, newest = kFirstTime;
  std::size_t events = 0;
  if (!selective() && clock.same()) { // the usual case, as lean as it gets
    RefList refs;
    refs.swap(block.refs);
    trace_.sources[source]->visit(block.batch, buffer,
                                  [&](const EventView &, std::int64_t time, std::uint32_t at) {
                                    sorted = sorted && newest <= time;
                                    newest = std::max(newest, time);
                                    oldest = std::min(oldest, time);
                                    refs.push({time, at, 0});
                                  });
    refs.swap(block.refs);
    events = block.refs.size();
  } else {
    Chooser chooser = chooser_of(block.view, buffer);
    trace_.sources[source]->visit(block.batch, buffer,
                                  [&](const EventView &event, std::int64_t raw, std::uint32_t at) {
                                    const std::int64_t time = clock(raw);
                                    sorted = sorted && newest <= time;
                                    newest = std::max(newest, time);
                                    oldest = std::min(oldest, time);
                                    ++events;
                                    if (wanted(event, time, raw, at, chooser)) block.refs.push({time, at, 0});
                                  });
  }
  block.has_events = newest >= oldest;
  block.first = oldest;
  block.last = newest;
  block.event_bytes = static_cast<std::uint32_t>(block.view.size / std::max<std::size_t>(events, 1));
  if (!sorted) std::ranges::stable_sort(block.refs.all(), {}, &EventRef::time);
}

Result<void> Walk::load_stored(WalkSlot &slot) {
  sources_[slot.source].load(slot.batch);
  if (slot.batch.error) return *std::move(slot.batch.error);
  for (const DecodedBuffer &buffer : slot.batch.buffers) {
    slot.buffers.push_back(view_of(slot.source, buffer));
    if (!selective() && trace_.clocks[slot.source].same()) continue;
    refer(slot.source, slot.batch, buffer, static_cast<std::uint32_t>(slot.buffers.size() - 1),
          slot.buffers.back(), slot.refs);
  }
  if (slot.batch.error) return *std::move(slot.batch.error);
  std::ranges::move(slot.batch.skipped, std::back_inserter(slot.skipped));
  for (Skipped &skipped : slot.skipped)
    skipped.source = slot.source;
  std::ranges::move(slot.batch.warnings, std::back_inserter(slot.warnings));
  return {};
}

Result<void> Walk::load_blocks(WalkSlot &slot) {
  for (std::size_t i = 0; i < slot.planned; ++i) {
    ETWRELOG_TRY_LET(block, load_block(load_order_[slot.first_planned + i], slot));
    slot.blocks.push_back(std::move(block));
  }
  return {};
}

Result<std::unique_ptr<Block>> Walk::load_block(const Planned &planned, WalkSlot &slot) {
  std::unique_ptr<Block> block = take_block();
  const std::uint64_t before = block->bytes();
  Batch &batch = block->batch;
  batch.first = planned.buffer;
  batch.count = 1;
  block->stream = planned.stream;
  block->number = planned.number;
  block->refs.clear();
  block->has_events = false;
  block->taken = 0;
  sources_[planned.source].load(batch);
  if (!batch.error && !batch.buffers.empty()) {
    block->view = view_of(planned.source, batch.buffers.front());
    refer(planned.source, *block);
  }
  const std::uint64_t sum = block_bytes_ += block->bytes() - before;
  for (std::uint64_t peak = peak_bytes_; sum > peak && !peak_bytes_.compare_exchange_weak(peak, sum);) {
  }
  for (Skipped &skipped : batch.skipped) {
    skipped.source = planned.source;
    block->skipped.push_back(std::move(skipped));
  }
  std::ranges::move(batch.warnings, std::back_inserter(slot.warnings));
  if (batch.error) return *std::move(batch.error);
  return block;
}

Result<void> Walk::open_window(WalkSlot &slot) {
  std::vector<std::unique_ptr<Block>> known;
  for (std::unique_ptr<Block> &block : slot.blocks)
    if (block->number < added_[block->stream])
      known.push_back(std::move(block)); // was fetched before its turn
    else
      add(std::move(block), slot);
  slot.blocks.clear();
  give_back(known);
  ETWRELOG_TRY(fetch_awaited(slot));
  more_ = windows_->take(slot.window, kMostOfWindow);
  slot.late_events = windows_->late_events();
  return {};
}

Result<void> Walk::sort_window(WalkSlot &slot) {
  order_window(slot.window, slot.buffers, slot.refs, slot.scratch);
  return {};
}

void Walk::add(std::unique_ptr<Block> block, WalkSlot &slot) {
  std::ranges::move(block->skipped, std::back_inserter(slot.skipped));
  block->skipped.clear();
  ++added_[block->stream];
  windows_->add(std::move(block));
}

// An idle processor's buffer may have been written long after its events, and what came meanwhile would pile
// up. When it comes to more than the memory set aside, what all others wait for is loaded by itself, out of
// turn.
Result<void> Walk::fetch_awaited(WalkSlot &slot) {
  while (windows_->held_bytes() > hold_limit_ && windows_->bytes_kept_back() > hold_limit_) {
    const std::uint32_t stream = windows_->awaited();
    if (stream == of_stream_.size()) break;
    ETWRELOG_TRY_LET(block, load_block(load_order_[of_stream_[stream][added_[stream]]], slot));
    add(std::move(block), slot);
  }
  return {};
}

std::unique_ptr<Block> Walk::take_block() {
  const std::lock_guard lock(spare_mutex_);
  if (spare_.empty()) return std::make_unique<Block>();
  std::unique_ptr<Block> block = std::move(spare_.back());
  spare_.pop_back();
  return block;
}

void Walk::give_back(std::vector<std::unique_ptr<Block>> &blocks) {
  const std::lock_guard lock(spare_mutex_);
  std::ranges::move(blocks, std::back_inserter(spare_));
  blocks.clear();
}

Result<void> Walk::settle(WalkSlot &slot) const {
  for (const detail::Damage &damage : detail::Traversal::damage(*slot.events)) {
    slot.batch.skipped.clear();
    trace_.sources[slot.source]->note_walk_end(slot.batch, slot.batch.buffers[damage.buffer], damage.end);
    if (slot.batch.error) return *std::move(slot.batch.error);
    for (Skipped &skipped : slot.batch.skipped) {
      skipped.source = slot.source;
      slot.skipped.push_back(std::move(skipped));
    }
  }
  detail::Traversal::damage(*slot.events).clear();
  return {};
}

void Walk::account(WalkSlot &slot) {
  std::ranges::move(slot.skipped, std::back_inserter(sum_.skipped));
  std::ranges::move(slot.warnings, std::back_inserter(sum_.warnings));
  sum_.late_events = slot.late_events;
  sum_.stored_bytes += slot.stored_bytes;
  sum_.decoded_bytes += slot.decoded_bytes;
  sum_.peak_memory = std::max<std::uint64_t>(sum_.peak_memory, peak_bytes_);
  sum_.buffers += order_ == Order::file ? slot.batch.buffers.size() : slot.planned;
  give_back(slot.window.finished); // batches before this one are done with them, too
  progress_.advance(slot.stored_bytes);
}

WalkSlot *Walk::next(Result<void> &status) {
  if (WalkSlot *done = std::exchange(current_, nullptr)) {
    status = settle(*done);
    account(*done);
    if (!status) return nullptr;
  }
  if (run_.stop.stop_requested()) {
    status = base::cancelled().in(trace_.infos.front().name);
    return nullptr;
  }
  WalkSlot *slot = pump_->take();
  if (slot == nullptr) return nullptr;
  if (slot->error) {
    status = *std::move(slot->error);
    return nullptr;
  }
  current_ = slot;
  return slot;
}

void Walk::report() {
  if (run_.report == nullptr) return;
  std::ranges::stable_sort(sum_.skipped, {}, [](const Skipped &s) { return std::pair(s.source, s.offset); });
  RunReport &out = *run_.report;
  out.stored_bytes += sum_.stored_bytes;
  out.decoded_bytes += sum_.decoded_bytes;
  out.buffers += sum_.buffers;
  out.late_events += sum_.late_events;
  out.buffers_left_out += sum_.buffers_left_out;
  out.peak_memory = std::max(out.peak_memory, sum_.peak_memory);
  detail::Traversal::add_to(&out, sum_.skipped, sum_.warnings);
  sum_ = {};
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began_;
  out.phases.push_back({"reading events", wall.count(), 0});
}

} // namespace etwrelog::pipeline
