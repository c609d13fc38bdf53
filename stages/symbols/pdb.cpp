#include "symbols/pdb.hpp"

#include "base/errors.hpp"
#include "symbols/codeview.hpp"
#include "symbols/undecorated_size.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#ifdef ETWRELOG_HAVE_LLVM
#include <llvm/Config/llvm-config.h>
#include <llvm/DebugInfo/MSF/MappedBlockStream.h>
#include <llvm/DebugInfo/PDB/Native/DbiModuleList.h>
#include <llvm/DebugInfo/PDB/Native/DbiStream.h>
#include <llvm/DebugInfo/PDB/Native/PDBFile.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/Object/COFF.h>
#include <llvm/Support/Allocator.h>
#include <llvm/Support/BinaryByteStream.h>
#include <llvm/Support/MemoryBuffer.h>
#endif

namespace etwrelog::symbols {
namespace {

constexpr char kMsf[] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
                        "DS";
constexpr char kMsfz[] = "Microsoft MSFZ Container";

bool starts_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// The number of a stream by its name, out of the stream of information: names, then a hash table of which
// only the present entries are stored, each a place among the names and a number.
[[maybe_unused]] std::optional<std::uint32_t> named_stream_number(Bytes information, std::string_view name) {
  std::size_t at = 28; // version, time, age, GUID
  const auto next = [&]() -> std::optional<std::uint32_t> {
    if (information.size() < 4 || at > information.size() - 4) return std::nullopt;
    at += 4;
    return load<std::uint32_t>(information.data() + at - 4);
  };
  const std::optional<std::uint32_t> size = next();
  if (!size || *size > information.size() - at) return std::nullopt;
  const std::string_view names(reinterpret_cast<const char *>(information.data()) + at, *size);
  at += *size;
  const std::optional<std::uint32_t> entries = next(), capacity = next();
  if (!entries || !capacity) return std::nullopt;
  for (int set = 0; set < 2; ++set) { // of present and of deleted entries
    const std::optional<std::uint32_t> words = next();
    if (!words || *words > (information.size() - at) / 4) return std::nullopt;
    at += std::size_t{*words} * 4;
  }
  for (std::uint32_t i = 0; i < *entries; ++i) {
    const std::optional<std::uint32_t> place = next(), number = next();
    if (!place || !number) return std::nullopt;
    if (*place > names.size()) continue;
    const std::string_view rest = names.substr(*place);
    if (rest.substr(0, rest.find('\0')) == name) return number;
  }
  return std::nullopt;
}

// "f(int)" is "f", "S<void (*)(int)>::operator()(int) const" is "S<void (*)(int)>::operator()".
[[maybe_unused]] std::string without_parameters(std::string name) {
  std::size_t end = name.rfind(')');
  if (end == std::string::npos) return name;
  unsigned open = 0;
  for (std::size_t at = end + 1; at-- > 0;) {
    if (name[at] == ')') ++open;
    if (name[at] == '(' && --open == 0) {
      if (at > 0 && at + 1 == end && std::string_view(name).substr(0, at).ends_with("operator")) return name;
      if (at > 0) name.resize(at);
      return name;
    }
  }
  return name;
}

} // namespace

PdbKind pdb_kind(Bytes start) {
  if (starts_with(start, kMsf)) return PdbKind::msf;
  return starts_with(start, kMsfz) ? PdbKind::msfz : PdbKind::none;
}

#ifndef ETWRELOG_HAVE_LLVM

namespace {
Error no_support() {
  return base::unsupported("this etwrelog was built without LLVM and reads no PDB files");
}
} // namespace

bool pdb_support() {
  return false;
}
Result<Identity> pdb_identity(Bytes) {
  return no_support();
}
Result<RawSymbols> read_pdb(Bytes, const std::string &) {
  return no_support();
}
std::string undecorated(std::string_view name, bool) {
  return std::string(name);
}

#else

namespace {

Error problem(llvm::Error why, const char *where) {
  return base::corrupt(std::string("PDB: ") + where + ": " + llvm::toString(std::move(why)));
}

// An open PDB: LLVM reads the container and the lists of what is inside; bytes of streams are copied here, so
// that nothing depends on how it handles blocks that do not exist.
class Pdb {
public:
  static Result<std::unique_ptr<Pdb>> open(Bytes file) {
    if (pdb_kind(file) != PdbKind::msf) return base::corrupt("PDB: not the magic of a PDB file");
    // The directory may name the same block over and over: what it claims to hold must fit into the file.
    constexpr std::size_t kSuperBlock = 56;
    if (file.size() < kSuperBlock) return base::corrupt("PDB: too short");
    const auto block_size = load<std::uint32_t>(file.data() + 32),
               directory = load<std::uint32_t>(file.data() + 44);
    if (directory > file.size() || block_size < 512 || block_size > 65536 || file.size() % block_size != 0)
      return base::corrupt("PDB: the sizes in its first block contradict the file");
    auto pdb = std::make_unique<Pdb>(file);
    if (auto failed = pdb->file_.parseFileHeaders()) return problem(std::move(failed), "first block");
    if (auto failed = pdb->file_.parseStreamData()) return problem(std::move(failed), "directory");
    for (std::uint32_t i = 0; i < pdb->file_.getNumStreams(); ++i)
      if (pdb->file_.getStreamByteSize(i) > file.size())
        return base::corrupt("PDB: a stream is larger than the file");
    pdb->information_ = pdb->stream(kInformation);
    if (pdb->information_.size() < kInformationHeader)
      return base::corrupt("PDB: its stream of information is too short");
    auto dbi = pdb->file_.getPDBDbiStream();
    if (!dbi) return problem(dbi.takeError(), "debug information");
    pdb->dbi_ = &*dbi;
    return pdb;
  }

