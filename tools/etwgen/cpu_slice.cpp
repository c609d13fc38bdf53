#include "cpu_slice.hpp"

#include "lifecycle.hpp"
#include "providers.hpp"

#include <algorithm>
#include <bit>

namespace etwrelog::gen {
namespace {

constexpr std::int64_t kMillisecond = kTicksPerSecond / 1000, kMicrosecond = kTicksPerSecond / 1'000'000;

Dice::Stacks stacks_of(const StackModel &m) {
  return {Chance(1 - m.stay),
          Chance(m.revisit),
          Chance(m.same_leaf),
          Zipf(m.base_exponent, m.base_octaves),
          Zipf(m.leaf_exponent, m.leaf_octaves),
          m.depth,
          m.leaf_depth};
}

} // namespace

Dice::Dice(const Profile &p)
    : user(stacks_of(p.user)), kernel(stacks_of(p.kernel)), idle_next(p.idle_share),
      kernel_mode(p.kernel_share), user_part(p.user_part), switch_stacks(p.switch_stacks), ready(p.ready),
      wait_varies(p.wait_varies), busy_ticks(static_cast<std::int64_t>(p.busy_burst_us * kMicrosecond)),
      idle_ticks(static_cast<std::int64_t>(p.idle_burst_us * kMicrosecond)),
      epoch_ticks(static_cast<std::int64_t>(p.epoch_s * kTicksPerSecond)),
      jitter_ticks(static_cast<std::int64_t>(p.sample_jitter)),
      walk_ticks(static_cast<std::int64_t>(p.walk_ticks)),
      burst(std::max<std::int64_t>(1, static_cast<std::int64_t>(p.other_burst))) {
  const OtherRates &o = p.other;
  const std::pair<Kind, double> rates[] = {{Kind::dpc, o.dpc},
                                           {Kind::isr, o.isr},
                                           {Kind::demand_zero, o.page_fault},
                                           {Kind::hard_fault, o.hard_fault},
                                           {Kind::file_read, o.file},
                                           {Kind::disk_read_init, o.disk},
                                           {Kind::tcp_send, o.tcp},
                                           {Kind::virtual_alloc, o.virtual_memory},
                                           {Kind::trace_logging, o.trace_logging},
                                           {Kind::event_source, o.event_source},
                                           {Kind::manifest_start, o.manifest},
                                           {Kind::clr_gc, o.clr},
                                           {Kind::wpp, o.wpp},
                                           {Kind::registry_open, o.registry}};
  double total = 0, upto = 0;
  for (const auto &[kind, rate] : rates)
    total += rate;
  other_ticks = total <= 0 ? INT64_MAX / 4
                           : std::max<std::int64_t>(1, static_cast<std::int64_t>(kTicksPerSecond / total));
  for (const auto &[kind, rate] : rates) {
    upto += rate;
    const auto end = static_cast<std::size_t>(total <= 0 ? 0 : upto / total * 256 + 0.5);
    while (others.size() < end)
      others.push_back(kind);
  }
  others.resize(256, Kind::dpc);
}

CpuSlice::CpuSlice(const Machine &machine, const Dice &dice, const SlicePlan &plan, std::uint32_t cpu,
                   BaseCache &cache, Emitter &out)
    : machine_(machine), dice_(dice), plan_(plan), cpu_(cpu), cache_(cache), out_(out),
      rng_(mix(machine.options().seed, plan.number + 1, cpu + 1)) {
  const CpuPlan &c = plan.cpus[cpu];
  runners_.reserve(c.hot.size() + c.actions.size() + 1);
  runners_.push_back(make_runner(c.first));
  for (const ThreadRef &t : c.hot)
    runners_.push_back(make_runner(t));
  for (const Action &a : c.actions)
    runners_.push_back(make_runner(a.actor));
  current_ = &runners_.front();
  // What every wait ends in: KeWaitForSingleObject, KiCommitThreadWait, KiSwapThread, KiSwapContext.
  const std::uint64_t nt = machine.kernel_graph().ranges()[0].start;
  const std::uint64_t wait[] = {nt + 0x1F2C6, nt + 0x20A37, nt + 0x22DF3, nt + 0x2462F};
  std::copy(std::begin(wait), std::end(wait), switch_leaf_);
}

CpuSlice::Runner CpuSlice::make_runner(const ThreadRef &thread) {
  Runner r;
  r.thread = thread.get();
  const CallGraph &kernel = machine_.kernel_graph();
  r.user = {&thread->process->graph, &dice_.user, mix(thread->number, 1), 0, 0};
  r.kernel = {&kernel, &dice_.kernel, mix(thread->number, 2), 0, 0};
  r.wait = {&kernel, &dice_.kernel, mix(thread->number, 3), 0, 0};
  r.visible = !machine_.options().profile->filtered || thread->process->target;
  if (thread->process->graph.ranges().empty() || thread->process->pid <= 4)
    r.user.graph = nullptr; // never leaves the kernel
  for (Voice *v : {&r.user, &r.kernel, &r.wait})
    v->base = member(*v, 0);
  return r;
}

// The bases that a thread returns to, each replaced once an epoch at its own time: the same in every slice of
// it.
std::uint64_t CpuSlice::member(const Voice &voice, unsigned slot) const {
  const std::uint64_t h = mix(voice.seed, slot);
  const std::int64_t shift = static_cast<std::int64_t>(h % static_cast<std::uint64_t>(dice_.epoch_ticks));
  // The first ones stay longest.
  const std::int64_t length = dice_.epoch_ticks << (slot < 4 ? 3 - slot : 0);
  const auto epoch = static_cast<std::uint64_t>((plan_.begin + shift) / length);
  return voice.dice->base.draw(mix(h, epoch));
}

void CpuSlice::draw(Voice &voice, Stack &stack) {
  bool same_leaf = rng_.hit(voice.dice->same_leaf);
  if (rng_.hit(voice.dice->leave)) {
    if (rng_.hit(voice.dice->revisit))
      voice.base = member(voice, std::min<unsigned>(static_cast<unsigned>(std::countr_zero(rng_.next())), 7));
    else
      voice.base = voice.dice->base.draw(rng_.next());
    same_leaf = false;
  }
  if (!same_leaf) voice.leaf = voice.dice->leaf.draw(rng_.next());
  stack.base = &cache_.find(*voice.graph, voice.base, voice.dice->depth);
  stack.leaves =
      walk_leaf(*voice.graph, *stack.base, voice.leaf, voice.dice->leaf_depth, stack.leaf, stack.hash);
}

void CpuSlice::draw_wait(Voice &voice, Stack &stack) {
  if (rng_.hit(dice_.wait_varies)) {
    const unsigned slot = std::min<unsigned>(static_cast<unsigned>(std::countr_zero(rng_.next())), 7);
    voice.base = rng_.hit(voice.dice->revisit) ? member(voice, slot) : voice.dice->base.draw(rng_.next());
  }
  stack.base = &cache_.find(*voice.graph, voice.base, voice.dice->depth);
  stack.leaves = 4;
  stack.hash = stack.base->hash;
  for (unsigned i = 0; i < 4; ++i) {
    stack.leaf[3 - i] = switch_leaf_[i];
    stack.hash = hash_frame(stack.hash, switch_leaf_[i]);
  }
}

void CpuSlice::write_stack(const Thread &thread, std::int64_t event_time, std::int64_t time,
                           const Stack &stack) {
  auto &e = out_.perfinfo(Kind::stack_walk, 2, time);
  e.value(static_cast<std::uint64_t>(event_time)).value(thread.process->pid).value(thread.tid);
  e.stack({stack.leaf, stack.leaves}).frames({stack.base->frames, stack.base->count});
  out_.done(Kind::stack_walk, thread.process.get());
  out_.tally.frames += stack.leaves + stack.base->count;
  out_.tally.stack_hashes.push_back(stack.hash);
  out_.tally.stack_owners.push_back(thread.process->index);
}

void CpuSlice::kernel_and_user(std::int64_t event_time, std::int64_t time, const Stack &kernel) {
  write_stack(*current_->thread, event_time, time + 40 + rng_.gap(dice_.walk_ticks / 2), kernel);
  if (current_->user.graph != nullptr && rng_.hit(dice_.user_part))
    pending_.push_back({out_.last() + 60 + rng_.gap(dice_.walk_ticks), event_time});
}

void CpuSlice::flush_pending(std::int64_t upto) {
  std::size_t done = 0;
  for (; done < pending_.size() && pending_[done].due <= upto; ++done) {
    Stack stack;
    draw(current_->user, stack);
    write_stack(*current_->thread, pending_[done].event_time, pending_[done].due, stack);
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(done));
}

CpuSlice::Runner *CpuSlice::choose_next() {
  const bool filtered = machine_.options().profile->filtered;
  const std::size_t hot = plan_.cpus[cpu_].hot.size();
  if (hot == 0) return &runners_.front();
  if (current_ != &runners_.front() && (filtered || rng_.hit(dice_.idle_next))) return &runners_.front();
  // Mostly the first of the hot ones.
  const std::size_t i =
      std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(rng_.next())), hot - 1);
  return &runners_[1 + i];
}

