#include "profile/build.hpp"

#include "base/cut_text.hpp"
#include "profile/by_time.hpp"
#include "profile/frames.hpp"
#include "profile/images.hpp"
#include "profile/stack_tree.hpp"
#include "profile/timeline.hpp"
#include "profile/waits.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace etwrelog::profile {
namespace {

// Raw time stamps as nanoseconds since the trace began, within kProfileTimeLimit.
class Nanoseconds {
public:
  explicit Nanoseconds(const Clock &clock) : first_(clock.first_stamp), divisor_(clock.ticks_per_second()) {
    if (divisor_ == 0) divisor_ = 1'000'000'000; // a header that says nothing of use
  }
  [[nodiscard]] std::int64_t operator()(std::int64_t raw) const {
    constexpr std::int64_t kSecond = 1'000'000'000, kLimit = kProfileTimeLimit / kSecond;
    const std::int64_t end = raw < first_ ? -kProfileTimeLimit : kProfileTimeLimit;
    std::int64_t ticks = 0;
    if (__builtin_sub_overflow(raw, first_, &ticks)) return end;
    const std::int64_t seconds = ticks / divisor_, rest = ticks % divisor_;
    if (seconds >= kLimit || seconds <= -kLimit) return end;
    const auto part = divisor_ <= kSecond * 9
                          ? rest * kSecond / divisor_
                          : static_cast<std::int64_t>(static_cast<long double>(rest) * kSecond /
                                                      static_cast<long double>(divisor_));
    return seconds * kSecond + part;
  }
  // Of the start or end of a process or thread, which the trace may not tell: then it is not converted.
  [[nodiscard]] std::int64_t of_span(std::int64_t raw) const {
    return raw == kBeginning || raw == kForever ? raw : (*this)(raw);
  }

private:
  std::int64_t first_, divisor_;
};

class Builder {
public:
  Builder(Records &records, const Clock &clock, const BuildOptions &options, Profile &profile)
      : records_(records), to_ns_(clock), options_(options), profile_(profile) {}

  void run(const ReadFrames &read_frames, const ParallelFor &parallel) {
    learn();
    frames_.emplace(images_, options_.methods, read_frames, profile_);
    tree_.emplace(profile_);
    take_intervals();
    count_fragments();
    if (stopped()) return;
    const bool cut = options_.cut.from != kBeginning && options_.cut.to != kForever;
    if (options_.slices && cut && options_.kind == ProfileKind::cpu) sampled_ = find_sampled(records_);
    if (options_.kind == ProfileKind::cpu || options_.kind == ProfileKind::events)
      take_samples(parallel); // which gives up the records of samples
    else
      take_waits();
    if (stopped()) return;
    forget_stacks();
    if (options_.slices) take_slices();
    finish_modules();
  }

private:
  [[nodiscard]] bool stopped() const { return options_.stop.stop_requested(); }

  // The first event that tells one may have lost those before it, in a circular log say: then it tells what
  // held until it, too. Behind the end nothing is sampled.
  void take_intervals() {
    std::vector<ProfileInterval> &all = profile_.intervals;
    for (const IntervalRecord &record : records_.intervals) {
      if (record.source != 0) continue;
      const std::int64_t time = to_ns_(record.time);
      const bool ends = record.of == IntervalRecord::Of::end;
      const std::uint32_t before = record.before == 0 && ends ? record.interval : record.before;
      if (all.empty() && record.of != IntervalRecord::Of::start && before != 0)
        all.push_back({std::min<std::int64_t>(0, time), std::uint64_t{before} * 100});
      if (!ends) all.push_back({time, std::uint64_t{record.interval} * 100});
    }
  }

