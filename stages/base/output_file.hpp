// An output that exists whole or not at all: written beside the target without a name, or a temporary one,
// then synced and named.
#pragma once

#include "base/platform.hpp"
#include "etwrelog/io.hpp"

#include <memory>

namespace etwrelog::base {

class OutputFile final : public ByteSink {
public:
  OutputFile() = default;
  ~OutputFile() override; // removes the temporary unless committed
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;

  // Refuses an existing target unless `replace`, and whatever is no regular file. The target is not touched
  // before commit(). `like`: what the file is to have of another, from its beginning; null for what is usual.
  static Result<OutputFile> create(const std::string &target, bool replace,
                                   std::shared_ptr<const FileAttributes> like = nullptr);
  // A file without a name in the folder for temporary files, for what is written here and there and then read
  // back. Never committed.
  static Result<OutputFile> create_spool();

  [[nodiscard]] Result<void> write_at(std::uint64_t offset, Bytes from);
  // What is appended stays as it is, but for little: the disk begins with it while more is made.
  [[nodiscard]] Result<void> append(Bytes from);
  [[nodiscard]] Result<void> write(Bytes bytes) override { return append(bytes); }
  [[nodiscard]] Result<void> read_at(std::uint64_t offset, MutableBytes into) const; // what was written
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::string &target() const { return target_; }

  // Syncs file and folder and gives the file its name. After success the object is done with the file. After
  // a failure nothing has changed, unless in_place(): the file is there, whole, but may not survive a crash
  // of the machine.
  [[nodiscard]] Result<void> commit();
  [[nodiscard]] bool in_place() const { return in_place_; }

private:
  base::File file_;
  std::string target_, temporary_;
  std::shared_ptr<const FileAttributes> like_;
  std::uint64_t size_ = 0, sync_started_ = 0;
  bool replace_ = false, in_place_ = false;
};

} // namespace etwrelog::base
