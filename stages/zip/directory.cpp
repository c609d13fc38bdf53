#include "zip/directory.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <zlib.h>

namespace etwrelog::zip {
namespace {

constexpr std::size_t kZipEnd = 22, kZip64Locator = 20, kZip64End = 56, kZipEntry = 46, kZipHead = 30;
constexpr std::uint64_t kMostDirectory = 64u << 20;
constexpr std::uint16_t kElsewhere16 = 0xFFFF;

bool has_mark(Bytes at, std::uint8_t third, std::uint8_t fourth) {
  return at.size() >= 4 && at[0] == 'P' && at[1] == 'K' && at[2] == third && at[3] == fourth;
}
std::uint16_t u16(Bytes bytes, std::size_t at) {
  return load<std::uint16_t>(bytes.data() + at);
}
std::uint32_t u32(Bytes bytes, std::size_t at) {
  return load<std::uint32_t>(bytes.data() + at);
}
std::uint64_t u64(Bytes bytes, std::size_t at) {
  return load<std::uint64_t>(bytes.data() + at);
}

// An extra field of that kind, empty if there is none.
Bytes extra_field(Bytes extra, unsigned kind) {
  while (extra.size() >= 4) {
    const std::size_t size = u16(extra, 2);
    const bool found = u16(extra, 0) == kind;
    extra = extra.subspan(4);
    if (size > extra.size()) return {};
    if (found) return extra.first(size);
    extra = extra.subspan(size);
  }
  return {};
}
constexpr unsigned kLargeExtra = 0x0001, kUnicodeNameExtra = 0x7075;

std::string name_of(Bytes raw, Bytes extra, unsigned made_on) {
  // Info-ZIP has the name in UTF-8 there, for as long as nobody has renamed the member.
  constexpr std::size_t kBefore = 5;
  if (const Bytes unicode = extra_field(extra, kUnicodeNameExtra);
      unicode.size() > kBefore && unicode[0] == 1 &&
      u32(unicode, 1) == crc32(0, raw.data(), static_cast<uInt>(raw.size())))
    raw = unicode.subspan(kBefore);
  std::string name(raw.begin(), raw.end());
  constexpr unsigned kDos = 0;
  if (made_on == kDos && name.find('/') == std::string::npos) std::ranges::replace(name, '\\', '/');
  return name;
}

bool is_file(const Member &member, unsigned made_on, std::uint32_t attributes) {
  if (!member.name.empty() && member.name.back() == '/') return false;
  constexpr unsigned kDos = 0, kUnix = 3, kType = 0170000, kLink = 0120000, kFolder = 0040000;
  const unsigned type = (attributes >> 16) & kType;
  if (made_on == kUnix && type == kLink) return false;
  // What has content is no folder, whatever the attributes say.
  const bool folder = made_on == kDos ? (attributes & 0x10) != 0 : made_on == kUnix && type == kFolder;
  return !folder || member.size != 0;
}

class Directory {
public:
  Directory(const base::InputBytes &zip, std::size_t most) : zip_(zip), most_(most) {}

  Result<std::vector<Member>> read() {
    ETWRELOG_TRY(find());
    ETWRELOG_TRY(read_entries());
    std::ranges::stable_sort(members_, {}, &Member::head_at);
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member &member = members_[i];
      const std::uint64_t next = i + 1 < members_.size() ? members_[i + 1].head_at : at_;
      if (member.head_at != at) return stray(at, member.head_at);
      ETWRELOG_TRY(check(member, next));
      at = next;
    }
    if (at != at_) return stray(at, at_); // there are no members
    return std::move(members_);
  }

private:
  // Other programs are content with less, and give what is whole.
  base::ErrorBuilder damage(std::string what, std::uint64_t at) const {
    return base::corrupt(std::move(what)).in(zip_.name()).at(at).advise(Advice::unpack);
  }
  static base::ErrorBuilder damage(const base::InputName &member, std::string what, std::uint64_t at) {
    return base::corrupt(std::move(what)).in(member.text()).at(at);
  }
  Error stray(std::uint64_t from, std::uint64_t to) const {
    return damage("the archive has something in it that is no member", from)
        .expected("a member or the central directory")
        .found(fmt::format("{} bytes in front of 0x{:x}", to - from, to));
  }

