#include "tests/support/zip_files.hpp"

#include <archive.h>
#include <archive_entry.h>

namespace etwrelog::testing {

std::vector<std::uint8_t> zip_of(const std::vector<ZipMember> &members) {
  std::size_t most = 65'536, used = 0;
  for (const auto &[name, content] : members)
    most += content.size() + content.size() / 100 + 2 * name.size() + 512;
  std::vector<std::uint8_t> out(most);
  ::archive *const writer = archive_write_new();
  archive_write_set_format_zip(writer);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  for (const auto &[name, content] : members) {
    archive_entry *const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_write_header(writer, entry);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

} // namespace etwrelog::testing
