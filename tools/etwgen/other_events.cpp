// Everything that a running thread causes beside samples and switches.
#include "cpu_slice.hpp"

#include "lifecycle.hpp"
#include "providers.hpp"

#include <algorithm>

namespace etwrelog::gen {

// Events come in bursts of one kind about one thing: a file read to its end, a request served, a buffer
// mapped.
void CpuSlice::other_event(std::int64_t time) {
  const Thread &thread = *current_->thread;
  const Process *process = thread.process.get();
  const bool filtered = machine_.options().profile->filtered;
  const CallGraph &kernel = machine_.kernel_graph();
  if (burst_left_ == 0) {
    burst_seed_ = rng_.next();
    burst_kind_ = dice_.others[rng_.below(256)];
    burst_left_ = static_cast<std::uint32_t>(rng_.gap(dice_.burst));
    const bool dotnet_only = burst_kind_ == Kind::clr_gc || burst_kind_ == Kind::event_source;
    if (dotnet_only && !process->dotnet && rng_.below(4) != 0) burst_kind_ = Kind::trace_logging;
  }
  --burst_left_;
  const Kind kind = burst_kind_;
  Draw draws{Rng(burst_seed_), rng_};
  auto stack_follows = [&] {
    const std::int64_t at = out_.last();
    Stack stack;
    draw(current_->kernel, stack);
    kernel_and_user(at, at, stack);
  };
  switch (kind) {
  case Kind::dpc:
  case Kind::timer_dpc:
  case Kind::isr: {
    if (filtered) return; // belong to nobody
    const std::int64_t started = out_.stamp(time) - rng_.between(20, 90);
    const auto &range = kernel.ranges()[1 + draws.same.below(6)];
    const std::uint64_t routine =
        range.start + (mix(range.start, draws.same.below(3)) % range.functions) * kFunctionBytes;
    const Kind which = kind == Kind::dpc && draws.same.below(4) == 0 ? Kind::timer_dpc : kind;
    auto &e = out_.perfinfo(which, 2, time);
    e.value(static_cast<std::uint64_t>(started)).value(routine);
    if (which == Kind::isr) e.value(1).value(0x81 + draws.same.below(4) * 0x10).value(0);
    out_.done(which, nullptr);
    return;
  }
  case Kind::demand_zero: {
    const std::uint64_t page =
        thread.user_stack_base + 0x10'0000'0000ull + (out_.stamp(time) / 1000) % 4096 * 0x1000;
    const auto &range = kernel.ranges()[0];
    out_.perfinfo(kind, 2, time).value(page).value(range.start + draws.same.below(16) * 0x40);
    out_.done(kind, process);
    return;
  }
  case Kind::hard_fault: {
    const std::int64_t started = out_.stamp(time) - rng_.between(400, 9000);
    const std::uint64_t file = draws.same.below(1024);
    auto &e = out_.perfinfo(kind, 2, time);
    e.value(static_cast<std::uint64_t>(started))
        .value(rng_.below(512) * 0x4000ull)
        .value(thread.start_address & ~std::uint64_t{0xFFF});
    e.value(file_object(file, out_.pointer_size())).value(thread.tid).value(0x4000);
    out_.done(kind, process);
    stack_follows();
    return;
  }
  case Kind::disk_read_init: {
    const bool write = draws.same.below(3) == 0;
    const Kind init = write ? Kind::disk_write_init : Kind::disk_read_init;
    const std::uint64_t irp = file_object(0x100000 + draws.same.below(64), out_.pointer_size());
    out_.system(init, 3, thread.tid, process->pid, time).value(irp).value(thread.tid);
    out_.done(init, process);
    const std::int64_t at = out_.last();
    disk_.push_back({std::min(at + 500 + rng_.gap(1500), plan_.end - 1500), at, irp,
                     file_object(draws.same.below(1024), out_.pointer_size()),
                     std::uint64_t{rng_.below(1 << 20)} * 0x1000, 0x1000u << draws.same.below(5), thread.tid,
                     write, process});
    stack_follows();
    return;
  }
  case Kind::file_read: return file_event(draws.same, time);
  case Kind::tcp_send: {
    const bool send = draws.same.below(2) == 0;
    const Kind which = draws.same.below(8) == 0 ? (send ? Kind::udp_send : Kind::udp_receive)
                                                : (send ? Kind::tcp_send : Kind::tcp_receive);
    const std::uint32_t peer = draws.same.below(24);
    auto &e = out_.perfinfo(which, 2, time);
    e.value(process->pid)
        .value(64 + draws.same.below(1400))
        .value(0x0A00'0000u + peer * 0x1131)
        .value(0x0A00'0107);
    e.value(0xBB01).value(0xC000 + peer);
    if (which == Kind::tcp_send)
      e.value(static_cast<std::uint32_t>(time / 100'000)).value(static_cast<std::uint32_t>(time / 100'000));
    e.value(0).value(0);
    out_.done(which, process);
    return;
  }
  case Kind::virtual_alloc: {
    const Kind which = draws.same.below(2) == 0 ? Kind::virtual_alloc : Kind::virtual_free;
    auto &e = out_.perfinfo(which, 2, time);
    e.value(0x0000'0213'0000'0000ull + rng_.below(512) * 0x10000)
        .value(0x1000u << draws.same.below(6))
        .value(process->pid)
        .value(0x3000);
    out_.done(which, process);
    if (rng_.below(2) == 0) stack_follows();
    return;
  }
  case Kind::trace_logging: return write_trace_logging(out_, draws, thread, time);
  case Kind::event_source: return write_event_source(out_, draws, thread, time);
  case Kind::manifest_start: {
    if (current_->user.graph == nullptr || rng_.below(8) != 0)
      return write_manifest(out_, draws, thread, time, {});
    Stack stack;
    draw(current_->user, stack);
    return write_manifest(out_, draws, thread, time, {stack.base->frames, stack.base->count});
  }
  case Kind::clr_gc: {
    if (!process->dotnet) return;
    if (rng_.below(12) == 0)
      write_clr_method(out_, thread,
                       process->methods[rng_.below(static_cast<std::uint32_t>(process->methods.size()))],
                       time);
    else
      write_clr_gc(out_, draws, thread, time);
    Stack stack;
    draw(current_->user, stack);
    return write_clr_stack(out_, thread, time, {stack.base->frames, stack.base->count});
  }
  case Kind::wpp: return write_wpp(out_, draws, thread, time);
  case Kind::registry_open: return registry_event(draws.same, time);
  default: return;
  }
}

// Open, a few reads or writes, close: one of these at a time, as a thread would have it.
void CpuSlice::file_event(Rng &same, std::int64_t time) {
  const Thread &thread = *current_->thread;
  const Process *process = thread.process.get();
  const std::uint64_t number = std::uint64_t{same.below(64)} * same.below(16);
  const std::uint64_t file = file_object(number, out_.pointer_size()),
                      key = file_object(number + 0x200000, out_.pointer_size());
  const std::uint64_t irp = file_object(0x100000 + same.below(64), out_.pointer_size());
  const std::uint32_t what = same.below(8);
  if (what == 0) {
    out_.perfinfo(Kind::file_create, 3, time)
        .value(irp)
        .value(file)
        .value(thread.tid)
        .value(0x0100'0060)
        .value(0x80)
        .value(7)
        .text(file_name(number));
    out_.done(Kind::file_create, process);
    out_.perfinfo(Kind::file_name_create, 2, time + 30).value(key).text(file_name(number));
    out_.done(Kind::file_name_create, nullptr);
  } else if (what == 1) {
    out_.perfinfo(Kind::file_close, 3, time).value(irp).value(file).value(key).value(thread.tid);
    out_.done(Kind::file_close, process);
  } else {
    const Kind kind = what < 5 ? Kind::file_read : Kind::file_write;
    out_.perfinfo(kind, 3, time)
        .value(rng_.below(256) * 0x1000ull)
        .value(irp)
        .value(file)
        .value(key)
        .value(thread.tid)
        .value(0x1000)
        .value(0x60900);
    out_.done(kind, process);
    if (rng_.below(3) == 0) {
      const std::int64_t at = out_.last();
      Stack stack;
      draw(current_->kernel, stack);
      kernel_and_user(at, at, stack);
    }
  }
  out_.perfinfo(Kind::file_end, 2, out_.last() + 40 + rng_.below(60)).value(irp).value(0x1000).value(0);
  out_.done(Kind::file_end, process);
}

// A key is opened below one that is always there, and takes the number of the one that was open before; then
// values of it are read and written, or of the other.
void CpuSlice::registry_event(Rng &same, std::int64_t time) {
  const Thread &thread = *current_->thread;
  const Process *process = thread.process.get();
  const std::uint32_t above = same.below(kKeys);
  const std::uint64_t above_key = registry_key(above, out_.pointer_size()),
                      own_key = registry_key(0x10000 + cpu_, out_.pointer_size());
  const auto done = [&](Kind kind, const std::string &about) {
    out_.done(kind, process);
    ++out_.tally.by_key[about];
  };
  if (rng_.below(5) == 0) {
    drop_key(time);
    const std::string name = "Item" + std::to_string(rng_.below(40)) + "\\Settings";
    open_key_ = key_name(above) + "\\" + name;
    write_registry(out_, Kind::registry_open, above_key, name, thread.tid, process->pid, out_.last() + 20);
    done(Kind::registry_open, open_key_);
    write_registry(out_, Kind::key_create, own_key, open_key_, thread.tid, process->pid, out_.last() + 5);
    done(Kind::key_create, open_key_);
    return;
  }
  const bool own = !open_key_.empty() && rng_.below(3) != 0;
  const Kind kind = rng_.below(4) == 0 ? Kind::registry_set_value : Kind::registry_query_value;
  write_registry(out_, kind, own ? own_key : above_key, "Value" + std::to_string(same.below(12)), thread.tid,
                 process->pid, time);
  done(kind, own ? open_key_ : key_name(above));
}

void CpuSlice::drop_key(std::int64_t time) {
  if (open_key_.empty()) return;
  const Thread &thread = *current_->thread;
  write_registry(out_, Kind::key_drop, registry_key(0x10000 + cpu_, out_.pointer_size()), open_key_,
                 thread.tid, thread.process->pid, time);
  out_.done(Kind::key_drop, thread.process.get());
  ++out_.tally.by_key[open_key_];
  open_key_.clear();
}

} // namespace etwrelog::gen
