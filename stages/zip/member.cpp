#include "zip/member.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <string_view>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace etwrelog::zip {
namespace {

// Of most members no more is wanted than their first bytes.
constexpr std::size_t kFirstChunk = 64u << 10, kChunk = 1u << 20;

} // namespace

MemberReader::MemberReader(const base::InputBytes &zip, const Member &member,
                           std::vector<std::uint8_t> &chunk)
    : zip_(zip), member_(member), name_{zip.name(), member.name}, chunk_(chunk), at_(member.data_at),
      end_(member.data_at + member.packed), reader_(nullptr, archive_read_free) {}

Result<std::vector<std::uint8_t>> MemberReader::read(std::size_t count) {
  if (!reader_) ETWRELOG_TRY(open());
  std::vector<std::uint8_t> bytes(count);
  std::size_t done = 0;
  while (done < count) {
    const la_ssize_t got = archive_read_data(reader_.get(), bytes.data() + done, count - done);
    if (got < 0) return failed();
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

// Of libarchive only its zip reader is asked for: its filters would look for further layers, and run programs
// for some.
Result<void> MemberReader::open() {
  reader_.reset(archive_read_new());
  if (!reader_) return base::io_failure("cannot unpack: out of memory").in(name_.text());
  write_head();
  archive_read_support_format_zip_streamable(reader_.get());
  archive_read_set_read_callback(reader_.get(), [](archive *, void *self, const void **data) {
    return static_cast<la_ssize_t>(static_cast<MemberReader *>(self)->give(data));
  });
  archive_read_set_callback_data(reader_.get(), this);
  if (archive_read_open1(reader_.get()) != ARCHIVE_OK) return failed();
  archive_entry *entry = nullptr;
  const int status = archive_read_next_header(reader_.get(), &entry);
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failed();
  return {};
}

void MemberReader::write_head() {
  constexpr std::size_t kFixed = 30, kName = 1, kExtra = 20;
  constexpr unsigned kUtf8 = 0x800, kVersion = 45;
  const bool large = member_.packed >= kElsewhere || member_.size >= kElsewhere;
  head_.assign(kFixed + kName + (large ? kExtra : 0), 0);
  std::uint8_t *const to = head_.data();
  std::ranges::copy(std::string_view("PK\3\4"), to);
  store(to + 4, static_cast<std::uint16_t>(kVersion));
  store(to + 6, static_cast<std::uint16_t>(member_.flags & ~(kDescribed | kUtf8)));
  store(to + 8, static_cast<std::uint16_t>(member_.method));
  store(to + 14, member_.crc);
  store(to + 18, large ? kElsewhere : static_cast<std::uint32_t>(member_.packed));
  store(to + 22, large ? kElsewhere : static_cast<std::uint32_t>(member_.size));
  store(to + 26, static_cast<std::uint16_t>(kName));
  to[kFixed] = 'm';
  if (!large) return;
  store(to + 28, static_cast<std::uint16_t>(kExtra));
  std::uint8_t *const extra = to + kFixed + kName;
  store(extra, std::uint16_t{1});
  store(extra + 2, std::uint16_t{16});
  store(extra + 4, member_.size);
  store(extra + 12, member_.packed);
}

// What libarchive asks for: more of the file. -1 if it cannot be read.
std::ptrdiff_t MemberReader::give(const void **data) {
  if (!head_given_) {
    head_given_ = true;
    *data = head_.data();
    return static_cast<std::ptrdiff_t>(head_.size());
  }
  const std::size_t room = at_ == member_.data_at ? kFirstChunk : kChunk;
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(room, end_ - at_));
  if (count == 0) return 0;
  if (chunk_.size() < count) chunk_.resize(count);
  Result<std::size_t> got = zip_.read_at(at_, MutableBytes(chunk_).first(count));
  if (!got) {
    error_ = std::move(got).error();
    return -1;
  }
  at_ += *got;
  *data = chunk_.data();
  return static_cast<std::ptrdiff_t>(*got);
}

Error MemberReader::failed() const {
  if (error_) return *error_;
  const char *const text = archive_error_string(reader_.get());
  return base::corrupt(fmt::format("cannot unpack: {}", text ? text : "damaged archive"))
      .in(name_.text())
      .at(member_.data_at);
}

} // namespace etwrelog::zip
