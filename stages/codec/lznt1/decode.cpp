// LZNT1 (MS-XCA 2.5): independent chunks of up to 4096 bytes of output behind a 16-bit header. A compressed
// chunk is flag bytes, least significant bit first, each governing eight tokens: 0 a literal byte, 1 a u16
// whose split between distance and length depends on how much of the chunk is already there.
//
// The fast way takes a run of literals and the match after it per round. A chunk with anything wrong, or cut
// short, is done again by the careful loop, which finds the token.
#include "codec/codecs.hpp"
#include "codec/lznt1/format.hpp"
#include "codec/wild_copy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

namespace etwrelog::codec {
namespace {

constexpr std::size_t kChunkSize = kLznt1Chunk;
constexpr std::size_t kMinMatch = kLznt1MinMatch;

struct Chunk {
  Bytes in;          // the whole input
  std::size_t pos;   // of the next flag byte
  std::size_t end;   // of the chunk's data
  MutableBytes out;  // the rest of the output, from the chunk's start on
  std::size_t limit; // how much of `out` is the chunk's
  std::size_t done = 0;
};

// Takes a chunk apart: its flags, and its literals and matches without the flag bytes between them. It takes
// a few instructions per group and no branch, and leaves the loop over the tokens one branch in 56 tokens
// instead of one in eight that is often mispredicted. Each group's place depends on the one before, which is
// a chain of loads; so it is done in steps amid the copies of the chunk before, which fill the time that the
// chain leaves.
struct Unpicker {
  static constexpr std::size_t kSlack = 64;
  const std::uint8_t *in = nullptr;
  const std::uint8_t *end = nullptr;      // of the chunk
  const std::uint8_t *readable = nullptr; // the end of the whole input
  std::uint8_t *flags_at = nullptr;
  std::uint8_t *data_at = nullptr;
  std::array<std::uint8_t, kChunkSize / 8 + 16> flags;
  std::array<std::uint8_t, kChunkSize + kSlack> data;

  void begin(const std::uint8_t *from, const std::uint8_t *chunk_end, const std::uint8_t *input_end) {
    in = from;
    end = chunk_end;
    readable = input_end;
    flags_at = flags.data();
    data_at = data.data();
  }

  // Up to `groups` whole groups that are not at the input's very end.
  ETWRELOG_ALWAYS_INLINE void step(std::size_t groups) {
    const std::uint8_t *from = in;
    std::uint8_t *to_flags = flags_at;
    std::uint8_t *to_data = data_at;
    const std::uint8_t *const safe = end - std::min<std::ptrdiff_t>(end - from, 1 + 8 * 2);
    for (; groups != 0 && from < safe && readable - from >= 1 + 16; --groups) {
      const std::uint8_t bits = *from;
      const auto size = static_cast<std::size_t>(8 + std::popcount(bits));
      *to_flags++ = bits;
      copy16(to_data, from + 1);
      to_data += size;
      from += 1 + size;
    }
    in = from;
    flags_at = to_flags;
    data_at = to_data;
  }

  // All that is left; the number of tokens. Nothing when the last one is cut.
  ETWRELOG_ALWAYS_INLINE std::optional<std::size_t> finish() {
    step(kChunkSize);
    std::size_t tokens = static_cast<std::size_t>(flags_at - flags.data()) * 8;
    while (in < end) {
      const std::uint8_t bits = *in++;
      *flags_at++ = bits;
      for (unsigned i = 0; i < 8 && in < end; ++i, ++tokens) {
        *data_at++ = *in++;
        if ((bits >> i & 1) != 0) {
          if (in == end) {
            return std::nullopt;
          }
          *data_at++ = *in++;
        }
      }
    }
    return tokens;
  }
};

constexpr std::size_t kFlagsPerWord = 56;
constexpr std::size_t kOneGo = 40; // 98 of 100 matches are no longer
constexpr std::size_t kOutSlack = kFlagsPerWord + 16 + kCopySlack + kOneGo;

// Decodes to [begin, begin + limit], writing up to kOutSlack bytes past it. Returns the bytes there are then,
// or more than limit where any token is bad.
ETWRELOG_ALWAYS_INLINE std::size_t decode_unpicked(const Unpicker &chunk, std::size_t tokens_left,
                                                   std::uint8_t *begin, std::size_t limit, Unpicker &next) {
  constexpr std::size_t kBad = ~std::size_t{0};
  if (tokens_left == 0) {
    return 0;
  }
  const std::uint8_t *in = chunk.data.data();
  const std::uint8_t *flags_at = chunk.flags.data();
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
      next.step(kFlagsPerWord / 8);
      continue;
    }
    if (out > split) [[unlikely]] {
      do {
        if (out > end) {
          return kBad;
        }
        --length_bits;
        split = begin + std::min<std::size_t>(2 * static_cast<std::size_t>(split - begin), limit);
      } while (out > split);
    }
    const std::uint32_t token = load<std::uint16_t>(in);
    const std::size_t less_one = token >> length_bits;
    const std::size_t distance = less_one + 1;
    const std::size_t length = (token & ((1u << length_bits) - 1)) + kMinMatch;
    const std::uint8_t *const behind = out - less_one; // one past where the match begins: a comparison less
    if (behind <= begin) [[unlikely]] {
      return kBad;
    }
    const std::uint8_t *const from = behind - 1;
    in += 2;
    if (distance < length) [[unlikely]] {
      if (length > static_cast<std::size_t>(end - out)) {
        return kBad;
      }
      copy_overlapping(out, distance, length);
    } else {
      copy_apart<kOneGo>(out, from);
      if (length > kOneGo) [[unlikely]] {
        if (length > static_cast<std::size_t>(end - out)) {
          return kBad;
        }
        copy_blocks(out + kOneGo, from + kOneGo, out + length);
      }
    }
    out += length;
  }
}

