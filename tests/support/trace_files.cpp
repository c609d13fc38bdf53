#include "tests/support/trace_files.hpp"
#include "tests/support/read_file.hpp"

#include "base/sort_unique.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

namespace etwrelog::testing {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPlain = ".etl";
constexpr std::string_view kPacked = ".etl.xz";

std::optional<fs::path> env_dir(const char *name) {
  const char *value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): tests do not set the environment
  std::error_code ignored;
  if (value != nullptr && fs::is_directory(value, ignored)) {
    return fs::path(value);
  }
  return std::nullopt;
}

std::vector<std::uint8_t> unpack(const fs::path &path) {
  std::vector<std::uint8_t> out;
  archive *reader = archive_read_new();
  archive_read_support_filter_all(reader);
  archive_read_support_format_raw(reader);
  archive_entry *entry = nullptr;
  if (archive_read_open_filename(reader, path.string().c_str(), 1 << 20) == ARCHIVE_OK &&
      archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    std::vector<std::uint8_t> block(1 << 20);
    la_ssize_t n = 0;
    while ((n = archive_read_data(reader, block.data(), block.size())) > 0) {
      out.insert(out.end(), block.begin(), block.begin() + n);
    }
    if (n < 0) {
      out.clear();
    }
  }
  archive_read_free(reader);
  return out;
}

} // namespace

fs::path project_dir() {
  return ETWRELOG_SOURCE_DIR;
}

std::optional<fs::path> shared_dir() {
  if (const auto dir = env_dir("ETWRELOG_SHARED")) {
    return dir;
  }
  std::error_code ignored;
  for (fs::path at = project_dir(); at.has_relative_path(); at = at.parent_path()) {
    if (fs::is_directory(at / ".." / "shared" / "traces", ignored)) {
      return fs::weakly_canonical(at / ".." / "shared");
    }
  }
  return std::nullopt;
}

std::vector<std::string> trace_names() {
  std::vector<std::string> names;
  const auto add_from = [&names](const fs::path &dir) {
    std::error_code failed;
    for (const fs::directory_entry &entry : fs::directory_iterator(dir, failed)) {
      const std::string file = entry.path().filename().string();
      for (const std::string_view ending : {kPacked, kPlain}) {
        if (file.ends_with(ending)) {
          names.push_back(file.substr(0, file.size() - ending.size()));
          break;
        }
      }
    }
  };
  if (const auto dir = env_dir("ETWRELOG_TRACES")) {
    add_from(*dir);
  }
  if (const auto dir = shared_dir()) {
    add_from(*dir / "traces");
  }
  base::sort_unique(names);
  return names;
}

std::string test_name(std::string_view trace) {
  std::string name(trace);
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

std::optional<fs::path> trace_path(std::string_view name) {
  const std::string plain = std::string(name) + std::string(kPlain);
  std::error_code ignored;
  if (const auto dir = env_dir("ETWRELOG_TRACES"); dir && fs::exists(*dir / plain, ignored)) {
    return *dir / plain;
  }
  const auto shared = shared_dir();
  if (!shared) {
    return std::nullopt;
  }
  const fs::path traces = *shared / "traces";
  if (fs::exists(traces / plain, ignored)) {
    return traces / plain;
  }
  const fs::path packed = traces / (std::string(name) + std::string(kPacked));
  if (!fs::exists(packed, ignored)) {
    return std::nullopt;
  }
  const fs::path cache = fs::temp_directory_path() / "etwrelog-traces";
  fs::create_directories(cache, ignored);
  if (fs::exists(cache / plain, ignored)) {
    return cache / plain;
  }
  const std::vector<std::uint8_t> bytes = unpack(packed);
  // Under a name of its own first: tests run in parallel.
  const fs::path partial = cache / (plain + "." + std::to_string(std::random_device{}()));
  std::ofstream file(partial, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (bytes.empty() || !file) {
    fs::remove(partial, ignored);
    return std::nullopt;
  }
  fs::rename(partial, cache / plain);
  return cache / plain;
}

Trace trace_buffers(std::string_view name) {
  Trace trace;
  const auto path = trace_path(name);
  if (!path) {
    return trace;
  }
  trace.bytes = read_file(path->string());
  std::size_t at = 0;
  while (trace.bytes.size() - at >= format::kBufferHeaderSize) {
    const format::BufferHeader header = format::load_buffer_header(trace.bytes.data() + at);
    if (header.buffer_size < format::kBufferHeaderSize || header.buffer_size > trace.bytes.size() - at ||
        (header.compressed() && header.saved_offset < format::kBufferHeaderSize)) {
      break;
    }
    trace.buffers.push_back({header, Bytes(trace.bytes).subspan(at, header.buffer_size)});
    at += header.buffer_size;
  }
  if (at != trace.bytes.size()) {
    trace.buffers.clear();
  }
  return trace;
}

std::vector<std::vector<std::uint8_t>> decoded_payloads(const Trace &trace, bool compressed_only) {
  std::vector<std::vector<std::uint8_t>> out;
  for (const TraceBuffer &buffer : trace.buffers) {
    if (!buffer.header.compressed() && compressed_only) {
      continue;
    }
    std::vector<std::uint8_t> bytes(buffer.payload().begin(), buffer.payload().end());
    if (buffer.header.compressed()) {
      bytes.resize(buffer.decoded_size());
      if (!decompress(Codec::xpress, buffer.payload(), bytes)) {
        continue;
      }
    }
    out.push_back(std::move(bytes));
  }
  return out;
}

} // namespace etwrelog::testing
