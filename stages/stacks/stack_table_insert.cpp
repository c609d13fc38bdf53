#include "stacks/stack_table_parts.hpp"

namespace etwrelog::stacks {

StackId StackTable::insert(Shard &shard, std::uint32_t tag, const StackQuery &query) {
  const std::lock_guard lock(shard.inserting);
  const StackId known = probe(shard.slots, tag, query); // since the look-up without lock
  if (known != kNoStack) return known;
  if (bytes_.load(std::memory_order_relaxed) >= max_bytes_) return kNoStack;
  if ((shard.used + 1) * 8ull > (shard.slots.mask.load(std::memory_order_relaxed) + 1ull) * 7) grow(shard);

  shard.stored.assign(query.frames.begin(), query.frames.end());
  const std::uint64_t outermost = query.frames.empty() ? 0 : query.frames.back();
  shard.stored.push_back((outermost & ~std::uint64_t{0xFFFF'FFFF}) | query.scope);
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

namespace {

struct RunStart {
  std::size_t begin = 0;
  bool wide = false;
};

// Where the run that has the last of these frames starts. A run of few stretches with different upper halves
// is written as several narrow ones: each costs a link, a wide frame four bytes, and look-ups go from run to
// run.
RunStart start_of_run(Frames stored) {
  const std::size_t end = stored.size(), least = end > kMaxRun ? end - kMaxRun : 0;
  if (end == least) return {least, false};
  constexpr std::size_t kFramesPerStretch = 8;
  std::size_t changes = 0, stretch = least; // where the outermost stretch starts
  bool narrow = is_narrow(stored[least]);
  for (std::size_t i = least + 1; i < end; ++i) {
    if ((stored[i] ^ stored[i - 1]) >> 32 == 0) continue;
    ++changes;
    stretch = i;
    narrow = is_narrow(stored[i]);
  }
  if (changes == 0) return {least, !narrow};
  if (narrow && end - least > kFramesPerStretch * changes) return {stretch, false};
  return {least, true};
}

} // namespace

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
    while (n < depth && n < other && stored[depth - 1 - n] == shard.candidate[other - 1 - n])
      ++n;
    if (n > shared) shared = n, source = record;
  }
  Run link = shared != 0 ? shared_part(source, shared) : Run{};

  // Written from the outside inwards, in pieces that fit a chunk; only the innermost piece has a record
  // header.
  for (std::size_t end = depth - shared;;) {
    const RunStart start = start_of_run(stored.first(end));
    const std::size_t begin = start.begin, own = end - begin;
    const bool wide = start.wide;
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
      for (std::size_t i = begin; i < end; ++i)
        *units++ = static_cast<std::uint32_t>(stored[i]);
    }
    units[0] = link.position;
    units[1] = link.length | (wide || own == 0 ? 0 : static_cast<std::uint32_t>(stored[begin] >> 32) << 16);
    if (begin == 0) return position;
    link = {position, length};
    end = begin;
  }
}

// Where the outermost `outer` frames of a record start, or the most of them that at most kMaxRuns - 1 runs
// hold; `outer` becomes what was found.
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
  for (std::size_t i = runs - usable; i < runs; ++i)
    outer += last[i % kMaxRuns].length & kLengthMask;
  return usable == 0 ? Run{} : last[(runs - usable) % kMaxRuns];
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
  for (const std::uint64_t slot : entries)
    slots.put(slot, 2 * size - 1);
}

} // namespace etwrelog::stacks
