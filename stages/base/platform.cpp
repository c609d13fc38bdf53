#include "base/platform.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace etwrelog::base {
namespace {

std::atomic<bool> stop_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

// Names that a signal handler can walk without a lock: a slot is filled before it is published and emptied
// again only after it was taken back.
struct TemporarySlot {
  std::atomic<bool> used{false};
  std::array<char, 4096> path{};
};
std::array<TemporarySlot, 16> temporaries;
std::mutex temporaries_mutex;

void remove_temporaries() {
  for (TemporarySlot &slot : temporaries)
    if (slot.used.load(std::memory_order_acquire)) ::unlink(slot.path.data());
}

void end_at_once() {
  remove_temporaries();
  ::_exit(1);
}

Error system_error(const std::string &name, const char *doing, int code) {
  Error error;
  error.kind = ErrorKind::io;
  error.file = name;
  error.what = std::string("cannot ") + doing + ": " + std::strerror(code);
  if (code == ENOSPC || code == EDQUOT)
    error.advice = "free some space or choose another place for the output";
  return error;
}

} // namespace

File::~File() {
  if (handle_ > 2) ::close(handle_);
}

File::File(File &&other) noexcept
    : handle_(std::exchange(other.handle_, -1)), name_(std::move(other.name_)) {}

File &File::operator=(File &&other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

Error File::failure(const char *doing, std::uint64_t offset) const {
  Error error = system_error(name_, doing, errno);
  error.offset = offset;
  return error;
}

Result<File> File::open_read(const std::string &path) {
  const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return system_error(path, "open", errno);
  struct stat facts {};
  if (::fstat(handle, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    ::close(handle);
    return system_error(path, "open", EISDIR);
  }
  return File(handle, path);
}

Result<File> File::create(const std::string &path) {
  const int handle = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (handle < 0) return system_error(path, "create", errno);
  return File(handle, path);
}

Result<File> File::create_spool() {
  const char *directory = std::getenv("TMPDIR");
  std::string path = std::string(directory && *directory ? directory : "/tmp") + "/etwrelog-XXXXXX";
  const int handle = ::mkstemp(path.data());
  if (handle < 0) return system_error(path, "create the temporary file", errno);
  ::unlink(path.c_str());
  return File(handle, path);
}

File File::standard_input() {
  return File(0, "standard input");
}

Result<std::uint64_t> File::size() const {
  struct stat facts {};
  if (::fstat(handle_, &facts) != 0) return system_error(name_, "examine", errno);
  return static_cast<std::uint64_t>(facts.st_size);
}

bool File::is_regular() const {
  struct stat facts {};
  return ::fstat(handle_, &facts) == 0 && S_ISREG(facts.st_mode);
}

Result<std::size_t> File::read_at(std::uint64_t offset, MutableBytes into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(handle_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("read", offset + done);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::size_t> File::read_next(MutableBytes into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::read(handle_, into.data() + done, into.size() - done);
    if (got < 0 && errno == EINTR && !stop_requested()) continue;
    if (got < 0) return failure("read", done);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<void> File::write_at(std::uint64_t offset, Bytes from) {
  std::size_t done = 0;
  while (done < from.size()) {
    const ssize_t put =
        ::pwrite(handle_, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failure("write", offset + done);
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Result<void> File::sync() {
  // Devices and some file systems refuse; what could be written is written then.
  if (::fsync(handle_) != 0 && errno != EINVAL && errno != EROFS) return system_error(name_, "sync", errno);
  return {};
}

Result<void> File::close() {
  const int handle = std::exchange(handle_, -1);
  if (handle > 2 && ::close(handle) != 0) return system_error(name_, "close", errno);
  return {};
}

bool same_file(const std::string &a, const std::string &b) {
  struct stat fa {
  }, fb{};
  return ::stat(a.c_str(), &fa) == 0 && ::stat(b.c_str(), &fb) == 0 && fa.st_dev == fb.st_dev &&
         fa.st_ino == fb.st_ino;
}

bool exists(const std::string &path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0;
}

Result<void> rename_into_place(const std::string &from, const std::string &to, bool replace) {
  if (replace) {
    if (::rename(from.c_str(), to.c_str()) != 0)
      return system_error(to, "rename the finished output to", errno);
  } else {
    // link() fails on an existing name where rename() would replace it silently.
    if (::link(from.c_str(), to.c_str()) == 0) {
      ::unlink(from.c_str());
    } else if (errno == EEXIST || exists(to)) {
      return system_error(to, "rename the finished output to", EEXIST);
    } else if (::rename(from.c_str(), to.c_str()) != 0) { // a file system without hard links
      return system_error(to, "rename the finished output to", errno);
    }
  }
  const std::size_t slash = to.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : to.substr(0, slash + 1);
  const int handle = ::open(directory.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle >= 0) {
    (void)::fsync(handle); // best effort: the file itself is synced already
    ::close(handle);
  }
  return {};
}

void remove_file(const std::string &path) noexcept {
  ::unlink(path.c_str());
}

unsigned process_id() {
  return static_cast<unsigned>(::getpid());
}

void catch_stop_requests() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (stop_flag.exchange(true, std::memory_order_relaxed)) end_at_once(); // the second request
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN); // a closed pipe is a write error like any other
  std::signal(SIGXFSZ, SIG_IGN); // so is a file-size limit
}

void add_temporary(const std::string &path) {
  const std::lock_guard lock(temporaries_mutex);
  for (TemporarySlot &slot : temporaries) {
    if (slot.used.load(std::memory_order_relaxed) || path.size() >= slot.path.size()) continue;
    std::copy_n(path.c_str(), path.size() + 1, slot.path.data());
    slot.used.store(true, std::memory_order_release);
    return;
  }
}

void forget_temporary(const std::string &path) {
  const std::lock_guard lock(temporaries_mutex);
  for (TemporarySlot &slot : temporaries)
    if (slot.used.load(std::memory_order_relaxed) && path == slot.path.data())
      slot.used.store(false, std::memory_order_release);
}

bool stop_requested() {
  return stop_flag.load(std::memory_order_relaxed);
}
void request_stop() {
  stop_flag.store(true, std::memory_order_relaxed);
}

bool is_terminal(int standard_stream) {
  return ::isatty(standard_stream) == 1;
}

unsigned terminal_width(int standard_stream) {
  winsize size{};
  return ::ioctl(standard_stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80u;
}

std::uint64_t peak_memory_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

} // namespace etwrelog::base
