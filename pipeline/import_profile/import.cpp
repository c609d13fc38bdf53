#include "import_profile/import.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

namespace etwrelog {
namespace import_profile {

Error broken(const std::string &what) {
  return base::corrupt(what).expected("a profile that etwrelog wrote");
}

bool read_hex(std::string_view text, std::uint64_t &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool read_identity(std::string_view text, ProfileModule &module) {
  constexpr std::size_t kGuid = 32, kAge = 8;
  if (text.size() <= kGuid || text.size() > kGuid + kAge) return false;
  std::string guid(text.substr(0, kGuid));
  for (const std::size_t dash : {20u, 16u, 12u, 8u})
    guid.insert(dash, 1, '-');
  const std::optional<Guid> parsed = parse_guid(guid);
  std::uint64_t age = 0;
  if (!parsed || *parsed == Guid{} || !read_hex(text.substr(kGuid), age)) return false;
  module.pdb_guid = *parsed;
  module.pdb_age = static_cast<std::uint32_t>(age);
  return true;
}

std::string last_part(const std::string &path) {
  return path.substr(path.find_last_of("\\/") + 1); // npos + 1 is 0
}

ProfileFrame named_frame(std::string text) {
  ProfileFrame frame;
  const bool bare = text.starts_with("0x") && read_hex(std::string_view(text).substr(2), frame.address);
  if (bare) return frame;
  frame.kind = text.find('!') == std::string::npos ? FrameKind::annotation : FrameKind::native;
  frame.why = Unresolved::none;
  frame.function = std::move(text);
  return frame;
}

Error Builder::too_large() {
  return base::over_limit("a profile that names the same things over and over")
      .expected("one that takes 128 times its size at most, and 64 MiB");
}

void Builder::frame(ProfileFrame frame) {
  if (full()) return;
  take(sizeof frame + frame.function.size() + frame.file.size());
  profile.frames.push_back(std::move(frame));
}

void Builder::module(ProfileModule module) {
  if (full()) return;
  take(sizeof module + module.name.size() + module.path.size() + module.pdb_name.size());
  profile.modules.push_back(std::move(module));
}

std::uint32_t Builder::process(const std::string &text, std::uint32_t pid) {
  const auto [place, fresh] =
      processes_.try_emplace({text, pid}, static_cast<std::uint32_t>(profile.processes.size()));
  if (fresh) {
    take(sizeof(ProfileProcess) + 2 * text.size()); // here and there
    ProfileProcess &made = profile.processes.emplace_back();
    made.pid = pid;
    made.name = text.substr(0, text.rfind(" ("));
  }
  return place->second;
}

std::uint32_t Builder::thread(std::uint32_t process, const std::string &text, std::uint32_t tid) {
  const auto [place, fresh] =
      threads_.try_emplace({process, text, tid}, static_cast<std::uint32_t>(profile.threads.size()));
  if (fresh) {
    take(sizeof(ProfileThread) + 2 * text.size());
    ProfileThread &made = profile.threads.emplace_back();
    made.tid = tid;
    made.process = process;
    made.name = text.substr(0, text.rfind(" ("));
    if (made.name == "thread") made.name.clear(); // the word for one without a name
  }
  return place->second;
}

std::uint32_t Builder::node(std::uint32_t parent, std::uint32_t frame) {
  if (full()) return 0;
  const auto [place, fresh] =
      nodes_.try_emplace({parent, frame}, static_cast<std::uint32_t>(profile.nodes.size()));
  if (fresh) {
    take(sizeof(ProfileNode));
    profile.nodes.push_back({parent, frame});
  }
  return place->second;
}

namespace {

Result<std::vector<std::uint8_t>> unzip(Bytes file, std::uint64_t max_bytes) {
  std::vector<std::uint8_t> out;
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzip) != Z_OK) return broken("gzip: not to be opened");
  const struct End {
    z_stream &stream;
    ~End() { inflateEnd(&stream); }
  } end{stream};
  int status = Z_OK;
  std::size_t in = 0, size = 0;
  while (status == Z_OK) {
    constexpr std::size_t kPiece = 1u << 20;
    const std::size_t more = std::min(kPiece, file.size() - in);
    if (stream.avail_in == 0) {
      stream.next_in = const_cast<Bytef *>(file.data() + in);
      stream.avail_in = static_cast<uInt>(more);
      in += more;
    }
    if (size == out.size()) {
      if (size >= max_bytes)
        return base::over_limit("a profile, unpacked").expected(std::to_string(max_bytes) + " bytes at most");
      out.resize(std::min<std::uint64_t>(max_bytes, std::max<std::size_t>(kPiece, 2 * out.size())));
    }
    stream.next_out = out.data() + size;
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size() - size, 1u << 30));
    const std::size_t room = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    size += room - stream.avail_out;
    if (status == Z_BUF_ERROR) break; // the file ends too early
  }
  if (status != Z_STREAM_END) return broken("gzip: damaged or cut off");
  out.resize(size);
  return out;
}

Result<ReadProfile> read_json(Bytes file) {
  try {
    const nlohmann::json parsed = nlohmann::json::parse(file.begin(), file.end());
    if (parsed.is_object() && parsed.contains("meta")) return read_firefox(parsed, room_for(file.size()));
    if (parsed.is_object() && parsed.contains("shared"))
      return read_speedscope(parsed, room_for(file.size()));
  } catch (const nlohmann::json::exception &error) {
    return broken(fmt::format("JSON: {}", error.what()));
  } catch (const std::out_of_range &error) {
    return broken(fmt::format("JSON: {}", error.what()));
  }
  return base::unsupported("JSON of another kind").expected("a profile of Firefox or speedscope");
}

// A child stands behind its parent, everything that is named is there: whoever reads the tables relies on it.
Result<void> check(const Profile &p) {
  const auto within = [](std::uint32_t index, std::size_t size) { return index == kNoIndex || index < size; };
  for (const ProfileFrame &frame : p.frames)
    if (!within(frame.module, p.modules.size())) return broken("a frame of a module that is not there");
  for (std::size_t i = 1; i < p.nodes.size(); ++i)
    if (p.nodes[i].parent >= i || p.nodes[i].frame >= p.frames.size())
      return broken("a stack that does not end");
  for (const ProfileSample &sample : p.samples)
    if (sample.node >= p.nodes.size() || sample.thread >= p.threads.size())
      return broken("a sample without its stack or thread");
  return {};
}

} // namespace
} // namespace import_profile

Result<ReadProfile> read_profile(Bytes file, std::uint64_t max_bytes) {
  using namespace import_profile;
  std::vector<std::uint8_t> unpacked;
  if (file.size() >= 2 && file[0] == 0x1F && file[1] == 0x8B) {
    ETWRELOG_TRY_LET(bytes, unzip(file, max_bytes));
    unpacked = std::move(bytes);
    file = unpacked;
  } else if (file.size() > max_bytes) {
    return base::over_limit("a profile").expected(std::to_string(max_bytes) + " bytes at most");
  }
  const auto begin = std::ranges::find_if(file, [](std::uint8_t c) { return c > ' '; });
  Result<ReadProfile> read = begin != file.end() && *begin == '{' ? read_json(file) : read_pprof(file);
  if (!read) return read;
  ETWRELOG_TRY(check(read->profile));
  return read;
}

} // namespace etwrelog
