#include "profile/build.hpp"

#include "profile/images.hpp"
#include "profile/timeline.hpp"
#include "profile/waits.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace etwrelog::profile {
namespace {

// A map from a few numbers to one, for look-ups per sample: open addressing, one array.
template <std::size_t kWords> class WordMap {
public:
  using Key = std::array<std::uint32_t, kWords>;

  // The value of the key; `fresh` tells that it is new and to be set.
  std::uint32_t &at(const Key &key, bool &fresh) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot &slot = slots_[position(key)];
    fresh = slot.value == kNoIndex;
    if (fresh) {
      ++size_;
      slot.key = key;
    }
    return slot.value;
  }

private:
  struct Slot {
    Key key{};
    std::uint32_t value = kNoIndex;
  };
  [[nodiscard]] std::size_t position(const Key &key) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = (key[0] | std::uint64_t{key[1]} << 32) * 0x9E37'79B9'7F4A'7C15ull;
    hash ^= hash >> 29;
    if constexpr (kWords == 4) hash += key[2] | std::uint64_t{key[3]} << 32;
    hash *= 0xD6E8'FEB8'6659'FD93ull;
    for (std::size_t i = static_cast<std::size_t>(hash >> 24) & mask;; i = (i + 1) & mask)
      if (slots_[i].value == kNoIndex || slots_[i].key == key) return i;
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 1024 : old.size() * 2, Slot{});
    for (const Slot &slot : old)
      if (slot.value != kNoIndex) slots_[position(slot.key)] = slot;
  }
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

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

// The numbers of the subjects in the order of time, ties in the order of the file: a radix sort, as there are
// millions and their times span few bits.
std::vector<std::uint32_t> by_time(const Sequence<Subject> &subjects) {
  struct Item {
    std::uint64_t time;
    std::uint32_t number;
  };
  std::int64_t least = kForever, most = kBeginning;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    least = std::min(least, subjects[i].time);
    most = std::max(most, subjects[i].time);
  }
  std::vector<Item> items(subjects.size()), spare(subjects.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i] = {static_cast<std::uint64_t>(subjects[i].time) - static_cast<std::uint64_t>(least),
                static_cast<std::uint32_t>(i)};
  constexpr int kDigit = 11;
  const std::uint64_t span = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  for (int shift = 0; !items.empty() && shift < 64 && span >> shift != 0; shift += kDigit) {
    std::array<std::uint32_t, (1u << kDigit)> next{};
    const auto digit = [&](const Item &item) { return item.time >> shift & ((1u << kDigit) - 1); };
    for (const Item &item : items)
      ++next[digit(item)];
    std::uint32_t sum = 0;
    for (std::uint32_t &place : next)
      sum += std::exchange(place, sum);
    for (const Item &item : items)
      spare[next[digit(item)]++] = item;
    items.swap(spare);
  }
  std::vector<std::uint32_t> numbers(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    numbers[i] = items[i].number;
  return numbers;
}

class Builder {
public:
  Builder(Records &records, const Clock &clock, const ReadFrames &read_frames, const BuildOptions &options,
          Profile &profile)
      : records_(records), to_ns_(clock), read_frames_(read_frames), options_(options), profile_(profile) {}

  void run(const JoinCounts &joined) {
    learn();
    for (const IntervalRecord &interval : records_.intervals)
      if (interval.source == 0)
        profile_.intervals.push_back({to_ns_(interval.time), std::uint64_t{interval.interval} * 100});
    count_fragments(joined);
    keep_stacks();
    if (options_.kind == ProfileKind::cpu)
      take_samples();
    else
      take_waits();
    if (options_.slices) take_slices();
    finish_modules();
  }

private:
  // From here on a subject names its stacks, not the fragments: these are by far the largest table.
  void keep_stacks() {
    for (std::size_t i = 0; i < records_.subjects.size(); ++i)
      for (std::uint32_t *number : {&records_.subjects[i].kernel, &records_.subjects[i].user})
        if (*number != Subject::kNoFragment) *number = records_.fragments[*number].stack;
    records_.fragments.clear();
  }

