#include "etlz/segment.hpp"

#include "base/raw_memory.hpp"
#include "codec/lznt1/predictor.hpp"
#include "codec/xpress/predictor.hpp"
#include "etlz/model/model.hpp"
#include "etlz/small/small.hpp"
#include "etwrelog/codec.hpp"

#include <algorithm>
#include <utility>

namespace etwrelog::etlz {

namespace {

using format::BufferHeader;
using format::kBufferHeaderSize;

// How the bytes of a buffer behind its header are stored.
enum class Content : std::uint8_t {
  events,   // as they are
  verbatim, // compressed in a way that cannot be predicted, kept so
  xpress,   // decoded, and what it takes to compress it the way Windows did
  lznt1,    // the same
  count_,
};

} // namespace

bool plausible(const std::uint8_t *at, std::size_t left) {
  if (left < kBufferHeaderSize) return false;
  const BufferHeader h = format::load_buffer_header(at);
  return h.buffer_size >= kBufferHeaderSize && h.buffer_size <= format::kMaxBufferSize &&
         h.state <= format::kMaxBufferState && h.type <= format::kMaxBufferType &&
         (h.compressed() ? h.valid_bytes() <= format::kMaxBufferSize : true);
}

namespace {

// Buffers that are no more than plausible are not searched for inside garbage: the first event must fit too.
bool convincing(const std::uint8_t *at, std::size_t left) {
  if (left < kBufferHeaderSize + 8 || !plausible(at, left)) return false;
  const BufferHeader h = format::load_buffer_header(at);
  if (h.buffer_size > left || h.valid_bytes() < kBufferHeaderSize || h.reference_count != 0) return false;
  if (h.compressed()) return h.valid_bytes() >= h.buffer_size / 2;
  const std::uint32_t marker = load<std::uint32_t>(at + kBufferHeaderSize);
  return marker == format::kEndOfEvents || (marker >> 24) == format::kMarkerStructured ||
         (marker >> 24) == format::kMarkerMessage;
}

// Decoded size that the header of a compressed buffer claims; 0 if it is none to believe.
std::size_t claimed_size(const BufferHeader &h) {
  const std::size_t valid = h.valid_bytes();
  return valid > kBufferHeaderSize && valid <= format::kMaxBufferSize ? valid - kBufferHeaderSize : 0;
}

// The fields of a buffer header as a record of the model.
Plan buffer_plan() {
  Plan plan;
  plan.name = "(buffer header)";
  using P = Predictor;
  auto add = [&plan](const char *name, unsigned width, P first, Residual residual = Residual::planes,
                     P base = P::previous, std::uint8_t arg = 0) {
    PlanField f;
    f.name = name;
    f.width = static_cast<std::uint16_t>(width);
    f.first = first;
    f.first_arg = arg;
    f.residual = residual;
    f.base = base;
    f.base_arg = arg;
    plan.fields.push_back(f);
  };
  add("BufferSize", 4, P::previous);
  add("SavedOffset", 4, P::none);
  add("CurrentOffset", 4, P::field, Residual::signed_token, P::field, 1);
  add("ReferenceCount", 4, P::previous);
  add("TimeStamp", 8, P::previous, Residual::unsigned_token);
  add("SequenceNumber", 8, P::none, Residual::signed_token);
  add("Clock", 8, P::previous);
  add("ClientContext", 2, P::previous);
  add("LoggerId", 2, P::previous);
  add("State", 4, P::previous);
  add("Offset", 4, P::field, Residual::signed_token, P::field, 1);
  add("BufferFlag", 2, P::previous);
  add("BufferType", 2, P::previous);
  add("Reserved0", 8, P::previous);
  add("Reserved1", 8, P::previous);
  plan.finish();
  return plan;
}
constexpr unsigned kBufferFields = 15;

void header_to_values(const std::uint8_t *at, std::uint64_t *v) {
  const BufferHeader h = format::load_buffer_header(at);
  const std::uint64_t values[kBufferFields] = {h.buffer_size,
                                               h.saved_offset,
                                               h.current_offset,
                                               static_cast<std::uint32_t>(h.reference_count),
                                               static_cast<std::uint64_t>(h.time_stamp),
                                               static_cast<std::uint64_t>(h.sequence_number),
                                               h.clock,
                                               h.client_context,
                                               h.logger_id,
                                               h.state,
                                               h.filled_bytes,
                                               h.flags,
                                               h.type,
                                               h.reserved[0],
                                               h.reserved[1]};
  std::copy_n(values, kBufferFields, v);
}

BufferHeader values_to_header(const std::uint64_t *v) {
  BufferHeader h;
  h.buffer_size = static_cast<std::uint32_t>(v[0]);
  h.saved_offset = static_cast<std::uint32_t>(v[1]);
  h.current_offset = static_cast<std::uint32_t>(v[2]);
  h.reference_count = static_cast<std::int32_t>(v[3]);
  h.time_stamp = static_cast<std::int64_t>(v[4]);
  h.sequence_number = static_cast<std::int64_t>(v[5]);
  h.clock = v[6];
  h.client_context = static_cast<std::uint16_t>(v[7]);
  h.logger_id = static_cast<std::uint16_t>(v[8]);
  h.state = static_cast<std::uint32_t>(v[9]);
  h.filled_bytes = static_cast<std::uint32_t>(v[10]);
  h.flags = static_cast<std::uint16_t>(v[11]);
  h.type = static_cast<std::uint16_t>(v[12]);
  h.reserved = {v[13], v[14]};
  return h;
}

constexpr std::uint64_t kFillWord = 0x0101'0101'0101'0101ull * format::kFillByte;

// Length of the slack up to its last byte that is no fill.
std::size_t odd_slack(Bytes slack) {
  std::size_t odd = slack.size();
  while (odd >= 8 && load<std::uint64_t>(slack.data() + odd - 8) == kFillWord)
    odd -= 8;
  while (odd > 0 && slack[odd - 1] == format::kFillByte)
    --odd;
  return odd;
}

// Bytes of events in an uncompressed buffer; what follows up to `content` is slack.
std::size_t valid_content(const BufferHeader &h, std::size_t content) {
  const std::size_t valid = h.valid_bytes();
  return valid < kBufferHeaderSize ? 0 : std::min(content, valid - kBufferHeaderSize);
}

void put_varint(OutStream &out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7)
    out.put(static_cast<std::uint8_t>(v | 0x80));
  out.put(static_cast<std::uint8_t>(v));
}

} // namespace

