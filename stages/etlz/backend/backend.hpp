// The entropy coders behind the streams of a segment.
#pragma once

#include "etlz/model/streams.hpp"

#include "etwrelog/codec.hpp"

#include <memory>
#include <span>

namespace etwrelog::etlz {

// Contexts and scratch memory of one thread.
class Backend {
public:
  static constexpr std::size_t kMaxStreams = 1u << 20; // that unpack() takes

  Backend();
  ~Backend();
  Backend(const Backend &) = delete;
  Backend &operator=(const Backend &) = delete;

  // Appends all streams with their directory. `cost`, if given, receives the bytes each stream took.
  void pack(std::span<const Bytes> streams, Level level, std::vector<std::uint8_t> &out,
            std::vector<std::size_t> *cost = nullptr);

  // Undoes pack. `streams` point into memory that lives until the next call. False when `in` is damaged or
  // would need more than `limit` bytes.
  [[nodiscard]] bool unpack(Bytes in, std::size_t limit, std::vector<Bytes> &streams);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace etwrelog::etlz
