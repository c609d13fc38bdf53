// LZNT1 (MS-XCA 2.5): independent chunks of up to 4096 bytes of output behind a 16-bit header. A compressed chunk
// is flag bytes, least significant bit first, each governing eight tokens: 0 a literal byte, 1 a u16 whose split
// between distance and length depends on how much of the chunk is already there.
//
// The fast loop takes a run of literals and the match after it per round. It gives up at the start of a group of
// eight tokens: near an end, or where one of the eight is bad. The careful loop goes on from there.
#include "stages/decompress/codecs.hpp"
#include "stages/decompress/wild_copy.hpp"
#include "stages/shared/lznt1_format.hpp"

#include <algorithm>

namespace etwrelog::codecs {
namespace {

constexpr std::size_t kChunkSize = kLznt1Chunk;
constexpr std::size_t kMinMatch = kLznt1MinMatch;

struct Chunk {
  Bytes in;         // the whole input
  std::size_t pos;  // of the next flag byte
  std::size_t end;  // of the chunk's data
  MutableBytes out; // the rest of the output, from the chunk's start on
  std::size_t limit; // how much of `out` is the chunk's
  std::size_t done = 0;
};

// What a flag byte with its tokens may take of the chunk, and touch of both sides; matches of more than 32 bytes
// apart.
constexpr std::size_t kGroupIn = 1 + 8 * 2;
constexpr std::size_t kGroupRead = kGroupIn + 8;
constexpr std::size_t kGroupOut = 8 * 32 + kCopySlack;

ETWRELOG_ALWAYS_INLINE void fast_groups(Chunk &c) {
  const std::size_t need_in = std::max(kGroupIn + c.in.size() - c.end, kGroupRead); // from the end of the input
  if (c.in.size() - c.pos < need_in || c.limit < kGroupOut) {
    return;
  }
  const std::uint8_t *in = c.in.data() + c.pos;
  const std::uint8_t *const in_safe = c.in.data() + c.in.size() - need_in;
  std::uint8_t *const begin = c.out.data();
  std::uint8_t *const limit = begin + c.limit;
  std::uint8_t *const out_safe = begin + std::min(c.out.size() - kGroupOut, c.limit);
  std::uint8_t *out = begin;
  const std::uint8_t *group_in = in;
  std::uint8_t *group_out = out;
  std::uint32_t flags = 1; // those left, then a one that marks the end
  unsigned length_bits = 12;
  const std::uint8_t *split = begin + 16; // up to here length_bits holds
  for (;;) {
    const auto run = static_cast<unsigned>(std::countr_zero(flags));
    store(out, load<std::uint64_t>(in));
    in += run;
    out += run;
    flags >>= run;
    flags >>= 1;
    if (flags == 0) { // that was the mark
      if (in > in_safe || out > out_safe) [[unlikely]] {
        if (out <= limit) {
          group_in = in;
          group_out = out;
        }
        break;
      }
      group_in = in;
      group_out = out;
      flags = *in++ | 0x100u;
      continue;
    }
    while (out > split) [[unlikely]] {
      --length_bits;
      split = begin + 2 * (split - begin);
    }
    const std::uint32_t token = load<std::uint16_t>(in);
    const std::size_t distance = (token >> length_bits) + 1;
    const std::size_t length = (token & ((1u << length_bits) - 1)) + kMinMatch;
    const std::uint8_t *const from = out - distance;
    if (distance > static_cast<std::size_t>(out - begin)) [[unlikely]] {
      break;
    }
    in += 2;
    if (length > 32 && static_cast<std::ptrdiff_t>(length) > out_safe - out) [[unlikely]] {
      break;
    }
    // 32 bytes without asking: a branch at 16 is mispredicted too often (a third of real matches are longer).
    if (distance < (length < 16 ? length : 16)) [[unlikely]] {
      copy_overlapping(out, distance, length);
    } else {
      copy16(out, from);
      copy16(out + 16, from + 16);
      if (length > 32) [[unlikely]] {
        copy_blocks(out + 32, from + 32, out + length);
      }
    }
    out += length;
  }
  c.pos = static_cast<std::size_t>(group_in - c.in.data());
  c.done = static_cast<std::size_t>(group_out - begin);
}

ETWRELOG_NOINLINE void rounds_portable(Chunk &c) { fast_groups(c); }
#if ETWRELOG_X86_DISPATCH
ETWRELOG_NOINLINE ETWRELOG_TARGET_V3 void rounds_v3(Chunk &c) { fast_groups(c); }
#endif

// The rest of a chunk, everything checked.
CodecStatus careful_rounds(Chunk &c) {
  std::uint8_t *const out = c.out.data();
  while (c.pos < c.end) {
    unsigned flags = c.in[c.pos++];
    for (int i = 0; i < 8 && c.pos < c.end; ++i, flags >>= 1) {
      if ((flags & 1) == 0) {
        if (c.done == c.limit) {
          return CodecStatus::output_overrun;
        }
        out[c.done++] = c.in[c.pos++];
        continue;
      }
      if (c.end - c.pos < 2) {
        return CodecStatus::input_truncated;
      }
      const std::uint32_t token = load<std::uint16_t>(c.in.data() + c.pos);
      const unsigned length_bits = 16 - lznt1_distance_bits(c.done);
      const std::size_t distance = (token >> length_bits) + 1;
      const std::size_t length = (token & ((1u << length_bits) - 1)) + kMinMatch;
      if (distance > c.done) {
        return CodecStatus::bad_distance;
      }
      if (length > c.limit - c.done) {
        return CodecStatus::output_overrun;
      }
      copy_any(c.out, c.done, distance, length);
      c.done += length;
      c.pos += 2;
    }
  }
  return CodecStatus::ok;
}

} // namespace

CodecResult decode_lznt1(Bytes in, MutableBytes out) {
  std::size_t in_pos = 0;
  std::size_t out_pos = 0;
  const auto fail = [&](CodecStatus status) { return CodecResult{status, in_pos, out_pos}; };
  void (*rounds)(Chunk &) = rounds_portable;
#if ETWRELOG_X86_DISPATCH
  if (cpu::has_v3()) {
    rounds = rounds_v3;
  }
#endif
  while (in_pos < in.size()) {
    if (in.size() - in_pos < 2) {
      return fail(CodecStatus::input_truncated);
    }
    const std::uint32_t header = load<std::uint16_t>(in.data() + in_pos);
    if (header == 0) { // the optional end mark
      in_pos += out_pos == out.size() ? 2 : 0;
      break;
    }
    const std::size_t begin = in_pos + 2;
    const std::size_t size = (header & 0xFFF) + 1;
    // Only the last chunk may hold less than 4096 bytes.
    if ((header & 0x7000) != 0x3000 || out_pos % kChunkSize != 0) {
      return fail(CodecStatus::bad_chunk);
    }
    if (out_pos == out.size()) {
      return fail(CodecStatus::trailing_input);
    }
    const bool truncated = in.size() - begin < size;
    const std::size_t end = truncated ? in.size() : begin + size;
    const MutableBytes to = out.subspan(out_pos);
    const std::size_t limit = std::min(kChunkSize, to.size());
    if ((header & 0x8000) != 0) {
      Chunk chunk{in, begin, end, to, limit};
      rounds(chunk);
      const CodecStatus status = careful_rounds(chunk);
      out_pos += chunk.done;
      if (status != CodecStatus::ok || truncated) {
        return {status != CodecStatus::ok ? status : CodecStatus::input_truncated, chunk.pos, out_pos};
      }
    } else {
      const std::size_t n = std::min(end - begin, limit);
      std::copy_n(in.data() + begin, n, to.data());
      out_pos += n;
      if (n < size) {
        return {truncated ? CodecStatus::input_truncated : CodecStatus::output_overrun, begin + n, out_pos};
      }
    }
    in_pos = end;
  }
  if (out_pos < out.size()) {
    return fail(CodecStatus::output_short);
  }
  return fail(in_pos == in.size() ? CodecStatus::ok : CodecStatus::trailing_input);
}

} // namespace etwrelog::codecs
