#include "read/spool.hpp"

namespace etwrelog::read {
Result<Spool> Spool::create() {
  Result<base::File> file = base::File::create_spool();
  if (!file) return std::move(file).error();
  Spool spool;
  spool.file_ = std::move(*file);
  return spool;
}

Result<void> Spool::append(Bytes bytes) {
  Result<void> written = file_.write_at(size_, bytes);
  if (!written) written.error().advice = Advice::temporary_folder;
  size_ += bytes.size();
  return written;
}

std::unique_ptr<Input> Spool::finish(InputName name) && {
  return base::file_input(std::move(name), std::move(file_), size_);
}

} // namespace etwrelog::read
