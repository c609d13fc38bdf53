// Buffers of a trace that have been read once and are wanted again: their events, or those of them that
// matter, in memory.
#pragma once

#include "passes/pass.hpp"

#include <memory>

namespace etwrelog::pipeline {

class BufferCache final : public KeptBuffers {
public:
  explicit BufferCache(std::size_t buffers) : places_(buffers, kNone) {}
  // `memory`: what the buffers' events stand in.
  void add(std::unique_ptr<std::uint8_t[]> memory, std::span<const DecodedBuffer> buffers);
  void forget(std::uint32_t buffer) { places_[buffer] = kNone; }
  [[nodiscard]] const DecodedBuffer *find(std::size_t buffer) const override {
    return places_[buffer] != kNone ? &buffers_[places_[buffer]] : nullptr;
  }
  [[nodiscard]] std::uint64_t missing() const; // how many are to be read

private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  std::vector<std::uint32_t> places_; // in buffers_, by buffer
  std::vector<DecodedBuffer> buffers_;
  std::vector<std::unique_ptr<std::uint8_t[]>> memory_;
};

} // namespace etwrelog::pipeline
