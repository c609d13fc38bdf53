// The memory of the model: objects by number, call stacks as a tree, threads, and the history of a family's
// records. Encoder and decoder run the same updates in the same order, which is what makes the predictions
// agree.
#pragma once

#include "base/raw_memory.hpp"
#include "base/read_ahead.hpp"
#include "etlz/model/plan.hpp"

#include <array>

namespace etwrelog::etlz {

[[nodiscard]] inline std::uint64_t mix(std::uint64_t v) {
  v *= 0x9E37'79B9'7F4A'7C15ull;
  return v ^ (v >> 32);
}

[[nodiscard]] inline std::uint64_t hash_bytes(Bytes b) {
  constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15ull;
  std::uint64_t h = b.size() * 0x9FB2'1C65'1E98'DF25ull;
  const std::uint8_t *p = b.data();
  std::size_t n = b.size();
  // Of long ones every other word, by itself: a word waits for the one before it.
  if (n >= 32) {
    std::uint64_t other = ~h;
    for (; n >= 16; p += 16, n -= 16) {
      h = (h ^ load<std::uint64_t>(p)) * kGolden;
      other = (other ^ load<std::uint64_t>(p + 8)) * kGolden;
      h ^= h >> 29;
      other ^= other >> 29;
    }
    h ^= mix(other);
  }
  for (; n >= 8; p += 8, n -= 8) {
    h = (h ^ load<std::uint64_t>(p)) * kGolden;
    h ^= h >> 29;
  }
  std::uint64_t last = 0;
  if (n != 0) std::memcpy(&last, p, n);
  return mix(h ^ last);
}

// A vector that does not look again at indices which the model makes itself: numbers of types, families and
// streams, checked when they are read, and hashes cut to the size of their table.
template <class T> class Own : public base::BlockVector<T> {
public:
  using Vector = base::BlockVector<T>;
  using Vector::Vector;
  [[nodiscard]] T &operator[](std::size_t i) { return this->data()[i]; }
  [[nodiscard]] const T &operator[](std::size_t i) const { return this->data()[i]; }
};

// Chunked memory whose addresses stay.
class Arena {
public:
  // Null when more than `bound` bytes were taken altogether.
  [[nodiscard]] std::uint8_t *take(std::size_t n) {
    if (n > bound_) return nullptr;
    bound_ -= n;
    if (n > left_ || at_ == nullptr) {
      if (n <= kChunk && used_ < chunks_.size()) {
        at_ = chunks_[used_++].room(kChunk);
        left_ = kChunk;
      } else if (n <= kChunk) {
        at_ = chunks_.emplace_back().room(kChunk);
        ++used_;
        left_ = kChunk;
      } else {
        return large_.emplace_back().room(n);
      }
    }
    std::uint8_t *const result = at_;
    at_ += n;
    left_ -= n;
    return result;
  }

  // Counts memory that is taken elsewhere; false when that is more than `bound`.
  [[nodiscard]] bool charge(std::size_t n) {
    if (n > bound_) return false;
    bound_ -= n;
    return true;
  }
  void set_bound(std::size_t bound) { bound_ = bound; }
  // Everything taken is given back, the memory kept.
  void clear() {
    large_.clear();
    if (used_ * 4 < chunks_.size()) chunks_.resize(used_ * 4);
    used_ = 0, left_ = 0, at_ = nullptr, bound_ = SIZE_MAX;
  }

private:
  static constexpr std::size_t kChunk = 256 * 1024;
  std::size_t bound_ = SIZE_MAX;
  std::vector<base::RawMemory> chunks_, large_; // chunks are of kChunk bytes
  std::size_t used_ = 0;
  std::uint8_t *at_ = nullptr;
  std::size_t left_ = 0;
};

// Contents by number. Number 0 is the empty object, or 16 zero bytes for GUIDs. Only the encoder looks up by
// content.
class Objects {
public:
  explicit Objects(Bytes zero) : zero_(zero) { clear(); }
  void clear() {
    objects_.clear();
    objects_.push_back(zero_);
    table_.clear();
  }

