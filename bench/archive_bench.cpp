// Packing and unpacking real traces, one core, beside zstd and xz on the same decoded bytes. Counters: size
// is the archive, ratio its share of the input. Set ETWRELOG_TRACES to a folder of .etl files.
//
// Of a trace that Windows compressed, these take the buffers decompressed; "as_compressed" takes it as it is:
// decompressing, predicting what Windows made of it and proving that are then in the time, which is still
// told as decoded bytes a second.
#include "etlz/segment.hpp"
#include "etwrelog/format.hpp"
#include "tests/support/read_file.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <benchmark/benchmark.h>
#include <lzma.h>
#include <zstd.h>

namespace {

using namespace etwrelog;
using Buffer = std::vector<std::uint8_t>;

// The trace with its buffers decompressed: what all competitors get to see.
Buffer decoded(const Buffer &file, bool &was_compressed) {
  Buffer out;
  for (std::size_t at = 0; at + format::kBufferHeaderSize <= file.size();) {
    format::BufferHeader h = format::load_buffer_header(file.data() + at);
    if (h.buffer_size < format::kBufferHeaderSize || h.buffer_size > file.size() - at) break;
    const std::size_t size = h.buffer_size;
    // Fill behind the events is left out, as it is in the published sizes.
    const std::size_t valid = h.compressed() ? h.valid_bytes() : std::min<std::size_t>(size, h.valid_bytes());
    const std::size_t to = out.size();
    out.resize(to + valid);
    if (h.compressed()) {
      was_compressed = true;
      static_cast<void>(
          decompress(Codec::xpress,
                     Bytes(file).subspan(at + format::kBufferHeaderSize, size - format::kBufferHeaderSize),
                     MutableBytes(out).subspan(to + format::kBufferHeaderSize)));
    } else {
      std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(at), valid,
                  out.begin() + static_cast<std::ptrdiff_t>(to));
    }
    h.flags = static_cast<std::uint16_t>(h.flags & ~format::kFlagCompressed);
    h.buffer_size = static_cast<std::uint32_t>(valid);
    format::store_buffer_header(out.data() + to, h);
    at += size;
  }
  return out;
}

struct Trace {
  Buffer decoded;
  bool was_compressed = false;
  Buffer file; // if it was
};

const Trace &trace(const std::string &path) {
  static std::map<std::string, Trace> cache;
  Trace &t = cache[path];
  if (!t.decoded.empty()) return t;
  t.file = testing::read_file(path);
  t.decoded = decoded(t.file, t.was_compressed);
  if (!t.was_compressed) t.file = {};
  return t;
}

// What is packed, and what speeds are told of.
struct Input {
  const Buffer &bytes;
  std::size_t decoded;
};

Input input(const std::string &path, bool as_compressed) {
  const Trace &t = trace(path);
  return {as_compressed ? t.file : t.decoded, t.decoded.size()};
}

struct Packed {
  std::size_t original;
  Buffer coded;
  etlz::SegmentFacts facts;
  etlz::SegmentMethod method = etlz::SegmentMethod::model;
  bool good = false; // came back
};

std::vector<Packed> pack(etlz::SegmentCoder &coder, const Buffer &bytes, Level level, bool verify = false) {
  const std::size_t target = level >= Level::max ? std::size_t{64} << 20 : std::size_t{16} << 20;
  std::vector<Packed> segments;
  std::vector<etlz::Part> parts;
  for (std::size_t at = 0; at < bytes.size();) {
    const Bytes rest = Bytes(bytes).subspan(at);
    Packed p;
    p.original = etlz::split_parts(rest, true, target, parts);
    p.method = coder.encode(rest.first(p.original), parts, level, p.coded, &p.facts);
    p.good = verify && coder.gives(p.method, p.coded, rest.first(p.original), p.facts.stream_bytes,
                                   p.facts.scratch_bytes);
    at += p.original;
    segments.push_back(std::move(p));
  }
  return segments;
}

void unpack(etlz::SegmentCoder &coder, const std::vector<Packed> &segments, Buffer &out,
            benchmark::State &state) {
  std::size_t at = 0;
  for (const Packed &p : segments) {
    if (!coder.decode(p.method, p.coded, MutableBytes(out).subspan(at, p.original), p.facts.stream_bytes,
                      p.facts.scratch_bytes))
      state.SkipWithError("does not decode");
    at += p.original;
  }
}

