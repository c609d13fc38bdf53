#include "read/unzip.hpp"

#include "base/errors.hpp"
#include "read/scan.hpp"
#include "read/spool.hpp"
#include "read/zip_directory.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace etwrelog::read {
namespace {

// Symbols are looked at no further than that.
constexpr std::size_t kUnzipHead = 64u << 10, kUnzipChunk = 1u << 20;

bool ends_in(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  name.remove_prefix(name.size() - ending.size());
  return std::equal(name.begin(), name.end(), ending.begin(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  });
}

bool is_trace_name(std::string_view name) {
  return ends_in(name, ".etl");
}

// Recordings come with many of these. Whatever else cannot be read may be a trace.
bool is_name_of_something_else(std::string_view name) {
  static constexpr std::string_view kEndings[] = {
      ".pdb",  ".dll",  ".exe",  ".sys",  ".dbg",  ".mui", ".pd_", ".dl_",  ".ex_",    ".ptr",
      ".cat",  ".inf",  ".txt",  ".log",  ".md",   ".csv", ".tsv", ".xml",  ".json",   ".html",
      ".htm",  ".css",  ".js",   ".ini",  ".cfg",  ".reg", ".yml", ".yaml", ".config", ".man",
      ".mof",  ".wprp", ".rels", ".png",  ".jpg",  ".gif", ".bmp", ".svg",  ".ico",    ".pdf",
      ".docx", ".dmp",  ".mdmp", ".hdmp", ".evtx", ".blg", ".pml", ".pcap", ".pcapng", ".nettrace",
      ".db",   ".zip",  ".cab",  ".etlz", ".7z",   ".gz"};
  return std::ranges::any_of(kEndings, [name](std::string_view ending) { return ends_in(name, ending); });
}

// Unpacks one member. libarchive is given it as a zip of this member alone, with a local header that says
// what the central directory does: so nothing depends on which of several readings of a zip is libarchive's,
// or on the character set of the process, without which it has no names.
class Unpacking {
public:
  Unpacking(const Input &zip, const ZipMember &member, std::vector<std::uint8_t> &chunk)
      : zip_(zip), member_(member), name_{zip.name(), member.name}, chunk_(chunk), at_(member.data_at),
        end_(member.data_at + member.packed) {}

  [[nodiscard]] const InputName &name() const { return name_; }

  // The next bytes, fewer only at the end of the member.
  Result<std::vector<std::uint8_t>> read(std::size_t count) {
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

  // Whether it was the file that could not be read.
  [[nodiscard]] bool input_failed() const { return error_.has_value(); }

private:
  // Of libarchive only its zip reader is asked for: its filters would look for further layers, and run
  // programs for some.
  Result<void> open() {
    reader_.reset(archive_read_new());
    if (!reader_) return base::io_failure("cannot unpack: out of memory").in(name_.text());
    write_head();
    archive_read_support_format_zip_streamable(reader_.get());
    archive_read_set_read_callback(reader_.get(), give);
    archive_read_set_callback_data(reader_.get(), this);
    if (archive_read_open1(reader_.get()) != ARCHIVE_OK) return failed();
    archive_entry *entry = nullptr;
    const int status = archive_read_next_header(reader_.get(), &entry);
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failed();
    return {};
  }

  void write_head() {
    constexpr std::uint32_t kElsewhere = 0xFFFF'FFFF;
    constexpr std::size_t kFixed = 30, kName = 1, kExtra = 20;
    constexpr unsigned kUtf8 = 0x800, kVersion = 45;
    const bool large = member_.packed >= kElsewhere || member_.size >= kElsewhere;
    head_.assign(kFixed + kName + (large ? kExtra : 0), 0);
    std::uint8_t *const to = head_.data();
    std::ranges::copy(std::string_view("PK\3\4"), to);
    store(to + 4, static_cast<std::uint16_t>(kVersion));
    store(to + 6, static_cast<std::uint16_t>(member_.flags & ~(kZipDescribed | kUtf8)));
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

  static la_ssize_t give(archive *, void *client, const void **data) {
    auto &self = *static_cast<Unpacking *>(client);
    if (!self.head_given_) {
      self.head_given_ = true;
      *data = self.head_.data();
      return static_cast<la_ssize_t>(self.head_.size());
    }
    const std::size_t room = self.at_ == self.member_.data_at ? kUnzipHead : kUnzipChunk;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(room, self.end_ - self.at_));
    if (count == 0) return 0;
    Result<std::size_t> got = self.zip_.read_at(self.at_, MutableBytes(self.chunk_).first(count));
    if (!got) {
      self.error_ = std::move(got).error();
      return -1;
    }
    self.at_ += *got;
    *data = self.chunk_.data();
    return static_cast<la_ssize_t>(*got);
  }

  [[nodiscard]] Error failed() const {
    if (error_) return *error_;
    const char *const text = archive_error_string(reader_.get());
    return base::corrupt(fmt::format("cannot unpack: {}", text ? text : "damaged archive"))
        .in(name_.text())
        .at(member_.data_at);
  }

  const Input &zip_;
  const ZipMember &member_;
  const InputName name_;
  std::vector<std::uint8_t> &chunk_;
  std::uint64_t at_;
  const std::uint64_t end_;
  std::vector<std::uint8_t> head_;
  bool head_given_ = false;
  std::optional<Error> error_;
  std::unique_ptr<archive, int (*)(archive *)> reader_{nullptr, archive_read_free};
};

class Unzipping {
public:
  Unzipping(const Input &input, const std::stop_token &stop, const UnzipLimits &limits)
      : input_(input), stop_(stop), limits_(limits),
        most_(std::max(limits.bytes,
                       std::min(input.size(), UINT64_MAX / limits.of_one_byte) * limits.of_one_byte)) {}

