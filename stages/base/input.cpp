#include "base/input.hpp"

#include "base/errors.hpp"

namespace etwrelog::base {
namespace {

class FileInput final : public InputBytes {
public:
  FileInput(InputName name, File file, std::uint64_t size, const std::optional<FileAttributes> &attributes)
      : InputBytes(std::move(name)), file_(std::move(file)), size_(size), attributes_(attributes) {}

  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    Result<std::size_t> got = file_.read_at(offset, into);
    if (!got) got.error().file = name();
    return got;
  }
  bool cheap_to_read_again() const override { return true; }
  std::optional<FileAttributes> attributes() const override { return attributes_; }

private:
  File file_;
  std::uint64_t size_;
  std::optional<FileAttributes> attributes_;
};

} // namespace

Result<void> read_whole(const InputBytes &input, std::uint64_t offset, MutableBytes into) {
  ETWRELOG_TRY_LET(got, input.read_at(offset, into));
  if (got == into.size()) return {};
  return io_failure("the file became shorter while it was read").in(input.name()).at(offset + got);
}

std::unique_ptr<InputBytes> file_input(InputName name, File file, std::uint64_t size,
                                       const std::optional<FileAttributes> &attributes) {
  return std::make_unique<FileInput>(std::move(name), std::move(file), size, attributes);
}

} // namespace etwrelog::base
