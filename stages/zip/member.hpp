// The content of one member of a zip.
#pragma once

#include "zip/directory.hpp"

#include <memory>
#include <optional>

struct archive;

namespace etwrelog::zip {

// libarchive unpacks it. It is given a zip of this member alone, with a local header that says what the
// central directory does: so nothing depends on which of several readings of a zip is libarchive's, or on the
// character set of the process, without which it has no names.
class MemberReader {
public:
  // `chunk`: memory that several readers may use one after the other.
  MemberReader(const base::InputBytes &zip, const Member &member, std::vector<std::uint8_t> &chunk);

  [[nodiscard]] const base::InputName &name() const { return name_; }
  // The next bytes, fewer only at the end of the member.
  [[nodiscard]] Result<std::vector<std::uint8_t>> read(std::size_t count);
  // Whether it was the file that could not be read.
  [[nodiscard]] bool input_failed() const { return error_.has_value(); }

private:
  Result<void> open();
  void write_head();
  std::ptrdiff_t give(const void **data);
  [[nodiscard]] Error failed() const;

  const base::InputBytes &zip_;
  const Member &member_;
  const base::InputName name_;
  std::vector<std::uint8_t> &chunk_;
  std::uint64_t at_;
  const std::uint64_t end_;
  std::vector<std::uint8_t> head_;
  bool head_given_ = false;
  std::optional<Error> error_;
  std::unique_ptr<archive, int (*)(archive *)> reader_;
};

} // namespace etwrelog::zip
