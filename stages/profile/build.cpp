#include "profile/build.hpp"

#include "profile/by_time.hpp"
#include "profile/images.hpp"
#include "profile/lookup_tables.hpp"
#include "profile/timeline.hpp"
#include "profile/waits.hpp"

#include <algorithm>
#include <map>

namespace etwrelog::profile {
namespace {

// Raw time stamps as nanoseconds since the trace began.
class Nanoseconds {
public:
  explicit Nanoseconds(const Clock &clock) : first_(clock.first_stamp) {
    switch (clock.type) {
    case format::ClockType::system_time: divisor_ = 10'000'000; break;
    case format::ClockType::cpu_cycles: divisor_ = std::int64_t{clock.cpu_mhz} * 1'000'000; break;
    default: divisor_ = clock.perf_freq; break;
    }
    if (divisor_ <= 0) divisor_ = 1'000'000'000; // a header that says nothing of use
  }
  [[nodiscard]] std::int64_t operator()(std::int64_t raw) const {
    if (raw == kBeginning || raw == kForever) return raw;
    constexpr std::int64_t kSecond = 1'000'000'000,
                           kLimit = std::numeric_limits<std::int64_t>::max() / kSecond - 1;
    std::int64_t ticks = 0;
    if (__builtin_sub_overflow(raw, first_, &ticks)) return raw < first_ ? kBeginning + 1 : kForever - 1;
    const std::int64_t seconds = ticks / divisor_, rest = ticks % divisor_;
    if (seconds > kLimit || seconds < -kLimit) return seconds < 0 ? kBeginning + 1 : kForever - 1;
    const auto part = divisor_ <= kSecond * 9
                          ? rest * kSecond / divisor_
                          : static_cast<std::int64_t>(static_cast<long double>(rest) * kSecond /
                                                      static_cast<long double>(divisor_));
    return seconds * kSecond + part;
  }

private:
  std::int64_t first_, divisor_ = 1;
};

class Builder {
public:
  Builder(Records &records, const Clock &clock, const ReadFrames &read_frames, const BuildOptions &options,
          Profile &profile)
      : records_(records), to_ns_(clock), read_frames_(read_frames), options_(options), profile_(profile) {}

  void run() {
    learn();
    for (const IntervalRecord &interval : records_.intervals)
      if (interval.source == 0)
        profile_.intervals.push_back({to_ns_(interval.time), std::uint64_t{interval.interval} * 100});
    count_fragments();
    if (options_.kind == ProfileKind::cpu)
      take_samples();
    else
      take_waits();
    forget_stacks();
    if (options_.slices) take_slices();
    finish_modules();
  }

private:
  // What stands early in the file is early in time, nearly: memory of subjects goes as that of samples comes.
  void take_samples() {
    const std::vector<std::uint32_t> order = by_time(records_.subjects);
    profile_.samples.reserve(order.size());
    std::vector<std::uint32_t> left(records_.subjects.chunks());
    for (std::size_t i = 0; i < left.size(); ++i)
      left[i] = static_cast<std::uint32_t>(records_.subjects.chunk(i).size());
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + kAhead < order.size()) __builtin_prefetch(&records_.subjects[order[i + kAhead]]);
      take(records_.subjects[order[i]]);
      const std::size_t chunk = order[i] >> Sequence<Subject>::kChunkBits;
      if (--left[chunk] == 0) records_.subjects.release_chunk(chunk);
    }
    records_.subjects.clear();
  }

