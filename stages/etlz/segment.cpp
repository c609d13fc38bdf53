#include "etlz/segment_state.hpp"
#include "etlz/small/small.hpp"

#include <algorithm>
#include <utility>

namespace etwrelog::etlz {

namespace {

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

constexpr std::uint64_t kLittle = 1u << 20; // bytes of events up to which ultra tries the way of max, too
constexpr std::size_t kFewCorrections = 64; // bytes, of the smallest buffers

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

} // namespace

SegmentCoder::SegmentCoder() : state_(std::make_unique<State>()) {}
SegmentCoder::~SegmentCoder() = default;

void SegmentCoder::stop_with(std::stop_token stop) {
  state_->stop = std::move(stop);
}

// Decompresses what is compressed, and finds the events of each part.
void SegmentCoder::State::take_apart(Bytes bytes, std::span<const Part> parts) {
  contents.clear();
  // No more than the weight of the parts (part_weight), which is bounded.
  std::size_t claimed = 0;
  for (const Part &part : parts) {
    if (!part.buffer) continue;
    const BufferHeader h = format::load_buffer_header(bytes.data() + part.at);
    if (h.compressed() && believable(h)) claimed += claimed_size(h);
  }
  MutableBytes room(decoded.room(claimed), claimed);
  kinds.assign(parts.size(), Content::events);
  corrections.clear();
  correction_sizes.assign(parts.size(), 0);
  proofs.clear();
  xpress.forget();
  largest_decoded = all_decoded = 0;
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
      const MutableBytes plain = room.first(believable(h) ? claimed_size(h) : 0);
      const std::size_t before = corrections.size();
      kinds[i] = predict(content, plain, corrections, part.at);
      if (kinds[i] != Content::verbatim) {
        room = room.subspan(plain.size());
        correction_sizes[i] = corrections.size() - before;
        largest_decoded = std::max(largest_decoded, plain.size());
        all_decoded += plain.size();
        contents.push_back({plain, h.processor()});
      } else {
        contents.emplace_back();
      }
    } else {
      contents.push_back({content.first(valid_content(h, content.size())), h.processor()});
    }
  }
}

template <class Encoder>
void SegmentCoder::State::write(Encoder &model, Bytes bytes, std::span<const Part> parts) {
  const std::uint32_t family = model.add_family(buffer_plan());
  const std::uint32_t header_type = model.add_type(Identity{}, HeaderClass::bare, family);
  model.learn(contents);
  auto raw = [&model](Bytes b) { static_cast<void>(model.code_raw(kStreamRaw, b, nullptr, b.size())); };
  memory.clear();
  recycled = false;
  std::size_t corrected = 0;
  for (std::size_t i = 0; i < parts.size() && !stop.stop_requested(); ++i) {
    const Part &part = parts[i];
    const Bytes whole = bytes.subspan(part.at, part.size);
    model.flush();
    if (!part.buffer) {
      model.code_part(0);
      model.code_part_number(whole.size());
      raw(whole);
      continue;
    }
    // Who reads what was recycled keeps everything decompressed.
    const std::size_t back = all_decoded <= kMaxSegment ? memory.find(model.paddings(i)) : 0;
    recycled = recycled || back != 0;
    model.code_part(1 + static_cast<unsigned>(kinds[i]) + (back != 0 ? kOfRecycled : 0));
    if (back != 0) model.code_part_number(back);
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
    const std::size_t before_events = model.waiting();
    const std::size_t coded = model.encode_events(events, h.processor(), memory.image(back));
    memory.add(kinds[i] == Content::events ? content : events);
    // How much follows the events is known behind them, and read before them.
    const std::size_t behind_events = model.waiting();
    const Bytes slack = content.subspan(kinds[i] == Content::events ? events.size() : content.size());
    const std::size_t odd = odd_slack(slack); // normally all fill bytes
    model.code_part_number(events.size() - coded);
    model.code_part_number(kinds[i] == Content::events ? odd : correction_sizes[i]);
    model.bring_forward(before_events, behind_events);
    raw(events.subspan(coded));
    if (kinds[i] == Content::events) {
      raw(slack.first(odd));
      continue;
    }
    const Bytes c = Bytes(corrections).subspan(corrected, correction_sizes[i]);
    static_cast<void>(model.code_raw(kStreamCorrections, c, nullptr, c.size()));
    corrected += c.size();
  }
  model.flush();
}

