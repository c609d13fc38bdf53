// The trace as it is, its buffers compressed one by one as Windows does, and general compressors on the whole
// file.
#include "bench/report_outputs.hpp"

#include "etwrelog/codec.hpp"
#include "etwrelog/event.hpp"
#include "write/buffers.hpp"

#include <libdeflate.h>
#include <lzma.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

namespace etwrelog::bench {

std::vector<Output> &outputs() {
  static std::vector<Output> all;
  return all;
}

namespace {

const Registration as_is({"as is", "as is", "", "yes", 0,
                          [](Bytes trace) {
                            return Packed{{trace.begin(), trace.end()}, {}};
                          },
                          [](const Packed &p, std::size_t) { return p.bytes; }});

// Buffer by buffer. With buffers larger than the trace's, the events of a processor are put together first;
// what comes back is the events of the buffers, one after the other.
struct Buffers {
  std::vector<write::OutputBuffer> list;
};

Buffers rechunk(Bytes trace, std::uint32_t nominal) {
  write::Rechunker rechunker(nominal, false);
  Buffers out;
  std::size_t at = 0;
  while (at + format::kBufferHeaderSize <= trace.size()) {
    const format::BufferHeader h = format::load_buffer_header(trace.data() + at);
    if (h.buffer_size < format::kBufferHeaderSize || h.buffer_size > trace.size() - at) break;
    const std::uint32_t end = std::min(h.buffer_size, h.valid_bytes());
    if (end > format::kBufferHeaderSize) {
      const Bytes events = trace.subspan(at + format::kBufferHeaderSize, end - format::kBufferHeaderSize);
      write::Origin origin;
      origin.processor = h.processor();
      const write::Run run{0, static_cast<std::uint32_t>(events.size()), 0};
      (void)rechunker.add(origin, events, {&run, 1}, out.list);
    }
    at += h.buffer_size;
  }
  rechunker.flush(out.list);
  return out;
}

Output per_buffer(Codec codec, std::uint32_t nominal, int rank) {
  const std::string size = nominal == 64 << 10 ? "64 KB" : "1 MB", name(codec_name(codec));
  Output o;
  o.name = name + " per buffer of " + size;
  o.tool = name;
  o.level = size;
  o.opens = codec == Codec::xpress ? "yes" : "not known"; // no trace was seen that Windows wrote with LZNT1
  o.rank = rank;
  o.pack = [codec, nominal](Bytes trace) {
    Buffers buffers = rechunk(trace, nominal);
    Compressor compressor(codec, Level::normal, nominal);
    base::RawMemory scratch;
    Packed packed;
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> check(XXH3_createState(), &XXH3_freeState);
    XXH3_64bits_reset(check.get());
    for (write::OutputBuffer &b : buffers.list) {
      XXH3_64bits_update(check.get(), b.bytes.data() + format::kBufferHeaderSize,
                         b.bytes.size() - format::kBufferHeaderSize);
      write::seal(b, nominal, &compressor, scratch);
      packed.blocks.push_back(static_cast<std::uint32_t>(b.bytes.size()));
      packed.bytes.insert(packed.bytes.end(), b.bytes.begin(), b.bytes.end());
    }
    packed.check = XXH3_64bits_digest(check.get());
    return packed;
  };
  o.unpack = [codec](const Packed &packed, std::size_t) {
    std::vector<std::uint8_t> out;
    std::size_t at = 0;
    for (const std::uint32_t block : packed.blocks) {
      const format::BufferHeader h = format::load_buffer_header(packed.bytes.data() + at);
      const Bytes stored =
          Bytes(packed.bytes).subspan(at + format::kBufferHeaderSize, block - format::kBufferHeaderSize);
      const std::size_t start = out.size();
      if (h.compressed()) {
        out.resize(start + h.valid_bytes() - format::kBufferHeaderSize);
        if (!decompress(codec, stored, MutableBytes(out).subspan(start))) return std::vector<std::uint8_t>{};
      } else {
        out.insert(out.end(), stored.begin(), stored.end());
      }
      at += block;
    }
    return out;
  };
  return o;
}

const Registration xpress_small(per_buffer(Codec::xpress, 64 << 10, 10));
const Registration xpress_large(per_buffer(Codec::xpress, 1 << 20, 11));
const Registration lznt1_small(per_buffer(Codec::lznt1, 64 << 10, 12));
const Registration lznt1_large(per_buffer(Codec::lznt1, 1 << 20, 13));

Output deflate(int level) {
  const std::string l = std::to_string(level);
  return {"deflate " + l,
          "deflate (libdeflate)",
          l,
          "no",
          20 + level,
          [level](Bytes trace) {
            const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> c(
                libdeflate_alloc_compressor(level), &libdeflate_free_compressor);
            Packed p;
            p.bytes.resize(libdeflate_deflate_compress_bound(c.get(), trace.size()));
            p.bytes.resize(libdeflate_deflate_compress(c.get(), trace.data(), trace.size(), p.bytes.data(),
                                                       p.bytes.size()));
            return p;
          },
          [](const Packed &p, std::size_t size) {
            const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> d(
                libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
            std::vector<std::uint8_t> out(size);
            if (libdeflate_deflate_decompress(d.get(), p.bytes.data(), p.bytes.size(), out.data(), size,
                                              nullptr) != LIBDEFLATE_SUCCESS)
              out.clear();
            return out;
          }};
}
const Registration deflate6(deflate(6)), deflate12(deflate(12));

Output lzma(std::uint32_t preset, const std::string &level, int rank) {
  return {"LZMA2 " + level,
          "LZMA2 (liblzma)",
          level,
          "no",
          rank,
          [preset](Bytes trace) {
            Packed p;
            p.bytes.resize(lzma_stream_buffer_bound(trace.size()));
            std::size_t n = 0;
            if (lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC32, nullptr, trace.data(), trace.size(),
                                        p.bytes.data(), &n, p.bytes.size()) != LZMA_OK)
              n = 0;
            p.bytes.resize(n);
            return p;
          },
          [](const Packed &p, std::size_t size) {
            std::vector<std::uint8_t> out(size);
            std::uint64_t limit = UINT64_MAX;
            std::size_t in = 0, n = 0;
            if (lzma_stream_buffer_decode(&limit, 0, nullptr, p.bytes.data(), &in, p.bytes.size(), out.data(),
                                          &n, size) != LZMA_OK)
              n = 0;
            out.resize(n);
            return out;
          }};
}
const Registration lzma6(lzma(6, "6", 40)), lzma9(lzma(9 | LZMA_PRESET_EXTREME, "9e", 41));

Output zstd(int level) {
  const std::string l = std::to_string(level);
  return {"zstd " + l + " long",
          "zstd --long",
          l,
          "no",
          50 + level,
          [level](Bytes trace) {
            const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> c(ZSTD_createCCtx(), &ZSTD_freeCCtx);
            ZSTD_CCtx_setParameter(c.get(), ZSTD_c_compressionLevel, level);
            ZSTD_CCtx_setParameter(c.get(), ZSTD_c_enableLongDistanceMatching, 1);
            ZSTD_CCtx_setParameter(c.get(), ZSTD_c_windowLog, 27);
            Packed p;
            p.bytes.resize(ZSTD_compressBound(trace.size()));
            const std::size_t n =
                ZSTD_compress2(c.get(), p.bytes.data(), p.bytes.size(), trace.data(), trace.size());
            p.bytes.resize(ZSTD_isError(n) != 0 ? 0 : n);
            return p;
          },
          [](const Packed &p, std::size_t size) {
            const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> d(ZSTD_createDCtx(), &ZSTD_freeDCtx);
            ZSTD_DCtx_setParameter(d.get(), ZSTD_d_windowLogMax, 27);
            std::vector<std::uint8_t> out(size);
            const std::size_t n =
                ZSTD_decompressDCtx(d.get(), out.data(), size, p.bytes.data(), p.bytes.size());
            out.resize(ZSTD_isError(n) != 0 ? 0 : n);
            return out;
          }};
}
const Registration zstd3(zstd(3)), zstd9(zstd(9)), zstd19(zstd(19));

} // namespace
} // namespace etwrelog::bench