  [[nodiscard]] Bytes operator[](std::uint64_t id) const { return objects_[id]; }
  void prefetch(std::uint64_t id) const { __builtin_prefetch(objects_.data() + id); }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }
  std::uint64_t add_unhashed(Bytes content) { // returns its number
    objects_.push_back(content);
    return objects_.size() - 1;
  }

  // The number of `content`, or size() when it is new; it has been added then.
  [[nodiscard]] std::uint64_t intern(Bytes content) {
    if (objects_.size() * 2 > table_.size()) grow();
    const std::uint32_t tag = tag_of(content);
    std::size_t slot = tag & (table_.size() - 1);
    while (table_[slot].id != kFree) {
      const Bytes known = objects_[table_[slot].id];
      if (table_[slot].tag == tag && known.size() == content.size() &&
          std::memcmp(known.data(), content.data(), content.size()) == 0)
        return table_[slot].id;
      slot = (slot + 1) & (table_.size() - 1);
    }
    table_[slot] = {static_cast<std::uint32_t>(objects_.size()), tag};
    objects_.push_back(content);
    return objects_.size() - 1;
  }

private:
  static constexpr std::uint32_t kFree = 0xFFFF'FFFF;
  struct Entry {
    std::uint32_t id = kFree, tag = 0;
  };
  [[nodiscard]] static std::uint32_t tag_of(Bytes content) {
    return static_cast<std::uint32_t>(hash_bytes(content) >> 32);
  }
  // Entries find their new place by their tags: the contents are no longer in the cache.
  [[gnu::noinline]] void grow() {
    base::BlockVector<Entry> entries(std::max<std::size_t>(256, table_.size() * 4));
    const auto place = [&entries](const Entry &entry) {
      std::size_t slot = entry.tag & (entries.size() - 1);
      while (entries[slot].id != kFree)
        slot = (slot + 1) & (entries.size() - 1);
      entries[slot] = entry;
    };
    if (table_.empty()) place({0, tag_of(zero_)});
    for (const Entry &entry : table_)
      if (entry.id != kFree) place(entry);
    table_.swap(entries);
  }
  Bytes zero_;
  base::BlockVector<Bytes> objects_;
  base::BlockVector<Entry> table_;
};

// Call stacks from the outermost frame inwards; node 0 is the root. A frame remembers which frame it was last
// followed by, anywhere.
class StackTree {
public:
  StackTree() { clear(); }
  void clear() {
    nodes_.assign(1, {0, 0, 0});
    frames_.assign(1, 0);
    follower_.assign(1, 0);
    children_.clear();
    by_value_.clear();
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] std::uint32_t parent(std::uint32_t node) const { return nodes_[node].parent; }
  [[nodiscard]] std::uint32_t depth(std::uint32_t node) const { return nodes_[node].depth; }
  [[nodiscard]] std::uint64_t frame(std::uint32_t node) const { return frames_[nodes_[node].frame]; }
  [[nodiscard]] std::uint32_t frame_number(std::uint32_t node) const { return nodes_[node].frame; }

  // 0 when there is no such child.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, std::uint32_t frame_number) const {
    if (children_.empty()) return 0;
    for (std::size_t slot = hash(node, frame_number);; ++slot) {
      const std::uint32_t found = children_[slot & (children_.size() - 1)];
      if (found == 0 || (nodes_[found].parent == node && nodes_[found].frame == frame_number)) return found;
    }
  }
  // The number of a frame value, or frames() if it is new.
  [[nodiscard]] std::uint32_t find_frame(std::uint64_t value) const {
    if (by_value_.empty()) return frames();
    for (std::size_t slot = mix(value);; ++slot) {
      const std::uint32_t found = by_value_[slot & (by_value_.size() - 1)];
      if (found == 0) return frames();
      if (frames_[found] == value) return found;
    }
  }
  [[nodiscard]] std::uint32_t frames() const { return static_cast<std::uint32_t>(frames_.size()); }
  [[nodiscard]] std::uint64_t frame_value(std::uint32_t number) const { return frames_[number]; }
  [[nodiscard]] std::uint32_t follower(std::uint32_t frame_number) const { return follower_[frame_number]; }
  void follow(std::uint32_t frame_number, std::uint32_t by) { follower_[frame_number] = by; }

  std::uint32_t add_frame(std::uint64_t value, bool index) {
    frames_.push_back(value);
    follower_.push_back(0);
    if (index) {
      if (frames_.size() * 2 > by_value_.size()) {
        by_value_.assign(std::max<std::size_t>(256, by_value_.size() * 4), 0);
        for (std::uint32_t i = 1; i < frames(); ++i)
          place_frame(i);
      } else {
        place_frame(frames() - 1);
      }
    }
    return frames() - 1;
  }
  std::uint32_t add_node(std::uint32_t node, std::uint32_t frame_number, bool index) {
    nodes_.push_back({node, frame_number, nodes_[node].depth + 1});
    if (index) {
      if (nodes_.size() * 2 > children_.size()) {
        children_.assign(std::max<std::size_t>(256, children_.size() * 4), 0);
        for (std::uint32_t i = 1; i < size(); ++i)
          place_node(i);
      } else {
        place_node(size() - 1);
      }
    }
    return size() - 1;
  }

