// What a StackTable consists of; for its own sources only.
#pragma once

#include "stacks/stack_table.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace etwrelog::stacks {

// A record, in 32-bit units: {id} {own | wide << 15 | depth << 16} run. A run: `own` frames as lower halves,
// or as 64-bit values when `wide`; then a link {position} {length | wide << 15 | upper half << 16} to the run
// that continues outwards. A link may point into the middle of a run: its length counts from there. The scope
// is stored as the outermost frame, with the upper half of the frame before it, which means nothing.
constexpr std::uint32_t kWide = 0x8000, kLengthMask = 0x7FFF;
constexpr std::size_t kRecordHeader = 2, kLinkUnits = 2;
constexpr std::size_t kMaxRun = 240; // frames; a wide run with its headers fits the smallest arena chunk
constexpr std::size_t kMaxRuns = 6;  // of a stack of ordinary depth: each is a dependent load for a look-up

inline std::uint64_t mix(std::uint64_t h, std::uint64_t frame) {
  h = (h ^ frame) * 0x9E37'79B9'7F4A'7C15ull;
  return h ^ (h >> 29);
}

// The lengths of outer part that the index knows: 2, 3, 4, 6, 8, 12, 16, 24, ...
constexpr std::size_t next_indexed(std::size_t length) {
  return std::has_single_bit(length) && length > 2 ? length + length / 2 : std::bit_ceil(length + 1);
}
constexpr std::size_t kFirstIndexed = 3, kMaxIndexed = 40;

inline std::uint64_t load64(const std::uint32_t *units) {
  std::uint64_t value;
  std::memcpy(&value, units, sizeof value);
  return value;
}

// The upper half of a narrow run is the sign-extended upper half of its link's length word: all addresses of
// today's 48-bit layouts have one. Others go into wide runs.
inline std::uint64_t narrow_high(std::uint32_t link_length) {
  return static_cast<std::uint64_t>(static_cast<std::int32_t>(link_length) >> 16) << 32;
}
inline bool is_narrow(std::uint64_t frame) {
  const auto high = static_cast<std::int32_t>(frame >> 32);
  return high == static_cast<std::int16_t>(high);
}

// The memory of all records: chunks that never move, each filled by one shard. A position is chunk << 14 |
// unit.
class StackTable::Chunks {
public:
  static constexpr unsigned kChunkBits = 14;
  static constexpr std::size_t kFirstUnits = 512, kMaxUnits = std::size_t{1} << kChunkBits,
                               kMaxChunks = (std::size_t{1} << (32 - kChunkBits)) - 1; // kEmpty is in none

  // calloc: the 2 MB of pointers cost a page where they are used.
  Chunks() : chunks_(static_cast<std::uint32_t **>(std::calloc(kMaxChunks, sizeof(std::uint32_t *)))) {
    if (chunks_ == nullptr) throw std::bad_alloc();
  }
  ~Chunks() {
    const std::size_t count = std::min<std::size_t>(count_.load(std::memory_order_relaxed), kMaxChunks);
    for (std::size_t i = 0; i < count; ++i)
      delete[] chunks_[i];
    std::free(chunks_);
  }
  Chunks(const Chunks &) = delete;
  Chunks &operator=(const Chunks &) = delete;

  // A chunk's pointer is written before any position in it is published, so readers need no atomic here.
  [[nodiscard]] std::uint32_t *at(std::uint32_t position) const {
    return chunks_[position >> kChunkBits] + (position & (kMaxUnits - 1));
  }
  // kMaxChunks when the positions are used up.
  [[nodiscard]] std::size_t add(std::size_t units) {
    const std::size_t i = count_.fetch_add(1, std::memory_order_relaxed);
    if (i >= kMaxChunks) {
      count_.store(kMaxChunks, std::memory_order_relaxed);
      return kMaxChunks;
    }
    chunks_[i] = new std::uint32_t[units];
    return i;
  }

private:
  std::uint32_t **const chunks_;
  std::atomic<std::size_t> count_{0};
};

// A shard's part of the chunks. Only under the shard's lock.
class StackTable::Arena {
public:
  // Room for `count` units in a row; false when there are no more positions. Adds what it allocates to
  // `bytes`.
  [[nodiscard]] bool take(Chunks &chunks, std::size_t count, std::uint32_t &position,
                          std::atomic<std::size_t> &bytes) {
    if (offset_ + count > size_) { // the rest of the chunk stays empty
      const std::size_t size =
          std::clamp(allocated_ / 8 / sizeof(std::uint32_t), Chunks::kFirstUnits, Chunks::kMaxUnits);
      chunk_ = chunks.add(size);
      if (chunk_ == Chunks::kMaxChunks) {
        offset_ = size_ = 0;
        return false;
      }
      size_ = size;
      offset_ = 0;
      allocated_ += size * sizeof(std::uint32_t);
      bytes.fetch_add(size * sizeof(std::uint32_t), std::memory_order_relaxed);
    }
    position = static_cast<std::uint32_t>(chunk_ << Chunks::kChunkBits | offset_);
    offset_ += count;
    used_ += count * sizeof(std::uint32_t);
    return true;
  }

