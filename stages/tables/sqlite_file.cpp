#include "tables/sqlite_file.hpp"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

namespace etwrelog::tables {

// What sqlite3_file points to. SQLite has the memory and knows the first member alone.
struct SqliteFile::Handle {
  sqlite3_file head;
  SqliteFile *of;
};

struct SqliteFile::Calls {
  static SqliteFile &of(sqlite3_file *file) { return *reinterpret_cast<Handle *>(file)->of; }
  // What opens all other files.
  static sqlite3_vfs *others(sqlite3_vfs *vfs) { return static_cast<SqliteFile *>(vfs->pAppData)->others_; }

  // C calls these: what goes wrong is kept for failure(), nothing is thrown.
  template <class Do> static int guarded(SqliteFile &self, int code, Do &&act) noexcept {
    try {
      Result<void> done = act();
      if (done) return SQLITE_OK;
      self.failure_ = std::move(done).error();
      return code;
    } catch (const std::exception &) {
      return SQLITE_IOERR_NOMEM;
    }
  }

  static int read(sqlite3_file *file, void *to, int size, sqlite3_int64 at) {
    SqliteFile &self = of(file);
    const auto begin = static_cast<std::uint64_t>(at), end = self.file_.size();
    const MutableBytes all(static_cast<std::uint8_t *>(to), static_cast<std::size_t>(size));
    const auto there =
        static_cast<std::size_t>(std::min<std::uint64_t>(all.size(), end - std::min(begin, end)));
    const int done =
        guarded(self, SQLITE_IOERR_READ, [&] { return self.file_.read_at(begin, all.first(there)); });
    if (done != SQLITE_OK || there == all.size()) return done;
    std::ranges::fill(all.subspan(there), std::uint8_t{0}); // as SQLite wants it
    return SQLITE_IOERR_SHORT_READ;
  }
  static int write(sqlite3_file *file, const void *from, int size, sqlite3_int64 at) {
    SqliteFile &self = of(file);
    const Bytes bytes(static_cast<const std::uint8_t *>(from), static_cast<std::size_t>(size));
    return guarded(self, SQLITE_IOERR_WRITE,
                   [&] { return self.file_.write_at(static_cast<std::uint64_t>(at), bytes); });
  }
  static int size(sqlite3_file *file, sqlite3_int64 *size) {
    *size = static_cast<sqlite3_int64>(of(file).file_.size());
    return SQLITE_OK;
  }
  // A database that only grows is never cut.
  static int truncate(sqlite3_file *file, sqlite3_int64 size) {
    return static_cast<std::uint64_t>(size) == of(file).file_.size() ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
  }
  // Who made the file has it synced.
  static int sync(sqlite3_file *, int) { return SQLITE_OK; }
  static int close(sqlite3_file *) { return SQLITE_OK; }
  // Nobody else knows the file.
  static int lock(sqlite3_file *, int) { return SQLITE_OK; }
  static int is_reserved(sqlite3_file *, int *reserved) {
    *reserved = 0;
    return SQLITE_OK;
  }
  static int control(sqlite3_file *, int, void *) { return SQLITE_NOTFOUND; }
  static int sector_size(sqlite3_file *) { return 4096; }
  static int characteristics(sqlite3_file *) { return 0; }

  static int open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *granted) {
    static constexpr sqlite3_io_methods kMethods = {
        .iVersion = 1,
        .xClose = close,
        .xRead = read,
        .xWrite = write,
        .xTruncate = truncate,
        .xSync = sync,
        .xFileSize = size,
        .xLock = lock,
        .xUnlock = lock,
        .xCheckReservedLock = is_reserved,
        .xFileControl = control,
        .xSectorSize = sector_size,
        .xDeviceCharacteristics = characteristics,
        .xShmMap = nullptr,
        .xShmLock = nullptr,
        .xShmBarrier = nullptr,
        .xShmUnmap = nullptr,
        .xFetch = nullptr,
        .xUnfetch = nullptr,
    };
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
      return others(vfs)->xOpen(others(vfs), path, file, flags, granted);
    }
    *reinterpret_cast<Handle *>(file) = {{&kMethods}, static_cast<SqliteFile *>(vfs->pAppData)};
    if (granted != nullptr) *granted = flags;
    return SQLITE_OK;
  }
  // There is no other file of this database: no journal.
  static int remove(sqlite3_vfs *, const char *, int) { return SQLITE_OK; }
  static int access(sqlite3_vfs *, const char *, int, int *there) {
    *there = 0;
    return SQLITE_OK;
  }
  static int full_path(sqlite3_vfs *, const char *path, int size, char *to) {
    const std::string_view name = path;
    if (name.size() >= static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
    to[name.copy(to, name.size())] = '\0';
    return SQLITE_OK;
  }
  static int random(sqlite3_vfs *vfs, int size, char *to) {
    return others(vfs)->xRandomness(others(vfs), size, to);
  }
  static int sleep(sqlite3_vfs *vfs, int microseconds) {
    return others(vfs)->xSleep(others(vfs), microseconds);
  }
  static int time(sqlite3_vfs *vfs, double *now) { return others(vfs)->xCurrentTime(others(vfs), now); }
};

SqliteFile::SqliteFile(base::OutputFile &file)
    : file_(file), name_(fmt::format("etwrelog-{}", static_cast<const void *>(this))),
      others_(sqlite3_vfs_find(nullptr)) { // which initialises SQLite
  if (others_ == nullptr) return;
  vfs_.iVersion = 1;
  vfs_.szOsFile = std::max(static_cast<int>(sizeof(Handle)), others_->szOsFile);
  vfs_.mxPathname = others_->mxPathname;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = Calls::open;
  vfs_.xDelete = Calls::remove;
  vfs_.xAccess = Calls::access;
  vfs_.xFullPathname = Calls::full_path;
  vfs_.xRandomness = Calls::random;
  vfs_.xSleep = Calls::sleep;
  vfs_.xCurrentTime = Calls::time;
  registered_ = sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK;
}

SqliteFile::~SqliteFile() {
  if (registered_) sqlite3_vfs_unregister(&vfs_);
}

} // namespace etwrelog::tables
