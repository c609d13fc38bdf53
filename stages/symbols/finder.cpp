#include "symbols/finder.hpp"

#include "base/output_file.hpp"
#include "symbols/cabinet.hpp"
#include "symbols/fetch.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

namespace etwrelog::symbols {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string &path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// A table is read by commands that run in other folders.
std::string lasting_name(const std::string &path) {
  std::error_code failed;
  if (is_url(path) || !is_file(path)) return path; // of a server, or in a .zip
  const fs::path whole = fs::absolute(path, failed);
  return failed ? path : whole.lexically_normal().string();
}

Bytes first_bytes(Bytes bytes) {
  return bytes.first(std::min<std::size_t>(bytes.size(), 64));
}

} // namespace

struct Finder::Search {
  const Wanted &wanted;
  Found found;

  void looked(std::string place) { found.looked.push_back(std::move(place)); }
  // Of several reasons the one that says most: a PDB that is there and cannot be used.
  void reason(SymbolState state, std::string why) {
    if (found.state != SymbolState::not_found && state == SymbolState::other_identity) return;
    found.state = state;
    found.why = std::move(why);
  }
};

Finder::Finder(const SymbolOptions &options) : options_(options) {
  if (!options_.cache.empty()) downstream_ = (fs::path(options_.cache) / "pdb").string();
  elements_ = parse_symbol_path(options_.path, downstream_, warnings_);
  if (!options_.server.empty()) {
    PathElement element{true, {}};
    if (!downstream_.empty()) element.places.push_back(downstream_);
    element.places.push_back(options_.server);
    elements_.push_back(std::move(element));
  }
  if (!downstream_.empty() && options_.server.empty())
    elements_.push_back({true, {downstream_}}); // of earlier runs
}

std::vector<std::string> Finder::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

void Finder::warn(std::string text) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(std::move(text));
}

std::string Finder::table_path(const Wanted &wanted) const {
  if (options_.cache.empty()) return {};
  return (fs::path(options_.cache) / "sym" / wanted.name / (identity_text(wanted.identity) + ".sym"))
      .string();
}

Found Finder::find(const Wanted &wanted) {
  Search search{wanted, {}};
  if (!pdb_support() && !from_cache(search)) {
    search.found.state = SymbolState::no_pdb_support;
    search.found.why = "this etwrelog was built without LLVM and reads no PDB files";
    return std::move(search.found);
  }
  if (search.found.table) return std::move(search.found);
  const auto found = [&] {
    for (const std::string &folder : options_.folders)
      if (try_folder(search, folder)) return true;
    for (const std::string &trace : options_.traces)
      if (try_trace(search, trace)) return true;
    for (const PathElement &element : elements_) {
      // What an earlier run made of a PDB that is no longer there comes before the network.
      if (!element.places.empty() && is_url(element.places.back()) && from_cache(search)) return true;
      if (try_element(search, element)) return true;
    }
    return from_cache(search);
  };
  if (!found() && search.found.state == SymbolState::not_found) {
    std::string places;
    for (const std::string &place : search.found.looked)
      places += (places.empty() ? "" : "; ") + place;
    search.found.why =
        fmt::format("{} {} is not in {}", wanted.name, identity_text(wanted.identity),
                    places.empty() ? "any place, as none is named (a folder, or _NT_SYMBOL_PATH)" : places);
  }
  return std::move(search.found);
}

bool Finder::from_cache(Search &search) {
  const std::string path = table_path(search.wanted);
  if (path.empty() || !is_file(path)) return false;
  Result<base::Mapping> mapping = base::Mapping::open(path);
  if (!mapping) return false;
  Result<TableView> view = TableView::open(mapping->bytes());
  if (!view || view->identity() != search.wanted.identity) return false; // it will be made anew
  auto table = std::make_shared<ModuleSymbols::Table>();
  table->mapping = std::move(*mapping);
  table->view = *view;
  // What it was made of, unless that is no longer there: then nothing but the table has the names.
  search.found.file = without_secrets(view->pdb_path());
  if (!is_url(search.found.file) && !is_file(search.found.file)) search.found.file = path;
  search.found.state = SymbolState::found;
  search.found.table = std::move(table);
  return true;
}

bool Finder::try_folder(Search &search, const std::string &folder) {
  search.looked(folder);
  for (const std::string &file : files_in_folder(folder, search.wanted.name, search.wanted.identity))
    if (is_file(file) && try_file(search, file, 0)) return true;
  return false;
}

bool Finder::try_trace(Search &search, const std::string &trace) {
  if (try_folder(search, folder_of(trace))) return true;
  std::error_code ignored;
  if (fs::is_directory(trace + ".NGENPDB", ignored) && try_folder(search, trace + ".NGENPDB")) return true;
  const std::shared_ptr<const ZipFolder> zip = zip_folder(trace);
  if (!zip) return false;
  search.looked(trace);
  return zip->visit(search.wanted.name, identity_text(search.wanted.identity), options_.max_pdb_bytes,
                    [&](const std::string &name, Bytes bytes) { return try_bytes(search, name, bytes); });
}

