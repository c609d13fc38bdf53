#include "session.hpp"

#include <mutex>
#include <unordered_map>

namespace etwrelog::consumer {

struct SessionTable::Impl {
  std::mutex mutex;
  std::unordered_map<TRACEHANDLE, std::shared_ptr<Session>> sessions;
  TRACEHANDLE last = 0;
};

SessionTable::SessionTable() : impl_(std::make_unique<Impl>()) {}

// Never destroyed: a garbage collector may close handles while the process ends.
SessionTable &SessionTable::instance() {
  static SessionTable &table = *new SessionTable;
  return table;
}

TRACEHANDLE SessionTable::add(std::shared_ptr<Session> session) {
  const std::lock_guard lock(impl_->mutex);
  impl_->sessions.emplace(++impl_->last, std::move(session));
  return impl_->last;
}

std::shared_ptr<Session> SessionTable::find(TRACEHANDLE handle) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->sessions.find(handle);
  return found == impl_->sessions.end() ? nullptr : found->second;
}

std::uint32_t SessionTable::begin(std::span<const TRACEHANDLE> handles, const std::stop_source &ending,
                                  std::vector<std::shared_ptr<Session>> &sessions) {
  const std::lock_guard lock(impl_->mutex);
  std::uint32_t status = ERROR_SUCCESS;
  for (const TRACEHANDLE handle : handles) {
    const auto found = impl_->sessions.find(handle);
    if (found == impl_->sessions.end())
      status = ERROR_INVALID_HANDLE;
    else if (found->second->busy)
      status = ERROR_BUSY; // also one that is in the list twice
    else
      sessions.push_back(found->second);
    if (status != ERROR_SUCCESS) break;
    found->second->busy = true;
  }
  for (const auto &session : sessions)
    if (status == ERROR_SUCCESS)
      session->ending = ending;
    else
      session->busy = false;
  if (status != ERROR_SUCCESS) sessions.clear();
  return status;
}

void SessionTable::end(std::span<const TRACEHANDLE> handles) {
  const std::lock_guard lock(impl_->mutex);
  for (const TRACEHANDLE handle : handles) {
    const auto found = impl_->sessions.find(handle);
    if (found == impl_->sessions.end()) continue;
    found->second->busy = false;
    found->second->ending = std::stop_source(std::nostopstate);
    if (found->second->closing) impl_->sessions.erase(found);
  }
}

std::uint32_t SessionTable::close(TRACEHANDLE handle) {
  std::shared_ptr<Session> last; // freed outside the lock
  std::unique_lock lock(impl_->mutex);
  const auto found = impl_->sessions.find(handle);
  if (found == impl_->sessions.end() || found->second->closing) return ERROR_INVALID_HANDLE;
  if (found->second->busy) {
    found->second->closing = true;
    std::stop_source ending = found->second->ending;
    lock.unlock(); // what waits for the stop is woken on this thread
    ending.request_stop();
    return ERROR_CTX_CLOSE_PENDING;
  }
  last = std::move(found->second);
  impl_->sessions.erase(found);
  return ERROR_SUCCESS;
}

} // namespace etwrelog::consumer
