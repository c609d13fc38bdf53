// Every codec and level on the buffers of real traces (when they are there, generated ones otherwise), with
// other libraries in the same run. Speeds are decoded bytes per second, on one core; "ratio" is packed/raw in
// percent.
//
// The baselines pack buffer by buffer, too: that is what a trace must do.
#include "etwrelog/codec.hpp"
#include "tests/support/trace_files.hpp"

#include <benchmark/benchmark.h>
#include <libdeflate.h>
#include <libfwnt.h>
#include <lzma.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace etwrelog;
using Buffer = std::vector<std::uint8_t>;

struct Data {
  std::string name;
  std::vector<Buffer> raw;
  std::vector<Buffer> stored; // as the file holds them, where it is compressed
  std::size_t raw_size = 0;
  std::size_t largest = 0;
};

// Records with counters, addresses that repeat and some noise: in place of real events, without being like
// them.
std::vector<Buffer> generated_buffers() {
  std::mt19937_64 random(1);
  std::vector<Buffer> buffers(64, Buffer(65536 - 72));
  std::uint64_t time = 1u << 30;
  for (Buffer &buffer : buffers) {
    std::array<std::uint64_t, 32> addresses;
    for (std::uint64_t &a : addresses) {
      a = 0x7FF8'0000'0000 + random() % 0x1000'0000;
    }
    for (std::size_t at = 0; at + 64 <= buffer.size(); at += 64) {
      time += random() % 5000;
      store(buffer.data() + at, 0xC014'0003'0040'0000u + random() % 4);
      store(buffer.data() + at + 8, time);
      store(buffer.data() + at + 16, std::uint64_t{4096} + random() % 8);
      for (std::size_t i = 24; i < 64; i += 8) {
        store(buffer.data() + at + i, addresses[random() % addresses.size()]);
      }
    }
  }
  return buffers;
}

Data make_data(std::string name, std::vector<Buffer> raw) {
  Data data{std::move(name), std::move(raw), {}, 0, 0};
  std::erase_if(data.raw, [](const Buffer &b) { return b.empty(); });
  for (const Buffer &b : data.raw) {
    data.raw_size += b.size();
    data.largest = std::max(data.largest, b.size());
  }
  return data;
}

// Traces smaller than this say nothing about speed.
constexpr std::size_t kSmallest = 256 * 1024;

std::vector<Data> all_data() {
  std::vector<Data> all;
  for (const std::string &name : testing::trace_names()) {
    const testing::Trace trace = testing::trace_buffers(name);
    const bool compressed = std::any_of(trace.buffers.begin(), trace.buffers.end(),
                                        [](const testing::TraceBuffer &b) { return b.header.compressed(); });
    Data data = make_data(name, testing::decoded_payloads(trace, compressed));
    if (compressed) {
      for (const testing::TraceBuffer &b : trace.buffers) {
        if (b.header.compressed()) {
          data.stored.emplace_back(b.payload().begin(), b.payload().end());
        }
      }
      if (data.stored.size() != data.raw.size()) {
        data.stored.clear();
      }
    }
    if (data.raw_size >= kSmallest) {
      all.push_back(std::move(data));
    }
  }
  if (all.empty()) {
    all.push_back(make_data("generated", generated_buffers()));
  }
  return all;
}

// Packs buffer `in` into `out`; 0 when it does not fit.
using Pack = std::function<std::size_t(const Buffer &in, Buffer &out)>;
// Unpacks `in` to exactly `out`.
using Unpack = std::function<bool(const Buffer &in, MutableBytes out)>;

void report(benchmark::State &state, const Data &data, std::size_t packed) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * data.raw_size));
  state.counters["ratio"] = 100.0 * static_cast<double>(packed) / static_cast<double>(data.raw_size);
}

void run_pack(benchmark::State &state, const Data &data, const std::function<Pack()> &make) {
  const Pack pack = make();
  Buffer out(2 * data.largest + 4096);
  std::size_t packed = 0;
  for (auto _ : state) {
    packed = 0;
    for (const Buffer &raw : data.raw) {
      const std::size_t n = pack(raw, out);
      packed += n == 0 || n >= raw.size() ? raw.size() : n; // stored then
    }
  }
  report(state, data, packed);
}