// Null for a trace that is no zip. Its directory is read once, for all modules.
std::shared_ptr<const ZipFolder> Finder::zip_folder(const std::string &trace) {
  if (!lower(trace).ends_with(".zip")) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto [it, is_new] = zips_.try_emplace(trace);
  if (!is_new) return it->second;
  if (Result<ZipFolder> zip = ZipFolder::open(trace); zip)
    it->second = std::make_shared<const ZipFolder>(std::move(*zip));
  return it->second;
}

bool Finder::try_element(Search &search, const PathElement &element) {
  std::vector<std::string> upstream; // they get what a later place has
  for (const std::string &place : element.places) {
    if (is_url(place)) return try_server(search, place, upstream);
    if (!element.store) {
      if (try_folder(search, place)) return true;
      continue;
    }
    search.looked(place);
    for (const std::string &file : files_in_store(place, search.wanted.name, search.wanted.identity)) {
      if (!is_file(file) || !try_file(search, file, 0)) continue;
      if (!upstream.empty()) {
        if (Result<base::Mapping> pdb = base::Mapping::open(search.found.file);
            pdb && pdb_kind(first_bytes(pdb->bytes())) == PdbKind::msf)
          for (const std::string &store : upstream)
            keep(store_folder(store, search.wanted.name, search.wanted.identity) + search.wanted.name,
                 pdb->bytes());
      }
      return true;
    }
    upstream.push_back(place);
  }
  return false;
}

bool Finder::try_file(Search &search, const std::string &path, unsigned pointers) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  if (failed) return false;
  if (size > options_.max_pdb_bytes) {
    search.reason(SymbolState::damaged, fmt::format("{}: {} bytes are more than the limit", path, size));
    return false;
  }
  Result<base::Mapping> mapping = base::Mapping::open(path);
  if (!mapping) {
    warn(mapping.error().message());
    return false;
  }
  if (!path.ends_with("/file.ptr")) return try_bytes(search, path, mapping->bytes());
  const Bytes text = mapping->bytes();
  const Pointer pointer = parse_file_pointer({reinterpret_cast<const char *>(text.data()), text.size()});
  constexpr unsigned kMostPointers = 3;
  if (pointer.path.empty() || pointers >= kMostPointers) {
    search.looked(fmt::format("{} ({})", path,
                              pointer.path.empty() ? pointer.message : "it leads to another one, and so on"));
    return false;
  }
  search.looked(pointer.path);
  // The file it names may be there in compressed form only.
  for (const std::string &file : {pointer.path, pointer.path.substr(0, pointer.path.size() - 1) + "_"})
    if (is_file(file) && try_file(search, file, pointers + 1)) return true;
  return false;
}

bool Finder::try_bytes(Search &search, const std::string &path, Bytes bytes) {
  if (is_cabinet(bytes)) {
    const Result<base::Mapping> inside = open_cabinet(bytes, options_.max_pdb_bytes);
    if (inside) return use(search, path, inside->bytes());
    search.reason(SymbolState::damaged, fmt::format("{}: {}", path, inside.error().message()));
    return false;
  }
  return use(search, path, bytes);
}

bool Finder::use(Search &search, const std::string &path, Bytes bytes) {
  const PdbKind kind = pdb_kind(first_bytes(bytes));
  if (kind == PdbKind::msfz) {
    search.reason(SymbolState::compressed_msfz,
                  path + ": compressed as MSFZ, which is not read here; get the plain PDB");
    return false;
  }
  if (kind == PdbKind::none) {
    search.reason(SymbolState::damaged, path + ": no PDB file");
    return false;
  }
  Result<Identity> identity = pdb_identity(bytes);
  if (!identity) {
    search.reason(SymbolState::damaged, fmt::format("{}: {}", path, identity.error().message()));
    return false;
  }
  if (*identity != search.wanted.identity) {
    search.reason(SymbolState::other_identity,
                  fmt::format("{} is of another build: {} instead of {}", path, identity_text(*identity),
                              identity_text(search.wanted.identity)));
    return false;
  }
  // The same PDB as the table at hand was made of, or one of its size: nothing new in it.
  if (from_cache(search) && search.found.table->view.pdb_bytes() == bytes.size()) {
    search.found.file = path;
    search.found.why.clear();
    return true;
  }
  search.found.table.reset();
  search.found.state = SymbolState::not_found;
  Result<RawSymbols> raw = read_pdb(bytes, lasting_name(path));
  if (!raw) {
    search.reason(SymbolState::damaged, fmt::format("{}: {}", path, raw.error().message()));
    return false;
  }
  auto table = std::make_shared<ModuleSymbols::Table>();
  table->memory = make_table(std::move(*raw));
  Result<TableView> view = TableView::open(table->memory);
  if (!view) {
    search.reason(SymbolState::damaged, fmt::format("{}: {}", path, view.error().message()));
    return false;
  }
  table->view = *view;
  if (const std::string cached = table_path(search.wanted); !cached.empty()) keep(cached, table->memory);
  search.found.state = SymbolState::found;
  search.found.file = path;
  search.found.why.clear();
  search.found.table = std::move(table);
  return true;
}

