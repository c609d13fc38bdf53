// Calls of what the caller gave: functions, streams, sinks.
#pragma once

#include "base/errors.hpp"

#include <exception>

namespace etwrelog::base {

// What it throws becomes an error. `what`: whose call it is, "the map of a fold".
template <class Call> auto called(const char *what, Call &&call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception &thrown) {
    return ErrorBuilder(ErrorKind::callback, what).found(thrown.what());
  } catch (...) {
    return ErrorBuilder(ErrorKind::callback, what).found("an unknown exception");
  }
}

} // namespace etwrelog::base
