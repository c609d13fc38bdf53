#include "stages/encode/etlz_model.hpp"

#include <algorithm>

namespace etwrelog::etlz {
namespace {

using P = Predictor;

constexpr HeaderShape kShapes[] = {
    {0x08, 0, false, false, false, 0, false},    // bare: messages and what is unknown
    {0x20, 4, true, true, true, 0x18, false},    // system
    {0x18, 4, true, true, false, 0, false},      // compact
    {0x10, 4, false, true, false, 0, false},     // perfinfo
    {0x30, 0, true, true, true, 0x28, false},    // classic
    {0x50, 0, true, true, true, 0x38, true},     // event
};
constexpr std::size_t kThreadAt = 0x08, kProcessAt = 0x0C;

constexpr std::uint64_t mask_of(unsigned width) {
  return width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (width * 8)) - 1;
}

std::size_t time_at(HeaderClass c) { return c == HeaderClass::perfinfo ? 0x08 : 0x10; }

// Streams of one field.
std::uint32_t stream_count(const PlanField &f) {
  if (!f.is_number()) return 1;
  return f.residual == Residual::planes ? f.width : f.residual == Residual::address ? 4u : 1u;
}

} // namespace

HeaderClass header_class(format::HeaderType type) {
  using H = format::HeaderType;
  switch (type) {
  case H::system32:
  case H::system64: return HeaderClass::system;
  case H::compact32:
  case H::compact64: return HeaderClass::compact;
  case H::perfinfo32:
  case H::perfinfo64: return HeaderClass::perfinfo;
  case H::full32:
  case H::full64:
  case H::instance32: // the instance part counts as payload
  case H::instance64: return HeaderClass::classic;
  case H::event32:
  case H::event64: return HeaderClass::event;
  default: return HeaderClass::bare;
  }
}

const HeaderShape &header_shape(HeaderClass c) { return kShapes[static_cast<std::size_t>(c)]; }

Identity identity_of(const EventView &event, HeaderClass c) {
  const std::uint8_t *const at = event.bytes().data();
  Identity id;
  const unsigned size_shift = header_shape(c).size_at * 8u;
  id.word[0] = load<std::uint64_t>(at) & ~(std::uint64_t{0xFFFF} << size_shift);
  if (c == HeaderClass::classic || c == HeaderClass::event) {
    id.word[1] = load<std::uint64_t>(at + 0x18);
    id.word[2] = load<std::uint64_t>(at + 0x20);
    id.words = 3;
  }
  if (c == HeaderClass::event) {
    id.word[3] = load<std::uint64_t>(at + 0x28);
    id.word[4] = load<std::uint64_t>(at + 0x30);
    id.words = 5;
  }
  return id;
}

template <bool kDecode> ModelCore<kDecode>::ModelCore() : next_type_(1u << 16, 0), next_type_short_(1u << 16, 0) {
  streams_.resize(kFixedStreams);
  static constexpr std::uint8_t kZeroGuid[16] = {};
  for (std::size_t c = 0; c < static_cast<std::size_t>(ObjectClass::count_); ++c) {
    objects_.emplace_back(c == static_cast<std::size_t>(ObjectClass::guid) ? Bytes(kZeroGuid) : Bytes(kZeroGuid, 0));
  }
}

template <bool kDecode> std::uint32_t ModelCore<kDecode>::add_family(Plan plan) {
  Family family;
  family.plan = std::move(plan);
  if (family.plan.order.size() != family.plan.fields.size()) family.plan.finish();
  family.history.start(static_cast<unsigned>(family.plan.fields.size()), family.plan.lead);
  unsigned bits = 12; // padding and header take up to 10
  family.stream = static_cast<std::uint32_t>(streams_.size());
  std::uint32_t next = family.stream;
  for (std::size_t i = 0; i < family.plan.fields.size(); ++i) {
    const PlanField &f = family.plan.fields[i];
    family.stack = family.stack || (f.is_number() && f.residual == Residual::recent_event);
    bits += (f.first != P::none ? 1u : 0u) + (f.second != P::none ? 1u : 0u);
    family.field_stream[i] = next;
    next += stream_count(f);
  }
  streams_.resize(next);
  family.pattern_words = (bits + 63) / 64;
  families_.push_back(std::move(family));
  return static_cast<std::uint32_t>(families_.size() - 1);
}

