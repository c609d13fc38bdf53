#include "tools/cli.hpp"

#include "etwrelog/text.hpp"
#include "tools/errors.hpp"
#include "tools/process.hpp"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etwrelog::cli {

std::string_view flag_name(Option option) {
  switch (option) {
  case Option::none: return "";
  case Option::input: return "the input";
  case Option::output: return "--output";
  case Option::replace: return "--force";
  case Option::salvage: return "--salvage";
  case Option::spool: return "--single-pass";
  case Option::threads: return "--threads";
  case Option::memory: return "--memory-limit";
  case Option::order: return "--order";
  case Option::processes: return "--process";
  case Option::children: return "--children";
  case Option::command_line: return "--cmdline";
  case Option::exclude: return "--exclude";
  case Option::from: return "--from";
  case Option::to: return "--to";
  case Option::providers: return "--provider";
  case Option::events: return "--event";
  case Option::processors: return "--cpu";
  case Option::keep_system: return "--keep-system";
  case Option::codec: return "--codec";
  case Option::level: return "--level";
  case Option::buffer_size: return "--buffer-size";
  case Option::keep_grouping: return "--keep-order";
  case Option::stacks: return "--stacks";
  case Option::verify: return "--no-verify";
  case Option::channels: return "--channel";
  case Option::tasks: return "--task";
  case Option::opcodes: return "--opcode";
  case Option::activities: return "--activity";
  case Option::stack_window: return "--stack-window";
  case Option::stack_memory: return "--stack-memory";
  case Option::single_pass: return "--single-pass";
  case Option::database: return "--export";
  case Option::top: return "--top";
  case Option::sum: return "--sum";
  case Option::leaf: return "--leaf";
  case Option::count_: break;
  }
  return option_name(option);
}

std::string message(const Error &error) {
  if (error.advice != Advice::list_processes) return error.message(flag_name);
  Error plain = error;
  plain.advice = Advice::none;
  return plain.message(flag_name) + "; \"etwrelog info\" lists the processes and their command lines";
}

namespace {
std::atomic<Bar *> current_bar{nullptr};
} // namespace

void wipe_progress() {
  if (Bar *bar = current_bar.load()) bar->wipe();
}

void print_line(std::string_view text) {
  wipe_progress();
  process::print_message(std::string(text) + "\n");
}

std::string text_of(const nlohmann::json &value) {
  std::string text = value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  // JSON allows DEL as it is, a terminal does not: only strings can hold one.
  for (std::size_t at = 0; (at = text.find('\x7F', at)) != std::string::npos;)
    text.replace(at, 1, "\\u007f");
  return text;
}

Result<void> unless_stopped() {
  if (!process::stop_token().stop_requested()) return {};
  return stopped();
}

Result<void> write_unless_stopped(OutputStream &file, Bytes bytes) {
  if (Result<void> go_on = unless_stopped(); !go_on) return go_on;
  return file.write(bytes);
}

nlohmann::json failure_json(const std::vector<std::string> &inputs, const Error &error) {
  return {{"file", fmt::format("{}", fmt::join(inputs, ", "))}, {"error", message(error)}};
}

Result<void> check_outputs(const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
                           bool force) {
  std::vector<Input> sources;
  for (const std::string &input : inputs)
    sources.push_back(input_of(input));
  std::vector<Output> targets;
  for (const std::string &output : outputs) {
    if (output == "-") {
      Error error;
      error.kind = ErrorKind::usage;
      error.file = output;
      error.what = "standard output cannot be written to: a file of that name is ./-";
      error.advice = Advice::other_output;
      return error;
    }
    targets.push_back(output_of(output, force));
  }
  return etwrelog::check_outputs(targets, sources);
}

int report(const Error &error) {
  print_line("etwrelog: error: " + message(error));
  return error.kind == ErrorKind::usage ? kUsage : kFailed;
}

void warn(std::string_view file, std::string_view text) {
  print_line(fmt::format("etwrelog: warning: {}: {}", printable(file), printable(text)));
}

