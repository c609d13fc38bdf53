#include "base/io.hpp"

#include "base/called.hpp"
#include "base/errors.hpp"
#include "base/output_file.hpp"
#include "base/private_folder.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

namespace etwrelog {
namespace {

class MemoryBytes final : public RandomAccess {
public:
  explicit MemoryBytes(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    if (offset >= bytes_.size()) return std::size_t{0};
    const Bytes there = Bytes(bytes_).subspan(static_cast<std::size_t>(offset));
    const std::size_t count = std::min(into.size(), there.size());
    std::copy_n(there.begin(), count, into.begin());
    return count;
  }

private:
  std::vector<std::uint8_t> bytes_;
};

} // namespace

Input::Input(std::string path) : name_(std::move(path)) {}

Input Input::standard_input() {
  return Input(Kind::standard_input, "standard input");
}

Input Input::memory(std::string name, std::vector<std::uint8_t> bytes) {
  Input input(Kind::memory, std::move(name));
  input.random_ = std::make_shared<MemoryBytes>(std::move(bytes));
  return input;
}

Input Input::random_access(std::string name, std::shared_ptr<const RandomAccess> bytes) {
  Input input(Kind::random_access, std::move(name));
  input.random_ = std::move(bytes);
  return input;
}

Input Input::stream(std::string name, std::shared_ptr<ByteStream> bytes) {
  Input input(Kind::stream, std::move(name));
  input.stream_ = std::move(bytes);
  return input;
}

Output::Output(std::string path, Existing existing) : existing_(existing), name_(std::move(path)) {}

Output Output::memory(std::vector<std::uint8_t> &bytes) {
  Output output(Kind::memory, "memory");
  output.bytes_ = &bytes;
  return output;
}

Output Output::sink(std::string name, std::shared_ptr<ByteSink> sink) {
  Output output(Kind::sink, std::move(name));
  output.sink_ = std::move(sink);
  return output;
}

Output Output::like(const Input &source) const {
  if (source.kind() != Input::Kind::path) return *this;
  return OutputParts::with(*this, base::file_attributes(source.name()));
}

namespace base {

std::optional<FileId> file_id(const Input &input) {
  if (input.kind() == Input::Kind::standard_input) return standard_input_id();
  return input.kind() == Input::Kind::path ? file_id(input.name()) : std::nullopt;
}

std::vector<FileId> file_ids(std::span<const Input> inputs) {
  std::vector<FileId> ids;
  for (const Input &input : inputs)
    if (const std::optional<FileId> id = file_id(input)) ids.push_back(*id);
  return ids;
}

Result<void> check_output(const Output &output, std::span<const FileId> inputs) {
  if (output.kind() != Output::Kind::path) return {};
  const std::optional<FileId> there = file_id(output.name());
  if (there && std::ranges::find(inputs, *there) != inputs.end())
    return bad_option(Option::output, "is the input itself").in(output.name()).advise(Advice::other_output);
  return check_target(output.name(), output.existing() == Existing::replace);
}

} // namespace base

Result<void> check_inputs(std::span<const Input> inputs) {
  std::vector<base::FileId> files;
  bool standard = false;
  for (const Input &input : inputs) {
    const bool standard_again =
        input.kind() == Input::Kind::standard_input && std::exchange(standard, true); // a pipe is no file
    const std::optional<base::FileId> file = base::file_id(input);
    if (standard_again || (file && std::ranges::find(files, *file) != files.end()))
      return base::bad_option(Option::input, "is named twice").in(input.name());
    if (file) files.push_back(*file);
  }
  return {};
}

Result<void> check_outputs(std::span<const Output> outputs, std::span<const Input> inputs) {
  auto wrong = [](const Output &output, const char *what) {
    return base::ErrorBuilder(ErrorKind::usage, what).in(output.name()).advise(Advice::other_output);
  };
  const std::vector<base::FileId> sources = base::file_ids(inputs);
  std::vector<base::Place> places;
  for (const Output &output : outputs) {
    if (output.kind() != Output::Kind::path) continue;
    const std::optional<base::FileId> there = base::file_id(output.name());
    if (there && std::ranges::find(sources, *there) != sources.end())
      return wrong(output, "is the input itself");
    ETWRELOG_TRY(base::check_target(output.name(), output.existing() == Existing::replace));
    ETWRELOG_TRY(base::check_folder_of(output.name()));
    const std::optional<base::Place> place = base::place_of(output.name());
    if (!place) continue;
    if (std::ranges::find(places, *place) != places.end())
      return wrong(output, "is to be written twice in one run");
    places.push_back(*place);
  }
  return {};
}

Result<TemporaryFile> TemporaryFile::create() {
  ETWRELOG_TRY_LET(folder, base::PrivateFolder::make("file.tmp"));
  return TemporaryFile(std::make_unique<base::PrivateFolder>(std::move(folder)));
}

TemporaryFile::TemporaryFile(std::unique_ptr<base::PrivateFolder> folder) : folder_(std::move(folder)) {}
TemporaryFile::TemporaryFile(TemporaryFile &&) noexcept = default;
TemporaryFile &TemporaryFile::operator=(TemporaryFile &&) noexcept = default;
TemporaryFile::~TemporaryFile() = default;

const std::string &TemporaryFile::name() const {
  return folder_->file();
}

struct OutputStream::State {
  Output output;
  std::uint64_t size = 0;
  std::optional<base::OutputFile> file{}; // of a path
  std::vector<std::uint8_t> bytes{};      // of memory
  bool committed = false;
};

OutputStream::OutputStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputStream::OutputStream(OutputStream &&) noexcept = default;
OutputStream &OutputStream::operator=(OutputStream &&) noexcept = default;
OutputStream::~OutputStream() = default;

Result<OutputStream> OutputStream::open(const Output &output, std::span<const Input> inputs) {
  ETWRELOG_TRY(base::check_output(output, base::file_ids(inputs)));
  if (output.kind() == Output::Kind::sink && OutputParts::sink(output) == nullptr)
    return base::bad_option(Option::output, "the sink is a null pointer").in(output.name());
  auto state = std::make_unique<State>(State{output});
  if (output.kind() == Output::Kind::path) {
    ETWRELOG_TRY_LET(file, base::OutputFile::create(output.name(), output.existing() == Existing::replace,
                                                    OutputParts::like(output)));
    state->file.emplace(std::move(file));
  }
  return OutputStream(std::move(state));
}

Result<void> OutputStream::write(Bytes bytes) {
  switch (state_->output.kind()) {
  case Output::Kind::path: ETWRELOG_TRY(state_->file->append(bytes)); break;
  case Output::Kind::memory: state_->bytes.insert(state_->bytes.end(), bytes.begin(), bytes.end()); break;
  case Output::Kind::sink: {
    ByteSink &sink = *OutputParts::sink(state_->output);
    ETWRELOG_TRY(base::called("the sink of the output", [&] { return sink.write(bytes); }));
    break;
  }
  }
  state_->size += bytes.size();
  return {};
}

std::uint64_t OutputStream::size() const {
  return state_->size;
}

Result<void> OutputStream::commit() {
  if (std::exchange(state_->committed, true))
    return base::bad_option(Option::output, "is complete already").in(state_->output.name());
  if (state_->file) return state_->file->commit();
  if (auto *bytes = OutputParts::bytes(state_->output)) *bytes = std::move(state_->bytes);
  return {};
}

std::optional<FileTimes> file_times(const std::string &path) {
  const std::optional<base::FileState> state = base::file_state(path);
  if (!state) return std::nullopt;
  return FileTimes{state->written, state->changed};
}

// --- Held files

namespace {

// Two writes within one tick of the clock that stamps files leave one time: a file that was written to just
// now is held only when the next write shows.
constexpr std::chrono::milliseconds kTick{20};

class HeldBytes final : public RandomAccess {
public:
  HeldBytes(base::File opened, const base::FileState &state) : file(std::move(opened)), size_(state.size) {}
  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return file.read_at(offset, into);
  }

