// The kernel's stack cache (EVENT_TRACE stack caching, from Windows 8): what it would log for a run of
// stacks.
//
// A hash table of `buckets` buckets, chosen by division, with at most four stacks each. A stack occupies
// pieces of 0x128 bytes with 32 frames each, taken from a fixed pool. A stack that is found logs a reference
// to its key; a new one logs a reference too, after the last stack of a full bucket has made room and logged
// its definition; when the pool has too few pieces the stack is logged in full.
//
// Order inside a bucket: a hit moves to the front, and the last goes when there is no room. Where a new stack
// starts is not documented. At the front would be the plain "most recently used" order; but in
// net.4.5.2.x64.etl 1,827 of 1,909 evicted stacks had been used once, and only a start at the end gives that
// (1,865; at the front 1,218). So the end is what is assumed, and Start::front is there to compare. Which sum
// the kernel divides is not known either: here it is the sum of the frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etwrelog::stacks {

class StackCacheSim {
public:
  static constexpr unsigned kMinBuckets = 256, kMaxBuckets = 4096, kStacksPerBucket = 4;
  static constexpr std::size_t kMinBytes = 3u << 20, kMaxBytes = 50u << 20;
  static constexpr std::size_t kPieceBytes = 0x128, kPieceFrames = 32;

  enum class Start : std::uint8_t { end, front }; // of a new stack in its bucket
  struct Options {
    unsigned buckets = kMinBuckets;
    std::size_t bytes = kMinBytes;
    unsigned pointer_size = 8; // of the keys
    Start start = Start::end;
  };
  // What Windows makes of a setting.
  [[nodiscard]] static Options clamp(Options options);

  enum class Kind : std::uint8_t {
    hit,   // log a reference to `key`
    fresh, // the same, and the cache now holds the stack
    plain, // log the stack itself
  };
  struct Outcome {
    Kind kind = Kind::plain;
    std::uint64_t key = 0;
    bool evicted = false; // log this definition first: a delete
    std::uint64_t evicted_key = 0;
    std::span<const std::uint64_t> evicted_frames; // valid until the next call
  };

  explicit StackCacheSim(const Options &options); // taken as they are, at least one bucket

  // `frames` innermost first; not empty, or it is plain.
  Outcome insert(std::span<const std::uint64_t> frames);

  // Calls visit(key, frames) for every stack held and empties the cache: the definitions of a rundown.
  template <class Visit> void run_down(Visit &&visit) {
    for (Bucket &bucket : buckets_) {
      for (unsigned i = 0; i < bucket.count; ++i) {
        copy_frames(bucket.entries[i]);
        visit(key_of(bucket.entries[i].piece), std::span<const std::uint64_t>(scratch_));
        release(bucket.entries[i]);
      }
      bucket.count = 0;
    }
  }

  struct Counts {
    std::uint64_t hits = 0, fresh = 0, plain = 0, evictions = 0;
    std::size_t pieces = 0, most_pieces = 0; // in use now, and at the most
  };
  [[nodiscard]] const Counts &counts() const { return counts_; }
  [[nodiscard]] std::size_t memory() const {
    return buckets_.size() * sizeof(Bucket) + frames_.capacity() * sizeof(std::uint64_t) +
           next_.capacity() * sizeof(std::uint32_t);
  }

private:
  struct Entry {
    std::uint32_t piece = 0, depth = 0; // the first of its pieces, which are chained
    std::uint64_t hash = 0;
  };
  struct Bucket {
    Entry entries[kStacksPerBucket];
    unsigned count = 0;
  };
  static constexpr std::uint32_t kNoPiece = 0xFFFF'FFFF;

  [[nodiscard]] std::uint64_t key_of(std::uint32_t piece) const;
  [[nodiscard]] bool equals(const Entry &entry, std::span<const std::uint64_t> frames) const;
  void copy_frames(const Entry &entry); // to scratch_
  void release(const Entry &entry);
  [[nodiscard]] std::uint32_t take_piece();

  unsigned pointer_size_;
  Start start_;
  std::size_t pool_; // pieces in all
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> frames_; // of the pieces used so far
  std::vector<std::uint32_t> next_;   // piece -> next piece of the stack or of the free list
  std::uint32_t free_ = kNoPiece;
  std::vector<std::uint64_t> scratch_;
  Counts counts_;
};

} // namespace etwrelog::stacks
