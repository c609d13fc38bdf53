// LZNT1 (MS-XCA 2.5): independent chunks of up to 4096 bytes of output behind a 16-bit header. A compressed chunk
// is flag bytes, least significant bit first, each governing eight tokens: 0 a literal byte, 1 a u16 whose split
// between distance and length depends on how much of the chunk is already there.
//
// The fast way takes a run of literals and the match after it per round. A chunk with anything wrong, or cut short,
// is done again by the careful loop, which finds the token.
#include "stages/decompress/codecs.hpp"
#include "stages/decompress/wild_copy.hpp"
#include "stages/shared/lznt1_format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

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

// A chunk taken apart: its flags, and its literals and matches without the flag bytes between them. It takes a few
// instructions per group and no branch, and leaves the loop over the tokens one branch in 56 tokens instead of one in
// eight that is often mispredicted.
struct Unpicked {
  static constexpr std::size_t kSlack = 64;
  std::size_t tokens = 0;
  std::array<std::uint8_t, kChunkSize / 8 + 16> flags;
  std::array<std::uint8_t, kChunkSize + kSlack> data;
};

// False when the last token is cut. `readable` is where the whole input ends.
ETWRELOG_ALWAYS_INLINE bool unpick(const std::uint8_t *in, const std::uint8_t *end, const std::uint8_t *readable,
                                   Unpicked &to) {
  std::uint8_t *flags_at = to.flags.data();
  std::uint8_t *data_at = to.data.data();
  while (end - in >= 1 + 8 * 2 && readable - in >= 1 + 16) {
    const std::uint8_t flags = *in;
    const auto size = static_cast<std::size_t>(8 + std::popcount(flags));
    *flags_at++ = flags;
    copy16(data_at, in + 1);
    data_at += size;
    in += 1 + size;
  }
  std::size_t tokens = static_cast<std::size_t>(flags_at - to.flags.data()) * 8;
  while (in < end) {
    const std::uint8_t flags = *in++;
    *flags_at++ = flags;
    for (unsigned i = 0; i < 8 && in < end; ++i, ++tokens) {
      *data_at++ = *in++;
      if ((flags >> i & 1) != 0) {
        if (in == end) {
          return false;
        }
        *data_at++ = *in++;
      }
    }
  }
  to.tokens = tokens;
  return true;
}

constexpr std::size_t kFlagsPerWord = 56;
constexpr std::size_t kOutSlack = kFlagsPerWord + 16 + kCopySlack + 32;

// Decodes to [begin, begin + limit], writing up to kOutSlack bytes past it. Returns the bytes there are then, or
// more than limit where any token is bad.
ETWRELOG_ALWAYS_INLINE std::size_t decode_unpicked(const Unpicked &chunk, std::uint8_t *begin, std::size_t limit) {
  constexpr std::size_t kBad = ~std::size_t{0};
  if (chunk.tokens == 0) {
    return 0;
  }
  const std::uint8_t *in = chunk.data.data();
  const std::uint8_t *flags_at = chunk.flags.data();
  std::size_t tokens_left = chunk.tokens;
  std::uint8_t *out = begin;
  std::uint8_t *const end = begin + limit;
  std::uint64_t flags = 1; // those left, then a one that marks the end
  unsigned length_bits = 12;
  std::uint8_t *split = begin + std::min<std::size_t>(16, limit); // up to here length_bits holds
  for (;;) {
    const auto run = static_cast<unsigned>(std::countr_zero(flags));
    store(out, load<std::uint64_t>(in));
    if (run > 8) [[unlikely]] {
      for (unsigned i = 8; i < run; i += 16) {
        copy16(out + i, in + i);
      }
    }
    in += run;
    out += run;
    flags >>= run;
    flags >>= 1;
    if (flags == 0) [[unlikely]] { // that was the mark
      if (tokens_left == 0) {
        return static_cast<std::size_t>(out - begin);
      }
      if (out > end) {
        return kBad;
      }
      const std::size_t n = std::min(tokens_left, kFlagsPerWord);
      const std::uint64_t mark = std::uint64_t{1} << n;
      flags = (load<std::uint64_t>(flags_at) & (mark - 1)) | mark;
      flags_at += kFlagsPerWord / 8;
      tokens_left -= n;
      continue;
    }
    while (out > split) [[unlikely]] {
      if (out > end) {
        return kBad;
      }
      --length_bits;
      split = begin + std::min<std::size_t>(2 * static_cast<std::size_t>(split - begin), limit);
    }
    const std::uint32_t token = load<std::uint16_t>(in);
    const std::size_t distance = (token >> length_bits) + 1;
    const std::size_t length = (token & ((1u << length_bits) - 1)) + kMinMatch;
    const std::uint8_t *const from = out - distance;
    if (distance > static_cast<std::size_t>(out - begin)) [[unlikely]] {
      return kBad;
    }
    in += 2;
    // Matches are near here, so most read what was just written. Steps of eight bytes more often find it in a single
    // store that is still on its way to memory; steps of 16 were a tenth slower.
    if (distance < length && distance < 16) [[unlikely]] {
      if (length > static_cast<std::size_t>(end - out)) {
        return kBad;
      }
      copy_overlapping(out, distance, length);
    } else {
      store(out, load<std::uint64_t>(from));
      if (length > 8) {
        store(out + 8, load<std::uint64_t>(from + 8));
        store(out + 16, load<std::uint64_t>(from + 16));
        store(out + 24, load<std::uint64_t>(from + 24));
      }
      if (length > 32) [[unlikely]] {
        if (length > static_cast<std::size_t>(end - out)) {
          return kBad;
        }
        copy_blocks(out + 32, from + 32, out + length);
      }
    }
    out += length;
  }
}

// The whole chunk at once, or nothing of it: the careful loop finds out which token is bad.
ETWRELOG_ALWAYS_INLINE void fast_chunk(Chunk &c) {
  Unpicked unpicked;
  const std::uint8_t *const base = c.in.data();
  if (!unpick(base + c.pos, base + c.end, base + c.in.size(), unpicked)) {
    return;
  }
  std::array<std::uint8_t, kChunkSize + kOutSlack> aside; // for where `out` has no slack
  const bool direct = c.out.size() >= c.limit + kOutSlack;
  std::uint8_t *const to = direct ? c.out.data() : aside.data();
  const std::size_t done = decode_unpicked(unpicked, to, c.limit);
  if (done > c.limit) {
    return;
  }
  if (!direct) {
    std::memcpy(c.out.data(), to, done);
  }
  c.pos = c.end;
  c.done = done;
}

ETWRELOG_NOINLINE void chunk_portable(Chunk &c) { fast_chunk(c); }
#if ETWRELOG_X86_DISPATCH
ETWRELOG_NOINLINE ETWRELOG_TARGET_V3 void chunk_v3(Chunk &c) { fast_chunk(c); }
#endif

// What is left of a chunk, everything checked.
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
  void (*fast)(Chunk &) = chunk_portable;
#if ETWRELOG_X86_DISPATCH
  if (cpu::has_v3()) {
    fast = chunk_v3;
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
      fast(chunk);
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