  explicit Pdb(Bytes bytes)
      : bytes_(bytes), file_("", stream_of(bytes), allocator_),
        budget_(4 * std::uint64_t{bytes.size()} + (1u << 20)) {}

  [[nodiscard]] Identity identity() const { return {load_guid(information_.data() + 12), dbi_->getAge()}; }
  [[nodiscard]] llvm::pdb::DbiStream &dbi() const { return *dbi_; }

  // Empty if there is none. Streams that share blocks count each time, so that a small file cannot make much
  // work.
  std::vector<std::uint8_t> stream(std::uint32_t number) {
    std::vector<std::uint8_t> out;
    if (number >= file_.getNumStreams()) return out;
    const std::size_t size = file_.getStreamByteSize(number), block = file_.getBlockSize();
    if (size > budget_) return out;
    budget_ -= size;
    out.reserve(size);
    for (const std::uint32_t at : file_.getStreamBlockList(number)) {
      const std::uint64_t from = std::uint64_t{at} * block;
      const std::size_t wanted = std::min(block, size - out.size());
      if (from > bytes_.size() || bytes_.size() - from < wanted) return {};
      out.insert(out.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(from),
                 bytes_.begin() + static_cast<std::ptrdiff_t>(from + wanted));
    }
    return out;
  }
  std::vector<std::uint8_t> named_stream(std::string_view name) {
    const std::optional<std::uint32_t> number = named_stream_number(information_, name);
    return number ? stream(*number) : std::vector<std::uint8_t>();
  }
  std::vector<std::uint8_t> debug_stream(llvm::pdb::DbgHeaderType type) {
    const std::uint32_t number = dbi_->getDebugStreamIndex(type);
    return number == 0xFFFF ? std::vector<std::uint8_t>() : stream(number);
  }

private:
  static std::unique_ptr<llvm::BinaryStream> stream_of(Bytes bytes) {
#if LLVM_VERSION_MAJOR >= 18
    constexpr auto kLittle = llvm::endianness::little;
#else
    constexpr auto kLittle = llvm::support::little;
#endif
    return std::make_unique<llvm::BinaryByteStream>(llvm::ArrayRef<std::uint8_t>(bytes.data(), bytes.size()),
                                                    kLittle);
  }

  Bytes bytes_;
  llvm::BumpPtrAllocator allocator_;
  llvm::pdb::PDBFile file_;
  // The stream of information is read here: LLVM's reader takes memory for whatever its hash table claims to
  // hold, and trusts that names in it end.
  static constexpr std::uint32_t kInformation = 1;
  static constexpr std::size_t kInformationHeader = 28; // version, time, age, GUID
  std::vector<std::uint8_t> information_;
  llvm::pdb::DbiStream *dbi_ = nullptr;
  std::uint64_t budget_;
};

std::vector<Section> sections_of(const std::vector<std::uint8_t> &headers) {
  std::vector<Section> sections;
  constexpr std::size_t kHeader = 40; // IMAGE_SECTION_HEADER
  constexpr std::uint32_t kCode = 0x2000'0020;
  for (std::size_t at = 0; at + kHeader <= headers.size(); at += kHeader) {
    const std::uint8_t *h = headers.data() + at;
    const auto size = load<std::uint32_t>(h + 8), rva = load<std::uint32_t>(h + 12),
               flags = load<std::uint32_t>(h + 36);
    sections.push_back(
        {rva, std::min(size, 0xFFFF'FFFEu - std::min(rva, 0xFFFF'FFFEu)), (flags & kCode) != 0});
  }
  return sections;
}

AddressMap address_map(Pdb &pdb) {
  using llvm::pdb::DbgHeaderType;
  const std::vector<std::uint8_t> moved_bytes = pdb.debug_stream(DbgHeaderType::OmapFromSrc);
  std::vector<OmapEntry> moved;
  for (std::size_t at = 0; at + 8 <= moved_bytes.size(); at += 8)
    moved.push_back(
        {load<std::uint32_t>(moved_bytes.data() + at), load<std::uint32_t>(moved_bytes.data() + at + 4)});
  // Moved code: symbols are given in the sections of before.
  std::vector<Section> sections, in_image = sections_of(pdb.debug_stream(DbgHeaderType::SectionHdr));
  if (!moved.empty()) sections = sections_of(pdb.debug_stream(DbgHeaderType::SectionHdrOrig));
  if (sections.empty()) sections = in_image;
  return AddressMap(std::move(sections), std::move(moved), std::move(in_image));
}

// The block of strings in "/names".
Bytes names_of(const std::vector<std::uint8_t> &stream) {
  constexpr std::size_t kHeader = 12;
  if (stream.size() < kHeader) return {};
  return Bytes(stream).subspan(
      kHeader, std::min<std::size_t>(load<std::uint32_t>(stream.data() + 8), stream.size() - kHeader));
}

} // namespace

