// Libraries that are looked for when they are needed, and not when the program starts.
#pragma once

#include "etwrelog/error.hpp"

#include <string>

namespace etwrelog::base {

class SharedLibrary {
public:
  // As the loader finds it by its name, or at a path. It stays loaded as long as the process runs: what it
  // has started may outlive this.
  static Result<SharedLibrary> open(const std::string &name);
  [[nodiscard]] void *symbol(const char *name) const; // null: it has none of that name

private:
  explicit SharedLibrary(void *handle) : handle_(handle) {}
  void *handle_;
};

// $NAME; empty if it is not set.
[[nodiscard]] std::string environment(const char *name);

} // namespace etwrelog::base
