// How values and the contents of objects are written to the streams and read from them. Included by the two
// files that instantiate the model.
#pragma once

#include "etlz/model/map.hpp"

namespace etwrelog::etlz {

// --- Symbols

template <Way kWay>
[[gnu::always_inline]] inline unsigned ModelCore<kWay>::code_byte(std::uint32_t stream, unsigned byte) {
  if constexpr (kCoupled) {
    if constexpr (kDecode)
      byte = coder_.byte(stream, hint_, 0);
    else
      pending_.push_back({hint_, byte, stream, PendingSymbol::kByte, 0});
    return byte;
  } else if constexpr (kDecode) {
    return streams_[stream].get();
  } else {
    streams_[stream].put(static_cast<std::uint8_t>(byte));
    return byte;
  }
}

template <Way kWay>
[[gnu::always_inline]] inline std::uint64_t ModelCore<kWay>::code_bits(std::uint32_t stream, unsigned symbol,
                                                                       std::uint64_t bits, unsigned count) {
  if constexpr (kCoupled) {
    if (count == 0) return 0;
    if constexpr (kDecode)
      bits = coder_.bits(stream, symbol, hint_, 0, count);
    else
      pending_.push_back(
          {hint_, bits, stream, static_cast<std::uint8_t>(count), static_cast<std::uint8_t>(symbol)});
    return bits;
  } else if constexpr (kDecode) {
    return bits_.get(count);
  } else {
    bits_.put(bits, count);
    return bits;
  }
}

template <Way kWay> Bytes ModelCore<kWay>::code_run(std::uint32_t stream, Bytes given, std::size_t size) {
  if constexpr (kCoupled && kDecode) {
    std::uint8_t *const out = arena_.take(size);
    if (out == nullptr) {
      failed_ = true;
      return {};
    }
    for (std::size_t i = 0; i < size; ++i)
      out[i] = static_cast<std::uint8_t>(code_byte(stream, 0));
    if (overrun()) failed_ = true;
    return {out, size};
  } else if constexpr (kCoupled) {
    for (const std::uint8_t byte : given)
      code_byte(stream, byte);
    object_bytes_ += size;
    return given;
  } else if constexpr (kDecode) {
    const Bytes found = streams_[stream].get(size);
    failed_ = failed_ || found.size() != size;
    return found;
  } else {
    streams_[stream].put(given);
    return given;
  }
}

// A content that was found in memory that is used again.
template <Way kWay> Bytes ModelCore<kWay>::kept(Bytes content) {
  std::uint8_t *const out = arena_.take(content.size());
  if (out == nullptr) {
    failed_ = true;
    return {};
  }
  std::ranges::copy(content, out);
  return {out, content.size()};
}

template <Way kWay> void ModelCore<kWay>::flush() {
  if constexpr (kWay == Way::to_code) {
    for (const PendingSymbol &s : pending_) {
      const double before = counts_costs_ ? coder_.bits_written() : 0;
      if (s.bits == PendingSymbol::kByte)
        static_cast<void>(coder_.byte(s.stream, s.hint, static_cast<unsigned>(s.value)));
      else
        static_cast<void>(coder_.bits(s.stream, s.symbol, s.hint, s.value, s.bits));
      if (!counts_costs_) continue;
      if (s.stream >= costs_.size()) costs_.resize(s.stream + 64u);
      ++costs_[s.stream].first;
      costs_[s.stream].second += coder_.bits_written() - before;
    }
    pending_.clear();
  }
}

template <Way kWay> unsigned ModelCore<kWay>::code_part(unsigned kind) {
  hint_ = {};
  return code_byte(kStreamParts, kind);
}

template <Way kWay> std::uint64_t ModelCore<kWay>::code_part_number(std::uint64_t number) {
  hint_ = {};
  std::uint64_t found = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto rest = number >> shift;
    const unsigned byte =
        code_byte(kStreamParts, static_cast<unsigned>(rest & 0x7F) | (rest >= 0x80 ? 0x80u : 0u));
    found |= std::uint64_t{byte & 0x7Fu} << shift;
    if ((byte & 0x80) == 0) break;
  }
  return found;
}