template <class Encoder>
void SegmentCoder::State::note(const Encoder &model, std::span<const Part> parts, SegmentFacts &facts) const {
  facts = SegmentFacts{};
  if (model.first_time() <= model.last_time())
    facts.first_time = model.first_time(), facts.last_time = model.last_time();
  for (const Type &type : model.types())
    facts.events += type.events;
  facts.buffers = static_cast<std::uint64_t>(
      std::count_if(parts.begin(), parts.end(), [](const Part &p) { return p.buffer; }));
  facts.processes = model.processes().sorted();
  facts.threads = model.threads().sorted();
  facts.stream_bytes = model.object_bytes();
  facts.scratch_bytes = recycled ? all_decoded : largest_decoded;
}

void SegmentCoder::State::encode_streams(Bytes bytes, std::span<const Part> parts, Level level,
                                         std::vector<std::uint8_t> &out, SegmentFacts &facts,
                                         std::vector<ColumnCost> *explain) {
  ModelEncoder &model = encoder;
  model.reset();
  if (std::exchange(lent, false)) model.take_memory(decoder, ModelEncoder::kKeptMemory);
  model.set_plain_types(level >= Level::max);
  write(model, bytes, parts);
  auto &streams = model.streams();
  streams[kStreamBits].put(model.bits().finish());
  table.clear();
  model.write_table(table);
  streams[kStreamTable].put(table);
  std::vector<Bytes> all;
  for (const OutStream &s : streams)
    all.push_back(s.bytes());
  std::vector<std::size_t> cost;
  backend.pack(all, level, out, explain != nullptr ? &cost : nullptr);
  if (explain != nullptr) {
    const std::vector<StreamName> names = model.stream_names();
    for (std::size_t i = 0; i < all.size(); ++i)
      explain->push_back({names[i].owner, names[i].column, 0, all[i].size(), cost[i]});
  }
  note(model, parts, facts);
  for (const Bytes s : all)
    facts.stream_bytes += s.size();
}

// Of all that take_apart() found.
std::uint64_t SegmentCoder::State::event_bytes() const {
  std::uint64_t size = 0;
  for (const BufferEvents &content : contents)
    size += content.events.size();
  return size;
}

// u8 bits of the context model, varint bytes of the table, varint of those that it is coded in, the coded
// table (small.hpp), and the code of all the rest.
bool SegmentCoder::State::encode_coupled(Bytes bytes, std::span<const Part> parts,
                                         std::vector<std::uint8_t> &out, SegmentFacts &facts,
                                         std::vector<ColumnCost> *explain) {
  CoupledEncoder &model = coupled().encoder;
  model.reset();
  if (std::exchange(lent_coupled, false)) model.take_memory(coupled().decoder, CoupledEncoder::kKeptMemory);
  model.set_plain_types(true);
  const unsigned bits = ContextModel::bits_for(event_bytes());
  std::vector<std::uint8_t> code;
  model.start_code(coupled().model, bits, code);
  if (explain != nullptr) model.count_costs();
  write(model, bytes, parts);
  model.coder().finish();
  table.clear();
  model.write_table(table);
  if (table.size() > kMostSmallContent) return false;
  std::vector<std::uint8_t> coded_table;
  etlz::encode_small(table, coded_table);
  out.push_back(static_cast<std::uint8_t>(bits));
  put_varint(out, table.size());
  put_varint(out, coded_table.size());
  out.insert(out.end(), coded_table.begin(), coded_table.end());
  out.insert(out.end(), code.begin(), code.end());
  if (explain != nullptr) {
    const std::vector<StreamName> names = model.stream_names();
    explain->push_back(
        {names[kStreamTable].owner, names[kStreamTable].column, 0, table.size(), coded_table.size()});
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto [symbols, cost] = model.cost(static_cast<std::uint32_t>(i));
      explain->push_back({names[i].owner, names[i].column, 0, symbols, cost});
    }
  }
  note(model, parts, facts);
  facts.stream_bytes += ContextModel::memory_bytes(bits) + table.size();
  return true;
}

SegmentMethod SegmentCoder::encode(Bytes bytes, std::span<const Part> parts, Level level,
                                   std::vector<std::uint8_t> &out, SegmentFacts *facts,
                                   std::vector<ColumnCost> *explain) {
  SegmentFacts unused;
  SegmentFacts &found = facts != nullptr ? *facts : unused;
  state_->take_apart(bytes, parts);
  const std::size_t before = out.size();
  if (level == Level::ultra && state_->encode_coupled(bytes, parts, out, found, explain)) {
    if (state_->event_bytes() > kLittle) return SegmentMethod::coupled;
    // Of little, what is learnt beforehand may be worth more than what is learnt on the way.
    std::vector<std::uint8_t> other;
    std::vector<ColumnCost> other_costs;
    SegmentFacts other_facts;
    state_->encode_streams(bytes, parts, level, other, other_facts,
                           explain != nullptr ? &other_costs : nullptr);
    if (other.size() >= out.size() - before || state_->encoder.streams().size() > Backend::kMaxStreams)
      return SegmentMethod::coupled;
    out.resize(before);
    out.insert(out.end(), other.begin(), other.end());
    found = std::move(other_facts);
    if (explain != nullptr) *explain = std::move(other_costs);
    return SegmentMethod::model;
  }
  state_->encode_streams(bytes, parts, level, out, found, explain);
  return state_->encoder.streams().size() <= Backend::kMaxStreams ? SegmentMethod::model
                                                                  : SegmentMethod::zstd;
}