template <bool kDecode>
std::uint32_t ModelCore<kDecode>::add_type(const Identity &identity, HeaderClass c, std::uint32_t family) {
  Type type;
  type.identity = identity;
  type.header_class = c;
  type.family = family;
  type.stream = static_cast<std::uint32_t>(streams_.size());
  streams_.resize(streams_.size() + 2);
  types_.push_back(std::move(type));
  return static_cast<std::uint32_t>(types_.size() - 1);
}

// --- Values --------------------------------------------------------------------------------------------------

template <bool kDecode> void ModelCore<kDecode>::code_planes(std::uint32_t stream, unsigned width, std::uint64_t &value) {
  if constexpr (kDecode) {
    value = 0;
    for (unsigned i = 0; i < width; ++i) value |= std::uint64_t{streams_[stream + i].get()} << (8 * i);
  } else {
    for (unsigned i = 0; i < width; ++i) streams_[stream + i].put(static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

template <bool kDecode> void ModelCore<kDecode>::code_unsigned(std::uint32_t stream, std::uint64_t &value) {
  if constexpr (kDecode) {
    const unsigned symbol = streams_[stream].get();
    value = unsigned_token_base(symbol) + bits_.get(unsigned_token_raw_bits(symbol));
  } else {
    const Token t = unsigned_token(value);
    streams_[stream].put(t.symbol);
    bits_.put(t.raw, t.raw_bits);
  }
}

template <bool kDecode> void ModelCore<kDecode>::code_signed(std::uint32_t stream, std::uint64_t &difference) {
  if constexpr (kDecode) {
    const unsigned symbol = streams_[stream].get();
    difference = signed_token_value(symbol, bits_.get(signed_token_raw_bits(symbol)));
  } else {
    const Token t = signed_token(difference);
    streams_[stream].put(t.symbol);
    bits_.put(t.raw, t.raw_bits);
  }
}

template <bool kDecode>
inline std::uint64_t ModelCore<kDecode>::predict(Predictor p, std::uint8_t arg, unsigned field) const {
  switch (p) {
  case P::previous: return previous_row_[field];
  case P::match: return match_row_[field];
  case P::lookup: return lookup_row_[field];
  case P::step: return previous_row_[field] + lookup_row_[field] - before_lookup_row_[field];
  case P::field: return current_[arg] + previous_row_[field] - previous_row_[arg];
  case P::slot: return slots_[arg];
  case P::thread: return thread_->member[arg];
  case P::chain: return previous_row_[field] + previous_row_[arg];
  case P::event: return by_event_->stack;
  case P::owner: return by_owner_->stack;
  case P::now: return time_;
  default: return 0;
  }
}

template <bool kDecode>
void ModelCore<kDecode>::code_number(const PlanField &f, unsigned index, const Family &family, Pattern &pattern) {
  const std::uint64_t mask = mask_of(f.width);
  std::uint64_t &value = current_[index];
  bool open = true;
  for (const auto &[predictor, arg] : {std::pair{f.first, f.first_arg}, {f.second, f.second_arg}}) {
    if (predictor == P::none || !open) break;
    const std::uint64_t guess = predict(predictor, arg, index) & mask;
    if constexpr (kDecode) {
      open = pattern.get();
      if (!open) value = guess;
    } else {
      open = value != guess;
      pattern.put(open);
    }
  }
  if (open) {
    const std::uint32_t stream = family.field_stream[index];
    if (f.residual == Residual::planes) {
      code_planes(stream, f.width, value);
    } else if (f.residual == Residual::address) {
      code_address(stream, value);
      value &= mask;
    } else if (f.residual == Residual::recent_event) {
      code_recent(stream, value);
    } else {
      const std::uint64_t base = predict(f.base, f.base_arg, index);
      // Differences of narrow fields wrap at their own width.
      const unsigned shift = 64 - 8 * f.width;
      std::uint64_t difference = value - base;
      if (f.residual == Residual::signed_token) {
        if constexpr (!kDecode)
          difference = static_cast<std::uint64_t>(static_cast<std::int64_t>(difference << shift) >> shift);
        code_signed(stream, difference);
      } else {
        difference &= mask;
        code_unsigned(stream, difference);
      }
      if constexpr (kDecode) value = (base + difference) & mask;
    }
  }
  if (f.slot != 0) {
    if ((f.slot & kMemberIs) != 0) thread_->member[f.slot & kSlotMask] = value;
    else slots_[f.slot & kSlotMask] = value;
    if ((f.slot & kThreadIs) != 0) thread_ = &threads_.of(value);
  }
}

// Page number 0xFFFF: a page follows that is new or has no number.
template <bool kDecode> void ModelCore<kDecode>::code_address(std::uint32_t stream, std::uint64_t &value) {
  std::uint64_t page = value >> 16, number = pages_.size(), offset = value & 0xFFFF;
  if constexpr (!kDecode) {
    number = pages_.find(page);
    if (number == pages_.size()) number = 0xFFFF;
  }
  code_planes(stream, 2, number);
  code_planes(stream + 2, 2, offset);
  if (number == 0xFFFF) {
    code_planes(kStreamPage, 6, page);
    pages_.add(page, !kDecode);
  } else if constexpr (kDecode) {
    if (number >= pages_.size()) {
      failed_ = true;
      return;
    }
    page = pages_[static_cast<std::uint32_t>(number)];
  }
  if constexpr (kDecode) value = page << 16 | offset;
}

// 0: none of the recent events has this time; its difference to now follows.
template <bool kDecode> void ModelCore<kDecode>::code_recent(std::uint32_t stream, std::uint64_t &value) {
  const std::size_t known = std::min(processor_->events, Processor::kRecent);
  std::uint64_t ago = 0;
  if constexpr (!kDecode) {
    for (std::size_t n = 1; n <= known && ago == 0; ++n)
      if (processor_->ago(n).time == value) ago = n;
  }
  code_unsigned(stream, ago);
  if (ago == 0) {
    std::uint64_t difference = value - time_;
    code_signed(stream, difference);
    if constexpr (kDecode) value = time_ + difference;
    no_event_ = {};
    event_ = &no_event_;
  } else {
    if constexpr (kDecode) {
      if (ago > known) {
        failed_ = true;
        ago = 1;
      }
    }
    event_ = &processor_->ago(ago);
    if constexpr (kDecode) value = event_->time;
    thread_ = &threads_.of(event_->thread);
  }
  by_event_ = &stack_contexts_[mix(event_->kind ^ mix(event_->address ^ mix(event_->stack + 1))) & (stack_contexts_.size() - 1)];
  by_owner_ = &stack_contexts_[mix(event_->kind ^ mix(event_->thread + 77 + (event_->stack != 0 ? 1u << 30 : 0))) &
                               (stack_contexts_.size() - 1)];
}

// --- Objects -------------------------------------------------------------------------------------------------

template <bool kDecode> Bytes ModelCore<kDecode>::code_text(std::uint32_t stream, Bytes content) {
  if constexpr (kDecode) {
    const Bytes rest = streams_[stream].rest();
    const void *zero = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (zero == nullptr) {
      failed_ = true;
      return {};
    }
    const std::size_t length = static_cast<std::size_t>(static_cast<const std::uint8_t *>(zero) - rest.data());
    static_cast<void>(streams_[stream].get(length + 1));
    return rest.first(length);
  } else {
    streams_[stream].put(content);
    streams_[stream].put(0);
    return content;
  }
}

// UTF-16 whose units are all below 256 goes as text; anything else behind a byte 1 as units in a stream of its own.
template <bool kDecode> Bytes ModelCore<kDecode>::code_wide(std::uint32_t stream, Bytes content) {
  if constexpr (kDecode) {
    const Bytes rest = streams_[stream].rest();
    if (rest.empty()) {
      failed_ = true;
      return {};
    }
    if (rest[0] == 1) {
      static_cast<void>(streams_[stream].get());
      std::uint64_t units = 0;
      code_unsigned(kStreamLength, units);
      if (units > 0x7FFF) {
        failed_ = true;
        return {};
      }
      const Bytes wide = streams_[kStreamWide].get(units * 2);
      failed_ = failed_ || wide.size() != units * 2;
      return wide;
    }
    const Bytes narrow = code_text(stream, {});
    std::uint8_t *const out = arena_.take(narrow.size() * 2);
    if (out == nullptr) {
      failed_ = true;
      return {};
    }
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      out[2 * i] = narrow[i];
      out[2 * i + 1] = 0;
    }
    return {out, narrow.size() * 2};
  } else {
    bool plain = content.empty() || content[0] != 1 || content[1] != 0;
    std::uint8_t high = 0;
    for (std::size_t i = 1; i < content.size(); i += 2) high |= content[i];
    plain = plain && high == 0;
    if (plain) {
      std::uint8_t narrow[0x8000];
      const std::size_t n = content.size() / 2;
      for (std::size_t i = 0; i < n; ++i) narrow[i] = content[2 * i];
      narrow[n] = 0;
      object_bytes_ += content.size();
      streams_[stream].put(Bytes(narrow, n + 1));
    } else {
      streams_[stream].put(1);
      std::uint64_t units = content.size() / 2;
      code_unsigned(kStreamLength, units);
      streams_[kStreamWide].put(content);
    }
    return content;
  }
}

template <bool kDecode> Bytes ModelCore<kDecode>::code_stack(unsigned width, Bytes content) {
  std::uint64_t count = content.size() / width;
  std::uint32_t node = 0;
  std::uint64_t fresh = 0, back = 0;
  if constexpr (!kDecode) {
    std::uint64_t left = count;
    while (left > 0) {
      const std::uint32_t number = stacks_.find_frame(load_width(content.data() + (left - 1) * width, width));
      const std::uint32_t child = number == stacks_.frames() ? 0 : stacks_.child(node, number);
      if (child == 0) break;
      node = child;
      --left;
    }
    fresh = left;
    back = node == 0 ? 0 : stacks_.size() - node;
  }
  code_unsigned(kStreamStackNew, fresh);
  code_unsigned(kStreamStackNode, back);
  std::uint8_t *out = nullptr;
  if constexpr (kDecode) {
    if (back >= stacks_.size() || fresh > 0xFFFF / width) {
      failed_ = true;
      return {};
    }
    node = back == 0 ? 0 : static_cast<std::uint32_t>(stacks_.size() - back);
    count = fresh + stacks_.depth(node);
    if (count > 0xFFFF / width) {
      failed_ = true;
      return {};
    }
    out = arena_.take(count * width);
    if (out == nullptr) {
      failed_ = true;
      return {};
    }
    std::uint32_t up = node;
    for (std::uint64_t i = fresh; i < count; ++i, up = stacks_.parent(up))
      store_width(out + i * width, width, stacks_.frame(up));
  }
  for (std::uint64_t i = fresh; i-- > 0;) {
    // 0 new, 1 the frame that last followed, 2 the address that the event is about, else how far back.
    const std::uint32_t outer = stacks_.frame_number(node);
    std::uint64_t value = 0, symbol = 0;
    std::uint32_t number = 0;
    const std::uint64_t about = i == 0 && event_ != nullptr ? event_->address : 0;
    if constexpr (!kDecode) {
      value = load_width(content.data() + i * width, width);
      number = stacks_.find_frame(value);
      const bool known = number != stacks_.frames();
      if (known && number == stacks_.follower(outer)) symbol = 1;
      else if (about != 0 && value == about) symbol = 2;
      else if (known) symbol = std::uint64_t{stacks_.frames() - number} + 2;
    }
    code_unsigned(kStreamFrame, symbol);
    if (symbol == 0) {
      code_address(kStreamFrameAddress, value);
      number = stacks_.add_frame(value, true);
    } else if (symbol == 2) {
      if constexpr (kDecode) {
        value = about;
        number = stacks_.find_frame(value);
      }
      if (number == stacks_.frames()) number = stacks_.add_frame(value, true);
    } else if constexpr (kDecode) {
      number = symbol == 1 ? stacks_.follower(outer)
                           : static_cast<std::uint32_t>(stacks_.frames() + 2 - symbol);
      if (symbol > stacks_.frames() + 1 || number == 0) {
        failed_ = true;
        return {};
      }
      value = stacks_.frame_value(number);
    }
    if constexpr (kDecode) store_width(out + i * width, width, value);
    stacks_.follow(outer, number);
    node = stacks_.add_node(node, number, !kDecode);
  }
  if constexpr (kDecode) return {out, count * width};
  object_bytes_ += content.size();
  return content;
}

template <bool kDecode> Bytes ModelCore<kDecode>::code_map(Bytes content) {
  std::uint64_t count = content.size() / 8;
  code_unsigned(kStreamMapCount, count);
  std::uint8_t *out = nullptr;
  if constexpr (kDecode) {
    out = count > 0xFFFF / 8 ? nullptr : arena_.take(count * 8);
    if (out == nullptr) {
      failed_ = true;
      return {};
    }
  }
  std::uint32_t from = 0, to = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t d_from = 0, d_to = 0;
    if constexpr (!kDecode) {
      const auto next_from = load<std::uint32_t>(content.data() + 4 * i);
      const auto next_to = load<std::uint32_t>(content.data() + 4 * (count + i));
      d_from = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(next_from - from)));
      d_to = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(next_to - to)));
      from = next_from, to = next_to;
    }
    code_signed(kStreamMapFrom, d_from);
    code_signed(kStreamMapTo, d_to);
    if constexpr (kDecode) {
      from += static_cast<std::uint32_t>(d_from);
      to += static_cast<std::uint32_t>(d_to);
      store(out + 4 * i, from);
      store(out + 4 * (count + i), to);
    }
  }
  if constexpr (kDecode) return {out, count * 8};
  object_bytes_ += content.size();
  return content;
}

