#include "tools/profile_text.hpp"

#include "tools/cli.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kScreenRows = 6; // of the table of processes

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// "12.3% ±0.8": of samples with the statistical error, of measured times without.
std::string share_text(const Profile &profile, std::uint64_t part, std::uint64_t whole) {
  const std::string text = fmt::format("{:5.1f}%", 100 * share(part, whole));
  return profile.counts_samples() ? text + fmt::format(" ±{:<4.1f}", 100 * sampling_error(part, whole))
                                  : text;
}

// Samples, events, what these add up to, or the time of nanoseconds.
std::string weight_text(const Profile &profile, std::uint64_t weight) {
  if (profile.counts()) return profile_unit(profile) == "bytes" ? human_bytes(weight) : human_count(weight);
  if (weight < 1'000'000) return fmt::format("{:.5g} us", static_cast<double>(weight) * 1e-3);
  if (weight < 100'000'000) return fmt::format("{:.2f} ms", static_cast<double>(weight) * 1e-6);
  return human_seconds(static_cast<double>(weight) * 1e-9);
}

// Without the mark that tells wakers from functions in files.
std::string_view name_of(std::string_view name) {
  constexpr std::string_view kWaker = "_[w]";
  return name.ends_with(kWaker) ? name.substr(0, name.size() - kWaker.size()) : name;
}

const char *subject_of(const Profile &profile) {
  switch (profile.kind) {
  case ProfileKind::cpu: return "samples";
  case ProfileKind::events: return "events";
  default: return "switches";
  }
}

// What stands over weights.
const char *weights_text(const Profile &profile) {
  if (!profile.counts()) return "Time";
  if (!profile.summed.empty()) return profile_unit(profile) == "bytes" ? "Bytes" : "Sum";
  return profile.kind == ProfileKind::events ? "Events" : "Samples";
}

std::string unit_text(const Profile &profile) {
  if (!profile.summed.empty()) return "of " + profile.summed;
  if (profile.by_time) return "of processor time";
  switch (profile.kind) {
  case ProfileKind::wait: return "blocked";
  case ProfileKind::ready: return "ready, waiting for a processor";
  case ProfileKind::events: return "events";
  default: return "samples";
  }
}

void print_head(const Profile &profile, const ProfileText &text) {
  std::string time = fmt::format("{:.1f} s", static_cast<double>(profile.length()) * 1e-9);
  if (profile.stretch)
    time = fmt::format("{} from {} on", human_seconds(static_cast<double>(profile.length()) * 1e-9),
                       human_seconds(static_cast<double>(profile.stretch->from) * 1e-9));
  std::string line = fmt::format("{}: {}, {} processors, {} {}", profile.trace, time, profile.processors,
                                 weight_text(profile, text.all.weight), unit_text(profile));
  if (profile.by_time && profile.kind == ProfileKind::cpu) {
    line += ", sampling intervals differ";
  } else if (profile.counts_samples()) {
    const std::uint64_t interval = profile.interval_ns;
    line += interval == 0 ? ", interval not recorded"
                          : fmt::format(", one every {:.3f} ms", static_cast<double>(interval) * 1e-6);
  }
  line += !profile.lost_known ? ", how many were lost is not known"
          : profile.events_lost + profile.buffers_lost == 0
              ? ", none lost"
              : fmt::format("; LOST: {} events, {} buffers", human_count(profile.events_lost),
                            human_count(profile.buffers_lost));
  print_row("{}", line);
  if (profile.accounting.idle_left_out != 0)
    print_row("Idle left out: {} {}", human_count(profile.accounting.idle_left_out),
              profile.kind == ProfileKind::cpu ? "samples (--idle)" : "switches");
}

void print_processes(const Profile &profile, const std::vector<ProfileRow> &processes, std::uint64_t whole,
                     std::size_t rows) {
  print_text("\n{:>12} {:>7}  Process\n", weights_text(profile), "");
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const ProfileRow &row = processes[i];
    if (rows != 0 && i >= rows)
      rest += row.self;
    else
      print_row("{:>12} {:>6.1f}%  {}", weight_text(profile, row.self), 100 * share(row.self, whole),
                row.name);
  }
  if (rest != 0)
    print_row("{:>12} {:>6.1f}%  ({} others)", weight_text(profile, rest), 100 * share(rest, whole),
              processes.size() - rows);
}

