// Whose events are, told at the end of the one walk over a trace in which its processes become known: events
// are added up by what they claim (filter::Claim) and the times between which they do, and what a claim means
// throughout these times is asked when all is known. Where it changes between them, the buffers are read
// again: a few at most, around the ends of ids that are used again.
#pragma once

#include "filter/filter.hpp"
#include "passes/pass.hpp"

#include <functional>
#include <unordered_map>

namespace etwrelog::pipeline {

// The events of a stretch of buffers that claim the same.
struct Share {
  std::uint32_t tid = kUnknownId, pid = kUnknownId; // as in the claim
  bool carried = false;
  std::uint32_t first_buffer = 0, last_buffer = 0;
  std::int64_t from = kForever, to = kBeginning; // their times
  std::uint64_t events = 0, bytes = 0, samples = 0;

  void add(const EventView &event, std::int64_t time) {
    from = std::min(from, time);
    to = std::max(to, time);
    ++events;
    bytes += event.size();
    samples += filter::is_sample(event) ? 1 : 0;
  }
  // Takes in what claims the same.
  void add(const Share &other);
};

// The shares of one batch.
class Shares {
public:
  void clear(std::uint32_t first_buffer, std::uint32_t last_buffer);
  // `claim`: of an event that claims a thread or a process, `carried` or not.
  [[nodiscard]] Share &of(const filter::Claim &claim, std::uint32_t buffer) {
    if (claim.carried()) return of_carried(buffer);
    Last &last = last_[claim.tid() != kUnknownId ? 1 : 0];
    if (last.key != claim.ids()) last = {claim.ids(), place(claim.ids())};
    return all_[last.at];
  }
  [[nodiscard]] std::span<const Share> all() const { return all_; }

private:
  struct Last { // most events claim what the one before them does
    std::uint64_t key;
    std::size_t at;
  };
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0}; // claims nothing
  [[nodiscard]] std::size_t place(std::uint64_t key);
  [[nodiscard]] Share &of_carried(std::uint32_t buffer);
  void grow();

  std::vector<Share> all_;
  std::vector<std::uint32_t> slots_; // index + 1 into all_ by hash of the key; 0 is free
  std::array<Last, 2> last_{{{kNoKey, 0}, {kNoKey, 0}}};
  std::uint32_t first_buffer_ = 0, last_buffer_ = 0;
};

// The shares of a machine's traces.
class Attribution {
public:
  static constexpr std::size_t kShares = 1u << 20; // of 72 bytes
  explicit Attribution(std::size_t most) : most_(most) {}

  // In order of buffers. `so_far`: makes lifetimes of what is known, to make room by adding up what they
  // call the same; asked when there are more than there may be. Without success all are given up: what they
  // say is read again.
  template <class SoFar> void append(std::span<const Share> shares, SoFar &&so_far) {
    if (given_up_) return;
    shares_.insert(shares_.end(), shares.begin(), shares.end());
    if (shares_.size() > most_) make_room(so_far());
  }

  // Calls settle(share, pid) for each share whose owner is the same throughout, `pid` kUnknownId if it is
  // nobody known; the rest is kept.
  template <class Settle> void settle(const filter::Lifetimes &lifetimes, Settle &&settle) {
    std::erase_if(shares_, [&](const Share &share) {
      const bool same = is_settled(share, lifetimes);
      if (same) settle(share, owner(share, lifetimes));
      return same;
    });
    sort();
    note_buffers();
  }
  // Whether settle() has left something in the buffer, and whether the event that claims this is part of it.
  [[nodiscard]] bool left(std::uint32_t buffer) const;
  [[nodiscard]] bool left(const filter::Claim &claim, std::uint32_t buffer) const;
  [[nodiscard]] bool anything_left() const { return given_up_ || !shares_.empty(); }

private:
  [[nodiscard]] static std::uint32_t thread_of(const Share &share, const filter::Lifetimes &lifetimes) {
    return share.carried ? lifetimes.thread_at_start(share.first_buffer) : share.tid;
  }
  [[nodiscard]] static bool is_settled(const Share &share, const filter::Lifetimes &lifetimes);
  [[nodiscard]] static std::uint32_t owner(const Share &share, const filter::Lifetimes &lifetimes);
  void make_room(const filter::Lifetimes &lifetimes);
  void sort();
  void note_buffers();

  std::size_t most_;
  bool given_up_ = false;
  std::vector<Share> shares_; // from settle() on sorted by claim, then by buffer
  std::vector<bool> buffers_; // with something left
};

// What settle() has left, event by event: reads those buffers of the trace again. `first_buffer`: the number
// of its first one. Calls give(share, pid) as settle() does, for events of one owner and batch together.
[[nodiscard]] Result<void> attribute_rest(const Trace &trace, std::uint32_t first_buffer,
                                          const Attribution &left, const filter::Lifetimes &lifetimes,
                                          const std::function<void(const Share &, std::uint32_t)> &give,
                                          const PassOptions &options);

} // namespace etwrelog::pipeline