template <bool kDecode> Bytes ModelCore<kDecode>::code_content(ObjectClass c, const PlanField *f, Bytes content) {
  const std::uint32_t text = kStreamText + (f != nullptr ? f->text : 0u);
  switch (c) {
  case ObjectClass::guid:
    if constexpr (kDecode) {
      const Bytes guid = streams_[kStreamGuid].get(std::size_t{16});
      failed_ = failed_ || guid.size() != 16;
      return guid;
    } else {
      streams_[kStreamGuid].put(content);
      return content;
    }
  case ObjectClass::astr: return code_text(text, content);
  case ObjectClass::wstr: return code_wide(text, content);
  case ObjectClass::stack64: return code_stack(8, content);
  case ObjectClass::stack32: return code_stack(4, content);
  case ObjectClass::map: return code_map(content);
  default: {
    std::uint64_t length = content.size();
    code_unsigned(kStreamLength, length);
    if constexpr (kDecode) {
      if (length > 0xFFFF) {
        failed_ = true;
        return {};
      }
      const Bytes bytes = streams_[text].get(length);
      failed_ = failed_ || bytes.size() != length;
      return bytes;
    } else {
      streams_[text].put(content);
      return content;
    }
  }
  }
}

// 0 announces a new object, anything else the difference to a near number.
template <bool kDecode>
void ModelCore<kDecode>::code_object_number(std::uint32_t stream, ObjectClass c, const PlanField *f, std::uint64_t near,
                                        std::uint64_t &id, Bytes content) {
  Objects &objects = objects_[static_cast<std::size_t>(c)];
  std::uint64_t symbol = 0;
  if constexpr (kDecode) {
    code_unsigned(stream, symbol);
    if (symbol == 0) {
      const Bytes fresh = code_content(c, f, {});
      id = objects.size();
      objects.add_unhashed(fresh);
    } else {
      const std::uint64_t z = symbol - 1;
      id = near + ((z >> 1) ^ (0 - (z & 1)));
      if (id >= objects.size()) {
        failed_ = true;
        id = 0;
      }
    }
  } else {
    const std::size_t before = objects.size();
    id = objects.intern(content);
    if (id == before) {
      code_unsigned(stream, symbol);
      static_cast<void>(code_content(c, f, content));
    } else {
      const std::uint64_t d = id - near;
      symbol = ((d << 1) ^ (0 - (d >> 63))) + 1;
      code_unsigned(stream, symbol);
    }
  }
}

