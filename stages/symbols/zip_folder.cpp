#include "symbols/zip_folder.hpp"

#include "base/errors.hpp"
#include "base/platform.hpp"
#include "symbols/search.hpp"
#include "zip/member.hpp"

namespace etwrelog::symbols {
namespace {

class FileBytes final : public base::InputBytes {
public:
  FileBytes(const std::string &path, base::File file, std::uint64_t size)
      : InputBytes(path), file_(std::move(file)), size_(size) {}
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return file_.read_at(offset, into);
  }

private:
  base::File file_;
  std::uint64_t size_;
};

// Nothing if it is more than that, or cannot be unpacked.
std::vector<std::uint8_t> content_of(const base::InputBytes &zip, const zip::Member &member,
                                     std::uint64_t most) {
  constexpr std::size_t kReadAtOnce = 1u << 20; // the size that it claims may be anything
  if (member.size > most) return {};
  std::vector<std::uint8_t> bytes, chunk;
  zip::MemberReader reader(zip, member, chunk);
  for (;;) {
    const Result<std::vector<std::uint8_t>> more = reader.read(kReadAtOnce);
    if (!more || more->size() > most - bytes.size()) return {};
    bytes.insert(bytes.end(), more->begin(), more->end());
    if (more->size() < kReadAtOnce) return bytes;
  }
}

// The last name of a path, and that of the folder it is in; in small letters.
struct Names {
  std::string file, folder;
};
Names names_of(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  if (slash == path.npos) return {lower(path), {}};
  const std::string_view folders = path.substr(0, slash);
  return {lower(path.substr(slash + 1)), lower(folders.substr(folders.find_last_of("/\\") + 1))};
}

} // namespace

Result<ZipFolder> ZipFolder::open(const std::string &path) {
  ETWRELOG_TRY_LET(file, base::File::open_read(path));
  ETWRELOG_TRY_LET(size, file.size());
  auto bytes = std::make_unique<FileBytes>(path, std::move(file), size);
  ETWRELOG_TRY_LET(members, zip::members_of(*bytes));
  return ZipFolder(std::move(bytes), std::move(members));
}

bool ZipFolder::visit(const std::string &name, const std::string &key, std::uint64_t most,
                      const VisitMember &visit) const {
  constexpr std::size_t kMostTried = 16; // of as many builds as there are in a zip, one at most is wanted
  for (const bool in_key : {true, false}) {
    std::size_t tried = 0;
    for (const zip::Member &member : members_) {
      if (tried == kMostTried) break;
      if (!member.file) continue;
      const Names names = names_of(member.name);
      if (names.file != lower(name) || (names.folder == lower(key)) != in_key) continue;
      ++tried;
      const std::vector<std::uint8_t> bytes = content_of(*file_, member, most);
      if (!bytes.empty() && visit(file_->name() + "/" + member.name, bytes)) return true;
    }
  }
  return false;
}

} // namespace etwrelog::symbols
