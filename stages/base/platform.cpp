#include "base/platform.hpp"

#include "base/errors.hpp"
#include "base/mapping.hpp"
#include "base/pages.hpp"
#include "base/shared_library.hpp"
#include "etwrelog/io.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace etwrelog::base {
namespace {

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

// Names that a signal handler can walk without a lock: a slot is filled before it is published and emptied
// again only after it was taken back.
struct TemporarySlot {
  std::atomic<bool> used{false};
  std::array<char, 4096> path{};
};
std::array<TemporarySlot, 16> temporaries;
std::mutex temporaries_mutex;

Error system_error(const std::string &name, const char *doing, int code) {
  return base::io_failure(std::string("cannot ") + doing + ": " + std::strerror(code))
      .in(name)
      .advise(code == ENOSPC || code == EDQUOT ? Advice::free_space : Advice::none);
}

Error stopped(const std::string &name, const char *doing) {
  return base::cancelled().in(name).found(std::string("while ") + doing);
}

// Whether there is something to read, or nobody left who writes. A request to stop may come from any thread:
// nothing wakes the wait for it, so that it is a wait of many short ones.
Result<void> await_readable(int handle, const std::string &name, const char *doing,
                            const std::stop_token &stop) {
  constexpr int kMilliseconds = 100;
  pollfd wanted{handle, POLLIN, 0};
  for (;;) {
    if (stop.stop_requested()) return stopped(name, doing);
    const int ready = ::poll(&wanted, 1, kMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return {}; // what is wrong the read will say
  }
}

// The system would take what stands in front of the zero.
Result<void> check_name(const std::string &path) {
  if (path.find('\0') == std::string::npos) return {};
  return base::ErrorBuilder(ErrorKind::usage, "the name of a file holds a zero byte").in(path);
}

// Without waiting for whoever is to write into a pipe, which await_readable does.
Result<int> open_patiently(const std::string &path, const std::stop_token &stop) {
  ETWRELOG_TRY(check_name(path));
  const int waiting = stop.stop_possible() ? O_NONBLOCK : 0;
  for (;;) {
    const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | waiting);
    if (handle >= 0) {
      if (waiting != 0) (void)::fcntl(handle, F_SETFL, ::fcntl(handle, F_GETFL) & ~O_NONBLOCK);
      return handle;
    }
    if (errno != EINTR) return system_error(path, "open", errno);
    if (stop.stop_requested()) return stopped(path, "opening");
  }
}

std::int64_t nanoseconds(const timespec &time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileState state_of(const struct stat &facts) {
  return {{facts.st_dev, facts.st_ino},
          static_cast<std::uint64_t>(facts.st_size),
          nanoseconds(facts.st_mtim),
          nanoseconds(facts.st_ctim)};
}

// Group rights of a group that may do no more than everybody.
unsigned without_group(unsigned mode) {
  return mode & (~070u | (mode & 07u) << 3);
}

constexpr const char *kAcl = "system.posix_acl_access";

// `acl`: there is a list of who else may do what; then what stats as the group's rights is the most of all.
std::optional<FileAttributes> attributes_of(const struct stat &facts, bool acl) {
  if (!S_ISREG(facts.st_mode)) return std::nullopt;
  const unsigned mode = facts.st_mode & 0777;
  return FileAttributes{acl ? without_group(mode) : mode, facts.st_uid, facts.st_gid,
                        nanoseconds(facts.st_mtim)};
}

// --- Temporaries with a name: ".etwrelog-" 16 hexadecimal digits ".tmp". Their owner holds a lock on them as
// long as it lives, so that others can tell what a dead process left.

constexpr std::string_view kTemporaryPrefix = ".etwrelog-", kTemporaryEnding = ".tmp";
constexpr std::size_t kTemporaryDigits = 16;

std::string random_name() {
  std::array<std::uint8_t, kTemporaryDigits / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK) != static_cast<ssize_t>(bytes.size())) {
    static std::atomic<std::uint64_t> counter{0}; // unique enough: a name that is taken is tried again
    const std::uint64_t number = (static_cast<std::uint64_t>(::getpid()) << 32) +
                                 counter.fetch_add(0x9E37'79B9, std::memory_order_relaxed);
    std::memcpy(bytes.data(), &number, bytes.size());
  }
  std::string name(kTemporaryPrefix);
  for (const std::uint8_t byte : bytes) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name.append(kTemporaryEnding);
}

bool is_temporary_name(std::string_view name) {
  if (name.size() != kTemporaryPrefix.size() + kTemporaryDigits + kTemporaryEnding.size()) return false;
  if (!name.starts_with(kTemporaryPrefix) || !name.ends_with(kTemporaryEnding)) return false;
  return name.substr(kTemporaryPrefix.size(), kTemporaryDigits).find_first_not_of("0123456789abcdef") ==
         std::string_view::npos;
}

// A folder and when it was made, where the file system tells: what is deleted leaves its number to the next.
using FolderId = std::pair<FileId, std::pair<std::int64_t, std::uint32_t>>;

std::optional<FolderId> folder_id(const std::string &folder) {
  const std::optional<FileId> id = file_id(folder);
  if (!id) return std::nullopt;
  struct statx facts {};
  if (::statx(AT_FDCWD, folder.c_str(), 0, STATX_BTIME, &facts) != 0 || (facts.stx_mask & STATX_BTIME) == 0)
    return FolderId{*id, {}};
  return FolderId{*id, {facts.stx_btime.tv_sec, facts.stx_btime.tv_nsec}};
}

// Once for each folder: reading a folder of many files for each of many outputs takes long.
void clean_leftovers(const std::string &folder) {
  static std::mutex mutex;
  static std::set<FolderId> cleaned;
  const std::optional<FolderId> id = folder_id(folder);
  if (!id) return;
  {
    const std::lock_guard lock(mutex);
    if (!cleaned.insert(*id).second) return;
  }
  DIR *const entries = ::opendir(folder.c_str());
  if (!entries) return;
  while (const dirent *entry = ::readdir(entries)) {
    if (!is_temporary_name(entry->d_name)) continue;
    struct stat facts {};
    if (::fstatat(::dirfd(entries), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const bool inner = S_ISDIR(facts.st_mode);
    if (!inner && !S_ISREG(facts.st_mode)) continue;
    const int how = inner ? O_RDONLY | O_DIRECTORY : O_RDWR | O_NONBLOCK;
    const int handle = ::openat(::dirfd(entries), entry->d_name, how | O_CLOEXEC | O_NOFOLLOW);
    if (handle < 0) continue;
    if (::flock(handle, LOCK_EX | LOCK_NB) == 0) {
      std::error_code ignored;
      if (inner)
        std::filesystem::remove_all(std::filesystem::path(folder) / entry->d_name, ignored);
      else
        ::unlinkat(::dirfd(entries), entry->d_name, 0);
    }
    ::close(handle);
  }
  ::closedir(entries);
}

std::atomic<bool> unnamed_files{true};

// A file without a name gets one by way of /proc.
bool can_link_unnamed() {
  return unnamed_files.load(std::memory_order_relaxed) && ::access("/proc/self/fd", X_OK) == 0;
}

Error no_regular_file(const std::string &path, mode_t mode) {
  const char *const what = S_ISDIR(mode)                    ? "is a folder"
                           : S_ISLNK(mode)                  ? "is a symbolic link"
                           : S_ISFIFO(mode)                 ? "is a pipe"
                           : S_ISCHR(mode) || S_ISBLK(mode) ? "is a device"
                           : S_ISSOCK(mode)                 ? "is a socket"
                                                            : "is no regular file";
  return base::io_failure(std::string(what) + ", and only a regular file can be replaced")
      .in(path)
      .advise(Advice::other_output);
}

std::string temporary_folder() {
  const char *const named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

Error exists_already(const std::string &path) {
  return base::io_failure("exists already").in(path).advise(Advice::replace);
}

} // namespace

File::~File() {
  if (handle_ >= 0 && owned_) ::close(handle_);
}

File::File(File &&other) noexcept
    : handle_(std::exchange(other.handle_, -1)), owned_(other.owned_), name_(std::move(other.name_)) {}

File &File::operator=(File &&other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(owned_, other.owned_);
  std::swap(name_, other.name_);
  return *this;
}

Error File::failure(const char *doing, std::uint64_t offset) const {
  Error error = system_error(name_, doing, errno);
  error.offset = offset;
  return error;
}

Result<File> File::open_read(const std::string &path, const std::stop_token &stop) {
  ETWRELOG_TRY_LET(handle, open_patiently(path, stop));
  File file(handle, path);
  struct stat facts {};
  if (::fstat(handle, &facts) == 0 && S_ISDIR(facts.st_mode)) return system_error(path, "open", EISDIR);
  return file;
}

Result<File> File::create_beside(const std::string &target, std::string &temporary, bool secret) {
  temporary.clear();
  const mode_t mode = secret ? 0600 : 0666;
  const std::string folder = folder_of(target);
  clean_leftovers(folder);
  if (can_link_unnamed()) {
    const int handle = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (handle >= 0) return File(handle, target);
    // What file systems and kernels answer that know no unnamed files.
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOSYS)
      return system_error(target, "create", errno);
  }
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string path = (folder == "." ? std::string() : folder) + random_name();
    const int handle = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (handle < 0 && errno == EEXIST) continue;
    if (handle < 0) return system_error(target, "create", errno);
    File file(handle, target);
    // Where there are no locks nobody cleans up. Where there are, somebody may have done so just now.
    struct stat facts {};
    if (::flock(handle, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    if (::fstat(handle, &facts) == 0 && facts.st_nlink == 0) continue;
    temporary = path;
    return file;
  }
  return system_error(target, "create", EEXIST);
}

Result<File> File::create_folder_beside(const std::string &target, std::string &temporary) {
  return create_folder(folder_of(target), temporary, 0777, target, "create");
}

Result<File> File::create_private_folder(std::string &temporary) {
  const std::string folder = temporary_folder();
  return create_folder(folder + "/", temporary, 0700, folder, "create a temporary folder in it ($TMPDIR)");
}

Result<File> File::create_folder(const std::string &folder, std::string &temporary, unsigned mode,
                                 const std::string &shown, const char *doing) {
  temporary.clear();
  clean_leftovers(folder);
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string path = (folder == "." ? std::string() : folder) + random_name();
    if (::mkdir(path.c_str(), mode) != 0) {
      if (errno == EEXIST) continue;
      return system_error(shown, doing, errno);
    }
    const int handle = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (handle < 0 && errno == ENOENT) continue;
    if (handle < 0) return system_error(shown, doing, errno);
    File lock(handle, shown);
    struct stat facts {};
    // Somebody cleans up, or has done so just now.
    if (::flock(handle, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    if (::fstat(handle, &facts) == 0 && facts.st_nlink == 0) continue;
    temporary = path;
    return lock;
  }
  return system_error(shown, doing, EEXIST);
}

Result<void> File::publish(const std::string &target, std::string &temporary, bool replace, bool &in_place) {
  in_place = false;
  ETWRELOG_TRY(sync());
  // Closing a copy says what closing the file would say, and leaves the lock on a temporary.
  if (const int copy = ::fcntl(handle_, F_DUPFD_CLOEXEC, 3);
      copy >= 0 && ::close(copy) != 0 && errno != EINTR)
    return system_error(name_, "close", errno);
  ETWRELOG_TRY(check_target(target, replace));
  auto failed = [&target](int code) -> Error {
    return code == EEXIST ? exists_already(target)
                          : system_error(target, "give the finished output its name", code);
  };
  const bool unnamed = temporary.empty();
  if (unnamed) {
    const std::string self = "/proc/self/fd/" + std::to_string(handle_);
    auto link_to = [&self](const std::string &path) {
      return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (link_to(target)) {
      in_place = true;
    } else if (errno != EEXIST || !replace) {
      return failed(errno);
    } else { // only a file with a name can replace another
      const std::string folder = folder_of(target);
      const std::string path = (folder == "." ? std::string() : folder) + random_name();
      (void)::flock(handle_, LOCK_EX | LOCK_NB);
      add_temporary(path);
      if (!link_to(path)) {
        const int code = errno;
        forget_temporary(path);
        return failed(code);
      }
      temporary = path;
    }
  }
  if (!in_place && !replace) {
    // The one call that names a file unless the name is taken; link() and unlink() where a file system lacks
    // it.
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) {
      in_place = true;
    } else if (errno != EINVAL && errno != ENOSYS) {
      return failed(errno);
    } else if (::link(temporary.c_str(), target.c_str()) == 0) {
      in_place = true;
      if (::unlink(temporary.c_str()) != 0)
        return system_error(target, ("remove its other name " + temporary).c_str(), errno);
    } else if (errno == EEXIST) {
      return failed(EEXIST);
    }
  }
  if (!in_place) {
    if (::rename(temporary.c_str(), target.c_str()) != 0) return failed(errno);
    in_place = true;
  }
  if (!temporary.empty()) forget_temporary(temporary);
  temporary.clear();
  *this = File();
  return sync_folder(folder_of(target));
}

Result<File> File::create_spool() {
  std::string path = temporary_folder() + "/etwrelog-XXXXXX";
  const int handle = ::mkstemp(path.data());
  if (handle < 0) return system_error(path, "create the temporary file", errno);
  ::unlink(path.c_str());
  return File(handle, path);
}

File File::standard_input() {
  return File(0, "standard input", false);
}

Result<std::uint64_t> File::size() const {
  struct stat facts {};
  if (::fstat(handle_, &facts) != 0) return system_error(name_, "examine", errno);
  return static_cast<std::uint64_t>(facts.st_size);
}

bool File::is_regular() const {
  struct stat facts {};
  return ::fstat(handle_, &facts) == 0 && S_ISREG(facts.st_mode);
}

bool File::at_start() const {
  return ::lseek(handle_, 0, SEEK_CUR) == 0;
}

std::optional<FileId> File::id() const {
  struct stat facts {};
  if (::fstat(handle_, &facts) != 0) return std::nullopt;
  return FileId{facts.st_dev, facts.st_ino};
}

std::optional<FileState> File::state() const {
  struct stat facts {};
  if (::fstat(handle_, &facts) != 0) return std::nullopt;
  return state_of(facts);
}

std::optional<FileAttributes> File::attributes() const {
  struct stat facts {};
  if (::fstat(handle_, &facts) != 0) return std::nullopt;
  return attributes_of(facts, ::fgetxattr(handle_, kAcl, nullptr, 0) > 0);
}

void File::take_rights(const FileAttributes &from) noexcept {
  struct stat facts {};
  unsigned mode = from.mode;
  if (::fstat(handle_, &facts) != 0) return;
  // Only a privileged process gives a file away; its group its owner may give to any of his own.
  if (facts.st_uid != from.owner) (void)!::fchown(handle_, from.owner, static_cast<gid_t>(-1));
  if (facts.st_gid != from.group && ::fchown(handle_, static_cast<uid_t>(-1), from.group) != 0)
    mode = without_group(mode);
  // Whoever could read the one and made the other can read that.
  if (::fstat(handle_, &facts) == 0 && facts.st_uid != from.owner) mode |= 0400;
  (void)::fremovexattr(handle_, kAcl); // of its folder's making
  (void)::fchmod(handle_, mode);
}

void File::take_time(const FileAttributes &from) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = from.written / kSecond, rest = from.written % kSecond;
  if (rest < 0) --seconds, rest += kSecond;
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(seconds), static_cast<long>(rest)}};
  (void)::futimens(handle_, times);
}

Result<std::size_t> File::read_at(std::uint64_t offset, MutableBytes into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(handle_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("read", offset + done);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::size_t> File::read_next(MutableBytes into, const std::stop_token &stop) {
  std::size_t done = 0;
  while (done < into.size()) {
    if (stop.stop_possible()) ETWRELOG_TRY(await_readable(handle_, name_, "reading", stop));
    const ssize_t got = ::read(handle_, into.data() + done, into.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("read", done);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<void> File::write_at(std::uint64_t offset, Bytes from) {
  std::size_t done = 0;
  while (done < from.size()) {
    const ssize_t put =
        ::pwrite(handle_, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = EIO; // no progress and no reason: never to be tried for ever
    if (put <= 0) return failure("write", offset + done);
    done += static_cast<std::size_t>(put);
  }
  return {};
}

void File::start_sync(std::uint64_t offset, std::uint64_t bytes) noexcept {
#ifdef SYNC_FILE_RANGE_WRITE
  (void)::sync_file_range(handle_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                          SYNC_FILE_RANGE_WRITE);
#else
  (void)offset, (void)bytes;
#endif
}

Result<void> File::sync() {
  // Devices and some file systems refuse; what could be written is written then.
  for (;;) {
    if (::fsync(handle_) == 0 || errno == EINVAL || errno == EROFS) return {};
    if (errno != EINTR) return system_error(name_, "sync", errno);
  }
}

Result<void> File::close() {
  const int handle = std::exchange(handle_, -1);
  if (handle >= 0 && owned_ && ::close(handle) != 0 && errno != EINTR)
    return system_error(name_, "close", errno);
  return {};
}

std::optional<FileId> file_id(const std::string &path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return FileId{facts.st_dev, facts.st_ino};
}

std::optional<FileState> file_state(const std::string &path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return std::nullopt;
  return state_of(facts);
}

std::optional<FileAttributes> file_attributes(const std::string &path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return attributes_of(facts, ::getxattr(path.c_str(), kAcl, nullptr, 0) > 0);
}

std::string folder_of(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::optional<FileId> standard_input_id() {
  struct stat facts {};
  if (::fstat(0, &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return FileId{facts.st_dev, facts.st_ino};
}

std::optional<Place> place_of(const std::string &path) {
  const std::optional<FileId> folder = file_id(folder_of(path));
  if (!folder) return std::nullopt;
  return Place{*folder, path.substr(path.rfind('/') + 1)};
}

bool same_file(const std::string &a, const std::string &b) {
  const std::optional<FileId> first = file_id(a);
  return first && first == file_id(b);
}

bool exists(const std::string &path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0;
}

Result<void> check_target(const std::string &path, bool replace) {
  if (path.empty() || path.back() == '/')
    return base::ErrorBuilder(ErrorKind::usage,
                              path.empty() ? "the name of the output is empty" : "is the name of a folder")
        .in(path);
  ETWRELOG_TRY(check_name(path));
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return {}; // whether its folder is there shows when it is written to
    return system_error(path, "create", errno);
  }
  if (!S_ISREG(facts.st_mode)) return no_regular_file(path, facts.st_mode);
  if (!replace) return exists_already(path);
  return {};
}

Result<void> check_folder_of(const std::string &path) {
  const std::string folder = folder_of(path);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return system_error(path, "create", errno);
  return {};
}

Result<void> delete_file(const std::string &path) {
  if (::unlink(path.c_str()) != 0) return system_error(path, "delete", errno);
  return {};
}

Result<void> sync_folder(const std::string &folder) {
  const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) {
    // A folder that may be written to but not read cannot be synced alone.
    if (errno != EACCES) return system_error(folder, "sync the folder", errno);
    ::sync();
    return {};
  }
  int code = 0;
  while (::fsync(handle) != 0 && (code = errno) == EINTR) {
  }
  if (code == EINTR) code = 0;
  ::close(handle);
  if (code != 0 && code != EINVAL && code != EROFS) return system_error(folder, "sync the folder", code);
  return {};
}

void remove_file(const std::string &path) noexcept {
  ::unlink(path.c_str());
}

void advise_large_pages(void *memory, std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  (void)::madvise(memory, bytes, MADV_HUGEPAGE); // where it is refused, small pages do
#endif
}

void advise_large_pages_within(void *memory, std::size_t bytes) noexcept {
  const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(memory)) % kLargePage;
  if (bytes < before + kLargePage) return;
  advise_large_pages(static_cast<std::uint8_t *>(memory) + before,
                     (bytes - before) / kLargePage * kLargePage);
}

unsigned process_id() {
  return static_cast<unsigned>(::getpid());
}

void use_unnamed_files(bool yes) {
  unnamed_files.store(yes, std::memory_order_relaxed);
}

void add_temporary(const std::string &path) {
  const std::lock_guard lock(temporaries_mutex);
  for (TemporarySlot &slot : temporaries) {
    if (slot.used.load(std::memory_order_relaxed) || path.size() >= slot.path.size()) continue;
    std::copy_n(path.c_str(), path.size() + 1, slot.path.data());
    slot.used.store(true, std::memory_order_release);
    return;
  }
}

void forget_temporary(const std::string &path) {
  const std::lock_guard lock(temporaries_mutex);
  for (TemporarySlot &slot : temporaries)
    if (slot.used.load(std::memory_order_relaxed) && path == slot.path.data())
      slot.used.store(false, std::memory_order_release);
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t *>(bytes_.data()), bytes_.size());
}
Mapping::Mapping(Mapping &&other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
Mapping &Mapping::operator=(Mapping &&other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<Mapping> Mapping::open(const std::string &path) {
  const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) return system_error(path, "open", errno);
  Result<Mapping> out = map_all(handle, path);
  ::close(handle);
  return out;
}

Result<Mapping> Mapping::of(const File &file) {
  return map_all(file.handle_, file.name_);
}

Result<Mapping> Mapping::map_all(int handle, const std::string &name) {
  struct stat facts {};
  if (::fstat(handle, &facts) != 0) return system_error(name, "map", errno);
  if (!S_ISREG(facts.st_mode)) return system_error(name, "map", EINVAL);
  Mapping out;
  if (facts.st_size == 0) return out;
  const auto size = static_cast<std::size_t>(facts.st_size);
  void *at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, handle, 0);
  if (at == MAP_FAILED) return system_error(name, "map", errno);
  out.bytes_ = {static_cast<const std::uint8_t *>(at), size};
  return out;
}

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  at_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at_ == MAP_FAILED) throw std::bad_alloc();
}
Pages::~Pages() {
  if (at_ != nullptr) ::munmap(at_, bytes_);
}

void give_back_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

Result<SharedLibrary> SharedLibrary::open(const std::string &name) {
  if (void *const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle);
  const char *const why = ::dlerror();
  return base::unsupported(why != nullptr ? why : "cannot be loaded");
}

void *SharedLibrary::symbol(const char *name) const {
  return ::dlsym(handle_, name);
}

std::string environment(const char *name) {
  const char *const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

} // namespace etwrelog::base

namespace etwrelog {

void remove_unfinished_outputs() noexcept {
  for (base::TemporarySlot &slot : base::temporaries)
    if (slot.used.load(std::memory_order_acquire)) ::unlink(slot.path.data());
  for (base::TemporarySlot &slot : base::temporaries) // folders, which are empty by now
    if (slot.used.load(std::memory_order_acquire)) ::rmdir(slot.path.data());
}

} // namespace etwrelog
