#include "generate.hpp"

#include "cpu_slice.hpp"
#include "lifecycle.hpp"
#include "schema_events.hpp"
#include "stack_cache.hpp"

#include "base/errors.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cassert>

namespace etwrelog::gen {
namespace {

constexpr std::int64_t kPrologueLead = 600'000; // ticks from the header event to the first slice
constexpr std::int64_t kStartFiletime = 132'539'328'000'000'000; // some noon of 2020

struct Work { // one slice on its way
  SlicePlan plan;
  Snapshot alive; // after it
  bool last = false, dropped = false;
  std::vector<Stream> streams; // by processor
  Tally tally;
  write::Outgoing out;
};

LogfileHeader header_of(const Options &o) {
  LogfileHeader h;
  h.buffer_size = o.buffer_size;
  h.major = 10;
  h.provider_version = 19041;
  h.processors = o.cpus;
  h.timer_resolution = 156'250;
  h.log_file_mode =
      format::kModeSequential | (o.codec != Codec::none ? format::kModeCompressed | format::kModeRelog : 0u);
  h.pointer_size = o.pointer_size;
  h.cpu_mhz = 3600;
  h.timezone_bias = -60;
  h.perf_freq = kTicksPerSecond;
  h.start_time = kStartFiletime;
  h.first_stamp = Machine::kStart - kPrologueLead;
  h.boot_time = kStartFiletime - h.first_stamp;
  h.clock_type = static_cast<std::uint32_t>(format::ClockType::qpc);
  h.session_name = "etwgen";
  h.file_name = "C:\\traces\\" + std::string(o.profile->name) + ".etl";
  set_log_version(h, o.codec != Codec::none);
  return h;
}

MachineOptions machine_options(const Options &o) {
  MachineOptions m;
  m.profile = o.profile;
  m.seed = o.seed;
  m.cpus = o.cpus;
  m.processes = o.profile->filtered ? 2 : o.processes;
  m.pointer_size = o.pointer_size;
  m.pdbs = o.pdbs;
  m.early_pid_reuse = o.pid_reuse;
  return m;
}

class Generator {
public:
  Generator(const Options &options, write::TraceSink &sink)
      : options_(options), machine_(machine_options(options)), dice_(*options.profile),
        header_(header_of(options)), output_(sink, {options.buffer_size, options.codec}, header_.clock()) {
    if (options_.stack_cache)
      stack_cache_.emplace(stacks::StackCacheSim::Options{options_.stack_cache_buckets,
                                                          options_.stack_cache_pool, options_.pointer_size});
    if (options_.duration_s)
      slices_ =
          static_cast<std::uint64_t>(std::max(1.0, *options_.duration_s / options.profile->slice_s + 0.5));
    if (options_.size)
      size_ = *options_.size;
    else if (!options_.duration_s)
      size_ = options.profile->published ? static_cast<std::uint64_t>(options.profile->published->size)
                                         : 64 << 20;
  }

  Result<Generated> run() {
    ETWRELOG_TRY(begin());
    const unsigned threads =
        options_.threads != 0 ? options_.threads : static_cast<unsigned>(tbb::info::default_concurrency());
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    tbb::task_arena arena(static_cast<int>(threads));
    arena.execute([&] {
      tbb::parallel_pipeline(
          2 * threads + 1,
          tbb::make_filter<void, Work *>(tbb::filter_mode::serial_in_order, [this](tbb::flow_control &fc) {
            return plan(fc);
          }) & tbb::make_filter<Work *, Work *>(tbb::filter_mode::parallel, [this](Work *w) {
            return fill(w);
          }) & tbb::make_filter<Work *, Work *>(tbb::filter_mode::serial_in_order, [this](Work *w) {
            return pack(w);
          }) & tbb::make_filter<Work *, Work *>(tbb::filter_mode::parallel, [this](Work *w) {
            return seal(w);
          }) & tbb::make_filter<Work *, void>(tbb::filter_mode::serial_in_order, [this](Work *w) {
            hand_on(w);
          }));
    });
    if (error_) return *error_;
    if (options_.pid_reuse && machine_.pid_reuse().started == 0)
      return no_place("pid-reuse: no process ended and started in this trace",
                      "a profile that is not filtered, or a larger --size");
    if (options_.clock_jump && result_.clock_jump_ticks == 0)
      return no_place("clock-jump: the trace ends before it", "a larger --size or --duration");
    result_.end_time = output_.end_time();
    result_.pid_reuse = machine_.pid_reuse();
    result_.truth.pdbs = options_.pdbs;
    return std::move(result_);
  }

private:
  static Error no_place(std::string what, std::string expected) {
    Error error;
    error.kind = ErrorKind::usage;
    error.what = std::move(what);
    error.expected = std::move(expected);
    return error;
  }

