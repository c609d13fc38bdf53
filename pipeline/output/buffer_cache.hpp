// Buffers of a trace that have been read once and are wanted again: their events, or those of them that
// matter, in memory.
#pragma once

#include "passes/pass.hpp"

namespace etwrelog::pipeline {

class BufferCache final : public KeptBuffers {
public:
  explicit BufferCache(std::size_t buffers) : places_(buffers, kNone) {}
  // Their events must outlive the cache.
  void add(std::span<const DecodedBuffer> buffers);
  void forget(std::uint32_t buffer) { places_[buffer] = kNone; }
  [[nodiscard]] const DecodedBuffer *find(std::size_t buffer) const override {
    return places_[buffer] != kNone ? &buffers_[places_[buffer]] : nullptr;
  }
  [[nodiscard]] std::uint64_t missing() const; // how many are to be read

private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  std::vector<std::uint32_t> places_; // in buffers_, by buffer
  std::vector<DecodedBuffer> buffers_;
};

} // namespace etwrelog::pipeline
