#include "stacks/stack_table_parts.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace etwrelog::stacks {

namespace {

constexpr std::size_t kGroup = 32;         // stacks looked up together
constexpr std::uint32_t kProbesAhead = 16; // slots looked at for a tag before the slow way is taken

inline void prefetch(const void *at) {
  __builtin_prefetch(at);
}

} // namespace

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
  for (auto &chunk : ids_)
    delete[] chunk.load(std::memory_order_relaxed);
}

inline StackHash StackTable::hash(const StackQuery &query) const {
  const auto &[frames, scope] = query;
  if (hash_ != nullptr) return hash_(frames, scope);
  // The shard by the frames alone: which memory a table takes, which is shown, does not depend on the secret.
  std::uint64_t sum = scope;
  for (const std::uint64_t frame : frames)
    sum += frame;
  const std::uint64_t low =
      XXH3_64bits_withSecret(frames.data(), frames.size_bytes(), secret_.data(), secret_.size());
  return {low ^ twist_(scope), mix(0, sum) >> 32};
}

// A comparison of a stack with a record, run by run.
class StackTable::Comparison {
public:
  enum class State : std::uint8_t { more, equal, different };

  // `record`: of the units there.
  Comparison(const std::uint32_t *record, const StackQuery &query)
      : units_(record + kRecordHeader), frame_(query.frames.data()), left_(query.frames.size()),
        scope_(query.scope), length_(record[1] & 0xFFFF), next_(0) {}
  Comparison() {} // without a value: there are many, and few are used

  // One run; `more` stands in next().
  State step() {
    const std::size_t own = length_ & kLengthMask, compared = std::min(own, left_);
    const bool wide = (length_ & kWide) != 0;
    const std::uint32_t *const link = units_ + (wide ? 2 * own : own);
    const std::uint64_t high = wide ? 0 : narrow_high(link[1]);
    if (wide) {
      if (!same([this](std::size_t i) { return load64(units_ + 2 * i); }, compared)) return State::different;
    } else {
      if (!same([this, high](std::size_t i) { return high | units_[i]; }, compared)) return State::different;
    }
    frame_ += compared;
    left_ -= compared;
    if (compared != own) {
      const std::uint32_t scope =
          wide ? static_cast<std::uint32_t>(load64(units_ + 2 * compared)) : units_[compared];
      return scope == scope_ ? State::equal : State::different;
    }
    next_ = link[0]; // the depths agree, so the outermost run, which ends the comparison, is still to come
    length_ = link[1] & 0xFFFF;
    return State::more;
  }
  [[nodiscard]] std::uint32_t next() const { return next_; }
  void go_on(const std::uint32_t *units) { units_ = units; }

private:
  // Whole runs without an early way out: the compiler vectorises this, and a difference is rare.
  template <class FrameAt> bool same(FrameAt frame_at, std::size_t count) const {
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < count; ++i)
      difference |= frame_[i] ^ frame_at(i);
    return difference == 0;
  }

  const std::uint32_t *units_;
  const std::uint64_t *frame_;
  std::size_t left_;
  std::uint32_t scope_, length_, next_;
};

inline bool StackTable::equals(std::uint32_t record, const StackQuery &query) const {
  const std::uint32_t *units = at(record);
  if ((units[1] >> 16) != query.frames.size() + 1) return false;
  Comparison comparison(units, query);
  while (true) {
    const Comparison::State state = comparison.step();
    if (state != Comparison::State::more) return state == Comparison::State::equal;
    comparison.go_on(at(comparison.next()));
  }
}

StackId StackTable::probe(const Slots &slots, std::uint32_t tag, const StackQuery &query) const {
  const std::uint32_t mask = slots.mask.load(std::memory_order_acquire);
  // No more steps than slots: a reader may see a table being refilled.
  for (std::uint32_t i = tag & mask, end = i + mask; i != end + 1; ++i) {
    const std::uint64_t slot = slots[i & mask].load(std::memory_order_acquire);
    if (slot == Slots::kEmpty) return kNoStack;
    const std::uint32_t record = static_cast<std::uint32_t>(slot >> 32);
    if (static_cast<std::uint32_t>(slot) == tag && equals(record, query)) return at(record)[0];
  }
  return kNoStack;
}

inline StackTable::Shard &StackTable::shard_of(const StackHash &key) const {
  return shards_[key.high & ((1u << shard_bits_) - 1)];
}

StackId StackTable::find(Frames frames, std::uint32_t scope) const {
  const StackQuery query{frames, scope};
  const StackHash key = hash(query);
  Shard &shard = shard_of(key);
  const auto tag = static_cast<std::uint32_t>(key.low);
  const StackId known = probe(shard.slots, tag, query);
  if (known != kNoStack) return known;
  const std::lock_guard lock(shard.inserting);
  return probe(shard.slots, tag, query);
}

StackId StackTable::intern(Frames frames, std::uint32_t scope) {
  const StackQuery query{frames, scope};
  const StackHash key = hash(query);
  return intern(shard_of(key), static_cast<std::uint32_t>(key.low), query);
}

