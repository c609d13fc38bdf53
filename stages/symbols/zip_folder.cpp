#include "symbols/zip_folder.hpp"

#include "symbols/search.hpp"

#include <memory>

#include <archive.h>
#include <archive_entry.h>

namespace etwrelog::symbols {

std::vector<std::pair<std::string, std::vector<std::uint8_t>>>
zip_members(const std::string &path, const std::string &name, std::uint64_t most) {
  std::vector<std::pair<std::string, std::vector<std::uint8_t>>> out;
  const std::unique_ptr<archive, decltype(&archive_read_free)> zip(archive_read_new(), archive_read_free);
  archive_read_support_format_zip(zip.get());
  constexpr std::size_t kBlock = 1u << 16, kMostFound = 16;
  if (archive_read_open_filename(zip.get(), path.c_str(), kBlock) != ARCHIVE_OK) return out;
  archive_entry *entry = nullptr;
  while (out.size() < kMostFound && archive_read_next_header(zip.get(), &entry) == ARCHIVE_OK) {
    const char *entry_name = archive_entry_pathname(entry);
    const std::string member = entry_name == nullptr ? "" : entry_name;
    if (lower(member.substr(member.find_last_of("/\\") + 1)) != lower(name)) continue;
    std::vector<std::uint8_t> bytes;
    for (;;) {
      const std::size_t had = bytes.size();
      bytes.resize(had + kBlock);
      const la_ssize_t got = archive_read_data(zip.get(), bytes.data() + had, kBlock);
      bytes.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
      if (got <= 0 || bytes.size() > most) break;
    }
    if (bytes.size() <= most) out.emplace_back(path + "/" + member, std::move(bytes));
  }
  return out;
}

} // namespace etwrelog::symbols
