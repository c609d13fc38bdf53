// The file that SQLite writes a database to: one of ours, which may have no name yet.
#pragma once

#include "base/output_file.hpp"

#include <optional>
#include <string>

#include <sqlite3.h>

namespace etwrelog::tables {

// SQLite's way to `file` (its "VFS", https://www.sqlite.org/vfs.html) under a name of its own. Stays where it
// is, and outlives the connections that were opened by it. Temporary files of SQLite go where it wants them.
// One thread at a time, as SQLite has it for a connection.
class SqliteFile {
public:
  explicit SqliteFile(base::OutputFile &file);
  ~SqliteFile();
  SqliteFile(const SqliteFile &) = delete;
  SqliteFile &operator=(const SqliteFile &) = delete;

  // For sqlite3_open_v2(), which opens this file whatever path it is given. Null: no memory.
  [[nodiscard]] const char *vfs() const { return registered_ ? name_.c_str() : nullptr; }
  [[nodiscard]] const std::string &target() const { return file_.target(); }
  // Why SQLite failed, if it was the file.
  [[nodiscard]] const std::optional<Error> &failure() const { return failure_; }

private:
  struct Handle;
  struct Calls;
  base::OutputFile &file_;
  std::string name_;
  sqlite3_vfs *others_; // SQLite's own
  sqlite3_vfs vfs_{};
  bool registered_ = false;
  std::optional<Error> failure_;
};

} // namespace etwrelog::tables