  [[nodiscard]] std::size_t allocated() const { return allocated_; }
  [[nodiscard]] std::size_t used() const { return used_; }

private:
  std::size_t chunk_ = 0, offset_ = 0, size_ = 0, allocated_ = 0, used_ = 0;
};

// Hash of an outer part -> the record of a recent stack that has it. Entries overwrite each other; a grown
// level starts empty and the older ones are still asked.
class StackTable::PrefixIndex {
public:
  static constexpr unsigned kFirstBits = 8;
  static constexpr std::uint32_t kEmpty = 0xFFFF'FFFF;

  PrefixIndex() { add_level(); }
  ~PrefixIndex() {
    for (auto &level : levels_)
      delete[] level.load(std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint32_t find(std::uint64_t hash) const {
    for (unsigned i = count_.load(std::memory_order_acquire); i-- > 0;) {
      const std::uint32_t record =
          levels_[i].load(std::memory_order_relaxed)[place(hash, i)].load(std::memory_order_acquire);
      if (record != kEmpty) return record;
    }
    return kEmpty;
  }

  void set(std::uint64_t hash, std::uint32_t record) {
    const unsigned i = count_.load(std::memory_order_acquire) - 1;
    levels_[i].load(std::memory_order_relaxed)[place(hash, i)].store(record, std::memory_order_release);
  }

  // Keeps about one entry a stack.
  void fit(std::size_t stacks, std::atomic<std::size_t> &bytes) {
    if (stacks < (std::size_t{1} << (kFirstBits + count_.load(std::memory_order_relaxed)))) return;
    const std::lock_guard lock(growing_);
    while (count_.load(std::memory_order_relaxed) < levels_.size() &&
           stacks >= (std::size_t{1} << (kFirstBits + count_.load(std::memory_order_relaxed))))
      bytes.fetch_add(add_level(), std::memory_order_relaxed);
  }

  [[nodiscard]] std::size_t allocated() const {
    return ((std::size_t{1} << count_.load(std::memory_order_relaxed)) - 1) * sizeof(std::uint32_t)
           << kFirstBits;
  }

private:
  static std::size_t place(std::uint64_t hash, unsigned level) { return hash >> (64 - kFirstBits - level); }

  std::size_t add_level() {
    const unsigned level = count_.load(std::memory_order_relaxed);
    const std::size_t size = std::size_t{1} << (kFirstBits + level);
    auto *entries = new std::atomic<std::uint32_t>[size];
    for (std::size_t i = 0; i < size; ++i)
      entries[i].store(kEmpty, std::memory_order_relaxed);
    levels_[level].store(entries, std::memory_order_relaxed);
    count_.store(level + 1, std::memory_order_release);
    return size * sizeof(std::uint32_t);
  }

  std::array<std::atomic<std::atomic<std::uint32_t> *>, 24> levels_{};
  std::atomic<unsigned> count_{0};
  std::mutex growing_;
};

// The slots of a shard in segments of 64, 64, 128, 256, ... so that growing moves no slot. Growth empties and
// refills them under the lock: a look-up without the lock may miss an entry meanwhile, and asks again under
// it.
struct StackTable::Slots {
  static constexpr unsigned kFirstBits = 6;
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0}; // no record is at position 0xFFFFFFFF

  std::atomic<std::uint32_t> mask{0};
  // Each written before the mask that needs it.
  std::array<std::atomic<std::uint64_t> *, 32 - kFirstBits + 1> segments{};

  Slots() { add(0); }
  ~Slots() {
    for (auto *segment : segments)
      delete[] segment;
  }
  [[nodiscard]] std::atomic<std::uint64_t> &operator[](std::uint32_t i) const {
    const auto segment = static_cast<unsigned>(std::bit_width(i >> kFirstBits));
    return segments[segment][i - (segment == 0 ? 0 : 1u << (kFirstBits + segment - 1))];
  }
  void put(std::uint64_t slot, std::uint32_t within) {
    std::uint32_t i = static_cast<std::uint32_t>(slot) & within;
    while ((*this)[i].load(std::memory_order_relaxed) != kEmpty)
      i = (i + 1) & within;
    (*this)[i].store(slot, std::memory_order_release);
  }
  void add(unsigned segment) {
    const std::size_t size = std::size_t{1} << (kFirstBits + (segment == 0 ? 0 : segment - 1));
    auto *slots = new std::atomic<std::uint64_t>[size];
    for (std::size_t i = 0; i < size; ++i)
      slots[i].store(kEmpty, std::memory_order_relaxed);
    segments[segment] = slots;
    mask.store(static_cast<std::uint32_t>((std::size_t{1} << (kFirstBits + segment)) - 1),
               std::memory_order_release);
  }
};

struct alignas(128) StackTable::Shard {
  Slots slots;
  Arena arena;
  std::mutex inserting;
  // Below only under the lock.
  std::uint32_t used = 0;
  std::vector<std::uint64_t> stored, candidate; // scratch of insert
};

struct StackTable::Run {
  std::uint32_t position = 0, length = 0; // length with its kWide bit; 0: none
};

inline const std::uint32_t *StackTable::at(std::uint32_t position) const {
  return chunks_->at(position);
}

} // namespace etwrelog::stacks