void CpuSlice::switch_to(Runner *next, std::int64_t time) {
  if (next == current_) return;
  flush_pending(INT64_MAX);
  const bool to_thread = next != &runners_.front();
  time = out_.stamp(time);
  if (to_thread && next->visible && current_->visible && rng_.hit(dice_.ready)) {
    // Woken by the thread that runs, or by an interrupt: then the stack is the kernel's alone.
    const std::int64_t at = out_.stamp(time);
    auto &e = out_.perfinfo(Kind::ready_thread, 2, at);
    e.value(next->thread->tid)
        .value(1 + rng_.below(2))
        .value(rng_.below(3))
        .value(current_->thread->tid == 0 ? 1 : 0)
        .rest();
    out_.done(Kind::ready_thread, next->thread->process.get());
    if (current_->thread->tid != 0) {
      Stack stack;
      draw(current_->kernel, stack);
      kernel_and_user(at, at, stack);
      flush_pending(INT64_MAX);
    }
    time = out_.last() + 12 + rng_.below(30);
  }
  if (next->visible || current_->visible) {
    const bool filtered = machine_.options().profile->filtered;
    const std::uint32_t stranger = filtered ? 0x1000 + 4 * rng_.below(12) : 0;
    auto &e = out_.perfinfo(Kind::context_switch, 4, time);
    const Thread &in = *next->thread, &gone = *current_->thread;
    e.value(next == &runners_.front() ? stranger : in.tid)
        .value(current_ == &runners_.front() ? stranger : gone.tid);
    e.value(in.priority).value(gone.priority).value(gone.tid == 0 ? 1 : 0).value(0);
    e.value(gone.tid == 0 ? 0 : 6 + (rng_.below(8) == 0 ? 9 : 0))
        .value(0)
        .value(gone.tid == 0 ? 2 : 5)
        .value(cpu_);
    e.value(in.tid == 0 ? 0 : rng_.below(2)).value(0);
    const Process *a = in.process.get(), *b = gone.process.get();
    if (next->visible && current_->visible && a != b) out_.tally.own(Kind::context_switch, b->index);
    out_.done(Kind::context_switch, next->visible ? a : b);
    const std::int64_t at = out_.last();
    current_ = next;
    if (to_thread && next->visible && rng_.hit(dice_.switch_stacks)) {
      Stack stack;
      draw_wait(next->wait, stack);
      kernel_and_user(at, at, stack);
    }
  }
  current_ = next;
}

