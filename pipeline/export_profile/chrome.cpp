// Chrome's trace events: what each thread did and what each processor ran, from context switches.
#include "export_profile/fit.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace etwrelog::export_profile {
namespace {

constexpr std::uint32_t kProcessors = 0x7FFF'FFFE; // those of the second run have the number below, and so on

// The format has microseconds, which readers take for doubles. Perfetto makes nanoseconds of a beginning and
// of a length, int64(x * 1000.0), and drops a slice that reaches into the next; others add the two up, or
// first take the first beginning from all. Multiples of a power of two are exact in all of these as long as
// they fit into 53 bits. They are rounded up, so that the nanoseconds come out again, and a slice begins
// where the one before ended by its numbers. What adds up that way stays below a nanosecond: before it is
// one, a slice is written a nanosecond too short, in a trace of an hour one of a thousand.
class Ticks {
public:
  struct Slice {
    double start, length; // microseconds
  };

  explicit Ticks(std::uint64_t latest_ns)
      : bits_(51 - std::min(51, static_cast<int>(std::bit_width(latest_ns / 1000 + 1)))) {}

  // Of a track's slices in their order.
  Slice operator()(std::uint64_t track, std::int64_t from, std::int64_t to) {
    to = std::max(from, to);
    End &last = ends_[track];
    std::int64_t start = up(from), length = up(to - from);
    if (last.any && last.time == from) start = std::max(start, last.ticks);
    // A reader's product is rounded once more, up to the next nanosecond if that is near.
    const std::int64_t margin = std::max<std::int64_t>(1, up(1) / 16);
    if (start + length >= up(to + 1) - margin) length = up(std::max<std::int64_t>(0, to - from - 1));
    last = {true, to, start + length};
    return {std::ldexp(static_cast<double>(start), -bits_), std::ldexp(static_cast<double>(length), -bits_)};
  }

private:
  [[nodiscard]] std::int64_t up(std::int64_t ns) const {
    const std::int64_t scaled = ns * (std::int64_t{1} << bits_), whole = scaled / 1000;
    return whole + (scaled % 1000 > 0 ? 1 : 0);
  }

  struct End {
    bool any = false;
    std::int64_t time = 0, ticks = 0;
  };
  int bits_; // of the fraction
  std::map<std::uint64_t, End> ends_;
};

std::uint64_t latest_time(const Profile &profile) {
  std::uint64_t latest = 0;
  for (const ProfileSlice &slice : profile.slices)
    for (const std::int64_t time : {slice.start, slice.end})
      latest = std::max(latest,
                        time < 0 ? 0 - static_cast<std::uint64_t>(time) : static_cast<std::uint64_t>(time));
  return latest;
}

class ChromeWriter {
public:
  ChromeWriter(const Profile &profile, Out &out)
      : profile_(profile), out_(out), ticks_(latest_time(profile)) {}