template <Way kWay>
bool ModelCore<kWay>::code_raw(std::uint32_t stream, Bytes given, std::uint8_t *to, std::size_t size) {
  if constexpr (kCoupled) {
    hint_ = {};
    for (std::size_t i = 0; i < size; ++i) {
      const unsigned byte = code_byte(stream, kDecode ? 0u : given[i]);
      if constexpr (kDecode) {
        to[i] = static_cast<std::uint8_t>(byte);
        if ((i & 63) == 63 && overrun()) return false;
      } else if (pending_.size() >= kMostPending) {
        flush(); // nothing goes before these
      }
    }
    return true;
  } else if constexpr (kDecode) {
    const Bytes b = streams_[stream].get(size);
    if (size != 0 && b.size() == size) std::memcpy(to, b.data(), size);
    return b.size() == size;
  } else {
    streams_[stream].put(given);
    return true;
  }
}

// --- Values

template <Way kWay> inline void ModelCore<kWay>::code_word(std::uint32_t stream, std::uint64_t &word) {
  std::uint64_t found = 0;
  for (unsigned i = 0; i < 64; i += 8)
    found |= std::uint64_t{code_byte(stream, static_cast<unsigned>(word >> i & 0xFF))} << i;
  if constexpr (kDecode) word = found;
}