void CpuSlice::take_sample(std::int64_t time) {
  const bool idle = current_ == &runners_.front();
  const Thread &thread = *current_->thread;
  Stack stack;
  const bool kernel = idle || current_->user.graph == nullptr || rng_.hit(dice_.kernel_mode);
  if (!idle) draw(kernel ? current_->kernel : current_->user, stack);
  // The processor sleeps at one of two instructions.
  const std::uint64_t ip =
      idle ? machine_.kernel_graph().ranges()[0].start + 0x3112 + (rng_.below(8) == 0 ? 9 : 0) : stack.top();
  auto &e = out_.perfinfo(Kind::sample, 2, time);
  e.value(ip).value(thread.tid).value(1).value(kernel ? 0x40 : 0);
  out_.done(Kind::sample, thread.process.get());
  if (idle) return;
  for (const Process::Planted &planted : thread.process->planted)
    if (ip >= planted.begin && ip < planted.end)
      ++out_.tally.planted[{planted.pdb, static_cast<std::uint32_t>(ip - planted.base)}];
  const std::int64_t at = out_.last();
  if (kernel)
    kernel_and_user(at, at, stack);
  else
    write_stack(thread, at, at + 80 + rng_.gap(dice_.walk_ticks), stack);
}

void CpuSlice::finish_disk(std::int64_t time) {
  for (std::size_t i = 0; i < disk_.size();) {
    const Completion &d = disk_[i];
    if (d.due > time) {
      ++i;
      continue;
    }
    auto &e = out_.perfinfo(d.write ? Kind::disk_write : Kind::disk_read, 3, d.due);
    e.value(0)
        .value(d.write ? 0x60A00 : 0x60043)
        .value(d.size)
        .value(0)
        .value(d.offset)
        .value(d.file)
        .value(d.irp);
    e.value(static_cast<std::uint64_t>(out_.last() - d.started)).value(d.tid);
    out_.done(d.write ? Kind::disk_write : Kind::disk_read, d.process);
    disk_[i] = disk_.back();
    disk_.pop_back();
  }
}