const char *by_text(ProfileBy by) {
  switch (by) {
  case ProfileBy::process: return "Process";
  case ProfileBy::thread: return "Thread";
  case ProfileBy::module: return "Module";
  case ProfileBy::line: return "Line";
  default: return "Function";
  }
}

std::string_view kind_mark(FrameKind kind) {
  switch (kind) {
  case FrameKind::kernel: return " [kernel]";
  case FrameKind::jit: return " [compiled]";
  case FrameKind::inlined: return " [inlined]";
  default: return "";
  }
}

// " [kernel]", " [compiled: OptimizedTier1 90%, QuickJitted 10%]"
std::string mark_of(const ProfileRow &row) {
  if (row.kind != FrameKind::jit || row.tiers.empty()) return std::string(kind_mark(row.kind));
  std::string text;
  for (const auto &[tier, weight] : row.tiers) {
    text += (text.empty() ? "" : ", ") + tier;
    if (row.tiers.size() > 1) text += fmt::format(" {:.0f}%", 100 * share(weight, row.total));
  }
  return " [compiled: " + text + "]";
}

void print_rows(const Profile &profile, const ProfileText &text, std::size_t top) {
  const std::uint64_t whole = total_weight(profile);
  const std::vector<ProfileRow> rows = profile_rows(profile, text.by);
  const bool stacks = text.by != ProfileBy::process && text.by != ProfileBy::thread;
  const int width = profile.counts_samples() ? 12 : 7;
  if (stacks)
    print_text("\n{:<{}} {:<{}} {}\n", "  Self", width, "  Total", width, by_text(text.by));
  else
    print_text("\n{:<{}} {}\n", " Share", width, by_text(text.by));
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (top != 0 && i >= top) {
      rest += rows[i].self;
      continue;
    }
    const std::string self = share_text(profile, rows[i].self, whole);
    const std::string mark = stacks && text.by != ProfileBy::module ? mark_of(rows[i]) : "";
    if (stacks)
      print_row("{} {} {}{}", self, share_text(profile, rows[i].total, whole), name_of(rows[i].name), mark);
    else
      print_row("{} {}", self, rows[i].name);
  }
  if (rest != 0)
    print_row("{:5.1f}%{:{}} ({} others)", 100 * share(rest, whole), "", stacks ? 2 * width - 5 : width - 6,
              rows.size() - top);
}

void print_tree(const Profile &profile, const ProfileText &text) {
  const std::uint64_t whole = total_weight(profile);
  print_text("\n{:>7} {:>7}  Call tree (what is below {:g}% is left out)\n", "Total", "Self",
             100 * text.min_share);
  for (const ProfileTreeRow &row : profile_tree(profile, text.min_share))
    print_row("{:>6.1f}% {:>6.1f}%  {:{}}{}{}", 100 * share(row.total, whole), 100 * share(row.self, whole),
              "", std::min<std::uint32_t>(row.depth, 200), name_of(row.name), kind_mark(row.kind));
}

using Numbers = std::array<std::uint64_t, 9>;
constexpr std::array<const char *, std::tuple_size_v<Numbers>> kNumberNames = {
    "Samples", "full", "kernel", "half", "none", "Fragments", "samples", "others", "orphans"};

Numbers numbers_of(const ProfileCounts &counts) {
  return {counts.samples,   counts.by_class[0], counts.by_class[1], counts.by_class[2], counts.by_class[3],
          counts.fragments, counts.claimed,     counts.other_event, counts.orphaned};
}

