#include "tools/work_list.hpp"

#include "etwrelog/text.hpp"
#include "tools/errors.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <queue>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

namespace fs = std::filesystem;

// What opening, naming and syncing a file takes, in bytes of packing.
constexpr std::uint64_t kEachFile = 64u << 10;

Error failure(const std::string &file, std::string what) {
  return io_error(file, std::move(what));
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> variable(const Environment &environment, const char *name) {
  const char *const text = environment(name);
  return text == nullptr ? std::nullopt : number(text);
}

Result<Shard> automatic_shard(const Environment &environment, std::string_view flag) {
  for (const char *const name : {"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "ETWRELOG_SHARDS"})
    if (const char *const text = environment(name); text != nullptr && !number(text))
      return usage_error(fmt::format("{} auto: {} is no number: \"{}\"", flag, name, printable(text)));
  const auto shards = variable(environment, "ETWRELOG_SHARDS");
  auto of = [flag](std::uint64_t index, std::uint64_t count) -> Result<Shard> {
    if (count > UINT32_MAX || index >= count)
      return usage_error(fmt::format("{} auto: task {} is none of 0 to {}", flag, index,
                                     count - std::min<std::uint64_t>(count, 1)));
    return Shard{static_cast<std::uint32_t>(index + 1), static_cast<std::uint32_t>(count)};
  };
  if (const auto task = variable(environment, "SLURM_ARRAY_TASK_ID")) {
    if (shards) return of(*task, *shards);
    const std::uint64_t least = variable(environment, "SLURM_ARRAY_TASK_MIN").value_or(0);
    const std::uint64_t step =
        std::max<std::uint64_t>(variable(environment, "SLURM_ARRAY_TASK_STEP").value_or(1), 1);
    const auto count = variable(environment, "SLURM_ARRAY_TASK_COUNT");
    const auto most = variable(environment, "SLURM_ARRAY_TASK_MAX");
    if (!count || !most || *most < least || *task < least || (*most - least) / step + 1 != *count)
      return usage_error(fmt::format(
          "{} auto: the tasks of this Slurm array are not in equal steps, so that SLURM_ARRAY_TASK_ID "
          "tells no share; set ETWRELOG_SHARDS to the number of shards, with tasks from 0 on",
          flag));
    return of((*task - least) / step, *count);
  }
  if (const auto task = variable(environment, "JOB_COMPLETION_INDEX")) {
    if (shards) return of(*task, *shards);
    return usage_error(fmt::format(
        "{} auto: JOB_COMPLETION_INDEX is set, and ETWRELOG_SHARDS, the number of completions, is not",
        flag));
  }
  return usage_error(fmt::format(
      "{} auto: neither SLURM_ARRAY_TASK_ID (a Slurm array job) nor JOB_COMPLETION_INDEX (a Kubernetes "
      "Indexed Job) is set; give I/N",
      flag));
}

std::uint64_t size_of(const std::string &path) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  return failed ? 0 : size;
}

struct CloseFile {
  void operator()(std::FILE *file) const {
    if (file != stdin) std::fclose(file);
  }
};

// One name a line, or between zero bytes if there are any in the first piece; "SIZE<tab>NAME" saves the look.
Result<void> read_list(const std::string &list, WorkList &files) {
  const std::unique_ptr<std::FILE, CloseFile> file(list == "-" ? stdin : std::fopen(list.c_str(), "rb"));
  if (!file) return failure(list, "the list cannot be opened: " + std::generic_category().message(errno));
  std::string piece(1u << 16, '\0'), line;
  std::optional<char> separator;
  // Results keep the place that the list names.
  const std::size_t here = files.add_root("."), top = files.add_root("/");
  auto take = [&] {
    if (!line.empty() && line.back() == '\r' && separator == '\n') line.pop_back();
    if (line.empty()) return;
    const std::size_t tab = line.find('\t');
    const auto bytes =
        tab == std::string::npos ? std::nullopt : number(std::string_view(line).substr(0, tab));
    std::string name = bytes ? line.substr(tab + 1) : line;
    if (name == "-") name = "./-"; // a list names files
    if (name.empty()) return line.clear();
    files.add(name, bytes ? *bytes : size_of(name), name.front() == '/' ? top : here);
    line.clear();
  };
  for (;;) {
    const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get());
    if (got == 0) break;
    std::string_view text = std::string_view(piece).substr(0, got);
    if (!separator && (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")))
      return failure(list, "the list is in UTF-16; save it as UTF-8");
    if (!separator && text.starts_with("\xEF\xBB\xBF"))
      text.remove_prefix(3); // editors on Windows mark UTF-8
    if (!separator) separator = text.find('\0') == std::string_view::npos ? '\n' : '\0';
    for (const char c : text) {
      if (c == *separator)
        take();
      else
        line += c;
    }
  }
  if (std::ferror(file.get()) != 0) return failure(list, "the list cannot be read");
  take();
  return {};
}

bool is_gone(const std::error_code &failed) {
  return failed == std::errc::no_such_file_or_directory || failed == std::errc::not_a_directory;
}

Result<void> read_folder(const std::string &folder, const std::function<bool(std::string_view)> &takes,
                         WorkList &files) {
  const std::size_t root = files.add_root(folder), first = files.size();
  std::vector<std::string> folders{folder};
  while (!folders.empty()) {
    const std::string at = std::move(folders.back());
    folders.pop_back();
    std::error_code failed;
    for (fs::directory_iterator i(at, failed), end; !failed && i != end; i.increment(failed)) {
      const std::string &path = i->path().native();
      std::error_code gone;
      if (i->symlink_status(gone).type() == fs::file_type::directory) {
        folders.push_back(path);
      } else if (takes(path) && i->is_regular_file(gone)) {
        const std::uintmax_t size = i->file_size(gone);
        if (!is_gone(gone)) files.add(path, gone ? 0 : size, root);
      }
    }
    // A folder that cannot be looked into is an error: what is in it would be missing without a word. One
    // that went meanwhile has nothing in it.
    if (failed && !(is_gone(failed) && at != folder)) return failure(at, failed.message());
  }
  files.sort(first);
  return {};
}

} // namespace

bool has_ending(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  return std::ranges::equal(
      name.substr(name.size() - ending.size()), ending, {}, [](unsigned char c) { return std::tolower(c); },
      [](unsigned char c) { return std::tolower(c); });
}

Result<Shard> parse_shard(const std::string &text, const Environment &environment, std::string_view flag) {
  if (text.empty()) return Shard{};
  if (text == "auto") return automatic_shard(environment, flag);
  const std::size_t slash = text.find('/');
  const auto i = slash == std::string::npos ? std::nullopt : number(std::string_view(text).substr(0, slash));
  const auto n = slash == std::string::npos ? std::nullopt : number(std::string_view(text).substr(slash + 1));
  if (!i || !n || *i == 0 || *i > *n || *n > UINT32_MAX)
    return usage_error(
        fmt::format("\"{}\" is no share; give I/N, such as 2/8 for the second of eight, or auto", text));
  return Shard{static_cast<std::uint32_t>(*i), static_cast<std::uint32_t>(*n)};
}

std::string Places::of(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const auto [at, fresh] = folders_.try_emplace(folder);
  if (fresh) {
    std::error_code failed;
    const fs::path real = fs::weakly_canonical(folder, failed);
    at->second = failed ? folder : real.string();
    if (!at->second.empty() && at->second.back() != '/') at->second += '/';
  }
  return at->second + name;
}

void WorkList::add(std::string_view path, std::uint64_t bytes, std::size_t root) {
  files_.push_back(
      {names_.size(), bytes, static_cast<std::uint32_t>(path.size()), static_cast<std::uint32_t>(root)});
  names_ += path;
}

std::size_t WorkList::add_root(std::string path) {
  roots_.push_back(std::move(path));
  return roots_.size() - 1;
}

std::string WorkList::root(std::size_t i) const {
  return files_[i].root < roots_.size() ? roots_[files_[i].root] : std::string();
}

void WorkList::sort(std::size_t first) {
  std::ranges::sort(files_.begin() + static_cast<std::ptrdiff_t>(first), files_.end(), {},
                    [this](const File &f) { return std::string_view(names_).substr(f.at, f.length); });
}

void WorkList::keep(const Shard &shard) {
  if (shard.of <= 1) return;
  std::vector<std::uint32_t> order(files_.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::uint32_t>(i);
  std::ranges::sort(order, [this](std::uint32_t a, std::uint32_t b) {
    return files_[a].bytes != files_[b].bytes ? files_[a].bytes > files_[b].bytes : name(a) < name(b);
  });
  // Of those with least, the first. More shards than files get nothing.
  using Load = std::pair<std::uint64_t, std::uint64_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::uint64_t number = 1; number <= std::min<std::uint64_t>(shard.of, files_.size()); ++number)
    loads.emplace(0, number);
  std::vector<bool> mine(files_.size());
  for (const std::uint32_t i : order) {
    const auto [load, number] = loads.top();
    loads.pop();
    mine[i] = number == shard.number;
    const std::uint64_t more = files_[i].bytes + kEachFile; // the size may be what somebody wrote in a list
    loads.emplace(more < kEachFile || load + more < load ? UINT64_MAX : load + more, number);
  }
  WorkList kept;
  kept.roots_ = std::move(roots_);
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (mine[i])
      kept.add(name(i), files_[i].bytes,
               files_[i].root == static_cast<std::uint32_t>(kNoRoot) ? kNoRoot : files_[i].root);
  *this = std::move(kept);
}

void ListFlags::add_to(CLI::App &command, const std::string &taken) {
  command.add_flag("-r,--recursive", recursive,
                   fmt::format("Take all {} files below the folders given", taken));
  command
      .add_option("--files-from", files_from,
                  "File with a name a line, or SIZE, tab and name (\"etwrelog fleet list\" makes one); - for "
                  "standard "
                  "input")
      ->group("Fleet");
  command
      .add_option(
          "--shard", shard,
          "Do the share I of N, as large as the others; auto: by the variables of a Slurm array job, or of a "
          "Kubernetes Indexed Job and ETWRELOG_SHARDS")
      ->type_name("I/N")
      ->group("Fleet");
}

Result<Shard> ListFlags::share() const {
  return parse_shard(shard, [](const char *name) { return std::getenv(name); });
}

Result<WorkList> ListFlags::list(const std::function<bool(std::string_view)> &takes) const {
  const Result<Shard> own = share();
  if (!own) return own.error();
  Result<WorkList> files = of_all_shares(takes);
  if (files) files->keep(*own);
  return files;
}

Result<WorkList> ListFlags::of_all_shares(const std::function<bool(std::string_view)> &takes) const {
  WorkList files;
  for (const std::string &name : inputs) {
    std::error_code failed;
    if (!fs::is_directory(name, failed)) {
      files.add(name, size_of(name));
      continue;
    }
    if (!recursive)
      return usage_error(fmt::format("\"{}\" is a folder; give -r to take what is in it", name));
    if (Result<void> found = read_folder(name, takes, files); !found) return std::move(found).error();
  }
  if (!files_from.empty())
    if (Result<void> read = read_list(files_from, files); !read) return std::move(read).error();
  if (inputs.empty() && files_from.empty()) return usage_error("no files: name some, or give --files-from");
  return files;
}

} // namespace etwrelog::cli
