#include "read/unwrap.hpp"

#include "base/errors.hpp"
#include "base/progress_meter.hpp"
#include "base/zeros.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

namespace etwrelog::read {
namespace {

constexpr std::size_t kUnwrapChunk = 256u << 10;
// What a stream may ask of its decoder: xz takes 65 MiB at its highest level, zstd 128 MiB without --long.
constexpr std::uint64_t kMostMemory = 256u << 20;

using Sink = std::function<Result<void>(Bytes)>;

// The input piece by piece.
class Source {
public:
  Source(const Input &input, const RunOptions &run)
      : input_(input), chunk_(kUnwrapChunk), progress_(run.progress) {
    progress_.begin("decompressing", input.size());
  }

  // Bytes that were not taken yet, more of them if there are none; empty at the end of the input.
  Result<Bytes> peek() {
    if (!rest_.empty()) return rest_;
    ETWRELOG_TRY_LET(got, input_.read_at(at_, chunk_));
    at_ += got;
    progress_.advance(got);
    rest_ = Bytes(chunk_).first(got);
    return rest_;
  }
  void keep(std::size_t left) { rest_ = rest_.last(left); }
  [[nodiscard]] Error damage(std::string what) const {
    return base::corrupt(std::move(what)).in(input_.name()).at(at_ - rest_.size());
  }

  // From here on: nothing, or nothing but zeros.
  Result<bool> only_zeros() {
    for (;;) {
      ETWRELOG_TRY_LET(bytes, peek());
      if (bytes.empty()) return true;
      if (!base::all_zero(bytes)) return false;
      keep(0);
    }
  }

private:
  const Input &input_;
  std::vector<std::uint8_t> chunk_;
  Bytes rest_;
  std::uint64_t at_ = 0;
  base::ProgressMeter progress_;
};

enum class Step : std::uint8_t { more, member_end, end };

// Drives a decoder: decode(in, out) takes from the front of both and says how far it is.
template <class Decode> Result<void> drive(Source &source, const Sink &sink, Decode &&decode) {
  std::vector<std::uint8_t> out(kUnwrapChunk);
  for (;;) {
    ETWRELOG_TRY_LET(in, source.peek());
    Bytes rest = in;
    MutableBytes room(out);
    const Result<Step> step = decode(rest, room);
    const bool taken = rest.size() != in.size(), given = room.size() != out.size();
    if (!step) return step.error(); // a decoder that looked further has moved the source
    source.keep(rest.size());
    if (given) ETWRELOG_TRY(sink(Bytes(out).first(out.size() - room.size())));
    if (*step == Step::end) return {};
    if (*step == Step::more && !taken && !given) {
      if (in.empty()) return source.damage("the compressed data is cut short");
      return source.damage("the compressed data is damaged");
    }
  }
}

Result<void> decode_gzip(Source &source, const Sink &sink) {
  z_stream z{};
  constexpr int kGzipOnly = 15 + 16;
  if (inflateInit2(&z, kGzipOnly) != Z_OK) return source.damage("cannot decompress: out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream *)> guard(&z, inflateEnd);
  bool between = false;
  return drive(source, sink, [&](Bytes &in, MutableBytes &out) -> Result<Step> {
    if (between) { // members may follow, and padding
      if (in.empty()) return Step::end;
      if (in.front() != 0x1F) {
        const Result<bool> zeros = source.only_zeros();
        if (!zeros) return zeros.error();
        if (!*zeros) return source.damage("something follows the compressed data that is no more of it");
        in = {};
        return Step::end;
      }
      inflateReset(&z);
      between = false;
    }
    z.next_in = const_cast<std::uint8_t *>(in.data());
    z.avail_in = static_cast<uInt>(in.size());
    z.next_out = out.data();
    z.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&z, Z_NO_FLUSH); // checks CRC-32 and length at the end of a member
    in = in.last(z.avail_in);
    out = out.last(z.avail_out);
    if (status == Z_STREAM_END) between = true;
    if (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR)
      return between ? Step::member_end : Step::more;
    return source.damage(std::string("the gzip data is damaged: ") + (z.msg ? z.msg : "cannot decompress"));
  });
}

Result<void> decode_xz(Source &source, const Sink &sink) {
  lzma_stream z = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&z, kMostMemory, LZMA_CONCATENATED) != LZMA_OK)
    return source.damage("cannot decompress: out of memory");
  const std::unique_ptr<lzma_stream, void (*)(lzma_stream *)> guard(&z, lzma_end);
  return drive(source, sink, [&](Bytes &in, MutableBytes &out) -> Result<Step> {
    z.next_in = in.data();
    z.avail_in = in.size();
    z.next_out = out.data();
    z.avail_out = out.size();
    const lzma_ret status = lzma_code(&z, in.empty() ? LZMA_FINISH : LZMA_RUN);
    in = in.last(z.avail_in);
    out = out.last(z.avail_out);
    if (status == LZMA_STREAM_END) return Step::end;
    if (status == LZMA_OK || status == LZMA_BUF_ERROR) return Step::more;
    return source.damage(status == LZMA_MEMLIMIT_ERROR ? "the xz data needs more than 256 MiB to decompress"
                                                       : "the xz data is damaged");
  });
}