// Written whole or not at all; a full disk costs the cache, not the answer.
void Finder::keep(const std::string &path, Bytes bytes) {
  std::error_code failed;
  fs::create_directories(folder_of(path), failed);
  Result<base::OutputFile> file = base::OutputFile::create(path, true);
  if (!file) return warn("cannot keep symbols: " + file.error().message());
  if (Result<void> written = file->append(bytes); !written)
    return warn("cannot keep symbols: " + written.error().message());
  if (Result<void> done = file->commit(); !done) warn("cannot keep symbols: " + done.error().message());
}

namespace {

std::string missing_note(const std::string &cache, const std::string &url) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : url)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return (fs::path(cache) / "missing" / fmt::format("{:016x}", hash)).string();
}

} // namespace

bool Finder::remembered_missing(const std::string &url) const {
  if (options_.cache.empty()) return false;
  std::error_code failed;
  const auto when = fs::last_write_time(missing_note(options_.cache, url), failed);
  constexpr auto kFor = std::chrono::hours(24);
  return !failed && fs::file_time_type::clock::now() - when < kFor;
}

void Finder::remember_missing(const std::string &url) const {
  if (options_.cache.empty()) return;
  const std::string path = missing_note(options_.cache, url);
  std::error_code ignored;
  fs::create_directories(folder_of(path), ignored);
  Result<base::OutputFile> file = base::OutputFile::create(path, true);
  if (!file) return;
  const std::string shown = without_secrets(url);
  if (file->append({reinterpret_cast<const std::uint8_t *>(shown.data()), shown.size()}))
    (void)static_cast<bool>(file->commit());
}

bool Finder::try_server(Search &search, const std::string &server, const std::vector<std::string> &upstream) {
  const std::string &name = search.wanted.name;
  const auto folder_at = [&](std::string_view at) {
    return fmt::format("{}/{}/{}/", at.substr(0, at.find_last_not_of('/') + 1), url_part(name),
                       identity_text(search.wanted.identity));
  };
  // What is shown and kept, in exported profiles too, is without passwords.
  const std::string folder = folder_at(server), shown = without_secrets(server);
  if (!options_.network) {
    search.looked(shown + " (not asked: the network is used on request alone)");
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    if (gone_.contains(server)) return search.looked(shown + " (it did not answer)"), false;
  }
  if (remembered_missing(folder)) {
    search.looked(shown + " (did not have it within the last day)");
    return false;
  }
  const auto stopped = [&] {
    const bool yes = options_.stop.stop_requested();
    if (yes) search.looked(shown + " (stopped on request)");
    return yes;
  };
  bool missing = true;
  for (const std::string &file :
       {url_part(name), url_part(name.substr(0, name.size() - 1) + "_"), std::string("file.ptr")}) {
    if (stopped()) return false; // whoever asked to stop waits for no answer
    const Fetched got = fetch(folder + file, options_.max_pdb_bytes, options_.stop);
    if (stopped()) return false;
    if (got.status == Fetched::Status::missing) continue;
    missing = false;
    if (got.status != Fetched::Status::done) {
      search.looked(fmt::format("{} ({})", shown, got.why));
      warn(fmt::format("{}: {}", shown, got.why));
      if (got.server_gone) {
        const std::lock_guard lock(mutex_);
        gone_.insert(server);
      }
      return false;
    }
    if (file == "file.ptr") {
      const Bytes text = got.file.bytes();
      const Pointer pointer = parse_file_pointer({reinterpret_cast<const char *>(text.data()), text.size()});
      search.looked(
          fmt::format("{} (it points to {})", shown, pointer.path.empty() ? pointer.message : pointer.path));
      return !pointer.path.empty() && is_file(pointer.path) && try_file(search, pointer.path, 1);
    }
    const std::string url = folder_at(shown) + file;
    Result<base::Mapping> inside = base::Mapping();
    Bytes bytes = got.file.bytes();
    if (is_cabinet(bytes)) {
      inside = open_cabinet(bytes, options_.max_pdb_bytes);
      if (!inside) {
        search.reason(SymbolState::damaged, fmt::format("{}: {}", url, inside.error().message()));
        return false;
      }
      bytes = inside->bytes();
    }
    if (pdb_kind(first_bytes(bytes)) == PdbKind::none) {
      search.looked(fmt::format("{} (what it sent is no PDB: a login page?)", shown));
      return false;
    }
    // Nobody gets to see a file that is not the one asked for, or not all of it.
    if (!use(search, url, bytes)) return false;
    for (const std::string &store : upstream)
      keep(store_folder(store, name, search.wanted.identity) + name, bytes);
    return true;
  }
  if (missing) remember_missing(folder);
  search.looked(shown);
  return false;
}

} // namespace etwrelog::symbols