void run_unpack(benchmark::State &state, const Data &data, const std::vector<Buffer> &packed,
                const Unpack &unpack) {
  Buffer out(data.largest);
  std::size_t size = 0;
  for (const Buffer &p : packed) {
    size += p.size();
  }
  for (auto _ : state) {
    for (std::size_t i = 0; i < packed.size(); ++i) {
      if (!unpack(packed[i], MutableBytes(out).first(data.raw[i].size()))) {
        state.SkipWithError("does not unpack");
        return;
      }
    }
    benchmark::ClobberMemory();
  }
  report(state, data, size);
}

std::vector<Buffer> pack_all(const Data &data, const Pack &pack) {
  std::vector<Buffer> all;
  for (const Buffer &raw : data.raw) {
    Buffer out(2 * raw.size() + 4096);
    out.resize(pack(raw, out));
    all.push_back(std::move(out));
  }
  return all;
}

Unpack fwnt_unpack(Codec codec) {
  const auto decode = codec == Codec::lznt1    ? libfwnt_lznt1_decompress
                      : codec == Codec::xpress ? libfwnt_lzxpress_decompress
                                               : libfwnt_lzxpress_huffman_decompress;
  return [decode](const Buffer &in, MutableBytes out) {
    std::size_t n = out.size();
    return decode(in.data(), in.size(), out.data(), &n, nullptr) == 1 && n == out.size();
  };
}

Unpack our_unpack(Codec codec) {
  return
      [codec](const Buffer &in, MutableBytes out) { return static_cast<bool>(decompress(codec, in, out)); };
}

Pack our_pack(Codec codec, Level level, std::size_t largest) {
  auto compressor = std::make_shared<Compressor>(codec, level, largest);
  // As an ETL writer calls it: what does not shrink is of no use.
  return [compressor](const Buffer &in, Buffer &out) {
    const CodecResult r = compressor->compress(in, MutableBytes(out).first(in.size() - 1));
    return r ? r.produced : 0;
  };
}

