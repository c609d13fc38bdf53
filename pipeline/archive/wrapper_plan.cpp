#include "archive/wrapper.hpp"

#include "base/errors.hpp"
#include "read/unwrap.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

using codec::deflate::Measured;

namespace {

constexpr std::size_t kMostPieces = 1u << 20;

using Inputs = std::span<const std::unique_ptr<read::Input>>;
using Planned = Result<std::optional<WrapperPlan>>;

// Bytes at a place; empty if there are not so many.
std::vector<std::uint8_t> bytes_at(const read::Input &input, std::uint64_t at, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  const Result<std::size_t> got = input.read_at(at, bytes);
  if (!got || *got != count) bytes.clear();
  return bytes;
}

// --- gzip: members one behind the other

constexpr std::size_t kGzipHead = 10, kGzipTail = 8;

// Where the deflate stream of a member begins; 0 where there is none.
std::uint64_t gzip_stream(const read::Input &input, std::uint64_t at) {
  constexpr unsigned kHeaderCheck = 2, kExtra = 4, kName = 8, kComment = 16, kReserved = 0xE0;
  const std::vector<std::uint8_t> head = bytes_at(input, at, kGzipHead);
  if (head.empty() || head[0] != 0x1F || head[1] != 0x8B || head[2] != 8 || (head[3] & kReserved) != 0)
    return 0;
  const unsigned flags = head[3];
  at += kGzipHead;
  if ((flags & kExtra) != 0) {
    const std::vector<std::uint8_t> size = bytes_at(input, at, 2);
    if (size.empty()) return 0;
    at += 2 + load<std::uint16_t>(size.data());
  }
  for (const unsigned text : {kName, kComment}) {
    if ((flags & text) == 0) continue;
    constexpr std::size_t kMostHeadText = 64u << 10;
    std::vector<std::uint8_t> bytes(kMostHeadText);
    const Result<std::size_t> got = input.read_at(at, bytes);
    if (!got) return 0;
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(*got);
    const auto zero = std::find(bytes.begin(), end, 0);
    if (zero == end) return 0;
    at += static_cast<std::uint64_t>(zero - bytes.begin()) + 1;
  }
  return (flags & kHeaderCheck) != 0 ? at + 2 : at;
}

Planned plan_gzip(const read::Input &wrapper, const read::Input &trace, const std::stop_token &stop) {
  WrapperPlan plan;
  plan.order = {0};
  const Fetch bytes = fetch_of(wrapper, stop), content = fetch_of(trace, stop);
  std::uint64_t from = 0;
  for (std::uint64_t at = 0;;) {
    const std::uint64_t stream = gzip_stream(wrapper, at);
    if (stream == 0) break; // padding, if anything
    if (stop.stop_requested()) return base::cancelled().in(wrapper.name());
    const std::optional<Measured> measured =
        codec::deflate::measure(bytes, stream, {content, from, trace.size() - from});
    if (!measured || plan.pieces.size() == kMostPieces) return Planned(std::nullopt);
    plan.pieces.push_back({true, stream, measured->end, 0, from, measured->decoded});
    from += measured->decoded;
    at = measured->end + kGzipTail;
  }
  if (from != trace.size()) return Planned(std::nullopt);
  return Planned(std::move(plan));
}

// --- zip: what its central directory says

struct Member {
  std::string name;
  unsigned flags = 0, method = 0;
  std::uint64_t packed = 0, size = 0, head_at = 0;
};

constexpr std::size_t kZipEnd = 22, kZip64Locator = 20, kZip64End = 56, kZipEntry = 46, kZipHead = 30;
constexpr std::uint64_t kMostDirectory = 64u << 20;

bool is(const std::uint8_t *at, std::uint8_t third, std::uint8_t fourth) {
  return at[0] == 'P' && at[1] == 'K' && at[2] == third && at[3] == fourth;
}

struct Directory {
  std::uint64_t at = 0, size = 0;
};

std::optional<Directory> find_directory(const read::Input &zip) {
  const auto reach =
      static_cast<std::size_t>(std::min<std::uint64_t>(zip.size(), kZipEnd + std::uint64_t{0xFFFF}));
  const std::uint64_t begin = zip.size() - reach;
  const std::vector<std::uint8_t> tail = bytes_at(zip, begin, reach);
  if (tail.size() < kZipEnd) return std::nullopt;
  for (std::size_t at = tail.size() - kZipEnd + 1; at-- > 0;) {
    const std::uint8_t *end = tail.data() + at;
    if (!is(end, 5, 6) || load<std::uint16_t>(end + 20) != tail.size() - at - kZipEnd) continue;
    const Directory plain{load<std::uint32_t>(end + 16), load<std::uint32_t>(end + 12)};
    if (plain.at != 0xFFFF'FFFF && plain.size != 0xFFFF'FFFF) return plain;
    if (begin + at < kZip64Locator) return std::nullopt;
    const std::vector<std::uint8_t> locator = bytes_at(zip, begin + at - kZip64Locator, kZip64Locator);
    if (locator.empty() || !is(locator.data(), 6, 7)) return std::nullopt;
    const std::vector<std::uint8_t> large = bytes_at(zip, load<std::uint64_t>(locator.data() + 8), kZip64End);
    if (large.empty() || !is(large.data(), 6, 6)) return std::nullopt;
    return Directory{load<std::uint64_t>(large.data() + 48), load<std::uint64_t>(large.data() + 40)};
  }
  return std::nullopt;
}

// Sizes and place that did not fit the entry.
void read_large(Member &member, Bytes extra) {
  while (extra.size() >= 4) {
    const unsigned kind = load<std::uint16_t>(extra.data());
    const std::size_t size = load<std::uint16_t>(extra.data() + 2);
    extra = extra.subspan(4);
    if (size > extra.size()) return;
    Bytes values = extra.first(size);
    extra = extra.subspan(size);
    if (kind != 1) continue;
    for (std::uint64_t *const value : {&member.size, &member.packed, &member.head_at}) {
      if (*value != 0xFFFF'FFFF || values.size() < 8) continue;
      *value = load<std::uint64_t>(values.data());
      values = values.subspan(8);
    }
    return;
  }
}

std::vector<Member> members_of(const read::Input &zip) {
  std::vector<Member> members;
  const std::optional<Directory> directory = find_directory(zip);
  if (!directory || directory->size > kMostDirectory || directory->size > zip.size()) return members;
  const std::vector<std::uint8_t> bytes =
      bytes_at(zip, directory->at, static_cast<std::size_t>(directory->size));
  Bytes rest(bytes);
  while (rest.size() >= kZipEntry && is(rest.data(), 1, 2)) {
    const std::size_t name = load<std::uint16_t>(rest.data() + 28),
                      extra = load<std::uint16_t>(rest.data() + 30),
                      comment = load<std::uint16_t>(rest.data() + 32);
    if (kZipEntry + name + extra + comment > rest.size()) break;
    Member &member = members.emplace_back();
    member.flags = load<std::uint16_t>(rest.data() + 8);
    member.method = load<std::uint16_t>(rest.data() + 10);
    member.packed = load<std::uint32_t>(rest.data() + 20);
    member.size = load<std::uint32_t>(rest.data() + 24);
    member.head_at = load<std::uint32_t>(rest.data() + 42);
    const Bytes text = rest.subspan(kZipEntry, name);
    member.name.assign(text.begin(), text.end());
    read_large(member, rest.subspan(kZipEntry + name, extra));
    rest = rest.subspan(kZipEntry + name + extra + comment);
  }
  return members;
}

// The piece that a member is, if it can be one.
std::optional<WrapperPiece> piece_of(const read::Input &zip, const Member &member) {
  constexpr unsigned kEncrypted = 1, kStored = 0, kDeflated = 8;
  if ((member.flags & kEncrypted) != 0 || (member.method != kStored && member.method != kDeflated))
    return std::nullopt;
  const std::vector<std::uint8_t> head = bytes_at(zip, member.head_at, kZipHead);
  if (head.empty() || !is(head.data(), 3, 4)) return std::nullopt;
  WrapperPiece piece;
  piece.deflated = member.method == kDeflated;
  piece.at = member.head_at + kZipHead + load<std::uint16_t>(head.data() + 26) +
             load<std::uint16_t>(head.data() + 28);
  piece.size = member.size;
  if (piece.at > zip.size() || member.packed > zip.size() - piece.at) return std::nullopt;
  piece.end = piece.at + member.packed;
  if (!piece.deflated && member.packed != member.size) return std::nullopt;
  return piece;
}

Planned plan_zip(const read::Input &wrapper, Inputs traces, const std::stop_token &stop) {
  WrapperPlan plan;
  const std::vector<Member> members = members_of(wrapper);
  const Fetch bytes = fetch_of(wrapper, stop);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const read::Input &trace = *traces[i];
    const auto member = std::ranges::find_if(
        members, [&trace](const Member &m) { return m.size == trace.size() && m.name == trace.member(); });
    if (member == members.end()) return Planned(std::nullopt);
    std::optional<WrapperPiece> piece = piece_of(wrapper, *member);
    if (!piece) return Planned(std::nullopt);
    piece->trace = i;
    if (stop.stop_requested()) return base::cancelled().in(wrapper.name());
    if (piece->deflated) {
      const std::optional<Measured> measured =
          codec::deflate::measure(bytes, piece->at, {fetch_of(trace, stop), 0, trace.size()});
      if (!measured || measured->decoded != trace.size() || measured->end > piece->end)
        return Planned(std::nullopt);
      piece->end = measured->end;
    }
    plan.pieces.push_back(*piece);
  }
  std::ranges::sort(plan.pieces, {}, &WrapperPiece::at);
  for (std::size_t i = 0; i < plan.pieces.size(); ++i) {
    if (i > 0 && plan.pieces[i].at < plan.pieces[i - 1].end) return Planned(std::nullopt);
    plan.order.push_back(plan.pieces[i].trace);
  }
  return Planned(std::move(plan));
}

} // namespace

Fetch fetch_of(const read::Input &input, const std::stop_token &stop) {
  return [&input, stop](std::uint64_t at, MutableBytes into) -> Result<std::size_t> {
    if (stop.stop_requested()) return base::cancelled().in(input.name());
    return input.read_at(at, into);
  };
}

bool may_be_wrapped(const read::Input &input) {
  const read::Wrapping wrapping = read::wrapping_of(input);
  return wrapping == read::Wrapping::gzip || wrapping == read::Wrapping::zip;
}

Planned plan_wrapper(const read::Input &wrapper, Inputs traces, const std::stop_token &stop) {
  if (traces.empty() || traces.size() > etlz::kMostWrappedTraces) return Planned(std::nullopt);
  return read::wrapping_of(wrapper) == read::Wrapping::zip ? plan_zip(wrapper, traces, stop)
                                                           : plan_gzip(wrapper, *traces.front(), stop);
}

} // namespace etwrelog::pipeline