  // As many bytes as there must be.
  [[nodiscard]] Result<std::vector<std::uint8_t>> bytes(std::uint64_t at, std::size_t count) const {
    std::vector<std::uint8_t> read(count);
    ETWRELOG_TRY_LET(got, zip_.read_at(at, read));
    if (got != count)
      return damage("the archive became shorter", at)
          .expected(fmt::format("{} bytes", count))
          .found(std::to_string(got));
    return read;
  }

  Result<void> find() {
    const auto reach =
        static_cast<std::size_t>(std::min<std::uint64_t>(zip_.size(), kZipEnd + std::uint64_t{0xFFFF}));
    const std::uint64_t begin = zip_.size() - reach;
    ETWRELOG_TRY_LET(tail, bytes(begin, reach));
    std::optional<std::uint64_t> ends; // where the comment of another one does
    for (std::size_t at = tail.size() < kZipEnd ? 0 : tail.size() - kZipEnd + 1; at-- > 0;) {
      const Bytes end = Bytes(tail).subspan(at);
      if (!has_mark(end, 5, 6)) continue;
      const std::size_t comment = u16(end, 20);
      if (comment == end.size() - kZipEnd) return take_end(begin + at, end);
      if (!ends) ends = begin + at + kZipEnd + comment;
    }
    if (ends && *ends < zip_.size())
      return damage("something follows the archive", *ends)
          .expected("the end of the file")
          .found(fmt::format("{} more bytes", zip_.size() - *ends));
    return damage("the archive is cut short, or something follows it", zip_.size())
        .expected("the end of its central directory")
        .found("the end of the file");
  }

  Result<void> take_end(std::uint64_t at, Bytes end) {
    end_ = at;
    at_ = u32(end, 16);
    size_ = u32(end, 12);
    count_ = u16(end, 10);
    count_bits_ = 0xFFFF; // with more members, some programs write what fits
    unsigned disks = u16(end, 4) | u16(end, 6);
    const bool here = size_ == at - std::min(at, at_);
    const bool elsewhere = size_ == kElsewhere || at_ == kElsewhere || count_ == kElsewhere16 ||
                           u16(end, 4) == kElsewhere16 || u16(end, 6) == kElsewhere16;
    if ((elsewhere || !here) && at >= kZip64Locator) {
      ETWRELOG_TRY_LET(locator, bytes(at - kZip64Locator, kZip64Locator));
      if (has_mark(locator, 6, 7)) {
        disks = 0;
        ETWRELOG_TRY(take_large(at - kZip64Locator, u64(locator, 8), end));
      }
    }
    if (disks != 0) return base::unsupported("the archive is one of several parts").in(zip_.name()).at(at);
    if (at_ > end_ || size_ != end_ - at_)
      return damage("end of central directory: where that begins and its size", at)
          .expected(fmt::format("to lead to 0x{:x}", end_))
          .found(fmt::format("0x{:x} and {} bytes", at_, size_));
    return {};
  }

  Result<void> take_large(std::uint64_t locator_at, std::uint64_t large_at, Bytes end) {
    constexpr std::uint64_t kCounted = 12; // what its size leaves out
    if (large_at > locator_at || locator_at - large_at < kZip64End)
      return damage("zip64 locator", locator_at)
          .expected(fmt::format("a place up to 0x{:x}",
                                locator_at - std::min<std::uint64_t>(locator_at, kZip64End)))
          .found(fmt::format("0x{:x}", large_at));
    ETWRELOG_TRY_LET(large, bytes(large_at, kZip64End));
    if (!has_mark(large, 6, 6) || u64(large, 4) != locator_at - large_at - kCounted)
      return damage("zip64 end of central directory", large_at)
          .expected(fmt::format("one up to 0x{:x}", locator_at))
          .found("another");
    if ((u32(large, 16) | u32(large, 20)) != 0)
      return base::unsupported("the archive is one of several parts").in(zip_.name()).at(large_at);
    end_ = large_at;
    count_ = u64(large, 32);
    size_ = u64(large, 40);
    at_ = u64(large, 48);
    count_bits_ = UINT64_MAX;
    const auto same = [](std::uint64_t small, std::uint64_t all_of_it, std::uint64_t elsewhere) {
      return small == elsewhere || small == all_of_it;
    };
    if (!same(u16(end, 10), count_, kElsewhere16) || !same(u32(end, 12), size_, kElsewhere) ||
        !same(u32(end, 16), at_, kElsewhere))
      return damage("zip64 end of central directory", large_at)
          .expected("what the other end of central directory says")
          .found("another directory");
    return {};
  }

