#include "stacks/stack_cache_sim.hpp"

#include <algorithm>
#include <cstring>

namespace etwrelog::stacks {

namespace {

// Where non-paged pool lies on Windows 7 and 8; readers only need keys to be distinct.
constexpr std::uint64_t kPool64 = 0xFFFF'FA80'0300'0000ull, kPool32 = 0x8500'0000ull;

std::size_t pieces_of(std::size_t depth) {
  return (depth + StackCacheSim::kPieceFrames - 1) / StackCacheSim::kPieceFrames;
}

} // namespace

StackCacheSim::Options StackCacheSim::clamp(Options options) {
  options.buckets = std::clamp(options.buckets, kMinBuckets, kMaxBuckets);
  options.bytes = std::clamp(options.bytes, kMinBytes, kMaxBytes);
  return options;
}

StackCacheSim::StackCacheSim(const Options &options)
    : pointer_size_(options.pointer_size), start_(options.start), pool_(options.bytes / kPieceBytes),
      buckets_(std::max(1u, options.buckets)) {}

std::uint64_t StackCacheSim::key_of(std::uint32_t piece) const {
  return (pointer_size_ == 8 ? kPool64 : kPool32) + std::uint64_t{piece} * kPieceBytes;
}

StackCacheSim::Outcome StackCacheSim::insert(std::span<const std::uint64_t> frames) {
  Outcome outcome;
  std::uint64_t hash = 0;
  for (const std::uint64_t frame : frames)
    hash += frame;
  Bucket &bucket = buckets_[hash % buckets_.size()];

  for (unsigned i = 0; i < bucket.count; ++i) {
    if (bucket.entries[i].hash != hash || !equals(bucket.entries[i], frames)) continue;
    std::rotate(bucket.entries, bucket.entries + i, bucket.entries + i + 1);
    ++counts_.hits;
    outcome.kind = Kind::hit;
    outcome.key = key_of(bucket.entries[0].piece);
    return outcome;
  }

  if (!frames.empty() && bucket.count == kStacksPerBucket) {
    const Entry &last = bucket.entries[--bucket.count];
    copy_frames(last);
    outcome.evicted = true;
    outcome.evicted_key = key_of(last.piece);
    outcome.evicted_frames = scratch_;
    release(last);
    ++counts_.evictions;
  }
  const std::size_t pieces = pieces_of(frames.size());
  if (pieces == 0 || pool_ - counts_.pieces < pieces) {
    ++counts_.plain;
    return outcome;
  }

  Entry entry{kNoPiece, static_cast<std::uint32_t>(frames.size()), hash};
  // From the last piece to the first, so that each can name its successor.
  for (std::size_t i = pieces; i-- > 0;) {
    const std::uint32_t piece = take_piece();
    const std::size_t begin = i * kPieceFrames, count = std::min(kPieceFrames, frames.size() - begin);
    std::memcpy(&frames_[piece * kPieceFrames], &frames[begin], count * sizeof(std::uint64_t));
    next_[piece] = entry.piece;
    entry.piece = piece;
  }
  counts_.most_pieces = std::max(counts_.most_pieces, counts_.pieces);
  bucket.entries[bucket.count++] = entry;
  if (start_ == Start::front)
    std::rotate(bucket.entries, bucket.entries + bucket.count - 1, bucket.entries + bucket.count);
  ++counts_.fresh;
  outcome.kind = Kind::fresh;
  outcome.key = key_of(entry.piece);
  return outcome;
}

bool StackCacheSim::equals(const Entry &entry, std::span<const std::uint64_t> frames) const {
  if (entry.depth != frames.size()) return false;
  std::size_t done = 0;
  for (std::uint32_t piece = entry.piece; done < frames.size(); piece = next_[piece]) {
    const std::size_t count = std::min(kPieceFrames, frames.size() - done);
    if (std::memcmp(&frames_[piece * kPieceFrames], &frames[done], count * sizeof(std::uint64_t)) != 0)
      return false;
    done += count;
  }
  return true;
}

void StackCacheSim::copy_frames(const Entry &entry) {
  scratch_.resize(entry.depth);
  std::size_t done = 0;
  for (std::uint32_t piece = entry.piece; done < entry.depth; piece = next_[piece]) {
    const std::size_t count = std::min<std::size_t>(kPieceFrames, entry.depth - done);
    std::memcpy(&scratch_[done], &frames_[piece * kPieceFrames], count * sizeof(std::uint64_t));
    done += count;
  }
}

void StackCacheSim::release(const Entry &entry) {
  for (std::uint32_t piece = entry.piece; piece != kNoPiece;) {
    const std::uint32_t next = next_[piece];
    next_[piece] = free_;
    free_ = piece;
    --counts_.pieces;
    piece = next;
  }
}

// The caller has checked that there is one.
std::uint32_t StackCacheSim::take_piece() {
  ++counts_.pieces;
  if (free_ != kNoPiece) {
    const std::uint32_t piece = free_;
    free_ = next_[piece];
    return piece;
  }
  next_.push_back(kNoPiece);
  frames_.resize(frames_.size() + kPieceFrames);
  return static_cast<std::uint32_t>(next_.size() - 1);
}

} // namespace etwrelog::stacks
