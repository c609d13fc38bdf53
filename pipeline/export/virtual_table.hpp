// Virtual tables of SQLite: https://www.sqlite.org/vtab.html.
#pragma once

#include <sqlite3.h>

namespace etwrelog::pipeline {

// A module whose tables need no making and no end of their own. How they are read is missing.
[[nodiscard]] inline sqlite3_module module_of(decltype(sqlite3_module::xConnect) connect,
                                              decltype(sqlite3_module::xBestIndex) best_index,
                                              decltype(sqlite3_module::xDisconnect) disconnect) {
  sqlite3_module module{};
  module.xCreate = module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = module.xDestroy = disconnect;
  return module;
}

} // namespace etwrelog::pipeline
