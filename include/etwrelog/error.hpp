// Errors are values. An Error says what could not be done, in which file, at which offset, what was expected
// there and what was found; success costs no allocation. Which option an error is about, and what would help,
// are values: a program words them in its own terms (a command line its flags, a window its fields).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace etwrelog {

enum class ErrorKind : std::uint8_t { // numbers are stable
  io,          // the operating system refused: missing file, full disk, no permission, no memory, no thread
  corrupt,     // the input contradicts the format
  unsupported, // the input is sound but of a kind that this version does not handle
  usage,       // the caller's options contradict each other
  no_match,    // the options are sound but fit nothing in the trace
  cancelled,   // stopped on request
  limit,       // memory that an option allows, or a limit of the format: `expected` says what would do
  callback,    // the caller's map, visitor or sink threw or failed; `found` is its text
};

// What a caller can set. Numbers are stable: new ones stand at the end.
enum class Option : std::uint8_t {
  none,
  input,
  output,
  replace,
  salvage,
  spool,
  threads,
  memory,
  order,
  processes,
  children,
  command_line,
  exclude,
  from,
  to,
  providers,
  events,
  processors,
  keep_system,
  codec,
  level,
  buffer_size,
  keep_grouping,
  stacks,
  verify,
  channels,
  tasks,
  opcodes,
  activities,
  stack_window,
  stack_memory,
  single_pass,
  database,
  top,
  sum,
  leaf,
  count_,
};

// What would help. Numbers are stable: new ones stand at the end.
enum class Advice : std::uint8_t {
  none,
  salvage,           // read with Option::salvage, which steps over damage
  replace,           // another name, or Option::replace
  raise_memory,      // a larger Option::memory
  fewer_threads,     // a smaller Option::threads
  other_output,      // another name for the output
  unpack,            // unpack the archive and use the trace in it
  allow_spool,       // save the stream to a file, or allow Option::spool
  salvage_archive,   // unpack the archive with Option::salvage, here UnpackOptions::salvage
  update,            // a newer version of this library
  free_space,        // room where the output is to be
  temporary_folder,  // a folder for temporary files with more room
  check_input,       // it may be no ETW trace at all
  larger_buffers,    // a larger Option::buffer_size
  more_stack_memory, // a larger Option::stack_memory; of report_stacks() StackReportOptions::memory
  list_processes,    // look at the processes of the trace
  count_,
};

// How a program calls an option, such as "--from".
using OptionName = std::string_view (*)(Option);
// The library's own names: "Selection::from".
[[nodiscard]] std::string_view option_name(Option option);
// A sentence without a full stop, such as "give a larger RelogOptions::buffer_size"; empty for none.
[[nodiscard]] std::string advice_text(Advice advice, OptionName name = option_name);

struct Error {
  ErrorKind kind = ErrorKind::corrupt;
  Option option = Option::none;        // which it is about, of usage errors and limits,
  Option conflict = Option::none;      // and which other it contradicts
  Advice advice = Advice::none;        // what the user can do next
  std::string file;                    // as the user named it; empty until a layer that knows it adds it
  std::optional<std::uint64_t> offset; // in the file, in bytes
  std::string what;                    // the thing looked at, such as "buffer 117: SavedOffset"
  std::string expected;                // "0x48..0x10000"; empty if `what` says it all; of limits "more than"
                                       // or "at least" where nobody knows yet what would do
  std::string found;

  // One line: "boot.etl: at 0x750004: buffer 117: SavedOffset: expected 0x48..0x10000, found 0x1a0000; ...".
  // Control characters and bytes that are not UTF-8, as file names can hold them, stand as \x1b.
  [[nodiscard]] std::string message(OptionName name = option_name) const;
};

// Either a T or an Error. Check with operator bool before use.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T &operator*() & { return std::get<0>(state_); }
  const T &operator*() const & { return std::get<0>(state_); }
  T &&operator*() && { return std::get<0>(std::move(state_)); }
  T *operator->() { return &std::get<0>(state_); }
  const T *operator->() const { return &std::get<0>(state_); }
  [[nodiscard]] Error &error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error &error() const & { return std::get<1>(state_); }
  [[nodiscard]] Error &&error() && { return std::get<1>(std::move(state_)); }

private:
  std::variant<T, Error> state_;
};

template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  [[nodiscard]] Error &error() & { return *error_; }
  [[nodiscard]] const Error &error() const & { return *error_; }
  [[nodiscard]] Error &&error() && { return *std::move(error_); }

private:
  std::optional<Error> error_;
};

} // namespace etwrelog
