#include "symbols/zip_folder.hpp"

#include "base/errors.hpp"
#include "base/platform.hpp"
#include "base/spool.hpp"
#include "symbols/search.hpp"
#include "zip/member.hpp"

namespace etwrelog::symbols {
namespace {

// Nothing if it is more than that, or cannot be unpacked.
base::Mapping content_of(const base::InputBytes &zip, const zip::Member &member, std::uint64_t most) {
  constexpr std::size_t kReadAtOnce = 1u << 20; // the size that it claims may be anything
  if (member.size > most) return {};
  Result<base::Spool> spool = base::Spool::create(Advice::none);
  if (!spool) return {};
  std::vector<std::uint8_t> chunk;
  zip::MemberReader reader(zip, member, chunk);
  for (;;) {
    const Result<std::vector<std::uint8_t>> more = reader.read(kReadAtOnce);
    if (!more || more->size() > most - spool->size() || !spool->append(*more)) return {};
    if (more->size() == kReadAtOnce) continue;
    Result<base::Mapping> mapped = spool->map();
    return mapped ? std::move(*mapped) : base::Mapping();
  }
}

} // namespace

Result<ZipFolder> ZipFolder::open(const std::string &path) {
  ETWRELOG_TRY_LET(file, base::File::open_read(path));
  ETWRELOG_TRY_LET(size, file.size());
  std::unique_ptr<base::InputBytes> zip = base::file_input(path, std::move(file), size);
  ETWRELOG_TRY_LET(all, zip::members_of(*zip));
  std::vector<Member> members;
  for (zip::Member &member : all) {
    if (!member.file) continue;
    const std::string name = lower(member.name);
    const std::size_t slash = name.find_last_of("/\\");
    const std::string folders = name.substr(0, slash == name.npos ? 0 : slash);
    members.push_back({std::move(member), name.substr(slash + 1), // npos + 1 is 0
                       folders.substr(folders.find_last_of("/\\") + 1)});
  }
  return ZipFolder(std::move(zip), std::move(members));
}

bool ZipFolder::visit(const std::string &name, const std::string &key, std::uint64_t most,
                      const VisitMember &visit) const {
  constexpr std::size_t kMostTried = 16; // of as many builds as there are in a zip, one at most is wanted
  const std::string file = lower(name), folder = lower(key);
  for (const bool in_key : {true, false}) {
    std::size_t tried = 0;
    for (const Member &member : members_) {
      if (tried == kMostTried) break;
      if (member.file != file || (member.folder == folder) != in_key) continue;
      ++tried;
      const base::Mapping content = content_of(*zip_, member.in_zip, most);
      const Bytes bytes = content.bytes();
      if (!bytes.empty() && visit(zip_->name() + "/" + member.in_zip.name, bytes)) return true;
    }
  }
  return false;
}

} // namespace etwrelog::symbols
