// Everything that differs between operating systems, and the only file pair (with platform.cpp) that calls
// POSIX.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <string>

namespace etwrelog::base {

// An open file, closed on destruction. Reads and writes at an offset may run on any number of threads at
// once.
class File {
public:
  File() = default;
  ~File();
  File(File &&other) noexcept;
  File &operator=(File &&other) noexcept;

  static Result<File> open_read(const std::string &path);
  // Fails if `path` exists.
  static Result<File> create(const std::string &path);
  // A file without a name in the directory for temporary files, gone when closed.
  static Result<File> create_spool();
  static File standard_input();

  [[nodiscard]] Result<std::uint64_t> size() const;
  [[nodiscard]] bool is_regular() const; // has a size and can be read at any offset

  // Reads until `into` is full or the file ends.
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const;
  [[nodiscard]] Result<std::size_t> read_next(MutableBytes into); // sequential: pipes, standard input
  [[nodiscard]] Result<void> write_at(std::uint64_t offset, Bytes from);
  [[nodiscard]] Result<void> sync();
  [[nodiscard]] Result<void> close(); // reports what a silent close in the destructor would lose

private:
  explicit File(int handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  [[nodiscard]] Error failure(const char *doing, std::uint64_t offset) const;

  int handle_ = -1;
  std::string name_;
};

// Whether both names lead to one and the same existing file.
[[nodiscard]] bool same_file(const std::string &a, const std::string &b);
[[nodiscard]] bool exists(const std::string &path);
// Renames within a directory and makes the new name durable. With `replace` an existing target is replaced
// atomically; without, an existing target is an error and stays as it is.
[[nodiscard]] Result<void> rename_into_place(const std::string &from, const std::string &to, bool replace);
void remove_file(const std::string &path) noexcept;
[[nodiscard]] unsigned process_id();

// After this, interrupt and terminate requests set a flag instead of ending the process; a second one ends it
// and removes the temporary files.
void catch_stop_requests();
// Files to remove when the process has to end at once.
void add_temporary(const std::string &path);
void forget_temporary(const std::string &path);
[[nodiscard]] bool stop_requested();
void request_stop(); // as a signal would; for tests and embedding programs

[[nodiscard]] bool is_terminal(int standard_stream); // 1 stdout, 2 stderr
[[nodiscard]] unsigned terminal_width(int standard_stream);
[[nodiscard]] std::uint64_t peak_memory_bytes(); // of this process; 0 if the system does not tell

} // namespace etwrelog::base
