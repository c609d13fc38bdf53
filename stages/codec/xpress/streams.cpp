#include "codec/xpress/streams.hpp"

#include "base/errors.hpp"

#include <algorithm>

namespace etwrelog::codec {
namespace {

// More than one byte of corrections to so many of the stream: not what Windows writes.
constexpr std::size_t kManyCorrections = 64;

} // namespace

void XpressStreams::make_room(std::size_t max_decoded) {
  max_decoded_ = max_decoded;
  windows_ = std::make_unique<XpressPredictor>(max_decoded);
  encoders_ = {};
}

void XpressStreams::forget() {
  last_ = 0;
  tries_ = kTries;
}

// Fills `compressed` with the stream that this encoder of ours makes. False if that is of another size.
bool XpressStreams::make(std::size_t number, Bytes decoded, MutableBytes compressed) {
  std::optional<Compressor> &encoder = encoders_[number - 1];
  if (!encoder) encoder.emplace(Codec::xpress, kEncoders[number - 1], max_decoded_);
  const CodecResult made = encoder->compress(decoded, compressed);
  return made && made.produced == compressed.size();
}

bool XpressStreams::makes(std::size_t number, Bytes compressed, Bytes decoded) {
  made_.resize(compressed.size());
  return make(number, decoded, made_) && std::ranges::equal(made_, compressed);
}

bool XpressStreams::encode(Bytes compressed, Bytes decoded, std::vector<std::uint8_t> &corrections) {
  if (last_ != 0 && makes(last_, compressed, decoded)) {
    corrections.push_back(static_cast<std::uint8_t>(last_));
    return true;
  }
  const std::size_t before = corrections.size();
  const bool by_the_rules = windows_->encode(compressed, decoded, corrections);
  const std::size_t added = corrections.size() - before;
  if (by_the_rules && added <= compressed.size() / kManyCorrections) {
    last_ = 0;
    return true;
  }
  if (tries_ == 0) return by_the_rules;
  for (std::size_t number = 1; number <= kEncoders.size(); ++number) {
    if (number == last_ || !makes(number, compressed, decoded)) continue;
    last_ = number;
    corrections.resize(before);
    corrections.push_back(static_cast<std::uint8_t>(number));
    return true;
  }
  --tries_;
  return by_the_rules;
}

Result<void> XpressStreams::restore(Bytes decoded, Bytes corrections, MutableBytes compressed) {
  if (corrections.size() != 1) return windows_->restore(decoded, corrections, compressed);
  const std::size_t number = corrections[0];
  if (number == 0 || number > kEncoders.size() || decoded.size() > max_decoded_)
    return base::corrupt("XPRESS corrections: an encoder that is not known");
  if (!make(number, decoded, compressed))
    return base::corrupt("XPRESS corrections: the stream comes out at another size");
  return {};
}

} // namespace etwrelog::codec
