// Calls of what the caller gave: functions, streams, sinks.
#pragma once

#include "base/errors.hpp"

#include <exception>
#include <type_traits>

namespace etwrelog::base {

// What it throws becomes an error. `what`: whose call it is, "the map of a fold". A call that returns nothing
// gives a Result<void>.
template <class Call>
auto called(const char *what, Call &&call)
    -> std::conditional_t<std::is_void_v<decltype(call())>, Result<void>, decltype(call())> {
  try {
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      return {};
    } else {
      return call();
    }
  } catch (const std::exception &thrown) {
    return ErrorBuilder(ErrorKind::callback, what).found(thrown.what());
  } catch (...) {
    return ErrorBuilder(ErrorKind::callback, what).found("an unknown exception");
  }
}

} // namespace etwrelog::base