bool pdb_support() {
  return true;
}

Result<Identity> pdb_identity(Bytes file) {
  ETWRELOG_TRY_LET(pdb, Pdb::open(file));
  return pdb->identity();
}

Result<RawSymbols> read_pdb(Bytes file, const std::string &path) {
  ETWRELOG_TRY_LET(opened, Pdb::open(file));
  Pdb &pdb = *opened;
  RawSymbols out;
  out.identity = pdb.identity();
  out.pdb_path = path;
  out.pdb_bytes = file.size();

  const AddressMap map = address_map(pdb);
  if (map.sections().empty()) return base::corrupt("PDB: it does not list the image's sections");
  constexpr std::uint32_t kTypeStream = 2, kIdStream = 4;
  const TypeNames types(pdb.stream(kTypeStream), pdb.stream(kIdStream));
  const std::vector<std::uint8_t> names = pdb.named_stream("/names");
  const bool x86 = pdb.dbi().getMachineType() == llvm::pdb::PDB_Machine::x86;
  CodeViewReader reader(out, map, types, names_of(names), x86);

  const llvm::pdb::DbiModuleList &modules = pdb.dbi().modules();
  for (std::uint32_t i = 0; i < modules.getModuleCount(); ++i) {
    const llvm::pdb::DbiModuleDescriptor module = modules.getModuleDescriptor(i);
    if (module.getModuleStreamIndex() == 0xFFFF) continue;
    const std::vector<std::uint8_t> stream = pdb.stream(module.getModuleStreamIndex());
    const std::uint64_t symbols = module.getSymbolDebugInfoByteSize(),
                        old_lines = module.getC11LineInfoByteSize(), lines = module.getC13LineInfoByteSize();
    if (symbols + old_lines + lines > stream.size()) continue;
    reader.module(Bytes(stream).first(symbols), Bytes(stream).subspan(symbols + old_lines, lines));
  }
  const std::uint32_t publics = pdb.dbi().getSymRecordStreamIndex();
  if (publics != 0xFFFF) reader.publics(pdb.stream(publics));
  reader.ends();
  return out;
}

std::string undecorated(std::string_view name, bool x86) {
  if (name.starts_with('?') && name.size() < 4096) {
    const std::string terminated(name);
    if (!has_bounded_undecorated(name)) return terminated;
    using namespace llvm;
    const auto flags =
        static_cast<MSDemangleFlags>(MSDF_NoAccessSpecifier | MSDF_NoCallingConvention | MSDF_NoReturnType |
                                     MSDF_NoMemberType | MSDF_NoVariableType);
    int status = 0;
#if LLVM_VERSION_MAJOR >= 17
    char *plain = microsoftDemangle(terminated, nullptr, &status, flags);
#else
    char *plain = microsoftDemangle(terminated.c_str(), nullptr, nullptr, nullptr, &status, flags);
#endif
    if (plain == nullptr) return terminated;
    std::string out(status == 0 ? plain : terminated.c_str());
    std::free(plain);
    return without_parameters(std::move(out));
  }
  if (!x86 || name.empty()) return std::string(name);
  const std::size_t at = name.rfind('@');
  const bool bytes = at != std::string_view::npos && at + 1 < name.size() &&
                     std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 1, name.end(),
                                 [](char c) { return c >= '0' && c <= '9'; });
  if (name[0] == '@' && !(bytes && at > 0)) return std::string(name);
  if (bytes && at > 0) name = name.substr(0, at);
  if (name.size() > 1 && (name[0] == '_' || name[0] == '@')) name.remove_prefix(1);
  return std::string(name);
}

#endif

} // namespace etwrelog::symbols
