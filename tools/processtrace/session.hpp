// Open trace handles: a table of sessions, shared by all threads.
#pragma once

#include "etwrelog/consumer.h"
#include "etwrelog/trace.hpp"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace etwrelog::consumer {

// A file that OpenTraceW opened. Its members are set before the handle is given out and then only read, but
// for those that say otherwise.
struct Session {
  Session(Trace opened, std::string file) : trace(std::move(opened)), name(std::move(file)) {}

  Trace trace;
  std::string name;                        // as Input takes it
  std::vector<ETWR_WCHAR> file_name;       // what logfile.LogFileName points to;
  std::string narrow_name;                 // of OpenTraceA
  EVENT_TRACE_LOGFILEW logfile{};          // changed by the thread in ProcessTrace
  bool raw_times = false, records = false; // modes
  bool narrow = false;                     // opened by OpenTraceA, whose structure has the same layout
  bool private_session = false;
  bool describe_tracelogging = false;
  // Guarded by the table:
  bool busy = false;                         // in ProcessTrace,
  bool closing = false;                      // and CloseTrace was called meanwhile
  std::stop_source ending{std::nostopstate}; // of that ProcessTrace, whatever its other sessions
};

class SessionTable {
public:
  [[nodiscard]] TRACEHANDLE add(std::shared_ptr<Session> session);
  // Null if there is no such handle.
  [[nodiscard]] std::shared_ptr<Session> find(TRACEHANDLE handle);
  // All or none: marks the sessions busy. Closing one of them requests the stop of `ending`.
  // ERROR_INVALID_HANDLE, ERROR_BUSY.
  [[nodiscard]] std::uint32_t begin(std::span<const TRACEHANDLE> handles, const std::stop_source &ending,
                                    std::vector<std::shared_ptr<Session>> &sessions);
  void end(std::span<const TRACEHANDLE> handles); // and removes those that were closed meanwhile
  [[nodiscard]] std::uint32_t close(TRACEHANDLE handle);

  static SessionTable &instance();

private:
  struct Impl;
  SessionTable();
  std::unique_ptr<Impl> impl_;
};

} // namespace etwrelog::consumer
