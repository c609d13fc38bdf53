#include "filter/targets.hpp"

#include "base/cut_text.hpp"
#include "base/errors.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <re2/re2.h>

namespace etwrelog::filter {
namespace {

std::optional<std::uint32_t> parse_pid(std::string_view text) {
  std::uint32_t pid = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(pid) : std::nullopt;
}

Error no_match(std::string what, Option option, bool list = true) {
  return base::no_match(std::move(what)).about(option).advise(list ? Advice::list_processes : Advice::none);
}

bool matches(std::string_view pattern, const ProcessInstance &process) {
  if (const auto pid = parse_pid(pattern)) return process.pid == *pid;
  return matches_process_name(pattern, process.image_name);
}

} // namespace

bool matches_wildcard(std::string_view pattern, std::string_view text) {
  // Greedy with one point of return: the last star decides.
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || base::lower(pattern[p]) == base::lower(text[t]))) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

bool matches_process_name(std::string_view pattern, std::string_view name) {
  const bool may_lack_exe =
      pattern.find_first_of("*?") == std::string_view::npos && !matches_wildcard("*.exe", pattern);
  return matches_wildcard(pattern, name) ||
         (may_lack_exe && matches_wildcard(fmt::format("{}.exe", pattern), name));
}

Result<Targets> Targets::resolve(const Selection &selection, const Lifetimes &lifetimes, bool so_far) {
  Targets targets;
  targets.lifetimes_ = &lifetimes;
  const std::span<const ProcessInstance> processes = lifetimes.processes();
  targets.instances_.assign(processes.size(), true);
  if (!selection.by_process()) return targets;
  targets.all_ = false;
  targets.only_excludes_ = selection.processes.empty() && selection.command_line.empty();

  if (!selection.processes.empty()) {
    targets.instances_.assign(processes.size(), false);
    for (const std::string &pattern : selection.processes) {
      bool found = false;
      for (std::size_t i = 0; i < processes.size(); ++i)
        if (matches(pattern, processes[i])) targets.instances_[i] = found = true;
      if (found) continue;
      // A trace without process events (user-mode sessions) still has ids in its event headers.
      if (const auto pid = parse_pid(pattern); pid && (lifetimes.lacks_processes() || so_far))
        targets.verdicts_[*pid] = Verdict::yes;
      else if (!so_far)
        return no_match(
            processes.empty()
                ? fmt::format("the trace names no processes, so \"{}\" cannot be found; a process id can",
                              pattern)
                : fmt::format("no process of the trace matches \"{}\"", pattern),
            Option::processes, !processes.empty());
    }
  }
  if (!selection.command_line.empty()) {
    RE2::Options options;
    options.set_log_errors(false);
    const RE2 expression(selection.command_line, options);
    if (!expression.ok()) {
      Error error = no_match(fmt::format("\"{}\": {}", selection.command_line, expression.error()),
                             Option::command_line, false);
      error.kind = ErrorKind::usage;
      return error;
    }
    bool found = false;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      const bool match = targets.instances_[i] && RE2::PartialMatch(processes[i].command_line, expression);
      targets.instances_[i] = match;
      found = found || match;
    }
    if (!found && !so_far)
      return no_match(
          fmt::format("no selected process has a command line that matches \"{}\"", selection.command_line),
          Option::command_line);
  }
  if (selection.children && !targets.only_excludes_) {
    std::vector<std::vector<std::uint32_t>> children(processes.size());
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (processes[i].pid == kIdleProcess) continue;
      const auto parent = lifetimes.process_at(processes[i].parent, processes[i].start);
      const Verdict *const named = parent ? nullptr : targets.verdicts_.find(processes[i].parent);
      if (named != nullptr && *named == Verdict::yes) targets.instances_[i] = true;
      // A parent that started after its child only has the number of the real one.
      if (!parent || *parent == i || processes[*parent].start > processes[i].start) continue;
      children[*parent].push_back(static_cast<std::uint32_t>(i));
    }
    std::vector<std::uint32_t> open;
    for (std::uint32_t i = 0; i < processes.size(); ++i)
      if (targets.instances_[i]) open.push_back(i);
    while (!open.empty()) {
      const std::uint32_t parent = open.back();
      open.pop_back();
      for (const std::uint32_t child : children[parent]) {
        if (targets.instances_[child]) continue;
        targets.instances_[child] = true;
        open.push_back(child);
      }
    }
  }
  for (const std::string &pattern : selection.exclude) {
    bool found = false;
    for (std::size_t i = 0; i < processes.size(); ++i)
      if (matches(pattern, processes[i])) {
        targets.instances_[i] = false;
        found = true;
      }
    if (const auto pid = parse_pid(pattern); pid && (lifetimes.lacks_processes() || so_far))
      targets.verdicts_[*pid] = Verdict::no;
    else if (!found && !so_far)
      return no_match(fmt::format("no process of the trace matches \"{}\"", pattern), Option::exclude);
  }
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const Verdict verdict = targets.instances_[i] ? Verdict::yes : Verdict::no;
    const bool first = i == 0 || processes[i - 1].pid != processes[i].pid;
    Verdict &slot = targets.verdicts_[processes[i].pid];
    slot = first || slot == verdict ? verdict : Verdict::mixed;
  }
  return targets;
}

bool Targets::any_instance() const {
  bool any = all_ || only_excludes_ || std::ranges::find(instances_, true) != instances_.end();
  verdicts_.for_each([&any](std::uint32_t, Verdict verdict) { any = any || verdict != Verdict::no; });
  return any;
}

bool Targets::contains_slow(std::uint32_t pid, std::int64_t time) const {
  const auto instance = lifetimes_->process_at(pid, time);
  return instance && instances_[*instance];
}

bool Targets::contains_any(std::uint32_t pid, std::int64_t from, std::int64_t to) const {
  const Verdict *verdict = all_ ? nullptr : verdicts_.find(pid);
  if (!verdict || *verdict != Verdict::mixed) return contains(pid, from);
  const auto first = lifetimes_->process_at(pid, from), last = lifetimes_->process_at(pid, to);
  if (!first || !last) return true; // cannot be, of an id with instances
  for (std::uint32_t i = *first; i <= *last; ++i)
    if (instances_[i]) return true;
  return false;
}

} // namespace etwrelog::filter
