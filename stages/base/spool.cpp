#include "base/spool.hpp"

namespace etwrelog::base {

Result<Spool> Spool::create(Advice advice) {
  Result<File> file = File::create_spool();
  if (!file) return std::move(file).error();
  return Spool(std::move(*file), advice);
}

Result<void> Spool::append(Bytes bytes) {
  Result<void> written = file_.write_at(size_, bytes);
  if (!written && advice_ != Advice::none) written.error().advice = advice_;
  size_ += bytes.size();
  return written;
}

std::unique_ptr<InputBytes> Spool::finish(InputName name) && {
  return file_input(std::move(name), std::move(file_), size_);
}

} // namespace etwrelog::base
