#include "base/output_file.hpp"

#include "base/errors.hpp"

#include <utility>

namespace etwrelog::base {
namespace {

// Enough for the disk to be at its best with each, little enough for commit() to wait for.
constexpr std::uint64_t kSyncStep = std::uint64_t{8} << 20;

} // namespace

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  base::remove_file(temporary_);
  base::forget_temporary(temporary_);
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : file_(std::move(other.file_)), target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})), like_(std::move(other.like_)), size_(other.size_),
      sync_started_(other.sync_started_), replace_(other.replace_), in_place_(other.in_place_) {}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(file_, other.file_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(like_, other.like_);
  std::swap(size_, other.size_);
  std::swap(sync_started_, other.sync_started_);
  std::swap(replace_, other.replace_);
  std::swap(in_place_, other.in_place_);
  return *this;
}

Result<OutputFile> OutputFile::create(const std::string &target, bool replace,
                                      std::shared_ptr<const FileAttributes> like) {
  ETWRELOG_TRY(base::check_target(target, replace));
  OutputFile output;
  output.target_ = target;
  output.replace_ = replace;
  ETWRELOG_TRY_LET(file, base::File::create_beside(target, output.temporary_, like != nullptr));
  output.file_ = std::move(file);
  if (like) output.file_.take_rights(*like);
  output.like_ = std::move(like);
  if (!output.temporary_.empty()) base::add_temporary(output.temporary_);
  return output;
}

Result<OutputFile> OutputFile::create_spool() {
  OutputFile output;
  output.target_ = "temporary file ($TMPDIR)";
  ETWRELOG_TRY_LET(file, base::File::create_spool());
  output.file_ = std::move(file);
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
  ETWRELOG_TRY(write_at(size_, from));
  if (const std::uint64_t waiting = size_ - sync_started_; waiting >= kSyncStep) {
    file_.start_sync(sync_started_, waiting);
    sync_started_ = size_;
  }
  return {};
}

Result<void> OutputFile::read_at(std::uint64_t offset, MutableBytes into) const {
  ETWRELOG_TRY_LET(got, file_.read_at(offset, into));
  if (got == into.size()) return {};
  return base::io_failure("the output is shorter than what was written to it").in(target_).at(offset);
}

Result<void> OutputFile::commit() {
  if (like_) file_.take_time(*like_);
  Result<void> done = file_.publish(target_, temporary_, replace_, in_place_);
  if (!done && in_place_) {
    done.error().file = target_;
    done.error().what.insert(0, "is whole and in its place, but may not survive a crash of the machine: ");
  }
  return done;
}

} // namespace etwrelog::base
