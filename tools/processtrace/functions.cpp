// The exported functions.
#include "deliver.hpp"
#include "logfile.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <new>

namespace etwrelog::consumer {
namespace {

constexpr std::uint32_t kPrivateLogger = 0x0000'0800, kPrivateInProcess = 0x0002'0000; // LogFileMode
constexpr std::size_t kMostHandles = 64;                                               // Windows' own limit

thread_local std::string last_error;
std::atomic<bool> describe_tracelogging = false;

std::uint32_t fail(std::uint32_t status, std::string text) {
  last_error = std::move(text);
  return status;
}

// Windows' number for one of our errors.
std::uint32_t status_of(const Error &error, const std::string &path) {
  std::error_code ignored;
  switch (error.kind) {
  case ErrorKind::io:
    if (!std::filesystem::exists(path, ignored)) return ERROR_FILE_NOT_FOUND;
    return std::filesystem::is_regular_file(path, ignored) ? ERROR_READ_FAULT : ERROR_ACCESS_DENIED;
  case ErrorKind::corrupt: return ERROR_FILE_CORRUPT;
  case ErrorKind::usage: return ERROR_INVALID_PARAMETER;
  case ErrorKind::cancelled: return ERROR_CANCELLED;
  default: return ERROR_NOT_SUPPORTED;
  }
}

bool wants_descriptions() {
  const char *set = std::getenv("ETWRELOG_TRACELOGGING_INFO");
  return describe_tracelogging || (set != nullptr && *set == '1');
}

// The header event, which is the first one of the file.
Result<void> read_header(Session &session) {
  EventCursor cursor = session.trace.events({}, {.threads = 1});
  const Event *first = cursor.next();
  if (first == nullptr && !cursor.status()) return cursor.status();
  if (first != nullptr && fill_logfile_header(session.logfile.LogfileHeader, *first)) return {};
  Error error;
  error.file = session.name;
  error.what = "the first event";
  error.expected = "the header event of a trace";
  error.found = first == nullptr ? "none" : "another event";
  return error;
}

// Of the narrow structure, too: only the type of the names differs.
std::optional<std::string> name_in(const EVENT_TRACE_LOGFILEW &logfile, bool narrow) {
  if (logfile.LogFileName == nullptr) return "";
  if (narrow) return reinterpret_cast<const char *>(logfile.LogFileName);
  return utf8_of(logfile.LogFileName);
}

void keep_name(Session &session, const EVENT_TRACE_LOGFILEW &asked, bool narrow) {
  session.narrow = narrow;
  if (narrow) {
    session.narrow_name = session.name;
    session.logfile.LogFileName = reinterpret_cast<ETWR_WCHAR *>(session.narrow_name.data());
    return;
  }
  for (const ETWR_WCHAR *c = asked.LogFileName; *c != 0; ++c)
    session.file_name.push_back(*c);
  session.file_name.push_back(0);
  session.logfile.LogFileName = session.file_name.data();
}

std::uint32_t open_trace(EVENT_TRACE_LOGFILEW *logfile, bool narrow, TRACEHANDLE &handle) {
  if (logfile == nullptr) return fail(ERROR_INVALID_PARAMETER, "no EVENT_TRACE_LOGFILEW");
  const std::uint32_t mode = logfile->Mode.ProcessTraceMode;
  if ((mode & PROCESS_TRACE_MODE_REAL_TIME) != 0)
    return fail(ERROR_NOT_SUPPORTED, "sessions cannot be read here, only files");
  const std::optional<std::string> name = name_in(*logfile, narrow);
  if (!name) return fail(ERROR_BAD_PATHNAME, "LogFileName: expected UTF-16, found an unpaired surrogate");
  if (name->empty()) return fail(ERROR_BAD_PATHNAME, "no LogFileName");

  Result<Trace> trace = Trace::open(Input(*name));
  if (!trace) return fail(status_of(trace.error(), *name), trace.error().message());
  const auto session = std::make_shared<Session>(std::move(*trace), *name);
  const EVENT_TRACE_LOGFILEW &asked = *logfile;
  session->logfile.BufferCallback = asked.BufferCallback;
  session->logfile.Callback = asked.Callback;
  session->logfile.Context = asked.Context;
  keep_name(*session, asked, narrow);
  session->raw_times = (mode & PROCESS_TRACE_MODE_RAW_TIMESTAMP) != 0;
  session->records = (mode & PROCESS_TRACE_MODE_EVENT_RECORD) != 0;
  session->describe_tracelogging = wants_descriptions();
  if (Result<void> read = read_header(*session); !read)
    return fail(status_of(read.error(), *name), read.error().message());

  const TRACE_LOGFILE_HEADER &header = session->logfile.LogfileHeader;
  session->private_session = (header.LogFileMode & (kPrivateLogger | kPrivateInProcess)) != 0;
  session->logfile.BufferSize = header.BufferSize;
  session->logfile.Mode.LogFileMode = header.LogFileMode & ~PROCESS_TRACE_MODE_REAL_TIME;
  const SourceInfo &source = session->trace.sources().front();
  session->logfile.IsKernelTrace = source.header.session_name == "NT Kernel Logger" ? 1 : 0;

  // The caller's names stay the caller's; all else is the answer.
  logfile->LogfileHeader = header;
  logfile->BufferSize = session->logfile.BufferSize;
  logfile->Mode = session->logfile.Mode;
  logfile->IsKernelTrace = session->logfile.IsKernelTrace;
  logfile->BuffersRead = logfile->Filled = logfile->EventsLost = 0;
  handle = SessionTable::instance().add(session);
  return ERROR_SUCCESS;
}

// One trace over the files of all handles, which are open already.
std::uint32_t run(std::span<const std::shared_ptr<Session>> sessions, const Query &query,
                  const std::stop_token &ending) {
  RunOptions until;
  until.stop = ending;
  std::optional<Trace> set;
  if (sessions.size() > 1) {
    std::vector<const Trace *> traces;
    for (const auto &session : sessions)
      traces.push_back(&session->trace);
    Result<Trace> all = Trace::together(traces);
    if (!all) return fail(status_of(all.error(), all.error().file), all.error().message());
    set.emplace(std::move(*all));
  }
  const Trace &trace = set ? *set : sessions.front()->trace;
  constexpr const char *kCancelled = "a buffer callback wanted no more";
  Delivery delivery(sessions, trace, ending);
  EventCursor cursor = trace.events(query, until);
  while (const Event *event = cursor.next())
    if (!delivery.deliver(*event))
      return delivery.cancelled() ? fail(ERROR_CANCELLED, kCancelled) : ERROR_SUCCESS;
  if (ending.stop_requested()) return ERROR_SUCCESS;
  if (const Result<void> &status = cursor.status(); !status)
    return fail(status_of(status.error(), status.error().file), status.error().message());
  return delivery.finish() ? ERROR_SUCCESS : fail(ERROR_CANCELLED, kCancelled);
}

std::uint32_t process_trace(std::span<const TRACEHANDLE> handles, const std::int64_t *start,
                            const std::int64_t *end) {
  if (start != nullptr && end != nullptr && *end < *start)
    return fail(ERROR_INVALID_TIME, "the end lies before the start");
  Query query;
  query.order = Order::time;
  if (start != nullptr) query.from = Moment{.relative = false, .filetime = *start};
  if (end != nullptr) query.to = Moment{.relative = false, .filetime = *end};
  std::vector<std::shared_ptr<Session>> sessions;
  const std::stop_source ending;
  if (const std::uint32_t status = SessionTable::instance().begin(handles, ending, sessions);
      status != ERROR_SUCCESS)
    return fail(status, status == ERROR_BUSY ? "a handle is in use" : "no such handle");
  struct Release {
    std::span<const TRACEHANDLE> handles;
    ~Release() { SessionTable::instance().end(handles); }
  } const release{handles};
  return run(sessions, query, ending.get_token());
}

// Nothing is thrown into a caller in C. `thrower`: where an exception can come from.
template <class Call> std::uint32_t guarded(const char *thrower, Call &&call) noexcept {
  try {
    last_error.clear();
    try {
      const std::uint32_t status = call();
      // Callbacks may have made calls of their own that failed.
      if (status == ERROR_SUCCESS || status == ERROR_CTX_CLOSE_PENDING) last_error.clear();
      return status;
    } catch (const std::bad_alloc &) {
      return fail(ERROR_NOT_ENOUGH_MEMORY, "out of memory");
    } catch (const std::exception &e) {
      return fail(ERROR_NOACCESS, std::string(thrower) + " threw an exception: " + e.what());
    } catch (...) {
      return fail(ERROR_NOACCESS, std::string(thrower) + " threw an exception");
    }
  } catch (...) { // no memory for the words
    return ERROR_NOT_ENOUGH_MEMORY;
  }
}

} // namespace
} // namespace etwrelog::consumer