Bytes SegmentCoder::events(std::size_t part) const {
  return state_->contents[part].events;
}

template <class Decoder, class Target>
bool SegmentCoder::State::read(Decoder &model, std::size_t size_of_all, std::size_t scratch,
                               Target &&target) {
  auto raw = [&model](std::uint8_t *to, std::size_t n) { return model.code_raw(kStreamRaw, {}, to, n); };
  memory.clear();
  std::size_t held = 0; // bytes of decompressed buffers
  std::size_t at = 0;
  while (at < size_of_all) {
    if (stop.stop_requested()) return false;
    unsigned kind = model.code_part(0);
    const std::size_t left = size_of_all - at;
    if (kind == 0) {
      const std::uint64_t n = model.code_part_number(0);
      if (n == 0 || n > left) return false;
      const MutableBytes part = target.room(at, n);
      if (!raw(part.data(), n) || !target.good(at, part)) return false;
      at += n;
      continue;
    }
    Bytes before;
    if (kind > kOfRecycled) {
      kind -= kOfRecycled;
      before = memory.image(model.code_part_number(0));
      if (before.empty()) return false;
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
      const std::uint64_t tail = model.code_part_number(0), corrected = model.code_part_number(0);
      if (tail > size) return false;
      if (size > scratch - held) {
        // Archives in which nothing was recycled have room for one buffer.
        if (!before.empty()) return false;
        memory.clear();
        held = 0;
      }
      const MutableBytes plain(decompressed.room(scratch) + held, size);
      if (!model.decode_events(plain, size - tail, h.processor(), before) ||
          !raw(plain.data() + (size - tail), tail))
        return false;
      // A writer keeps a buffer as it is when corrections come to half of it.
      if (corrected > content.size() + kFewCorrections) return false;
      corrections.resize(corrected);
      if (!model.code_raw(kStreamCorrections, {}, corrections.data(), corrected)) return false;
      const bool proven =
          static_cast<Content>(kind - 1) == Content::xpress && target.proven(begin, part, plain, corrections);
      if (!proven && (!restore(static_cast<Content>(kind - 1), plain, corrections, content) ||
                      !target.good(begin, part)))
        return false;
      const Bytes image = target.staying(begin, plain);
      if (image.data() == plain.data()) held += size;
      memory.add(image);
      continue;
    }
    const std::size_t valid = valid_content(h, content.size());
    // The parts stream names what follows the events, so it is read first.
    const std::uint64_t tail = model.code_part_number(0), odd = model.code_part_number(0);
    if (tail > valid || odd > content.size() - valid) return false;
    if (!model.decode_events(content.first(valid), valid - tail, h.processor(), before)) return false;
    if (!raw(content.data() + (valid - tail), tail) || !raw(content.data() + valid, odd)) return false;
    std::memset(content.data() + valid + odd, format::kFillByte, content.size() - valid - odd);
    if (!target.good(begin, part)) return false;
    memory.add(target.kept(begin, part).subspan(kBufferHeaderSize));
  }
  return true;
}

namespace {

// A table that was read: whether its first type and family are those of buffer headers.
template <class Decoder> bool has_buffer_headers(const Decoder &model) {
  return !model.families().empty() && !model.types().empty() && model.types()[0].family == 0 &&
         model.families()[0].plan.fields.size() == kBufferFields &&
         std::ranges::all_of(model.families()[0].plan.fields, &PlanField::is_number);
}

} // namespace

template <class Target>
bool SegmentCoder::State::decode_streams(Bytes coded, std::size_t size, std::size_t limit,
                                         std::size_t scratch, Target &&target) {
  std::vector<Bytes> all;
  if (!backend.unpack(coded, limit, all) || all.size() < kFixedStreams) return false;
  ModelDecoder &model = decoder;
  model.set_object_bound(limit);
  InStream in(all[kStreamTable]);
  if (!model.read_table(in) || !has_buffer_headers(model)) return false;
  auto &streams = model.streams();
  if (streams.size() != all.size()) return false;
  for (std::size_t i = 0; i < all.size(); ++i)
    streams[i] = InStream(all[i]);
  model.bits() = BitReader(all[kStreamBits]);
  if (!read(model, size, scratch, target)) return false;
  for (const InStream &s : streams)
    if (s.overrun()) return false;
  return !model.bits().overrun() && streams[kStreamParts].at_end();
}