template <bool kDecode>
void ModelCore<kDecode>::code_object(const PlanField &f, unsigned index, const Family &family, Pattern &pattern) {
  const ObjectClass c = f.object_class();
  Objects &objects = objects_[static_cast<std::size_t>(c)];
  std::uint64_t &value = current_[index];
  const Bytes content = content_[index];
  bool open = true;
  for (const auto &[predictor, arg] : {std::pair{f.first, f.first_arg}, {f.second, f.second_arg}}) {
    if (predictor == P::none || !open) break;
    const std::uint64_t guess = predict(predictor, arg, index);
    if constexpr (kDecode) {
      open = pattern.get();
      if (!open) value = guess;
    } else {
      const Bytes known = objects[guess];
      open = known.size() != content.size() || std::memcmp(known.data(), content.data(), content.size()) != 0;
      pattern.put(open);
      if (!open) value = guess;
    }
  }
  if (open) code_object_number(family.field_stream[index], c, &f, previous_row_[index], value, content);
  if (f.first == P::event) {
    by_event_->stack = by_owner_->stack = value;
    event_->stack = value + 1;
  }
  if constexpr (kDecode) {
    content_[index] = objects[value];
    if (f.kind == Kind::fixed && content_[index].size() != f.width) failed_ = true;
  }
}