// All samples and fragments of the trace by process, Idle too: rows add up, and so do columns.
void print_accounting(const Profile &profile, std::size_t top) {
  struct Row {
    std::string name;
    Numbers numbers{};
  };
  const auto add = [](Numbers &to, const Numbers &more) {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] += more[i];
  };
  const ProfileAccounting &all = profile.accounting;
  std::map<std::string, Numbers> by_name; // an id that was used again may have the same name
  for (std::size_t i = 0; i < all.by_process.size(); ++i)
    add(by_name[process_text(profile.processes[i])], numbers_of(all.by_process[i]));
  std::vector<Row> rows;
  for (const auto &[name, numbers] : by_name)
    if (numbers != Numbers{}) rows.push_back({name, numbers});
  std::ranges::stable_sort(rows, std::greater<>(),
                           [](const Row &row) { return std::pair(row.numbers[0], row.numbers[5]); });
  if (top != 0 && rows.size() > top + 1) {
    Row rest{fmt::format("({} others)", rows.size() - top)};
    for (std::size_t i = top; i < rows.size(); ++i)
      add(rest.numbers, rows[i].numbers);
    rows.resize(top);
    rows.push_back(std::move(rest));
  }
  rows.push_back({"all", numbers_of(all.total)});
  std::string subject = subject_of(profile);
  subject.front() = static_cast<char>(subject.front() - 'a' + 'A');
  print_text(
      "\n{} by stack: full, kernel only and complete, user half missing, none; fragments of stacks by\n"
      "whose they are. Idle counts; rows and columns add up.\n",
      subject);
  std::array<std::size_t, std::tuple_size_v<Numbers>> widths{};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    constexpr std::size_t kOfSubjects = 6; // fragments
    const std::string name = i == 0 ? subject : i == kOfSubjects ? subject_of(profile) : kNumberNames[i];
    widths[i] = std::max(name.size(), human_count(rows.back().numbers[i]).size()) + (i == 5 ? 3 : 1);
    print_text("{:>{}}", name, widths[i]);
  }
  print_text("  Process\n");
  for (const Row &row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      print_text("{:>{}}", human_count(row.numbers[i]), widths[i]);
    print_row("  {}", row.name);
  }
}

void print_footer(const Profile &profile) {
  std::array<std::uint64_t, static_cast<std::size_t>(SampleClass::count_)> classes{};
  for (const ProfileSample &sample : profile.samples)
    ++classes[static_cast<std::size_t>(sample.sample_class)];
  std::string line;
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i] != 0)
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", human_count(classes[i]),
                          sample_class_text(static_cast<SampleClass>(i)));
  print_text("\nStacks of these {} {}: {}\n", human_count(profile.samples.size()), subject_of(profile), line);
  const ProfileCounts &all = profile.accounting.total;
  print_row("Fragments of the trace: {} = {} of {} + {} of other events + {} orphaned",
            human_count(all.fragments), human_count(all.claimed), subject_of(profile),
            human_count(all.other_event), human_count(all.orphaned));
  if (profile.accounting.not_timed != 0)
    print_row("Not counted: {} switches that end a wait of before, or of no length",
              human_count(profile.accounting.not_timed));
  const std::uint64_t whole = total_weight(profile);
  line.clear();
  for (const ProfileUnresolved &row : profile_unresolved_reasons(profile))
    line += fmt::format("{}{} in {} ({:.1f}%)", line.empty() ? "" : "; ", unresolved_text(row.why),
                        weight_text(profile, row.total), 100 * share(row.total, whole));
  if (!line.empty()) print_row("{} with frames without a name: {}", weights_text(profile), line);
  if (const std::uint64_t estimated = estimated_weight(profile); estimated != 0)
    print_row("{} whose innermost frame has the name of the nearest public symbol: {} ({:.1f}%)",
              weights_text(profile), weight_text(profile, estimated), 100 * share(estimated, whole));
}

json rows_json(const Profile &profile, const std::vector<ProfileRow> &rows, std::uint64_t whole,
               std::size_t top) {
  json list = json::array();
  for (std::size_t i = 0; i < rows.size() && (top == 0 || i < top); ++i) {
    json row = {{"name", rows[i].name},
                {"self", rows[i].self},
                {"total", rows[i].total},
                {"self_share", share(rows[i].self, whole)},
                {"total_share", share(rows[i].total, whole)}};
    for (const auto &[tier, weight] : rows[i].tiers)
      row["tiers"][tier] = weight;
    if (rows[i].estimated) row["estimated"] = true;
    if (profile.counts_samples()) {
      row["self_error"] = sampling_error(rows[i].self, whole);
      row["total_error"] = sampling_error(rows[i].total, whole);
    }
    list.push_back(std::move(row));
  }
  return list;
}

json counts_json(const ProfileCounts &counts) {
  return {{"samples", counts.samples},
          {"full", counts.by_class[0]},
          {"kernel_complete", counts.by_class[1]},
          {"user_missing", counts.by_class[2]},
          {"no_stack", counts.by_class[3]},
          {"fragments",
           {{"all", counts.fragments},
            {"of_samples", counts.claimed},
            {"of_other_events", counts.other_event},
            {"orphaned", counts.orphaned}}}};
}

