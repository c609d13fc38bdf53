// A concurrent table that holds each distinct stack once.
//
// A stack is its frames, innermost first, and a scope: whatever else must be equal for two stacks to be the
// same (the pointer size, a process id). Storage is append-only:
// - Slots: open addressing per shard, one u64 of {record, 32 bits of a hash with a secret, so that no trace
//   makes long ways}. Look-ups only read; a slot is published with release after its record is complete.
//   Inserts and growth take the shard's lock; slots never move in memory, and a miss counts only once it has
//   been repeated under the lock.
// - Records: per-shard arenas of 32-bit units. A record keeps the frames that its stack does not share with
//   an earlier one and a link to the place in the earlier record where the shared outer part starts. Frames
//   of a run that agree in their upper 32 bits are stored as their lower halves; nothing is assumed about
//   addresses.
// - A lossy index from hashes of outer parts to a recent record finds the stack to share with. It only
//   affects size: what it proposes is compared frame by frame.
// A hit is always confirmed by comparing every frame, so equal hashes never merge two stacks.
#pragma once

#include "base/seed.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace etwrelog::stacks {

using StackId = std::uint32_t;
inline constexpr StackId kNoStack = 0xFFFF'FFFF;
inline constexpr std::size_t kMaxStackFrames = 0xFFFE;

using Frames = std::span<const std::uint64_t>;

struct StackQuery {
  Frames frames;
  std::uint32_t scope = 0;
};

struct StackHash {
  std::uint64_t low = 0, high = 0; // where in a shard; which shard
};

class StackTable {
public:
  using HashFunction = StackHash (*)(Frames frames, std::uint32_t scope);

  struct Options {
    unsigned shards = 16; // rounded up to a power of two, at most 16
    std::size_t max_bytes = std::numeric_limits<std::size_t>::max(); // inserts stop here; hits still work
    HashFunction hash = nullptr; // XXH3-64 with a secret, unless a test wants collisions
  };

  struct Memory {
    std::size_t records = 0, slots = 0, directory = 0, prefixes = 0; // allocated
    std::size_t records_used = 0;
    [[nodiscard]] std::size_t total() const { return records + slots + directory + prefixes; }
  };

  StackTable();
  explicit StackTable(const Options &options);
  ~StackTable();
  StackTable(const StackTable &) = delete;
  StackTable &operator=(const StackTable &) = delete;

  // The stack's id, new or known; kNoStack if it is new and the table is full, or if it has more than
  // kMaxStackFrames frames. Ids are dense but number the stacks in an order that depends on timing:
  // StackOrder makes ids that do not. Any thread.
  [[nodiscard]] StackId intern(Frames frames, std::uint32_t scope);
  // The ids of many stacks, each as intern gives it; faster, because memory is fetched ahead. `ids`: room for
  // all.
  void intern(std::span<const StackQuery> queries, StackId *ids);
  // As intern, but never inserts.
  [[nodiscard]] StackId find(Frames frames, std::uint32_t scope) const;

  // The following need an id that intern or find returned to this thread, or to one it has synchronised with.
  [[nodiscard]] std::size_t depth(StackId id) const;
  std::uint32_t read(StackId id, std::vector<std::uint64_t> &frames) const; // replaces `frames`; the scope

  [[nodiscard]] std::uint32_t size() const { return count_.load(std::memory_order_relaxed); }
  [[nodiscard]] Memory memory() const;

private:
  class Chunks;
  class Arena;
  class PrefixIndex;
  struct Slots;
  struct Shard;
  struct Run;
  class Comparison;

  [[nodiscard]] StackHash hash(const StackQuery &query) const;
  [[nodiscard]] Shard &shard_of(const StackHash &key) const;
  [[nodiscard]] const std::uint32_t *at(std::uint32_t position) const;
  [[nodiscard]] bool equals(std::uint32_t record, const StackQuery &query) const;
  [[nodiscard]] StackId probe(const Slots &slots, std::uint32_t tag, const StackQuery &query) const;
  [[nodiscard]] StackId intern(Shard &shard, std::uint32_t tag, const StackQuery &query);
  void intern_group(std::span<const StackQuery> queries, StackId *ids);
  [[nodiscard]] StackId insert(Shard &shard, std::uint32_t tag, const StackQuery &query);
  [[nodiscard]] std::uint32_t write_record(Shard &shard, Frames stored);
  [[nodiscard]] Run shared_part(std::uint32_t record, std::size_t &outer) const;
  std::size_t decode(std::uint32_t record, std::uint64_t *out) const;
  void publish_id(StackId id, std::uint32_t record);
  void grow(Shard &shard);

  static constexpr unsigned kFirstIdChunkBits = 10;

  const HashFunction hash_;
  const base::HashSecret secret_ = base::hash_secret();
  const base::SeededHash twist_;
  const std::size_t max_bytes_;
  unsigned shard_bits_ = 0;
  std::unique_ptr<Shard[]> shards_;
  std::unique_ptr<Chunks> chunks_;
  std::unique_ptr<PrefixIndex> prefixes_;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::size_t> bytes_{0};
  // Id -> record, in chunks of doubling size.
  std::array<std::atomic<std::uint32_t *>, 32 - kFirstIdChunkBits + 1> ids_{};
};

// Ids in order of first use, for whoever sees the uses in the trace's order (one thread).
class StackOrder {
public:
  // The id that depends on the order of calls alone: 0, 1, 2, ... for each new `id`.
  StackId number(StackId id) {
    if (id >= numbers_.size()) numbers_.resize(std::size_t{id} + id / 2 + 64, kNoStack);
    StackId &number = numbers_[id];
    if (number == kNoStack) {
      number = static_cast<StackId>(ids_.size());
      ids_.push_back(id);
    }
    return number;
  }
  [[nodiscard]] StackId id(StackId number) const { return ids_[number]; }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }
  [[nodiscard]] std::size_t memory() const {
    return (numbers_.capacity() + ids_.capacity()) * sizeof(StackId);
  }

private:
  std::vector<StackId> numbers_, ids_;
};

} // namespace etwrelog::stacks
