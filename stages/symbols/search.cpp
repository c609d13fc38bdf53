#include "symbols/search.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace etwrelog::symbols {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string joined(const std::string &folder, const std::string &rest) {
  return (fs::path(folder) / rest).string();
}

} // namespace

bool is_file(const std::string &path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_url(std::string_view place) {
  const std::string start = lower(place.substr(0, 8));
  return start.starts_with("http://") || start.starts_with("https://");
}

std::string without_secrets(std::string_view place) {
  if (!is_url(place)) return std::string(place);
  place = place.substr(0, place.find_first_of("?#"));
  const std::size_t host = place.find("://") + 3;
  const std::size_t user = place.substr(0, place.find('/', host)).rfind('@');
  if (user == std::string_view::npos || user < host) return std::string(place);
  return std::string(place.substr(0, host)) + std::string(place.substr(user + 1));
}

std::vector<PathElement> parse_symbol_path(std::string_view path, const std::string &downstream,
                                           std::vector<std::string> &warnings) {
  std::vector<PathElement> out;
  std::string cache; // cache*FOLDER holds for all that follows
  for (const std::string_view part : split(path, ';')) {
    const std::string_view text = base::trimmed(part);
    if (text.empty()) continue;
    const std::vector<std::string_view> words = split(text, '*');
    const std::string kind = lower(words[0]);
    const auto shown = [&words] {
      std::string joined;
      for (const std::string_view word : words)
        joined += (joined.empty() ? "" : "*") + without_secrets(base::trimmed(word));
      return joined;
    };
    if (words.size() == 1) {
      PathElement element{is_url(text), {}};
      if (element.store && !cache.empty()) element.places.push_back(cache);
      element.places.emplace_back(text);
      out.push_back(std::move(element));
      continue;
    }
    if (kind == "cache") {
      cache = words[1].empty() ? downstream : std::string(words[1]);
      if (cache.empty())
        warnings.push_back(fmt::format("symbol path: \"{}\" needs a folder, as there is no cache", shown()));
      else
        out.push_back({true, {cache}});
      continue;
    }
    if (kind != "srv" && kind != "symsrv") {
      warnings.push_back(
          fmt::format("symbol path: \"{}\" is none of srv*, symsrv*, cache* and a folder", shown()));
      continue;
    }
    PathElement element{true, {}};
    if (!cache.empty()) element.places.push_back(cache);
    const std::size_t first = kind == "srv" ? 1 : 2; // symsrv*symsrv.dll*...
    for (std::size_t i = first; i < words.size(); ++i) {
      const std::string_view place = base::trimmed(words[i]);
      if (is_url(place) && i + 1 < words.size())
        warnings.push_back(fmt::format("symbol path: \"{}\": nothing can follow the server {}", shown(),
                                       without_secrets(place)));
      if (!place.empty())
        element.places.emplace_back(place);
      else if (words.size() > first + 1 && !downstream.empty())
        element.places.push_back(downstream); // "srv**URL": the default store in between
      if (is_url(place)) break;
    }
    if (words.size() <= first ||
        (words.size() == first + 1 && base::trimmed(words[first]).empty())) { // "srv*"
      if (!downstream.empty()) element.places.push_back(downstream);
      element.places.emplace_back(kMicrosoftSymbolServer);
    }
    if (!element.places.empty()) out.push_back(std::move(element));
  }
  return out;
}

std::optional<std::string> pdb_file_name(std::string_view pdb_name) {
  const std::size_t slash = pdb_name.find_last_of("/\\");
  if (slash != std::string_view::npos) pdb_name.remove_prefix(slash + 1);
  constexpr std::size_t kLongest = 200;
  if (pdb_name.empty() || pdb_name == "." || pdb_name == ".." || pdb_name.size() > kLongest)
    return std::nullopt;
  for (const char c : pdb_name)
    if (static_cast<unsigned char>(c) < 0x20 || c == ':' || c == '*' || c == '?' || c == 0x7F)
      return std::nullopt;
  return std::string(pdb_name);
}

std::string identity_text(const Identity &identity) {
  std::string text = to_string(identity.guid);
  std::erase(text, '-');
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return text + fmt::format("{:X}", identity.age);
}

std::string store_folder(const std::string &store, const std::string &name, const Identity &id) {
  const bool two_tiers = is_file(joined(store, "index2.txt"));
  const std::string inside = name + "/" + identity_text(id) + "/";
  return joined(store, two_tiers ? name.substr(0, 2) + "/" + inside : inside);
}

std::vector<std::string> files_in_store(const std::string &store, const std::string &name,
                                        const Identity &id) {
  std::vector<std::string> out;
  std::vector<std::string> names{name};
  if (lower(name) != name) names.push_back(lower(name));
  for (const std::string &one : names) {
    const std::string folder = store_folder(store, one, id);
    out.push_back(folder + one);
    out.push_back(folder + one.substr(0, one.size() - 1) + "_");
    out.push_back(folder + "msfz0/" + one);
    out.push_back(folder + "file.ptr");
  }
  return out;
}

std::vector<std::string> files_in_folder(const std::string &folder, const std::string &name,
                                         const Identity &id) {
  std::vector<std::string> out{joined(folder, name)};
  if (lower(name) != name) out.push_back(joined(folder, lower(name)));
  out.push_back(joined(folder, "symbols/" + name));
  const std::vector<std::string> store =
      files_in_store(folder, name, id); // people point at stores as at folders
  out.insert(out.end(), store.begin(), store.end());
  return out;
}

Pointer parse_file_pointer(std::string_view text) {
  text = base::trimmed(text.substr(0, 4096));
  if (lower(text.substr(0, 5)) == "path:") {
    std::string path(base::trimmed(text.substr(5)));
    std::ranges::replace(path, '\\', '/'); // a share of Windows is a folder of ours, if it is mounted at all
    return {std::move(path), {}};
  }
  if (lower(text.substr(0, 4)) == "msg:") return {{}, std::string(base::trimmed(text.substr(4)))};
  return {{}, "it says neither PATH: nor MSG:"};
}

} // namespace etwrelog::symbols