std::size_t part_weight(const Part &part, Bytes bytes) {
  if (!part.buffer) return part.size;
  const BufferHeader h = format::load_buffer_header(bytes.data() + part.at);
  const std::size_t size = part.size, valid = h.valid_bytes();
  return h.compressed() ? std::max(valid, size) : std::min(size, std::max(valid, size / 3));
}

std::size_t split_parts(Bytes bytes, bool final, std::size_t target, std::vector<Part> &parts) {
  parts.clear();
  std::size_t at = 0, decoded = 0;
  while (at < bytes.size() && decoded < target) {
    const std::size_t left = bytes.size() - at;
    const std::uint8_t *const p = bytes.data() + at;
    if (plausible(p, left)) {
      const BufferHeader h = format::load_buffer_header(p);
      if (h.buffer_size <= left) {
        parts.push_back({true, at, h.buffer_size});
        decoded += part_weight(parts.back(), bytes);
        at += h.buffer_size;
        continue;
      }
      if (!final) break;
    } else if (left < kBufferHeaderSize && !final) {
      break;
    }
    // Not a buffer: up to the next one, or to the end.
    std::size_t next = at + 8;
    while (next + kBufferHeaderSize < bytes.size() && !convincing(bytes.data() + next, bytes.size() - next))
      next += 8;
    if (next + kBufferHeaderSize >= bytes.size()) next = bytes.size();
    next = std::min(next, bytes.size());
    parts.push_back({false, at, next - at});
    decoded += next - at;
    at = next;
  }
  return at;
}

struct SegmentCoder::State {
  Backend backend;
  ModelEncoder encoder;
  ModelDecoder decoder;
  std::vector<std::uint8_t> table;
  base::RawMemory decoded;                    // all compressed buffers of the segment at hand
  std::vector<ModelEncoder::Source> contents; // the events of each part, as encode() took them
  std::vector<std::uint8_t> unpacked;         // one compressed buffer, while decoding
  std::unique_ptr<codec::XpressPredictor> xpress;
  std::unique_ptr<codec::Lznt1Predictor> lznt1;
  std::size_t predictor_size = 0;
  base::RawMemory compared; // a part
  bool lent = false;        // the decoder has the encoder's memory

