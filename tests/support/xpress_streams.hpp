// XPRESS streams of one content: the one that follows from the predictor's rules, and another encoder's.
#pragma once

#include "codec/xpress/predictor.hpp"
#include "codec/xpress/writer.hpp"
#include "etwrelog/codec.hpp"

#include <gtest/gtest.h>

namespace etwrelog::testing {

// What the rules alone make of the content: restoring without corrections.
inline std::vector<std::uint8_t> stream_by_the_rules(codec::XpressPredictor &predictor, Bytes decoded) {
  for (std::size_t size = 4; size <= codec::XpressWriter::bound(decoded.size()); ++size)
    if (std::vector<std::uint8_t> out(size); predictor.restore(decoded, {}, out)) return out;
  return {};
}

inline std::vector<std::uint8_t> stream_by_our_encoder(Bytes decoded, Level level = Level::normal) {
  Compressor compressor(Codec::xpress, level, decoded.size());
  std::vector<std::uint8_t> out(codec::XpressWriter::bound(decoded.size()));
  const CodecResult result = compressor.compress(decoded, out);
  EXPECT_TRUE(result);
  out.resize(result.produced);
  return out;
}

// Of a stream whose matches lie within the content, of so many bytes.
inline std::vector<codec::XpressToken> tokens_of(Bytes stream, std::size_t size) {
  std::vector<std::uint8_t> padded(stream.begin(), stream.end());
  padded.resize(padded.size() + codec::XpressReader::kReadAhead);
  codec::XpressReader reader(Bytes(padded).first(stream.size()));
  std::vector<codec::XpressToken> tokens;
  for (std::size_t pos = 0; pos < size && reader.more(); pos += tokens.back().length) {
    if (reader.at_literal()) {
      static_cast<void>(reader.literal());
      tokens.emplace_back();
    } else {
      tokens.push_back(reader.match());
    }
  }
  EXPECT_TRUE(reader.finish());
  return tokens;
}

} // namespace etwrelog::testing