template <bool kDecode> void ModelCore<kDecode>::code_fields(Family &family, Pattern &pattern) {
  const Plan &plan = family.plan;
  const History &history = family.history;
  previous_row_ = history.previous();
  const bool matched = history.match() < history.size();
  match_row_ = matched ? history.row(history.match()) : history.zero();
  lookup_row_ = matched ? match_row_ : previous_row_;
  before_lookup_row_ = matched && history.match() > 0 ? history.row(history.match() - 1) : history.zero();
  for (const std::uint8_t index : plan.order) {
    const PlanField &f = plan.fields[index];
    if (f.is_number()) code_number(f, index, family, pattern);
    else code_object(f, index, family, pattern);
    if (index == plan.lead && (!matched || match_row_[index] != current_[index])) {
      const std::uint32_t found = history.find(current_[index]);
      const bool has = found < history.size();
      lookup_row_ = has ? history.row(found) : previous_row_;
      before_lookup_row_ = !has ? lookup_row_ : found > 0 ? history.row(found - 1) : history.zero();
    }
  }
  family.history.add(current_.data(), history_values_);
}

template <bool kDecode>
void ModelCore<kDecode>::code_pattern_symbol(Type &type, const Family &family, Pattern &pattern) {
  Stream &out = streams_[type.stream];
  if constexpr (kDecode) {
    const unsigned symbol = out.get();
    if (symbol == PatternTable::kNew) {
      pattern.word = {};
      for (unsigned i = 0; i < family.pattern_words; ++i) {
        const Bytes b = streams_[kStreamMasks].get(std::size_t{8});
        if (b.size() == 8) pattern.word[i] = load<std::uint64_t>(b.data());
        else failed_ = true;
      }
      type.patterns.add(pattern.word);
    } else if (symbol < type.patterns.size()) {
      pattern.word = type.patterns[symbol];
    } else {
      failed_ = true;
    }
    pattern.bits = 0;
  } else {
    const unsigned symbol = type.patterns.find(pattern);
    out.put(static_cast<std::uint8_t>(symbol));
    if (symbol == PatternTable::kNew) {
      for (unsigned i = 0; i < family.pattern_words; ++i) {
        std::uint8_t b[8];
        store(b, pattern.word[i]);
        streams_[kStreamMasks].put(Bytes(b));
      }
      type.patterns.add(pattern.word);
    } else {
      type.patterns.hit(symbol);
    }
  }
}

