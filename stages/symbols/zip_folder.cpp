#include "symbols/zip_folder.hpp"

#include "symbols/search.hpp"

#include <memory>
#include <vector>

#include <archive.h>
#include <archive_entry.h>

namespace etwrelog::symbols {
namespace {

constexpr std::size_t kReadAtOnce = 1u << 16;

std::vector<std::uint8_t> content_of(archive *zip, std::uint64_t most) {
  std::vector<std::uint8_t> bytes;
  for (;;) {
    const std::size_t had = bytes.size();
    bytes.resize(had + kReadAtOnce);
    const la_ssize_t got = archive_read_data(zip, bytes.data() + had, kReadAtOnce);
    bytes.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got <= 0) return bytes;
    if (bytes.size() > most) return {};
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

// Those in the folder `key`, or all others.
bool visit_some(const std::string &path, const std::string &name, const std::string &key, bool in_key,
                std::uint64_t most, const VisitMember &visit) {
  constexpr std::size_t kMostTried = 16; // of as many builds as there are in a zip, one at most is wanted
  const std::unique_ptr<archive, decltype(&archive_read_free)> zip(archive_read_new(), archive_read_free);
  archive_read_support_format_zip(zip.get());
  if (archive_read_open_filename(zip.get(), path.c_str(), kReadAtOnce) != ARCHIVE_OK) return false;
  archive_entry *entry = nullptr;
  for (std::size_t tried = 0;
       tried < kMostTried && archive_read_next_header(zip.get(), &entry) == ARCHIVE_OK;) {
    const char *member = archive_entry_pathname(entry);
    if (member == nullptr) continue;
    const Names names = names_of(member);
    if (names.file != name || (names.folder == key) != in_key) continue;
    ++tried;
    const std::vector<std::uint8_t> bytes = content_of(zip.get(), most);
    if (!bytes.empty() && visit(path + "/" + member, bytes)) return true;
  }
  return false;
}

} // namespace

bool visit_zip_members(const std::string &path, const std::string &name, const std::string &key,
                       std::uint64_t most, const VisitMember &visit) {
  for (const bool in_key : {true, false})
    if (visit_some(path, lower(name), lower(key), in_key, most, visit)) return true;
  return false;
}

} // namespace etwrelog::symbols