using namespace etwrelog::consumer;

namespace {

TRACEHANDLE opened(EVENT_TRACE_LOGFILEW *logfile, bool narrow) {
  TRACEHANDLE handle = INVALID_PROCESSTRACE_HANDLE;
  const std::uint32_t status = guarded("the library", [&] { return open_trace(logfile, narrow, handle); });
  errno = static_cast<int>(status);
  return handle;
}

} // namespace

TRACEHANDLE OpenTraceW(EVENT_TRACE_LOGFILEW *logfile) {
  return opened(logfile, false);
}

TRACEHANDLE OpenTraceA(EVENT_TRACE_LOGFILEA *logfile) {
  return opened(reinterpret_cast<EVENT_TRACE_LOGFILEW *>(logfile), true);
}

std::uint32_t ProcessTrace(TRACEHANDLE *handles, std::uint32_t count, const std::int64_t *start,
                           const std::int64_t *end) {
  return guarded("a callback", [&]() -> std::uint32_t {
    if (handles == nullptr) return fail(ERROR_INVALID_PARAMETER, "no handles");
    if (count == 0 || count > kMostHandles) return fail(ERROR_BAD_LENGTH, "expected 1..64 handles");
    // A copy: the caller's array may change while callbacks run.
    const std::vector<TRACEHANDLE> copy(handles, handles + count);
    return process_trace(copy, start, end);
  });
}

