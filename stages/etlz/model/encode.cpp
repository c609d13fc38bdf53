#include "etlz/model/code.hpp"

namespace etwrelog::etlz {

namespace {

constexpr unsigned kSamples = 48;
constexpr std::size_t kGaps = 256;

// Bits that are set; counting them all would be a call.
bool more_than_three(std::uint32_t bits) {
  for (unsigned i = 0; i < 3; ++i)
    bits &= bits - 1;
  return bits != 0;
}

// The period of events that come at a steady rate; 0 if most do not.
std::uint64_t steady_period(std::vector<std::uint64_t> &gaps) {
  if (gaps.size() < kGaps / 4) return 0;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  const std::uint64_t median = *middle;
  if (median < 64 || median > kMaxPeriod) return 0;
  std::uint64_t sum = 0, steady = 0;
  for (const std::uint64_t gap : gaps) {
    if (gap - median + median / 16 > median / 8) continue;
    sum += gap;
    ++steady;
  }
  return steady * 10 >= gaps.size() * 7 ? (sum + steady / 2) / steady : 0;
}

} // namespace

void ModelEncoder::reset() {
  ModelCore::reset();
  kindreds_.clear();
  std::fill(kindred_by_hash_.begin(), kindred_by_hash_.end(), 0);
  family_by_plan_.clear();
  kindred_of_event_.clear();
  next_event_ = 0;
  processes_.clear();
  threads_seen_.clear();
  first_time_ = INT64_MAX, last_time_ = INT64_MIN;
}

std::uint32_t ModelEncoder::kindred_of(const EventView &event, HeaderClass c) {
  const Identity id = identity_of(event, c);
  std::uint64_t hash = id.word[0] * 0x9E37'79B9'7F4A'7C15ull;
  for (unsigned i = 1; i < id.words; ++i)
    hash ^= id.word[i] * (0xC2B2'AE3D'27D4'EB4Full + 2 * i);
  const std::size_t mask = kindred_by_hash_.size() - 1;
  std::size_t slot = mix(hash ^ hash >> 29) & mask;
  for (; kindred_by_hash_[slot] != 0; slot = (slot + 1) & mask) {
    const std::uint32_t k = kindred_by_hash_[slot] - 1;
    if (kindreds_[k].identity == id) return k;
  }
  if (kindreds_.size() >= kMaxTypes) return kMaxTypes;
  Kindred kindred;
  kindred.identity = id;
  const bool plain = !(event.is_perfinfo() && !event.perfinfo_items().empty()) && !event.is_message() &&
                     c != HeaderClass::bare && event.type() != format::HeaderType::instance32 &&
                     event.type() != format::HeaderType::instance64;
  kindred.known = plain && known_plan(event, kindred.plan);
  kindreds_.push_back(std::move(kindred));
  kindred_by_hash_[slot] = static_cast<std::uint32_t>(kindreds_.size());
  return static_cast<std::uint32_t>(kindreds_.size() - 1);
}

std::uint32_t ModelEncoder::type_of(std::uint32_t index, HeaderClass c, unsigned fields, bool tail) {
  Kindred &kindred = kindreds_[index];
  const std::uint32_t variant = fields << 1 | (tail ? 1u : 0u);
  if (kindred.last_variant == variant) return kindred.last_type;
  const auto found = kindred.types.find(variant);
  if (found != kindred.types.end()) {
    kindred.last_variant = variant;
    return kindred.last_type = found->second;
  }
  if (types_.size() >= kMaxTypes) return kMaxTypes;
  Plan plan = cut_plan(kindred.plan, fields, tail);
  std::vector<std::uint8_t> key;
  write_plan(key, plan);
  std::string name(key.begin(), key.end());
  if (!kindred.known) name += static_cast<char>(index), name += static_cast<char>(index >> 8);
  const auto same = family_by_plan_.find(name);
  const std::uint32_t family = same != family_by_plan_.end() ? same->second : add_family(std::move(plan));
  family_by_plan_.emplace(std::move(name), family);
  const std::uint32_t type = add_type(kindred.identity, c, family, header_shape(c).time ? kindred.period : 0);
  kindred.types.emplace(variant, type);
  return type;
}

void ModelEncoder::learn(std::span<const Source> buffers) {
  for (const Source &buffer : buffers) {
    for_each_event(buffer.events, [this, &buffer](const EventView &event, std::int64_t time, std::uint32_t) {
      const HeaderClass c = header_class(event.type());
      const std::uint32_t index = kindred_of(event, c);
      kindred_of_event_.push_back(static_cast<std::uint16_t>(index));
      if (index == kMaxTypes) return;
      Kindred &kindred = kindreds_[index];
      if (kindred.processor == ~0u) {
        kindred.processor = buffer.processor;
        kindred.last_time = static_cast<std::uint64_t>(time);
      } else if (kindred.processor == buffer.processor && kindred.gaps.size() < kGaps) {
        kindred.gaps.push_back(static_cast<std::uint64_t>(time) - kindred.last_time);
        kindred.last_time = static_cast<std::uint64_t>(time);
      }
      // Samples from all over the segment: every power-of-two-th event.
      if (kindred.known || more_than_three(++kindred.samples) || kindred.sample_payloads.size() >= kSamples)
        return;
      const Bytes payload = event.has_items() ? event.payload() : event.bytes().subspan(header_shape(c).size);
      kindred.sample_payloads.push_back(payload);
    });
  }
  for (Kindred &kindred : kindreds_) {
    if (!kindred.known) {
      kindred.plan = learned_plan(kindred.sample_payloads, 8);
      kindred.plan.name = "";
    }
    if ((kindred.identity.words == 5) && (kindred.identity.word[0] >> 32 & format::kEventFlagExtended) != 0) {
      PlanField items;
      items.kind = Kind::items;
      items.first = Predictor::lookup, items.second = Predictor::previous;
      items.text = kTextItems;
      items.name = "items";
      if (kindred.plan.fields.size() < kMaxFields - 1) {
        kindred.plan.fields.insert(kindred.plan.fields.begin(), items);
        if (kindred.plan.lead != 0xFF) ++kindred.plan.lead;
        for (PlanField &f : kindred.plan.fields)
          if (f.base == Predictor::chain) ++f.base_arg;
      }
    }
    kindred.start = split_start(kindred.plan.fields);
    kindred.period = steady_period(kindred.gaps);
  }
}

std::size_t ModelEncoder::encode_events(Bytes events, std::uint16_t processor) {
  start_buffer(processor);
  std::size_t done = 0;
  bool full = false;
  Split split;
  const std::uint8_t *const last_word = events.size() < 8 ? nullptr : events.data() + (events.size() - 8);
  for_each_event(events, [&](const EventView &event, std::int64_t, std::uint32_t at) {
    const std::uint32_t kindred = kindred_of_event_[next_event_++];
    if (full) return;
    const HeaderClass c = header_class(event.type());
    const HeaderShape &shape = header_shape(c);
    const Bytes payload = event.bytes().subspan(shape.size);
    std::uint32_t index = kMaxTypes;
    if (kindred != kMaxTypes) {
      const Kindred &k = kindreds_[kindred];
      if (k.start.fields == k.plan.fields.size() && k.start.end <= payload.size())
        split.fields = split.started = k.start.fields, split.end = k.start.end;
      else
        split_payload(k.plan.fields, k.start, payload, split);
      const bool tail = split.end < payload.size();
      index = k.last_variant == (split.fields << 1 | (tail ? 1u : 0u))
                  ? k.last_type
                  : type_of(kindred, c, split.fields, tail);
    }
    if (index == kMaxTypes) {
      full = true;
      return;
    }
    Type &type = types_[index];
    Family &family = families_[type.family];
    ++type.events;
    start_record(family);
    const FieldPlace *const places = family.places.data();
    for (unsigned i = 0; i < split.fields; ++i) {
      const FieldPlace &place = places[i];
      const std::uint8_t *const p = payload.data() + (i < split.started ? place.at : split.at[i]);
      if (place.kind != Kind::number)
        content_[i] = Bytes(p, i < split.started ? place.width : split.length[i]);
      else if (p <= last_word)
        current_[i] = load<std::uint64_t>(p) & place.mask;
      else
        current_[i] = load_width(p, place.width);
    }
    if (split.end < payload.size()) content_[split.fields] = payload.subspan(split.end);
    family.history.prefetch(current_);
    code_type(index);
    Pattern pattern;
    // The padding after the event, as far as the buffer has it.
    const std::size_t end = at + event.size();
    const std::size_t next = std::min<std::size_t>(align8(end), events.size());
    if (next > end && load<std::uint64_t>(events.data() + (next - 8)) >> (64 - 8 * (next - end)) != 0) {
      pattern.put(kBitPadding, true);
      streams_[kStreamPadding].put(events.subspan(end, next - end));
    }
    code_header(type, pattern, event.bytes().data());
    if (shape.ids) {
      processes_.note(slots_[static_cast<std::size_t>(Slot::process_id)]);
      threads_seen_.note(slots_[static_cast<std::size_t>(Slot::thread_id)]);
    }
    if (shape.time) {
      const auto time = static_cast<std::int64_t>(time_);
      first_time_ = std::min(first_time_, time);
      last_time_ = std::max(last_time_, time);
    }
    code_fields(family, pattern);
    end_event(type, family);
    processes_.note(slots_[static_cast<std::size_t>(Slot::process_id)]);
    threads_seen_.note(slots_[static_cast<std::size_t>(Slot::thread_id)]);
    code_pattern_symbol(type, family, pattern);
    done = next;
  });
  end_buffer();
  return done;
}

void ModelEncoder::write_table(std::vector<std::uint8_t> &out) const {
  // Families and types in the order of creation, which numbers their streams.
  put_varint(out, families_.size());
  put_varint(out, types_.size());
  std::size_t f = 0, t = 0;
  while (f < families_.size() || t < types_.size()) {
    // An empty family has no streams: it stands before the type with the same first stream.
    const bool family =
        t == types_.size() || (f < families_.size() && families_[f].stream <= types_[t].stream);
    out.push_back(family ? 1 : 0);
    if (family) {
      write_plan(out, families_[f++].plan);
      continue;
    }
    const Type &type = types_[t++];
    out.push_back(static_cast<std::uint8_t>(type.header_class));
    out.push_back(type.identity.words);
    for (unsigned i = 0; i < type.identity.words; ++i) {
      out.resize(out.size() + 8);
      store(out.data() + out.size() - 8, type.identity.word[i]);
    }
    put_varint(out, type.family);
    put_varint(out, type.period);
  }
}

template class ModelCore<false>;

} // namespace etwrelog::etlz