  void take_samples() {
    const std::vector<std::uint32_t> order = by_time(records_.subjects);
    profile_.samples.reserve(order.size());
    for (const std::uint32_t number : order)
      take(records_.subjects[number]);
    profile_.samples.shrink_to_fit();
  }

  // Every switch is in a class; those that end a wait are its sample.
  void take_waits() {
    for (std::size_t i = 0; i < records_.subjects.size(); ++i) {
      const Subject &subject = records_.subjects[i];
      const Whose owner = whose(subject.thread, subject.time);
      count(owner, class_of(subject, owner.pid));
      if (owner.pid == 0) ++profile_.accounting.idle_left_out;
    }
    std::uint64_t timed = 0;
    for (const Wait &wait : find_waits(records_)) {
      const Subject &subject = records_.subjects[wait.subject];
      const Whose owner = whose(subject.thread, subject.time);
      if (owner.pid == 0) continue;
      const bool ready = options_.kind == ProfileKind::ready;
      const std::int64_t from = to_ns_(ready ? wait.ready : wait.out),
                         to = to_ns_(ready ? wait.in : wait.ready);
      const std::uint64_t micros = to > from ? (static_cast<std::uint64_t>(to - from) + 500) / 1000 : 0;
      if (micros == 0) continue;
      const SampleClass sample_class = class_of(subject, owner.pid);
      std::uint32_t node = sample_class == SampleClass::no_stack ? child(0, annotation("[no stack]"))
                                                                 : node_of(subject, owner.pid, sample_class);
      if (wait.waker != kUnknownId) {
        const Whose waker = whose(wait.waker, wait.ready);
        node =
            child(node, annotation("readied by " + process_text(profile_.processes[waker.process]) + "_[w]"));
      }
      profile_.samples.push_back({from, micros, owner.thread, node, wait.processor, sample_class});
      ++timed;
    }
    profile_.accounting.not_timed = records_.subjects.size() - profile_.accounting.idle_left_out - timed;
    std::ranges::stable_sort(profile_.samples, {}, &ProfileSample::time);
  }

  void take_slices() {
    const auto add = [&](std::uint32_t thread, std::int64_t from, std::int64_t to, std::uint16_t processor,
                         SliceState state, std::uint8_t reason) {
      if (to > from)
        profile_.slices.push_back(
            {to_ns_(from), to_ns_(to), whose(thread, to).thread, processor, state, reason});
    };
    for (const Running &run : find_running(records_))
      add(run.thread, run.from, run.to, run.processor, SliceState::running, 0);
    for (const Wait &wait : find_waits(records_)) {
      add(wait.thread, wait.out, wait.ready, wait.processor, SliceState::waiting, wait.reason);
      add(wait.thread, wait.ready, wait.in, wait.processor, SliceState::ready, 0);
    }
    std::ranges::sort(profile_.slices, {},
                      [](const ProfileSlice &s) { return std::tuple(s.thread, s.start, s.end); });
  }

  struct Whose {
    std::uint32_t pid = kNoIndex, process = 0, thread = 0;
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
    std::ranges::sort(records_.thread_names, {}, &ThreadName::at);
    images_.build(std::move(records_.images), records_.processes, records_.identities);
    module_of_image_.assign(images_.size(), kNoIndex);
  }

  std::uint32_t process(std::uint32_t pid, std::int64_t time) {
    const std::uint32_t span = process_times_.find(pid, time);
    bool fresh = false;
    std::uint32_t &number = process_numbers_.at({pid, span, 0, 0}, fresh);
    if (!fresh) return number;
    number = static_cast<std::uint32_t>(profile_.processes.size());
    ProfileProcess &process = profile_.processes.emplace_back();
    process.pid = pid;
    process.name = span == Timeline::kNone ? "?" : names_[process_times_[span].value];
    if (span != Timeline::kNone) {
      process.command_line = command_lines_[span];
      process.start = to_ns_(process_times_[span].start);
      process.end = to_ns_(process_times_[span].end);
    }
    profile_.accounting.by_process.emplace_back();
    return number;
  }

