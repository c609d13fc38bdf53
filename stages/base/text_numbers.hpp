// Numbers for texts, each of which is kept once.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace etwrelog::base {

class TextNumbers {
public:
  TextNumbers() = default;
  TextNumbers(TextNumbers &&) = default; // texts stay where they are
  TextNumbers &operator=(TextNumbers &&) = default;
  TextNumbers(const TextNumbers &) = delete;
  TextNumbers &operator=(const TextNumbers &) = delete;

  // From 0 on, in the order in which texts come first.
  std::uint32_t number(std::string_view text) {
    if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
    const auto number = static_cast<std::uint32_t>(texts_.size());
    numbers_.emplace(texts_.emplace_back(text), number);
    return number;
  }
  [[nodiscard]] const std::string &operator[](std::uint32_t number) const { return texts_[number]; }
  [[nodiscard]] const std::deque<std::string> &all() const { return texts_; }
  void clear() {
    numbers_.clear();
    texts_.clear();
  }

private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

} // namespace etwrelog::base
