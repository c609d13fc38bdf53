// Where bytes come from and where they go. Inputs and outputs are descriptions, cheap to copy; whoever they
// are given to opens them, and says what is wrong then: making one never fails. Copies share the bytes,
// stream or sink that they were made of, which live as long as one of them; Output::memory refers to the
// caller's vector. Offsets and sizes are in bytes. What a stream, sink or RandomAccess throws is an error of
// kind `callback`; a null pointer to one is `usage`.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace etwrelog {

namespace base {
struct FileAttributes;
class PrivateFolder;
} // namespace base

// Bytes that can be read anywhere, by any number of threads at once: a blob store, for one.
class RandomAccess {
public:
  virtual ~RandomAccess() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0; // asked once, when it is opened
  // Fills `into`; returns less only at the end.
  [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const = 0;
};

// Bytes that come once, in order, to one thread.
class ByteStream {
public:
  virtual ~ByteStream() = default;
  [[nodiscard]] virtual Result<std::size_t> read(MutableBytes into) = 0; // 0: the end
};

// Takes bytes in order, from one thread at a time.
class ByteSink {
public:
  virtual ~ByteSink() = default;
  [[nodiscard]] virtual Result<void> write(Bytes bytes) = 0;
};

class Input {
public:
  enum class Kind : std::uint8_t { path, standard_input, memory, random_access, stream };

  Input(std::string path); // a path and nothing else: "-" is a file of that name
  Input(const char *path) : Input(std::string(path)) {}
  [[nodiscard]] static Input standard_input();
  [[nodiscard]] static Input memory(std::string name, std::vector<std::uint8_t> bytes);
  [[nodiscard]] static Input random_access(std::string name, std::shared_ptr<const RandomAccess> bytes);
  [[nodiscard]] static Input stream(std::string name, std::shared_ptr<ByteStream> bytes); // read once

  [[nodiscard]] const std::string &name() const { return name_; }
  [[nodiscard]] Kind kind() const { return kind_; }

private:
  friend struct InputParts; // for the library
  Input(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  Kind kind_ = Kind::path;
  std::string name_;
  std::shared_ptr<const RandomAccess> random_; // memory too
  std::shared_ptr<ByteStream> stream_;
};

enum class Existing : std::uint8_t { refuse, replace };

// Exists whole or not at all: it is written beside its place, synced, and renamed. Only regular files are
// replaced, and never an input of the call, whatever names they go by.
class Output {
public:
  enum class Kind : std::uint8_t { path, memory, sink };

  Output(std::string path, Existing existing = Existing::refuse);
  Output(const char *path) : Output(std::string(path)) {}
  // Replaces the content when all is done.
  [[nodiscard]] static Output memory(std::vector<std::uint8_t> &bytes);
  // Is given bytes as they come, also those of a call that fails later. For what is written front to back:
  // archives, databases, texts. An .etl is not: its header is written last.
  [[nodiscard]] static Output sink(std::string name, std::shared_ptr<ByteSink> sink);
  // The same, and the file will have the permissions (rwx; nobody gets more than he had) and the time of
  // change that the source has now, and its owner and group where the system allows that. Where both are
  // files, that is.
  [[nodiscard]] Output like(const Input &source) const;

  [[nodiscard]] const std::string &name() const { return name_; }
  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] Existing existing() const { return existing_; }

private:
  friend struct OutputParts; // for the library
  explicit Output(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  Kind kind_ = Kind::path;
  Existing existing_ = Existing::refuse;
  std::string name_;
  std::vector<std::uint8_t> *bytes_ = nullptr;
  std::shared_ptr<ByteSink> sink_;
  std::shared_ptr<const base::FileAttributes> like_;
};

// Writes an Output from front to back, for programs that make their own. Without commit() nothing is left of
// it.
class OutputStream final : public ByteSink {
public:
  // `inputs`: what the output must not replace. Fails before anything is written where the output exists and
  // is not to be replaced, or is an input.
  [[nodiscard]] static Result<OutputStream> open(const Output &output, std::span<const Input> inputs = {});
  OutputStream(OutputStream &&) noexcept;
  OutputStream &operator=(OutputStream &&) noexcept;
  ~OutputStream() override;

  [[nodiscard]] Result<void> write(Bytes bytes) override;
  [[nodiscard]] Result<void> write(std::string_view text) {
    return write(Bytes(reinterpret_cast<const std::uint8_t *>(text.data()), text.size()));
  }
  [[nodiscard]] std::uint64_t size() const; // bytes written so far
  [[nodiscard]] Result<void> commit();      // once

private:
  struct State;
  explicit OutputStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// For a program that reads several inputs as one: that no file and no stream is there twice, whatever names
// it goes by. (Trace::open does not look: the same trace twice is twice as much.)
[[nodiscard]] Result<void> check_inputs(std::span<const Input> inputs);

// For a program that makes several outputs: before any work, that each of them can be written, is none of the
// inputs, and no two are one file, whatever names they go by. The error names the output in question, not an
// option.
[[nodiscard]] Result<void> check_outputs(std::span<const Output> outputs, std::span<const Input> inputs = {});

// A name in a folder that nobody else can look into, among those for temporary files ($TMPDIR): for a file
// for a while. What stands there when the object ends is removed, and by remove_unfinished_outputs() too;
// what a process leaves that is killed the next one removes that makes such a file. An error tells why there
// can be no such folder.
class TemporaryFile {
public:
  [[nodiscard]] static Result<TemporaryFile> create();
  ~TemporaryFile();
  TemporaryFile(TemporaryFile &&) noexcept;
  TemporaryFile &operator=(TemporaryFile &&) noexcept;
  [[nodiscard]] const std::string &name() const;

private:
  explicit TemporaryFile(std::unique_ptr<base::PrivateFolder> folder);
  std::unique_ptr<base::PrivateFolder> folder_;
};

// When a file was written to, and when anything about it changed, its name included: nanoseconds since 1970.
// What is made of another file may have that one's time of writing (Output::like), but not its time of
// change.
struct FileTimes {
  std::int64_t written = 0, changed = 0;
};
[[nodiscard]] std::optional<FileTimes> file_times(const std::string &path); // nothing if there is none

// A regular file, no link, that is held open: for a program that reads it, and then relies on it or deletes
// it.
class HeldFile {
public:
  // Waits for the next tick of the clock that stamps files where one was written to just now, or a write in
  // the same tick would not show. `settled`: nobody else writes to it, and there is no need.
  [[nodiscard]] static Result<HeldFile> open(const std::string &path, bool settled = false);
  HeldFile(HeldFile &&) noexcept;
  HeldFile &operator=(HeldFile &&) noexcept;
  ~HeldFile();

  // Reads the very file that was opened, whatever its name leads to by then.
  [[nodiscard]] Input input() const;
  // That its name still leads to it, and that its size and times are those that it had when it was opened. An
  // error of kind `io` says what is different. A write through a mapping may show later.
  [[nodiscard]] Result<void> check_unchanged() const;
  // Has the disk keep it, and its name.
  [[nodiscard]] Result<void> sync();
  // Deletes it, if check_unchanged() holds. A name that is gone already is as good.
  [[nodiscard]] Result<void> remove();

private:
  struct State;
  explicit HeldFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// For a program that has to end at once, as on a second request to stop: removes what outputs that are under
// way have left under temporary names. They are lost; nothing else may be done with the library afterwards.
// May be called in a signal handler.
void remove_unfinished_outputs() noexcept;

} // namespace etwrelog
