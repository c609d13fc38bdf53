// What a SegmentCoder holds, and what its parts know of buffers.
#pragma once

#include "etlz/segment.hpp"

#include "base/raw_memory.hpp"
#include "codec/lznt1/predictor.hpp"
#include "codec/xpress/streams.hpp"
#include "etlz/model/model.hpp"
#include "etlz/proof.hpp"
#include "etwrelog/codec.hpp"

namespace etwrelog::etlz {

using format::BufferHeader;
using format::kBufferHeaderSize;

// How the bytes of a buffer behind its header are stored.
enum class Content : std::uint8_t {
  events,   // as they are
  verbatim, // compressed in a way that cannot be predicted, kept so
  xpress,   // decoded, and what it takes to compress it the way Windows, or an encoder of ours, did
  lznt1,    // the same
  count_,
};
// In the list of parts: 0 for bytes that are no buffer, 1 + Content, kOfRecycled more where the buffer's
// memory had held an earlier buffer.
inline constexpr unsigned kOfRecycled = static_cast<unsigned>(Content::count_);

// Decoded size that the header of a compressed buffer claims; 0 if it is none to believe.
[[nodiscard]] inline std::size_t claimed_size(const BufferHeader &h) {
  const std::size_t valid = h.valid_bytes();
  return valid > kBufferHeaderSize && valid <= format::kMaxBufferSize ? valid - kBufferHeaderSize : 0;
}

inline constexpr std::uint64_t kFillWord = 0x0101'0101'0101'0101ull * format::kFillByte;

// Length of the slack up to its last byte that is no fill.
[[nodiscard]] inline std::size_t odd_slack(Bytes slack) {
  std::size_t odd = slack.size();
  while (odd >= 8 && load<std::uint64_t>(slack.data() + odd - 8) == kFillWord)
    odd -= 8;
  while (odd > 0 && slack[odd - 1] == format::kFillByte)
    --odd;
  return odd;
}

// Bytes of events in an uncompressed buffer; what follows up to `content` is slack.
[[nodiscard]] inline std::size_t valid_content(const BufferHeader &h, std::size_t content) {
  const std::size_t valid = h.valid_bytes();
  return valid < kBufferHeaderSize ? 0 : std::min(content, valid - kBufferHeaderSize);
}

struct SegmentCoder::State {
  std::stop_token stop;
  Backend backend;
  ModelEncoder encoder;
  ModelDecoder decoder;
  struct Coupled { // made when the first segment asks for it
    ContextModel model;
    CoupledEncoder encoder;
    CoupledDecoder decoder;
  };
  std::unique_ptr<Coupled> coupled_;
  Coupled &coupled() {
    if (coupled_ == nullptr) coupled_ = std::make_unique<Coupled>();
    return *coupled_;
  }
  std::vector<std::uint8_t> table;
  base::RawMemory decoded; // all compressed buffers of the segment at hand
  RecycledMemory memory;
  std::vector<BufferEvents> contents; // the events of each part, as encode() took them
  base::RawMemory decompressed;       // compressed buffers, while decoding
  codec::XpressStreams xpress;
  std::unique_ptr<codec::Lznt1Predictor> lznt1;
  std::size_t predictor_size = 0;
  StreamProofs proofs;      // of the segment that was taken apart last
  base::RawMemory compared; // a part
  // The decoder of the way has the memory of its encoder.
  bool lent = false, lent_coupled = false;

  void size_predictors(std::size_t size) {
    if (lznt1 != nullptr && size <= predictor_size) return;
    predictor_size = std::max<std::size_t>(size, 64 * 1024);
    xpress.make_room(predictor_size);
    lznt1 = std::make_unique<codec::Lznt1Predictor>(predictor_size);
  }
  // How a compressed buffer is kept; fills `plain` unless it is verbatim. LZNT1 is tried first: XPRESS
  // streams never look like it. `at`: where the part begins, if what is seen here may serve as its proof.
  Content predict(Bytes content, MutableBytes plain, std::vector<std::uint8_t> &to,
                  std::optional<std::size_t> at = {}) {
    if (plain.empty()) return Content::verbatim;
    size_predictors(plain.size());
    if (decompress(Codec::lznt1, content, plain) && lznt1->encode(content, plain, to)) return Content::lznt1;
    if (decompress(Codec::xpress, content, plain) &&
        (at ? proofs.see(xpress, *at, content, plain, to) : xpress.encode(content, plain, to)))
      return Content::xpress;
    return Content::verbatim;
  }
  bool restore(Content kind, Bytes plain, Bytes corrected, MutableBytes content) {
    size_predictors(plain.size());
    return kind == Content::lznt1 ? static_cast<bool>(lznt1->restore(plain, corrected, content))
                                  : static_cast<bool>(xpress.restore(plain, corrected, content));
  }

  // What encode() finds before any model is asked; of each part in the second group.
  std::size_t largest_decoded = 0, all_decoded = 0;
  bool recycled = false;
  std::vector<Content> kinds;
  std::vector<std::uint8_t> corrections;
  std::vector<std::size_t> correction_sizes;
  [[nodiscard]] std::uint64_t event_bytes() const;
  void take_apart(Bytes bytes, std::span<const Part> parts);
  // All of a segment but its table, to and from the streams or the code of a model.
  template <class Encoder> void write(Encoder &model, Bytes bytes, std::span<const Part> parts);
  // `target.room(at, n)`: where n bytes of the segment go; `target.good(at, bytes)`: they are there, and stay
  // where they are for no longer than this. `target.proven(at, part, plain, corrections)`: the part, of which
  // the header is there, needs not be restored from these. `target.staying(at, plain)`: where the same bytes
  // stay, or `plain`, which then has to.
  template <class Decoder, class Target>
  [[nodiscard]] bool read(Decoder &model, std::size_t size_of_all, std::size_t scratch, Target &&target);
  template <class Encoder>
  void note(const Encoder &model, std::span<const Part> parts, SegmentFacts &facts) const;

  void encode_streams(Bytes bytes, std::span<const Part> parts, Level level, std::vector<std::uint8_t> &out,
                      SegmentFacts &facts, std::vector<ColumnCost> *explain);
  // False if the table is too large.
  [[nodiscard]] bool encode_coupled(Bytes bytes, std::span<const Part> parts, std::vector<std::uint8_t> &out,
                                    SegmentFacts &facts, std::vector<ColumnCost> *explain);
  template <class Target>
  [[nodiscard]] bool decode(SegmentMethod method, Bytes coded, std::size_t size, std::size_t limit,
                            std::size_t scratch, Target &&target);
  template <class Target>
  [[nodiscard]] bool decode_streams(Bytes coded, std::size_t size, std::size_t limit, std::size_t scratch,
                                    Target &&target);
  template <class Target>
  [[nodiscard]] bool decode_coupled(Bytes coded, std::size_t size, std::size_t limit, std::size_t scratch,
                                    Target &&target);
};

} // namespace etwrelog::etlz