void report(benchmark::State &state, std::size_t in, std::size_t out) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(in));
  state.counters["size"] = static_cast<double>(out);
  state.counters["ratio"] = static_cast<double>(out) / static_cast<double>(in);
}

void bm_pack(benchmark::State &state, const std::string &path, Level level, bool verify, bool as_compressed) {
  const auto [bytes, in] = input(path, as_compressed);
  etlz::SegmentCoder coder;
  std::size_t size = 0;
  for (auto _ : state) {
    const std::vector<Packed> segments = pack(coder, bytes, level, verify);
    size = 0;
    for (const Packed &p : segments) {
      size += p.coded.size();
      if (verify && !p.good) state.SkipWithError("does not come back");
    }
  }
  report(state, in, size);
}

void bm_unpack(benchmark::State &state, const std::string &path, Level level, bool as_compressed) {
  const auto [bytes, in] = input(path, as_compressed);
  etlz::SegmentCoder coder;
  const std::vector<Packed> segments = pack(coder, bytes, level);
  Buffer back(bytes.size());
  for (auto _ : state)
    unpack(coder, segments, back, state);
  std::size_t size = 0;
  for (const Packed &p : segments)
    size += p.coded.size();
  report(state, in, size);
}

void bm_zstd(benchmark::State &state, const std::string &path, int level) {
  const Buffer &bytes = trace(path).decoded;
  Buffer out(ZSTD_compressBound(bytes.size()));
  std::size_t size = 0;
  for (auto _ : state) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    if (level >= 19) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 27);
    size = ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size());
    ZSTD_freeCCtx(context);
  }
  report(state, bytes.size(), size);
}

void bm_xz(benchmark::State &state, const std::string &path) {
  const Buffer &bytes = trace(path).decoded;
  Buffer out(lzma_stream_buffer_bound(bytes.size()));
  std::size_t size = 0;
  for (auto _ : state) {
    size = 0;
    if (lzma_easy_buffer_encode(9 | LZMA_PRESET_EXTREME, LZMA_CHECK_CRC32, nullptr, bytes.data(),
                                bytes.size(), out.data(), &size, out.size()) != LZMA_OK)
      state.SkipWithError("xz failed");
  }
  report(state, bytes.size(), size);
}

} // namespace

int main(int argc, char **argv) {
  const char *folder = std::getenv("ETWRELOG_TRACES");
  std::error_code ignored;
  if (folder == nullptr) {
    std::fprintf(stderr, "archive_bench: set ETWRELOG_TRACES to a folder of .etl files\n");
    return 2;
  }
  for (const auto &f : std::filesystem::directory_iterator(folder, ignored)) {
    if (f.path().extension() != ".etl") continue;
    const std::string path = f.path().string(), name = f.path().stem().string();
    for (const Level l : {Level::normal, Level::max}) {
      auto add = [&name, l](const std::string &what, auto run) {
        const std::string level = l == Level::max ? "max" : "default";
        benchmark::RegisterBenchmark((name + "/" + what + "/" + level).c_str(), run)
            ->Unit(benchmark::kMillisecond);
      };
      add("pack", [path, l](benchmark::State &s) { bm_pack(s, path, l, true, false); });
      add("pack_no_verify", [path, l](benchmark::State &s) { bm_pack(s, path, l, false, false); });
      add("unpack", [path, l](benchmark::State &s) { bm_unpack(s, path, l, false); });
      if (!trace(path).was_compressed) continue;
      add("pack_as_compressed", [path, l](benchmark::State &s) { bm_pack(s, path, l, true, true); });
      add("unpack_as_compressed", [path, l](benchmark::State &s) { bm_unpack(s, path, l, true); });
    }
    for (const int level : {3, 9, 19})
      benchmark::RegisterBenchmark((name + "/zstd/" + std::to_string(level)).c_str(),
                                   [path, level](benchmark::State &s) { bm_zstd(s, path, level); })
          ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((name + "/xz/9e").c_str(), [path](benchmark::State &s) {
      bm_xz(s, path);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
