// Virtual tables of SQLite: https://www.sqlite.org/vtab.html.
#pragma once

#include <new>

#include <sqlite3.h>

namespace etwrelog::pipeline {

// A function that SQLite calls: what it throws must not go through SQLite's.
template <auto Function> struct Safe;
template <class... Arguments, int (*Function)(Arguments...)> struct Safe<Function> {
  static int call(Arguments... arguments) noexcept {
    try {
      return Function(arguments...);
    } catch (const std::bad_alloc &) {
      return SQLITE_NOMEM;
    } catch (...) {
      return SQLITE_ERROR;
    }
  }
};
template <auto Function> inline constexpr auto safe = &Safe<Function>::call;

// A module whose tables need no making and no end of their own. How they are read is missing.
template <auto Connect, auto BestIndex>
[[nodiscard]] sqlite3_module module_of(decltype(sqlite3_module::xDisconnect) disconnect) {
  sqlite3_module module{};
  module.xCreate = module.xConnect = safe<Connect>;
  module.xBestIndex = safe<BestIndex>;
  module.xDisconnect = module.xDestroy = disconnect;
  return module;
}

} // namespace etwrelog::pipeline