  void size_predictors(std::size_t size) {
    if (xpress != nullptr && size <= predictor_size) return;
    predictor_size = std::max<std::size_t>(size, 64 * 1024);
    xpress = std::make_unique<codec::XpressPredictor>(predictor_size);
    lznt1 = std::make_unique<codec::Lznt1Predictor>(predictor_size);
  }
  // How a compressed buffer is kept; fills `plain` unless it is verbatim. LZNT1 is tried first: XPRESS
  // streams never look like it.
  Content predict(Bytes content, MutableBytes plain, std::vector<std::uint8_t> &corrections) {
    if (plain.empty()) return Content::verbatim;
    size_predictors(plain.size());
    if (decompress(Codec::lznt1, content, plain) && lznt1->encode(content, plain, corrections))
      return Content::lznt1;
    if (decompress(Codec::xpress, content, plain) && xpress->encode(content, plain, corrections))
      return Content::xpress;
    return Content::verbatim;
  }
  bool restore(Content kind, Bytes plain, Bytes corrections, MutableBytes content) {
    size_predictors(plain.size());
    return kind == Content::lznt1 ? static_cast<bool>(lznt1->restore(plain, corrections, content))
                                  : static_cast<bool>(xpress->restore(plain, corrections, content));
  }
  // `target.room(at, n)`: where n bytes of the segment go; `target.good(at, bytes)`: they are there, and stay
  // where they are for no longer than this.
  template <class Target>
  bool decode(Bytes coded, std::size_t size, std::size_t limit, std::size_t scratch, Target &&target);
};

SegmentCoder::SegmentCoder() : state_(std::make_unique<State>()) {}
SegmentCoder::~SegmentCoder() = default;