int report_damage(const std::string &file, const std::vector<std::string> &warnings,
                  const std::vector<Skipped> &skipped) {
  for (const std::string &text : warnings)
    warn(file, text);
  for (const Skipped &part : skipped)
    warn(file, fmt::format("skipped {} bytes from 0x{:x}: {}", part.bytes, part.offset, part.why));
  return skipped.empty() ? kDone : kDamageSkipped;
}

int report_damage(const std::vector<std::string> &sources, const std::vector<std::string> &warnings,
                  const std::vector<Skipped> &skipped) {
  if (sources.size() == 1) return report_damage(sources.front(), warnings, skipped);
  for (const std::string &warning : warnings)
    print_line("etwrelog: warning: " + printable(warning));
  int status = kDone;
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    std::vector<Skipped> here;
    std::ranges::copy_if(skipped, std::back_inserter(here), [i](const Skipped &s) { return s.source == i; });
    status = std::max(status, report_damage(sources[i], {}, here));
  }
  return status;
}

std::vector<std::string> source_names(const Trace &trace) {
  std::vector<std::string> names;
  for (const SourceInfo &source : trace.sources())
    names.push_back(source.name);
  return names;
}

std::string name_of(const Trace &trace, const std::vector<std::string> &given) {
  return trace.sources().size() == 1 ? trace.sources().front().name
                                     : fmt::format("{}", fmt::join(given, ", "));
}

bool same_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char *unit = "B";
  for (const char *next : {"kB", "MB", "GB", "TB", "PB", "EB"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
}

std::string human_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;)
    text.insert(at -= 3, 1, ',');
  return text;
}

std::string human_seconds(double seconds) {
  if (seconds < 120) return fmt::format("{:.3f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m{:02}s", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : std::string("-");
}

nlohmann::json to_json(const std::vector<Skipped> &skipped, const std::vector<std::string> &sources) {
  nlohmann::json list = nlohmann::json::array();
  for (const Skipped &part : skipped) {
    list.push_back({{"offset", part.offset}, {"bytes", part.bytes}, {"why", part.why}});
    if (sources.size() > 1) list.back()["file"] = sources[part.source];
  }
  return list;
}

namespace {
constexpr Level kLevels[] = {Level::fast, Level::normal, Level::max, Level::ultra};
} // namespace

CLI::Option *add_level(CLI::App &command, std::string &level, const std::string &description,
                       bool of_archive) {
  std::vector<std::string> levels;
  for (const Level one : kLevels)
    if (of_archive || one != Level::ultra) levels.emplace_back(level_name(one));
  return command.add_option("--level", level, description)
      ->transform(CLI::IsMember(levels, CLI::ignore_case));
}

Level level_of(std::string_view name) {
  const auto *const found = std::ranges::find(kLevels, name, level_name);
  return found == std::end(kLevels) ? Level::normal : *found;
}

Result<void> check_level(const CLI::Option &level, std::string_view codec) {
  if (level.count() == 0 || codec != "none") return {};
  return usage_error("is for output that is compressed, and --codec none compresses nothing", Option::level);
}

void warn_of_level(const CLI::Option &level, std::string_view codec, const Trace &trace,
                   const std::string &output) {
  // Of what is read while it comes nothing is known yet.
  if (level.count() == 0 || codec != "as-input" || trace.single_pass()) return;
  if (std::ranges::any_of(trace.sources(), [](const SourceInfo &s) { return s.codec != Codec::none; }))
    return;
  warn(output, "--level does nothing: the input is not compressed, so the output is not; --codec xpress "
               "compresses it");
}

CLI::Option *add_stacks(CLI::App &command, std::string &mode) {
  return command
      .add_option("--stacks", mode,
                  "keep; cache: StackWalk events become references to a stack that is written once "
                  "(cache=native-only: but not those of JIT-compiled code); expand: the opposite")
      ->check(CLI::IsMember({"keep", "cache", "cache=native-only", "expand"}));
}

StackMode stack_mode_of(std::string_view name) {
  return name == "cache"               ? StackMode::cache
         : name == "cache=native-only" ? StackMode::cache_native
         : name == "expand"            ? StackMode::expand
                                       : StackMode::keep;
}

namespace {
constexpr auto kQuietTime = std::chrono::seconds(1);
constexpr auto kRedrawTime = std::chrono::milliseconds(170);
} // namespace

Bar::Bar(bool forced)
    : terminal_(process::can_redraw(2)), enabled_(forced || terminal_), started_(Clock::now()),
      pass_started_(started_), last_drawn_(started_) {
  current_bar.store(this);
}

Bar::~Bar() {
  wipe();
  if (current_bar.load() == this) current_bar.store(nullptr);
}

void Bar::begin(std::string_view what, std::uint64_t bytes) {
  what_ = what;
  total_ = bytes;
  done_ = events_ = 0;
  pass_started_ = Clock::now();
}

void Bar::show(const Progress &progress) {
  if (progress.phase != what_ || progress.done < done_) begin(progress.phase, progress.total);
  done_ = progress.done;
  total_ = progress.total;
  events_ = progress.events;
  draw_if_due();
}

void Bar::draw_if_due() {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now - started_ < kQuietTime || now - last_drawn_ < kRedrawTime) return;
  draw(now);
}

