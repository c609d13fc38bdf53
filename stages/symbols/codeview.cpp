#include "symbols/codeview.hpp"

#include "symbols/pdb.hpp"

#include <algorithm>

namespace etwrelog::symbols {
namespace {

enum Record : std::uint16_t {
  kEnd = 0x0006,
  kThunk = 0x1102,
  kBlock = 0x1103,
  kWith = 0x1104,
  kPublic = 0x110E,
  kLocalProcedure = 0x110F,
  kGlobalProcedure = 0x1110,
  kSeparated = 0x1132,
  kLocalProcedureId = 0x1146,
  kGlobalProcedureId = 0x1147,
  kInlineSite = 0x114D,
  kInlineSiteEnd = 0x114E,
  kProcedureEnd = 0x114F,
  kInlineSite2 = 0x115D,
};
enum Leaf : std::uint16_t {
  kClass = 0x1504,
  kStructure = 0x1505,
  kUnion = 0x1506,
  kEnum = 0x1507,
  kInterface = 0x1519,
  kFunctionId = 0x1601,
  kMemberFunctionId = 0x1602,
  kStringId = 0x1605,
};
enum Subsection : std::uint32_t { kLines = 0xF2, kChecksums = 0xF4, kInlineeLines = 0xF6 };

// Reads forward; past the end everything is 0 and ok() is false.
class Reader {
public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}
  template <class T> T get() {
    if (bytes_.size() - at_ < sizeof(T)) {
      ok_ = false;
      at_ = bytes_.size();
      return T{};
    }
    at_ += sizeof(T);
    return load<T>(bytes_.data() + at_ - sizeof(T));
  }
  Bytes take(std::size_t count) {
    if (bytes_.size() - at_ < count) {
      ok_ = false;
      count = bytes_.size() - at_;
    }
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  std::string_view text() {
    const auto *from = reinterpret_cast<const char *>(bytes_.data()) + at_;
    const std::string_view rest(from, bytes_.size() - at_);
    const std::string_view found = rest.substr(0, rest.find('\0'));
    at_ = std::min(bytes_.size(), at_ + found.size() + 1);
    return found;
  }
  void align(std::size_t to) { at_ = std::min(bytes_.size(), (at_ + to - 1) / to * to); }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool more(std::size_t count = 1) const { return bytes_.size() - at_ >= count; }
  [[nodiscard]] Bytes rest() const { return bytes_.subspan(at_); }

private:
  Bytes bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

void skip_number(Reader &reader) {
  switch (const auto kind = reader.get<std::uint16_t>(); kind) {
  case 0x8000: reader.take(1); break;
  case 0x8001:
  case 0x8002: reader.take(2); break;
  case 0x8003:
  case 0x8004: reader.take(4); break;
  case 0x8009:
  case 0x800A: reader.take(8); break;
  default: break; // the number itself
  }
}

// Numbers of one, two or four bytes; the first bits say which.
std::uint32_t packed(Reader &reader) {
  const std::uint32_t first = reader.get<std::uint8_t>();
  if ((first & 0x80) == 0) return first;
  const std::uint32_t second = reader.get<std::uint8_t>();
  if ((first & 0x40) == 0) return (first & 0x3F) << 8 | second;
  const std::uint32_t third = reader.get<std::uint8_t>(), fourth = reader.get<std::uint8_t>();
  return (first & 0x1F) << 24 | second << 16 | third << 8 | fourth;
}
std::uint32_t signed_packed(std::uint32_t value) {
  return (value & 1) != 0 ? 0 - (value >> 1) : value >> 1;
}

constexpr bool is_line(std::uint32_t line) {
  return line != 0 && line != 0xFEEFEE && line != 0xF00F00; // marks of code that belongs to no line
}

} // namespace

AddressMap::AddressMap(std::vector<Section> sections, std::vector<OmapEntry> moved,
                       std::vector<Section> in_image)
    : sections_(std::move(sections)), in_image_(std::move(in_image)), moved_(std::move(moved)) {
  std::stable_sort(moved_.begin(), moved_.end(),
                   [](const OmapEntry &a, const OmapEntry &b) { return a.from < b.from; });
}

std::optional<std::uint32_t> AddressMap::rva(std::uint16_t segment, std::uint32_t offset) const {
  if (segment == 0 || segment > sections_.size()) return std::nullopt;
  const Section &section = sections_[segment - 1u];
  const std::uint64_t at = std::uint64_t{section.rva} + offset;
  if (offset > section.size || at > 0xFFFF'FFFE) return std::nullopt;
  const auto address = static_cast<std::uint32_t>(at);
  if (moved_.empty()) return address;
  const auto after = std::ranges::upper_bound(moved_, address, {}, &OmapEntry::from);
  if (after == moved_.begin()) return std::nullopt;
  const OmapEntry &entry = *(after - 1);
  if (entry.to == 0) return std::nullopt; // taken out
  return entry.to + (address - entry.from);
}

bool AddressMap::is_code(std::uint16_t segment) const {
  return segment != 0 && segment <= sections_.size() && sections_[segment - 1u].code;
}

TypeNames::TypeNames(std::vector<std::uint8_t> types, std::vector<std::uint8_t> ids) {
  types_.bytes = std::move(types);
  ids_.bytes = std::move(ids);
  index(ids_);
  if (!ids_.offsets.empty()) index(types_);
}

void TypeNames::index(Stream &stream) {
  Reader header(stream.bytes);
  header.get<std::uint32_t>(); // version
  const auto start = header.get<std::uint32_t>();
  stream.first = header.get<std::uint32_t>();
  const auto end = header.get<std::uint32_t>();
  if (!header.ok() || start > stream.bytes.size() || end < stream.first) return;
  const std::uint32_t most = end - stream.first;
  for (std::size_t at = start; stream.offsets.size() < most && stream.bytes.size() - at >= 4;) {
    const std::size_t size = load<std::uint16_t>(stream.bytes.data() + at);
    if (size < 2 || size > stream.bytes.size() - at - 2) break;
    stream.offsets.push_back(static_cast<std::uint32_t>(at));
    at += size + 2;
  }
}

// From its kind on.
Bytes TypeNames::record(const Stream &stream, std::uint32_t number) {
  if (number < stream.first || number - stream.first >= stream.offsets.size()) return {};
  const std::size_t at = stream.offsets[number - stream.first];
  return Bytes(stream.bytes).subspan(at + 2, load<std::uint16_t>(stream.bytes.data() + at));
}

std::string TypeNames::type(std::uint32_t number) const {
  Reader r(record(types_, number));
  switch (r.get<std::uint16_t>()) {
  case kClass:
  case kStructure:
  case kInterface:
    r.take(16);
    skip_number(r);
    break;
  case kUnion:
    r.take(8);
    skip_number(r);
    break;
  case kEnum: r.take(12); break;
  default: return {};
  }
  return std::string(r.text());
}

std::string TypeNames::scope(std::uint32_t id) const {
  Reader r(record(ids_, id));
  if (r.get<std::uint16_t>() != kStringId) return {};
  r.get<std::uint32_t>();
  return std::string(r.text());
}

std::string TypeNames::function(std::uint32_t id) const {
  Reader r(record(ids_, id));
  const auto kind = r.get<std::uint16_t>();
  if (kind != kFunctionId && kind != kMemberFunctionId) return {};
  const auto owner = r.get<std::uint32_t>();
  r.get<std::uint32_t>();
  const std::string_view name = r.text();
  std::string out = kind == kMemberFunctionId ? type(owner) : owner != 0 ? scope(owner) : std::string();
  if (!out.empty()) out += "::";
  return out.append(name);
}

std::uint32_t CodeViewReader::file_name(std::uint32_t checksum_offset) {
  const auto [found, fresh] = files_.try_emplace(checksum_offset, 0);
  if (!fresh) return found->second;
  if (checksum_offset >= checksums_.size()) return 0;
  Reader checksum(checksums_.subspan(checksum_offset));
  const auto name = checksum.get<std::uint32_t>();
  const auto [known, unseen] = file_names_.try_emplace(name, 0);
  if (unseen && checksum.ok() && name < names_.size())
    known->second = out_.strings.intern(Reader(names_.subspan(name)).text());
  return found->second = known->second;
}

std::uint32_t CodeViewReader::function_name(std::uint32_t id) {
  const auto [found, fresh] = function_names_.try_emplace(id, 0);
  if (fresh) {
    const std::string name = types_.function(id);
    found->second = out_.strings.intern(name.empty() ? "(inlined)" : name);
  }
  return found->second;
}

void CodeViewReader::module(Bytes symbols, Bytes lines) {
  checksums_ = {};
  inlinees_.clear();
  files_.clear();
  lines_of(lines);
  enum class Scope : std::uint8_t { procedure, site, other };
  std::vector<Scope> scopes;
  open_function_ = SIZE_MAX;
  depth_ = 0;
  Reader reader(symbols);
  reader.get<std::uint32_t>(); // the version of the records
  while (reader.more(4)) {
    const auto size = reader.get<std::uint16_t>();
    if (size < 2) break;
    Reader record(reader.take(size));
    if (!reader.ok()) break;
    switch (const auto kind = record.get<std::uint16_t>(); kind) {
    case kLocalProcedure:
    case kGlobalProcedure:
    case kLocalProcedureId:
    case kGlobalProcedureId:
      procedure(record.rest());
      scopes.push_back(Scope::procedure);
      break;
    case kInlineSite:
    case kInlineSite2: {
      record.take(8); // its place in the tree of scopes
      const auto inlinee = record.get<std::uint32_t>();
      if (kind == kInlineSite2) record.get<std::uint32_t>();
      if (record.ok()) inline_site(record.rest(), inlinee);
      scopes.push_back(Scope::site);
      ++depth_;
      break;
    }
    case kSeparated:
      separated(record.rest());
      scopes.push_back(Scope::other);
      break;
    case kThunk:
    case kBlock:
    case kWith: scopes.push_back(Scope::other); break;
    case kEnd:
    case kProcedureEnd:
    case kInlineSiteEnd:
      if (scopes.empty()) break;
      if (scopes.back() == Scope::procedure) open_function_ = SIZE_MAX;
      if (scopes.back() == Scope::site) --depth_;
      scopes.pop_back();
      break;
    default: break;
    }
  }
}

void CodeViewReader::procedure(Bytes bytes) {
  open_function_ = SIZE_MAX;
  Reader r(bytes);
  r.take(12);
  const auto size = r.get<std::uint32_t>();
  r.take(12);
  const auto offset = r.get<std::uint32_t>();
  const auto segment = r.get<std::uint16_t>();
  r.get<std::uint8_t>();
  const std::string_view name = r.text();
  const std::optional<std::uint32_t> rva = map_.rva(segment, offset);
  if (!r.ok() || !rva || name.empty()) return;
  open_function_ = out_.functions.size();
  out_.functions.push_back(
      {*rva, size, out_.strings.add(name), static_cast<std::uint32_t>(out_.inlines.size()), 0});
}

// Code of a function that the compiler put elsewhere, because it is rarely needed: it bears the function's
// name.
void CodeViewReader::separated(Bytes bytes) {
  Reader r(bytes);
  r.take(8);
  const auto size = r.get<std::uint32_t>();
  r.get<std::uint32_t>();
  const auto offset = r.get<std::uint32_t>(), parent_offset = r.get<std::uint32_t>();
  const auto segment = r.get<std::uint16_t>(), parent_segment = r.get<std::uint16_t>();
  const auto rva = map_.rva(segment, offset), parent = map_.rva(parent_segment, parent_offset);
  if (!r.ok() || !rva || !parent || out_.functions.empty()) return;
  // It follows its function in the records of the module.
  for (std::size_t i = out_.functions.size(), left = 64; i-- > 0 && left-- > 0;) {
    if (out_.functions[i].rva != *parent) continue;
    out_.functions.push_back({*rva, size, out_.functions[i].name, 0, 0});
    return;
  }
}

void CodeViewReader::inline_site(Bytes annotations, std::uint32_t inlinee) {
  if (open_function_ == SIZE_MAX) return;
  FunctionRecord &function = out_.functions[open_function_];
  const auto known = inlinees_.find(inlinee);
  std::uint32_t file = known == inlinees_.end() ? 0 : file_name(known->second.file),
                line = known == inlinees_.end() ? 0 : known->second.line, offset = 0;
  const std::uint32_t name = function_name(inlinee), end = function.size;
  bool open = false;
  const auto close = [&](std::uint32_t at) { // the stretch under way ends there
    if (!open) return;
    InlineRecord &last = out_.inlines.back();
    last.end = function.rva + std::min(at, end);
    if (last.end <= last.rva) out_.inlines.pop_back();
    open = false;
  };
  const auto begin = [&](std::uint32_t at) {
    close(at);
    offset = at;
    if (at >= end || out_.inlines.size() >= kNothing) return;
    out_.inlines.push_back({function.rva + at, 0, name, file, is_line(line) ? line : 0, depth_});
    open = true;
  };
  Reader r(annotations);
  while (r.more() && r.ok()) {
    const std::uint32_t operation = packed(r);
    if (operation == 0) break; // padding
    const std::uint32_t value = packed(r);
    switch (operation) {
    case 1: begin(value); break;
    case 2: break; // base of code offsets: not used by compilers
    case 3: begin(offset + value); break;
    case 4:
      close(offset + value);
      offset += value;
      break;
    case 5: file = file_name(value); break;
    case 6: line += signed_packed(value); break;
    case 11:
      line += signed_packed(value >> 4);
      begin(offset + (value & 0xF));
      break;
    case 12: {
      const std::uint32_t step = packed(r);
      begin(offset + step);
      close(offset + value);
      break;
    }
    default: break; // ends of lines, columns
    }
  }
  close(end);
  function.inlines = static_cast<std::uint32_t>(out_.inlines.size()) - function.first_inline;
}

void CodeViewReader::lines_of(Bytes lines) {
  struct Part {
    std::uint32_t kind;
    Bytes bytes;
  };
  std::vector<Part> parts;
  Reader reader(lines);
  while (reader.more(8)) {
    const auto kind = reader.get<std::uint32_t>(), size = reader.get<std::uint32_t>();
    const Bytes bytes = reader.take(size);
    if (!reader.ok()) break;
    if (kind == kChecksums) checksums_ = bytes;
    if (kind == kLines || kind == kInlineeLines) parts.push_back({kind, bytes});
    reader.align(4);
  }
  for (const Part &part : parts) {
    if (part.kind == kLines)
      line_block(part.bytes);
    else
      inlinees(part.bytes);
  }
}

void CodeViewReader::line_block(Bytes block) {
  Reader r(block);
  const auto offset = r.get<std::uint32_t>();
  const auto segment = r.get<std::uint16_t>(), flags = r.get<std::uint16_t>();
  const auto size = r.get<std::uint32_t>();
  const std::optional<std::uint32_t> base = map_.rva(segment, offset);
  if (!r.ok() || !base || size == 0) return;
  while (r.more(12)) {
    const auto file = r.get<std::uint32_t>(), count = r.get<std::uint32_t>();
    r.get<std::uint32_t>(); // size of this block
    const std::uint32_t name = file_name(file);
    for (std::uint32_t i = 0; i < count && r.more(8); ++i) {
      const auto at = r.get<std::uint32_t>(), line = r.get<std::uint32_t>() & 0xFF'FFFF;
      if (at < size) out_.lines.push_back({*base + at, name, is_line(line) ? line : 0});
    }
    if ((flags & 1) != 0) r.take(std::size_t{count} * 4); // columns
  }
  out_.lines.push_back({*base + size, 0, 0});
}

void CodeViewReader::inlinees(Bytes block) {
  Reader r(block);
  const bool more_files = r.get<std::uint32_t>() == 1;
  while (r.more(12)) {
    const auto id = r.get<std::uint32_t>();
    const auto file = r.get<std::uint32_t>(), line = r.get<std::uint32_t>();
    inlinees_[id] = {file, line};
    if (more_files) r.take(std::size_t{r.get<std::uint32_t>()} * 4);
  }
}

namespace {

// Addresses that procedures cover. There a public symbol says nothing more, and undecorating names takes
// long.
class Covered {
public:
  explicit Covered(const std::vector<FunctionRecord> &procedures) {
    ranges_.reserve(procedures.size());
    for (const FunctionRecord &p : procedures)
      ranges_.push_back({p.rva, std::max(p.size, 1u)});
    std::ranges::sort(ranges_, {}, [](const Range &r) { return std::pair(r.rva, r.size); });
  }
  [[nodiscard]] bool has(std::uint32_t rva) const {
    auto after = std::ranges::upper_bound(ranges_, rva, {}, &Range::rva);
    if (after == ranges_.begin()) return false;
    // Of several that begin there, which one stays is not known yet: the shortest.
    const auto first =
        std::ranges::lower_bound(ranges_.begin(), after, std::prev(after)->rva, {}, &Range::rva);
    return rva - first->rva < first->size;
  }

private:
  struct Range {
    std::uint32_t rva, size;
  };
  std::vector<Range> ranges_;
};

} // namespace

void CodeViewReader::publics(Bytes records) {
  const Covered covered(out_.functions);
  Reader reader(records);
  while (reader.more(4)) {
    const auto size = reader.get<std::uint16_t>();
    if (size < 2) break;
    Reader record(reader.take(size));
    if (!reader.ok()) break;
    if (record.get<std::uint16_t>() != kPublic) continue;
    record.get<std::uint32_t>(); // flags: not every linker sets them
    const auto offset = record.get<std::uint32_t>();
    const auto segment = record.get<std::uint16_t>();
    const std::string_view name = record.text();
    if (!record.ok() || name.empty() || !map_.is_code(segment)) continue;
    if (const auto rva = map_.rva(segment, offset); rva && !covered.has(*rva))
      out_.publics.push_back({*rva, 0, out_.strings.add(undecorated(name, x86_)), 0, 0});
  }
}

void CodeViewReader::ends() {
  for (const Section &section : map_.in_image())
    if (section.code) out_.ends.push_back({section.rva + section.size, 0, kNothing, 0, 0});
}

} // namespace etwrelog::symbols