template <Way kWay>
inline void ModelCore<kWay>::code_planes(std::uint32_t stream, unsigned width, std::uint64_t &value) {
  if constexpr (kDecode) {
    value = 0;
    for (unsigned i = 0; i < width; ++i)
      value |= std::uint64_t{code_byte(stream + i, 0)} << (8 * i);
  } else {
    for (unsigned i = 0; i < width; ++i)
      code_byte(stream + i, static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

template <Way kWay> inline void ModelCore<kWay>::code_unsigned(std::uint32_t stream, std::uint64_t &value) {
  if constexpr (kDecode) {
    const unsigned symbol = code_byte(stream, 0);
    const TokenMeaning &token = kUnsignedTokens[symbol];
    value = token.base + code_bits(stream, symbol, 0, token.raw_bits);
  } else {
    const Token t = unsigned_token(value);
    code_byte(stream, t.symbol);
    code_bits(stream, t.symbol, t.raw, t.raw_bits);
  }
}

template <Way kWay>
inline void ModelCore<kWay>::code_signed(std::uint32_t stream, std::uint64_t &difference) {
  if constexpr (kDecode) {
    const unsigned symbol = code_byte(stream, 0);
    const TokenMeaning &token = kSignedTokens[symbol];
    const std::uint64_t magnitude = token.base + code_bits(stream, symbol, 0, token.raw_bits);
    difference = token.negative ? 0 - magnitude : magnitude;
  } else {
    const Token t = signed_token(difference);
    code_byte(stream, t.symbol);
    code_bits(stream, t.symbol, t.raw, t.raw_bits);
  }
}

// Page number 0xFFFF: a page follows that is new or has no number.
template <Way kWay> void ModelCore<kWay>::code_address(std::uint32_t stream, std::uint64_t &value) {
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
template <Way kWay> void ModelCore<kWay>::code_recent(std::uint32_t stream, std::uint64_t &value) {
  const std::size_t known = std::min(processor_->events, Processor::kRecent);
  std::uint64_t ago = 0;
  if constexpr (!kDecode) {
    for (std::size_t n = 1; n <= known && ago == 0; ++n)
      if (processor_->ago(n).time == value) ago = n;
  }
  code_unsigned(stream, ago);
  if (ago == 0) {
    std::uint64_t difference = value - time_;
    code_signed(kStreamOtherTime, difference);
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
    set_thread(threads_.of(event_->thread));
  }
  by_event_ = &stack_contexts_[mix(event_->kind ^ mix(event_->address ^ mix(event_->stack + 1))) &
                               (kStackContexts - 1)];
  by_owner_ =
      &stack_contexts_[mix(event_->kind ^ mix(event_->thread + 77 + (event_->stack != 0 ? 1u << 30 : 0))) &
                       (kStackContexts - 1)];
  base_[kFromEvent] = &by_event_->stack;
  base_[kFromOwner] = &by_owner_->stack;
}

// --- Objects

template <Way kWay> Bytes ModelCore<kWay>::code_text(std::uint32_t stream, Bytes content) {
  if constexpr (kDecode && kCoupled) {
    return kept(found_text(stream, code_byte(stream, 0)));
  } else if constexpr (kDecode) {
    const Bytes rest = streams_[stream].rest();
    const void *zero = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (zero == nullptr) {
      failed_ = true;
      return {};
    }
    const std::size_t length =
        static_cast<std::size_t>(static_cast<const std::uint8_t *>(zero) - rest.data());
    static_cast<void>(streams_[stream].get(length + 1));
    return rest.first(length);
  } else {
    code_run(stream, content, content.size());
    code_byte(stream, 0);
    return content;
  }
}

template <Way kWay> Bytes ModelCore<kWay>::found_text(std::uint32_t stream, unsigned first) {
  text_.clear();
  for (unsigned byte = first; byte != 0; byte = code_byte(stream, 0)) {
    if (text_.size() == kMostText || ((text_.size() & 63) == 63 && overrun())) {
      failed_ = true;
      return {};
    }
    text_.push_back(static_cast<std::uint8_t>(byte));
  }
  return text_;
}

// UTF-16 whose units are all below 256 goes as text; anything else behind a byte 1 as units in a stream of
// its own.
template <Way kWay> Bytes ModelCore<kWay>::code_wide(std::uint32_t stream, Bytes content) {
  if constexpr (kDecode) {
    unsigned first = 0;
    if constexpr (kCoupled) {
      first = code_byte(stream, 0);
    } else {
      const Bytes rest = streams_[stream].rest();
      if (rest.empty()) {
        failed_ = true;
        return {};
      }
      first = rest[0];
      if (first == 1) static_cast<void>(streams_[stream].get());
    }
    if (first == 1) {
      std::uint64_t units = 0;
      code_unsigned(kStreamLength, units);
      if (units > 0x7FFF) {
        failed_ = true;
        return {};
      }
      return code_run(kStreamWide, {}, units * 2);
    }
    Bytes narrow;
    if constexpr (kCoupled)
      narrow = found_text(stream, first);
    else
      narrow = code_text(stream, {});
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
    for (std::size_t i = 1; i < content.size(); i += 2)
      high |= content[i];
    plain = plain && high == 0;
    if (plain) {
      std::uint8_t narrow[0x8000];
      const std::size_t n = content.size() / 2;
      for (std::size_t i = 0; i < n; ++i)
        narrow[i] = content[2 * i];
      narrow[n] = 0;
      object_bytes_ += content.size();
      if constexpr (kCoupled) {
        for (std::size_t i = 0; i <= n; ++i)
          code_byte(stream, narrow[i]);
      } else {
        code_run(stream, Bytes(narrow, n + 1), n + 1);
      }
    } else {
      code_byte(stream, 1);
      std::uint64_t units = content.size() / 2;
      code_unsigned(kStreamLength, units);
      code_run(kStreamWide, content, content.size());
    }
    return content;
  }
}

template <Way kWay> Bytes ModelCore<kWay>::code_stack(unsigned width, Bytes content) {
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
      if (known && number == stacks_.follower(outer))
        symbol = 1;
      else if (about != 0 && value == about)
        symbol = 2;
      else if (known)
        symbol = std::uint64_t{stacks_.frames() - number} + 2;
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
      number =
          symbol == 1 ? stacks_.follower(outer) : static_cast<std::uint32_t>(stacks_.frames() + 2 - symbol);
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

template <Way kWay> Bytes ModelCore<kWay>::code_content(ObjectClass c, std::uint32_t text, Bytes content) {
  switch (c) {
  case ObjectClass::guid: return code_run(kStreamGuid, content, 16);
  case ObjectClass::astr: return code_text(text, content);
  case ObjectClass::wstr: return code_wide(text, content);
  case ObjectClass::stack64: return code_stack(8, content);
  case ObjectClass::stack32: return code_stack(4, content);
  case ObjectClass::map: return code_map(content);
  default: {
    std::uint64_t length = content.size();
    code_unsigned(kStreamLength, length);
    if (length > 0xFFFF) {
      failed_ = true;
      return {};
    }
    return code_run(text, content, length);
  }
  }
}

// Coupled ways: a new object may cost no more than a fraction of a bit, and is to be paid for in memory.
template <Way kWay> void ModelCore<kWay>::charge_object() {
  if constexpr (kCoupled && kDecode) {
    if (!arena_.charge(kObjectCost)) failed_ = true;
  } else if constexpr (kCoupled) {
    object_bytes_ += kObjectCost;
  }
}

// A number that was decoded: some object's.
template <Way kWay> std::uint64_t ModelCore<kWay>::known_object(const Objects &objects, std::uint64_t id) {
  if (id < objects.size()) return id;
  failed_ = true;
  return 0;
}

// 0 announces a new object, anything else the difference to a near number.
template <Way kWay>
void ModelCore<kWay>::code_object_number(std::uint32_t stream, ObjectClass c, std::uint32_t text,
                                         std::uint64_t near, std::uint64_t &id, Bytes content) {
  Objects &objects = objects_[static_cast<std::size_t>(c)];
  std::uint64_t symbol = 0;
  if constexpr (kDecode) {
    code_unsigned(stream, symbol);
    if (symbol == 0) {
      charge_object();
      id = objects.add_unhashed(code_content(c, text, {}));
    } else {
      const std::uint64_t z = symbol - 1;
      id = known_object(objects, near + ((z >> 1) ^ (0 - (z & 1))));
    }
  } else {
    const std::size_t before = objects.size();
    id = objects.intern(content);
    if (id == before) {
      charge_object();
      code_unsigned(stream, symbol);
      static_cast<void>(code_content(c, text, content));
    } else {
      const std::uint64_t d = id - near;
      symbol = ((d << 1) ^ (0 - (d >> 63))) + 1;
      code_unsigned(stream, symbol);
    }
  }
}

// Of a stack that belongs to an event: behind 0 come the earlier ones at the same place and of the same
// thread, then any other, byte by byte, because some are far more frequent than others.
template <Way kWay>
void ModelCore<kWay>::code_stack_number(std::uint32_t stream, std::uint64_t &id, Bytes content) {
  constexpr std::uint64_t kOfOwner = StackContext::kEarlier, kOther = 2 * StackContext::kEarlier;
  Objects &objects = objects_[static_cast<std::size_t>(ObjectClass::stack64)];
  std::uint64_t symbol = 0;
  if constexpr (kDecode) {
    code_unsigned(stream, symbol);
    if (symbol == 0) {
      charge_object();
      id = objects.add_unhashed(code_stack(8, {}));
    } else if (symbol <= kOfOwner) {
      id = by_event_->earlier[symbol - 1];
    } else if (symbol <= kOther) {
      id = by_owner_->earlier[symbol - kOfOwner - 1];
    } else {
      code_planes(kStreamStackId, 4, id);
      id = known_object(objects, id);
    }
  } else {
    const std::size_t before = objects.size();
    id = objects.intern(content);
    if (id == before) {
      charge_object();
      code_unsigned(stream, symbol);
      static_cast<void>(code_stack(8, content));
      return;
    }
    symbol = by_event_->rank(id);
    if (symbol == 0 && (symbol = by_owner_->rank(id)) != 0) symbol += kOfOwner;
    const bool other = symbol == 0;
    if (other) symbol = kOther + 1;
    code_unsigned(stream, symbol);
    if (other) code_planes(kStreamStackId, 4, id);
  }
}

} // namespace etwrelog::etlz