  base::File file;

private:
  std::uint64_t size_;
};

} // namespace

struct HeldFile::State {
  std::string name;
  base::FileState as_it_was;
  std::shared_ptr<HeldBytes> bytes;
};

HeldFile::HeldFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
HeldFile::HeldFile(HeldFile &&) noexcept = default;
HeldFile &HeldFile::operator=(HeldFile &&) noexcept = default;
HeldFile::~HeldFile() = default;

Result<HeldFile> HeldFile::open(const std::string &path, bool settled) {
  if (base::exists(path) && !base::file_attributes(path)) // of a pipe nothing might ever come
    return base::io_failure("is no regular file").in(path);
  ETWRELOG_TRY_LET(file, base::File::open_read(path));
  std::optional<base::FileState> state = file.state();
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  if (state && !settled && std::chrono::abs(now - std::chrono::nanoseconds(state->changed)) < kTick) {
    std::this_thread::sleep_for(kTick);
    state = file.state();
  }
  if (!state || !file.is_regular()) return base::io_failure("is no regular file").in(path);
  if (const auto named = base::file_state(path); named && named->id != state->id)
    return base::io_failure("is a link").in(path);
  auto bytes = std::make_shared<HeldBytes>(std::move(file), *state);
  return HeldFile(std::make_unique<State>(State{path, *state, std::move(bytes)}));
}

Input HeldFile::input() const {
  return Input::random_access(state_->name, state_->bytes);
}

Result<void> HeldFile::check_unchanged() const {
  const std::optional<base::FileState> opened = state_->bytes->file.state(),
                                       named = base::file_state(state_->name);
  const char *what = nullptr;
  if (!named)
    what = "is not there any more";
  else if (named->id != state_->as_it_was.id)
    what = "is another file by now";
  else if (*named != state_->as_it_was || opened != named)
    what = "has changed meanwhile";
  if (what != nullptr) return base::io_failure(what).in(state_->name);
  return {};
}

Result<void> HeldFile::sync() {
  ETWRELOG_TRY(state_->bytes->file.sync());
  return base::sync_folder(base::folder_of(state_->name));
}

Result<void> HeldFile::remove() {
  if (!base::exists(state_->name)) return {};
  ETWRELOG_TRY(check_unchanged());
  Result<void> deleted = base::delete_file(state_->name);
  return base::exists(state_->name) ? deleted : Result<void>();
}

} // namespace etwrelog