  // Every switch is in a class; those that end a wait are its sample.
  void take_waits() {
    for (std::size_t i = 0; i < records_.subjects.size(); ++i) {
      const Subject &subject = records_.subjects[i];
      const Context &at = context(subject.thread, subject.time);
      count(at.process, class_of(subject, at.pid));
      if (at.pid == 0) ++profile_.accounting.idle_left_out;
    }
    std::uint64_t timed = 0;
    for (const Wait &wait : find_waits(records_)) {
      const Subject &subject = records_.subjects[wait.subject];
      Context &at = context(subject.thread, subject.time);
      if (at.pid == 0) continue;
      const bool ready = options_.kind == ProfileKind::ready;
      const std::int64_t from = to_ns_(ready ? wait.ready : wait.out),
                         to = to_ns_(ready ? wait.in : wait.ready);
      const std::uint64_t micros = to > from ? (static_cast<std::uint64_t>(to - from) + 500) / 1000 : 0;
      if (micros == 0) continue;
      ++timed;
      const SampleClass sample_class = class_of(subject, at.pid);
      std::uint32_t node = sample_class == SampleClass::no_stack ? child(0, annotation("[no stack]"))
                                                                 : node_of(subject, at, sample_class);
      const std::uint32_t thread = at.thread;
      if (wait.waker != kUnknownId) {
        const std::uint32_t waker = context(wait.waker, wait.ready).process;
        node = child(node, annotation("readied by " + process_text(profile_.processes[waker]) + "_[w]"));
      }
      profile_.samples.push_back({from, micros, thread, node, wait.processor, sample_class});
    }
    profile_.accounting.not_timed = records_.subjects.size() - profile_.accounting.idle_left_out - timed;
    std::ranges::stable_sort(profile_.samples, {}, &ProfileSample::time);
  }

  // What only samples needed.
  void forget_stacks() {
    known_ = user_paths_ = resolved_ = resolved_addresses_ = frame_numbers_ = WordMap();
    children_ = {};
    user_ends_ = {};
    resolved_frames_ = {};
  }

  void take_slices() {
    profile_.slices.reserve(3 * records_.switches.size()); // at most: a switch ends a run and a wait
    const auto add = [&](std::uint32_t thread, std::int64_t from, std::int64_t to, std::uint16_t processor,
                         SliceState state, std::uint8_t reason) {
      if (to > from)
        profile_.slices.push_back(
            {to_ns_(from), to_ns_(to), context(thread, to).thread, processor, state, reason});
    };
    for (const Running &run : find_running(records_, options_.time))
      add(run.thread, run.from, run.to, run.processor, SliceState::running, 0);
    for (const Wait &wait : find_waits(records_)) {
      add(wait.thread, wait.out, wait.ready, wait.processor, SliceState::waiting, wait.reason);
      add(wait.thread, wait.ready, wait.in, wait.processor, SliceState::ready, 0);
    }
    std::ranges::sort(profile_.slices, {},
                      [](const ProfileSlice &s) { return std::tuple(s.thread, s.start, s.end); });
  }

  // Whose a thread is, and what its addresses mean, for as long as that stays so: the answer for nearly every
  // sample is that for the thread's last one.
  struct Context {
    std::uint32_t tid = 0, pid = kNoIndex, process = 0, thread = 0;
    std::uint32_t kernel_epoch = 0, epoch = 0; // of addresses in the kernel, and in the process or the kernel
    TimeRange valid;
    std::uint32_t kernel = Subject::kNoFragment, user = Subject::kNoFragment, node = 0; // its last stack
  };
  struct Path { // a node, and the hash of the frames that lead to it
    std::uint32_t node = 0;
    std::uint64_t hash = 0;
  };
  struct ProcessAt {
    std::uint32_t pid = 0, number = 0;
    TimeRange valid;
  };

  void learn() {
    std::unordered_map<std::string, std::uint32_t> numbers;
    for (const ProcessRecord &record : records_.processes) {
      const auto [place, fresh] = numbers.try_emplace(record.name, static_cast<std::uint32_t>(names_.size()));
      if (fresh) names_.push_back(record.name);
      process_times_.add(record.pid, record.at, record.opcode, place->second);
    }
    process_times_.close();
    command_lines_.resize(process_times_.size());
    for (const ProcessRecord &record : records_.processes)
      if (const std::uint32_t span = process_times_.find(record.pid, record.at.time);
          span != Timeline::kNone && command_lines_[span].empty())
        command_lines_[span] = record.command_line;
    for (const ThreadRecord &record : records_.threads)
      thread_times_.add(record.tid, record.at, record.opcode, record.pid);
    thread_times_.close();
    std::ranges::sort(records_.thread_names, {}, [](const ThreadName &n) { return std::pair(n.tid, n.at); });
    images_.build(std::move(records_.images), records_.processes, records_.identities);
    module_of_image_.assign(images_.size(), kNoIndex);
  }

