// The match finder of plain XPRESS at its default level: for each hash of five bytes a row of the latest
// positions that have it, and for each of three bytes the latest one.
//
// A chain would be followed a candidate at a time, each with a load that waits for the one before and
// branches that are mispredicted; the candidates of a row are weighed all at once, with neither.
//
// A position is entered as its lower 16 bits and read as one of the kReach before the position at hand. What
// was entered long ago then names some other place, and what was never entered the start of the input or one
// of those: as every candidate is compared, that does no harm. None lies before the start, since all that is
// entered in the first kReach bytes is near enough.
#pragma once

#include "base/cpu.hpp"
#include "codec/match_finder.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <vector>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace etwrelog::codec {

// Kept from one input to the next, for its memory.
class RowTables {
public:
  RowTables() : rows_(std::size_t{kRowSize} << kRowBits), latest_(std::size_t{1} << kLatestBits) {}

private:
  friend class RowFinder;
  static constexpr std::size_t kRowSize = 8;
  static constexpr unsigned kRowBits = 13;
  static constexpr unsigned kLatestBits = 13;

  std::vector<std::uint16_t> rows_; // the latest first
  std::vector<std::uint16_t> latest_;
};

class RowFinder {
public:
  // Bytes that must follow a position for it to be entered or matched.
  static constexpr std::size_t kNeeds = 16;
  // Matches that are as long as this are not improved.
  static constexpr std::size_t kEnough = 280;

  RowFinder(RowTables &tables, Bytes in, std::size_t max_distance)
      : begin_(in.data()), rows_(tables.rows_.data()), latest_(tables.latest_.data()),
        max_distance_(max_distance) {
    std::fill(tables.rows_.begin(), tables.rows_.end(), 0);
    std::fill(tables.latest_.begin(), tables.latest_.end(), 0);
  }

  // The longest match at `pos` that is found, of any length; it ends at `end` at the latest. Enters the
  // positions up to `pos`, which rises from call to call and is not 0: most of those since the last call.
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE Match find(std::size_t pos, const std::uint8_t *end) {
    enter_up_to(pos);
    const Place place(*this, pos);
    const Match match = longest(place, end);
    enter(place);
    return match;
  }

  // The same for the position behind that of the last call, where only a match is wanted that is longer than
  // `beat`, of 3 to kNeeds - 1 bytes: most often there is none, and that is seen sooner than what there is.
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE Match find_longer(std::size_t pos, std::size_t beat,
                                                         const std::uint8_t *end) {
    assert(next_ == pos && beat >= 3 && beat < kNeeds);
    const Place place(*this, pos);
    // Whatever is longer has the same four bytes up to the one that makes it so.
    const std::uint8_t *const probe = place.at + (beat - 3);
    const auto wanted = load<std::uint32_t>(probe);
    bool hit = false;
    for (const std::int16_t offset : place.offsets) {
      hit |= load<std::uint32_t>(probe + offset) == wanted;
    }
    const Match match = hit ? longest(place, end) : Match{};
    enter(place);
    return match;
  }

private:
  static constexpr std::size_t kReach = 8192;
  static constexpr std::size_t kRowSize = RowTables::kRowSize;
  using Offsets = std::array<std::int16_t, kRowSize>;

  // A position, what the tables have for it, and where that is from there.
  struct Place {
    ETWRELOG_ALWAYS_INLINE Place(const RowFinder &finder, std::size_t position)
        : pos(position), at(finder.begin_ + position) {
      const auto bytes = load<std::uint64_t>(at);
      row = finder.rows_ + row_of(bytes);
      latest = finder.latest_ + latest_of(bytes);
      for (std::size_t i = 0; i < kRowSize; ++i) {
        offsets[i] = offset_of(row[i]);
      }
      latest_offset = offset_of(*latest);
    }

    // -kReach to -1
    [[nodiscard]] std::int16_t offset_of(std::uint16_t entry) const {
      return static_cast<std::int16_t>((entry - pos) | (0 - kReach));
    }

    std::size_t pos;
    const std::uint8_t *at;
    std::uint16_t *row;
    std::uint16_t *latest;
    Offsets offsets;
    std::int16_t latest_offset;
  };

