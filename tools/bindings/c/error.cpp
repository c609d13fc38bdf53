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
