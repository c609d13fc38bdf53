// EventSource manifests that travel in several events: the pieces of each are joined by provider, process and
// thread in the order of time. In a file they may stand in any order, as each processor has its own buffers
// and the thread may move in between.
#pragma once

#include "etwrelog/schema.hpp"

#include <map>
#include <memory>
#include <set>
#include <unordered_map>

namespace etwrelog::schema {

// Bounds of manifests in pieces: of one, and of those of which pieces are missing. Of more than that many the
// oldest is given up.
inline constexpr std::size_t kMaxManifestPieces = 16u << 20; // bytes
inline constexpr std::size_t kMaxPendingManifests = 64, kMaxPendingBytes = 64u << 20;

// Of a manifest event: all of the text, or a piece of it.
struct ManifestPiece {
  Guid provider;
  std::uint32_t machine = 0, process = 0, thread = 0;
  unsigned number = 0, total = 1; // a total of 1 is a manifest
  std::string_view text;

  // None if the event has none. The text is the event's.
  [[nodiscard]] static std::optional<ManifestPiece> of(const EventView &event, std::uint32_t machine = 0);
};

// Takes pieces in the order of time: the first one begins a manifest anew.
class ManifestJoiner {
public:
  // The manifest that the piece is the last of.
  std::optional<std::string> add(const ManifestPiece &piece);

  // Whose manifests are not whole so far, and how many pieces they have. Not those of a provider of which
  // another one in as many pieces is: it is nearly always the same.
  using Kind = std::pair<Guid, unsigned>;
  [[nodiscard]] std::vector<Kind> torn() const;
  // More came than memory is given: some are not read.
  [[nodiscard]] bool too_many() const { return too_many_; }

private:
  struct Thread {
    Guid provider;
    std::uint32_t machine, process, thread;
    auto operator<=>(const Thread &) const = default;
  };
  struct Begun {
    std::uint64_t since = 0; // its number among all that were begun
    unsigned total = 0;
    std::map<unsigned, std::string> pieces = {};
    std::size_t bytes = 0;
  };
  void drop(std::map<Thread, Begun>::iterator begun);

  std::map<Thread, Begun> begun_;
  std::uint64_t ever_begun_ = 0;
  std::size_t bytes_ = 0; // of all of them
  std::set<Kind> torn_, whole_;
  bool too_many_ = false;
};

// Keeps pieces that come in any order.
class ManifestPieces {
public:
  // Whether the event is a piece, and not all of a manifest: then it is kept. Of events that teach
  // (SchemaCatalog::teaches).
  bool take(const EventView &event, std::int64_t time, std::uint32_t machine = 0);
  void add(const ManifestPiece &piece, std::int64_t time);
  // Those of `later` stand behind these in the file.
  void merge(const ManifestPieces &later);
  void clear() { *this = {}; }
  [[nodiscard]] bool empty() const { return pieces_.empty() && !too_many_; }
  // More came than memory is given.
  [[nodiscard]] bool too_many() const { return too_many_; }

  // In the order of time; where that is the same for a thread, in that of the file and of numbers. Their
  // texts are these pieces'.
  [[nodiscard]] std::vector<ManifestPiece> in_order() const;

private:
  struct Kept {
    ManifestPiece piece; // but for its text
    std::int64_t time;
    std::uint32_t text; // in texts_: threads and sessions repeat theirs
  };
  std::uint32_t number_of(std::string_view text); // kNoRoom: there are too many

  static constexpr std::uint32_t kNoRoom = 0xFFFF'FFFF;
  std::vector<Kept> pieces_;
  std::vector<std::shared_ptr<const std::string>> texts_;
  std::unordered_multimap<std::size_t, std::uint32_t> by_hash_;
  std::size_t bytes_ = 0;
  bool too_many_ = false;
};

// Learns the manifests of what was collected, and notes in problems() which are not whole.
void learn_pieces(SchemaCatalog &catalog, const ManifestPieces &pieces);
// SchemaCatalog::add_manifest; `name`: what problems() calls it.
Result<void> add_manifest(SchemaCatalog &catalog, std::string_view xml, const std::string &name);

} // namespace etwrelog::schema