inline StackId StackTable::intern(Shard &shard, std::uint32_t tag, const StackQuery &query) {
  const StackId known = probe(shard.slots, tag, query);
  if (known != kNoStack || query.frames.size() > kMaxStackFrames) return known;
  return insert(shard, tag, query);
}

void StackTable::intern(std::span<const StackQuery> queries, StackId *ids) {
  for (; queries.size() > kGroup; queries = queries.subspan(kGroup), ids += kGroup)
    intern_group(queries.first(kGroup), ids);
  intern_group(queries, ids);
}

// What one stack needs from memory is fetched while the others are looked at: first all slots, then all
// records, then the runs that the records lead to.
void StackTable::intern_group(std::span<const StackQuery> queries, StackId *ids) {
  struct Lookup {
    Shard *shard;
    std::uint32_t tag, record;
    Comparison comparison;
  };
  std::array<Lookup, kGroup> lookups;
  std::array<std::uint8_t, kGroup> open; // lookups whose comparison goes on
  std::size_t count = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const StackHash key = hash(queries[i]);
    Lookup &lookup = lookups[i];
    lookup.shard = &shard_of(key);
    lookup.tag = static_cast<std::uint32_t>(key.low);
    const Slots &slots = lookup.shard->slots;
    prefetch(&slots[lookup.tag & slots.mask.load(std::memory_order_acquire)]);
  }
  for (std::size_t i = 0; i < queries.size(); ++i) {
    Lookup &lookup = lookups[i];
    ids[i] = kNoStack;
    const Slots &slots = lookup.shard->slots;
    const std::uint32_t mask = slots.mask.load(std::memory_order_acquire);
    for (std::uint32_t place = lookup.tag & mask, n = 0; n < kProbesAhead; ++n, place = (place + 1) & mask) {
      const std::uint64_t slot = slots[place].load(std::memory_order_acquire);
      if (slot == Slots::kEmpty) break;
      if (static_cast<std::uint32_t>(slot) != lookup.tag) continue;
      lookup.record = static_cast<std::uint32_t>(slot >> 32);
      prefetch(at(lookup.record));
      open[count++] = static_cast<std::uint8_t>(i);
      break;
    }
  }
  auto step = [&](std::size_t i, Comparison &comparison) { // whether there is more to compare
    const Comparison::State state = comparison.step();
    if (state == Comparison::State::equal) ids[i] = at(lookups[i].record)[0];
    if (state != Comparison::State::more) return false;
    const std::uint32_t *units = at(comparison.next());
    prefetch(units);
    comparison.go_on(units);
    return true;
  };
  std::size_t left = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint8_t i = open[k];
    const std::uint32_t *units = at(lookups[i].record);
    if ((units[1] >> 16) != queries[i].frames.size() + 1) continue;
    Comparison comparison(units, queries[i]);
    if (!step(i, comparison)) continue;
    lookups[i].comparison = comparison;
    open[left++] = i;
  }
  for (; left != 0; left = count) {
    count = 0;
    for (std::size_t k = 0; k < left; ++k)
      if (step(open[k], lookups[open[k]].comparison)) open[count++] = open[k];
  }
  for (std::size_t i = 0; i < queries.size(); ++i) // new, or not the first stack with its tag
    if (ids[i] == kNoStack) ids[i] = intern(*lookups[i].shard, lookups[i].tag, queries[i]);
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
      for (std::size_t i = 0; i < own; ++i)
        out[done + i] = high | units[i];
      units += own;
    }
    done += own;
    if (done == depth) return depth;
    length = units[1] & 0xFFFF;
    units = at(units[0]);
  }
}

namespace {
std::uint32_t record_of(const std::array<std::atomic<std::uint32_t *>, 23> &ids, StackId id,
                        unsigned first_bits) {
  const std::uint64_t shifted = (std::uint64_t{id} >> first_bits) + 1;
  const unsigned chunk = static_cast<unsigned>(std::bit_width(shifted)) - 1;
  const std::uint64_t first = ((std::uint64_t{1} << chunk) - 1) << first_bits;
  return ids[chunk].load(std::memory_order_acquire)[id - first];
}
} // namespace

std::size_t StackTable::depth(StackId id) const {
  return (at(record_of(ids_, id, kFirstIdChunkBits))[1] >> 16) - 1;
}

std::uint32_t StackTable::read(StackId id, std::vector<std::uint64_t> &frames) const {
  const std::uint32_t record = record_of(ids_, id, kFirstIdChunkBits);
  frames.resize(at(record)[1] >> 16);
  decode(record, frames.data());
  const auto scope = static_cast<std::uint32_t>(frames.back());
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
    memory.slots +=
        (shard.slots.mask.load(std::memory_order_relaxed) + std::size_t{1}) * sizeof(std::uint64_t);
  }
  for (std::size_t i = 0; i < ids_.size(); ++i)
    if (ids_[i].load(std::memory_order_relaxed) != nullptr)
      memory.directory += sizeof(std::uint32_t) << (kFirstIdChunkBits + i);
  memory.prefixes = prefixes_->allocated();
  return memory;
}

} // namespace etwrelog::stacks
