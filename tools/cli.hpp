// What the commands share: exit status, messages, units, progress.
#pragma once

#include "etwrelog/codec.hpp"
#include "etwrelog/relog.hpp"
#include "etwrelog/text.hpp"
#include "etwrelog/trace.hpp"
#include "tools/options.hpp"

#include <chrono>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace etwrelog::cli {

enum Exit : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kDamageSkipped = 3, // done; damage was skipped on request
  kIncomplete = 4,    // what was asked for is written, whole; what was to follow could not be done
};

// How this program calls an option of the library: "--from".
[[nodiscard]] std::string_view flag_name(Option option);
// An error in the words of this program, one line.
[[nodiscard]] std::string message(const Error &error);

// Where both are a terminal's: what is printed stands on a line of its own.
void wipe_progress();
// To stderr. Never fails: no message is worth the work that it is about.
void print_line(std::string_view text);
// To stdout, as it is.
template <class... Values> void print_text(fmt::format_string<Values...> format, Values &&...values) {
  wipe_progress();
  fmt::print(format, std::forward<Values>(values)...);
}
// A line of a report to stdout. Names out of traces and of files are whatever somebody chose: nothing in them
// ends the line or speaks to the terminal.
template <class... Values> void print_row(fmt::format_string<Values...> format, Values &&...values) {
  print_text("{}\n", printable(fmt::format(format, std::forward<Values>(values)...)));
}
// "etwrelog: error: ..." on stderr, one line; returns the exit status for it.
[[nodiscard]] int report(const Error &error);
void warn(std::string_view file, std::string_view text);
// Warnings and skipped stretches of one trace; returns kDamageSkipped if anything was skipped, else kDone.
[[nodiscard]] int report_damage(const std::string &file, const std::vector<std::string> &warnings,
                                const std::vector<Skipped> &skipped);
// The same of a trace of several sources, of which a warning begins with its source's name.
[[nodiscard]] int report_damage(const std::vector<std::string> &sources,
                                const std::vector<std::string> &warnings,
                                const std::vector<Skipped> &skipped);
[[nodiscard]] std::vector<std::string> source_names(const Trace &trace);

[[nodiscard]] bool same_in_any_case(std::string_view a, std::string_view b); // of ASCII
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);                  // "1.23 GB", powers of 1000
[[nodiscard]] std::string human_count(std::uint64_t count);                  // "1,234,567"
[[nodiscard]] std::string human_seconds(double seconds);                     // "1.234 s", "2m03s"
[[nodiscard]] std::string percent(double part, double whole);                // "12.3%"; "-" of nothing
// Of any strings: what is not UTF-8, as file names need not be, is replaced.
[[nodiscard]] std::string text_of(const nlohmann::json &value);
// An error where the program is to stop: for what has no RunOptions that would look. Symbols that were being
// fetched then count as not there, and nothing may be said or decided without them.
[[nodiscard]] Result<void> unless_stopped();
[[nodiscard]] Result<void> write_unless_stopped(OutputStream &file, Bytes bytes);
// In the place of what would have been told of a trace, in a list of several.
[[nodiscard]] nlohmann::json failure_json(const std::vector<std::string> &inputs, const Error &error);
// Before any work: that each file that a command will write can be written, and is neither an input nor
// another of them, whatever names they go by.
[[nodiscard]] Result<void> check_outputs(const std::vector<std::string> &inputs,
                                         const std::vector<std::string> &outputs, bool force);
// `sources`: of several each part has the name of its own.
[[nodiscard]] nlohmann::json to_json(const std::vector<Skipped> &skipped,
                                     const std::vector<std::string> &sources);

// --level fast|default|max. The value is looked up when it is used: CLI11 shows an enum's names badly.
// `of_archive`: ultra is one of them.
CLI::Option *add_level(CLI::App &command, std::string &level, const std::string &description,
                       bool of_archive = false);
[[nodiscard]] Level level_of(std::string_view name);
// Of commands that write traces: --level has nothing to do where nothing is compressed, which --codec says,
// or else the input.
[[nodiscard]] Result<void> check_level(const CLI::Option &level, std::string_view codec);
void warn_of_level(const CLI::Option &level, std::string_view codec, const Trace &trace,
                   const std::string &output);

// --stacks, of commands that write traces.
CLI::Option *add_stacks(CLI::App &command, std::string &mode);
[[nodiscard]] StackMode stack_mode_of(std::string_view name);

// A bar on stderr, drawn at most six times a second and only after the first second, so that short runs stay
// quiet.
class Bar {
public:
  // `forced`: also where stderr is no terminal, then one line an update.
  explicit Bar(bool forced);
  ~Bar();
  void show(const Progress &progress);

private:
  void begin(std::string_view what, std::uint64_t bytes);
  using Clock = std::chrono::steady_clock;
  friend void wipe_progress();
  void draw_if_due();
  void draw(Clock::time_point now);
  void wipe();

  bool terminal_, enabled_;
  bool drawn_ = false;
  std::string what_;
  std::uint64_t total_ = 0, done_ = 0, events_ = 0;
  Clock::time_point started_, pass_started_, last_drawn_;
};

// Options that every command on a trace has.
struct CommonOptions : RunFlags {
  std::vector<std::string> inputs;
  bool salvage = false, as_one = false;

  void add_to(CLI::App &command, bool with_json);
  // --as-one, for commands that take each of several traces by itself.
  void add_as_one_to(CLI::App &command);
  // What is read together, one trace each.
  [[nodiscard]] std::vector<std::vector<std::string>> together() const;
  // For commands whose result does not depend on which buffer of a circular log comes first.
  [[nodiscard]] OpenOptions opening() const;
};

// What a command calls the trace that it opened of these: its one source, or else what was given.
[[nodiscard]] std::string name_of(const Trace &trace, const std::vector<std::string> &given);

} // namespace etwrelog::cli
