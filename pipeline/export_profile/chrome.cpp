// Chrome's trace events: what each thread did and what each processor ran, from context switches.
#include "export_profile/fit.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace etwrelog::export_profile {
namespace {

constexpr std::uint32_t kProcessors = 0x7FFF'FFFE;

class Writer {
public:
  Writer(const Profile &profile, Out &out) : profile_(profile), out_(out) {}

  void write(const ShownSlices &shown) {
    number_processes();
    out_.text("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    names();
    for (std::size_t i = 0; i < profile_.slices.size(); ++i)
      if (shown.shows(profile_.slices[i], i)) one(profile_.slices[i]);
    out_.text("]}\n");
  }

private:
  // Viewers know a process by its id alone: of an id that was used again, later owners get a number of ours.
  void number_processes() {
    std::set<std::uint32_t> used{kProcessors};
    for (std::size_t i = 0; i < profile_.processes.size(); ++i) {
      std::uint32_t id = profile_.processes[i].pid & 0x7FFF'FFFF;
      if (!used.insert(id).second) used.insert(id = 0x4000'0000 + static_cast<std::uint32_t>(i));
      ids_.push_back(id);
    }
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
    std::vector<bool> used(profile_.threads.size(), false);
    std::set<std::uint16_t> processors;
    for (const ProfileSlice &slice : profile_.slices) {
      used[slice.thread] = true;
      processors.insert(slice.processor);
    }
    for (std::size_t i = 0; i < profile_.processes.size(); ++i)
      name("process_name", ids_[i], 0, process_text(profile_.processes[i]));
    for (std::size_t i = 0; i < profile_.threads.size(); ++i)
      if (used[i])
        name("thread_name", process_id(profile_.threads[i]), profile_.threads[i].tid,
             thread_text(profile_.threads[i]));
    name("process_name", kProcessors, 0, "Processors");
    for (const std::uint16_t processor : processors)
      name("thread_name", kProcessors, processor, fmt::format("processor {}", processor));
  }

  void slice(std::uint64_t pid, std::uint64_t tid, const ProfileSlice &of, std::string_view text,
             std::string_view category) {
    event("X", pid, tid).text(",\"ts\":").fixed(static_cast<double>(of.start) / 1000, 3);
    out_.text(",\"dur\":")
        .fixed(static_cast<double>(of.end - of.start) / 1000, 3)
        .text(",\"name\":")
        .json(text);
    out_.text(",\"cat\":\"").text(category).text("\"");
  }

  void one(const ProfileSlice &of) {
    const ProfileThread &thread = profile_.threads[of.thread];
    const char *state = of.state == SliceState::running ? "running"
                        : of.state == SliceState::ready ? "ready"
                                                        : "waiting";
    slice(process_id(thread), thread.tid, of, state, state);
    out_.text(",\"args\":{\"processor\":").unsigned_number(of.processor);
    if (of.state == SliceState::waiting) out_.text(",\"wait_reason\":").unsigned_number(of.wait_reason);
    out_.text("}}");
    if (of.state != SliceState::running) return;
    const std::string process = thread.process < profile_.processes.size()
                                    ? process_text(profile_.processes[thread.process])
                                    : "? (-1)";
    slice(kProcessors, of.processor, of, clean(process + " / " + thread_text(thread)), "processor");
    out_.text("}");
  }

  const Profile &profile_;
  Out &out_;
  bool first_ = true;
  std::vector<std::uint32_t> ids_;
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
    Writer(profile, to).write(longest_slices(job, halved(count, 0, given_up)));
    return true;
  };
  return write_largest(job.max_bytes, job.report, halving_steps(count, 0), render, out);
}

} // namespace etwrelog::export_profile