  Result<void> read_entries() {
    if (size_ > kMostDirectory)
      return base::unsupported("the central directory of the archive is too large")
          .in(zip_.name())
          .at(at_)
          .expected(fmt::format("at most {} bytes", kMostDirectory))
          .found(std::to_string(size_));
    ETWRELOG_TRY_LET(read, bytes(at_, static_cast<std::size_t>(size_)));
    directory_ = std::move(read);
    Bytes rest(directory_);
    while (!rest.empty()) {
      constexpr std::size_t kSignature = 6; // of the directory, behind all entries; some programs sign it
      if (rest.size() >= kSignature && has_mark(rest, 5, 5) && rest.size() == kSignature + u16(rest, 4))
        break;
      if (members_.size() == most_)
        return base::unsupported("the archive has too many members")
            .in(zip_.name())
            .expected(fmt::format("at most {}", most_));
      const std::uint64_t at = end_ - rest.size();
      std::size_t whole = kZipEntry;
      if (rest.size() >= kZipEntry && has_mark(rest, 1, 2))
        whole += std::size_t{u16(rest, 28)} + u16(rest, 30) + u16(rest, 32);
      if (whole == kZipEntry && !has_mark(rest, 1, 2))
        return damage("central directory", at).expected("an entry").found("something else");
      if (whole > rest.size())
        return damage("central directory: entry", at)
            .expected(fmt::format("at most {} bytes", rest.size()))
            .found(std::to_string(whole));
      add(rest.first(whole), at);
      rest = rest.subspan(whole);
    }
    if ((members_.size() & count_bits_) != count_)
      return damage("end of central directory: number of entries", end_)
          .expected(std::to_string(members_.size()))
          .found(std::to_string(count_));
    return {};
  }

  void add(Bytes entry, std::uint64_t at) {
    Member &member = members_.emplace_back();
    member.entry_at = at;
    member.flags = u16(entry, 8);
    member.method = u16(entry, 10);
    member.crc = u32(entry, 16);
    member.packed = u32(entry, 20);
    member.size = u32(entry, 24);
    member.head_at = u32(entry, 42);
    const Bytes raw = entry.subspan(kZipEntry, u16(entry, 28));
    const Bytes extra = entry.subspan(kZipEntry + raw.size(), u16(entry, 30));
    Bytes large = extra_field(extra, kLargeExtra);
    for (std::uint64_t *const value : {&member.size, &member.packed, &member.head_at}) {
      if (*value != kElsewhere || large.size() < 8) continue;
      *value = u64(large, 0);
      large = large.subspan(8);
    }
    const unsigned made_on = entry[5];
    member.name = name_of(raw, extra, made_on);
    if (member.name.empty()) member.name = fmt::format("member {}", members_.size() - 1);
    member.file = is_file(member, made_on, u32(entry, 38));
  }

