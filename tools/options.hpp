// Groups of options that commands share, each added by one call.
#pragma once

#include "etwrelog/export.hpp"
#include "etwrelog/io.hpp"
#include "etwrelog/profile.hpp"
#include "etwrelog/run.hpp"
#include "etwrelog/schema.hpp"
#include "etwrelog/select.hpp"
#include "etwrelog/trace.hpp"
#include "tools/symbol_options.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace etwrelog::cli {

class Bar;

// What a trace may lie in, and what may be given for one, in the help of all commands.
[[nodiscard]] std::string wrappings();
[[nodiscard]] std::string trace_files();
// Whether a name ends as that of a trace does.
[[nodiscard]] bool is_trace_file_name(std::string_view name);

// "64K", "1M", "3G" (powers of 1024) or plain bytes.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);
// What --buffer-size says, which CLI11 has found to be a size; what 32 bits cannot hold as the most they can,
// which is too large all the same.
[[nodiscard]] std::uint32_t buffer_size_of(std::string_view text);
// For CLI11: complains about what parse_size does not take.
[[nodiscard]] CLI::Validator size_validator();
// For options that take a count: CLI11 reads -1 as the largest number there is.
[[nodiscard]] CLI::Validator no_less_than_zero();
[[nodiscard]] CLI::Validator at_least_one();

// "-" is standard input, anything else a path.
[[nodiscard]] Input input_of(const std::string &name);
[[nodiscard]] std::vector<Input> inputs_of(const std::vector<std::string> &names);
// Opens them as one trace; each is to be named once.
[[nodiscard]] Result<Trace> open_trace(const std::vector<std::string> &names, const OpenOptions &options,
                                       const RunOptions &run);
// A path, also of a file that is called "-". `force`: may replace a file.
[[nodiscard]] Output output_of(const std::string &name, bool force);

// How to run: -t, --memory-limit, --progress; -q and --json where a command has a use for them.
struct RunFlags {
  unsigned threads = 0;
  std::string memory = "1G";
  bool progress = false, quiet = false, json = false;

  void add_to(CLI::App &command);
  void add_quiet_to(CLI::App &command, const std::string &description);
  void add_json_to(CLI::App &command, const std::string &description = "Print JSON");

  // Stops on interrupt and terminate requests. The bar has to live as long as the options.
  [[nodiscard]] RunOptions run(Bar &bar) const;
};

// Which events: -p, --children, --cmdline, --exclude, --from, --to, --provider, --event, --opcode, --task,
// --channel, --activity, --cpu, --keep-system.
struct SelectionFlags {
  void add_to(CLI::App &command);
  // What they say, once the command line has been read; an error names the flag that is wrong. Events by
  // name, and providers that only the trace may know by theirs, are not in it before find_names().
  [[nodiscard]] Result<Selection> selection() const;
  // Looks for these in the trace, in one pass if there are any, and in `known`.
  [[nodiscard]] Result<void> find_names(const Trace &trace, const SchemaCatalog &known, const RunOptions &run,
                                        Selection &selection) const;

private:
  Selection selection_;
  std::string from_, to_;
  std::vector<std::string> providers_, events_, opcodes_, tasks_, channels_, activities_;
};

// Columns that events have of other events: --join.
struct JoinFlags {
  std::vector<std::string> names;
  SymbolFlags symbols; // for frames of joined stacks, where one of them is given

  void add_to(CLI::App &command);
  // What they say, before a trace is read.
  [[nodiscard]] Result<ExportJoins> joins(const std::vector<std::string> &traces) const;
  // For ExportOptions::symbols, which it outlives; null where no names are asked for.
  [[nodiscard]] std::unique_ptr<SymbolResolver> resolver(const std::vector<std::string> &traces,
                                                         unsigned threads) const;
  // What to give it for that column, or for what people take for its name; empty: no join adds it.
  [[nodiscard]] static std::string_view adding(std::string_view column);

private:
  [[nodiscard]] bool wants_names() const { return !symbols.folders.empty() || !symbols.server.empty(); }
};

// What profiles are made of instead of samples.
struct EventsFlags {
  std::vector<std::string> events; // names
  std::string sum, leaf;           // fields of theirs

  // `written`: to be said behind the names. Returns what was added, --event first.
  std::array<CLI::Option *, 3> add_to(CLI::App &command, const char *written = "");
  // Makes it a profile of them, if there are any, which the trace is read for.
  [[nodiscard]] Result<void> count(const Trace &trace, const RunOptions &run, ProfileOptions &options) const;
  void warn_of_weightless(const std::string &trace, const ProfileResult &result) const;
};

// An error about a condition, and where that names what only --join adds, that this cannot be.
[[nodiscard]] Error about_condition(Error error);

// A moment as --from and --to take it, for a command that selects in its own way; none if the text is empty.
[[nodiscard]] Result<std::optional<Moment>> moment_of(const std::string &text, Option option);

} // namespace etwrelog::cli
