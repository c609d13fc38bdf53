// Looks for the symbols of one module in all places, and keeps what it found.
#pragma once

#include "base/mapping.hpp"
#include "symbols/pdb.hpp"
#include "symbols/search.hpp"
#include "symbols/zip_folder.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace etwrelog {

// The table's bytes: mapped, or in memory where there is no cache.
class ModuleSymbols::Table {
public:
  base::Mapping mapping;
  std::vector<std::uint8_t> memory;
  symbols::TableView view;
};

namespace symbols {

struct Wanted {
  std::string name; // of the PDB file
  Identity identity;
};

struct Found {
  SymbolState state = SymbolState::not_found;
  std::string file, why;
  std::vector<std::string> looked;
  std::shared_ptr<ModuleSymbols::Table> table;
};

// Any thread.
class Finder {
public:
  explicit Finder(const SymbolOptions &options);
  [[nodiscard]] Found find(const Wanted &wanted);
  [[nodiscard]] std::vector<std::string> warnings() const;

private:
  struct Search; // the state of one search

  void warn(std::string text);
  [[nodiscard]] bool from_cache(Search &search);
  [[nodiscard]] bool try_file(Search &search, const std::string &path, unsigned pointers);
  [[nodiscard]] bool try_bytes(Search &search, const std::string &path, Bytes bytes);
  [[nodiscard]] bool try_folder(Search &search, const std::string &folder);
  [[nodiscard]] bool try_trace(Search &search, const std::string &trace);
  [[nodiscard]] std::shared_ptr<const ZipFolder> zip_folder(const std::string &trace);
  [[nodiscard]] bool try_element(Search &search, const PathElement &element);
  [[nodiscard]] bool try_server(Search &search, const std::string &server,
                                const std::vector<std::string> &upstream);
  [[nodiscard]] bool remembered_missing(const std::string &url) const;
  void remember_missing(const std::string &url) const;
  void keep(const std::string &path, Bytes bytes);
  [[nodiscard]] bool use(Search &search, const std::string &path, Bytes bytes);
  [[nodiscard]] std::string table_path(const Wanted &wanted) const;

  SymbolOptions options_;
  std::vector<PathElement> elements_;
  std::string downstream_;
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::map<std::string, std::shared_ptr<const ZipFolder>> zips_; // by trace
  std::set<std::string> gone_;                                   // servers that do not answer
};

} // namespace symbols
} // namespace etwrelog
