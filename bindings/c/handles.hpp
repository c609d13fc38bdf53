// What is behind the C interface's handles, and how calls get in and out.
#pragma once

#include "etwrelog/error.hpp"
#include "etwrelog/etwrelog.h"
#include "etwrelog/run.hpp"
#include "etwrelog/trace.hpp"

#include <new>
#include <string>
#include <vector>

struct etwr_error {
  etwrelog::Error error;
  int kind = ETWR_ERROR_INTERNAL;
  std::string message;
};

struct etwr_trace {
  explicit etwr_trace(etwrelog::Trace opened);
  etwrelog::Trace trace;
  std::vector<etwr_source> sources; // point into trace
};

namespace etwrelog::c {

[[nodiscard]] etwr_error *make_error(Error error);
[[nodiscard]] etwr_error *make_error(int kind, const char *message); // no file
[[nodiscard]] etwr_error *usage(const char *what);

// The caller's structure, of whatever version it is: fields that it does not have are zero.
template <class Options> [[nodiscard]] Options copy_of(const Options *given) {
  Options options{};
  if (given != nullptr) {
    const std::size_t size = given->struct_size < sizeof options ? given->struct_size : sizeof options;
    std::memcpy(static_cast<void *>(&options), given, size);
  }
  return options;
}

// RunOptions for the time of one call. A stop callback is asked by whoever reports progress.
class Run {
public:
  explicit Run(const etwr_run *given);
  [[nodiscard]] const RunOptions &options() const { return options_; }
  [[nodiscard]] bool stopped() const { return options_.stop.stop_requested(); }

private:
  std::stop_source source_;
  RunOptions options_;
};

// Nothing is thrown into the caller. The call returns an etwr_error *.
template <class Call> [[nodiscard]] etwr_error *guarded(Call &&call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc &) {
    return make_error(ETWR_ERROR_MEMORY, "out of memory");
  } catch (const std::exception &e) {
    return make_error(ETWR_ERROR_INTERNAL, e.what());
  } catch (...) {
    return make_error(ETWR_ERROR_INTERNAL, "unknown exception");
  }
}

} // namespace etwrelog::c
