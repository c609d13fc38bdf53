#include "read/input.hpp"

#include "base/called.hpp"
#include "base/errors.hpp"
#include "base/io.hpp"
#include "base/platform.hpp"
#include "base/progress_meter.hpp"
#include "base/spool.hpp"
#include "etwrelog/format.hpp"
#include "read/unwrap.hpp"
#include "read/unzip.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace etwrelog::read {
namespace {

constexpr std::size_t kChunk = 1u << 20; // more than any head, see judged_from()

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
  bool cheap_to_read_again() const override { return true; }

private:
  std::vector<std::uint8_t> bytes_;
};

// Reads out of an object that a caller made, which may do anything.
template <class Read>
Result<std::size_t> read_of_caller(const std::string &name, std::size_t room, Read &&read) {
  Result<std::size_t> got = base::called("the input", read);
  if (!got) return base::in_file(std::move(got).error(), name);
  if (*got > room)
    return base::ErrorBuilder(ErrorKind::callback, "the input gave more than was asked for")
        .in(name)
        .expected(fmt::format("at most {} bytes", room))
        .found(std::to_string(*got));
  return got;
}

constexpr const char *kNullInput = "the input is a null pointer";

class SharedInput final : public Input {
public:
  static Result<std::unique_ptr<Input>> open(const std::string &name,
                                             std::shared_ptr<const RandomAccess> bytes) {
    if (bytes == nullptr) return base::bad_option(Option::input, kNullInput).in(name);
    Result<std::uint64_t> size =
        base::called("the input's size", [&]() -> Result<std::uint64_t> { return bytes->size(); });
    if (!size) return base::in_file(std::move(size).error(), name);
    return std::unique_ptr<Input>(new SharedInput(name, std::move(bytes), *size));
  }

  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return read_of_caller(name(), into.size(), [&] { return bytes_->read_at(offset, into); });
  }

private:
  SharedInput(std::string name, std::shared_ptr<const RandomAccess> bytes, std::uint64_t size)
      : Input(std::move(name)), bytes_(std::move(bytes)), size_(size) {}

  const std::shared_ptr<const RandomAccess> bytes_;
  const std::uint64_t size_;
};

class SharedStream final : public ByteStream {
public:
  static Result<std::shared_ptr<ByteStream>> open(const std::string &name,
                                                  std::shared_ptr<ByteStream> bytes) {
    if (bytes == nullptr) return base::bad_option(Option::input, kNullInput).in(name);
    return std::shared_ptr<ByteStream>(std::make_shared<SharedStream>(name, std::move(bytes)));
  }
  SharedStream(std::string name, std::shared_ptr<ByteStream> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  Result<std::size_t> read(MutableBytes into) override {
    return read_of_caller(name_, into.size(), [&] { return bytes_->read(into); });
  }

private:
  const std::string name_;
  const std::shared_ptr<ByteStream> bytes_;
};

// Bytes that have to be there before a head can be judged, however few each read gives: its first event, or
// as many as tell that it begins with none. A pipe may stall, so these are no more than that.
std::size_t judged_from(Bytes head) {
  constexpr std::size_t kLeast = format::kBufferHeaderSize + format::kSystemHeaderSize;
  if (head.size() < kLeast) return kLeast;
  const std::uint8_t *event = head.data() + format::kBufferHeaderSize;
  const std::uint32_t marker = load<std::uint32_t>(event);
  const auto type = static_cast<format::HeaderType>(static_cast<std::uint8_t>(marker >> 16));
  if (marker >> 24 != format::kMarkerStructured ||
      (type != format::HeaderType::system32 && type != format::HeaderType::system64))
    return kLeast;
  return format::kBufferHeaderSize + load<std::uint16_t>(event + 4);
}

// `read` gives the next bytes, none at the end.
template <class Read>
Result<std::unique_ptr<Input>> spool_sequential(std::string name, const RunOptions &run,
                                                const HeadCheck &check, Read &&read) {
  base::ProgressMeter progress(run.progress);
  progress.begin("reading", 0);
  std::optional<base::Spool> spool; // not of what is empty
  std::vector<std::uint8_t> chunk(kChunk);
  std::size_t there = 0; // in `chunk`: more than one read gave only of the head
  for (bool end = false; !end;) {
    if (run.stop.stop_requested()) return base::cancelled().in(name).found("while reading");
    ETWRELOG_TRY_LET(got, read(MutableBytes(chunk).subspan(there)));
    progress.advance(got);
    end = got == 0;
    there += got;
    const Bytes given = Bytes(chunk).first(there);
    if (given.empty()) break;
    if (!spool) {
      if (check) {
        if (!end && there < judged_from(given)) continue;
        ETWRELOG_TRY(check(given));
      }
      ETWRELOG_TRY_LET(made, base::Spool::create());
      spool = std::move(made);
    }
    ETWRELOG_TRY(spool->append(given));
    there = 0;
  }
  if (!spool) return memory_input(std::move(name), {});
  return std::move(*spool).finish(std::move(name));
}

using Inputs = std::vector<std::unique_ptr<Input>>;

Result<std::unique_ptr<Input>> decompress(const Input &input, Wrapping wrapping, const RunOptions &run) {
  ETWRELOG_TRY_LET(spool, base::Spool::create());
  ETWRELOG_TRY(decode_stream(
      input, wrapping,
      [&](Bytes bytes) -> Result<void> {
        if (run.stop.stop_requested()) return base::cancelled().in(input.name()).found("while unpacking");
        return spool.append(bytes);
      },
      run));
  return std::move(spool).finish(input.name());
}

Result<Inputs> unwrapped(std::unique_ptr<Input> input, const RunOptions &run) {
  if (wrapping_of(*input) != Wrapping::none) return unwrap(*input, run);
  Inputs inputs;
  inputs.push_back(std::move(input));
  return inputs;
}

Result<std::unique_ptr<Input>> only_one(Result<Inputs> inputs) {
  if (!inputs) return std::move(inputs).error();
  if (inputs->size() != 1)
    return base::unsupported(fmt::format("the archive holds {} traces, where one is taken", inputs->size()))
        .in(inputs->front()->file())
        .advise(Advice::unpack);
  return std::move(inputs->front());
}

// POSIX.1-1988 and later: tar -cz makes such.
bool is_tar(const Input &input) {
  constexpr std::string_view kMagic = "ustar";
  std::array<std::uint8_t, kMagic.size()> magic{};
  const Result<std::size_t> got = input.read_at(257, magic);
  return got && *got == magic.size() && std::equal(kMagic.begin(), kMagic.end(), magic.begin());
}

} // namespace