template <bool kDecode> bool ModelCore<kDecode>::code_record(std::uint32_t index, std::uint64_t *values) {
  Type &type = types_[index];
  Family &family = families_[type.family];
  const std::size_t n = family.plan.fields.size();
  thread_ = &threads_.of(0);
  if (processor_ == nullptr) start_buffer(0);
  Pattern pattern;
  if constexpr (kDecode) {
    code_pattern_symbol(type, family, pattern);
    code_fields(family, pattern);
    std::copy_n(current_.begin(), n, values);
  } else {
    std::copy_n(values, n, current_.begin());
    code_fields(family, pattern);
    code_pattern_symbol(type, family, pattern);
  }
  return !failed_;
}

template <bool kDecode> void ModelCore<kDecode>::start_buffer(std::uint16_t processor) {
  if (processor >= processors_.size()) processors_.resize(processor + 1u);
  if (!processors_[processor]) processors_[processor] = std::make_unique<Processor>();
  processor_ = processors_[processor].get();
  time_ = processor_->time;
  slot(Slot::thread_id) = processor_->thread_id;
  slot(Slot::process_id) = processor_->process_id;
  slot(Slot::running) = processor_->running;
}

template <bool kDecode> void ModelCore<kDecode>::end_buffer() {
  processor_->time = time_;
  processor_->thread_id = slot(Slot::thread_id);
  processor_->process_id = slot(Slot::process_id);
  processor_->running = slot(Slot::running);
}

