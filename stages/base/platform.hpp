// Everything that differs between operating systems, and the only file pair (with platform.cpp) that calls
// POSIX.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <compare>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace etwrelog::base {

// Which file it is, whatever it is called.
struct FileId {
  std::uint64_t device = 0, inode = 0;
  auto operator<=>(const FileId &) const = default;
};
[[nodiscard]] std::optional<FileId> file_id(const std::string &path); // nothing if there is none
[[nodiscard]] std::optional<FileId> standard_input_id();              // nothing unless it is a regular file

// What changes whenever somebody writes to a file, or gives a name to another. Times: nanoseconds since 1970.
struct FileState {
  FileId id;
  std::uint64_t size = 0;
  std::int64_t written = 0, changed = 0;
  bool operator==(const FileState &) const = default;
};
// Of the name itself: a link is not followed. Nothing if there is none.
[[nodiscard]] std::optional<FileState> file_state(const std::string &path);

// Who may do what with a file, and when it was written: what an output that stands for one file takes of it.
struct FileAttributes {
  unsigned mode = 0; // rwx of owner, group and others
  std::uint32_t owner = 0, group = 0;
  std::int64_t written = 0;
};
[[nodiscard]] std::optional<FileAttributes> file_attributes(const std::string &path); // of regular files

// Where a file of that name stands or would stand: equal for all spellings of one place.
struct Place {
  FileId folder;
  std::string name;
  auto operator<=>(const Place &) const = default;
};
[[nodiscard]] std::optional<Place> place_of(const std::string &path); // nothing if there is no such folder

// An open file, closed on destruction. Reads and writes at an offset may run on any number of threads at
// once.
class File {
public:
  File() = default;
  ~File();
  File(File &&other) noexcept;
  File &operator=(File &&other) noexcept;

  // Opening a pipe waits for who writes to it, until `stop` is set.
  static Result<File> open_read(const std::string &path, const std::stop_token &stop = {});
  // A new file in the folder of `target`: without a name where the file system can, so that nothing is left
  // whatever happens; else under `temporary`, a random name that others leave alone while this process lives.
  // Removes what dead processes left in that folder.
  // `secret`: for nobody else to open before take_rights().
  static Result<File> create_beside(const std::string &target, std::string &temporary, bool secret = false);
  // A new folder there, under such a name; the file that is returned holds the lock that says whose it is.
  static Result<File> create_folder_beside(const std::string &target, std::string &temporary);
  // The same in the directory for temporary files, for nobody else to look into.
  static Result<File> create_private_folder(std::string &temporary);
  // Syncs such a file and gives it the name `target`, which no other file may have unless `replace`, and no
  // directory, link or device in any case. The folder is synced too: `in_place` tells whether an error came
  // only then, when the file stands where it should. Without success before that, all is as it was.
  [[nodiscard]] Result<void> publish(const std::string &target, std::string &temporary, bool replace,
                                     bool &in_place);
  // A file without a name in the directory for temporary files, gone when closed.
  static Result<File> create_spool();
  static File standard_input();

  [[nodiscard]] Result<std::uint64_t> size() const;
  [[nodiscard]] bool is_regular() const; // has a size and can be read at any offset
  [[nodiscard]] bool at_start() const;   // nobody has read of it by read_next(), in this process or before
  [[nodiscard]] std::optional<FileId> id() const;
  [[nodiscard]] std::optional<FileState> state() const;
  [[nodiscard]] std::optional<FileAttributes> attributes() const; // of a regular file
  // Nobody may do more with it than with the file that these are of. As far as the system lets: what it
  // refuses leaves the file to its owner.
  void take_rights(const FileAttributes &from) noexcept;
  void take_time(const FileAttributes &from) noexcept; // behind all writing

  // Reads until `into` is full or the file ends.
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const;
  // Sequential, of pipes and standard input; waiting for more ends when `stop` is set.
  [[nodiscard]] Result<std::size_t> read_next(MutableBytes into, const std::stop_token &stop = {});
  [[nodiscard]] Result<void> write_at(std::uint64_t offset, Bytes from);
  // Has the disk begin with what was written there, which sync() would wait for. Waits for nothing itself
  // unless the disk has too much to do already; an error is left for sync() to find.
  void start_sync(std::uint64_t offset, std::uint64_t bytes) noexcept;
  [[nodiscard]] Result<void> sync();
  [[nodiscard]] Result<void> close(); // reports what a silent close in the destructor would lose

private:
  friend class Mapping;
  File(int handle, std::string name, bool owned = true)
      : handle_(handle), owned_(owned), name_(std::move(name)) {}
  [[nodiscard]] Error failure(const char *doing, std::uint64_t offset) const;
  static Result<File> create_folder(const std::string &folder, std::string &temporary, unsigned mode,
                                    const std::string &shown, const char *doing);

  int handle_ = -1;
  bool owned_ = true; // standard input is not closed
  std::string name_;
};

// Whether both names lead to one and the same existing file.
[[nodiscard]] bool same_file(const std::string &a, const std::string &b);
[[nodiscard]] bool exists(const std::string &path);
// Whether a file may be written there: nothing stands there, or a regular file that `replace` allows to
// replace. An error tells what else there is.
[[nodiscard]] Result<void> check_target(const std::string &path, bool replace);
// Whether files can be made where it is to be.
[[nodiscard]] Result<void> check_folder_of(const std::string &path);
[[nodiscard]] Result<void> delete_file(const std::string &path);
[[nodiscard]] std::string folder_of(const std::string &path); // "." or with its slash
void remove_file(const std::string &path) noexcept;           // whether or not that works
// Makes the names in a folder durable.
[[nodiscard]] Result<void> sync_folder(const std::string &folder);
[[nodiscard]] unsigned process_id();
inline constexpr std::size_t kLargePage = 2u << 20;
// Asks for large pages, where the system has them: touching memory for the first time then costs far less.
void advise_large_pages(void *memory, std::size_t bytes) noexcept;
// The same for those that lie within memory which begins and ends anywhere.
void advise_large_pages_within(void *memory, std::size_t bytes) noexcept;

// Files that remove_unfinished_outputs (etwrelog/io.hpp) removes.
void add_temporary(const std::string &path);
void forget_temporary(const std::string &path);

// For tests: as on a file system where every file has a name from the start.
void use_unnamed_files(bool yes);

} // namespace etwrelog::base