json accounting_json(const Profile &profile) {
  const ProfileAccounting &a = profile.accounting;
  json all = counts_json(a.total), processes = json::array(), others = json::object();
  for (std::size_t i = 0; i < a.by_process.size(); ++i) {
    json row = counts_json(a.by_process[i]);
    row["process"] = process_text(profile.processes[i]);
    processes.push_back(std::move(row));
  }
  for (const auto &[name, count] : a.other_events)
    others[name] = count;
  all["by_process"] = std::move(processes);
  all["other_events"] = std::move(others);
  all["undefined_keys"] = a.undefined_keys;
  all["lent_user_halves"] = a.lent_user_halves;
  all["idle_left_out"] = a.idle_left_out;
  all["in_dpc_or_isr"] = a.in_dpc_or_isr;
  return all;
}

json unresolved_json(const Profile &profile) {
  json reasons = json::array(), modules = json::array();
  for (const ProfileUnresolved &row : profile_unresolved_reasons(profile))
    reasons.push_back({{"reason", unresolved_text(row.why)}, {"self", row.self}, {"total", row.total}});
  for (const ProfileUnresolved &row : profile_unresolved(profile))
    modules.push_back({{"module", row.module},
                       {"reason", unresolved_text(row.why)},
                       {"self", row.self},
                       {"total", row.total}});
  return {{"reasons", std::move(reasons)}, {"modules", std::move(modules)}};
}

std::string lower(std::string text) {
  for (char &c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

} // namespace

ProfileOverview profile_overview(const Profile &profile) {
  return {total_weight(profile), profile_rows(profile, ProfileBy::process)};
}

void print_profile(const Profile &profile, const ProfileText &text) {
  print_head(profile, text);
  if (text.by == ProfileBy::process) {
    if (text.of_some) {
      print_processes(profile, profile_rows(profile, ProfileBy::process), text.all.weight, text.top);
    } else {
      print_processes(profile, text.all.processes, text.all.weight, text.top);
      print_accounting(profile, text.top);
    }
  } else {
    if (!text.chosen.empty()) {
      print_processes(profile, text.all.processes, text.all.weight, kScreenRows);
      print_text("\n");
      print_row("The busiest: {}, {} {}", text.chosen, weight_text(profile, total_weight(profile)),
                unit_text(profile));
    }
    if (text.tree)
      print_tree(profile, text);
    else
      print_rows(profile, text, text.top);
  }
  print_footer(profile);
  if (!text.chosen.empty())
    print_text("More: -p NAME, --by module|thread|line, --tree, -o flame.svg or .html, --json; etwrelog "
               "profile --help\n");
}

json profile_json(const Profile &profile, const ProfileText &text) {
  const std::uint64_t whole = total_weight(profile);
  json intervals = json::array();
  for (const ProfileInterval &interval : profile.intervals)
    intervals.push_back({{"time_ns", interval.time}, {"interval_ns", interval.interval_ns}});
  json all = {{"trace", profile.trace},
              {"kind", profile_kind_name(profile.kind)},
              {"unit", profile_unit(profile)},
              {"duration_seconds", static_cast<double>(profile.duration) * 1e-9},
              {"start", filetime_text(profile.start_time)},
              {"processors", profile.processors},
              {"interval_ns", profile.interval_ns},
              {"intervals", std::move(intervals)},
              {"events_lost", profile.lost_known ? json(profile.events_lost) : json(nullptr)},
              {"buffers_lost", profile.lost_known ? json(profile.buffers_lost) : json(nullptr)},
              {"selected", whole},
              {"processes", rows_json(profile, text.all.processes, text.all.weight, 0)},
              {"by", lower(by_text(text.by))},
              {"rows", rows_json(profile, profile_rows(profile, text.by), whole, text.top)},
              {"accounting", accounting_json(profile)},
              {"estimated", estimated_weight(profile)},
              {"unresolved", unresolved_json(profile)}};
  if (!profile.events.empty()) all["events"] = profile.events;
  if (!profile.summed.empty()) all["summed"] = profile.summed;
  if (profile.stretch) {
    all["from_seconds"] = static_cast<double>(profile.stretch->from) * 1e-9;
    all["to_seconds"] = static_cast<double>(profile.stretch->to) * 1e-9;
  }
  if (text.tree) {
    json tree = json::array();
    for (const ProfileTreeRow &row : profile_tree(profile, text.min_share)) {
      tree.push_back({{"depth", row.depth}, {"name", row.name}, {"self", row.self}, {"total", row.total}});
      if (row.estimated) tree.back()["estimated"] = true;
    }
    all["tree"] = std::move(tree);
  }
  return all;
}

} // namespace etwrelog::cli
