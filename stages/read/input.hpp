// Where a trace's bytes come from: a file, standard input, or traces wrapped in a zip, gzip, xz, zstd or
// bzip2 file. All are readable at any offset; what is not so by nature is spooled to a temporary file without
// a name.
#pragma once

#include "base/platform.hpp"
#include "etwrelog/bytes.hpp"
#include "etwrelog/io.hpp"

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace etwrelog::read {

// What an input is called: a file as the user named it, and the member of it if it is an archive.
struct InputName {
  InputName(std::string of, std::string in = {}) : file(std::move(of)), member(std::move(in)) {}
  InputName(const char *of) : file(of) {}
  [[nodiscard]] std::string text() const { return member.empty() ? file : file + ":" + member; }

  std::string file, member;
};

class Input {
public:
  explicit Input(InputName name) : name_(std::move(name)), text_(name_.text()) {}
  virtual ~Input() = default;
  Input(const Input &) = delete;
  Input &operator=(const Input &) = delete;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // Fills `into`; returns less only at the end of the input. Any thread.
  [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const = 0;
  // Whether what has been read once is cheap to read again, as the system holds it: then there is little to
  // win by keeping a copy of it.
  [[nodiscard]] virtual bool cheap_to_read_again() const { return false; }
  // As the user named it, with the member of an archive behind a colon.
  [[nodiscard]] const std::string &name() const { return text_; }
  [[nodiscard]] const std::string &file() const { return name_.file; }
  [[nodiscard]] const std::string &member() const { return name_.member; }

private:
  InputName name_;
  std::string text_;
};

// `path` may be "-" for standard input. A wrapped trace is recognised by its first bytes, not by its name; a
// zip must hold exactly one. Spooling and unwrapping end as cancelled when `stop` is set, also while a pipe
// has nothing to give.
[[nodiscard]] Result<std::unique_ptr<Input>> open_input(const std::string &path,
                                                        const std::stop_token &stop = {});

// Looks at the beginning of what has to be spooled, at least its first event or all there is; its error is
// the result before more is read. Somebody else's pipe may never end.
using HeadCheck = std::function<Result<void>(Bytes head)>;

// All traces of a zip (unzip.hpp), or the one that anything else is.
[[nodiscard]] Result<std::vector<std::unique_ptr<Input>>>
open_inputs(const etwrelog::Input &input, const std::stop_token &stop = {}, const HeadCheck &check = {});

// What a caller described; wrapped traces as above.
[[nodiscard]] Result<std::unique_ptr<Input>> open_input(const etwrelog::Input &input,
                                                        const std::stop_token &stop = {});

// The very bytes, wrapped or not.
[[nodiscard]] Result<std::unique_ptr<Input>>
open_plain(const std::string &path, const std::stop_token &stop = {}, const HeadCheck &check = {});
[[nodiscard]] Result<std::unique_ptr<Input>>
open_plain(const etwrelog::Input &input, const std::stop_token &stop = {}, const HeadCheck &check = {});

// The very bytes, once and in order, without a spool. Reads fail as cancelled when `stop` is set. Of an input
// that can be read anywhere: unsupported.
[[nodiscard]] Result<std::shared_ptr<ByteStream>> open_stream(const etwrelog::Input &input,
                                                              const std::stop_token &stop = {});

// Reads from memory that the input owns.
[[nodiscard]] std::unique_ptr<Input> memory_input(std::string name, std::vector<std::uint8_t> bytes);

} // namespace etwrelog::read
