// How the library makes errors and hands them on: `return corrupt("buffer 7:
// SavedOffset").at(offset).found("0");`, and ETWRELOG_TRY where only success goes on.
#pragma once

#include "etwrelog/error.hpp"

namespace etwrelog::base {

// An error in the making; becomes an Error or any Result.
class [[nodiscard]] ErrorBuilder {
public:
  ErrorBuilder(ErrorKind kind, std::string what) {
    error_.kind = kind;
    error_.what = std::move(what);
  }
  ErrorBuilder &&in(std::string file) && { return error_.file = std::move(file), std::move(*this); }
  ErrorBuilder &&at(std::uint64_t offset) && { return error_.offset = offset, std::move(*this); }
  ErrorBuilder &&expected(std::string text) && { return error_.expected = std::move(text), std::move(*this); }
  ErrorBuilder &&found(std::string text) && { return error_.found = std::move(text), std::move(*this); }
  ErrorBuilder &&advise(Advice advice) && { return error_.advice = advice, std::move(*this); }
  ErrorBuilder &&about(Option option, Option conflict = Option::none) && {
    error_.option = option;
    error_.conflict = conflict;
    return std::move(*this);
  }
  operator Error() && { return std::move(error_); }
  template <class T> operator Result<T>() && { return Result<T>(std::move(error_)); }

private:
  Error error_;
};

[[nodiscard]] inline ErrorBuilder corrupt(std::string what) {
  return {ErrorKind::corrupt, std::move(what)};
}
[[nodiscard]] inline ErrorBuilder unsupported(std::string what) {
  return {ErrorKind::unsupported, std::move(what)};
}
[[nodiscard]] inline ErrorBuilder io_failure(std::string what) {
  return {ErrorKind::io, std::move(what)};
}
[[nodiscard]] inline ErrorBuilder over_limit(std::string what) {
  return {ErrorKind::limit, std::move(what)};
}
[[nodiscard]] inline ErrorBuilder no_match(std::string what) {
  return {ErrorKind::no_match, std::move(what)};
}
// `what` may be empty where the option says it all.
[[nodiscard]] inline ErrorBuilder bad_option(Option option, std::string what) {
  return ErrorBuilder(ErrorKind::usage, std::move(what)).about(option);
}
[[nodiscard]] inline ErrorBuilder cancelled() {
  return {ErrorKind::cancelled, "stopped on request"};
}

// Adds what a lower layer could not know.
[[nodiscard]] inline Error in_file(Error error, const std::string &file,
                                   std::optional<std::uint64_t> offset = std::nullopt) {
  if (error.file.empty()) error.file = file;
  if (!error.offset) error.offset = offset;
  return error;
}

} // namespace etwrelog::base

#define ETWRELOG_JOIN2(a, b) a##b
#define ETWRELOG_JOIN(a, b) ETWRELOG_JOIN2(a, b)
// Returns the error of a Result<void>.
#define ETWRELOG_TRY(...)                                                                                    \
  do {                                                                                                       \
    if (auto etwrelog_tried = (__VA_ARGS__); !etwrelog_tried) return std::move(etwrelog_tried).error();      \
  } while (false)
// Declares `name` as the value of a Result, or returns its error: ETWRELOG_TRY_LET(header,
// read_header(file));
#define ETWRELOG_TRY_LET(name, ...)                                                                          \
  auto ETWRELOG_JOIN(name, _tried) = (__VA_ARGS__);                                                          \
  if (!ETWRELOG_JOIN(name, _tried)) return std::move(ETWRELOG_JOIN(name, _tried)).error();                   \
  auto name = *std::move(ETWRELOG_JOIN(name, _tried))
