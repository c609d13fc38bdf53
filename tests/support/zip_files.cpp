#include "tests/support/zip_files.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

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

namespace {

class ZipBytes {
public:
  template <class T> void add(T value) {
    all.resize(all.size() + sizeof value);
    store(all.data() + all.size() - sizeof value, value);
  }
  void mark(std::uint8_t third, std::uint8_t fourth) { all.insert(all.end(), {'P', 'K', third, fourth}); }
  void two(unsigned value) { add(static_cast<std::uint16_t>(value)); }
  void four(std::uint64_t value) { add(static_cast<std::uint32_t>(value)); }
  void eight(std::uint64_t value) { add(value); }
  template <class Range> void put(const Range &range) { all.insert(all.end(), range.begin(), range.end()); }

  std::vector<std::uint8_t> all;
};

constexpr std::uint32_t kNotHere = 0xFFFF'FFFF;

} // namespace

std::vector<std::uint8_t> StoredZip::bytes() const {
  const bool described =
      sizes == Sizes::described || sizes == Sizes::described_without_mark || sizes == Sizes::described_large;
  const bool large = sizes == Sizes::large || sizes == Sizes::described_large;
  const unsigned all_flags = flags | (described ? 8 : 0);
  ZipBytes zip, directory;
  for (const auto &[name, content] : members) {
    const auto at = zip.all.size();
    const auto crc = static_cast<std::uint32_t>(crc32(0, content.data(), static_cast<uInt>(content.size())));
    zip.mark(3, 4);
    zip.two(45);
    zip.two(all_flags);
    zip.two(method);
    zip.four(0);
    zip.four(described ? 0 : crc);
    for (int i = 0; i < 2; ++i)
      zip.four(large ? kNotHere : described ? 0 : content.size());
    zip.two(static_cast<unsigned>(name.size()));
    zip.two(large ? 20 : 0);
    zip.put(name);
    if (large) {
      zip.two(1);
      zip.two(16);
      for (int i = 0; i < 2; ++i)
        zip.eight(described ? 0 : content.size());
    }
    zip.put(content);
    if (described) {
      if (sizes != Sizes::described_without_mark) zip.mark(7, 8);
      zip.four(crc);
      for (int i = 0; i < 2; ++i)
        if (large)
          zip.eight(content.size());
        else
          zip.four(content.size());
    }
    directory.mark(1, 2);
    directory.two(45 | made_on << 8);
    directory.two(45);
    directory.two(all_flags);
    directory.two(method);
    directory.four(0);
    directory.four(crc);
    for (int i = 0; i < 2; ++i)
      directory.four(large ? kNotHere : content.size());
    directory.two(static_cast<unsigned>(name.size()));
    directory.two(large ? 28 : 0);
    directory.two(0);
    directory.two(0);
    directory.two(0);
    directory.four(attributes);
    directory.four(large ? kNotHere : at);
    directory.put(name);
    if (large) {
      directory.two(1);
      directory.two(24);
      for (int i = 0; i < 2; ++i)
        directory.eight(content.size());
      directory.eight(at);
    }
  }
  const auto at = zip.all.size(), size = directory.all.size(), count = members.size();
  zip.put(directory.all);
  if (large_end) {
    const auto end = zip.all.size();
    zip.mark(6, 6);
    zip.eight(44);
    zip.four(45 | 45 << 16);
    zip.eight(0);
    for (const std::size_t value : {count, count, size, at})
      zip.eight(value);
    zip.mark(6, 7);
    zip.four(0);
    zip.eight(end);
    zip.four(1);
  }
  zip.mark(5, 6);
  zip.four(0);
  zip.two(large_end ? 0xFFFF : static_cast<unsigned>(count));
  zip.two(large_end ? 0xFFFF : static_cast<unsigned>(count));
  zip.four(large_end ? kNotHere : size);
  zip.four(large_end ? kNotHere : at);
  zip.two(static_cast<unsigned>(comment.size()));
  zip.put(comment);
  return std::move(zip.all);
}

} // namespace etwrelog::testing
