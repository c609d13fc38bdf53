#include "base/output_file.hpp"

#include <atomic>
#include <utility>

#include <fmt/format.h>

namespace etwrelog::base {

Error target_exists(const std::string &target) {
  Error error;
  error.kind = ErrorKind::io;
  error.file = target;
  error.what = "exists already";
  error.advice = "choose another name or give --force to replace it";
  return error;
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  base::remove_file(temporary_);
  base::forget_temporary(temporary_);
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : file_(std::move(other.file_)), target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})), size_(other.size_), replace_(other.replace_) {}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(file_, other.file_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(size_, other.size_);
  std::swap(replace_, other.replace_);
  return *this;
}

Result<OutputFile> OutputFile::create(const std::string &target, bool replace) {
  static std::atomic<unsigned> counter{0};
  if (!replace && base::exists(target)) return target_exists(target);
  OutputFile output;
  output.target_ = target;
  output.replace_ = replace;
  std::string temporary = fmt::format("{}.{}-{}.tmp", target, base::process_id(), counter++);
  Result<base::File> file = base::File::create(temporary);
  if (!file) {
    file.error().file = target; // the temporary's name would only puzzle
    return file.error();
  }
  output.file_ = std::move(*file);
  output.temporary_ = std::move(temporary);
  base::add_temporary(output.temporary_);
  return output;
}

Result<void> OutputFile::write_at(std::uint64_t offset, Bytes from) {
  Result<void> written = file_.write_at(offset, from);
  if (!written) {
    written.error().file = target_;
    return written;
  }
  if (offset + from.size() > size_) size_ = offset + from.size();
  return {};
}

Result<void> OutputFile::append(Bytes from) {
  return write_at(size_, from);
}

Result<void> OutputFile::read_at(std::uint64_t offset, MutableBytes into) const {
  const Result<std::size_t> got = file_.read_at(offset, into);
  if (!got) return got.error();
  if (*got == into.size()) return {};
  Error error;
  error.kind = ErrorKind::io;
  error.file = target_;
  error.offset = offset;
  error.what = "the output is shorter than what was written to it";
  return error;
}

Result<void> OutputFile::commit() {
  if (Result<void> synced = file_.sync(); !synced) return synced;
  if (Result<void> closed = file_.close(); !closed) return closed;
  if (!replace_ && base::exists(target_)) return target_exists(target_);
  if (Result<void> renamed = base::rename_into_place(temporary_, target_, replace_); !renamed) return renamed;
  base::forget_temporary(temporary_);
  temporary_.clear();
  return {};
}

} // namespace etwrelog::base