// The whole chunk at once, or nothing of it: the careful loop finds out which token is bad.
ETWRELOG_ALWAYS_INLINE void fast_chunk(Chunk &c, Unpicker &unpicker, Unpicker &next) {
  const std::optional<std::size_t> tokens = unpicker.finish();
  if (!tokens) {
    return;
  }
  std::array<std::uint8_t, kChunkSize + kOutSlack> aside; // for where `out` has no slack
  const bool direct = c.out.size() >= c.limit + kOutSlack;
  std::uint8_t *const to = direct ? c.out.data() : aside.data();
  const std::size_t done = decode_unpicked(unpicker, *tokens, to, c.limit, next);
  if (done > c.limit) {
    return;
  }
  if (!direct) {
    std::memcpy(c.out.data(), to, done);
  }
  c.pos = c.end;
  c.done = done;
}

ETWRELOG_NOINLINE void chunk_portable(Chunk &c, Unpicker &u, Unpicker &next) {
  fast_chunk(c, u, next);
}
#if ETWRELOG_X86_DISPATCH
ETWRELOG_NOINLINE ETWRELOG_TARGET_V3 void chunk_v3(Chunk &c, Unpicker &u, Unpicker &next) {
  fast_chunk(c, u, next);
}
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

// The compressed chunk behind `at`, as far as it can be known before it is its turn. Nothing to do where
// there is none.
bool begin_next(Bytes in, std::size_t at, Unpicker &next) {
  if (in.size() - at > 2) {
    const std::uint32_t header = load<std::uint16_t>(in.data() + at);
    const std::size_t size = (header & 0xFFF) + 1;
    if ((header & 0x8000) != 0 && in.size() - at - 2 >= size) {
      const std::uint8_t *const begin = in.data() + at + 2;
      next.begin(begin, begin + size, in.data() + in.size());
      return true;
    }
  }
  next.begin(in.data() + at, in.data() + at, in.data() + in.size());
  return false;
}

} // namespace

CodecResult decode_lznt1(Bytes in, MutableBytes out) {
  std::size_t in_pos = 0;
  std::size_t out_pos = 0;
  const auto fail = [&](CodecStatus status) { return CodecResult{status, in_pos, out_pos}; };
  void (*fast)(Chunk &, Unpicker &, Unpicker &) = chunk_portable;
#if ETWRELOG_X86_DISPATCH
  if (base::has_v3()) {
    fast = chunk_v3;
  }
#endif
  Unpicker unpickers[2];
  unsigned which = 0;
  std::size_t begun = 0; // which chunk unpickers[which] is at, by where its data begin
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
      Unpicker &unpicker = unpickers[which];
      Unpicker &next = unpickers[which ^= 1];
      const std::uint8_t *const input_end = in.data() + in.size();
      if (begun != begin) {
        unpicker.begin(in.data() + begin, in.data() + end, input_end);
      }
      begun = begin_next(in, end, next) ? end + 2 : 0;
      fast(chunk, unpicker, next);
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

} // namespace etwrelog::codec