private:
  struct Node {
    std::uint32_t parent, frame, depth;
  };
  [[nodiscard]] static std::size_t hash(std::uint32_t node, std::uint32_t frame_number) {
    return mix((std::uint64_t{node} << 32) | frame_number);
  }
  void place_node(std::uint32_t index) {
    std::size_t slot = hash(nodes_[index].parent, nodes_[index].frame);
    while (children_[slot & (children_.size() - 1)] != 0)
      ++slot;
    children_[slot & (children_.size() - 1)] = index;
  }
  void place_frame(std::uint32_t index) {
    std::size_t slot = mix(frames_[index]);
    while (by_value_[slot & (by_value_.size() - 1)] != 0)
      ++slot;
    by_value_[slot & (by_value_.size() - 1)] = index;
  }
  base::BlockVector<Node> nodes_;
  base::BlockVector<std::uint64_t> frames_; // number 0 is no frame
  base::BlockVector<std::uint32_t> follower_;
  base::BlockVector<std::uint32_t> children_, by_value_;
};

// 64 KiB pages of addresses, numbered in the order of their first occurrence up to kMaxPages.
class Pages {
public:
  static constexpr std::uint32_t kMaxPages = 0xFFFF;
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(pages_.size()); }
  [[nodiscard]] std::uint64_t operator[](std::uint32_t number) const { return pages_[number]; }
  // size() when it is not known.
  [[nodiscard]] std::uint32_t find(std::uint64_t page) const {
    if (table_.empty()) return size();
    for (std::size_t slot = mix(page);; ++slot) {
      const std::uint32_t found = table_[slot & (table_.size() - 1)];
      if (found == 0) return size();
      if (pages_[found - 1] == page) return found - 1;
    }
  }
  void add(std::uint64_t page, bool index) {
    if (size() == kMaxPages) return;
    pages_.push_back(page);
    if (!index) return;
    if (pages_.size() * 2 <= table_.size()) return place(size() - 1);
    table_.assign(std::max<std::size_t>(256, table_.size() * 4), 0);
    for (std::uint32_t i = 0; i < size(); ++i)
      place(i);
  }
  void clear() {
    pages_.clear();
    table_.clear();
  }

private:
  void place(std::uint32_t number) {
    std::size_t slot = mix(pages_[number]);
    while (table_[slot & (table_.size() - 1)] != 0)
      ++slot;
    table_[slot & (table_.size() - 1)] = number + 1;
  }
  base::BlockVector<std::uint64_t> pages_;
  base::BlockVector<std::uint32_t> table_;
};

// What a processor was last seen doing. Stacks name the event that they belong to by its time.
struct Processor {
  static constexpr std::size_t kRecent = 64;
  struct Event {
    std::uint64_t time = 0, thread = 0, address = 0;
    std::uint64_t kind = 0;
    std::uint64_t stack = 0; // the last one that belonged to it, plus 1
  };
  static constexpr unsigned kPeriodic = 4; // types whose events come at a steady rate, at most
  std::uint64_t time = 0, thread_id = 0, process_id = 0, running = 0;
  std::array<std::uint64_t, kPeriodic> beat{}; // when the last event of each was due
  std::array<std::array<std::uint64_t, 2>, kPeriodic>
      late{}; // and how late the last two of each were; coupled ways
  std::array<Event, kRecent> recent{};
  std::size_t events = 0;