  // Whose the samples are, and which of them have the same stack; what the frames of a stack are; where in
  // the tree it stands: each is found out a stretch ahead of the next, as they have nothing in common but
  // what one hands on to the other.
  void take_samples(const ParallelFor &parallel) {
    const std::vector<std::uint32_t> order = by_time(records_.subjects);
    profile_.samples.reserve(order.size());
    std::vector<std::uint32_t> left(records_.subjects.chunks());
    for (std::size_t i = 0; i < left.size(); ++i)
      left[i] = static_cast<std::uint32_t>(records_.subjects.chunk(i).size());
    std::vector<SampledStack> taken; // in the stretch before
    FramedStacks framed, before;     // of the stretch before that, and of the one before
    constexpr std::size_t kStretch = std::size_t{1} << 16;
    for (std::size_t i = 0; i < order.size() || !stacks_.empty() || !framed.stacks.empty(); i += kStretch) {
      if (stopped()) return;
      taken.clear();
      taken.swap(stacks_);
      before.clear();
      std::swap(before, framed);
      parallel(3, [&](std::size_t part) {
        if (part == 0)
          frame(taken, framed);
        else if (part == 1)
          tree_->add(before, nodes_);
        else if (i < order.size())
          take(std::span(order).subspan(i, std::min(kStretch, order.size() - i)), left);
      });
    }
    for (ProfileSample &sample : profile_.samples)
      sample.node = nodes_[sample.node];
    // Of events none is left out.
    if (!records_.weights.empty())
      for (std::size_t i = 0; i < profile_.samples.size(); ++i)
        profile_.samples[i].weight = records_.weights[order[i]];
    if (!records_.leaves.empty()) add_leaves(order);
    if (!records_.code_leaves.empty()) add_code_leaves(order);
    records_.subjects.clear();
  }

  void add_leaves(std::span<const std::uint32_t> order) {
    std::vector<std::uint32_t> notes(records_.leaf_texts.size(), kNoIndex);
    for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
      const std::uint32_t leaf = records_.leaves[order[i]];
      const std::string &text = records_.leaf_texts[leaf];
      if (text.empty()) continue;
      if (notes[leaf] == kNoIndex) notes[leaf] = frames_->note(options_.leaf + ": " + text);
      profile_.samples[i].node = tree_->child(profile_.samples[i].node, notes[leaf]);
    }
  }

  // Of events none is left out.
  void add_code_leaves(std::span<const std::uint32_t> order) {
    for (std::size_t i = 0; i < profile_.samples.size(); ++i)
      if (const std::uint64_t address = records_.code_leaves[order[i]]; address != 0)
        profile_.samples[i].node =
            tree_->child(profile_.samples[i].node, frames_->code(code_contexts_[i], address));
  }

