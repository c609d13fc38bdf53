#include "read/input.hpp"

#include "base/errors.hpp"
#include "base/io.hpp"
#include "base/platform.hpp"
#include "read/unwrap.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace etwrelog::read {
namespace {

constexpr std::size_t kChunk = 1u << 20;

class FileInput final : public Input {
public:
  FileInput(std::string name, base::File file, std::uint64_t size)
      : Input(std::move(name)), file_(std::move(file)), size_(size) {}

  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    Result<std::size_t> got = file_.read_at(offset, into);
    if (!got) got.error().file = name();
    return got;
  }

private:
  base::File file_;
  std::uint64_t size_;
};

class MemoryInput final : public Input {
public:
  MemoryInput(std::string name, std::vector<std::uint8_t> bytes)
      : Input(std::move(name)), bytes_(std::move(bytes)) {}

  std::uint64_t size() const override { return bytes_.size(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    if (offset >= bytes_.size()) return std::size_t{0};
    const std::size_t count =
        std::min<std::size_t>(into.size(), bytes_.size() - static_cast<std::size_t>(offset));
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
    return count;
  }

private:
  std::vector<std::uint8_t> bytes_;
};

// What a caller gave.
class SharedInput final : public Input {
public:
  SharedInput(std::string name, std::shared_ptr<const RandomAccess> bytes)
      : Input(std::move(name)), bytes_(std::move(bytes)) {}

  std::uint64_t size() const override { return bytes_->size(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    Result<std::size_t> got = bytes_->read_at(offset, into);
    if (!got) return base::in_file(std::move(got).error(), name());
    return got;
  }

private:
  std::shared_ptr<const RandomAccess> bytes_;
};

// Collects bytes of unknown number into a nameless temporary file.
class Spool {
public:
  static Result<Spool> create() {
    Result<base::File> file = base::File::create_spool();
    if (!file) return std::move(file).error();
    Spool spool;
    spool.file_ = std::move(*file);
    return spool;
  }

  Result<void> append(Bytes bytes) {
    Result<void> written = file_.write_at(size_, bytes);
    if (!written) written.error().advice = Advice::temporary_folder;
    size_ += bytes.size();
    return written;
  }

  std::unique_ptr<Input> finish(std::string name) && {
    return std::make_unique<FileInput>(std::move(name), std::move(file_), size_);
  }

private:
  base::File file_;
  std::uint64_t size_ = 0;
};

// `read` gives the next bytes, none at the end.
template <class Read>
Result<std::unique_ptr<Input>> spool_sequential(std::string name, const std::stop_token &stop, Read &&read) {
  ETWRELOG_TRY_LET(spool, Spool::create());
  std::vector<std::uint8_t> chunk(kChunk);
  for (;;) {
    if (stop.stop_requested()) return base::cancelled().in(name).found("while reading");
    ETWRELOG_TRY_LET(got, read(MutableBytes(chunk)));
    if (got == 0) break;
    ETWRELOG_TRY(spool.append(Bytes(chunk).first(got)));
  }
  return std::move(spool).finish(std::move(name));
}

struct ArchiveSource {
  const Input *input;
  std::uint64_t at = 0;
  std::vector<std::uint8_t> chunk = std::vector<std::uint8_t>(kChunk);
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

Error interrupted(const std::string &name) {
  return base::cancelled().in(name).found("while unpacking");
}

// The first *.etl member of a zip: PerfView's .etl.zip holds one, and symbol files. Of libarchive only its
// zip reader is asked for: its filters would look for further layers, and run programs for some.
Result<std::unique_ptr<Input>> unzip(const Input &input, const std::stop_token &stop) {
  ArchiveSource source{&input};
  const std::unique_ptr<archive, int (*)(archive *)> reader(archive_read_new(), archive_read_free);
  auto failed = [&](const char *doing) -> Error {
    const char *text = archive_error_string(reader.get());
    return base::corrupt(fmt::format("cannot {}: {}", doing, text ? text : "damaged archive"))
        .in(input.name())
        .at(source.at);
  };
  archive_read_support_format_zip_seekable(reader.get());
  archive_read_support_format_zip_streamable(reader.get());
  archive_read_set_read_callback(reader.get(), archive_read_callback);
  archive_read_set_seek_callback(reader.get(), archive_seek_callback);
  archive_read_set_callback_data(reader.get(), &source);
  if (archive_read_open1(reader.get()) != ARCHIVE_OK) return failed("open the archive");

  archive_entry *entry = nullptr;
  const char *member = nullptr;
  do {
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) return base::unsupported("the archive holds no .etl file").in(input.name());
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failed("read the archive");
    member = archive_entry_pathname(entry);
  } while (!member || !is_trace_name(member));
  std::string name = input.name() + ":" + member;

