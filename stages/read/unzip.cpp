#include "read/unzip.hpp"

#include "base/errors.hpp"
#include "read/scan.hpp"
#include "read/spool.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace etwrelog::read {
namespace {

constexpr std::size_t kUnzipChunk = 1u << 20;

struct ArchiveSource {
  const Input *input;
  std::uint64_t at = 0;
  std::vector<std::uint8_t> chunk = std::vector<std::uint8_t>(kUnzipChunk);
};

la_ssize_t archive_read_callback(archive *, void *client, const void **data) {
  auto &source = *static_cast<ArchiveSource *>(client);
  const Result<std::size_t> got = source.input->read_at(source.at, source.chunk);
  if (!got) return -1;
  source.at += *got;
  *data = source.chunk.data();
  return static_cast<la_ssize_t>(*got);
}

// Seeking lets libarchive use a zip's central directory, without which members of unknown size cannot be
// read.
la_int64_t archive_seek_callback(archive *, void *client, la_int64_t offset, int whence) {
  auto &source = *static_cast<ArchiveSource *>(client);
  const auto size = static_cast<la_int64_t>(source.input->size());
  const la_int64_t base = whence == SEEK_SET   ? 0
                          : whence == SEEK_CUR ? static_cast<la_int64_t>(source.at)
                                               : size;
  if (offset < -base || offset > size - base) return ARCHIVE_FATAL;
  source.at = static_cast<std::uint64_t>(base + offset);
  return base + offset;
}

bool is_trace_name(std::string_view name) {
  constexpr std::string_view kEnding = ".etl";
  if (name.size() < kEnding.size()) return false;
  const std::string_view ending = name.substr(name.size() - kEnding.size());
  return std::equal(ending.begin(), ending.end(), kEnding.begin(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  });
}

class Unzipping {
public:
  Unzipping(const Input &input, const std::stop_token &stop, const UnzipLimits &limits)
      : input_(input), stop_(stop), limits_(limits), source_{&input},
        most_(std::max(limits.bytes,
                       std::min(input.size(), UINT64_MAX / limits.of_one_byte) * limits.of_one_byte)) {}

  Result<std::vector<std::unique_ptr<Input>>> run() {
    ETWRELOG_TRY(open());
    std::vector<std::unique_ptr<Input>> traces;
    for (std::size_t members = 0;; ++members) {
      archive_entry *entry = nullptr;
      const int status = archive_read_next_header(reader_.get(), &entry);
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failed("read the archive", input_.name());
      if (members == limits_.members)
        return base::unsupported("the archive has too many members")
            .in(input_.name())
            .expected(fmt::format("at most {}", limits_.members));
      if (stop_.stop_requested()) return interrupted(input_.name());
      if (archive_entry_filetype(entry) != AE_IFREG) continue;
      const char *path = archive_entry_pathname(entry);
      if (path == nullptr) path = archive_entry_pathname_utf8(entry); // another character set than the user's
      ETWRELOG_TRY_LET(trace, member(path != nullptr ? path : fmt::format("member {}", members)));
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
  // Of libarchive only its zip reader is asked for: its filters would look for further layers, and run
  // programs for some.
  Result<void> open() {
    archive_read_support_format_zip_seekable(reader_.get());
    archive_read_support_format_zip_streamable(reader_.get());
    archive_read_set_read_callback(reader_.get(), archive_read_callback);
    archive_read_set_seek_callback(reader_.get(), archive_seek_callback);
    archive_read_set_callback_data(reader_.get(), &source_);
    if (archive_read_open1(reader_.get()) != ARCHIVE_OK) return failed("open the archive", input_.name());
    return {};
  }

  // The member as an input, if it is a trace.
  Result<std::unique_ptr<Input>> member(const std::string &path) {
    const InputName name{input_.name(), path};
    const bool named = is_trace_name(path);
    ETWRELOG_TRY_LET(head, read(name, kTraceHead, named));
    if (!named && !read_first_event(head, name.text())) return std::unique_ptr<Input>();
    if (!names_.insert(path).second)
      return base::corrupt("the archive holds two traces of this name").in(name.text());
    ETWRELOG_TRY_LET(spool, Spool::create());
    while (!head.empty()) {
      ETWRELOG_TRY(spool.append(head));
      if (stop_.stop_requested()) return interrupted(name.text());
      ETWRELOG_TRY_LET(more, read(name, kUnzipChunk, true));
      head = std::move(more);
    }
    return std::move(spool).finish(name);
  }

  // The next bytes of the member, fewer only at its end. What cannot be unpacked is no trace unless it must
  // be one.
  Result<std::vector<std::uint8_t>> read(const InputName &name, std::size_t count, bool must) {
    std::vector<std::uint8_t> bytes(count);
    std::size_t done = 0;
    while (done < count) {
      const la_ssize_t got = archive_read_data(reader_.get(), bytes.data() + done, count - done);
      if (got < 0 && must) return failed("unpack", name.text());
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    unpacked_ += done;
    if (unpacked_ > most_)
      return base::corrupt("the archive unpacks to more than it can hold")
          .in(name.text())
          .expected(fmt::format("at most {} bytes in all", most_))
          .found("more");
    bytes.resize(done);
    return bytes;
  }

  [[nodiscard]] Error failed(const char *doing, const std::string &file) const {
    const char *text = archive_error_string(reader_.get());
    return base::corrupt(fmt::format("cannot {}: {}", doing, text ? text : "damaged archive"))
        .in(file)
        .at(source_.at);
  }
  static Error interrupted(const std::string &file) {
    return base::cancelled().in(file).found("while unpacking");
  }

  // Holds any header event.
  static constexpr std::size_t kTraceHead = (64u << 10) + format::kBufferHeaderSize;

  const Input &input_;
  const std::stop_token &stop_;
  const UnzipLimits limits_;
  ArchiveSource source_;
  const std::uint64_t most_;
  std::uint64_t unpacked_ = 0;
  std::set<std::string> names_;
  std::unique_ptr<archive, int (*)(archive *)> reader_{archive_read_new(), archive_read_free};
};

} // namespace

Result<std::vector<std::unique_ptr<Input>>> unzip(const Input &input, const std::stop_token &stop,
                                                  const UnzipLimits &limits) {
  return Unzipping(input, stop, limits).run();
}

} // namespace etwrelog::read
