#include "profile/by_time.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace etwrelog::profile {
namespace {

// There are millions, their times span few bits, and they are nearly sorted: they are dealt out by their
// leading digits, so that the rest, a radix sort, stays in the processor's cache.
class ByTime {
public:
  explicit ByTime(const Sequence<Subject> &subjects) : subjects_(subjects), numbers_(subjects.size()) {
    if (numbers_.empty()) return;
    std::int64_t least = std::numeric_limits<std::int64_t>::max(),
                 most = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      least = std::min(least, subjects[i].time);
      most = std::max(most, subjects[i].time);
    }
    least_ = static_cast<std::uint64_t>(least);
    const std::uint64_t span = static_cast<std::uint64_t>(most) - least_;
    const std::size_t parts = std::clamp<std::size_t>(std::bit_ceil(numbers_.size() >> 14), 1, 1u << 16);
    const int shift =
        std::max(0, static_cast<int>(std::bit_width(span)) - static_cast<int>(std::bit_width(parts - 1)));
    std::vector<std::uint32_t> next((shift == 64 ? 0 : span >> shift) + 2);
    const auto part = [&](std::size_t i) { return shift == 64 ? 0 : time(i) >> shift; };
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      ++next[part(i) + 1];
    for (std::size_t i = 1; i < next.size(); ++i)
      next[i] += next[i - 1];
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      numbers_[next[part(i)]++] = static_cast<std::uint32_t>(i);
    // Now each stands where its part ends.
    std::uint32_t begin = 0;
    for (const std::uint32_t end : std::span(next).first(next.size() - 1)) {
      sort(std::span(numbers_).subspan(begin, end - begin), shift);
      begin = end;
    }
  }
  [[nodiscard]] std::vector<std::uint32_t> take() && { return std::move(numbers_); }

private:
  struct Item {
    std::uint64_t time;
    std::uint32_t number;
  };
  [[nodiscard]] std::uint64_t time(std::size_t i) const {
    return static_cast<std::uint64_t>(subjects_[i].time) - least_;
  }

  // By the last `bits` of their times; they are in the order of the file.
  void sort(std::span<std::uint32_t> numbers, int bits) {
    items_.clear();
    for (const std::uint32_t number : numbers)
      items_.push_back({time(number), number});
    if (std::ranges::is_sorted(items_, {}, &Item::time)) return;
    spare_.resize(items_.size());
    constexpr int kDigit = 11;
    for (int shift = 0; shift < bits; shift += kDigit) {
      std::array<std::uint32_t, (1u << kDigit)> next{};
      const auto digit = [&](const Item &item) { return item.time >> shift & ((1u << kDigit) - 1); };
      for (const Item &item : items_)
        ++next[digit(item)];
      std::uint32_t sum = 0;
      for (std::uint32_t &place : next)
        sum += std::exchange(place, sum);
      for (const Item &item : items_)
        spare_[next[digit(item)]++] = item;
      items_.swap(spare_);
    }
    std::ranges::transform(items_, numbers.begin(), &Item::number);
  }

  const Sequence<Subject> &subjects_;
  std::vector<std::uint32_t> numbers_;
  std::uint64_t least_ = 0;
  std::vector<Item> items_, spare_;
};

} // namespace

std::vector<std::uint32_t> by_time(const Sequence<Subject> &subjects) {
  return ByTime(subjects).take();
}

} // namespace etwrelog::profile