  Result<std::vector<std::unique_ptr<Input>>> run() {
    ETWRELOG_TRY_LET(members, zip_members(input_, limits_.members));
    std::vector<std::unique_ptr<Input>> traces;
    for (const ZipMember &member : members) {
      if (stop_.stop_requested()) return interrupted(input_.name());
      if (!member.file) continue;
      ETWRELOG_TRY_LET(trace, trace_in(member));
      if (!trace) continue;
      if (traces.size() == limits_.traces)
        return base::unsupported("the archive holds too many traces")
            .in(input_.name())
            .expected(fmt::format("at most {}", limits_.traces));
      traces.push_back(std::move(trace));
    }
    if (traces.empty())
      return base::unsupported("the archive holds no .etl file, nor another file that is a trace")
          .in(input_.name());
    return traces;
  }

private:
  // The member as an input, if it is a trace.
  Result<std::unique_ptr<Input>> trace_in(const ZipMember &member) {
    Unpacking from(input_, member, chunk_);
    const InputName &name = from.name();
    const bool named = is_trace_name(member.name), other = is_name_of_something_else(member.name);
    Result<std::vector<std::uint8_t>> head = read(from, kTraceHead);
    if (!head && other && !from.input_failed() && unpacked_ <= most_) return std::unique_ptr<Input>();
    if (!head) return std::move(head).error();
    if (!named && !read_first_event(*head, name.text())) {
      // It may be a damaged trace: its checksum tells.
      while (!other && !head->empty()) {
        if (stop_.stop_requested()) return interrupted(name.text());
        head = read(from, kUnzipChunk);
        if (!head) return std::move(head).error();
      }
      return std::unique_ptr<Input>();
    }
    if (!names_.insert(member.name).second)
      return base::corrupt("the archive holds two traces of this name").in(name.text());
    ETWRELOG_TRY_LET(spool, Spool::create());
    while (!head->empty()) {
      ETWRELOG_TRY(spool.append(*head));
      if (stop_.stop_requested()) return interrupted(name.text());
      head = read(from, kUnzipChunk);
      if (!head) return std::move(head).error();
    }
    return std::move(spool).finish(name);
  }

  Result<std::vector<std::uint8_t>> read(Unpacking &from, std::size_t count) {
    ETWRELOG_TRY_LET(bytes, from.read(count));
    unpacked_ += bytes.size();
    if (unpacked_ > most_)
      return base::corrupt("the archive unpacks to more than it can hold")
          .in(from.name().text())
          .expected(fmt::format("at most {} bytes in all", most_))
          .found("more");
    return bytes;
  }

  static Error interrupted(const std::string &file) {
    return base::cancelled().in(file).found("while unpacking");
  }

  // Holds any header event.
  static constexpr std::size_t kTraceHead = (64u << 10) + format::kBufferHeaderSize;

  const Input &input_;
  const std::stop_token &stop_;
  const UnzipLimits limits_;
  const std::uint64_t most_;
  std::uint64_t unpacked_ = 0;
  std::set<std::string> names_;
  std::vector<std::uint8_t> chunk_ = std::vector<std::uint8_t>(kUnzipChunk);
};

} // namespace

Result<std::vector<std::unique_ptr<Input>>> unzip(const Input &input, const std::stop_token &stop,
                                                  const UnzipLimits &limits) {
  return Unzipping(input, stop, limits).run();
}

} // namespace etwrelog::read