void CpuSlice::run() {
  const CpuPlan &cpu = plan_.cpus[cpu_];
  const std::int64_t end = plan_.end - 2000;
  std::int64_t time = plan_.begin;
  // The profile interrupt of a processor comes at its own phase of the millisecond.
  const std::int64_t phase = static_cast<std::int64_t>(mix(machine_.options().seed, 91, cpu_) % kMillisecond);
  std::int64_t sample = plan_.begin - plan_.begin % kMillisecond + phase;
  if (sample < plan_.begin) sample += kMillisecond;
  std::int64_t burst_end = time + rng_.gap(dice_.idle_ticks), other = time + rng_.gap(dice_.other_ticks);
  std::size_t action = 0;
  for (;;) {
    const std::int64_t scripted = action < cpu.actions.size() ? cpu.actions[action].time : INT64_MAX;
    const std::int64_t due = pending_.empty() ? INT64_MAX : pending_.front().due;
    time = std::min({sample, burst_end, other, scripted, due});
    if (time >= end) break;
    if (!disk_.empty()) finish_disk(time);
    if (time == due) {
      flush_pending(time);
    } else if (time == scripted) {
      act(cpu.actions[action++]);
    } else if (time == sample) {
      if (current_->visible) take_sample(time + rng_.gap(dice_.jitter_ticks));
      sample += kMillisecond;
    } else if (time == other) {
      if (current_ != &runners_.front()) other_event(time);
      // Inside a burst events follow each other at a fraction of the mean distance.
      other = time + rng_.gap(burst_left_ > 0 ? dice_.other_ticks / 8 + 20 : dice_.other_ticks * dice_.burst);
    } else {
      switch_to(choose_next(), time);
      burst_end = std::max(time, out_.last()) +
                  rng_.gap(current_ == &runners_.front() ? dice_.idle_ticks : dice_.busy_ticks);
    }
  }
  switch_to(&runners_.front(), end);
  finish_disk(INT64_MAX);
  drop_key(end);
  out_.close_run();
}

void CpuSlice::act(const Action &action) {
  const auto runner = std::ranges::find(runners_, action.actor.get(), &Runner::thread);
  switch_to(&*runner, action.time);
  flush_pending(INT64_MAX);
  const Thread &actor = *action.actor;
  const Process &process = *actor.process;
  const std::int64_t time = out_.stamp(action.time) + 20;
  switch (action.kind) {
  case Action::Kind::thread_start: {
    write_thread(out_, Kind::thread_start, *action.thread, actor.tid, process.pid, time);
    Stack stack;
    draw(runner->kernel, stack);
    const std::int64_t at = out_.last();
    kernel_and_user(at, at, stack);
    return;
  }
  case Action::Kind::thread_end:
    write_thread(out_, Kind::thread_end, actor, actor.tid, process.pid, time);
    break;
  case Action::Kind::process_end: {
    std::int64_t at = time;
    for (const ThreadRef &t : action.siblings)
      write_thread(out_, Kind::thread_end, *t, t->tid, process.pid, at += 90);
    for (const LoadedImage &i : process.images)
      write_image(out_, Kind::image_unload, i, &process, nullptr, actor.tid, process.pid, at += 40, false);
    write_process(out_, Kind::process_end, process, actor.tid, process.pid, at += 60);
    write_thread(out_, Kind::thread_end, actor, actor.tid, process.pid, at += 30);
    break;
  }
  case Action::Kind::process_start: start_process(action); return;
  }
  pending_.clear();
  switch_to(&runners_.front(), out_.last() + 40);
  runner->visible = false;
}

void CpuSlice::start_process(const Action &action) {
  const Thread &creator = *action.actor, &thread = *action.thread;
  const Process &process = *thread.process;
  out_.tally.appeared.push_back(thread.process);
  std::int64_t time = out_.stamp(action.time) + 20;
  write_process(out_, Kind::process_start, process, creator.tid, creator.process->pid, time);
  write_thread(out_, Kind::thread_start, thread, creator.tid, creator.process->pid, time += 160);
  for (const LoadedImage &i : process.images)
    write_image(out_, Kind::image_load, i, &process, nullptr, thread.tid, process.pid,
                time += 700 + rng_.below(900), true);
  if (process.dotnet)
    for (std::size_t i = 0; i < process.methods.size(); i += 8)
      write_clr_method(out_, thread, process.methods[i], time += 400);
}

} // namespace etwrelog::gen