void SegmentCoder::encode(Bytes bytes, std::span<const Part> parts, Level level,
                          std::vector<std::uint8_t> &out, SegmentFacts *facts,
                          std::vector<ColumnCost> *explain) {
  ModelEncoder &model = state_->encoder;
  model.reset();
  if (std::exchange(state_->lent, false)) model.take_memory(state_->decoder, ModelEncoder::kKeptMemory);
  model.set_plain_types(level == Level::max);
  const std::uint32_t family = model.add_family(buffer_plan());
  const std::uint32_t header_type = model.add_type(Identity{}, HeaderClass::bare, family);
  std::vector<ModelEncoder::Source> &contents = state_->contents;
  contents.clear();
  // No more than the weight of the parts (part_weight), which is bounded.
  std::size_t claimed = 0;
  for (const Part &part : parts) {
    if (!part.buffer) continue;
    const BufferHeader h = format::load_buffer_header(bytes.data() + part.at);
    if (h.compressed()) claimed += claimed_size(h);
  }
  MutableBytes room(state_->decoded.room(claimed), claimed);
  std::vector<Content> kinds(parts.size(), Content::events);
  std::vector<std::uint8_t> corrections;
  std::vector<std::size_t> correction_sizes(parts.size(), 0);
  std::size_t largest_decoded = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part &part = parts[i];
    if (!part.buffer) {
      contents.emplace_back();
      continue;
    }
    const Bytes whole = bytes.subspan(part.at, part.size);
    const BufferHeader h = format::load_buffer_header(whole.data());
    const Bytes content = whole.subspan(kBufferHeaderSize);
    if (h.compressed()) {
      const MutableBytes decoded = room.first(claimed_size(h));
      const std::size_t before = corrections.size();
      kinds[i] = state_->predict(content, decoded, corrections);
      if (kinds[i] != Content::verbatim) {
        room = room.subspan(decoded.size());
        correction_sizes[i] = corrections.size() - before;
        largest_decoded = std::max(largest_decoded, decoded.size());
        contents.push_back({decoded, h.processor()});
      } else {
        contents.emplace_back();
      }
    } else {
      contents.push_back({content.first(valid_content(h, content.size())), h.processor()});
    }
  }
  model.learn(contents);
  auto &streams = model.streams();
  auto raw = [&model](Bytes b) { model.streams()[kStreamRaw].put(b); };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part &part = parts[i];
    const Bytes whole = bytes.subspan(part.at, part.size);
    if (!part.buffer) {
      streams[kStreamParts].put(0);
      put_varint(streams[kStreamParts], whole.size());
      raw(whole);
      continue;
    }
    streams[kStreamParts].put(static_cast<std::uint8_t>(1 + static_cast<unsigned>(kinds[i])));
    std::uint64_t values[kMaxFields];
    header_to_values(whole.data(), values);
    static_cast<void>(model.code_record(header_type, values));
    const BufferHeader h = format::load_buffer_header(whole.data());
    const Bytes content = whole.subspan(kBufferHeaderSize);
    if (kinds[i] == Content::verbatim) {
      raw(content);
      continue;
    }
    const Bytes events = contents[i].events;
    const std::size_t coded = model.encode_events(events, h.processor());
    put_varint(streams[kStreamParts], events.size() - coded);
    raw(events.subspan(coded));
    if (kinds[i] != Content::events) {
      put_varint(streams[kStreamParts], correction_sizes[i]);
      continue;
    }
    const Bytes slack = content.subspan(events.size()); // normally all fill bytes
    const std::size_t odd = odd_slack(slack);
    put_varint(streams[kStreamParts], odd);
    raw(slack.first(odd));
  }
  streams[kStreamCorrections].put(corrections);
  streams[kStreamBits].put(model.bits().finish());
  state_->table.clear();
  model.write_table(state_->table);
  streams[kStreamTable].put(state_->table);
  std::vector<Bytes> all;
  for (const OutStream &s : streams)
    all.push_back(s.bytes());
  std::vector<std::size_t> cost;
  state_->backend.pack(all, level, out, explain != nullptr ? &cost : nullptr);
  if (explain != nullptr) {
    const std::vector<StreamName> names = model.stream_names();
    for (std::size_t i = 0; i < all.size(); ++i)
      explain->push_back({names[i].owner, names[i].column, 0, all[i].size(), cost[i]});
  }
  if (facts != nullptr) {
    *facts = SegmentFacts{};
    if (model.first_time() <= model.last_time())
      facts->first_time = model.first_time(), facts->last_time = model.last_time();
    for (const Type &type : model.types())
      facts->events += type.events;
    facts->buffers = static_cast<std::uint64_t>(
        std::count_if(parts.begin(), parts.end(), [](const Part &p) { return p.buffer; }));
    facts->processes = model.processes().sorted();
    facts->threads = model.threads().sorted();
    for (const Bytes s : all)
      facts->stream_bytes += s.size();
    facts->stream_bytes += model.object_bytes();
    facts->scratch_bytes = largest_decoded;
  }
}

Bytes SegmentCoder::events(std::size_t part) const {
  return state_->contents[part].events;
}

bool SegmentCoder::decode(Bytes coded, MutableBytes bytes, std::size_t limit, std::size_t scratch) {
  struct InPlace {
    MutableBytes bytes;
    [[nodiscard]] MutableBytes room(std::size_t at, std::size_t n) const { return bytes.subspan(at, n); }
    [[nodiscard]] static bool good(std::size_t, Bytes) { return true; }
  };
  state_->lent = false;
  state_->decoder.reset();
  return state_->decode(coded, bytes.size(), limit, scratch, InPlace{bytes});
}

bool SegmentCoder::gives(Bytes coded, Bytes bytes, std::size_t limit, std::size_t scratch) {
  // A part is compared while it is in the cache; the segment is never there as a whole. What stood there
  // before may look like it, and must not pass for what was decoded.
  struct Compared {
    Bytes bytes;
    base::RawMemory &part;
    [[nodiscard]] MutableBytes room(std::size_t, std::size_t n) const {
      return {static_cast<std::uint8_t *>(std::memset(part.room(n), 0xA5, n)), n};
    }
    [[nodiscard]] bool good(std::size_t at, Bytes got) const {
      return got.empty() || std::memcmp(got.data(), bytes.data() + at, got.size()) == 0;
    }
  };
  state_->lent = true;
  state_->decoder.reset();
  state_->decoder.take_memory(state_->encoder, SIZE_MAX);
  return state_->decode(coded, bytes.size(), limit, scratch, Compared{bytes, state_->compared});
}

