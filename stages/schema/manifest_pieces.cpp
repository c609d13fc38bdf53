#include "schema/manifest_pieces.hpp"

#include "schema/entry.hpp"

#include <algorithm>
#include <tuple>

namespace etwrelog::schema {
namespace {

constexpr std::size_t kMaxPieces = 1u << 18;                     // of all manifests of a trace
constexpr std::size_t kMaxWhole = 4096, kMaxTorn = kMaxProblems; // kinds of manifests that are known to be so

} // namespace

// u8 format (1 XML), u8 major, u8 minor, u8 magic 0x5B, u16 pieces, u16 number of this one, UTF-8 text.
std::optional<ManifestPiece> ManifestPiece::of(const EventView &event, std::uint32_t machine) {
  constexpr std::size_t kHeader = 8;
  constexpr std::uint8_t kXml = 1, kMagic = 0x5B;
  if (!event.is_event() || event.id() != format::kManifestEventId) return std::nullopt;
  const Bytes payload = event.payload();
  if (payload.size() <= kHeader || payload[0] != kXml || payload[3] != kMagic) return std::nullopt;
  ManifestPiece piece;
  piece.provider = event.provider();
  piece.machine = machine, piece.process = event.process_id(), piece.thread = event.thread_id();
  piece.total = std::max<unsigned>(load<std::uint16_t>(payload.data() + 4), 1);
  piece.number = load<std::uint16_t>(payload.data() + 6);
  piece.text = {reinterpret_cast<const char *>(payload.data()) + kHeader, payload.size() - kHeader};
  return piece;
}

void ManifestJoiner::drop(std::map<Thread, Begun>::iterator begun) {
  if (torn_.size() < kMaxTorn) torn_.emplace(begun->first.provider, begun->second.total);
  bytes_ -= begun->second.bytes;
  begun_.erase(begun);
}

std::optional<std::string> ManifestJoiner::add(const ManifestPiece &piece) {
  if (piece.total <= 1) return std::string(piece.text);
  if (piece.number >= piece.total) return std::nullopt;
  const Thread of{piece.provider, piece.machine, piece.process, piece.thread};
  auto at = begun_.find(of);
  if (at != begun_.end() && (piece.number == 0 || piece.total != at->second.total)) {
    drop(at);
    at = begun_.end();
  }
  if (at == begun_.end() && piece.number != 0) { // what was in front of it is lost
    if (torn_.size() < kMaxTorn) torn_.emplace(piece.provider, piece.total);
    return std::nullopt;
  }
  if (at == begun_.end() && begun_.size() >= kMaxPendingManifests) // the rest of the oldest may never come
    drop(std::ranges::min_element(begun_, {}, [](const auto &begun) { return begun.second.since; }));
  if ((at != begun_.end() && at->second.bytes + piece.text.size() > kMaxManifestPieces) ||
      bytes_ + piece.text.size() > kMaxPendingBytes) {
    too_many_ = true;
    return std::nullopt;
  }
  if (at == begun_.end()) at = begun_.try_emplace(of, Begun{.since = ++ever_begun_}).first;
  Begun &begun = at->second;
  begun.total = piece.total;
  if (!begun.pieces.try_emplace(piece.number, piece.text).second) return std::nullopt;
  begun.bytes += piece.text.size(), bytes_ += piece.text.size();
  if (begun.pieces.size() < piece.total) return std::nullopt;
  std::string whole;
  whole.reserve(begun.bytes);
  for (const auto &[number, text] : begun.pieces)
    whole += text;
  bytes_ -= begun.bytes;
  begun_.erase(at);
  if (whole_.size() < kMaxWhole) whole_.emplace(piece.provider, piece.total);
  return whole;
}

std::vector<ManifestJoiner::Kind> ManifestJoiner::torn() const {
  std::set<Kind> torn = torn_;
  for (const auto &[of, begun] : begun_)
    torn.emplace(of.provider, begun.total);
  std::erase_if(torn, [&](const Kind &kind) { return whole_.contains(kind); });
  return {torn.begin(), torn.end()};
}

std::uint32_t ManifestPieces::number_of(std::string_view text) {
  const std::size_t hash = std::hash<std::string_view>()(text);
  for (auto [at, end] = by_hash_.equal_range(hash); at != end; ++at)
    if (*texts_[at->second] == text) return at->second;
  if (bytes_ + text.size() > kMaxPendingBytes) return kNoRoom;
  bytes_ += text.size();
  texts_.push_back(std::make_shared<const std::string>(text));
  by_hash_.emplace(hash, static_cast<std::uint32_t>(texts_.size() - 1));
  return static_cast<std::uint32_t>(texts_.size() - 1);
}

bool ManifestPieces::take(const EventView &event, std::int64_t time, std::uint32_t machine) {
  const std::optional<ManifestPiece> piece = ManifestPiece::of(event, machine);
  if (!piece || piece->total <= 1) return false;
  add(*piece, time);
  return true;
}

void ManifestPieces::add(const ManifestPiece &piece, std::int64_t time) {
  const std::uint32_t text = pieces_.size() < kMaxPieces ? number_of(piece.text) : kNoRoom;
  too_many_ = too_many_ || text == kNoRoom;
  if (text == kNoRoom) return;
  pieces_.push_back({piece, time, text});
  pieces_.back().piece.text = {};
}

void ManifestPieces::merge(const ManifestPieces &later) {
  too_many_ = too_many_ || later.too_many_;
  for (Kept kept : later.pieces_) {
    kept.piece.text = *later.texts_[kept.text];
    add(kept.piece, kept.time);
  }
}

std::vector<ManifestPiece> ManifestPieces::in_order() const {
  struct Place {
    const Kept *kept;
    std::size_t round; // how many of this number the thread has had at that time
  };
  const auto thread = [](const Kept &kept) {
    return std::tie(kept.piece.provider, kept.piece.machine, kept.piece.process, kept.piece.thread);
  };
  std::vector<Place> places;
  for (const Kept &kept : pieces_)
    places.push_back({&kept, 0});
  std::ranges::stable_sort(places, {}, [&](const Place &place) {
    return std::tuple(place.kept->time, thread(*place.kept), place.kept->piece.number);
  });
  for (std::size_t i = 1; i < places.size(); ++i) {
    const Kept &a = *places[i - 1].kept, &b = *places[i].kept;
    if (a.time == b.time && thread(a) == thread(b) && a.piece.number == b.piece.number)
      places[i].round = places[i - 1].round + 1;
  }
  std::ranges::stable_sort(places, {}, [&](const Place &place) {
    return std::tuple(place.kept->time, thread(*place.kept), place.round, place.kept->piece.number);
  });
  std::vector<ManifestPiece> pieces;
  for (const Place &place : places) {
    pieces.push_back(place.kept->piece);
    pieces.back().text = *texts_[place.kept->text];
  }
  return pieces;
}

} // namespace etwrelog::schema