template <bool kDecode> void ModelCore<kDecode>::end_event(const Type &type, const Family &family) {
  if (family.stack) return;
  processor_->add({time_, slot(Slot::running), slot(Slot::address), type.stream, 0});
  slot(Slot::address) = 0;
}

// --- Headers -------------------------------------------------------------------------------------------------

// 0: as after the last three types before, 1: as after the last one, 255: a number that needs two bytes.
template <bool kDecode> void ModelCore<kDecode>::code_type(std::uint32_t &type) {
  std::uint16_t &guess = next_type_[type_context_];
  std::uint16_t &second = next_type_short_[type_context_short_];
  if constexpr (kDecode) {
    const std::uint8_t symbol = streams_[kStreamTypes].get();
    if (symbol == 255) {
      type = streams_[kStreamTypesNew].get();
      type |= static_cast<std::uint32_t>(streams_[kStreamTypesNew].get()) << 8;
    } else {
      type = symbol == 0 ? guess : symbol == 1 ? second : symbol - 2u;
    }
    if (type >= types_.size()) {
      failed_ = true;
      type = 0;
    }
  } else {
    if (guess == type) {
      streams_[kStreamTypes].put(0);
    } else if (second == type) {
      streams_[kStreamTypes].put(1);
    } else if (type < 253) {
      streams_[kStreamTypes].put(static_cast<std::uint8_t>(type + 2));
    } else {
      streams_[kStreamTypes].put(255);
      streams_[kStreamTypesNew].put(static_cast<std::uint8_t>(type));
      streams_[kStreamTypesNew].put(static_cast<std::uint8_t>(type >> 8));
    }
  }
  guess = second = static_cast<std::uint16_t>(type);
  type_context_ = (type_context_ * 0x25 + type * 0x1F31 + 1) & 0xFFFF;
  type_context_short_ = type & 0xFFFF;
}

template <bool kDecode> void ModelCore<kDecode>::code_header(Type &type, Pattern &pattern, std::uint8_t *header) {
  const HeaderShape &shape = header_shape(type.header_class);
  auto agree = [&pattern](std::uint64_t &value, std::uint64_t guess) {
    if constexpr (kDecode) {
      const bool miss = pattern.get();
      if (!miss) value = guess;
      return !miss;
    } else {
      pattern.put(value != guess);
      return value == guess;
    }
  };
  thread_ = nullptr;
  if (shape.ids) {
    std::uint64_t &last_thread = slots_[static_cast<std::size_t>(Slot::thread_id)];
    std::uint64_t &last_process = slots_[static_cast<std::size_t>(Slot::process_id)];
    std::uint64_t id = load<std::uint32_t>(header + kThreadAt);
    if (!agree(id, last_thread) && !agree(id, type.thread_id)) code_planes(kStreamThreadId, 4, id);
    last_thread = type.thread_id = id;
    if (id != kUnknownId) slot(Slot::running) = id;
    thread_ = &threads_.of(id);
    std::uint64_t process = load<std::uint32_t>(header + kProcessAt);
    std::uint64_t &known = thread_->member[static_cast<std::size_t>(ThreadMember::process_id)];
    if (!agree(process, known) && !agree(process, last_process)) code_planes(kStreamProcessId, 4, process);
    known = last_process = process;
    if constexpr (kDecode) {
      store(header + kThreadAt, static_cast<std::uint32_t>(id));
      store(header + kProcessAt, static_cast<std::uint32_t>(process));
    }
  }
  if (shape.time) {
    const std::size_t at = time_at(type.header_class);
    std::uint64_t difference = load<std::uint64_t>(header + at) - time_;
    code_unsigned(type.stream + 1, difference);
    time_ += difference;
    if constexpr (kDecode) store(header + at, time_);
    if (thread_ != nullptr) thread_->member[static_cast<std::size_t>(ThreadMember::last_time)] = time_;
  }
  if (shape.cpu_time) {
    for (const bool user : {false, true}) {
      std::uint8_t *const at = header + shape.cpu_time_at + (user ? 4 : 0);
      std::uint64_t value = load<std::uint32_t>(at);
      std::uint64_t &known =
          thread_->member[static_cast<std::size_t>(user ? ThreadMember::user_time : ThreadMember::kernel_time)];
      std::uint64_t &last = user ? type.user_time : type.kernel_time;
      if (!agree(value, known) && !agree(value, last)) {
        std::uint64_t difference = value - known;
        code_signed(user ? kStreamUserTime : kStreamKernelTime, difference);
        if constexpr (kDecode) value = (known + difference) & 0xFFFF'FFFF;
      }
      known = last = value;
      if constexpr (kDecode) store(at, static_cast<std::uint32_t>(value));
    }
  }
  if (shape.activity) {
    std::uint8_t *const at = header + format::kEventActivityAt;
    Objects &guids = objects_[static_cast<std::size_t>(ObjectClass::guid)];
    if constexpr (kDecode) {
      std::uint64_t id = type.activity;
      if (pattern.get()) code_object_number(kStreamActivity, ObjectClass::guid, nullptr, type.activity, id, {});
      type.activity = id;
      if (guids[id].size() == 16) std::memcpy(at, guids[id].data(), 16);
    } else {
      const bool miss = std::memcmp(guids[type.activity].data(), at, 16) != 0;
      pattern.put(miss);
      if (miss) {
        std::uint8_t *const kept = arena_.take(16); // `header` does not outlive this event
        std::memcpy(kept, at, 16);
        code_object_number(kStreamActivity, ObjectClass::guid, nullptr, type.activity, type.activity, Bytes(kept, 16));
      }
    }
  }
  if (thread_ == nullptr) thread_ = &threads_.of(slot(Slot::running));
  event_ = &no_event_;
}