template <class Target>
bool SegmentCoder::State::decode(Bytes coded, std::size_t size_of_all, std::size_t limit, std::size_t scratch,
                                 Target &&target) {
  std::vector<Bytes> all;
  if (!backend.unpack(coded, limit, all) || all.size() < kFixedStreams) return false;
  ModelDecoder &model = decoder;
  model.set_object_bound(limit);
  InStream tables(all[kStreamTable]);
  if (!model.read_table(tables) || model.families().empty() || model.types().empty() ||
      model.types()[0].family != 0 || model.families()[0].plan.fields.size() != kBufferFields)
    return false;
  for (const PlanField &f : model.families()[0].plan.fields)
    if (!f.is_number()) return false;
  auto &streams = model.streams();
  if (streams.size() != all.size()) return false;
  for (std::size_t i = 0; i < all.size(); ++i)
    streams[i] = InStream(all[i]);
  model.bits() = BitReader(all[kStreamBits]);
  auto raw = [&streams](std::uint8_t *to, std::size_t n) {
    const Bytes b = streams[kStreamRaw].get(n);
    if (n != 0 && b.size() == n) std::memcpy(to, b.data(), n);
    return b.size() == n;
  };
  std::size_t at = 0;
  while (at < size_of_all) {
    InStream &list = streams[kStreamParts];
    const unsigned kind = list.get();
    const std::size_t left = size_of_all - at;
    if (kind == 0) {
      const std::uint64_t n = get_varint(list);
      if (n == 0 || n > left) return false;
      const MutableBytes part = target.room(at, n);
      if (!raw(part.data(), n) || !target.good(at, part)) return false;
      at += n;
      continue;
    }
    if (kind > static_cast<unsigned>(Content::count_)) return false;
    std::uint64_t values[kMaxFields];
    if (!model.code_record(0, values)) return false;
    const BufferHeader h = values_to_header(values);
    if (h.buffer_size < kBufferHeaderSize || h.buffer_size > left) return false;
    const MutableBytes part = target.room(at, h.buffer_size);
    format::store_buffer_header(part.data(), h);
    const MutableBytes content = part.subspan(kBufferHeaderSize);
    const std::size_t begin = std::exchange(at, at + h.buffer_size);
    if (static_cast<Content>(kind - 1) == Content::verbatim) {
      if (!raw(content.data(), content.size()) || !target.good(begin, part)) return false;
      continue;
    }
    if (static_cast<Content>(kind - 1) != Content::events) {
      const std::size_t size = claimed_size(h);
      if (size == 0 || size > scratch) return false;
      const std::uint64_t tail = get_varint(list), corrected = get_varint(list);
      if (tail > size) return false;
      unpacked.resize(size);
      if (!model.decode_events(unpacked, size - tail, h.processor()) ||
          !raw(unpacked.data() + (size - tail), tail))
        return false;
      const Bytes corrections = streams[kStreamCorrections].get(corrected);
      if (corrections.size() != corrected ||
          !restore(static_cast<Content>(kind - 1), unpacked, corrections, content) ||
          !target.good(begin, part))
        return false;
      continue;
    }
    const std::size_t valid = valid_content(h, content.size());
    // The parts stream names what follows the events, so it is read first.
    const std::uint64_t tail = get_varint(list), odd = get_varint(list);
    if (tail > valid || odd > content.size() - valid) return false;
    if (!model.decode_events(content.first(valid), valid - tail, h.processor())) return false;
    if (!raw(content.data() + (valid - tail), tail) || !raw(content.data() + valid, odd)) return false;
    std::memset(content.data() + valid + odd, format::kFillByte, content.size() - valid - odd);
    if (!target.good(begin, part)) return false;
  }
  for (const InStream &s : streams)
    if (s.overrun()) return false;
  return !model.bits().overrun() && streams[kStreamParts].at_end();
}

// --- Small archives

