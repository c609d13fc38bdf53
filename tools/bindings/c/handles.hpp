// What is behind the C interface's handles, and how calls get in and out.
#pragma once

#include "etwrelog/error.hpp"
#include "etwrelog/etwrelog.h"
#include "etwrelog/run.hpp"
#include "etwrelog/schema.hpp"
#include "etwrelog/select.hpp"
#include "etwrelog/trace.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

struct etwr_error {
  etwrelog::Error error;
  int kind = ETWR_ERROR_INTERNAL;
  std::string message;
};

struct etwr_trace {
  explicit etwr_trace(etwrelog::Trace opened);
  std::shared_ptr<const etwrelog::Trace> shared; // with the streams of its tables
  const etwrelog::Trace &trace;
  std::vector<etwr_source> sources; // point into trace
};

struct etwr_schemas {
  etwrelog::SchemaCatalog catalog;
};

namespace etwrelog::c {

[[nodiscard]] etwr_error *make_error(Error error);
[[nodiscard]] etwr_error *make_error(int kind, const char *message); // no file
[[nodiscard]] etwr_error *usage(const char *what);

// Thrown within guarded(), which makes a usage error of it.
struct WrongStructure {};

// The caller's structure, of whatever version it is: fields that it does not have are zero. A struct_size
// that was forgotten would hide all that was asked for, and so would fields of a version that this library
// does not know: both throw WrongStructure.
template <class Options> [[nodiscard]] Options copy_of(const Options *given) {
  constexpr std::size_t kMost = 4096; // of any version
  Options options{};
  if (given == nullptr) return options;
  const std::size_t size = given->struct_size;
  if (size <= sizeof size || size % alignof(Options) != 0 || size > kMost) throw WrongStructure();
  const auto *const bytes = reinterpret_cast<const unsigned char *>(given);
  for (std::size_t i = sizeof options; i < size; ++i)
    if (bytes[i] != 0) throw WrongStructure();
  std::memcpy(static_cast<void *>(&options), bytes, std::min(size, sizeof options));
  return options;
}

// Fills in the caller's report as far as it reaches.
template <class Report> void give(const Report &made, Report *report) {
  if (report == nullptr) return;
  const std::size_t size = report->struct_size < sizeof made ? report->struct_size : sizeof made;
  if (size <= sizeof made.struct_size) return;
  std::memcpy(reinterpret_cast<char *>(report) + sizeof made.struct_size,
              reinterpret_cast<const char *>(&made) + sizeof made.struct_size,
              size - sizeof made.struct_size);
}

[[nodiscard]] inline EventView view_of(const etwr_event &event) {
  return {event.bytes, static_cast<std::uint32_t>(event.size),
          static_cast<format::HeaderType>(event.header_type)};
}

// A caller's array as a vector; `good` is cleared where there is a count without an array.
template <class To, class From> std::vector<To> list_of(const From *from, std::size_t count, bool &good) {
  if (count == 0) return {};
  if (from == nullptr) {
    good = false;
    return {};
  }
  return std::vector<To>(from, from + count);
}
// The same of 16 bytes each.
[[nodiscard]] std::vector<Guid> guids_of(const std::uint8_t *from, std::size_t count, bool &good);
// A time as the user words it. NULL: none.
[[nodiscard]] etwr_error *read_moment(const char *text, std::optional<Moment> &moment);
// `trace`: which the selection is for, and `known` beside what that says of itself: for kinds by name.
[[nodiscard]] etwr_error *read_selection(const etwr_selection *given, const Trace &trace,
                                         const SchemaCatalog &known, const RunOptions &run,
                                         Selection &selection);
// ETWR_LEVEL_*; none: not one of them.
[[nodiscard]] std::optional<Level> level_of(int level);

// RunOptions for the time of one call. Callbacks come one at a time, also those of streams that outlive it.
class Run {
public:
  // When the stop callback is asked: all the time of this object by a thread, or only by whoever reports
  // progress, as of what lives on between calls.
  enum class Asks : std::uint8_t { always, with_progress };
  explicit Run(const etwr_run *given, Asks asks = Asks::always);
  ~Run();
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;
  [[nodiscard]] const RunOptions &options() const { return options_; }
  [[nodiscard]] bool stopped() const { return options_.stop.stop_requested(); }
  // Of a call that succeeded: hands warnings and what was stepped over to the caller. Of a trace with the
  // names of its sources.
  void tell_warnings(const Trace *trace = nullptr) const;
  void tell(const std::vector<Skipped> &skipped, const Trace *trace = nullptr) const;

private:
  class Callbacks;
  class Watch;

  std::shared_ptr<Callbacks> callbacks_;
  mutable RunReport report_;
  RunOptions options_;
  bool wants_warnings_ = false;
  std::unique_ptr<Watch> watch_; // ends first
};

// Nothing is thrown into the caller. The call returns an etwr_error *.
template <class Call> [[nodiscard]] etwr_error *guarded(Call &&call) noexcept {
  try {
    return call();
  } catch (const WrongStructure &) {
    return usage("struct_size is not the size of its structure, or fields are set that this version lacks");
  } catch (const std::bad_alloc &) {
    return make_error(ETWR_ERROR_MEMORY, "out of memory");
  } catch (const std::exception &e) {
    return make_error(ETWR_ERROR_INTERNAL, e.what());
  } catch (...) {
    return make_error(ETWR_ERROR_INTERNAL, "unknown exception");
  }
}

} // namespace etwrelog::c
