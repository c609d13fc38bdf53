#include "read/spool.hpp"

namespace etwrelog::read {
namespace {

class FileInput final : public Input {
public:
  FileInput(InputName name, base::File file, std::uint64_t size,
            const std::optional<base::FileAttributes> &attributes)
      : Input(std::move(name)), file_(std::move(file)), size_(size), attributes_(attributes) {}

  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    Result<std::size_t> got = file_.read_at(offset, into);
    if (!got) got.error().file = name();
    return got;
  }
  bool cheap_to_read_again() const override { return true; }
  std::optional<base::FileAttributes> attributes() const override { return attributes_; }

private:
  base::File file_;
  std::uint64_t size_;
  std::optional<base::FileAttributes> attributes_;
};

} // namespace

std::unique_ptr<Input> file_input(InputName name, base::File file, std::uint64_t size,
                                  const std::optional<base::FileAttributes> &attributes) {
  return std::make_unique<FileInput>(std::move(name), std::move(file), size, attributes);
}

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
  return file_input(std::move(name), std::move(file_), size_);
}

} // namespace etwrelog::read
