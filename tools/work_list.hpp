// Which files a command is to work on: names, folders and lists, and which of them are this shard's.
#pragma once

#include "etwrelog/error.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <CLI/CLI.hpp>

namespace etwrelog::cli {

// One of several machines that share a list.
struct Shard {
  std::uint32_t number = 1, of = 1; // 1..of
};

using Environment = std::function<const char *(const char *)>;
// "2/8"; "auto": of a Slurm array job or a Kubernetes Indexed Job, by their variables.
// `flag`: whose value it is, for errors.
[[nodiscard]] Result<Shard> parse_shard(const std::string &text, const Environment &environment,
                                        std::string_view flag = "--shard");

// File names with their sizes, in little more memory than the names take: a folder may hold 100,000.
class WorkList {
public:
  void add(std::string_view path, std::uint64_t bytes, std::size_t root = kNoRoot);
  // A folder that files were found below.
  [[nodiscard]] std::size_t add_root(std::string path);

  [[nodiscard]] std::size_t size() const { return files_.size(); }
  [[nodiscard]] std::string path(std::size_t i) const { return std::string(name(i)); }
  [[nodiscard]] std::uint64_t bytes(std::size_t i) const { return files_[i].bytes; }
  [[nodiscard]] std::string root(std::size_t i) const; // empty if it was named itself

  // By name, from `first` on.
  void sort(std::size_t first);
  // Drops what is another shard's. The largest first, each to the shard that has least: the shares depend on
  // names and sizes alone, not on their order.
  void keep(const Shard &shard);

  static constexpr std::size_t kNoRoot = static_cast<std::size_t>(-1);

private:
  struct File {
    std::uint64_t at = 0, bytes = 0;
    std::uint32_t length = 0, root = 0;
  };
  [[nodiscard]] std::string_view name(std::size_t i) const {
    return std::string_view(names_).substr(files_[i].at, files_[i].length);
  }
  std::string names_;
  std::vector<File> files_;
  std::vector<std::string> roots_;
};

// One name for a place, however it is spelled: through links in its folder, "." and "..". Looks at each
// folder once.
class Places {
public:
  [[nodiscard]] std::string of(const std::string &path);

private:
  std::unordered_map<std::string, std::string> folders_;
};

// The options for it.
struct ListFlags {
  std::vector<std::string> inputs;
  std::string files_from, shard;
  bool recursive = false;

  // `taken`: of what is in a folder, for the help text.
  void add_to(CLI::App &command, const std::string &taken);
  // Whether more is asked for than the names given.
  [[nodiscard]] bool listed() const { return !files_from.empty() || !shard.empty() || recursive; }
  // What of this is this shard's; `takes`: whether a file of a folder is of interest, by its name.
  [[nodiscard]] Result<WorkList> list(const std::function<bool(std::string_view)> &takes) const;
  // The same of all shards, and which of them is this one: WorkList::keep.
  [[nodiscard]] Result<WorkList> of_all_shares(const std::function<bool(std::string_view)> &takes) const;
  [[nodiscard]] Result<Shard> share() const;
};

// Whether a name ends so, whatever the case.
[[nodiscard]] bool has_ending(std::string_view name, std::string_view ending);

} // namespace etwrelog::cli
