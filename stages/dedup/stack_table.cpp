#include "stages/dedup/stack_table.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace etwrelog::dedup {

namespace {

// A record, in 32-bit units: {id} {own | wide << 15 | depth << 16} run. A run: `own` frames as lower halves, or as
// 64-bit values when `wide`; then a link {position} {length | wide << 15 | upper half << 16} to the run that
// continues outwards. A link may point into the middle of a run: its length counts from there. The scope is stored
// as the outermost frame.
constexpr std::uint32_t kWide = 0x8000, kLengthMask = 0x7FFF;
constexpr std::size_t kRecordHeader = 2, kLinkUnits = 2;
constexpr std::size_t kMaxRun = 240; // frames; a wide run with its headers fits the smallest arena chunk
constexpr std::size_t kMaxRuns = 6;  // of a stack of ordinary depth: each is a dependent load for a look-up

std::uint64_t mix(std::uint64_t h, std::uint64_t frame) {
  h = (h ^ frame) * 0x9E37'79B9'7F4A'7C15ull;
  return h ^ (h >> 29);
}

// The lengths of outer part that the index knows: 2, 3, 4, 6, 8, 12, 16, 24, ...
constexpr std::size_t next_indexed(std::size_t length) {
  return std::has_single_bit(length) && length > 2 ? length + length / 2 : std::bit_ceil(length + 1);
}
constexpr std::size_t kFirstIndexed = 3, kMaxIndexed = 40;

std::uint64_t load64(const std::uint32_t *units) {
  std::uint64_t value;
  std::memcpy(&value, units, sizeof value);
  return value;
}

// Whole runs without an early way out: the compiler vectorises this, and a difference is rare.
template <class FrameAt> inline bool same(FrameAt frame_at, const std::uint64_t *frames, std::size_t count) {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < count; ++i) difference |= frames[i] ^ frame_at(i);
  return difference == 0;
}

// The upper half of a narrow run is the sign-extended upper half of its link's length word: all addresses of
// today's 48-bit layouts have one. Others go into wide runs.
std::uint64_t narrow_high(std::uint32_t link_length) {
  return static_cast<std::uint64_t>(static_cast<std::int32_t>(link_length) >> 16) << 32;
}
bool is_narrow(std::uint64_t frame) {
  const auto high = static_cast<std::int32_t>(frame >> 32);
  return high == static_cast<std::int16_t>(high);
}

} // namespace

