// Errors are values. An Error says what could not be done, in which file, at which offset, what was expected
// there and what was found; success costs no allocation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace etwrelog {

enum class ErrorKind : std::uint8_t {
  io,          // the operating system refused: missing file, full disk, no permission
  corrupt,     // the input contradicts the format
  unsupported, // the input is sound but of a kind that this version does not handle
  usage,       // the caller's options contradict each other
  no_match,    // the options are sound but fit nothing in the trace
  cancelled,   // stopped on request
};

struct Error {
  ErrorKind kind = ErrorKind::corrupt;
  std::string file;                    // as the user named it; empty until a layer that knows it adds it
  std::optional<std::uint64_t> offset; // in the file, in bytes
  std::string what;                    // the thing looked at, such as "buffer 117: SavedOffset"
  std::string expected;                // "0x48..0x10000"; empty if `what` says it all
  std::string found;
  std::string advice; // what the user can do next; may be empty

  // One line: "boot.etl: at 0x750004: buffer 117: SavedOffset: expected 0x48..0x10000, found 0x1a0000; ...".
  [[nodiscard]] std::string message() const;
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
