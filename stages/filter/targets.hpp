// Which processes a selection means, in a trace whose lifetimes are known.
#pragma once

#include "etwrelog/error.hpp"
#include "etwrelog/select.hpp"
#include "filter/lifetimes.hpp"

namespace etwrelog::filter {

// `*` any run, `?` any one character; ASCII letters match in either case.
[[nodiscard]] bool matches_wildcard(std::string_view pattern, std::string_view text);
// The same of a process's image name; a pattern without a wildcard that does not end in ".exe" may be what
// stands before that.
[[nodiscard]] bool matches_process_name(std::string_view pattern, std::string_view name);

class Targets {
public:
  // Without a selection by process every process is a target. Fails when a name or id matches no process of
  // the trace, or when the regular expression is none. `so_far`: the lifetimes are those of the trace's
  // beginning; what matches nothing yet may do so later, and ids that are not known yet are taken at their
  // word.
  static Result<Targets> resolve(const Selection &selection, const Lifetimes &lifetimes, bool so_far = false);

  [[nodiscard]] bool all() const { return all_; }
  // Only exclusions were given: what belongs to nobody stays.
  [[nodiscard]] bool only_excludes() const { return only_excludes_; }
  [[nodiscard]] bool any_instance() const; // false: nothing of the trace is selected
  // By instance, in the order of Lifetimes::processes().
  [[nodiscard]] bool is_target(std::uint32_t instance) const { return instances_[instance]; }

  // Whether the id meant a target at that time.
  [[nodiscard]] bool contains(std::uint32_t pid, std::int64_t time) const {
    if (all_) return true;
    const Verdict *verdict = verdicts_.find(pid);
    if (!verdict) return only_excludes_;
    return *verdict == Verdict::mixed ? contains_slow(pid, time) : *verdict == Verdict::yes;
  }
  // Whether the id meant a target at any of these times.
  [[nodiscard]] bool contains_any(std::uint32_t pid, std::int64_t from, std::int64_t to) const;

private:
  enum class Verdict : std::uint8_t { no, yes, mixed };
  [[nodiscard]] bool contains_slow(std::uint32_t pid, std::int64_t time) const;

  const Lifetimes *lifetimes_ = nullptr;
  bool all_ = true, only_excludes_ = false;
  std::vector<bool> instances_;
  base::FlatMap<Verdict> verdicts_;
};

} // namespace etwrelog::filter