template <bool kDecode> std::vector<StreamName> ModelCore<kDecode>::stream_names() const {
  std::vector<StreamName> names(streams_.size());
  static constexpr const char *kFixed[] = {"tables", "buffers", "event types", "event types", "patterns", "raw bits",
                                           "raw bytes", "padding", "XPRESS corrections"};
  for (std::size_t i = 0; i < std::size(kFixed); ++i) names[i] = {"(segment)", kFixed[i]};
  auto range = [&names](std::size_t from, std::size_t to, const char *owner, const char *column) {
    for (; from < to; ++from) names[from] = {owner, column};
  };
  range(kStreamThreadId, kStreamProcessId, "(header)", "ThreadId");
  range(kStreamProcessId, kStreamKernelTime, "(header)", "ProcessId");
  range(kStreamKernelTime, kStreamActivity, "(header)", "KernelTime, UserTime");
  range(kStreamActivity, kStreamGuid, "(header)", "ActivityId");
  range(kStreamGuid, kStreamLength, "(objects)", "GUIDs");
  range(kStreamLength, kStreamWide, "(objects)", "lengths");
  range(kStreamWide, kStreamText, "(objects)", "wide text");
  static constexpr const char *kText[] = {"text: other", "text: paths", "text: types", "text: methods",
                                          "text: signatures", "bytes", "items", "text 7"};
  for (std::size_t i = 0; i < kTextGroups; ++i) names[kStreamText + i] = {"(objects)", kText[i]};
  range(kStreamStackNew, kStreamMapCount, "(objects)", "stacks");
  names[kStreamStackNode].column = "stacks: nodes";
  names[kStreamFrame].column = "stacks: frame numbers";
  range(kStreamFrameAddress, kStreamMapCount, "(objects)", "stacks: new frames");
  range(kStreamMapCount, kFixedStreams, "(objects)", "IL maps");
  for (const Family &family : families_) {
    const std::string owner = family.plan.name.empty() ? "learned" : family.plan.name;
    for (std::size_t i = 0; i < family.plan.fields.size(); ++i) {
      const PlanField &f = family.plan.fields[i];
      range(family.field_stream[i], family.field_stream[i] + stream_count(f), owner.c_str(), f.name);
    }
  }
  for (const Type &type : types_) {
    const std::string &name = families_[type.family].plan.name;
    const std::string owner = name.empty() ? "learned" : name;
    names[type.stream] = {owner, "(pattern)"};
    names[type.stream + 1] = {owner, "(time)"};
  }
  return names;
}

template class ModelCore<false>;
template class ModelCore<true>;

} // namespace etwrelog::etlz