Result<void> decode_zstd(Source &source, const Sink &sink) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx *)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) return source.damage("cannot decompress: out of memory");
  std::size_t wanted = 1; // 0 between frames
  return drive(source, sink, [&](Bytes &in, MutableBytes &out) -> Result<Step> {
    if (in.empty() && wanted == 0) return Step::end;
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t status = ZSTD_decompressStream(context.get(), &to, &from);
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
    if (ZSTD_isError(status) != 0)
      return source.damage(std::string("the zstd data is damaged: ") + ZSTD_getErrorName(status));
    wanted = status;
    return wanted == 0 ? Step::member_end : Step::more;
  });
}

Result<void> decode_bzip2(Source &source, const Sink &sink) {
  bz_stream z{};
  if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK) return source.damage("cannot decompress: out of memory");
  const std::unique_ptr<bz_stream, int (*)(bz_stream *)> guard(&z, BZ2_bzDecompressEnd);
  bool between = false;
  return drive(source, sink, [&](Bytes &in, MutableBytes &out) -> Result<Step> {
    if (between) {
      if (in.empty()) return Step::end;
      if (in.front() != 'B')
        return source.damage("something follows the compressed data that is no more of it");
      BZ2_bzDecompressEnd(&z);
      z = {};
      if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK) return source.damage("cannot decompress: out of memory");
      between = false;
    }
    z.next_in = const_cast<char *>(reinterpret_cast<const char *>(in.data()));
    z.avail_in = static_cast<unsigned>(in.size());
    z.next_out = reinterpret_cast<char *>(out.data());
    z.avail_out = static_cast<unsigned>(out.size());
    const int status = BZ2_bzDecompress(&z);
    in = in.last(z.avail_in);
    out = out.last(z.avail_out);
    if (status == BZ_STREAM_END) between = true;
    if (status == BZ_OK || status == BZ_STREAM_END) return between ? Step::member_end : Step::more;
    return source.damage("the bzip2 data is damaged");
  });
}

} // namespace

Wrapping wrapping_of(const Input &input) {
  std::array<std::uint8_t, 6> head{};
  const Result<std::size_t> got = input.read_at(0, head);
  return got ? wrapping_of(Bytes(head).first(*got)) : Wrapping::none;
}

Wrapping wrapping_of(Bytes head) {
  if (head.size() < 6) return Wrapping::none;
  auto starts = [&head](std::initializer_list<std::uint8_t> magic) {
    return std::equal(magic.begin(), magic.end(), head.begin());
  };
  if (starts({'P', 'K', 3, 4}) || starts({'P', 'K', 5, 6}))
    return Wrapping::zip; // the latter is an empty one
  if (starts({0x1F, 0x8B, 8})) return Wrapping::gzip;
  if (starts({0xFD, '7', 'z', 'X', 'Z', 0})) return Wrapping::xz;
  if (starts({0x28, 0xB5, 0x2F, 0xFD})) return Wrapping::zstd;
  if ((head[0] & 0xF0) == 0x50 && head[1] == 0x2A && head[2] == 0x4D && head[3] == 0x18)
    return Wrapping::zstd; // a frame that is skipped, as pzstd writes it in front
  if (starts({'B', 'Z', 'h'})) return Wrapping::bzip2;
  if (starts({'7', 'z', 0xBC, 0xAF, 0x27, 0x1C}) || starts({'R', 'a', 'r', '!', 0x1A, 7}) ||
      starts({'M', 'S', 'C', 'F', 0, 0}))
    return Wrapping::other;
  return Wrapping::none;
}

Result<void> decode_stream(const Input &input, Wrapping wrapping, const Sink &sink, const RunOptions &run) {
  Source source(input, run);
  switch (wrapping) {
  case Wrapping::gzip: return decode_gzip(source, sink);
  case Wrapping::xz: return decode_xz(source, sink);
  case Wrapping::zstd: return decode_zstd(source, sink);
  case Wrapping::bzip2: return decode_bzip2(source, sink);
  default: return source.damage("is no compressed stream");
  }
}

} // namespace etwrelog::read
