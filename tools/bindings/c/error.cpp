#include "handles.hpp"

#include <cstdlib>

namespace etwrelog::c {
namespace {

// Given out when there is no memory left for another one; never freed.
etwr_error &out_of_memory() {
  static etwr_error &error = *new etwr_error{Error{}, ETWR_ERROR_MEMORY, "out of memory"};
  return error;
}
const etwr_error &made_early = out_of_memory();

} // namespace

etwr_error *make_error(Error error) {
  auto *made = new etwr_error;
  made->kind = static_cast<int>(error.kind);
  made->message = error.message();
  made->error = std::move(error);
  return made;
}

etwr_error *make_error(int kind, const char *message) {
  try {
    auto *made = new etwr_error;
    made->kind = kind;
    made->message = made->error.what = message;
    return made;
  } catch (...) {
    return &out_of_memory();
  }
}

etwr_error *usage(const char *what) {
  return make_error(ETWR_ERROR_USAGE, what);
}

Run::Run(const etwr_run *given) : given_(copy_of(given)) {
  const etwr_run &run = given_;
  options_.threads = run.threads;
  if (run.memory != 0) options_.memory = run.memory;
  if (run.warning != nullptr) options_.report = &report_;
  options_.stop = source_.get_token();
  if (run.stop == nullptr && run.progress == nullptr) return;
  options_.progress = [run = given_, stop = source_,
                       phase = std::string()](const Progress &progress) mutable {
    if (run.stop != nullptr && run.stop(run.context) != 0) stop.request_stop();
    if (run.progress == nullptr) return;
    phase = progress.phase;
    run.progress(run.context, phase.c_str(), progress.done, progress.total);
  };
  if (run.stop != nullptr && run.stop(run.context) != 0) source_.request_stop();
}

void Run::tell_warnings() const {
  if (given_.warning == nullptr) return;
  for (const std::string &warning : report_.warnings)
    given_.warning(given_.context, warning.c_str());
  tell(report_.skipped);
}

void Run::tell(const std::vector<Skipped> &skipped) const {
  if (given_.warning == nullptr) return;
  for (const Skipped &stretch : skipped)
    given_.warning(given_.context, (std::to_string(stretch.bytes) + " bytes skipped at " +
                                    std::to_string(stretch.offset) + ": " + stretch.why)
                                       .c_str());
}

} // namespace etwrelog::c

int etwr_error_kind(const etwr_error *error) {
  return error->kind;
}
const char *etwr_error_message(const etwr_error *error) {
  return error->message.c_str();
}
const char *etwr_error_file(const etwr_error *error) {
  return error->error.file.c_str();
}
const char *etwr_error_what(const etwr_error *error) {
  return error->error.what.c_str();
}
const char *etwr_error_expected(const etwr_error *error) {
  return error->error.expected.c_str();
}
const char *etwr_error_found(const etwr_error *error) {
  return error->error.found.c_str();
}

int etwr_error_offset(const etwr_error *error, std::uint64_t *offset) {
  if (!error->error.offset) return 0;
  if (offset != nullptr) *offset = *error->error.offset;
  return 1;
}

void etwr_error_free(etwr_error *error) {
  if (error != &etwrelog::c::made_early) delete error;
}

void etwr_string_free(char *text) {
  std::free(text);
}

const char *etwr_version(void) {
  return ETWRELOG_VERSION;
}

std::uint32_t etwr_abi_version(void) {
  return ETWR_ABI_VERSION;
}