  [[nodiscard]] Event &ago(std::size_t n) { return recent[(events - n) % kRecent]; } // 1 is the last
  void add(const Event &e) { recent[events++ % kRecent] = e; }
};

// The stacks that went with events of one kind at one place, the last one first.
struct StackContext {
  static constexpr unsigned kEarlier = 6;
  std::uint64_t stack = 0;
  std::array<std::uint32_t, kEarlier> earlier{};

  // 1 for the one before the last; 0 when it is none of these.
  [[nodiscard]] unsigned rank(std::uint64_t id) const {
    for (unsigned i = 0; i < kEarlier; ++i)
      if (earlier[i] == id) return i + 1;
    return 0;
  }
  void use(std::uint64_t id) {
    if (id == stack) return;
    auto moved = static_cast<std::uint32_t>(stack);
    for (std::uint32_t &e : earlier) {
      std::swap(e, moved);
      if (moved == id) break;
    }
    stack = id;
  }
};

// What is known of each thread, by its id; a small table whose entries are taken over on collision.
class Threads {
public:
  struct Entry {
    std::uint64_t id = ~std::uint64_t{0};
    std::uint64_t member[static_cast<std::size_t>(ThreadMember::count_)] = {};
  };
  Threads() : entries_(kSize) {}
  void clear() { entries_.assign(kSize, Entry{}); }
  [[nodiscard]] Entry &of(std::uint64_t id) {
    Entry &e = entries_[(id >> 2) & (kSize - 1)];
    if (e.id != id) take_over(e, id);
    return e;
  }

private:
  [[gnu::noinline]] static void take_over(Entry &e, std::uint64_t id) {
    e = Entry{};
    e.id = id;
  }

  static constexpr std::size_t kSize = 8192;
  Own<Entry> entries_;
};

// The records of a family, row by row, with the two ways to find the one that the next will resemble. All
// families of a segment together keep kMaxValues: past that nothing new is learned, which bounds the memory
// of a decoder.
class History {
public:
  static constexpr std::size_t kMaxValues = 24u << 20;

  // Memory of an earlier use is kept.
  void start(unsigned fields, std::uint8_t lead) {
    fields_ = fields, lead_ = lead < fields ? lead : kNoLead;
    size_ = match_ = 0;
    hashed_ = 0;
    settled_ = true;
  }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] const std::uint64_t *row(std::uint32_t index) const {
    return rows() + std::size_t{index} * fields_;
  }
  // The record that the run of leads suggests next; size() when there is none.
  [[nodiscard]] std::uint32_t match() const { return match_; }
  [[nodiscard]] std::size_t memory() const { return memory_.capacity() + leads_.capacity(); }

  // Where the next record is put together. Moves the others.
  [[nodiscard]] std::uint64_t *next_row() {
    const std::size_t end = (std::size_t{size_} + 1) * fields_;
    if (end * sizeof(std::uint64_t) > memory_.capacity()) reserve(end);
    return rows() + (end - fields_);
  }

  // The last record with this lead; size() when there is none.
  [[nodiscard, gnu::always_inline]] std::uint32_t find(std::uint64_t lead) const {
    if (hashed_ == 0) return size_;
    const std::uint64_t hash = mix(lead);
    const std::uint32_t found = by_lead()[hash & (hashed_ - 1)].one ^ check(hash);
    return may_be(found) && row(found - 1)[lead_] == lead ? found - 1 : size_;
  }

  // To be called some time before find(), where the lead is known that early.
  void prefetch(std::uint64_t lead) const {
    if (hashed_ != 0) __builtin_prefetch(&by_lead()[mix(lead) & (hashed_ - 1)], 1);
  }

  // The record at next_row() is complete. Before anything but the next row is asked for, settle() is to be
  // called: when the family has its next record, as what it reads is seldom in the cache.
  [[gnu::always_inline]] void add(std::size_t &total) {
    if (total + fields_ > kMaxValues) {
      match_ = size_;
      return;
    }
    total += fields_ + 1u;
    const std::uint32_t self = size_++;
    if (lead_ == kNoLead) {
      match_ = size_;
      return;
    }
    settled_ = false;
    const std::uint64_t lead = row(self)[lead_];
    const std::uint64_t before = self == 0 ? 0 : row(self - 1)[lead_];
    hash_ = mix(lead), pair_hash_ = mix(lead ^ mix(before + 1));
    if (hashed_ == 0) return;
    __builtin_prefetch(&by_lead()[hash_ & (hashed_ - 1)], 1);
    __builtin_prefetch(&by_lead()[pair_hash_ & (hashed_ - 1)], 1);
  }
  [[gnu::always_inline]] void settle() {
    if (settled_) return;
    settled_ = true;
    if (std::size_t{size_} * 2 > hashed_) grow();
    const std::uint32_t self = size_ - 1;
    const std::uint64_t lead = row(self)[lead_];
    std::uint32_t &pair = by_lead()[pair_hash_ & (hashed_ - 1)].pair;
    std::uint32_t &one = by_lead()[hash_ & (hashed_ - 1)].one;
    const std::uint32_t by_pair = pair ^ check(hash_), by_one = one ^ check(hash_);
    if (match_ < self && row(match_)[lead_] == lead) {
      ++match_;
    } else if (may_be(by_pair) && row(by_pair - 1)[lead_] == lead) {
      match_ = by_pair;
    } else if (may_be(by_one) && row(by_one - 1)[lead_] == lead) {
      match_ = by_one;
    } else {
      match_ = size_;
    }
    pair = one = (self + 1) ^ check(hash_);
  }