  // That the member is where the directory has it and says the same of itself, up to the next one.
  Result<void> check(Member &member, std::uint64_t next) const {
    const base::InputName name{zip_.name(), member.name};
    const std::uint64_t at = member.head_at;
    const Bytes entry = Bytes(directory_).subspan(static_cast<std::size_t>(member.entry_at - at_));
    const Bytes raw = entry.subspan(kZipEntry, u16(entry, 28));
    if (at > at_ || at_ - at < kZipHead + raw.size())
      return damage(name, "central directory: where the member is", member.entry_at)
          .expected(fmt::format("in front of 0x{:x}", at_))
          .found(fmt::format("0x{:x}", at));
    ETWRELOG_TRY_LET(head, bytes(at, kZipHead + raw.size()));
    if (!has_mark(head, 3, 4))
      return damage(name, "local header", at).expected("one").found("something else");
    const auto differs = [&](const char *what, std::size_t where, std::uint64_t in_directory,
                             std::uint64_t here) {
      return damage(name, fmt::format("local header: {}", what), at + where)
          .expected(fmt::format("0x{:x}, as in the central directory", in_directory))
          .found(fmt::format("0x{:x}", here));
    };
    const unsigned flags = u16(head, 6);
    if (((flags ^ member.flags) & kEncrypted) != 0) return differs("flags", 6, member.flags, flags);
    if (u16(head, 8) != member.method) return differs("method", 8, member.method, u16(head, 8));
    if (u16(head, 26) != raw.size() || !std::ranges::equal(raw, Bytes(head).subspan(kZipHead)))
      return damage(name, "local header: name", at + kZipHead)
          .expected("as in the central directory")
          .found("another");
    const std::uint64_t extra_at = at + kZipHead + raw.size();
    const std::size_t extra_size = u16(head, 28);
    if (extra_size > at_ - extra_at)
      return damage(name, "local header: extra field", at + 28)
          .expected(fmt::format("at most {} bytes", at_ - extra_at))
          .found(std::to_string(extra_size));
    member.data_at = extra_at + extra_size;
    if (member.packed > at_ - member.data_at)
      return damage(name, "central directory: compressed size", member.entry_at + 20)
          .expected(fmt::format("at most {}", at_ - member.data_at))
          .found(std::to_string(member.packed));

    std::vector<std::uint8_t> extra;
    if (u32(head, 18) == kElsewhere || u32(head, 22) == kElsewhere) {
      ETWRELOG_TRY_LET(read, bytes(extra_at, extra_size));
      extra = std::move(read);
    }
    // Programs differ in which of both sizes the extra field has.
    const Bytes large = extra_field(extra, kLargeExtra);
    const auto same = [&large](std::uint32_t here, std::uint64_t in_directory) {
      if (here == in_directory) return true;
      if (here != kElsewhere) return false;
      for (std::size_t i = 0; i + 8 <= large.size(); i += 8)
        if (u64(large, i) == in_directory) return true;
      return false;
    };
    const bool described = ((flags | member.flags) & kDescribed) != 0;
    const std::uint64_t end = member.data_at + member.packed;
    if (described && end != next) return check_descriptor(member, name, end, next);
    if (u32(head, 14) != member.crc) return differs("CRC-32", 14, member.crc, u32(head, 14));
    if (!same(u32(head, 18), member.packed))
      return differs("compressed size", 18, member.packed, u32(head, 18));
    if (!same(u32(head, 22), member.size)) return differs("size", 22, member.size, u32(head, 22));
    return check_end(name, end, next);
  }

  Result<void> check_end(const base::InputName &name, std::uint64_t end, std::uint64_t next) const {
    if (end > next)
      return damage(name, "the member reaches into what follows it", next)
          .expected(fmt::format("its end up to 0x{:x}", next))
          .found(fmt::format("0x{:x}", end));
    if (end < next) return stray(end, next);
    return {};
  }

  // CRC-32 and sizes behind a member of which they were not known when it was begun, with or without a mark.
  Result<void> check_descriptor(const Member &member, const base::InputName &name, std::uint64_t end,
                                std::uint64_t next) const {
    constexpr std::size_t kMark = 4, kShort = 12, kLarge = 20;
    if (end > next) return check_end(name, end, next);
    const std::uint64_t between = next - end;
    const bool marked = between == kMark + kShort || between == kMark + kLarge;
    if (!marked && between != kShort && between != kLarge) return stray(end, next);
    ETWRELOG_TRY_LET(read, bytes(end, static_cast<std::size_t>(between)));
    Bytes rest(read);
    bool right = !marked || has_mark(rest, 7, 8);
    if (marked) rest = rest.subspan(kMark);
    right = right && u32(rest, 0) == member.crc;
    if (rest.size() == kShort)
      right = right && u32(rest, 4) == static_cast<std::uint32_t>(member.packed) &&
              u32(rest, 8) == static_cast<std::uint32_t>(member.size);
    else
      right = right && u64(rest, 4) == member.packed && u64(rest, 12) == member.size;
    if (!right)
      return damage(name, "data descriptor", end)
          .expected(fmt::format("CRC-32 0x{:x} and the sizes {} and {}, as in the central directory",
                                member.crc, member.packed, member.size))
          .found("others");
    return {};
  }

  const base::InputBytes &zip_;
  const std::size_t most_;
  std::uint64_t at_ = 0, size_ = 0, end_ = 0; // of the directory
  std::uint64_t count_ = 0, count_bits_ = 0;
  std::vector<std::uint8_t> directory_;
  std::vector<Member> members_;
};

} // namespace

Result<std::vector<Member>> members_of(const base::InputBytes &zip, std::size_t most) {
  return Directory(zip, most).read();
}

} // namespace etwrelog::zip