// The memory of all records: chunks that never move, each filled by one shard. A position is chunk << 14 | unit.
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
    for (std::size_t i = 0; i < count; ++i) delete[] chunks_[i];
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
  // Room for `count` units in a row; false when there are no more positions. Adds what it allocates to `bytes`.
  [[nodiscard]] bool take(Chunks &chunks, std::size_t count, std::uint32_t &position, std::atomic<std::size_t> &bytes) {
    if (offset_ + count > size_) { // the rest of the chunk stays empty
      const std::size_t size = std::clamp(allocated_ / 8 / sizeof(std::uint32_t), Chunks::kFirstUnits, Chunks::kMaxUnits);
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

// Hash of an outer part -> the record of a recent stack that has it. Entries overwrite each other; a grown level
// starts empty and the older ones are still asked.
class StackTable::PrefixIndex {
public:
  static constexpr unsigned kFirstBits = 8;
  static constexpr std::uint32_t kEmpty = 0xFFFF'FFFF;

  PrefixIndex() { add_level(); }
  ~PrefixIndex() {
    for (auto &level : levels_) delete[] level.load(std::memory_order_relaxed);
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
    return ((std::size_t{1} << count_.load(std::memory_order_relaxed)) - 1) * sizeof(std::uint32_t) << kFirstBits;
  }

private:
  static std::size_t place(std::uint64_t hash, unsigned level) { return hash >> (64 - kFirstBits - level); }

  std::size_t add_level() {
    const unsigned level = count_.load(std::memory_order_relaxed);
    const std::size_t size = std::size_t{1} << (kFirstBits + level);
    auto *entries = new std::atomic<std::uint32_t>[size];
    for (std::size_t i = 0; i < size; ++i) entries[i].store(kEmpty, std::memory_order_relaxed);
    levels_[level].store(entries, std::memory_order_relaxed);
    count_.store(level + 1, std::memory_order_release);
    return size * sizeof(std::uint32_t);
  }

  std::array<std::atomic<std::atomic<std::uint32_t> *>, 24> levels_{};
  std::atomic<unsigned> count_{0};
  std::mutex growing_;
};

// The slots of a shard in segments of 64, 64, 128, 256, ... so that growing moves no slot. Growth empties and
// refills them under the lock: a look-up without the lock may miss an entry meanwhile, and asks again under it.
struct StackTable::Slots {
  static constexpr unsigned kFirstBits = 6;
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0}; // no record is at position 0xFFFFFFFF

  std::atomic<std::uint32_t> mask{0};
  std::array<std::atomic<std::uint64_t> *, 32 - kFirstBits + 1> segments{}; // written before the mask that needs it

  Slots() { add(0); }
  ~Slots() {
    for (auto *segment : segments) delete[] segment;
  }
  [[nodiscard]] std::atomic<std::uint64_t> &operator[](std::uint32_t i) const {
    const auto segment = static_cast<unsigned>(std::bit_width(i >> kFirstBits));
    return segments[segment][i - (segment == 0 ? 0 : 1u << (kFirstBits + segment - 1))];
  }
  void put(std::uint64_t slot, std::uint32_t within) {
    std::uint32_t i = static_cast<std::uint32_t>(slot) & within;
    while ((*this)[i].load(std::memory_order_relaxed) != kEmpty) i = (i + 1) & within;
    (*this)[i].store(slot, std::memory_order_release);
  }
  void add(unsigned segment) {
    const std::size_t size = std::size_t{1} << (kFirstBits + (segment == 0 ? 0 : segment - 1));
    auto *slots = new std::atomic<std::uint64_t>[size];
    for (std::size_t i = 0; i < size; ++i) slots[i].store(kEmpty, std::memory_order_relaxed);
    segments[segment] = slots;
    mask.store(static_cast<std::uint32_t>((std::size_t{1} << (kFirstBits + segment)) - 1), std::memory_order_release);
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

StackTable::StackTable() : StackTable(Options{}) {}

StackTable::StackTable(const Options &options)
    : hash_(options.hash), max_bytes_(options.max_bytes),
      shard_bits_(static_cast<unsigned>(std::bit_width(std::clamp(options.shards, 1u, 16u) - 1))),
      shards_(new Shard[std::size_t{1} << shard_bits_]), chunks_(new Chunks), prefixes_(new PrefixIndex) {
  std::size_t bytes = prefixes_->allocated();
  bytes += sizeof(std::uint64_t) << (Slots::kFirstBits + shard_bits_);
  bytes_.store(bytes, std::memory_order_relaxed);
}

StackTable::~StackTable() {
  for (auto &chunk : ids_) delete[] chunk.load(std::memory_order_relaxed);
}

StackHash StackTable::hash(Frames frames, std::uint64_t scope) const {
  if (hash_ != nullptr) return hash_(frames, scope);
  // Not as the seed: a seed makes XXH3 derive a new secret for every input above 240 bytes.
  const XXH128_hash_t h = XXH3_128bits(frames.data(), frames.size_bytes());
  const std::uint64_t twist = mix(0x5C0F'E000ull, scope);
  return {h.low64 ^ twist, h.high64 ^ (twist >> 32)};
}

inline const std::uint32_t *StackTable::at(std::uint32_t position) const { return chunks_->at(position); }

inline bool StackTable::equals(std::uint32_t record, Frames frames, std::uint64_t scope) const {
  const std::uint32_t *units = at(record);
  if ((units[1] >> 16) != frames.size() + 1) return false;
  std::uint32_t length = units[1] & 0xFFFF;
  units += kRecordHeader;
  const std::uint64_t *frame = frames.data();
  std::size_t left = frames.size();
  while (true) {
    const std::size_t own = length & kLengthMask, compared = std::min(own, left);
    const bool wide = (length & kWide) != 0;
    if (wide) {
      if (!same([units](std::size_t i) { return load64(units + 2 * i); }, frame, compared)) return false;
    } else {
      const std::uint64_t high = narrow_high(units[own + 1]);
      if (!same([units, high](std::size_t i) { return high | units[i]; }, frame, compared)) return false;
    }
    frame += compared;
    left -= compared;
    if (compared != own)
      return scope == (wide ? load64(units + 2 * compared) : (narrow_high(units[own + 1]) | units[compared]));
    units += wide ? 2 * own : own;
    length = units[1] & 0xFFFF;
    units = at(units[0]); // the depths agree, so the outermost run, which ends the loop, is still to come
  }
}

inline StackId StackTable::probe(const Slots &slots, std::uint32_t tag, Frames frames, std::uint64_t scope) const {
  const std::uint32_t mask = slots.mask.load(std::memory_order_acquire);
  for (std::uint32_t i = tag & mask, end = i + mask; i != end + 1; ++i) { // a reader may see a table being refilled
    const std::uint64_t slot = slots[i & mask].load(std::memory_order_acquire);
    if (slot == Slots::kEmpty) return kNoStack;
    const std::uint32_t record = static_cast<std::uint32_t>(slot >> 32);
    if (static_cast<std::uint32_t>(slot) == tag && equals(record, frames, scope)) return at(record)[0];
  }
  return kNoStack;
}

StackId StackTable::find(Frames frames, std::uint64_t scope) const {
  const StackHash key = hash(frames, scope);
  Shard &shard = shards_[key.high & ((1u << shard_bits_) - 1)];
  const auto tag = static_cast<std::uint32_t>(key.low);
  const StackId known = probe(shard.slots, tag, frames, scope);
  if (known != kNoStack) return known;
  const std::lock_guard lock(shard.inserting);
  return probe(shard.slots, tag, frames, scope);
}

StackId StackTable::intern(Frames frames, std::uint64_t scope) {
  const StackHash key = hash(frames, scope);
  Shard &shard = shards_[key.high & ((1u << shard_bits_) - 1)];
  const auto tag = static_cast<std::uint32_t>(key.low);
  const StackId known = probe(shard.slots, tag, frames, scope);
  if (known != kNoStack || frames.size() > kMaxStackFrames) return known;
  return insert(shard, tag, frames, scope);
}

StackId StackTable::insert(Shard &shard, std::uint32_t tag, Frames frames, std::uint64_t scope) {
  const std::lock_guard lock(shard.inserting);
  const StackId known = probe(shard.slots, tag, frames, scope); // since the look-up without lock
  if (known != kNoStack) return known;
  if (bytes_.load(std::memory_order_relaxed) >= max_bytes_) return kNoStack;
  if ((shard.used + 1) * 8ull > (shard.slots.mask.load(std::memory_order_relaxed) + 1ull) * 7) grow(shard);

  shard.stored.assign(frames.begin(), frames.end());
  shard.stored.push_back(scope);
  const std::uint32_t record = write_record(shard, shard.stored);
  if (record == PrefixIndex::kEmpty) return kNoStack;
  const StackId mine = count_.fetch_add(1, std::memory_order_relaxed); // only now: ids are dense
  *chunks_->at(record) = mine;
  publish_id(mine, record);
  prefixes_->fit(mine, bytes_);

  shard.slots.put(std::uint64_t{record} << 32 | tag, shard.slots.mask.load(std::memory_order_relaxed));
  ++shard.used;

  std::uint64_t h = mix(0, shard.stored.back());
  for (std::size_t n = 2, next = kFirstIndexed; n <= shard.stored.size() && next != 0; ++n) {
    h = mix(h, shard.stored[shard.stored.size() - n]);
    if (n != next) continue;
    prefixes_->set(h, record);
    next = next_indexed(next);
  }
  return mine;
}

// `stored`: innermost first, the scope last.
std::uint32_t StackTable::write_record(Shard &shard, Frames stored) {
  const std::size_t depth = stored.size();
  std::array<std::uint64_t, kMaxIndexed> hashes{};
  std::size_t known = 0;
  std::uint64_t h = mix(0, stored.back());
  for (std::size_t n = 2, next = kFirstIndexed; n <= depth; ++n) {
    h = mix(h, stored[depth - n]);
    if (n != next) continue;
    hashes[known++] = h;
    next = next_indexed(next);
  }
  // The longest outer part found through the two longest hashes that lead anywhere.
  std::size_t shared = 0;
  std::uint32_t source = PrefixIndex::kEmpty;
  for (int tries = 0; known-- > 0 && tries < 2;) {
    const std::uint32_t record = prefixes_->find(hashes[known]);
    if (record == PrefixIndex::kEmpty || record == source) continue;
    ++tries;
    const std::size_t other = at(record)[1] >> 16;
    if (shard.candidate.size() < other) shard.candidate.resize(other);
    decode(record, shard.candidate.data());
    std::size_t n = 0;
    while (n < depth && n < other && stored[depth - 1 - n] == shard.candidate[other - 1 - n]) ++n;
    if (n > shared) shared = n, source = record;
  }
  Run link = shared != 0 ? shared_part(source, shared) : Run{};

  // Written from the outside inwards, in pieces that fit a chunk; only the innermost piece has a record header.
  for (std::size_t end = depth - shared;;) {
    const std::size_t begin = end > kMaxRun ? end - kMaxRun : 0, own = end - begin;
    bool wide = own != 0 && !is_narrow(stored[begin]);
    for (std::size_t i = begin + 1; i < end && !wide; ++i) wide = (stored[i] ^ stored[begin]) >> 32 != 0;
    const std::size_t run_units = (wide ? 2 * own : own) + kLinkUnits;
    const std::size_t header = begin == 0 ? kRecordHeader : 0;
    std::uint32_t position = 0;
    if (!shard.arena.take(*chunks_, header + run_units, position, bytes_)) return PrefixIndex::kEmpty;
    std::uint32_t *units = chunks_->at(position);
    const std::uint32_t length = static_cast<std::uint32_t>(own) | (wide ? kWide : 0);
    if (header != 0) {
      *units++ = kNoStack; // insert sets the id
      *units++ = length | static_cast<std::uint32_t>(depth) << 16;
    }
    if (wide) {
      std::memcpy(units, stored.data() + begin, own * 8);
      units += 2 * own;
    } else {
      for (std::size_t i = begin; i < end; ++i) *units++ = static_cast<std::uint32_t>(stored[i]);
    }
    units[0] = link.position;
    units[1] = link.length | (wide || own == 0 ? 0 : static_cast<std::uint32_t>(stored[begin] >> 32) << 16);
    if (begin == 0) return position;
    link = {position, length};
    end = begin;
  }
}

// Where the outermost `outer` frames of a record start, or the most of them that at most kMaxRuns - 1 runs hold;
// `outer` becomes what was found.
StackTable::Run StackTable::shared_part(std::uint32_t record, std::size_t &outer) const {
  const std::uint32_t *units = at(record);
  const std::size_t depth = units[1] >> 16;
  std::array<Run, kMaxRuns> last{}; // the outermost runs seen so far, a ring
  std::size_t runs = 0, skip = depth - outer;
  Run run{record + static_cast<std::uint32_t>(kRecordHeader), units[1] & 0xFFFF};
  for (std::size_t done = 0;;) {
    const std::uint32_t own = run.length & kLengthMask;
    const bool wide = (run.length & kWide) != 0;
    units = at(run.position) + (wide ? 2 * own : own);
    if (skip < own) { // the run starts here or has its first shared frame inside
      run.position += static_cast<std::uint32_t>(wide ? 2 * skip : skip);
      run.length -= static_cast<std::uint32_t>(skip);
      last[runs++ % kMaxRuns] = run;
    }
    skip -= std::min<std::size_t>(skip, own);
    done += own;
    if (done == depth) break;
    run = {units[0], units[1] & 0xFFFF};
  }
  const std::size_t usable = std::min(runs, kMaxRuns - 1);
  outer = 0;
  for (std::size_t i = runs - usable; i < runs; ++i) outer += last[i % kMaxRuns].length & kLengthMask;
  return usable == 0 ? Run{} : last[(runs - usable) % kMaxRuns];
}

std::size_t StackTable::decode(std::uint32_t record, std::uint64_t *out) const {
  const std::uint32_t *units = at(record);
  const std::size_t depth = units[1] >> 16;
  std::uint32_t length = units[1] & 0xFFFF;
  units += kRecordHeader;
  for (std::size_t done = 0;;) {
    const std::size_t own = length & kLengthMask;
    if ((length & kWide) != 0) {
      std::memcpy(out + done, units, own * 8);
      units += 2 * own;
    } else {
      const std::uint64_t high = narrow_high(units[own + 1]);
      for (std::size_t i = 0; i < own; ++i) out[done + i] = high | units[i];
      units += own;
    }
    done += own;
    if (done == depth) return depth;
    length = units[1] & 0xFFFF;
    units = at(units[0]);
  }
}

void StackTable::publish_id(StackId id, std::uint32_t record) {
  const std::uint64_t shifted = (std::uint64_t{id} >> kFirstIdChunkBits) + 1;
  const unsigned chunk = static_cast<unsigned>(std::bit_width(shifted)) - 1;
  const std::uint64_t first = ((std::uint64_t{1} << chunk) - 1) << kFirstIdChunkBits;
  const std::size_t size = std::size_t{1} << (kFirstIdChunkBits + chunk);
  std::uint32_t *records = ids_[chunk].load(std::memory_order_acquire);
  if (records == nullptr) {
    auto fresh = std::make_unique<std::uint32_t[]>(size);
    if (ids_[chunk].compare_exchange_strong(records, fresh.get(), std::memory_order_acq_rel)) {
      records = fresh.release();
      bytes_.fetch_add(size * sizeof(std::uint32_t), std::memory_order_relaxed);
    }
  }
  records[id - first] = record;
}

void StackTable::grow(Shard &shard) {
  Slots &slots = shard.slots;
  std::vector<std::uint64_t> entries;
  entries.reserve(shard.used);
  const std::uint32_t size = slots.mask.load(std::memory_order_relaxed) + 1;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint64_t slot = slots[i].exchange(Slots::kEmpty, std::memory_order_relaxed);
    if (slot != Slots::kEmpty) entries.push_back(slot);
  }
  slots.add(static_cast<unsigned>(std::bit_width(size >> Slots::kFirstBits)));
  bytes_.fetch_add(size * sizeof(std::uint64_t), std::memory_order_relaxed);
  for (const std::uint64_t slot : entries) slots.put(slot, 2 * size - 1);
}

namespace {
std::uint32_t record_of(const std::array<std::atomic<std::uint32_t *>, 23> &ids, StackId id, unsigned first_bits) {
  const std::uint64_t shifted = (std::uint64_t{id} >> first_bits) + 1;
  const unsigned chunk = static_cast<unsigned>(std::bit_width(shifted)) - 1;
  const std::uint64_t first = ((std::uint64_t{1} << chunk) - 1) << first_bits;
  return ids[chunk].load(std::memory_order_acquire)[id - first];
}
} // namespace

std::size_t StackTable::depth(StackId id) const {
  return (at(record_of(ids_, id, kFirstIdChunkBits))[1] >> 16) - 1;
}

std::uint64_t StackTable::read(StackId id, std::vector<std::uint64_t> &frames) const {
  const std::uint32_t record = record_of(ids_, id, kFirstIdChunkBits);
  frames.resize(at(record)[1] >> 16);
  decode(record, frames.data());
  const std::uint64_t scope = frames.back();
  frames.pop_back();
  return scope;
}

StackTable::Memory StackTable::memory() const {
  Memory memory;
  for (std::size_t i = 0; i < (std::size_t{1} << shard_bits_); ++i) {
    Shard &shard = shards_[i];
    const std::lock_guard lock(shard.inserting);
    memory.records += shard.arena.allocated();
    memory.records_used += shard.arena.used();
    memory.slots += (shard.slots.mask.load(std::memory_order_relaxed) + std::size_t{1}) * sizeof(std::uint64_t);
  }
  for (std::size_t i = 0; i < ids_.size(); ++i)
    if (ids_[i].load(std::memory_order_relaxed) != nullptr)
      memory.directory += sizeof(std::uint32_t) << (kFirstIdChunkBits + i);
  memory.prefixes = prefixes_->allocated();
  return memory;
}

} // namespace etwrelog::dedup
