// Bytes that can be read at any place, under a name: what a file is to all that looks for something in one.
#pragma once

#include "base/platform.hpp"
#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <memory>
#include <optional>
#include <string>

namespace etwrelog::base {

// What an input is called: a file as the user named it, and the member of it if it is an archive.
struct InputName {
  InputName(std::string of, std::string in = {}) : file(std::move(of)), member(std::move(in)) {}
  InputName(const char *of) : file(of) {}
  [[nodiscard]] std::string text() const { return member.empty() ? file : file + ":" + member; }

  std::string file, member;
};

class InputBytes {
public:
  explicit InputBytes(InputName name) : name_(std::move(name)), text_(name_.text()) {}
  virtual ~InputBytes() = default;
  InputBytes(const InputBytes &) = delete;
  InputBytes &operator=(const InputBytes &) = delete;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // Fills `into`; returns less only at the end of the input. Any thread.
  [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const = 0;
  // Whether what has been read once is cheap to read again, as the system holds it: then there is little to
  // win by keeping a copy of it.
  [[nodiscard]] virtual bool cheap_to_read_again() const { return false; }
  // Of the file that it is, as it lies on disk; nothing of what was spooled.
  [[nodiscard]] virtual std::optional<FileAttributes> attributes() const { return std::nullopt; }
  // As the user named it, with the member of an archive behind a colon.
  [[nodiscard]] const std::string &name() const { return text_; }
  [[nodiscard]] const std::string &file() const { return name_.file; }
  [[nodiscard]] const std::string &member() const { return name_.member; }

private:
  InputName name_;
  std::string text_;
};

// Fills `into` from within the input. That less is there now is an error of kind `io`.
[[nodiscard]] Result<void> read_whole(const InputBytes &input, std::uint64_t offset, MutableBytes into);

// An open file of that size.
[[nodiscard]] std::unique_ptr<InputBytes> file_input(InputName name, File file, std::uint64_t size,
                                                     const std::optional<FileAttributes> &attributes = {});

} // namespace etwrelog::base
