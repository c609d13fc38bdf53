#include "measure.hpp"

#include "etwrelog/event.hpp"

#include <libdeflate.h>
#include <lzma.h>

#include <algorithm>
#include <bit>

namespace etwrelog::gen {
namespace {

template <class Visit> void for_each_buffer(Bytes trace, Visit &&visit) {
  for (std::size_t at = 0; at + format::kBufferHeaderSize <= trace.size();) {
    const format::BufferHeader h = format::load_buffer_header(trace.data() + at);
    if (h.buffer_size < format::kBufferHeaderSize || h.buffer_size > trace.size() - at) return;
    const std::uint32_t end = std::min(h.buffer_size, h.valid_bytes());
    if (end > format::kBufferHeaderSize)
      visit(trace.subspan(at, h.buffer_size),
            trace.subspan(at + format::kBufferHeaderSize, end - format::kBufferHeaderSize));
    at += h.buffer_size;
  }
}

} // namespace

std::vector<std::uint8_t> stack_events(Bytes trace) {
  std::vector<std::uint8_t> out;
  for_each_buffer(trace, [&](Bytes, Bytes events) {
    for_each_event(events, [&](const EventView &e, std::int64_t, std::uint32_t) {
      if (!e.has_hook() || e.hook() >> 8 != 0x18) return;
      out.insert(out.end(), e.bytes().begin(), e.bytes().end());
      out.resize(align8(out.size()));
    });
  });
  return out;
}

std::size_t lznt1_size(Bytes data) {
  constexpr std::size_t kChunk = 4096, kHash = 4096;
  std::vector<std::int16_t> head(kHash), previous(kChunk);
  std::size_t sum = 0;
  for (std::size_t at = 0; at < data.size(); at += kChunk) {
    const Bytes in = data.subspan(at, std::min(kChunk, data.size() - at));
    std::ranges::fill(head, std::int16_t{-1});
    std::size_t bits = 0, pos = 0, inserted = 0;
    auto hash = [&in](std::size_t i) {
      return ((in[i] | in[i + 1] << 8 | static_cast<std::uint32_t>(in[i + 2]) << 16) * 2654435761u) >> 20;
    };
    while (pos < in.size()) {
      for (; inserted < pos && inserted + 3 <= in.size(); ++inserted) {
        previous[inserted] = head[hash(inserted)];
        head[hash(inserted)] = static_cast<std::int16_t>(inserted);
      }
      // The further into the chunk, the more bits a distance takes from the length.
      const unsigned distance_bits = pos <= 16 ? 4u : static_cast<unsigned>(std::bit_width(pos - 1));
      const std::size_t most = std::min(in.size() - pos, (std::size_t{1} << (16 - distance_bits)) + 2);
      std::size_t best = 0;
      if (pos + 3 <= in.size())
        for (std::int16_t i = head[hash(pos)]; i >= 0 && best < most;
             i = previous[static_cast<std::size_t>(i)]) {
          const auto from = static_cast<std::size_t>(i);
          std::size_t n = 0;
          while (n < most && in[from + n] == in[pos + n])
            ++n;
          best = std::max(best, n);
        }
      bits += best >= 3 ? 17 : 9;
      pos += best >= 3 ? best : 1;
    }
    sum += 2 + std::min((bits + 7) / 8, in.size());
  }
  return sum;
}

std::size_t deflate_size(Bytes data, int level) {
  libdeflate_compressor *c = libdeflate_alloc_compressor(level);
  std::vector<std::uint8_t> out(libdeflate_deflate_compress_bound(c, data.size()));
  const std::size_t n = libdeflate_deflate_compress(c, data.data(), data.size(), out.data(), out.size());
  libdeflate_free_compressor(c);
  return n;
}

std::size_t lzma_size(Bytes data, std::uint32_t preset, std::uint32_t dictionary) {
  lzma_options_lzma options;
  lzma_lzma_preset(&options, preset);
  options.dict_size = dictionary;
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::vector<std::uint8_t> out(lzma_stream_buffer_bound(data.size()));
  std::size_t n = 0;
  const lzma_ret r = lzma_stream_buffer_encode(const_cast<lzma_filter *>(filters), LZMA_CHECK_NONE, nullptr,
                                               data.data(), data.size(), out.data(), &n, out.size());
  return r == LZMA_OK ? n : data.size();
}

Ratios measure(Bytes trace) {
  Ratios r;
  const auto whole = static_cast<double>(trace.size());
  std::size_t packed = 0;
  for_each_buffer(trace,
                  [&](Bytes, Bytes events) { packed += format::kBufferHeaderSize + lznt1_size(events); });
  r.lznt1_whole = static_cast<double>(packed) / whole;
  const std::vector<std::uint8_t> stacks = stack_events(trace);
  if (!stacks.empty())
    r.lznt1_stacks = static_cast<double>(lznt1_size(stacks)) / static_cast<double>(stacks.size());
  r.deflate = static_cast<double>(deflate_size(trace, 6)) / whole;
  r.lzma = static_cast<double>(lzma_size(trace, 5, 16 << 20)) / whole;
  return r;
}

} // namespace etwrelog::gen