namespace {

void append(std::vector<std::uint8_t> &to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

} // namespace

bool SegmentCoder::encode_small(Bytes bytes, std::span<const Part> parts, std::size_t most,
                                const std::function<bool(Bytes)> &worth, std::vector<std::uint8_t> &out) {
  std::vector<std::uint8_t> content, list, corrections, decoded;
  std::uint64_t largest = 0;
  for (const Part &part : parts) {
    if (content.size() > most) return false;
    const Bytes whole = bytes.subspan(part.at, part.size);
    if (!part.buffer) {
      list.push_back(0);
      put_varint(list, whole.size());
      append(content, whole.first(std::min(whole.size(), most + 1)));
      continue;
    }
    const BufferHeader h = format::load_buffer_header(whole.data());
    const Bytes body = whole.subspan(kBufferHeaderSize);
    append(content, whole.first(kBufferHeaderSize));
    Content kind = Content::events;
    const std::size_t corrected = corrections.size();
    if (h.compressed()) {
      if (claimed_size(h) > most) return false;
      decoded.resize(claimed_size(h));
      kind = state_->predict(body, decoded, corrections);
    }
    list.push_back(static_cast<std::uint8_t>(1 + static_cast<unsigned>(kind)));
    if (kind == Content::verbatim) {
      append(content, body);
    } else if (kind == Content::events) {
      const std::size_t valid = valid_content(h, body.size()), odd = odd_slack(body.subspan(valid));
      put_varint(list, odd);
      append(content, body.first(valid + odd));
    } else {
      put_varint(list, corrections.size() - corrected);
      append(content, decoded);
      largest = std::max<std::uint64_t>(largest, decoded.size());
    }
  }
  if (content.size() > most || !worth(content)) return false;
  put_varint(out, content.size());
  put_varint(out, list.size());
  put_varint(out, corrections.size());
  put_varint(out, largest);
  append(content, list);
  append(content, corrections);
  etlz::encode_small(content, out);
  return true;
}

bool SegmentCoder::decode_small(Bytes coded, MutableBytes bytes, std::uint64_t limit) {
  InStream in(coded);
  const std::uint64_t sizes[3] = {get_varint(in), get_varint(in), get_varint(in)}, largest = get_varint(in);
  std::uint64_t total = 0;
  for (const std::uint64_t size : sizes) {
    if (size > kMostSmallContent) return false;
    total += size;
  }
  if (in.overrun() || total + largest > limit) return false;
  std::vector<std::uint8_t> all(total), decoded;
  if (!etlz::decode_small(in.rest(), all)) return false;
  InStream content(Bytes(all).first(sizes[0])), list(Bytes(all).subspan(sizes[0], sizes[1])),
      corrections(Bytes(all).subspan(sizes[0] + sizes[1]));
  auto take = [&content](std::uint8_t *to, std::uint64_t n) {
    const Bytes b = content.get(n);
    if (n != 0 && b.size() == n) std::memcpy(to, b.data(), n);
    return b.size() == n;
  };
  std::size_t at = 0;
  while (at < bytes.size()) {
    const unsigned kind = list.get();
    const std::size_t left = bytes.size() - at;
    if (kind == 0) {
      const std::uint64_t n = get_varint(list);
      if (n == 0 || n > left || !take(bytes.data() + at, n)) return false;
      at += n;
      continue;
    }
    if (kind > static_cast<unsigned>(Content::count_) || left < kBufferHeaderSize ||
        !take(bytes.data() + at, kBufferHeaderSize))
      return false;
    const BufferHeader h = format::load_buffer_header(bytes.data() + at);
    if (h.buffer_size < kBufferHeaderSize || h.buffer_size > left) return false;
    const MutableBytes body = bytes.subspan(at + kBufferHeaderSize, h.buffer_size - kBufferHeaderSize);
    at += h.buffer_size;
    const auto how = static_cast<Content>(kind - 1);
    if (how == Content::verbatim) {
      if (!take(body.data(), body.size())) return false;
    } else if (how == Content::events) {
      const std::size_t valid = valid_content(h, body.size());
      const std::uint64_t odd = get_varint(list);
      if (odd > body.size() - valid || !take(body.data(), valid + odd)) return false;
      std::memset(body.data() + valid + odd, format::kFillByte, body.size() - valid - odd);
    } else {
      const std::size_t size = claimed_size(h);
      const std::uint64_t corrected = get_varint(list);
      if (size == 0 || size > largest) return false;
      decoded.resize(size);
      const Bytes corrected_by = corrections.get(corrected);
      if (!take(decoded.data(), size) || corrected_by.size() != corrected ||
          !state_->restore(how, decoded, corrected_by, body))
        return false;
    }
  }
  return content.at_end() && list.at_end() && corrections.at_end() && !list.overrun();
}

} // namespace etwrelog::etlz
