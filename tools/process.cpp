#include "tools/process.hpp"

#include "etwrelog/io.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace etwrelog::process {

namespace {

bool output_was_closed = false, input_was_closed = false;

} // namespace

void open_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest number that is free is the one that is missing.
    if (::open("/dev/null", stream == 0 ? O_RDONLY : O_WRONLY) != stream) ::_exit(1);
    if (stream == 0) input_was_closed = true;
    if (stream == 1) output_was_closed = true;
  }
}

bool standard_output_was_closed() {
  return output_was_closed;
}

bool standard_input_was_closed() {
  return input_was_closed;
}

void print_message(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t put = ::write(2, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

namespace {

// Made before the handler is installed, and never destroyed: a signal can come while the program ends. Nobody
// registers callbacks with it, so that requesting a stop is a few atomic operations, which a signal handler
// may do.
std::stop_source &stopping() {
  static auto *const source = new std::stop_source;
  return *source;
}

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void end_at_once() {
  remove_unfinished_outputs();
  ::_exit(1);
}

// What no error can be made of, such as a thread that oneTBB cannot make: said in a line, and nothing is left
// behind.
[[noreturn]] void end_in_disorder() {
  // Without an exception: mostly there was no memory even for one.
  const char *why = "it is out of memory, or in a state that it does not know";
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception &thrown) {
    why = thrown.what();
  } catch (...) {
  }
  for (const std::string_view part :
       {std::string_view("error: this program cannot go on: "), std::string_view(why),
        std::string_view("; fewer threads take less of the system\n")})
    print_message(part);
  end_at_once();
  std::abort();
}

// As early as can be: what is made before main() can run out of memory, too.
[[gnu::constructor(101)]] void expect_disorder() {
  std::set_terminate(end_in_disorder);
}

} // namespace

void catch_stop_requests() {
  static_cast<void>(stopping());
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (asked.exchange(true, std::memory_order_relaxed)) end_at_once(); // the second request
    stopping().request_stop();
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN); // a closed pipe is a write error like any other
  std::signal(SIGXFSZ, SIG_IGN); // so is a file-size limit
}

std::stop_token stop_token() {
  return stopping().get_token();
}

bool is_terminal(int standard_stream) {
  return ::isatty(standard_stream) == 1;
}

bool can_redraw(int standard_stream) {
  const char *const kind = std::getenv("TERM");
  return is_terminal(standard_stream) && (kind == nullptr || std::string_view(kind) != "dumb");
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

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : std::string();
}

} // namespace etwrelog::process
