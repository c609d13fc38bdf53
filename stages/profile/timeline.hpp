// What a reused id stood for at a time: whose a thread was, which process an id meant.
//
// A start or a rundown opens an ownership that lasts until the next one of the same id, whatever the end
// events say: an ended thread is still sampled while it is torn down. The first rundown of an id reaches back
// to the beginning. End events only tell about the time before the first start.
#pragma once

#include "base/seed.hpp"
#include "etwrelog/state.hpp"
#include "profile/records.hpp"

#include <unordered_map>

namespace etwrelog::profile {

using etwrelog::kBeginning;
using etwrelog::kForever;

inline constexpr TimeRange kAlways{kBeginning, kForever};

// What changes at these times, sorted: how many have passed. Cuts `valid` as Timeline::find does.
[[nodiscard]] std::uint32_t count_changes(std::span<const std::int64_t> changes, std::int64_t time,
                                          TimeRange &valid);

// Works on numbers; who uses it keeps what they mean. Equal values are the same owner.
class Timeline {
public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  struct Span {
    std::int64_t from = kBeginning;
    std::uint32_t value = 0;
    std::int64_t start = kBeginning, end = kForever; // as the trace tells; the extremes where it does not
  };

  // `opcode`: 1 start, 2 end, 3 and 4 rundown at the start and at the end.
  void add(std::uint32_t id, Instant at, std::uint8_t opcode, std::uint32_t value) {
    rows_.push_back({id, at, opcode, value});
  }
  // When all are added, in any order. `ends_tell_owner`: an end with another value is another owner's, whose
  // start was lost; otherwise only where the last owner has ended, as names at an end may be cut or missing.
  void close(bool ends_tell_owner);

  // The number of a span; kNone if nothing is known of the id at that time.
  [[nodiscard]] std::uint32_t find(std::uint32_t id, std::int64_t time) const {
    TimeRange range = kAlways;
    return find(id, time, range);
  }
  // Also cuts `valid` down to the times around this one at which the answer is the same.
  [[nodiscard]] std::uint32_t find(std::uint32_t id, std::int64_t time, TimeRange &valid) const;
  [[nodiscard]] const Span &operator[](std::uint32_t span) const { return spans_[span]; }
  [[nodiscard]] std::size_t size() const { return spans_.size(); }

private:
  struct Row {
    std::uint32_t id;
    Instant at;
    std::uint8_t opcode;
    std::uint32_t value;
  };
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  void close_id(std::span<const Row> rows, bool ends_tell_owner);

  std::vector<Row> rows_;
  std::vector<Span> spans_; // by id, then by time
  std::unordered_map<std::uint32_t, Range, base::SeededHash> ranges_;
};

} // namespace etwrelog::profile