  ETWRELOG_TRY_LET(spool, Spool::create());
  std::vector<std::uint8_t> chunk(kChunk);
  for (;;) {
    const la_ssize_t got = archive_read_data(reader.get(), chunk.data(), chunk.size());
    if (got < 0) return failed("unpack");
    if (got == 0) break;
    if (stop.stop_requested()) return interrupted(name);
    ETWRELOG_TRY(spool.append(Bytes(chunk).first(static_cast<std::size_t>(got))));
  }
  return std::move(spool).finish(std::move(name));
}

Result<std::unique_ptr<Input>> decompress(const Input &input, Wrapping wrapping,
                                          const std::stop_token &stop) {
  ETWRELOG_TRY_LET(spool, Spool::create());
  ETWRELOG_TRY(decode_stream(input, wrapping, [&](Bytes bytes) -> Result<void> {
    if (stop.stop_requested()) return interrupted(input.name());
    return spool.append(bytes);
  }));
  return std::move(spool).finish(input.name());
}

Result<std::unique_ptr<Input>> unwrapped(std::unique_ptr<Input> input, const std::stop_token &stop) {
  const Wrapping wrapping = wrapping_of(*input);
  switch (wrapping) {
  case Wrapping::none: return input;
  case Wrapping::zip: return unzip(*input, stop);
  case Wrapping::other:
    return base::unsupported(
               "is an archive of a kind that is not read: only zip, gzip, xz, zstd and bzip2 are")
        .in(input->name())
        .advise(Advice::unpack);
  default: return decompress(*input, wrapping, stop);
  }
}

} // namespace

namespace {

Result<base::File> open_file(const std::string &path, const std::stop_token &stop) {
  return path == "-" ? base::File::standard_input() : base::File::open_read(path, stop);
}

std::string path_of(const etwrelog::Input &input) {
  if (input.kind() == etwrelog::Input::Kind::standard_input) return "-";
  return input.name() == "-" ? std::string("./-") : input.name();
}

class FileStream final : public ByteStream {
public:
  FileStream(std::string name, base::File file, std::stop_token stop)
      : name_(std::move(name)), file_(std::move(file)), stop_(std::move(stop)) {}

  Result<std::size_t> read(MutableBytes into) override {
    Result<std::size_t> got = file_.read_next(into, stop_);
    if (!got) got.error().file = name_;
    return got;
  }

private:
  std::string name_;
  base::File file_;
  std::stop_token stop_;
};

} // namespace

Result<std::unique_ptr<Input>> open_plain(const std::string &path, const std::stop_token &stop) {
  const bool standard_input = path == "-";
  std::string name = standard_input ? "standard input" : path;
  ETWRELOG_TRY_LET(file, open_file(path, stop));
  if (!file.is_regular() || standard_input)
    return spool_sequential(std::move(name), stop,
                            [&](MutableBytes into) { return file.read_next(into, stop); });
  ETWRELOG_TRY_LET(size, file.size());
  return std::unique_ptr<Input>(std::make_unique<FileInput>(std::move(name), std::move(file), size));
}

Result<std::unique_ptr<Input>> open_input(const std::string &path, const std::stop_token &stop) {
  ETWRELOG_TRY_LET(input, open_plain(path, stop));
  return unwrapped(std::move(input), stop);
}

Result<std::unique_ptr<Input>> open_plain(const etwrelog::Input &input, const std::stop_token &stop) {
  using Kind = etwrelog::Input::Kind;
  switch (input.kind()) {
  case Kind::standard_input:
  case Kind::path: return open_plain(path_of(input), stop);
  case Kind::stream: {
    const std::shared_ptr<ByteStream> &stream = InputParts::stream(input);
    Result<std::unique_ptr<Input>> spooled =
        spool_sequential(input.name(), stop, [&](MutableBytes into) { return stream->read(into); });
    if (!spooled) return base::in_file(std::move(spooled).error(), input.name());
    return spooled;
  }
  case Kind::memory:
  case Kind::random_access: break;
  }
  return std::unique_ptr<Input>(std::make_unique<SharedInput>(input.name(), InputParts::random(input)));
}

Result<std::unique_ptr<Input>> open_input(const etwrelog::Input &input, const std::stop_token &stop) {
  ETWRELOG_TRY_LET(bytes, open_plain(input, stop));
  return unwrapped(std::move(bytes), stop);
}

Result<std::shared_ptr<ByteStream>> open_stream(const etwrelog::Input &input, const std::stop_token &stop) {
  using Kind = etwrelog::Input::Kind;
  if (input.kind() == Kind::stream) return InputParts::stream(input);
  if (input.kind() != Kind::standard_input && input.kind() != Kind::path)
    return base::unsupported("reading it as a stream").in(input.name());
  ETWRELOG_TRY_LET(file, open_file(path_of(input), stop));
  return std::shared_ptr<ByteStream>(std::make_shared<FileStream>(input.name(), std::move(file), stop));
}

std::unique_ptr<Input> memory_input(std::string name, std::vector<std::uint8_t> bytes) {
  return std::make_unique<MemoryInput>(std::move(name), std::move(bytes));
}

} // namespace etwrelog::read