  Whose whose(std::uint32_t tid, std::int64_t time) {
    const std::uint32_t span = tid == 0 ? Timeline::kNone : thread_times_.find(tid, time);
    Whose result;
    if (tid == 0)
      result.pid = 0;
    else if (span != Timeline::kNone)
      result.pid = thread_times_[span].value;
    result.process = process(result.pid, time);
    bool fresh = false;
    std::uint32_t &number = thread_numbers_.at({tid, span, result.process, 0}, fresh);
    if (fresh) {
      number = static_cast<std::uint32_t>(profile_.threads.size());
      ProfileThread &thread = profile_.threads.emplace_back();
      thread.tid = tid;
      thread.process = result.process;
      if (span != Timeline::kNone) {
        thread.start = to_ns_(thread_times_[span].start);
        thread.end = to_ns_(thread_times_[span].end);
      }
      for (const ThreadName &name : records_.thread_names) // few have one
        if (name.tid == tid && !name.name.empty() &&
            (span == Timeline::kNone || thread_times_.find(tid, name.at.time) == span))
          thread.name = name.name;
    }
    result.thread = number;
    return result;
  }

  void count(const Whose &owner, SampleClass sample_class) {
    for (ProfileCounts *counts :
         {&profile_.accounting.total, &profile_.accounting.by_process[owner.process]}) {
      ++counts->samples;
      ++counts->by_class[static_cast<std::size_t>(sample_class)];
    }
  }

  void take(const Subject &subject) {
    const Whose owner = whose(subject.thread, subject.time);
    const SampleClass sample_class = class_of(subject, owner.pid);
    for (ProfileCounts *counts :
         {&profile_.accounting.total, &profile_.accounting.by_process[owner.process]}) {
      ++counts->samples;
      ++counts->by_class[static_cast<std::size_t>(sample_class)];
    }
    if ((subject.flags & (Subject::kInDpc | Subject::kInIsr)) != 0) ++profile_.accounting.in_dpc_or_isr;
    if (owner.pid == 0 && !options_.idle) {
      ++profile_.accounting.idle_left_out;
      return;
    }
    profile_.samples.push_back({to_ns_(subject.time), 1, owner.thread,
                                node_of(subject, owner.pid, sample_class), subject.processor, sample_class});
  }

  [[nodiscard]] static SampleClass class_of(const Subject &subject, std::uint32_t pid) {
    if (subject.user != Subject::kNoFragment) return SampleClass::full;
    if (subject.kernel == Subject::kNoFragment) return SampleClass::no_stack;
    return pid == 0 || pid == 4 ? SampleClass::kernel_complete : SampleClass::user_missing;
  }

  // Stacks repeat: what was made of one is used again as long as the images of the process stay as they are.
  std::uint32_t node_of(const Subject &subject, std::uint32_t pid, SampleClass sample_class) {
    if (sample_class == SampleClass::no_stack) {
      const std::uint32_t note = child(0, annotation("[no stack]"));
      return child(note, frame(pid, subject.time, subject.ip, subject.pointer_size, true));
    }
    std::uint32_t epoch = images_.epoch(pid, subject.time);
    if (options_.methods != nullptr) epoch += options_.methods->epoch(pid, subject.time);
    bool fresh = false;
    std::uint32_t &node = known_.at({pid, epoch, subject.kernel, subject.user}, fresh);
    if (!fresh) return node;
    std::uint32_t path = 0;
    if (sample_class == SampleClass::user_missing) path = child(path, annotation("[user stack missing]"));
    if (subject.user != Subject::kNoFragment) path = user_path(pid, epoch, subject);
    if (subject.kernel != Subject::kNoFragment)
      for (const std::uint32_t number : frames_of(pid, epoch, subject, subject.kernel))
        path = child(path, number);
    return node = path;
  }

  // Many kernel parts stand on one user part.
  std::uint32_t user_path(std::uint32_t pid, std::uint32_t epoch, const Subject &subject) {
    bool fresh = false;
    std::uint32_t &node = user_paths_.at({pid, epoch, subject.user, 0}, fresh);
    if (!fresh) return node;
    std::uint32_t path = 0;
    for (const std::uint32_t number : frames_of(pid, epoch, subject, subject.user))
      path = child(path, number);
    return node = path;
  }

