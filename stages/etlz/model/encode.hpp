// Encoding, for each way. Included by the files that instantiate it.
#pragma once

#include "etlz/model/code.hpp"

#include <map>

namespace etwrelog::etlz {

inline constexpr unsigned kSamples = 48, kFirst = 256; // events of a kind
inline constexpr std::size_t kLearned = 64;            // groups of kinds
inline constexpr std::size_t kGaps = 256;

// Bits that are set; counting them all would be a call.
inline bool more_than_three(std::uint32_t bits) {
  for (unsigned i = 0; i < 3; ++i)
    bits &= bits - 1;
  return bits != 0;
}

// The period of events that come at a steady rate; 0 if most do not.
inline std::uint64_t steady_period(std::vector<std::uint64_t> &gaps) {
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

template <Way kWay> void EncoderFor<kWay>::reset() {
  Core::reset();
  kindreds_.clear();
  std::fill(kindred_by_hash_.begin(), kindred_by_hash_.end(), 0);
  family_by_plan_.clear();
  kindred_of_event_.clear();
  next_event_ = 0;
  paddings_.clear();
  paddings_end_.clear();
  processes_.clear();
  threads_seen_.clear();
  first_time_ = INT64_MAX, last_time_ = INT64_MIN;
}

template <Way kWay>
[[gnu::always_inline]] inline std::uint32_t EncoderFor<kWay>::kindred_of(const EventView &event,
                                                                         HeaderClass c) {
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
  return add_kindred(event, c, id, slot);
}

template <Way kWay>
std::uint32_t EncoderFor<kWay>::add_kindred(const EventView &event, HeaderClass c, const Identity &id,
                                            std::size_t slot) {
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

template <Way kWay>
std::uint32_t EncoderFor<kWay>::type_of(std::uint32_t index, HeaderClass c, unsigned fields, bool tail) {
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
  std::string name = family_name(kindred, plan);
  const auto same = family_by_plan_.find(name);
  const std::uint32_t family = same != family_by_plan_.end() ? same->second : add_family(std::move(plan));
  family_by_plan_.emplace(std::move(name), family);
  const std::uint32_t type = add_type(kindred.identity, c, family, header_shape(c).time ? kindred.period : 0);
  kindred.types.emplace(variant, type);
  const std::uint8_t lead = families_[family].plan.lead;
  if (lead < families_[family].numbers) {
    const FieldPlace &place = families_[family].places[lead];
    kindred.lead_family = family;
    kindred.lead_at = header_shape(c).size + place.at;
    kindred.lead_mask = place.mask;
  }
  return type;
}

// Of the event at `at`, which is the next to be coded.
template <Way kWay> void EncoderFor<kWay>::look_ahead(Bytes events, std::size_t at) const {
  if (next_event_ == kindred_of_event_.size()) return;
  const std::uint32_t kindred = kindred_of_event_[next_event_];
  if (kindred == kMaxTypes) return;
  const Kindred &k = kindreds_[kindred];
  if (k.lead_at == 0 || at + k.lead_at + 8 > events.size()) return;
  families_[k.lead_family].history.prefetch(load<std::uint64_t>(events.data() + at + k.lead_at) &
                                            k.lead_mask);
}

// Of the event that ends at `end`, unless there are `most` by now.
template <Way kWay> void EncoderFor<kWay>::note_padding(Bytes events, std::size_t end, std::size_t most) {
  const std::size_t next = align8(end);
  if (next == end || next > events.size() || paddings_.size() >= most) return;
  const std::uint64_t mask = ~std::uint64_t{0} << (8 * (end & 7));
  const std::uint64_t bytes = load<std::uint64_t>(events.data() + (next - 8)) & mask;
  if (bytes != 0) paddings_.push_back({static_cast<std::uint32_t>(next - 8), mask, bytes});
}

template <Way kWay> void EncoderFor<kWay>::learn(std::span<const BufferEvents> buffers) {
  for (const BufferEvents &buffer : buffers) {
    const std::size_t before = paddings_.size();
    for_each_event(buffer.events, [this, &buffer, before](const EventView &event, std::int64_t time,
                                                          std::uint32_t at) {
      base::read_ahead(buffer.events, at, at + event.size());
      note_padding(buffer.events, at + event.size(), before + RecycledMemory::kSample);
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
      if (kindred.known) return;
      // Samples from all over the segment: every power-of-two-th event.
      const bool spread = !more_than_three(++kindred.samples) && kindred.sample_payloads.size() < kSamples;
      if (!spread && kindred.first.size() == kFirst) return;
      const Bytes payload = event.has_items() ? event.payload() : event.bytes().subspan(header_shape(c).size);
      if (spread) kindred.sample_payloads.push_back(payload);
      if (kindred.first.size() == kFirst) return;
      Sample sample{payload, kindred_of_event_.size(), kUnknownId, kUnknownId};
      if (header_shape(c).ids) {
        sample.thread = load<std::uint32_t>(event.bytes().data() + kThreadAt);
        sample.process = load<std::uint32_t>(event.bytes().data() + kProcessAt);
      }
      kindred.first.push_back(sample);
    });
    paddings_end_.push_back(paddings_.size());
  }
  learn_plans();
  for (Kindred &kindred : kindreds_) {
    if ((kindred.identity.words == 5) && (kindred.identity.word[0] >> 32 & format::kEventFlagExtended) != 0) {
      PlanField items;
      items.kind = Kind::items;
      items.first = Predictor::lookup, items.second = Predictor::previous;
      items.text = kTextItems;
      items.name = "items";
      if (kindred.plan.fields.size() < kMaxFields - 1) put_first(kindred.plan, items);
    }
    kindred.start = split_start(kindred.plan.fields);
    kindred.period = steady_period(kindred.gaps);
  }
}

// Kinds of one provider that look alike are learnt as one: what one of them began, another may end.
template <Way kWay> void EncoderFor<kWay>::learn_plans() {
  struct Group {
    std::vector<std::uint32_t> kinds;
    std::uint64_t events = 0;
  };
  std::map<std::string, Group> by_name;
  for (std::uint32_t k = 0; k < kindreds_.size(); ++k) {
    if (kindreds_[k].known) continue;
    kindreds_[k].plan = learned_plan(kindreds_[k].sample_payloads);
    Group &group = by_name[family_name(kindreds_[k], kindreds_[k].plan)];
    group.kinds.push_back(k);
    group.events += kindreds_[k].samples;
  }
  // Those with the most events: learning takes up to a millisecond each.
  std::vector<const Group *> groups;
  for (const auto &[name, group] : by_name)
    groups.push_back(&group);
  std::ranges::stable_sort(groups, std::ranges::greater{}, &Group::events);
  if (groups.size() > kLearned) groups.resize(kLearned);
  std::vector<Sample> samples;
  for (const Group *const group : groups) {
    samples.clear();
    for (const std::uint32_t k : group->kinds)
      samples.insert(samples.end(), kindreds_[k].first.begin(), kindreds_[k].first.end());
    std::ranges::sort(samples, {}, &Sample::order);
    Plan plan = kindreds_[group->kinds.front()].plan;
    learn_relations(plan, std::span(samples).first(std::min<std::size_t>(samples.size(), kFirst)));
    for (const std::uint32_t k : group->kinds)
      kindreds_[k].plan = plan;
  }
}

// What has the same name shares a family. Plans that were learnt say less of what fields mean than those of
// tables.
template <Way kWay> std::string EncoderFor<kWay>::family_name(const Kindred &kindred, const Plan &plan) {
  std::vector<std::uint8_t> key;
  write_plan(key, plan);
  std::string name(key.begin(), key.end());
  // The provider or class; of a hook, which names neither, all that it has.
  const Identity &id = kindred.identity;
  if (!kindred.known)
    name.append(reinterpret_cast<const char *>(id.word.data() + (id.words == 1 ? 0 : 1)), 16);
  return name;
}

template <Way kWay>
std::size_t EncoderFor<kWay>::encode_events(Bytes events, std::uint16_t processor, Bytes before) {
  start_buffer(processor);
  std::size_t done = 0;
  bool full = false;
  Split split;
  const std::uint8_t *const last_word = events.size() < 8 ? nullptr : events.data() + (events.size() - 8);
  for_each_event(events, [&](const EventView &event, std::int64_t, std::uint32_t at) {
    const std::uint32_t kindred = kindred_of_event_[next_event_++];
    if (full) return;
    const std::size_t end = at + event.size();
    look_ahead(events, align8(end));
    base::read_ahead(events, at, end);
    base::read_ahead(before, at, end);
    const HeaderClass c = header_class(event.type());
    const HeaderShape &shape = header_shape(c);
    const Bytes payload = event.bytes().subspan(shape.size);
    std::uint32_t index = kMaxTypes;
    if (kindred != kMaxTypes) {
      const Kindred &k = kindreds_[kindred];
      if (k.start.all && k.start.end <= payload.size())
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
    std::uint64_t *const values = current_;
    unsigned i = 0;
    // Eight bytes whatever the width, where there are so many: for all numbers in front at once.
    if (family.numbers <= split.started && payload.data() + family.after_numbers <= last_word) {
      for (; i < family.numbers; ++i)
        values[i] = load<std::uint64_t>(payload.data() + places[i].at) & places[i].mask;
    }
    for (; i < split.fields; ++i) {
      const FieldPlace &place = places[i];
      const std::uint8_t *const p = payload.data() + (i < split.started ? place.at : split.at[i]);
      if (place.kind != Kind::number)
        content_[i] = Bytes(p, i < split.started ? place.width : split.length[i]);
      else if (p <= last_word)
        values[i] = load<std::uint64_t>(p) & place.mask;
      else
        values[i] = load_width(p, place.width);
    }
    if (split.end < payload.size()) content_[split.fields] = payload.subspan(split.end);
    code_type(index);
    Pattern pattern;
    // The padding after the event, as far as the buffer has it.
    const std::size_t next = std::min<std::size_t>(align8(end), events.size());
    if (next > end) {
      const std::uint64_t old = next <= before.size() ? load<std::uint64_t>(before.data() + (next - 8)) : 0;
      if ((load<std::uint64_t>(events.data() + (next - 8)) ^ old) >> (64 - 8 * (next - end)) != 0) {
        pattern.put(kBitPadding, true);
      }
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
    if (pattern.get(kBitPadding)) {
      hint_ = {};
      for (std::size_t n = end; n < next; ++n)
        code_byte(kStreamPadding, events[n]);
    }
    done = next;
  });
  end_buffer();
  return done;
}

template <Way kWay> void EncoderFor<kWay>::write_table(std::vector<std::uint8_t> &out) const {
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

} // namespace etwrelog::etlz