  [[nodiscard]] static std::size_t row_of(std::uint64_t bytes) {
    return static_cast<std::size_t>((bytes << 24) * kFactor >> (64 - RowTables::kRowBits)) * kRowSize;
  }
  [[nodiscard]] static std::size_t latest_of(std::uint64_t bytes) {
    return static_cast<std::size_t>((bytes << 40) * kFactor >> (64 - RowTables::kLatestBits));
  }

  [[nodiscard]] ETWRELOG_ALWAYS_INLINE Match longest(const Place &place, const std::uint8_t *end) const {
    const std::uint8_t *const at = place.at;
    // The length above the offset: the greatest of them is the longest.
    const auto weigh = [at](std::int16_t offset) {
      return equal16(at + offset, at) << 16 | static_cast<std::uint16_t>(offset);
    };
    const auto longer = [](std::uint32_t a, std::uint32_t b) { return a > b ? a : b; };
    const Offsets &o = place.offsets;
    std::uint32_t best = longer(weigh(o[0]), weigh(o[1]));
    best = longer(best, longer(weigh(o[2]), weigh(o[3])));
    best = longer(best, weigh(place.latest_offset));
    // Where the latest positions of a row have nothing, the others seldom have.
    if (best >> 16 >= 5) {
      best = longer(best, longer(weigh(o[4]), weigh(o[5])));
      best = longer(best, longer(weigh(o[6]), weigh(o[7])));
    }
    Match match{best >> 16, (1u << 16) - (best & 0xFFFF)};
    if (match.length == 16) {
      match.length = match_length(at - match.distance, at, end);
      for (const std::int16_t offset : o) {
        if (match.length >= kEnough || at + match.length >= end) {
          break;
        }
        const std::uint8_t *const probe = at + (match.length - 7);
        if (load<std::uint64_t>(probe + offset) == load<std::uint64_t>(probe)) {
          const std::size_t length = match_length(at + offset, at, end);
          if (length > match.length) {
            match = {length, static_cast<std::size_t>(-offset)};
          }
        }
      }
    }
    return match.distance <= max_distance_ ? match : Match{}; // kReach may be more
  }

  ETWRELOG_ALWAYS_INLINE static void push(std::uint16_t *row, std::size_t pos) {
    auto *const bytes = reinterpret_cast<std::uint8_t *>(row);
#ifdef __SSE2__
    const __m128i older = _mm_slli_si128(load<__m128i>(bytes), 2);
    store(bytes, _mm_insert_epi16(older, static_cast<int>(pos), 0));
#else
    const auto low = load<std::uint64_t>(bytes);
    store(bytes + 8, load<std::uint64_t>(bytes + 8) << 16 | low >> 48);
    store(bytes, low << 16 | static_cast<std::uint16_t>(pos));
#endif
  }

  ETWRELOG_ALWAYS_INLINE void enter(const Place &place) {
    push(place.row, place.pos);
    *place.latest = static_cast<std::uint16_t>(place.pos);
    next_ = place.pos + 1;
  }

  // Within a match it does to have every second position, and that for five bytes only: the encoder extends
  // a match to the front, too. But the last few positions are those where matches with a longer context
  // start.
  ETWRELOG_ALWAYS_INLINE void enter_up_to(std::size_t pos) {
    constexpr std::size_t kAll = 4;
    std::size_t i = next_;
    if (pos - i > kAll) {
      for (; i < pos - kAll; i += 2) {
        push(rows_ + row_of(load<std::uint64_t>(begin_ + i)), i);
      }
      i = pos - kAll;
    }
    for (; i < pos; ++i) {
      const auto bytes = load<std::uint64_t>(begin_ + i);
      push(rows_ + row_of(bytes), i);
      latest_[latest_of(bytes)] = static_cast<std::uint16_t>(i);
    }
  }

  static constexpr std::uint64_t kFactor = 0x9E37'79B1'85EB'CA87u;

  const std::uint8_t *begin_;
  std::uint16_t *rows_;
  std::uint16_t *latest_;
  std::size_t max_distance_;
  std::size_t next_ = 0; // the first position not entered
};

} // namespace etwrelog::codec
