#include "etlz/backend/backend.hpp"

#include "base/raw_memory.hpp"
#include "etlz/backend/mixer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <zstd.h>

namespace etwrelog::etlz {
namespace {

// Streams below this share a frame: a frame costs about 12 bytes and starts with nothing learned.
constexpr std::size_t kOwnFrame = 384;

enum class Method : std::uint8_t { stored, zstd, mixed, count_ };

// At default. Of streams up to so many bytes level 4 makes more bytes than level 3, in more time, and of
// short ones level 3 as many as level 1. Level 5 makes 1% less of these, but takes twice as long, which is
// next to nothing only where all streams of the segment come to little.
constexpr std::size_t kMiddlingStream = 128 * 1024;
constexpr std::size_t kShortStream = 16 * 1024;
constexpr std::size_t kLittle = 128 * 1024;
// Where matches are few, level 3 takes three to four times as long as level 1, for hardly fewer bytes or for
// more. Whether they are few is seen in a sample: parts of a stream that is long enough to make up for it.
constexpr std::size_t kSampledStream = 64 * 1024;
constexpr std::size_t kSamplePart = 1024, kSampleParts = 4, kSample = kSampleParts * kSamplePart;
constexpr std::size_t kFewMatches = kSample * 42 / 100; // bytes of a sample, compressed

std::size_t compress(ZSTD_CCtx *context, int level, Bytes in, MutableBytes out) {
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  return ZSTD_compress2(context, out.data(), out.size(), in.data(), in.size());
}

bool has_few_matches(ZSTD_CCtx *context, Bytes stream) {
  std::array<std::uint8_t, kSample> sample;
  const std::size_t step = (stream.size() - kSamplePart) / (kSampleParts - 1);
  for (std::size_t i = 0; i < kSampleParts; ++i)
    std::memcpy(sample.data() + i * kSamplePart, stream.data() + i * step, kSamplePart);
  std::array<std::uint8_t, ZSTD_COMPRESSBOUND(kSample)> packed;
  return compress(context, 1, sample, packed) > kFewMatches;
}

// `all`: the bytes of all streams of the segment.
int zstd_level(ZSTD_CCtx *context, Level level, Bytes stream, std::size_t all) {
  if (level >= Level::max) return 19;
  if (stream.size() <= kShortStream) return all <= kLittle ? 5 : 1;
  if (stream.size() >= kSampledStream && has_few_matches(context, stream)) return 1;
  return stream.size() <= kMiddlingStream ? 3 : 4;
}
// Of the frames that say what there is and what small streams share. Where there is little else, they are
// much of the work and of the bytes; otherwise what higher levels save is a thousandth of all bytes, for one
// to four hundredths of the time.
int directory_level(Level level, std::size_t all) {
  return level >= Level::max ? 19 : all <= kLittle ? 12 : 5;
}
int shared_level(Level level, std::size_t all) {
  return level >= Level::max ? 19 : all <= kLittle ? 9 : 4;
}

// Contexts to try, the long and the short one: of the stream's own past, and of streams of the same size
// before it, which are likely to hold other bytes of the same values or other values of the same events.
constexpr std::uint8_t kOwn1 = 1, kOwn2 = 2, kOwn3 = 4, kBeside1 = 8, kBeside2 = 16, kBeside3 = 32;
constexpr std::pair<std::uint8_t, std::uint8_t> kContexts[] = {
    {kOwn1, 0},
    {kOwn1 | kOwn2, kOwn1},
    {kOwn1 | kOwn2 | kOwn3, kOwn1},
    {kOwn1 | kOwn2 | kOwn3, kOwn1 | kOwn2},
    {kBeside1, 0},
    {kBeside1 | kOwn1, kBeside1},
    {kBeside1 | kOwn1, kOwn1},
    {kBeside1 | kBeside2, kBeside1},
    {kBeside1 | kBeside2 | kOwn1, kBeside1 | kBeside2},
    {kBeside1 | kBeside2 | kBeside3, kBeside1 | kBeside2},
    {kBeside2 | kBeside3, kBeside2},
    {kBeside1 | kOwn1 | kOwn2, kBeside1 | kOwn1},
    {kBeside1 | kBeside2 | kOwn1, kBeside1 | kOwn1},
    {kBeside1 | kOwn1 | kOwn2, kOwn1 | kOwn2},
};
constexpr std::size_t kSiblingReach = 64;  // streams back
constexpr std::size_t kTrial = 160 * 1024; // bytes of a stream that contexts are tried on
constexpr std::size_t kLongStream = 32 * 1024;
constexpr std::size_t kMixedGain = 64; // bytes of a stream that must save one: decoding them is not cheap

Siblings siblings_of(std::span<const Bytes> streams, std::size_t index) {
  Siblings s{};
  const std::size_t first = index < kSiblingReach ? 0 : index - kSiblingReach;
  for (std::size_t i = index, found = 0; i > first && found < s.size();)
    if (streams[--i].size() == streams[index].size()) s[found++] = streams[i].data();
  return s;
}
bool has_siblings(const Siblings &s, unsigned count) {
  return count == 0 || s[count - 1] != nullptr;
}

// The best contexts for a stream. `out` is its code with them.
MixerSetup choose_contexts(Mixer &mixer, Bytes content, const Siblings &siblings,
                           std::vector<std::uint8_t> &out, std::vector<std::uint8_t> &trial) {
  MixerSetup best;
  std::size_t smallest = SIZE_MAX;
  const Bytes sample = content.first(std::min(content.size(), kTrial));
  for (const auto &[longer, shorter] : kContexts) {
    MixerSetup setup;
    setup.long_context = longer, setup.short_context = shorter;
    setup.table_bits = static_cast<std::uint8_t>(MixerSetup::most_table_bits(content.size()));
    setup.slowest = content.size() > kLongStream ? 6 : 5;
    if (!has_siblings(siblings, setup.siblings())) continue;
    mixer.encode(sample, setup, siblings, trial);
    if (trial.size() >= smallest) continue;
    smallest = trial.size();
    best = setup;
    std::swap(out, trial);
  }
  if (sample.size() == content.size()) return best;
  mixer.encode(content, best, siblings, out);
  // Long streams may be steady.
  MixerSetup slower = best;
  ++slower.slowest;
  mixer.encode(content, slower, siblings, trial);
  if (trial.size() < out.size()) {
    std::swap(out, trial);
    best = slower;
  }
  return best;
}

} // namespace

struct Backend::State {
  ZSTD_CCtx *compress = ZSTD_createCCtx();
  ZSTD_DCtx *decompress = ZSTD_createDCtx();
  Mixer mixer;
  std::vector<std::uint8_t> small, mixed, trial;
  base::RawMemory scratch, memory;
  ~State() {
    ZSTD_freeCCtx(compress);
    ZSTD_freeDCtx(decompress);
  }
};

Backend::Backend() : state_(std::make_unique<State>()) {}
Backend::~Backend() = default;

void Backend::pack(std::span<const Bytes> streams, Level level, std::vector<std::uint8_t> &out,
                   std::vector<std::size_t> *cost) {
  State &s = *state_;
  // A frame: method, length of the content, length as stored, bytes.
  auto frame = [&s, &out](Bytes content, int zlevel, const Siblings *siblings = nullptr) {
    const std::size_t bound = ZSTD_compressBound(content.size());
    std::uint8_t *const packed = s.scratch.room(bound);
    const std::size_t n = compress(s.compress, zlevel, content, MutableBytes(packed, bound));
    const std::size_t before = out.size();
    const std::size_t plain = ZSTD_isError(n) != 0 ? content.size() : std::min(n, content.size());
    if (siblings != nullptr) {
      // What is random (raw bits) or hardly there is not tried.
      const bool worth = plain >= 256 && plain < content.size() - content.size() / 64;
      const MixerSetup setup =
          worth ? choose_contexts(s.mixer, content, *siblings, s.mixed, s.trial) : MixerSetup{};
      if (worth && s.mixed.size() + content.size() / kMixedGain < plain) {
        out.push_back(static_cast<std::uint8_t>(Method::mixed));
        put_varint(out, content.size());
        put_varint(out, s.mixed.size());
        for (const std::uint8_t b :
             {setup.long_context, setup.short_context, setup.table_bits, setup.slowest})
          out.push_back(b);
        out.insert(out.end(), s.mixed.begin(), s.mixed.end());
        return out.size() - before;
      }
    }
    if (ZSTD_isError(n) != 0 || n >= content.size()) {
      out.push_back(static_cast<std::uint8_t>(Method::stored));
      put_varint(out, content.size());
      out.insert(out.end(), content.begin(), content.end());
    } else {
      out.push_back(static_cast<std::uint8_t>(Method::zstd));
      put_varint(out, content.size());
      put_varint(out, n);
      out.insert(out.end(), packed, packed + n);
    }
    return out.size() - before;
  };
  if (cost != nullptr) cost->assign(streams.size(), 0);
  std::vector<std::uint8_t> sizes;
  std::size_t all = 0;
  s.small.clear();
  for (const Bytes stream : streams) {
    put_varint(sizes, stream.size());
    all += stream.size();
    if (stream.size() < kOwnFrame) s.small.insert(s.small.end(), stream.begin(), stream.end());
  }
  put_varint(out, streams.size());
  frame(sizes, directory_level(level, all));
  const std::size_t shared = frame(s.small, shared_level(level, all));
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].size() < kOwnFrame) {
      if (cost != nullptr && !s.small.empty()) (*cost)[i] = streams[i].size() * shared / s.small.size();
      continue;
    }
    const Siblings siblings = siblings_of(streams, i);
    const std::size_t n = frame(streams[i], zstd_level(s.compress, level, streams[i], all),
                                level >= Level::max ? &siblings : nullptr);
    if (cost != nullptr) (*cost)[i] = n;
  }
}

