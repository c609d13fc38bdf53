// Schemas out of files of the user.
#include "base/cut_text.hpp"
#include "base/errors.hpp"
#include "base/platform.hpp"
#include "etwrelog/export.hpp"
#include "schema/manifest_pieces.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace etwrelog {
namespace {

constexpr std::uintmax_t kMaxFile = 64u << 20;

Error file_error(ErrorKind kind, const std::string &file, std::string what) {
  return base::ErrorBuilder(kind, std::move(what)).in(file);
}

Result<std::string> read_whole(const std::string &path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) return file_error(ErrorKind::io, path, failed.message());
  if (size > kMaxFile) {
    Error error = file_error(ErrorKind::limit, path, "size of a schema file");
    error.expected = "at most 64 MiB", error.found = std::to_string(size) + " bytes";
    return error;
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size)))
    return file_error(ErrorKind::io, path, "cannot be read");
  return text;
}

bool is_schema(const std::filesystem::path &path) {
  const std::string extension = base::lower(path.extension().string());
  return extension == ".man" || extension == ".xml" || extension == ".tmf";
}

Result<void> add_file(SchemaCatalog &catalog, const std::filesystem::path &path) {
  ETWRELOG_TRY_LET(text, read_whole(path.string()));
  const bool tmf = base::lower(path.extension().string()) == ".tmf";
  Result<void> added = tmf ? catalog.add_tmf(text) : schema::add_manifest(catalog, text, path.string());
  if (!added) added.error().file = path.string();
  return added;
}

} // namespace

Result<std::size_t> add_schema_files(SchemaCatalog &catalog, const std::string &path) {
  std::error_code failed;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(path, failed)) {
    files.emplace_back(path);
  } else {
    for (const auto &entry : std::filesystem::directory_iterator(path, failed))
      if (is_schema(entry.path()) && entry.is_regular_file(failed)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  }
  if (failed) return file_error(ErrorKind::io, path, failed.message());
  if (files.empty())
    return file_error(ErrorKind::no_match, path, "no .man, .xml or .tmf file in this folder");
  for (const std::filesystem::path &file : files)
    ETWRELOG_TRY(add_file(catalog, file));
  return files.size();
}

} // namespace etwrelog
