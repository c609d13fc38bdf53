// Buffers of a trace that have been read once and are wanted again: their events, or those of them that
// matter, in memory or as places in the file.
#pragma once

#include "passes/pass.hpp"

namespace etwrelog::pipeline {

class BufferCache final : public KeptBuffers {
public:
  explicit BufferCache(std::size_t buffers) : places_(buffers, kNone) {}
  // The buffer's events must outlive the cache. Of one that is left in the file these are none, and `left`
  // says where they stand.
  void add(const DecodedBuffer &buffer, std::vector<Stretch> left);
  void forget(std::uint32_t buffer) { places_[buffer] = kNone; }
  [[nodiscard]] const DecodedBuffer *find(std::size_t buffer) const override {
    return places_[buffer] != kNone ? &kept_[places_[buffer]].buffer : nullptr;
  }
  [[nodiscard]] Stretches left_in_file(std::size_t buffer) const override {
    return kept_[places_[buffer]].left;
  }
  [[nodiscard]] std::uint64_t missing() const; // how many are to be read

private:
  struct Kept {
    DecodedBuffer buffer;
    std::vector<Stretch> left;
  };
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  std::vector<std::uint32_t> places_; // in kept_, by buffer
  std::vector<Kept> kept_;
};

} // namespace etwrelog::pipeline