std::uint32_t CloseTrace(TRACEHANDLE handle) {
  return guarded("the library", [&] {
    const std::uint32_t status = SessionTable::instance().close(handle);
    return status == ERROR_INVALID_HANDLE ? fail(status, "no such handle") : status;
  });
}

const char *etwr_consumer_last_error(void) {
  return last_error.c_str();
}

void etwr_consumer_describe_tracelogging(int on) {
  describe_tracelogging = on != 0;
}

// Not in consumer.h: what .NET asks ntdll.dll for. Says Windows 10, with which readers take the EVENT_RECORD
// path.
extern "C" ETWR_API std::uint32_t RtlGetVersion(void *info) {
  constexpr std::uint32_t kInvalidParameter = 0xC000'000D; // STATUS_INVALID_PARAMETER
  if (info == nullptr) return kInvalidParameter;
  auto *at = static_cast<std::uint8_t *>(info); // OSVERSIONINFOW: its own size, then four fields
  const std::uint32_t fields[] = {10, 0, 19045, 2};
  std::memcpy(at + 4, fields, sizeof fields);
  return 0;
}

// Nor this, which .NET asks kernel32.dll for to learn which devices have drive letters here: none has.
extern "C" ETWR_API std::uint32_t GetLogicalDrives(void) {
  return 0;
}