  // The frames of a stack in this process, outermost first. Valid until the next call.
  std::span<const std::uint32_t> frames_of(std::uint32_t pid, std::uint32_t epoch, const Subject &subject,
                                           std::uint32_t stack) {
    bool fresh = false;
    std::uint32_t &at = resolved_.at({pid, epoch, stack, subject.pointer_size}, fresh);
    if (fresh) {
      read_frames_(stack, addresses_);
      at = static_cast<std::uint32_t>(resolved_frames_.size());
      resolved_frames_.push_back(static_cast<std::uint32_t>(addresses_.size()));
      for (std::size_t i = addresses_.size(); i-- > 0;)
        resolved_frames_.push_back(frame(pid, subject.time, addresses_[i], subject.pointer_size, i == 0));
    }
    return std::span(resolved_frames_).subspan(at + 1u, resolved_frames_[at]);
  }

  std::uint32_t child(std::uint32_t parent, std::uint32_t frame) {
    bool fresh = false;
    std::uint32_t &node = children_.at({parent, frame}, fresh);
    if (fresh) {
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

  // A caller's address is the one that it returns to, which may lie behind the end of its function.
  std::uint32_t frame(std::uint32_t pid, std::int64_t time, std::uint64_t address, unsigned pointer_size,
                      bool innermost) {
    const bool in_kernel = format::is_kernel_address(address, pointer_size);
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
    if (method != Methods::kNone) name(made, (*options_.methods)[method]);
    profile_.frames.push_back(std::move(made));
    return number;
  }

  // Code made at run time belongs to the runtime's module, precompiled code to its image.
  void name(ProfileFrame &frame, const Methods::Method &method) {
    frame.function = method.name;
    frame.tier = method.tier;
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

  void count_fragments(const JoinCounts &joined) {
    ProfileAccounting &accounting = profile_.accounting;
    accounting.lent_user_halves = joined.lent;
    std::map<std::string, std::uint64_t> others;
    std::vector<std::uint64_t> by_kind(records_.kinds.size());
    for (std::size_t i = 0; i < records_.fragments.size(); ++i) {
      const Fragment &fragment = records_.fragments[i];
      const bool ours = fragment.is(Fragment::kClaimed) || fragment.owner == Fragment::kOfSubject;
      const bool orphan =
          !fragment.is(Fragment::kHasFrames) || (!ours && fragment.owner == Fragment::kOrphaned);
      if (!fragment.is(Fragment::kHasFrames) && fragment.is(Fragment::kReference))
        ++accounting.undefined_keys;
      if (!orphan && !ours && fragment.owner < by_kind.size()) ++by_kind[fragment.owner];
      const std::uint32_t owner = process(fragment.process, fragment.event_time);
      for (ProfileCounts *counts : {&accounting.total, &accounting.by_process[owner]}) {
        ++counts->fragments;
        ++(orphan ? counts->orphaned : ours ? counts->claimed : counts->other_event);
      }
    }
    for (std::size_t i = 0; i < by_kind.size(); ++i)
      if (by_kind[i] != 0) others[records_.kinds[i]] += by_kind[i];
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
  Images images_;
  std::vector<std::string> names_, command_lines_;
  WordMap<4> process_numbers_, thread_numbers_, known_, user_paths_, resolved_, frame_numbers_;
  WordMap<2> children_;                        // by far the most entries
  std::vector<std::uint32_t> resolved_frames_; // of each stack the number, then the frames
  std::unordered_map<std::string, std::uint32_t> annotations_;
  std::vector<std::uint32_t> module_of_image_;
  std::unordered_map<std::string, std::uint32_t> managed_modules_;
  std::unordered_map<std::uint32_t, bool> runtimes_;
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint32_t, Guid, std::uint32_t, bool>,
           std::uint32_t>
      modules_;
  std::vector<std::uint64_t> addresses_;
};

} // namespace

void build(Records &records, const JoinCounts &joined, const Clock &clock, const ReadFrames &read_frames,
           const BuildOptions &options, Profile &profile) {
  profile.kind = options.kind;
  Builder(records, clock, read_frames, options, profile).run(joined);
}

} // namespace etwrelog::profile
