// Deflate streams and gzip files for tests, made by zlib.
#pragma once

#include "etwrelog/bytes.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include <zlib.h>

namespace etwrelog::testing {

struct DeflateWay {
  int level = 6, window_bits = 15, memory_level = 8, strategy = Z_DEFAULT_STRATEGY;
  int flush = Z_NO_FLUSH;       // after every `every` bytes
  std::size_t every = SIZE_MAX; // that zlib is given at a time
};

// A deflate stream, nothing around it.
[[nodiscard]] inline std::vector<std::uint8_t> deflated(Bytes content, const DeflateWay &way = {}) {
  z_stream z{};
  if (deflateInit2(&z, way.level, Z_DEFLATED, -way.window_bits, way.memory_level, way.strategy) != Z_OK)
    std::abort();
  std::vector<std::uint8_t> out;
  std::vector<std::uint8_t> room(1u << 16);
  for (std::size_t at = 0;;) {
    const std::size_t count = std::min(content.size() - at, way.every);
    z.next_in = const_cast<std::uint8_t *>(content.data() + at);
    z.avail_in = static_cast<uInt>(count);
    at += count;
    const bool last = at == content.size();
    int status = Z_OK;
    do {
      z.next_out = room.data();
      z.avail_out = static_cast<uInt>(room.size());
      status = ::deflate(&z, last ? Z_FINISH : way.flush);
      out.insert(out.end(), room.begin(), room.end() - static_cast<std::ptrdiff_t>(z.avail_out));
    } while (z.avail_out == 0);
    if (last && status == Z_STREAM_END) break;
  }
  deflateEnd(&z);
  return out;
}

// A gzip file of one member, which names what is in it.
[[nodiscard]] inline std::vector<std::uint8_t> gzip_of(Bytes content, const DeflateWay &way = {},
                                                       const std::string &name = "trace.etl") {
  std::vector<std::uint8_t> out = {0x1F, 0x8B, 8, 8, 1, 2, 3, 4, 0, 3};
  out.insert(out.end(), name.begin(), name.end());
  out.push_back(0);
  const std::vector<std::uint8_t> stream = deflated(content, way);
  out.insert(out.end(), stream.begin(), stream.end());
  const auto size = static_cast<std::uint32_t>(content.size());
  std::uint8_t tail[8];
  store(tail, static_cast<std::uint32_t>(crc32(0, content.data(), size)));
  store(tail + 4, size);
  out.insert(out.end(), std::begin(tail), std::end(tail));
  return out;
}

// What a gzip file of one member holds; nothing if it is damaged.
[[nodiscard]] inline std::vector<std::uint8_t> gunzipped(Bytes file) {
  std::vector<std::uint8_t> out;
  z_stream z{};
  if (inflateInit2(&z, 15 + 16) != Z_OK) std::abort();
  z.next_in = const_cast<std::uint8_t *>(file.data());
  z.avail_in = static_cast<uInt>(file.size());
  std::vector<std::uint8_t> room(1u << 16);
  int status = Z_OK;
  while (status == Z_OK) {
    z.next_out = room.data();
    z.avail_out = static_cast<uInt>(room.size());
    status = ::inflate(&z, Z_NO_FLUSH);
    out.insert(out.end(), room.begin(), room.end() - static_cast<std::ptrdiff_t>(z.avail_out));
  }
  inflateEnd(&z);
  if (status != Z_STREAM_END) out.clear();
  return out;
}

} // namespace etwrelog::testing
