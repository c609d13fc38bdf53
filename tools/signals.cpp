#include "tools/signals.hpp"

#include "base/platform.hpp"

#include <csignal>

namespace etwrelog::cli {
namespace {

// Made before the handler is installed. Nobody registers callbacks with it, so that requesting a stop is a
// few atomic operations, which a signal handler may do.
std::stop_source &stopping() {
  static std::stop_source source;
  return source;
}

using Handler = void (*)(int);
Handler interrupt_before = SIG_DFL, terminate_before = SIG_DFL, hang_up_before = SIG_DFL;

// The one before, of the platform file, wakes reads that wait for a pipe, and ends the program the second
// time.
void on_request(int signal) {
  stopping().request_stop();
  const Handler before = signal == SIGINT    ? interrupt_before
                         : signal == SIGTERM ? terminate_before
                                             : hang_up_before;
  if (before != SIG_DFL && before != SIG_IGN) before(signal);
}

Handler replace_handler(int signal) {
  struct sigaction old {
  }, action{};
  ::sigaction(signal, nullptr, &old);
  action.sa_handler = on_request;
  ::sigaction(signal, &action, nullptr);
  return old.sa_handler;
}

} // namespace

void catch_stop_requests() {
  static_cast<void>(stopping());
  base::catch_stop_requests();
  interrupt_before = replace_handler(SIGINT);
  terminate_before = replace_handler(SIGTERM);
  hang_up_before = replace_handler(SIGHUP);
}

std::stop_token stop_token() {
  return stopping().get_token();
}

} // namespace etwrelog::cli