  void write(const ShownSlices &shown) {
    number_processes();
    number_threads();
    out_.text("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    names();
    std::vector<std::size_t> running;
    for (std::size_t i = 0; i < profile_.slices.size(); ++i) {
      const ProfileSlice &slice = profile_.slices[i];
      if (!shown.shows(slice, i)) continue;
      of_thread(slice);
      if (slice.state == SliceState::running) running.push_back(i);
    }
    std::ranges::stable_sort(running, {}, [this](std::size_t i) { return profile_.slices[i].start; });
    for (const std::size_t i : running)
      of_processor(profile_.slices[i]);
    out_.text("]}\n");
  }

private:
  // Viewers know a process by its id alone: of an id that was used again, later owners get a number of ours.
  void number_processes() {
    std::set<std::uint32_t> used;
    for (std::uint32_t run = 0; run < runs(); ++run)
      used.insert(kProcessors - run);
    for (std::size_t i = 0; i < profile_.processes.size(); ++i) {
      std::uint32_t id = profile_.processes[i].pid & 0x7FFF'FFFF;
      if (!used.insert(id).second) used.insert(id = 0x4000'0000 + static_cast<std::uint32_t>(i));
      ids_.push_back(id);
    }
  }
  // A process can have had several threads of one id, too, each with a name of its own.
  void number_threads() {
    std::vector<bool> shown(profile_.threads.size(), false);
    for (const ProfileSlice &slice : profile_.slices)
      shown[slice.thread] = true;
    std::set<std::pair<std::uint32_t, std::uint32_t>> used;
    std::uint32_t next = 0x4000'0000;
    for (std::uint32_t i = 0; i < profile_.threads.size(); ++i) {
      const ProfileThread &thread = profile_.threads[i];
      std::uint32_t id = thread.tid;
      while (shown[i] && !used.emplace(process_id(thread), id).second)
        id = next++;
      thread_ids_.push_back(shown[i] ? std::optional(id) : std::nullopt);
    }
  }
  [[nodiscard]] std::uint32_t runs() const {
    return static_cast<std::uint32_t>(std::max<std::size_t>(1, profile_.runs.size()));
  }
  // Those of one run have nothing to do with those of another.
  [[nodiscard]] std::uint32_t processors_of(const ProfileSlice &slice) const {
    return kProcessors - std::min(profile_.threads[slice.thread].run, runs() - 1);
  }
  [[nodiscard]] std::uint32_t process_id(const ProfileThread &thread) const {
    return thread.process < ids_.size() ? ids_[thread.process] : 0x3FFF'FFFF;
  }

  Out &event(const char *phase, std::uint64_t pid, std::uint64_t tid) {
    out_.text(first_ ? "\n" : ",\n");
    first_ = false;
    return out_.text("{\"ph\":\"")
        .text(phase)
        .text("\",\"pid\":")
        .unsigned_number(pid)
        .text(",\"tid\":")
        .unsigned_number(tid);
  }
  void name(const char *what, std::uint64_t pid, std::uint64_t tid, std::string_view text) {
    event("M", pid, tid)
        .text(",\"name\":\"")
        .text(what)
        .text("\",\"args\":{\"name\":")
        .json(clean(text))
        .text("}}");
  }

  void names() {
    std::set<std::pair<std::uint32_t, std::uint16_t>> processors;
    for (const ProfileSlice &slice : profile_.slices)
      processors.emplace(processors_of(slice), slice.processor);
    for (std::size_t i = 0; i < profile_.processes.size(); ++i)
      name("process_name", ids_[i], 0, process_text(profile_.processes[i]));
    for (std::size_t i = 0; i < profile_.threads.size(); ++i)
      if (thread_ids_[i])
        name("thread_name", process_id(profile_.threads[i]), *thread_ids_[i],
             thread_text(profile_.threads[i]));
    const std::string stretch = stretch_text(profile_);
    for (std::uint32_t run = 0; run < runs(); ++run) {
      std::string text = "Processors";
      if (run < profile_.runs.size()) text += " of " + file_name(profile_.runs[run]);
      name("process_name", kProcessors - run, 0, stretch.empty() ? text : text.append(", ").append(stretch));
    }
    for (const auto &[process, processor] : processors)
      name("thread_name", process, processor, fmt::format("processor {}", processor));
  }

  void slice(std::uint32_t pid, std::uint32_t tid, const ProfileSlice &of, std::string_view text,
             std::string_view category) {
    const Ticks::Slice at = ticks_(std::uint64_t{pid} << 32 | tid, of.start, of.end);
    event("X", pid, tid).text(",\"ts\":").exact(at.start).text(",\"dur\":").exact(at.length);
    out_.text(",\"name\":").json(text).text(",\"cat\":\"").text(category).text("\"");
  }

  void of_thread(const ProfileSlice &of) {
    const ProfileThread &thread = profile_.threads[of.thread];
    const char *state = of.state == SliceState::running ? "running"
                        : of.state == SliceState::ready ? "ready"
                                                        : "waiting";
    slice(process_id(thread), thread_ids_[of.thread].value_or(thread.tid), of, state, state);
    out_.text(",\"args\":{\"processor\":").unsigned_number(of.processor);
    if (of.state == SliceState::waiting) out_.text(",\"wait_reason\":").unsigned_number(of.wait_reason);
    out_.text("}}");
  }

  void of_processor(const ProfileSlice &of) {
    const ProfileThread &thread = profile_.threads[of.thread];
    const std::string process = thread.process < profile_.processes.size()
                                    ? process_text(profile_.processes[thread.process])
                                    : "? (-1)";
    slice(processors_of(of), of.processor, of, clean(process + " / " + thread_text(thread)), "processor");
    out_.text("}");
  }

  const Profile &profile_;
  Out &out_;
  Ticks ticks_;
  bool first_ = true;
  std::vector<std::uint32_t> ids_;
  std::vector<std::optional<std::uint32_t>> thread_ids_; // of those that are shown
};

} // namespace

Result<void> write_chrome(const Job &job, Out &out) {
  const Profile &profile = job.profile;
  if (profile.slices.empty())
    return base::unsupported(
        "the chrome format shows context switches, and there are none in this profile; record them with "
        "the CSWITCH flag, or choose another format");
  const std::size_t count = profile.slices.size();
  const auto render = [&](std::size_t given_up, Out &to) {
    ChromeWriter(profile, to).write(longest_slices(job, halved(count, 0, given_up)));
    return true;
  };
  return write_largest(job.max_bytes, job.report, halving_steps(count, 0), render, out);
}

} // namespace etwrelog::export_profile