bool Backend::unpack(Bytes in, std::size_t limit, std::vector<Bytes> &streams) {
  State &s = *state_;
  InStream source(in);
  struct Frame {
    Method method;
    std::size_t size;
    Bytes stored;
    MixerSetup setup;
  };
  std::size_t total = 0;
  auto next = [&source](Frame &f, std::size_t most) {
    f.method = static_cast<Method>(source.get());
    const std::uint64_t size = get_varint(source);
    if (f.method >= Method::count_ || size > most) return false;
    f.size = size;
    const std::uint64_t stored = f.method == Method::stored ? size : get_varint(source);
    if (f.method == Method::mixed) {
      for (std::uint8_t *const b :
           {&f.setup.long_context, &f.setup.short_context, &f.setup.table_bits, &f.setup.slowest})
        *b = source.get();
      if (!f.setup.valid(f.size)) return false;
    }
    f.stored = source.get(static_cast<std::size_t>(std::min<std::uint64_t>(stored, SIZE_MAX)));
    return f.stored.size() == stored;
  };
  auto decode = [&s](const Frame &f, std::uint8_t *to, const Siblings &siblings = {}) {
    if (f.method == Method::mixed)
      return has_siblings(siblings, f.setup.siblings()) &&
             s.mixer.decode(f.stored, f.setup, siblings, MutableBytes(to, f.size));
    if (f.method == Method::stored) {
      if (f.size != 0) std::memcpy(to, f.stored.data(), f.size);
      return true;
    }
    ZSTD_DCtx_reset(s.decompress, ZSTD_reset_session_only);
    return ZSTD_decompressDCtx(s.decompress, to, f.size, f.stored.data(), f.stored.size()) == f.size;
  };

  const std::uint64_t count = get_varint(source);
  if (count > kMaxStreams) return false;
  Frame directory{};
  if (!next(directory, count * 10)) return false;
  std::vector<std::uint8_t> sizes(directory.size);
  if (!decode(directory, sizes.data())) return false;
  InStream size_source{Bytes(sizes)};
  std::vector<std::size_t> lengths(count);
  std::size_t small = 0;
  for (std::size_t &length : lengths) {
    const std::uint64_t n = get_varint(size_source);
    if (n > limit - total) return false;
    length = n;
    total += length;
    if (n < kOwnFrame) small += length;
  }
  // All frames are looked at before memory is taken for any.
  std::vector<Frame> frames;
  Frame shared{};
  if (!next(shared, small) || shared.size != small) return false;
  for (const std::size_t length : lengths) {
    if (length < kOwnFrame) continue;
    Frame f{};
    if (!next(f, length) || f.size != length) return false;
    frames.push_back(f);
  }
  if (!source.at_end() || source.overrun()) return false;
  std::uint8_t *at = s.memory.room(total);
  if (!decode(shared, at)) return false;
  const std::uint8_t *small_at = at;
  at += small;
  streams.resize(count);
  auto f = frames.begin();
  for (std::size_t i = 0; i < count; ++i) {
    if (lengths[i] < kOwnFrame) {
      streams[i] = Bytes(small_at, lengths[i]);
      small_at += lengths[i];
      continue;
    }
    streams[i] = Bytes(at, lengths[i]);
    if (!decode(*f++, at, siblings_of(streams, i))) return false;
    at += lengths[i];
  }
  return true;
}

} // namespace etwrelog::etlz