void Bar::draw(Clock::time_point now) {
  last_drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - pass_started_).count();
  const double share = total_ == 0 ? 0 : static_cast<double>(done_) / static_cast<double>(total_);
  std::string line;
  if (total_ == 0) // of a pipe, whose end nobody knows
    line = fmt::format("{}  {}", what_, human_bytes(done_));
  else
    line = fmt::format("{} {:3.0f}%  {} of {}", what_, 100 * share, human_bytes(done_), human_bytes(total_));
  constexpr double kLeast = 0.5; // seconds: a speed out of fewer means nothing
  if (seconds >= kLeast) {
    const double rate = static_cast<double>(done_) / seconds;
    line += "  " + human_bytes(static_cast<std::uint64_t>(rate)) + "/s";
    if (total_ != 0 && events_ > 0) // those who pack do not count them
      line += "  " + human_count(static_cast<std::uint64_t>(static_cast<double>(events_) / seconds)) +
              " events/s";
    if (total_ != 0 && rate > 0)
      line += fmt::format("  {:.0f}s left", static_cast<double>(total_ - std::min(done_, total_)) / rate);
  }
  if (!terminal_) {
    process::print_message(line + "\n");
    return;
  }
  const std::size_t width = process::terminal_width(2);
  constexpr std::size_t kBarWidth = 24;
  if (total_ != 0 && line.size() + kBarWidth + 4 < width) {
    const auto filled = static_cast<std::size_t>(share * kBarWidth);
    line +=
        "  [" + std::string(filled, '=') + std::string(kBarWidth - std::min(filled, kBarWidth), ' ') + "]";
  }
  if (line.size() >= width) line.resize(width > 0 ? width - 1 : 0);
  process::print_message("\r\x1b[K" + line);
  drawn_ = true;
}

void Bar::wipe() {
  if (!drawn_) return;
  process::print_message("\r\x1b[K");
  drawn_ = false;
}

void CommonOptions::add_to(CLI::App &command, bool with_json) {
  RunFlags::add_to(command);
  command.add_flag("--salvage", salvage,
                   "Skip what is damaged and report it (exit status 3) instead of failing");
  if (with_json) add_json_to(command);
}

void CommonOptions::add_as_one_to(CLI::App &command) {
  command.add_flag("--as-one", as_one, "Take several traces as one: the files of one recording");
}

std::vector<std::vector<std::string>> CommonOptions::together() const {
  if (as_one && !inputs.empty()) return {inputs};
  std::vector<std::vector<std::string>> each;
  for (const std::string &input : inputs)
    each.push_back({input});
  return each;
}

OpenOptions CommonOptions::opening() const {
  OpenOptions options;
  options.salvage = salvage;
  options.one_recording = as_one && inputs.size() > 1;
  options.file_order = true;
  return options;
}

} // namespace etwrelog::cli
