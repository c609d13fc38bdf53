#include "archive/wrapper.hpp"

#include "base/errors.hpp"
#include "read/unwrap.hpp"
#include "zip/directory.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

using codec::deflate::Measured;

namespace {

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

// Of a text in a member's head with the zero behind it; 0 where there is none.
std::uint64_t text_size(const read::Input &input, std::uint64_t at) {
  constexpr std::size_t kUsual = 256, kLongest = 64u << 10;
  std::vector<std::uint8_t> bytes;
  for (const std::size_t most : {kUsual, kLongest}) {
    bytes.resize(most);
    const Result<std::size_t> got = input.read_at(at, bytes);
    if (!got) return 0;
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(*got);
    const auto zero = std::find(bytes.begin(), end, 0);
    if (zero != end) return static_cast<std::uint64_t>(zero - bytes.begin()) + 1;
  }
  return 0;
}

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
    const std::uint64_t size = text_size(input, at);
    if (size == 0) return 0;
    at += size;
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

// --- zip: where its central directory has them

// The piece that a member is, if it can be one.
std::optional<WrapperPiece> piece_of(const zip::Member &member) {
  if ((member.flags & zip::kEncrypted) != 0 ||
      (member.method != zip::kStored && member.method != zip::kDeflated))
    return std::nullopt;
  WrapperPiece piece;
  piece.deflated = member.method == zip::kDeflated;
  piece.at = member.data_at;
  piece.end = member.data_at + member.packed;
  piece.size = member.size;
  if (!piece.deflated && member.packed != member.size) return std::nullopt;
  return piece;
}

Planned plan_zip(const read::Input &wrapper, Inputs traces, const std::stop_token &stop) {
  WrapperPlan plan;
  const Result<std::vector<zip::Member>> members = zip::members_of(wrapper);
  if (!members) return Planned(std::nullopt);
  const Fetch bytes = fetch_of(wrapper, stop);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const read::Input &trace = *traces[i];
    const auto member = std::ranges::find_if(*members, [&trace](const zip::Member &m) {
      return m.file && m.size == trace.size() && m.name == trace.member();
    });
    if (member == members->end()) return Planned(std::nullopt);
    std::optional<WrapperPiece> piece = piece_of(*member);
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