  void frame(std::span<const SampledStack> stacks, FramedStacks &framed) {
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      if (i + kAhead < stacks.size()) frames_->prefetch(stacks[i + kAhead]);
      frames_->add(stacks[i], framed);
    }
  }

  // What stands early in the file is early in time, nearly: memory of subjects goes as that of samples comes.
  void take(std::span<const std::uint32_t> order, std::span<std::uint32_t> left) {
    constexpr std::size_t kAtOnce = 32; // stacks that are looked up together: memory is fetched ahead
    for (std::size_t begin = 0; begin < order.size(); begin += kAtOnce) {
      waiting_.clear();
      const std::size_t end = std::min(begin + kAtOnce, order.size());
      for (std::size_t i = begin; i < end; ++i) {
        if (i + kAhead < order.size()) __builtin_prefetch(&records_.subjects[order[i + kAhead]]);
        take(records_.subjects[order[i]]);
        const std::size_t chunk = order[i] >> Sequence<Subject>::kChunkBits;
        if (--left[chunk] == 0) records_.subjects.release_chunk(chunk);
      }
      for (const Waiting &sample : waiting_)
        profile_.samples.push_back({to_ns_(sample.stack.time), 1, sample.thread, stack_of(sample.stack),
                                    sample.processor, sample.stack.sample_class});
    }
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
    FramedStacks framed;
    const auto annotate = [this](std::uint32_t node, const std::string &text) {
      return tree_->child(node, frames_->note(text));
    };
    const Waits found = waits();
    const bool all_told = found.whole && one_process() == OneProcess{};
    for (const Wait &wait : found.waits) {
      if (stopped()) return;
      const Subject &subject = records_.subjects[wait.subject];
      const Context &at = context(subject.thread, subject.time);
      if (at.pid == 0) continue;
      const bool ready = options_.kind == ProfileKind::ready;
      const std::int64_t from = to_ns_(ready ? wait.ready : wait.out),
                         to = to_ns_(ready ? wait.in : wait.ready);
      if (to <= from) continue;
      ++timed;
      const SampleClass sample_class = class_of(subject, at.pid);
      std::uint32_t node = 0;
      if (sample_class == SampleClass::no_stack) {
        node = annotate(0, "[no stack]");
      } else {
        const std::uint32_t stack = stack_of(sampled_stack(subject, at, sample_class));
        framed.clear();
        frame(stacks_, framed);
        stacks_.clear();
        tree_->add(framed, nodes_);
        node = nodes_[stack];
      }
      const std::uint32_t thread = at.thread;
      if (wait.waker != kUnknownId) {
        const std::uint32_t own = at.process, waker = context(wait.waker, wait.ready).process;
        if (all_told || waker == own)
          node = annotate(node, "readied by " + process_text(profile_.processes[waker]) + "_[w]");
      }
      const std::int64_t all = to_ns_(wait.in) - to_ns_(wait.out), beside = (all - (to - from)) / 1000;
      profile_.samples.push_back(
          {from, static_cast<std::uint64_t>(to - from), thread, node, wait.processor, sample_class,
           static_cast<std::uint32_t>(std::clamp<std::int64_t>(beside, 0, 0xFFFF'FFFF))});
    }
    profile_.accounting.not_timed = records_.subjects.size() - profile_.accounting.idle_left_out - timed;
    std::ranges::stable_sort(profile_.samples, {}, &ProfileSample::time);
  }

  // What only samples needed.
  void forget_stacks() {
    known_ = known_alone_ = WordMap();
    stacks_ = {};
    nodes_ = {};
    frames_.reset();
    tree_.reset();
  }

  // Without those that began before their thread did: its id was another's, which was switched away from for
  // the last time then.
  [[nodiscard]] Waits waits() const {
    Waits found = find_waits(records_);
    std::erase_if(found.waits, [this](const Wait &wait) {
      const std::uint32_t span = thread_times_.find(wait.thread, wait.in);
      return span != Timeline::kNone && thread_times_[span].start > wait.out;
    });
    return found;
  }

  [[nodiscard]] std::uint32_t pid_of(std::uint32_t tid, std::int64_t time) const { // 0: not known, or Idle
    const std::uint32_t span = thread_times_.find(tid, time);
    return span == Timeline::kNone ? 0 : thread_times_[span].value;
  }

  // Whether all switches are to one process or away from it: then the trace may have been cut down to it, and
  // between two of them others may have run. Either of two in one switch, or in several between them; 0:
  // none.
  using OneProcess = std::array<std::uint32_t, 2>;
  [[nodiscard]] OneProcess one_process() const {
    OneProcess left{};
    for (std::size_t i = 0; i < records_.switches.size(); ++i) {
      const SwitchRecord &record = records_.switches[i];
      const std::array both{pid_of(record.old_thread, record.time), pid_of(record.new_thread, record.time)};
      if (i == 0) left = both;
      for (std::uint32_t &pid : left)
        if (pid != both[0] && pid != both[1]) pid = 0;
      if (left == OneProcess{}) break;
    }
    return left;
  }

  void take_slices() {
    profile_.slices.reserve(3 * records_.switches.size()); // at most: a switch ends a run and a wait
    const auto add = [&](std::uint32_t thread, std::int64_t from, std::int64_t to, std::uint16_t processor,
                         SliceState state, std::uint8_t reason) {
      if (to > from)
        profile_.slices.push_back(
            {to_ns_(from), to_ns_(to), context(thread, to).thread, processor, state, reason});
    };
    const Waits found = waits();
    // Where switches are missing nobody knows what else ran from one of them to an end.
    const OneProcess one = one_process();
    for (const Running &run : find_running(records_, sampled_, found.whole ? options_.cut : kAlways)) {
      if (run.cut_off && one != OneProcess{} && std::ranges::count(one, pid_of(run.thread, run.to)) == 0)
        continue;
      add(run.thread, run.from, run.to, run.processor, SliceState::running, 0);
    }
    for (const Wait &wait : found.waits) {
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
    std::uint32_t told = kNoIndex;             // the process, where nothing else is known of the thread
    std::uint32_t kernel_epoch = 0, epoch = 0; // of addresses in the kernel, and in the process or the kernel
    TimeRange valid;
  };
  // A sample on its way to Profile::samples, where its node is at first the number of its stack.
  struct Waiting {
    SampledStack stack;
    std::uint32_t thread;
    std::uint16_t processor;
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
    process_times_.close(false);
    command_lines_.resize(process_times_.size());
    for (const ProcessRecord &record : records_.processes)
      if (const std::uint32_t span = process_times_.find(record.pid, record.at.time);
          span != Timeline::kNone && command_lines_[span].empty())
        command_lines_[span] = record.command_line;
    for (const ThreadRecord &record : records_.threads)
      thread_times_.add(record.tid, record.at, record.opcode, record.pid);
    thread_times_.close(true);
    learn_thread_names();
    images_.build(std::move(records_.images), records_.processes, records_.identities);
  }

  // Of several names of a thread, or of an id while nothing is known of its thread, the last one stays.
  void learn_thread_names() {
    std::vector<ThreadName> &names = records_.thread_names;
    std::erase_if(names, [](const ThreadName &name) { return name.name.empty(); });
    std::ranges::sort(names, {}, [](const ThreadName &n) { return std::pair(n.tid, n.at); });
    name_of_span_.assign(thread_times_.size(), kNoIndex);
    for (std::uint32_t i = 0; i < names.size(); ++i)
      if (const std::uint32_t span = thread_times_.find(names[i].tid, names[i].at.time);
          span != Timeline::kNone)
        name_of_span_[span] = i;
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
    process.name = span == Timeline::kNone
                       ? "?"
                       : base::at_most(names_[process_times_[span].value], base::kLongestFileName);
    if (span != Timeline::kNone) {
      process.command_line = command_lines_[span];
      process.start = to_ns_.of_span(process_times_[span].start);
      process.end = to_ns_.of_span(process_times_[span].end);
    }
    profile_.accounting.by_process.emplace_back();
    return static_cast<std::uint32_t>(profile_.processes.size() - 1);
  }

  // Valid until the next call.
  Context &context(std::uint32_t tid, std::int64_t time, std::uint32_t told = kNoIndex) {
    Context &known = contexts_[(tid * 0x9E37'79B1u) >> (32 - kContextBits)];
    if (known.tid == tid && known.told == told && known.valid.holds(time)) return known;
    known = {};
    known.tid = tid;
    known.told = told;
    known.valid = kAlways;
    const std::uint32_t span = tid == 0 ? Timeline::kNone : thread_times_.find(tid, time, known.valid);
    if (tid == 0)
      known.pid = 0;
    else if (span != Timeline::kNone)
      known.pid = thread_times_[span].value;
    else
      known.pid = told;
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
      thread.start = to_ns_.of_span(thread_times_[span].start);
      thread.end = to_ns_.of_span(thread_times_[span].end);
    }
    const std::vector<ThreadName> &names = records_.thread_names;
    if (span == Timeline::kNone) {
      const auto behind = std::ranges::upper_bound(names, tid, {}, &ThreadName::tid);
      if (behind != names.begin() && std::prev(behind)->tid == tid)
        thread.name = base::at_most(std::prev(behind)->name, base::kLongestName);
    } else if (name_of_span_[span] != kNoIndex) {
      thread.name = base::at_most(names[name_of_span_[span]].name, base::kLongestName);
    }
    return static_cast<std::uint32_t>(profile_.threads.size() - 1);
  }

  void count(std::uint32_t process, SampleClass sample_class) {
    for (ProfileCounts *counts : {&profile_.accounting.total, &profile_.accounting.by_process[process]}) {
      ++counts->samples;
      ++counts->by_class[static_cast<std::size_t>(sample_class)];
    }
  }

  // Whoever runs while something comes from the network, or is taken for another process, is not who the
  // event is about.
  [[nodiscard]] std::uint32_t caused_by(const Subject &subject) const {
    if (subject.thread != kUnknownId || (subject.flags & Subject::kByWhoRan) == 0) return subject.thread;
    const std::uint32_t thread = records_.who_ran.on(subject.processor, subject.time);
    const std::uint32_t pid = thread == kUnknownId ? 0 : pid_of(thread, subject.time);
    const bool known = pid != 0 || thread == 0;
    return known && subject.ip != kUnknownId && subject.ip != pid ? kUnknownId : thread;
  }

  void take(const Subject &subject) {
    const bool event = options_.kind == ProfileKind::events;
    const Context &at =
        context(caused_by(subject), subject.time, event ? static_cast<std::uint32_t>(subject.ip) : kNoIndex);
    const SampleClass sample_class = class_of(subject, at.pid);
    count(at.process, sample_class);
    if ((subject.flags & (Subject::kInDpc | Subject::kInIsr)) != 0) ++profile_.accounting.in_dpc_or_isr;
    if (at.pid == 0 && !options_.idle) {
      ++profile_.accounting.idle_left_out;
      return;
    }
    waiting_.push_back({sampled_stack(subject, at, sample_class), at.thread, subject.processor});
    if (!records_.code_leaves.empty()) code_contexts_.push_back(waiting_.back().stack);
    if (sample_class != SampleClass::no_stack) known_.prefetch(parts_of(waiting_.back().stack));
  }

  [[nodiscard]] static SampleClass class_of(const Subject &subject, std::uint32_t pid) {
    if (subject.user != Subject::kNoFragment) return SampleClass::full;
    if (subject.kernel == Subject::kNoFragment) return SampleClass::no_stack;
    return pid == 0 || pid == 4 ? SampleClass::kernel_complete : SampleClass::user_missing;
  }

  [[nodiscard]] static SampledStack sampled_stack(const Subject &subject, const Context &at,
                                                  SampleClass sample_class) {
    return {subject.time,   subject.ip,   at.pid,       at.kernel_epoch,     at.epoch,
            subject.kernel, subject.user, sample_class, subject.pointer_size};
  }

  // Stacks repeat, as long as the images of the process stay as they are.
  [[nodiscard]] static WordMap::Key parts_of(const SampledStack &stack) {
    return {stack.pid, stack.epoch, stack.kernel, stack.user};
  }

  // The number of a stack, a new one at the end of `stacks_`.
  std::uint32_t stack_of(const SampledStack &stack) {
    bool fresh = false;
    std::uint32_t &number = stack.sample_class == SampleClass::no_stack
                                ? known_alone_.at(Frames::address_key(stack, stack.ip, true), fresh)
                                : known_.at(parts_of(stack), fresh);
    if (fresh) {
      number = distinct_++;
      stacks_.push_back(stack);
    }
    return number;
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
  const BuildOptions &options_;
  Profile &profile_;
  Timeline process_times_, thread_times_;
  static constexpr int kProcessMemoBits = 10, kContextBits = 12;
  std::vector<ProcessAt> process_memo_ = std::vector<ProcessAt>(1u << kProcessMemoBits);
  std::vector<Context> contexts_ = std::vector<Context>(1u << kContextBits);
  Images images_;
  std::vector<std::string> names_, command_lines_;
  std::vector<std::uint32_t> name_of_span_; // in Records::thread_names, by span of thread_times_
  WordMap process_numbers_, thread_numbers_;
  static constexpr std::size_t kAhead = 16; // how far memory is fetched ahead
  std::vector<Waiting> waiting_;
  std::vector<SampledStack> code_contexts_; // of samples, where each has an address of its own
  WordMap known_, known_alone_;             // stacks by their parts; of one frame, by that
  std::uint32_t distinct_ = 0;              // of them
  std::vector<SampledStack> stacks_;        // the last ones, whose frames are not asked for yet
  std::vector<std::uint32_t> nodes_;        // of those that are in the tree
  SampledThreads sampled_;
  std::optional<Frames> frames_;
  std::optional<StackTree> tree_;
};

} // namespace

void build(Records &records, const Clock &clock, const ReadFrames &read_frames, const BuildOptions &options,
           const ParallelFor &parallel, Profile &profile) {
  profile.kind = options.kind;
  Builder(records, clock, options, profile).run(read_frames, parallel);
}

} // namespace etwrelog::profile
