// How values and the contents of objects are written to the streams and read from them. Included by the two
// files that instantiate the model.
#pragma once

#include "etlz/model/model.hpp"

namespace etwrelog::etlz {

// --- Values

template <bool kDecode>
inline void ModelCore<kDecode>::code_planes(std::uint32_t stream, unsigned width, std::uint64_t &value) {
  if constexpr (kDecode) {
    value = 0;
    for (unsigned i = 0; i < width; ++i)
      value |= std::uint64_t{streams_[stream + i].get()} << (8 * i);
  } else {
    for (unsigned i = 0; i < width; ++i)
      streams_[stream + i].put(static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

template <bool kDecode>
inline void ModelCore<kDecode>::code_unsigned(std::uint32_t stream, std::uint64_t &value) {
  if constexpr (kDecode) {
    const TokenMeaning &token = kUnsignedTokens[streams_[stream].get()];
    value = token.base + bits_.get(token.raw_bits);
  } else {
    const Token t = unsigned_token(value);
    streams_[stream].put(t.symbol);
    bits_.put(t.raw, t.raw_bits);
  }
}

template <bool kDecode>
inline void ModelCore<kDecode>::code_signed(std::uint32_t stream, std::uint64_t &difference) {
  if constexpr (kDecode) {
    const TokenMeaning &token = kSignedTokens[streams_[stream].get()];
    const std::uint64_t magnitude = token.base + bits_.get(token.raw_bits);
    difference = token.negative ? 0 - magnitude : magnitude;
  } else {
    const Token t = signed_token(difference);
    streams_[stream].put(t.symbol);
    bits_.put(t.raw, t.raw_bits);
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

template <bool kDecode> Bytes ModelCore<kDecode>::code_text(std::uint32_t stream, Bytes content) {
  if constexpr (kDecode) {
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
    streams_[stream].put(content);
    streams_[stream].put(0);
    return content;
  }
}

// UTF-16 whose units are all below 256 goes as text; anything else behind a byte 1 as units in a stream of
// its own.
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
      d_from =
          static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(next_from - from)));
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

template <bool kDecode>
Bytes ModelCore<kDecode>::code_content(ObjectClass c, std::uint32_t text, Bytes content) {
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

// A number that was decoded: some object's.
template <bool kDecode>
std::uint64_t ModelCore<kDecode>::known_object(const Objects &objects, std::uint64_t id) {
  if (id < objects.size()) return id;
  failed_ = true;
  return 0;
}

// 0 announces a new object, anything else the difference to a near number.
template <bool kDecode>
void ModelCore<kDecode>::code_object_number(std::uint32_t stream, ObjectClass c, std::uint32_t text,
                                            std::uint64_t near, std::uint64_t &id, Bytes content) {
  Objects &objects = objects_[static_cast<std::size_t>(c)];
  std::uint64_t symbol = 0;
  if constexpr (kDecode) {
    code_unsigned(stream, symbol);
    if (symbol == 0) {
      id = objects.add_unhashed(code_content(c, text, {}));
    } else {
      const std::uint64_t z = symbol - 1;
      id = known_object(objects, near + ((z >> 1) ^ (0 - (z & 1))));
    }
  } else {
    const std::size_t before = objects.size();
    id = objects.intern(content);
    if (id == before) {
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
template <bool kDecode>
void ModelCore<kDecode>::code_stack_number(std::uint32_t stream, std::uint64_t &id, Bytes content) {
  constexpr std::uint64_t kOfOwner = StackContext::kEarlier, kOther = 2 * StackContext::kEarlier;
  Objects &objects = objects_[static_cast<std::size_t>(ObjectClass::stack64)];
  std::uint64_t symbol = 0;
  if constexpr (kDecode) {
    code_unsigned(stream, symbol);
    if (symbol == 0) {
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
