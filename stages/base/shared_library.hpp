// Libraries that are looked for when they are needed, and not when the program starts.
#pragma once

#include "etwrelog/error.hpp"

#include <cstring>
#include <string>

namespace etwrelog::base {

class SharedLibrary {
public:
  // As the loader finds it by its name, or at a path. It stays loaded as long as the process runs: what it
  // has started may outlive this.
  static Result<SharedLibrary> open(const std::string &name);
  [[nodiscard]] void *symbol(const char *name) const; // null: it has none of that name
  // The same for a pointer to a function, which is not to be had by a cast from an object's.
  template <class Function> bool find(Function *&function, const char *name) const {
    void *const at = symbol(name);
    static_assert(sizeof function == sizeof at);
    std::memcpy(&function, &at, sizeof at);
    return at != nullptr;
  }

private:
  explicit SharedLibrary(void *handle) : handle_(handle) {}
  void *handle_;
};

// $NAME; empty if it is not set.
[[nodiscard]] std::string environment(const char *name);

} // namespace etwrelog::base