  Result<void> begin() {
    Stream stream;
    Tally tally;
    const std::uint32_t tid = 4, pid = machine_.controller()->pid;
    const std::vector<std::uint8_t> event = make_logfile_header(header_, tid, pid);
    tally.add(Kind::header, static_cast<std::uint32_t>(event.size()));
    Emitter out(stream, tally, options_.pointer_size);
    out.system(Kind::partition, 2, tid, pid, header_.first_stamp).value(1).rest();
    out.done(Kind::partition, nullptr);
    // Which kernel groups are on, as the session was started with them.
    out.system(Kind::extension, 2, tid, pid, header_.first_stamp).value(0x0F00'73FF).rest(7).value(78);
    out.done(Kind::extension, nullptr);
    result_.truth.add(tally);
    result_.truth.buffers = 1;
    result_.truth.raw_bytes = format::kBufferHeaderSize + align8(event.size()) + stream.bytes.size();
    result_.truth.first_time = header_.first_stamp;
    result_.events_in_first_buffer = 3;
    for (const auto &p : machine_.processes())
      result_.truth.know(p);
    result_.truth.know(machine_.idle(0)->process);

    Work prologue;
    prologue.streams.resize(1);
    Emitter first(prologue.streams[0], prologue.tally, options_.pointer_size);
    write_prologue(first, machine_, {machine_.processes(), machine_.threads()},
                   Machine::kStart - kPrologueLead + 100);
    assert(first.last() < Machine::kStart);
    ETWRELOG_TRY(output_.begin(header_, {event, stream.bytes}, header_.first_stamp));
    put(prologue, 0, prologue.streams[0]);
    closed_before_ = std::move(prologue.out.closed);
    // The rundown at the end counts towards the size that was asked for.
    Work epilogue;
    epilogue.streams.resize(1);
    Emitter last(epilogue.streams[0], epilogue.tally, options_.pointer_size);
    write_epilogue(last, machine_, {machine_.processes(), machine_.threads()}, files_for(size_),
                   Machine::kStart);
    event_bytes_ = prologue.streams[0].bytes.size() + epilogue.streams[0].bytes.size();
    result_.truth.add(prologue.tally);
    return {};
  }

  Work *plan(tbb::flow_control &fc) {
    if (enough_.load(std::memory_order_relaxed) || planned_last_) {
      fc.stop();
      return nullptr;
    }
    Work *work = nullptr;
    {
      const std::lock_guard lock(free_mutex_);
      if (!free_.empty()) {
        work = free_.back();
        free_.pop_back();
      }
    }
    if (work == nullptr) work = pool_.emplace_back(std::make_unique<Work>()).get();
    work->dropped = false;
    work->plan = machine_.next();
    work->alive = {machine_.processes(), machine_.threads()};
    if (options_.clock_jump) jump_clock(work->plan);
    work->last = planned_last_ = slices_ != 0 && work->plan.number + 1 == slices_;
    return work;
  }

  // The clock is set forward by an hour once, between two slices: nothing else knows.
  static constexpr std::uint64_t kJumpSlice = 3;
  static constexpr std::int64_t kJump = 3600 * kTicksPerSecond;
  static void jump_clock(SlicePlan &plan) {
    if (plan.number < kJumpSlice) return;
    plan.begin += kJump;
    plan.end += kJump;
    for (CpuPlan &cpu : plan.cpus)
      for (Action &a : cpu.actions)
        a.time += kJump;
  }

  Work *fill(Work *work) {
    if (enough_.load(std::memory_order_relaxed)) return work; // will be dropped anyway
    BaseCache &cache = caches_.local();
    work->streams.resize(options_.cpus);
    work->tally.clear();
    for (std::uint32_t cpu = 0; cpu < options_.cpus; ++cpu) {
      Stream &stream = work->streams[cpu];
      stream.clear();
      Emitter out(stream, work->tally, options_.pointer_size);
      CpuSlice(machine_, dice_, work->plan, cpu, cache, out).run();
      assert(out.last() <= work->plan.end);
    }
    thin(work->tally.stack_hashes);
    return work;
  }

  // Drops hashes that this thread has handed on before: most of them, and the set of all is filled serially.
  void thin(std::vector<std::uint64_t> &hashes) {
    std::vector<std::uint64_t> &seen = seen_.local();
    seen.resize(1 << 15);
    std::erase_if(hashes, [&seen](std::uint64_t h) {
      std::uint64_t &slot = seen[(h * 0x9E37'79B9'7F4A'7C15ull) >> 49];
      const bool known = slot == h;
      slot = h;
      return known;
    });
  }

  void put(Work &work, std::uint32_t cpu, const Stream &stream) {
    write::Origin origin;
    origin.processor = static_cast<std::uint16_t>(cpu);
    if (Result<void> added = output_.fill(origin, stream.bytes, stream.runs, work.out); !added)
      fail(added.error());
    if (!stream.runs.empty()) last_time_ = std::max(last_time_, stream.runs.back().last_time);
  }

  Work *pack(Work *work) {
    work->out.closed.clear();
    if (enough_.load(std::memory_order_relaxed)) {
      work->dropped = true;
      return work;
    }
    if (options_.clock_jump && work->plan.number == kJumpSlice) {
      result_.clock_jump_at = work->plan.begin - kJump;
      result_.clock_jump_ticks = kJump;
    }
    std::swap(work->out.closed, closed_before_);
    if (stack_cache_) stack_cache_->rewrite(work->streams, work->tally);
    for (std::uint32_t cpu = 0; cpu < options_.cpus; ++cpu)
      put(*work, cpu, work->streams[cpu]);
    for (const Stream &s : work->streams)
      event_bytes_ += s.bytes.size();
    result_.truth.add(work->tally);
    const bool last = work->last || (size_ != 0 && event_bytes_ >= size_);
    if (last) {
      enough_.store(true, std::memory_order_relaxed);
      result_.seconds = static_cast<double>(work->plan.number + 1) * options_.profile->slice_s;
      finish(*work);
    }
    // A session writes its buffers in the order in which they become full.
    std::ranges::stable_sort(work->out.closed, {}, &write::OutputBuffer::last_time);
    output_.stamp(work->out);
    for (const write::OutputBuffer &b : work->out.closed) {
      ++result_.truth.buffers;
      result_.truth.raw_bytes += b.bytes.size();
    }
    return work;
  }

  // File names grow with the trace up to what a machine has open in all.
  static std::uint32_t files_for(std::uint64_t bytes) {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes / 40'000, 64, 30'000));
  }

  void finish(Work &work) {
    Stream stream;
    Tally tally;
    Emitter out(stream, tally, options_.pointer_size);
    write_epilogue(out, machine_, work.alive, files_for(event_bytes_),
                   std::max(last_time_, work.plan.end) + 1000);
    if (options_.schemas) {
      SchemaEvents known = make_schema_events(options_.seed, out.last() + 1000);
      for (const SchemaEvents::One &event : known.events) {
        static_cast<void>(out.stamp(event.time));
        out.copy(event.bytes);
      }
      out.close_run();
      result_.truth.schema_events = known.events.size();
      result_.truth.schemas = std::move(known.truth);
    }
    put(work, 0, stream);
    if (stack_cache_) {
      Stream definitions;
      stack_cache_->run_down(definitions, tally, out.last() + 10);
      put(work, 0, definitions);
    }
    output_.close_open(work.out);
    result_.truth.add(tally);
    result_.truth.last_time = last_time_;
  }

  Work *seal(Work *work) {
    if (!work->dropped) output_.seal(work->out);
    return work;
  }

  void hand_on(Work *work) {
    if (!error_) {
      for (const write::OutputBuffer &b : work->out.closed)
        result_.truth.file_bytes += b.bytes.size();
      if (Result<void> written = output_.append(work->out); !written) fail(written.error());
    }
    const std::lock_guard lock(free_mutex_);
    free_.push_back(work);
  }

  void fail(const Error &error) {
    const std::lock_guard lock(free_mutex_);
    if (!error_) error_ = error;
    enough_.store(true, std::memory_order_relaxed);
  }

  const Options options_;
  Machine machine_;
  Dice dice_;
  LogfileHeader header_;
  write::EtlOutput output_;
  Generated result_;
  std::optional<StackCache> stack_cache_;
  std::uint64_t slices_ = 0, size_ = 0, event_bytes_ = 0;
  std::int64_t last_time_ = 0;
  bool planned_last_ = false;
  std::atomic<bool> enough_{false};
  std::optional<Error> error_;
  std::vector<write::OutputBuffer> closed_before_; // of the prologue
  std::mutex free_mutex_;
  std::vector<std::unique_ptr<Work>> pool_;
  std::vector<Work *> free_;
  tbb::enumerable_thread_specific<BaseCache> caches_;
  tbb::enumerable_thread_specific<std::vector<std::uint64_t>> seen_;
};

} // namespace

Result<Generated> generate(const Options &options, write::TraceSink &sink) {
  Options complete = options;
  if (complete.cpus == 0) complete.cpus = options.profile->cpus;
  return Generator(complete, sink).run();
}

Result<void> MemorySink::begin(const LogfileHeader &h, const write::HeaderBuffer &first) {
  header = h;
  bytes = write::make_header_buffer(first, h.buffer_size, (h.log_file_mode & format::kModeCompressed) != 0);
  return {};
}

Result<void> MemorySink::append(const write::OutputBuffer &buffer) {
  bytes.insert(bytes.end(), buffer.bytes.begin(), buffer.bytes.end());
  return {};
}

} // namespace etwrelog::gen