  // Its number in the profile.
  const ProcessAt &process(std::uint32_t pid, std::int64_t time) {
    ProcessAt &known = process_memo_[(pid * 0x9E37'79B1u) >> (32 - kProcessMemoBits)];
    if (known.pid == pid && known.valid.holds(time)) return known;
    known = {pid, 0, kAlways};
    const std::uint32_t span = process_times_.find(pid, time, known.valid);
    bool fresh = false;
    std::uint32_t &number = process_numbers_.at({pid, span, 0, 0}, fresh);
    if (fresh) number = add_process(pid, span);
    known.number = number;
    return known;
  }

  std::uint32_t add_process(std::uint32_t pid, std::uint32_t span) {
    ProfileProcess &process = profile_.processes.emplace_back();
    process.pid = pid;
    process.name = span == Timeline::kNone ? "?" : names_[process_times_[span].value];
    if (span != Timeline::kNone) {
      process.command_line = command_lines_[span];
      process.start = to_ns_(process_times_[span].start);
      process.end = to_ns_(process_times_[span].end);
    }
    profile_.accounting.by_process.emplace_back();
    return static_cast<std::uint32_t>(profile_.processes.size() - 1);
  }

  // Valid until the next call.
  Context &context(std::uint32_t tid, std::int64_t time) {
    Context &known = contexts_[(tid * 0x9E37'79B1u) >> (32 - kContextBits)];
    if (known.tid == tid && known.valid.holds(time)) return known;
    known = {};
    known.tid = tid;
    known.valid = kAlways;
    const std::uint32_t span = tid == 0 ? Timeline::kNone : thread_times_.find(tid, time, known.valid);
    if (tid == 0)
      known.pid = 0;
    else if (span != Timeline::kNone)
      known.pid = thread_times_[span].value;
    const ProcessAt &process_at = process(known.pid, time);
    known.process = process_at.number;
    known.valid.from = std::max(known.valid.from, process_at.valid.from);
    known.valid.to = std::min(known.valid.to, process_at.valid.to);
    known.epoch = known.kernel_epoch = images_.kernel_epoch(time, known.valid);
    if (known.pid != 0 && known.pid != 4) known.epoch += images_.epoch(known.pid, time, known.valid);
    if (options_.methods != nullptr) known.epoch += options_.methods->epoch(known.pid, time, known.valid);
    bool fresh = false;
    std::uint32_t &number = thread_numbers_.at({tid, span, known.process, 0}, fresh);
    if (fresh) number = add_thread(tid, span, known.process);
    known.thread = number;
    return known;
  }

  std::uint32_t add_thread(std::uint32_t tid, std::uint32_t span, std::uint32_t process) {
    ProfileThread &thread = profile_.threads.emplace_back();
    thread.tid = tid;
    thread.process = process;
    if (span != Timeline::kNone) {
      thread.start = to_ns_(thread_times_[span].start);
      thread.end = to_ns_(thread_times_[span].end);
    }
    const std::vector<ThreadName> &names = records_.thread_names;
    for (auto name = std::ranges::lower_bound(names, tid, {}, &ThreadName::tid);
         name != names.end() && name->tid == tid; ++name)
      if (!name->name.empty() && (span == Timeline::kNone || thread_times_.find(tid, name->at.time) == span))
        thread.name = name->name;
    return static_cast<std::uint32_t>(profile_.threads.size() - 1);
  }

  void count(std::uint32_t process, SampleClass sample_class) {
    for (ProfileCounts *counts : {&profile_.accounting.total, &profile_.accounting.by_process[process]}) {
      ++counts->samples;
      ++counts->by_class[static_cast<std::size_t>(sample_class)];
    }
  }

  void take(const Subject &subject) {
    Context &at = context(subject.thread, subject.time);
    const SampleClass sample_class = class_of(subject, at.pid);
    count(at.process, sample_class);
    if ((subject.flags & (Subject::kInDpc | Subject::kInIsr)) != 0) ++profile_.accounting.in_dpc_or_isr;
    if (at.pid == 0 && !options_.idle) {
      ++profile_.accounting.idle_left_out;
      return;
    }
    profile_.samples.push_back({to_ns_(subject.time), 1, at.thread, node_of(subject, at, sample_class),
                                subject.processor, sample_class});
  }

  [[nodiscard]] static SampleClass class_of(const Subject &subject, std::uint32_t pid) {
    if (subject.user != Subject::kNoFragment) return SampleClass::full;
    if (subject.kernel == Subject::kNoFragment) return SampleClass::no_stack;
    return pid == 0 || pid == 4 ? SampleClass::kernel_complete : SampleClass::user_missing;
  }

  // Stacks repeat: what was made of one is used again as long as the images of the process stay as they are.
  std::uint32_t node_of(const Subject &subject, Context &at, SampleClass sample_class) {
    if (sample_class == SampleClass::no_stack) {
      const std::uint32_t note = child(0, annotation("[no stack]"));
      return child(note, frame(at, subject.time, subject.ip, subject.pointer_size, true));
    }
    if (at.kernel == subject.kernel && at.user == subject.user) return at.node;
    bool fresh = false;
    std::uint32_t &node = known_.at({at.pid, at.epoch, subject.kernel, subject.user}, fresh);
    if (fresh) {
      Path path{0, children_.root()};
      if (sample_class == SampleClass::user_missing) {
        const std::uint32_t note = annotation("[user stack missing]");
        path = {child(0, note), Children::hash(children_.root(), note)};
      }
      if (subject.user != Subject::kNoFragment) path = user_path(at, subject);
      if (subject.kernel != Subject::kNoFragment) extend(path, frames_of(at, subject, subject.kernel));
      node = path.node;
    }
    at.kernel = subject.kernel;
    at.user = subject.user;
    return at.node = node;
  }

  // Many kernel parts stand on one user part.
  Path user_path(const Context &at, const Subject &subject) {
    bool fresh = false;
    std::uint32_t &known = user_paths_.at({at.pid, at.epoch, subject.user, 0}, fresh);
    if (!fresh) return user_ends_[known];
    known = static_cast<std::uint32_t>(user_ends_.size());
    Path path{0, children_.root()};
    extend(path, frames_of(at, subject, subject.user));
    return user_ends_.emplace_back(path);
  }

  void extend(Path &path, std::span<const std::uint32_t> frames) {
    std::uint64_t hash = path.hash;
    for (const std::uint32_t frame : frames)
      children_.prefetch(hash = Children::hash(hash, frame));
    for (const std::uint32_t frame : frames) {
      path.hash = Children::hash(path.hash, frame);
      path.node = child(path.hash, path.node, frame);
    }
  }

  // The frames of a stack in this process, outermost first. Valid until the next call.
  std::span<const std::uint32_t> frames_of(const Context &at, const Subject &subject, std::uint32_t stack) {
    bool fresh = false;
    std::uint32_t &place = resolved_.at({at.pid, at.epoch, stack, subject.pointer_size}, fresh);
    if (fresh) {
      read_frames_(stack, addresses_);
      place = static_cast<std::uint32_t>(resolved_frames_.size());
      resolved_frames_.push_back(static_cast<std::uint32_t>(addresses_.size()));
      for (std::size_t i = 0; i < addresses_.size(); ++i)
        resolved_addresses_.prefetch(address_key(at, addresses_[i], subject.pointer_size, i == 0));
      for (std::size_t i = addresses_.size(); i-- > 0;)
        resolved_frames_.push_back(frame(at, subject.time, addresses_[i], subject.pointer_size, i == 0));
    }
    return std::span(resolved_frames_).subspan(place + 1u, resolved_frames_[place]);
  }

  // Of a node whose path nobody kept: by a note, or below one.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame) {
    return child(Children::hash(children_.of_node(parent), frame), parent, frame);
  }
  std::uint32_t child(std::uint64_t path, std::uint32_t parent, std::uint32_t frame) {
    std::uint32_t &node = children_.at(path, parent, frame);
    if (node == kNoIndex) {
      node = static_cast<std::uint32_t>(profile_.nodes.size());
      profile_.nodes.push_back({parent, frame});
    }
    return node;
  }

  std::uint32_t annotation(const std::string &text) {
    const auto [place, fresh] =
        annotations_.try_emplace(text, static_cast<std::uint32_t>(profile_.frames.size()));
    if (fresh) {
      ProfileFrame frame;
      frame.function = text;
      frame.kind = FrameKind::annotation;
      frame.why = Unresolved::none;
      profile_.frames.push_back(std::move(frame));
    }
    return place->second;
  }

  // Addresses repeat more than stacks.
  std::uint32_t frame(const Context &at, std::int64_t time, std::uint64_t address, unsigned pointer_size,
                      bool innermost) {
    bool fresh = false;
    std::uint32_t &number = resolved_addresses_.at(address_key(at, address, pointer_size, innermost), fresh);
    if (fresh)
      number = resolve(at.pid, time, address, format::is_kernel_address(address, pointer_size), innermost);
    return number;
  }
  static WordMap::Key address_key(const Context &at, std::uint64_t address, unsigned pointer_size,
                                  bool innermost) {
    const bool in_kernel = format::is_kernel_address(address, pointer_size);
    return {static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32),
            in_kernel ? kNoIndex : at.pid,
            (in_kernel ? at.kernel_epoch : at.epoch) << 1 | (innermost ? 1u : 0u)};
  }

  // A caller's address is the one that it returns to, which may lie behind the end of its function.
  std::uint32_t resolve(std::uint32_t pid, std::int64_t time, std::uint64_t address, bool in_kernel,
                        bool innermost) {
    const std::uint64_t look = innermost ? address : address - 1;
    std::uint32_t image = Images::kNone, method = Methods::kNone;
    if (innermost || address != 0) {
      image = in_kernel ? images_.find_kernel(time, look) : images_.find(pid, time, look);
      if (options_.methods != nullptr && !in_kernel) method = options_.methods->find(pid, time, look);
    }
    const std::uint32_t module = image == Images::kNone ? kNoIndex : module_of(image);
    bool fresh = false;
    std::uint32_t &number =
        frame_numbers_.at({static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32),
                           module, (method + 1) << 2 | (innermost ? 2u : 0u) | (in_kernel ? 1u : 0u)},
                          fresh);
    if (!fresh) return number;
    number = static_cast<std::uint32_t>(profile_.frames.size());
    ProfileFrame made;
    made.address = address;
    made.module = module;
    made.in_kernel = in_kernel;
    made.caller = !innermost;
    if (module != kNoIndex) {
      made.rva = address - images_[image].base;
      made.kind = in_kernel ? FrameKind::kernel : FrameKind::native;
    } else {
      made.why = Unresolved::no_image;
      if (options_.methods != nullptr && !in_kernel && has_runtime(pid))
        made.why = Unresolved::rundown_missing;
    }
    if (method != Methods::kNone) {
      name(made, (*options_.methods)[method]);
      made.il_offset = options_.methods->il_offset((*options_.methods)[method], look);
    }
    profile_.frames.push_back(std::move(made));
    return number;
  }

  // Code made at run time belongs to the runtime's module, precompiled code to its image.
  void name(ProfileFrame &frame, const Methods::Method &method) {
    frame.function = method.name;
    frame.tier = method.tier;
    frame.file = method.file;
    frame.line = method.line;
    frame.column = method.column;
    frame.why = Unresolved::none;
    if (frame.module != kNoIndex) return;
    frame.kind = FrameKind::jit;
    if (method.module.empty()) return;
    const auto [place, fresh] =
        managed_modules_.try_emplace(method.module, static_cast<std::uint32_t>(profile_.modules.size()));
    if (fresh) {
      ProfileModule &module = profile_.modules.emplace_back();
      module.name = module.path = method.module;
      module.symbols = Unresolved::none; // its methods name themselves
    }
    frame.module = place->second;
  }

  // Whether the process runs compiled code: then what lies in no image most likely is such.
  bool has_runtime(std::uint32_t pid) {
    const auto [place, fresh] = runtimes_.try_emplace(pid, options_.methods->knows(pid));
    if (fresh && !place->second)
      for (std::size_t i = 0; i < images_.size() && !place->second; ++i) {
        const Images::Image &image = images_[static_cast<std::uint32_t>(i)];
        if (image.pid != pid) continue;
        std::string file(last_part(image.path));
        for (char &c : file)
          if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
        place->second = file == "clr.dll" || file == "coreclr.dll" || file == "mscorwks.dll" ||
                        file == "chakra.dll" || file == "chakracore.dll" || file == "v8.dll";
      }
    return place->second;
  }

  // One module for all processes that have the same image at the same base.
  std::uint32_t module_of(std::uint32_t image_number) {
    std::uint32_t &module = module_of_image_[image_number];
    if (module != kNoIndex) return module;
    const Images::Image &image = images_[image_number];
    const IdentityRecord *identity = image.identity;
    ProfileModule made;
    made.name = last_part(image.path);
    made.path = image.path;
    made.base = image.base;
    made.size = image.size;
    made.time_stamp = image.time_stamp;
    made.kernel = image.pid == 0 || image.pid == 4;
    if (identity != nullptr) {
      made.pdb_name = identity->pdb_name;
      made.pdb_guid = identity->guid;
      made.pdb_age = identity->age;
      if (made.time_stamp == 0) made.time_stamp = identity->time_stamp;
    }
    const auto key = std::tuple(made.path, made.base, made.size, made.time_stamp, made.pdb_guid, made.pdb_age,
                                made.kernel);
    const auto [place, fresh] =
        modules_.try_emplace(key, static_cast<std::uint32_t>(profile_.modules.size()));
    if (fresh) profile_.modules.push_back(std::move(made));
    return module = place->second;
  }

  void count_fragments() {
    ProfileAccounting &accounting = profile_.accounting;
    std::map<std::string, std::uint64_t> others;
    std::vector<std::uint64_t> by_kind(records_.kinds.size());
    for (std::size_t i = 0; i < records_.fragments.size(); ++i) {
      const Fragment &fragment = records_.fragments[i];
      if (!options_.time.holds(fragment.event_time)) continue; // lent at most
      const bool ours = fragment.is(Fragment::kClaimed) || fragment.owner == Fragment::kOfSubject;
      const bool orphan =
          !fragment.is(Fragment::kHasFrames) || (!ours && fragment.owner == Fragment::kOrphaned);
      if (!fragment.is(Fragment::kHasFrames) && fragment.is(Fragment::kReference))
        ++accounting.undefined_keys;
      if (!orphan && !ours && fragment.owner < by_kind.size()) ++by_kind[fragment.owner];
      const std::uint32_t owner = process(fragment.process, fragment.event_time).number;
      for (ProfileCounts *counts : {&accounting.total, &accounting.by_process[owner]}) {
        ++counts->fragments;
        ++(orphan ? counts->orphaned : ours ? counts->claimed : counts->other_event);
      }
    }
    for (std::size_t i = 0; i < by_kind.size(); ++i)
      if (by_kind[i] != 0) others[records_.kinds[i]] += by_kind[i];
    records_.fragments.clear(); // by far the largest table
    accounting.other_events.assign(others.begin(), others.end());
    std::ranges::stable_sort(accounting.other_events, std::greater<>(),
                             [](const auto &row) { return row.second; });
  }

  void finish_modules() {
    for (ProfileModule &module : profile_.modules)
      if (module.symbols != Unresolved::none && module.pdb_guid == Guid{})
        module.symbols = Unresolved::no_identity;
  }

  Records &records_;
  Nanoseconds to_ns_;
  const ReadFrames &read_frames_;
  const BuildOptions &options_;
  Profile &profile_;
  Timeline process_times_, thread_times_;
  static constexpr int kProcessMemoBits = 10, kContextBits = 12;
  std::vector<ProcessAt> process_memo_ = std::vector<ProcessAt>(1u << kProcessMemoBits);
  std::vector<Context> contexts_ = std::vector<Context>(1u << kContextBits);
  Images images_;
  std::vector<std::string> names_, command_lines_;
  WordMap process_numbers_, thread_numbers_, known_, user_paths_, resolved_, resolved_addresses_,
      frame_numbers_;
  Children children_;
  std::vector<Path> user_ends_;
  std::vector<std::uint32_t> resolved_frames_; // of each stack the number, then the frames
  std::unordered_map<std::string, std::uint32_t> annotations_;
  std::vector<std::uint32_t> module_of_image_;
  std::unordered_map<std::string, std::uint32_t> managed_modules_;
  std::unordered_map<std::uint32_t, bool, base::SeededHash> runtimes_;
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint32_t, Guid, std::uint32_t, bool>,
           std::uint32_t>
      modules_;
  std::vector<std::uint64_t> addresses_;
};

} // namespace

void build(Records &records, const Clock &clock, const ReadFrames &read_frames, const BuildOptions &options,
           Profile &profile) {
  profile.kind = options.kind;
  Builder(records, clock, read_frames, options, profile).run();
}

} // namespace etwrelog::profile
