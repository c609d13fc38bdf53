// How a call runs: its threads and memory, and the caller's callbacks.
#include "handles.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace etwrelog::c {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Clock::duration kPause = std::chrono::milliseconds(100); // between two questions

} // namespace

// Shared with the streams that go on when the call is over.
class Run::Callbacks {
public:
  explicit Callbacks(const etwr_run &given) : run_(given) {}

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

  void ask() {
    std::unique_lock lock(calling_);
    ask_and_unlock(lock);
  }
  // Unless somebody has just asked. Returns how long to wait with the next question.
  Clock::duration ask_when_due() {
    std::unique_lock lock(calling_);
    const Clock::duration left = asked_ + kPause - Clock::now();
    if (left > Clock::duration::zero()) return left;
    ask_and_unlock(lock);
    return kPause;
  }
  void tell(const Progress &progress) {
    ask();
    if (run_.progress == nullptr) return;
    const std::lock_guard lock(calling_);
    phase_ = progress.phase;
    run_.progress(run_.context, phase_.c_str(), progress.done, progress.total);
  }
  void warn(const std::string &text) {
    const std::lock_guard lock(calling_);
    run_.warning(run_.context, text.c_str());
  }

private:
  void ask_and_unlock(std::unique_lock<std::mutex> &lock) {
    if (run_.stop == nullptr || source_.stop_requested()) return;
    const bool stop = run_.stop(run_.context) != 0;
    asked_ = Clock::now();
    lock.unlock();
    if (stop) source_.request_stop();
  }

  const etwr_run run_;
  std::stop_source source_;
  std::mutex calling_; // held while a callback is called
  std::string phase_;
  Clock::time_point asked_{};
};

// A thread that asks whether to stop: nobody else does while a call opens a trace or waits for a pipe.
class Run::Watch {
public:
  explicit Watch(std::shared_ptr<Callbacks> callbacks)
      : callbacks_(std::move(callbacks)), thread_([this] { watch(); }) {}
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

private:
  void watch() {
    try {
      const std::stop_token stop = callbacks_->token();
      Clock::duration pause = kPause;
      std::unique_lock lock(mutex_);
      while (!changed_.wait_for(lock, pause, [this] { return over_; })) {
        lock.unlock();
        pause = callbacks_->ask_when_due();
        if (stop.stop_requested()) return;
        lock.lock();
      }
    } catch (...) { // of the callback's: the call goes on without, as with progress
    }
  }

  std::shared_ptr<Callbacks> callbacks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_; // the last one: it uses the others
};

Run::Run(const etwr_run *given, Asks asks) {
  const etwr_run run = copy_of(given);
  callbacks_ = std::make_shared<Callbacks>(run);
  options_.threads = run.threads;
  if (run.memory != 0) options_.memory = run.memory;
  wants_warnings_ = run.warning != nullptr;
  if (wants_warnings_) options_.report = &report_;
  options_.stop = callbacks_->token();
  if (run.stop == nullptr && run.progress == nullptr) return;
  options_.progress = [callbacks = callbacks_](const Progress &progress) { callbacks->tell(progress); };
  if (run.stop == nullptr) return;
  callbacks_->ask();
  if (asks == Asks::with_progress || stopped()) return;
  try {
    watch_ = std::make_unique<Watch>(callbacks_);
  } catch (...) { // no thread is to be had: asked with the progress alone
  }
}

Run::~Run() = default;

void Run::tell_warnings(const Trace *trace) const {
  if (!wants_warnings_) return;
  for (const std::string &warning : report_.warnings)
    callbacks_->warn(warning);
  tell(report_.skipped, trace);
}

void Run::tell(const std::vector<Skipped> &skipped, const Trace *trace) const {
  if (!wants_warnings_) return;
  for (const Skipped &stretch : skipped) {
    Error text; // whose message() makes names printable
    if (trace != nullptr && stretch.source < trace->sources().size())
      text.file = trace->sources()[stretch.source].name;
    text.what = std::to_string(stretch.bytes) + " bytes skipped at " + std::to_string(stretch.offset) + ": " +
                stretch.why;
    callbacks_->warn(text.message());
  }
}

} // namespace etwrelog::c
