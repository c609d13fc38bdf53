#include "passes/attribution.hpp"

#include <map>
#include <tuple>

namespace etwrelog::pipeline {

namespace {

auto claim_of(const Share &share) {
  return std::tuple(share.carried, share.tid, share.pid);
}

// By claim, then by buffer.
auto place_of(const Share &share) {
  return std::tuple_cat(claim_of(share), std::tuple(share.first_buffer));
}

} // namespace

void Share::add(const Share &other) {
  first_buffer = std::min(first_buffer, other.first_buffer);
  last_buffer = std::max(last_buffer, other.last_buffer);
  from = std::min(from, other.from);
  to = std::max(to, other.to);
  events += other.events;
  bytes += other.bytes;
  samples += other.samples;
}

void Shares::clear(std::uint32_t first_buffer, std::uint32_t last_buffer) {
  all_.clear();
  slots_.assign(slots_.size(), 0);
  last_.fill({kNoKey, 0});
  first_buffer_ = first_buffer;
  last_buffer_ = last_buffer;
}

std::size_t Shares::place(std::uint64_t key) {
  if ((all_.size() + 1) * 2 > slots_.size()) grow();
  const auto tid = static_cast<std::uint32_t>(key >> 32), pid = static_cast<std::uint32_t>(key);
  for (std::size_t i = key * 0x9E37'79B9'7F4A'7C15u >> 32;; ++i) {
    std::uint32_t &slot = slots_[i & (slots_.size() - 1)];
    if (slot == 0) {
      all_.push_back({.tid = tid, .pid = pid, .first_buffer = first_buffer_, .last_buffer = last_buffer_});
      slot = static_cast<std::uint32_t>(all_.size());
      return all_.size() - 1;
    }
    const Share &share = all_[slot - 1];
    if (share.tid == tid && share.pid == pid && !share.carried) return slot - 1;
  }
}

// Of the buffer at hand, so it is among the last.
Share &Shares::of_carried(std::uint32_t buffer) {
  for (std::size_t i = all_.size(); i-- > 0;)
    if (all_[i].carried) {
      if (all_[i].first_buffer == buffer) return all_[i];
      break;
    }
  all_.push_back({.carried = true, .first_buffer = buffer, .last_buffer = buffer});
  return all_.back();
}

void Shares::grow() {
  slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, 0);
  for (std::size_t at = 0; at < all_.size(); ++at) {
    if (all_[at].carried) continue;
    const std::uint64_t key = std::uint64_t{all_[at].tid} << 32 | all_[at].pid;
    std::size_t i = key * 0x9E37'79B9'7F4A'7C15u >> 32;
    while (slots_[i & (slots_.size() - 1)] != 0)
      ++i;
    slots_[i & (slots_.size() - 1)] = static_cast<std::uint32_t>(at + 1);
  }
}

bool Attribution::is_settled(const Share &share, const filter::Lifetimes &lifetimes) {
  if (const std::uint32_t tid = thread_of(share, lifetimes);
      tid != kUnknownId && !lifetimes.same_thread(tid, share.from, share.to))
    return false;
  const std::uint32_t pid = owner(share, lifetimes);
  return pid == kUnknownId || lifetimes.same_process(pid, share.from, share.to);
}

std::uint32_t Attribution::owner(const Share &share, const filter::Lifetimes &lifetimes) {
  if (const std::uint32_t tid = thread_of(share, lifetimes); tid != kUnknownId)
    if (const auto pid = lifetimes.pid_of_thread(tid, share.from); pid && *pid != kUnknownId) return *pid;
  return share.pid;
}

// Only shares that follow each other are added up, so that those of one claim never overlap in buffers.
void Attribution::make_room(const filter::Lifetimes &lifetimes) {
  sort();
  std::size_t kept = 0;
  for (const Share &share : shares_) {
    if (kept > 0 && !share.carried && claim_of(shares_[kept - 1]) == claim_of(share)) {
      Share both = shares_[kept - 1];
      both.add(share);
      if (is_settled(both, lifetimes)) {
        shares_[kept - 1] = both;
        continue;
      }
    }
    shares_[kept++] = share;
  }
  shares_.resize(kept);
  if (kept <= most_ / 2) return;
  given_up_ = true;
  shares_ = {};
}

void Attribution::sort() {
  std::ranges::sort(shares_, {}, place_of);
}

void Attribution::note_buffers() {
  std::size_t end = 0;
  for (const Share &share : shares_)
    end = std::max(end, share.last_buffer + std::size_t{1});
  std::vector<std::int32_t> steps(end + 1); // how many more shares reach a buffer than the one before it
  for (const Share &share : shares_) {
    ++steps[share.first_buffer];
    --steps[share.last_buffer + std::size_t{1}];
  }
  buffers_.assign(end, false);
  std::int32_t reaching = 0;
  for (std::size_t buffer = 0; buffer < end; ++buffer) {
    reaching += steps[buffer];
    buffers_[buffer] = reaching > 0;
  }
}

bool Attribution::left(std::uint32_t buffer) const {
  return given_up_ || (buffer < buffers_.size() && buffers_[buffer]);
}

bool Attribution::left(const filter::Claim &claim, std::uint32_t buffer) const {
  if (given_up_) return true;
  // Those of a buffer's beginning have no ids.
  const auto asked = claim.carried() ? std::tuple(true, kUnknownId, kUnknownId)
                                     : std::tuple(false, claim.tid(), claim.pid());
  const auto after =
      std::ranges::upper_bound(shares_, std::tuple_cat(asked, std::tuple(buffer)), {}, place_of);
  if (after == shares_.begin()) return false;
  const Share &share = *std::prev(after);
  return claim_of(share) == asked && buffer <= share.last_buffer;
}

Result<void> attribute_rest(const Trace &trace, std::uint32_t first_buffer, const Attribution &left,
                            const filter::Lifetimes &lifetimes,
                            const std::function<void(const Share &, std::uint32_t)> &give,
                            const PassOptions &options) {
  struct Given {
    std::vector<std::pair<Share, std::uint32_t>> shares;
  };
  const LeftOut kept(
      [&](std::size_t buffer) { return !left.left(first_buffer + static_cast<std::uint32_t>(buffer)); });
  Pass<Given> pass;
  pass.name = "attributing";
  pass.work = [&](Batch &batch, Given &part) {
    std::map<std::pair<std::uint32_t, std::optional<std::uint32_t>>, Share> shares;
    for (const DecodedBuffer &buffer : batch.buffers) {
      if (buffer.events.empty()) continue;
      const std::uint32_t index = first_buffer + buffer.index;
      filter::Position position{buffer.header.processor(), lifetimes.thread_at_start(index)};
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        const filter::Claim claim = filter::claim_of(event, position);
        if (!claim.anyone() || !left.left(claim, index)) return;
        const filter::Owner owner = filter::owner_of(claim, time, lifetimes);
        const std::uint32_t pid = owner.kind == filter::Owner::Kind::process ? owner.pid : kUnknownId;
        shares[{pid, lifetimes.process_at(pid, time)}].add(event, time);
      });
    }
    part.shares.clear();
    for (const auto &[owner, share] : shares)
      part.shares.emplace_back(share, owner.first);
  };
  pass.merge = [&](Batch &, Given &part) -> Result<void> {
    for (const auto &[share, pid] : part.shares)
      give(share, pid);
    return {};
  };
  ETWRELOG_TRY(run_pass(trace, pass, options, &kept)); // what it meets has been met before
  return {};
}

} // namespace etwrelog::pipeline