Pack deflate_pack(int level) {
  std::shared_ptr<libdeflate_compressor> c(libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  return [c](const Buffer &in, Buffer &out) {
    return libdeflate_deflate_compress(c.get(), in.data(), in.size(), out.data(), out.size());
  };
}

Unpack deflate_unpack() {
  std::shared_ptr<libdeflate_decompressor> d(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  return [d](const Buffer &in, MutableBytes out) {
    return libdeflate_deflate_decompress(d.get(), in.data(), in.size(), out.data(), out.size(), nullptr) ==
           LIBDEFLATE_SUCCESS;
  };
}

Pack zstd_pack(int level) {
  std::shared_ptr<ZSTD_CCtx> c(ZSTD_createCCtx(), ZSTD_freeCCtx);
  return [c, level](const Buffer &in, Buffer &out) {
    const std::size_t n = ZSTD_compressCCtx(c.get(), out.data(), out.size(), in.data(), in.size(), level);
    return ZSTD_isError(n) != 0 ? std::size_t{0} : n;
  };
}

Unpack zstd_unpack() {
  std::shared_ptr<ZSTD_DCtx> d(ZSTD_createDCtx(), ZSTD_freeDCtx);
  return [d](const Buffer &in, MutableBytes out) {
    return ZSTD_decompressDCtx(d.get(), out.data(), out.size(), in.data(), in.size()) == out.size();
  };
}

std::vector<lzma_filter> lzma_filters(std::uint32_t preset, lzma_options_lzma &options) {
  lzma_lzma_preset(&options, preset);
  return {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
}

Pack lzma_pack(std::uint32_t preset) {
  return [preset](const Buffer &in, Buffer &out) {
    lzma_options_lzma options;
    const auto filters = lzma_filters(preset, options);
    std::size_t n = 0;
    const lzma_ret r =
        lzma_raw_buffer_encode(filters.data(), nullptr, in.data(), in.size(), out.data(), &n, out.size());
    return r == LZMA_OK ? n : std::size_t{0};
  };
}

Unpack lzma_unpack(std::uint32_t preset) {
  return [preset](const Buffer &in, MutableBytes out) {
    lzma_options_lzma options;
    const auto filters = lzma_filters(preset, options);
    std::size_t from = 0;
    std::size_t to = 0;
    return lzma_raw_buffer_decode(filters.data(), nullptr, in.data(), &from, in.size(), out.data(), &to,
                                  out.size()) == LZMA_OK;
  };
}

benchmark::internal::Benchmark *add(const std::string &name, std::function<void(benchmark::State &)> run) {
  return benchmark::RegisterBenchmark(name.c_str(),
                                      [run = std::move(run)](benchmark::State &state) { run(state); })
      ->Unit(benchmark::kMillisecond); // CPU time counts: all of this is one thread
}

// A few MB/s: once is enough, and the noise is small beside the seconds that it takes.
bool is_slow(const std::string &name) {
  return name.starts_with("lzma2") || name == "zstd-19" || name == "libdeflate-12";
}

void add_pack(const Data &data, const std::string &name, const std::function<Pack()> &make) {
  benchmark::internal::Benchmark *const b =
      add("encode/" + name + "/" + data.name,
          [&data, make](benchmark::State &state) { run_pack(state, data, make); });
  if (is_slow(name)) {
    b->Iterations(1)->Repetitions(1);
  }
}

// Packed on first use, since registering must not take minutes; once for all that decode it.
void add_unpack(const Data &data, const std::string &name, const std::function<Pack()> &make,
                const Unpack &unpack,
                std::shared_ptr<std::vector<Buffer>> packed = std::make_shared<std::vector<Buffer>>()) {
  add("decode/" + name + "/" + data.name, [&data, make, unpack, packed](benchmark::State &state) {
    if (packed->empty()) {
      *packed = pack_all(data, make());
    }
    run_unpack(state, data, *packed, unpack);
  });
}

void add_all(const Data &data) {
  if (!data.stored.empty()) {
    add("decode/xpress-windows/" + data.name, [&data](benchmark::State &state) {
      run_unpack(state, data, data.stored, our_unpack(Codec::xpress));
    });
    add("decode/xpress-windows:libfwnt/" + data.name, [&data](benchmark::State &state) {
      run_unpack(state, data, data.stored, fwnt_unpack(Codec::xpress));
    });
  }
  constexpr std::pair<Level, const char *> levels[] = {
      {Level::fast, "fast"}, {Level::normal, "normal"}, {Level::max, "max"}};
  for (const Codec codec : {Codec::xpress, Codec::lznt1, Codec::xpress_huffman}) {
    for (const auto &[level, level_name] : levels) {
      const std::string name = std::string(codec_name(codec)) + "-" + level_name;
      // Packing all of it whatever its size is what a decoder test wants, hence no limit to `out` there.
      const auto make = [codec, level = level, &data] { return our_pack(codec, level, data.largest); };
      const auto make_whole = [codec, level = level, &data]() -> Pack {
        auto compressor = std::make_shared<Compressor>(codec, level, data.largest);
        return [compressor](const Buffer &in, Buffer &out) { return compressor->compress(in, out).produced; };
      };
      add_pack(data, name, make);
      const auto packed = std::make_shared<std::vector<Buffer>>();
      add_unpack(data, name, make_whole, our_unpack(codec), packed);
      add_unpack(data, name + ":libfwnt", make_whole, fwnt_unpack(codec), packed);
    }
  }
  for (const int level : {1, 6, 12}) {
    const std::string name = "libdeflate-" + std::to_string(level);
    add_pack(data, name, [level] { return deflate_pack(level); });
    add_unpack(
        data, name, [level] { return deflate_pack(level); }, deflate_unpack());
  }
  for (const int level : {1, 3, 9, 19}) {
    const std::string name = "zstd-" + std::to_string(level);
    add_pack(data, name, [level] { return zstd_pack(level); });
    add_unpack(
        data, name, [level] { return zstd_pack(level); }, zstd_unpack());
  }
  for (const std::uint32_t preset : {6u, 9u | LZMA_PRESET_EXTREME}) {
    const std::string name = preset == 6 ? "lzma2-6" : "lzma2-9e";
    add_pack(data, name, [preset] { return lzma_pack(preset); });
    add_unpack(
        data, name, [preset] { return lzma_pack(preset); }, lzma_unpack(preset));
  }
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<Data> data = all_data();
  for (const Data &d : data) {
    add_all(d);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