private:
  static constexpr std::uint8_t kNoLead = 0xFF;
  // By hash the last record, plus 1, and above that eight bits of its lead's hash: most of those with another
  // lead need not be looked at, which are long out of the cache.
  struct Last {
    std::uint32_t one = 0, pair = 0;
  };
  static constexpr unsigned kRecordBits = 24;
  static_assert(kMaxValues / 2 < std::size_t{1} << kRecordBits); // a record costs a value more than it has
  [[nodiscard]] static std::uint32_t check(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 56) << kRecordBits;
  }
  // Of a Last without its check bits: 0 if there was none, too large if they differ.
  [[nodiscard]] static bool may_be(std::uint32_t record) { return record - 1 < (1u << kRecordBits) - 1; }
  [[nodiscard]] Last *by_lead() const { return reinterpret_cast<Last *>(leads_.data()); }
  [[nodiscard]] std::uint64_t *rows() const { return reinterpret_cast<std::uint64_t *>(memory_.data()); }
  [[gnu::noinline]] void reserve(std::size_t values) {
    const std::size_t wanted = std::max<std::size_t>(16, values + values / 2);
    memory_.grow_keeping(wanted * sizeof(std::uint64_t),
                         std::size_t{size_} * fields_ * sizeof(std::uint64_t));
  }
  [[gnu::noinline]] void grow() {
    hashed_ = std::max<std::size_t>(64, hashed_ * 4);
    std::memset(leads_.room(hashed_ * sizeof(Last)), 0, hashed_ * sizeof(Last));
    std::uint64_t before = 0;
    for (std::uint32_t i = 0; i + 1 < size_; ++i) {
      const std::uint64_t lead = row(i)[lead_];
      const std::uint64_t hash = mix(lead);
      by_lead()[hash & (hashed_ - 1)].one = (i + 1) ^ check(hash);
      by_lead()[mix(lead ^ mix(before + 1)) & (hashed_ - 1)].pair = (i + 1) ^ check(hash);
      before = lead;
    }
  }
  unsigned fields_ = 0;
  std::uint8_t lead_ = kNoLead;
  std::uint32_t size_ = 0, match_ = 0;
  bool settled_ = true;
  std::uint64_t hash_ = 0, pair_hash_ = 0; // of the last record's lead, and of it and the one before
  std::size_t hashed_ = 0;                 // size of by_lead() in use, or 0
  base::RawMemory memory_;                 // of rows()
  base::RawMemory leads_;                  // of by_lead()
};

} // namespace etwrelog::etlz
