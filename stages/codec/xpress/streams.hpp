// XPRESS streams of traces, told by what wrote them: Windows, or an encoder of ours (`relog --codec xpress`).
//
// What makes a stream of ours again is the encoder itself. So the bytes that these encoders make are part of
// the archive format, as the predictions are: an encoder that makes others gets a number of its own.
#pragma once

#include "codec/xpress/predictor.hpp"
#include "etwrelog/codec.hpp"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace etwrelog::codec {

// Made once a thread and reused. Not thread-safe itself.
class XpressStreams {
public:
  // Before all else, and before larger ones come: for buffers of up to `max_decoded` bytes (at most 1 GiB).
  // What was seen of streams stays known.
  void make_room(std::size_t max_decoded);

  // As if no stream had been seen: what encode() tries first depends on the streams before.
  void forget();

  // As XpressPredictor::encode, after make_room(). A single byte of corrections, which the predictor never
  // makes, is the number of the encoder of ours that wrote the stream: true then comes of having made the
  // stream again.
  [[nodiscard]] bool encode(Bytes compressed, Bytes decoded, std::vector<std::uint8_t> &corrections);

  // As XpressPredictor::restore, with such a byte too.
  [[nodiscard]] Result<void> restore(Bytes decoded, Bytes corrections, MutableBytes compressed);

private:
  // Those of `max` are not known: to run it takes ten times as long as all else.
  static constexpr std::array kEncoders = {Level::normal, Level::fast}; // of number 1, 2
  static constexpr unsigned kTries = 2;

  [[nodiscard]] bool make(std::size_t number, Bytes decoded, MutableBytes compressed);
  [[nodiscard]] bool makes(std::size_t number, Bytes compressed, Bytes decoded);

  std::size_t max_decoded_ = 0;
  std::unique_ptr<XpressPredictor> windows_;
  std::array<std::optional<Compressor>, kEncoders.size()> encoders_; // where one was needed
  std::vector<std::uint8_t> made_;
  std::size_t last_ = 0;    // the number of the encoder that wrote the stream before; 0: none of ours
  unsigned tries_ = kTries; // left, of streams that nobody is known to have written
};

} // namespace etwrelog::codec
