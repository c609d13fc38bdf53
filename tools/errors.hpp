// Errors that the tool itself finds.
#pragma once

#include "etwrelog/error.hpp"

namespace etwrelog::cli {

[[nodiscard]] inline Error usage_error(std::string what, Option option = Option::none) {
  Error error;
  error.kind = ErrorKind::usage;
  error.option = option;
  error.what = std::move(what);
  return error;
}

[[nodiscard]] inline Error no_trace_given() {
  return usage_error("no trace is given (- is standard input)");
}

[[nodiscard]] inline Error no_profile_format(std::string what) {
  Error error = usage_error(std::move(what), Option::output);
  error.expected = ".svg, .html, .folded, .speedscope.json, .firefox.json.gz, .pb.gz or .trace.json";
  return error;
}

[[nodiscard]] inline Error io_error(std::string file, std::string what) {
  Error error;
  error.kind = ErrorKind::io;
  error.file = std::move(file);
  error.what = std::move(what);
  return error;
}

[[nodiscard]] inline Error stopped() {
  Error error;
  error.kind = ErrorKind::cancelled;
  error.what = "stopped on request";
  return error;
}

} // namespace etwrelog::cli
