#include "tools/results.hpp"

#include "etwrelog/text.hpp"
#include "tools/errors.hpp"
#include "tools/process.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestLine = 1u << 20; // written at once

bool is_utf8(const std::string &text) {
  return utf8_from_bytes({reinterpret_cast<const std::uint8_t *>(text.data()), text.size()}) == text;
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char c : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// Nothing if it is none.
std::optional<std::string> bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    if (error != std::errc() || end != hex.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return hex.size() % 2 == 0 ? std::optional(bytes) : std::nullopt;
}

} // namespace

std::string line_of(const FileResult &r) {
  json line = {{"task", r.task},   {"path", r.path},       {"state", r.state},
               {"bytes", r.bytes}, {"seconds", r.seconds}, {"began", r.began}};
  auto add = [&line](const char *name, const std::string &value) {
    if (!value.empty()) line[name] = value;
  };
  // Which file it is must be told exactly; JSON has no text but UTF-8.
  if (!is_utf8(r.path)) add("path_hex", hex_of(r.path));
  add("target", r.target);
  add("error", r.error);
  add("note", r.note);
  add("hash", r.hash);
  add("session", r.session);
  add("kind", r.kind);
  add("node", r.node);
  if (r.result_bytes != 0) line["result_bytes"] = r.result_bytes;
  if (r.decoded != 0) line["decoded"] = r.decoded;
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<FileResult> parse_result(std::string_view line) {
  const json from = json::parse(line, nullptr, false);
  if (!from.is_object()) return std::nullopt;
  // Of a number that is no count, such as 1e300, json makes one all the same.
  for (const char *count : {"bytes", "result_bytes", "decoded"})
    if (from.contains(count) && !from.at(count).is_number_unsigned()) return std::nullopt;
  try {
    FileResult r;
    r.task = from.at("task").get<std::string>();
    r.path = from.at("path").get<std::string>();
    if (from.contains("path_hex")) {
      auto path = bytes_of(from.at("path_hex").get<std::string>());
      if (!path) return std::nullopt;
      r.path = *std::move(path);
    }
    r.state = from.at("state").get<std::string>();
    r.bytes = from.at("bytes").get<std::uint64_t>();
    r.seconds = from.at("seconds").get<double>();
    r.began = from.value("began", 0.0);
    r.target = from.value("target", "");
    r.error = from.value("error", "");
    r.note = from.value("note", "");
    r.hash = from.value("hash", "");
    r.session = from.value("session", "");
    r.kind = from.value("kind", "");
    r.node = from.value("node", "");
    r.result_bytes = from.value("result_bytes", std::uint64_t{0});
    r.decoded = from.value("decoded", std::uint64_t{0});
    return r;
  } catch (const json::exception &) {
    return std::nullopt;
  }
}

Result<void> for_each_line(const std::string &path, const std::function<void(std::string_view)> &take) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  bool first = true;
  while (std::getline(file, line)) {
    if (line.empty()) continue;
    // Lines may be cut or torn, but what begins with something else is a trace, or a list.
    if (std::exchange(first, false) && !line.starts_with('{'))
      return usage_error(fmt::format("\"{}\" is no file of results", path));
    take(line);
  }
  if (file.eof()) return {};
  return io_error(path, "the results cannot be read: " + std::generic_category().message(errno));
}

Result<ResultsFile> ResultsFile::open(const std::string &path) {
  bool cut = false;
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path, unknown)) {
    std::ifstream before(path, std::ios::binary);
    const int first = before.get();
    // A trace, an archive or a list that is named by mistake, or through a link, stays what it is.
    if (first != EOF && first != '{')
      return usage_error(fmt::format("the results would go into \"{}\", which is no file of results", path));
    if (first != EOF && before.seekg(-1, std::ios::end)) cut = before.get() != '\n';
  }
  if (const std::filesystem::path folder = std::filesystem::path(path).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, unknown); // where that fails, opening the file says why
  ResultsFile results;
  results.file_.reset(std::fopen(path.c_str(), "ab")); // each write at the end, whoever else writes there
  const auto unwritable = [&path] {
    return io_error(path, "the results cannot be written: " + std::generic_category().message(errno));
  };
  if (!results.file_) return unwritable();
  std::setvbuf(results.file_.get(), nullptr, _IOFBF, kLongestLine);
  if (cut && (std::fputc('\n', results.file_.get()) == EOF || std::fflush(results.file_.get()) != 0))
    return unwritable();
  return results;
}

void ResultsFile::add(const FileResult &result) {
  const std::string line = line_of(result);
  const std::lock_guard lock(*mutex_);
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
    failed_ = true;
}

std::unordered_map<std::string, std::uint64_t> done_of(const std::string &results, std::string_view task) {
  std::unordered_map<std::string, std::uint64_t> done;
  static_cast<void>(for_each_line(results, [&](std::string_view line) {
    if (const std::optional<FileResult> r = parse_result(line); r && r->task == task) {
      // The size of the file itself: what is counted of an archive says first how large its original is.
      if (r->state == "done")
        done[r->path] = task != "verify" && r->result_bytes != 0 ? r->result_bytes : r->bytes;
      else if (r->state != "skipped") // failed, or found damaged
        done.erase(r->path);
    }
  }));
  return done;
}

std::string node_name() {
  for (const char *name : {"SLURMD_NODENAME", "NODE_NAME", "HOSTNAME"})
    if (const char *const value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return process::host_name();
}

} // namespace etwrelog::cli