Result<std::vector<std::unique_ptr<Input>>> unwrap(const Input &input, const RunOptions &run) {
  const Wrapping wrapping = wrapping_of(input);
  if (wrapping == Wrapping::zip) return unzip(input, run);
  if (wrapping == Wrapping::other)
    return base::unsupported(
               "is an archive of a kind that is not read: only zip, gzip, xz, zstd and bzip2 are")
        .in(input.name())
        .advise(Advice::unpack);
  Inputs inputs;
  ETWRELOG_TRY_LET(unpacked, decompress(input, wrapping, run));
  // One layer is undone. What is inside this one would fail as a trace, with an error that tells nothing.
  if (wrapping_of(*unpacked) != Wrapping::none)
    return base::unsupported("is compressed once more inside").in(input.name()).advise(Advice::unpack);
  if (is_tar(*unpacked))
    return base::unsupported("holds a tar archive").in(input.name()).advise(Advice::unpack);
  inputs.push_back(std::move(unpacked));
  return inputs;
}

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

Result<std::unique_ptr<Input>> open_plain(const std::string &path, const RunOptions &run,
                                          const HeadCheck &check) {
  std::string name = path == "-" ? "standard input" : path;
  ETWRELOG_TRY_LET(file, open_file(path, run.stop));
  ETWRELOG_TRY_LET(size, file.size());
  // `< trace.etl` is as good as its name, unless somebody has read some of it already. Files that a system
  // makes while they are read, as in /proc, have no size.
  if (!file.is_regular() || !file.at_start() || size == 0)
    return spool_sequential(std::move(name), run, check,
                            [&](MutableBytes into) { return file.read_next(into, run.stop); });
  const std::optional<base::FileAttributes> attributes = file.attributes();
  return base::file_input(std::move(name), std::move(file), size, attributes);
}

Result<std::unique_ptr<Input>> open_input(const std::string &path, const RunOptions &run) {
  ETWRELOG_TRY_LET(input, open_plain(path, run));
  return only_one(unwrapped(std::move(input), run));
}

Result<std::unique_ptr<Input>> open_plain(const etwrelog::Input &input, const RunOptions &run,
                                          const HeadCheck &check) {
  using Kind = etwrelog::Input::Kind;
  switch (input.kind()) {
  case Kind::standard_input:
  case Kind::path: return open_plain(path_of(input), run, check);
  case Kind::stream: {
    ETWRELOG_TRY_LET(stream, SharedStream::open(input.name(), InputParts::stream(input)));
    Result<std::unique_ptr<Input>> spooled =
        spool_sequential(input.name(), run, check, [&](MutableBytes into) { return stream->read(into); });
    if (!spooled) return base::in_file(std::move(spooled).error(), input.name());
    return spooled;
  }
  case Kind::memory:
  case Kind::random_access: break;
  }
  return SharedInput::open(input.name(), InputParts::random(input));
}

Result<Inputs> open_inputs(const etwrelog::Input &input, const RunOptions &run, const HeadCheck &check) {
  ETWRELOG_TRY_LET(bytes, open_plain(input, run, check));
  return unwrapped(std::move(bytes), run);
}

Result<std::unique_ptr<Input>> open_input(const etwrelog::Input &input, const RunOptions &run) {
  return only_one(open_inputs(input, run));
}

Result<std::shared_ptr<ByteStream>> open_stream(const etwrelog::Input &input, const RunOptions &run) {
  using Kind = etwrelog::Input::Kind;
  if (input.kind() == Kind::stream) return SharedStream::open(input.name(), InputParts::stream(input));
  if (input.kind() != Kind::standard_input && input.kind() != Kind::path)
    return base::unsupported("reading it as a stream").in(input.name());
  ETWRELOG_TRY_LET(file, open_file(path_of(input), run.stop));
  return std::shared_ptr<ByteStream>(std::make_shared<FileStream>(input.name(), std::move(file), run.stop));
}

std::unique_ptr<Input> memory_input(std::string name, std::vector<std::uint8_t> bytes) {
  return std::make_unique<MemoryInput>(std::move(name), std::move(bytes));
}

} // namespace etwrelog::read