template <class Target>
bool SegmentCoder::State::decode_coupled(Bytes coded, std::size_t size, std::size_t limit,
                                         std::size_t scratch, Target &&target) {
  InStream in(coded);
  const unsigned bits = in.get();
  const std::uint64_t table_size = get_varint(in), coded_size = get_varint(in);
  if (bits < ContextModel::kLeastBits || bits > ContextModel::kMostBits || table_size > kMostSmallContent ||
      coded_size > in.rest().size() || ContextModel::memory_bytes(bits) + table_size > limit)
    return false;
  table.resize(table_size);
  if (!etlz::decode_small(in.get(static_cast<std::size_t>(coded_size)), table)) return false;
  CoupledDecoder &model = coupled().decoder;
  model.set_object_bound(limit - ContextModel::memory_bytes(bits) - table_size);
  InStream columns(table);
  if (!model.read_table(columns) || !has_buffer_headers(model)) return false;
  model.start_code(coupled().model, bits, in.rest());
  return read(model, size, scratch, target) && model.coder().at_end();
}

template <class Target>
bool SegmentCoder::State::decode(SegmentMethod method, Bytes coded, std::size_t size, std::size_t limit,
                                 std::size_t scratch, Target &&target) {
  return method == SegmentMethod::coupled ? decode_coupled(coded, size, limit, scratch, target)
                                          : decode_streams(coded, size, limit, scratch, target);
}

bool SegmentCoder::decode(SegmentMethod method, Bytes coded, MutableBytes bytes, std::size_t limit,
                          std::size_t scratch) {
  struct InPlace {
    MutableBytes bytes;
    [[nodiscard]] MutableBytes room(std::size_t at, std::size_t n) const { return bytes.subspan(at, n); }
    [[nodiscard]] static bool good(std::size_t, Bytes) { return true; }
    [[nodiscard]] static bool proven(std::size_t, Bytes, Bytes, Bytes) { return false; }
    [[nodiscard]] static Bytes staying(std::size_t, Bytes plain) { return plain; }
    [[nodiscard]] static Bytes kept(std::size_t, Bytes part) { return part; }
  };
  if (method == SegmentMethod::coupled) {
    state_->lent_coupled = false;
    state_->coupled().decoder.reset();
  } else {
    state_->lent = false;
    state_->decoder.reset();
  }
  return state_->decode(method, coded, bytes.size(), limit, scratch, InPlace{bytes});
}

bool SegmentCoder::gives(SegmentMethod method, Bytes coded, Bytes bytes, std::size_t limit,
                         std::size_t scratch) {
  // A part is compared while it is in the cache; the segment is never there as a whole. What stood there
  // before may look like it, and must not pass for what was decoded.
  struct Compared {
    Bytes bytes;
    base::RawMemory &part;
    StreamProofs &proofs;
    bool recycled;
    [[nodiscard]] MutableBytes room(std::size_t, std::size_t n) const {
      return {static_cast<std::uint8_t *>(std::memset(part.room(n), 0xA5, n)), n};
    }
    [[nodiscard]] bool good(std::size_t at, Bytes got) const {
      return got.empty() || std::memcmp(got.data(), bytes.data() + at, got.size()) == 0;
    }
    // The header is compared here, and what follows it was seen to be what restore() gives.
    [[nodiscard]] bool proven(std::size_t at, Bytes got, Bytes plain, Bytes corrections) const {
      const Bytes same = bytes.subspan(at, got.size());
      return good(at, got.first(kBufferHeaderSize)) &&
             proofs.hold(at, same.subspan(kBufferHeaderSize), plain, corrections);
    }
    // So that the next buffer is decoded to the same memory, which is in the cache.
    [[nodiscard]] Bytes staying(std::size_t at, Bytes plain) const {
      return recycled ? proofs.staying(at, plain) : plain;
    }
    // Where a part that is good stays.
    [[nodiscard]] Bytes kept(std::size_t at, Bytes same) const { return bytes.subspan(at, same.size()); }
  };
  state_->proofs.rewind();
  if (method == SegmentMethod::coupled) {
    state_->lent_coupled = true;
    state_->coupled().decoder.reset();
    state_->coupled().decoder.take_memory(state_->coupled().encoder, SIZE_MAX);
  } else {
    state_->lent = true;
    state_->decoder.reset();
    state_->decoder.take_memory(state_->encoder, SIZE_MAX);
  }
  return state_->decode(method, coded, bytes.size(), limit, scratch,
                        Compared{bytes, state_->compared, state_->proofs, state_->recycled});
}

} // namespace etwrelog::etlz
