// The hot part of the model: types, headers, fields. Included by the two files that instantiate it, so that
// all of an event is one piece of code to the compiler.
#pragma once

#include "etlz/model/setup.hpp"

namespace etwrelog::etlz {

// --- Fields

template <Way kWay> std::uint64_t ModelCore<kWay>::predict(Guess g, unsigned field) const {
  const std::uint64_t *const previous = base_[kFromPrevious];
  switch (g.source) {
  case kStep: return previous[field] + base_[kFromLookup][field] - before_lookup_row_[field];
  case kField: return current_[g.at] + previous[field] - previous[g.at];
  case kChain: return previous[field] + previous[g.at];
  default: return 0;
  }
}

template <Way kWay>
[[gnu::always_inline]] inline std::uint64_t ModelCore<kWay>::guess(Guess g, unsigned field) const {
  if (g.source >= kComputed) [[unlikely]]
    return predict(g, field);
  return base_[g.source][g.at];
}

template <Way kWay> [[gnu::noinline]] void ModelCore<kWay>::code_residual(const FieldStep &step) {
  std::uint64_t &value = current_[step.index];
  if constexpr (kCoupled) set_field_hint(step);
  switch (step.residual) {
  case Residual::planes: code_planes(step.stream, step.width, value); return;
  case Residual::address:
    code_address(step.stream, value);
    value &= step.mask;
    return;
  case Residual::recent_event: code_recent(step.stream, value); return;
  default: break;
  }
  const std::uint64_t base = guess(step.base, step.index);
  // Differences of narrow fields wrap at their own width.
  const unsigned shift = 64 - 8 * step.width;
  std::uint64_t difference = value - base;
  if (step.residual == Residual::difference) {
    code_planes(step.stream, step.width, difference);
    if constexpr (kDecode) value = (base + difference) & step.mask;
    return;
  }
  if (step.residual == Residual::signed_token) {
    if constexpr (!kDecode)
      difference = static_cast<std::uint64_t>(static_cast<std::int64_t>(difference << shift) >> shift);
    code_signed(step.stream, difference);
  } else {
    difference &= step.mask;
    code_unsigned(step.stream, difference);
  }
  if constexpr (kDecode) value = (base + difference) & step.mask;
}

// Of most, `kPlain` says all that steps differ in: hardly a branch is left.
template <Way kWay>
template <bool kPlain, class Answers>
[[gnu::always_inline]] inline void ModelCore<kWay>::code_number(const FieldStep &step, std::uint64_t &value,
                                                                Answers &answers) {
  const auto guessed = [this, &step](Guess g) {
    return (kPlain ? base_[g.source][g.at] : guess(g, step.index)) & step.mask;
  };
  bool open = true;
  if (kPlain || step.questions == 2) {
    const std::uint64_t first = guessed(step.first), second = guessed(step.second);
    if constexpr (kDecode) {
      open = answers.get();
      value = open ? second : first;
      open = open & answers.get();
    } else {
      const bool not_first = value != first;
      open = not_first & (value != second);
      answers.put(not_first, open);
    }
  } else if (step.questions == 1) {
    const std::uint64_t first = guessed(step.first);
    if constexpr (kDecode) {
      open = answers.get();
      value = first;
    } else {
      open = value != first;
      answers.put(open);
    }
  }
  if (open) code_residual(step);
}

template <Way kWay>
template <class Answers>
[[gnu::always_inline]] inline void ModelCore<kWay>::code_object(const FieldStep &step, std::uint64_t &value,
                                                                Answers &answers) {
  const ObjectClass c = step.object;
  Objects &objects = objects_[static_cast<std::size_t>(c)];
  const Bytes content = kDecode ? Bytes() : content_[step.index];
  const std::uint64_t first = base_[step.first.source][step.first.at];
  const std::uint64_t second = base_[step.second.source][step.second.at];
  bool open = true;
  if constexpr (kDecode) {
    // Nearly all have two questions. What the answers are is hard to foresee: no branch depends on it.
    if (step.questions > 0) open = answers.get();
    value = open ? second : first;
    if (step.questions > 1) open = open & answers.get();
  } else {
    const auto differs_from = [&objects, content](std::uint64_t id) {
      const Bytes known = objects[id];
      return known.size() != content.size() || std::memcmp(known.data(), content.data(), content.size()) != 0;
    };
    value = first;
    if (step.questions > 0) {
      open = differs_from(first);
      answers.put(open);
    }
    if (step.questions > 1) {
      if (open) {
        open = differs_from(second);
        value = second;
      }
      answers.put(open);
    }
  }
  if constexpr (kCoupled) set_field_hint(step);
  if (step.first.source == kFromEvent) {
    if (open) code_stack_number(step.stream, value, content);
    contexts_used_ = true;
    by_event_->use(value);
    by_owner_->use(value);
    event_->stack = value + 1;
  } else if (open) {
    code_object_number(step.stream, c, kStreamText + step.text, base_[kFromPrevious][step.index], value,
                       content);
  }
  if constexpr (kDecode) objects.prefetch(value); // for when the fields are laid out
}

template <Way kWay> void ModelCore<kWay>::set_field_hint(const FieldStep &step) {
  const auto short_hash = [](std::uint64_t v) {
    return static_cast<std::uint32_t>(v * 0x9E37'79B9'7F4A'7C15ull >> 32) + 1;
  };
  hint_.lookup = short_hash(base_[kFromLookup][step.index]);
  hint_.previous = short_hash(base_[kFromPrevious][step.index]);
  hint_.lead = short_hash(lead_);
  hint_.thread = short_hash(thread_->id);
}

// `current_` is the history's next row.
template <Way kWay>
template <class Answers>
[[gnu::always_inline]] inline void ModelCore<kWay>::code_fields_as(Family &family, Answers &answers) {
  History &history = family.history;
  history.settle();
  lead_ = 0;
  const std::uint32_t size = history.size();
  const bool matched = history.match() < size;
  const std::uint64_t *const previous = size == 0 ? kZeroRow.data() : history.row(size - 1);
  const std::uint64_t *const match = matched ? history.row(history.match()) : kZeroRow.data();
  base_[kFromPrevious] = previous;
  base_[kFromMatch] = match;
  base_[kFromLookup] = matched ? match : previous;
  before_lookup_row_ = matched && history.match() > 0 ? history.row(history.match() - 1) : kZeroRow.data();
  std::uint64_t *const row = current_;
  for (const FieldStep &step : family.steps) {
    std::uint64_t &value = row[step.index];
    if (step.plain) {
      code_number<true>(step, value, answers);
      slots_[step.target] = value;
      continue;
    }
    if (step.kind == Kind::number)
      code_number<false>(step, value, answers);
    else
      code_object(step, value, answers);
    if (step.after == 0) continue;
    if ((step.after & kAfterSlot) != 0) slots_[step.target] = value;
    if ((step.after & kAfterMember) != 0) thread_->member[step.target] = value;
    if ((step.after & kAfterThread) != 0) set_thread(threads_.of(value));
    if constexpr (kCoupled) {
      if ((step.after & kAfterLead) != 0) lead_ = value;
    }
    if ((step.after & kAfterLead) != 0 && (!matched || match[step.index] != value)) {
      const std::uint32_t found = history.find(value);
      const bool has = found < size;
      base_[kFromLookup] = has ? history.row(found) : previous;
      before_lookup_row_ = !has ? previous : found > 0 ? history.row(found - 1) : kZeroRow.data();
    }
  }
  history.add(history_values_);
}

template <Way kWay>
[[gnu::always_inline]] inline void ModelCore<kWay>::code_fields(Family &family, Pattern &pattern) {
  if (!family.narrow()) [[unlikely]] {
    WideAnswers answers{pattern, kBitFields};
    return code_fields_as(family, answers);
  }
  if constexpr (kDecode) {
    NarrowAnswers answers{pattern.word[0] >> kBitFields};
    code_fields_as(family, answers);
  } else {
    NarrowAnswers answers{0};
    code_fields_as(family, answers);
    pattern.word[0] |= answers.word >> 1 >> (63 - family.questions) << kBitFields;
  }
}

template <Way kWay>
[[gnu::always_inline]] inline void ModelCore<kWay>::code_pattern_symbol(Type &type, const Family &family,
                                                                        Pattern &pattern) {
  if constexpr (kCoupled) hint_ = pattern_hint_;
  [[maybe_unused]] const std::size_t before = pending_.size();
  if constexpr (kDecode) {
    const unsigned symbol = code_byte(type.stream, 0);
    pattern_symbol_ = symbol;
    if (symbol < type.patterns.size()) {
      pattern.word = type.patterns[symbol];
    } else if (symbol == PatternTable::kNew) {
      for (unsigned i = 0; i < family.pattern_words(); ++i)
        code_word(kStreamMasks, pattern.word[i]);
      type.patterns.add(pattern.word);
    } else {
      failed_ = true;
    }
  } else {
    const unsigned symbol = type.patterns.find(pattern, family.narrow());
    pattern_symbol_ = symbol;
    code_byte(type.stream, symbol);
    if (symbol == PatternTable::kNew) {
      for (unsigned i = 0; i < family.pattern_words(); ++i)
        code_word(kStreamMasks, pattern.word[i]);
      type.patterns.add(pattern.word);
    }
    if constexpr (kCoupled) // the decoder needs it before the values
      std::rotate(pending_.begin() + static_cast<std::ptrdiff_t>(behind_type_),
                  pending_.begin() + static_cast<std::ptrdiff_t>(before), pending_.end());
  }
}

template <Way kWay> bool ModelCore<kWay>::code_record(std::uint32_t index, std::uint64_t *values) {
  Type &type = types_[index];
  Family &family = families_[type.family];
  const std::size_t n = family.plan.fields.size();
  set_thread(threads_.of(0));
  if (processor_ == nullptr) start_buffer(0);
  Pattern pattern;
  start_record(family);
  behind_type_ = pending_.size();
  pattern_hint_ = {};
  if constexpr (kDecode) {
    code_pattern_symbol(type, family, pattern);
    code_fields(family, pattern);
    std::copy_n(current_, n, values);
    failed_ = failed_ || overrun();
  } else {
    std::copy_n(values, n, current_);
    code_fields(family, pattern);
    code_pattern_symbol(type, family, pattern);
  }
  return !failed_;
}

template <Way kWay> void ModelCore<kWay>::start_buffer(std::uint16_t processor) {
  if (processor >= processors_.size()) processors_.resize(processor + 1u);
  if (!processors_[processor]) processors_[processor] = std::make_unique<Processor>();
  processor_ = processors_[processor].get();
  time_ = processor_->time;
  slot(Slot::thread_id) = processor_->thread_id;
  slot(Slot::process_id) = processor_->process_id;
  slot(Slot::running) = processor_->running;
}

template <Way kWay> void ModelCore<kWay>::end_buffer() {
  processor_->time = time_;
  processor_->thread_id = slot(Slot::thread_id);
  processor_->process_id = slot(Slot::process_id);
  processor_->running = slot(Slot::running);
}

template <Way kWay> void ModelCore<kWay>::end_event(const Type &type, const Family &family) {
  if (family.stack) return;
  processor_->add({time_, slot(Slot::running), slot(Slot::address), type.stream, 0});
  slot(Slot::address) = 0;
}

// --- Headers

// 0: as after the last three types before, 1: as after the last one, 255: a number that needs two bytes.
template <Way kWay> [[gnu::always_inline]] inline void ModelCore<kWay>::code_type(std::uint32_t &type) {
  std::uint16_t &guess = next_type_[type_context_];
  std::uint16_t &second = next_type_short_[type_context_short_];
  if constexpr (kCoupled) {
    last_pattern_ = pattern_symbol_;
    hint_ = {type_context_ * 0x9E37'79B1u, type_context_short_ + 1,
             last_pattern_ + 256 * type_context_short_ + 1,
             static_cast<std::uint32_t>(slot(Slot::running)) + 1};
  }
  if constexpr (kDecode) {
    const unsigned symbol = code_byte(kStreamTypes, 0);
    if (symbol == 255) {
      type = code_byte(kStreamTypesNew, 0);
      type |= code_byte(kStreamTypesNew, 0) << 8;
    } else {
      type = symbol == 0 ? guess : symbol == 1 ? second : symbol - 2u;
    }
    if (type >= types_.size()) {
      failed_ = true;
      type = 0;
    }
  } else {
    // Without branches, as nobody could foretell them.
    std::uint32_t symbol = std::min(type + 2, std::uint32_t{255});
    symbol = second == type && !plain_types_ ? 1 : symbol;
    symbol = guess == type && !plain_types_ ? 0 : symbol;
    code_byte(kStreamTypes, symbol);
    if (symbol == 255) [[unlikely]] {
      code_byte(kStreamTypesNew, type & 0xFF);
      code_byte(kStreamTypesNew, type >> 8);
    }
  }
  guess = second = static_cast<std::uint16_t>(type);
  type_context_ = (type_context_ * 0x25 + type * 0x1F31 + 1) & 0xFFFF;
  type_context_short_ = type & 0xFFFF;
  __builtin_prefetch(&next_type_[type_context_]);
  if constexpr (kCoupled) {
    behind_type_ = pending_.size();
    pattern_hint_ = {type_context_ * 0x9E37'79B1u, last_pattern_ + 1,
                     last_pattern_ + 256 * type_context_short_ + 1,
                     static_cast<std::uint32_t>(slot(Slot::running)) + 1};
  }
}

// The time of an event that comes at a steady rate: its distance to when it was due. The beat follows the
// events slowly, so that what delays one of them is not paid for twice.
template <Way kWay> void ModelCore<kWay>::code_beat(Type &type, std::uint64_t time) {
  std::uint64_t &beat = processor_->beat[type.periodic];
  std::uint64_t due = beat + type.period;
  const std::uint64_t late = time_ - due, slack = type.period / 8;
  if (static_cast<std::int64_t>(late) > static_cast<std::int64_t>(slack)) // some were left out
    due += (late - slack + type.period - 1) / type.period * type.period;
  std::uint64_t difference = time - due;
  if constexpr (kCoupled) {
    const auto &late_before = processor_->late[type.periodic];
    const auto middle = static_cast<std::uint64_t>(
        (static_cast<std::int64_t>(late_before[0]) + static_cast<std::int64_t>(late_before[1])) / 2);
    const std::uint64_t one = signed_token(late_before[0]).symbol, two = signed_token(late_before[1]).symbol;
    hint_ = {hint_of(one, 1), hint_of(one << 8 | two, 2), hint_of(signed_token(middle).symbol, 3),
             hint_of(static_cast<std::uint64_t>(static_cast<std::int64_t>(late_before[0]) >> 3), 4)};
  }
  code_signed(type.stream + 1, difference);
  if constexpr (kCoupled) {
    auto &late_before = processor_->late[type.periodic];
    late_before = {difference, late_before[0]};
  }
  time_ = due + difference;
  const bool steady = difference + type.period / 2 < type.period;
  beat = steady ? due + static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> 5) : time_;
}

template <Way kWay>
[[gnu::always_inline]] inline void ModelCore<kWay>::code_header(Type &type, Pattern &pattern,
                                                                HeaderBytes header) {
  const HeaderShape &shape = header_shape(type.header_class);
  NarrowPattern answers{pattern.word[0]};
  auto agree = [&answers](unsigned bit, std::uint64_t &value, std::uint64_t guess) {
    if constexpr (kDecode) {
      const bool miss = answers.get(bit);
      if (!miss) value = guess;
      return !miss;
    } else {
      answers.put(bit, value != guess);
      return value == guess;
    }
  };
  Threads::Entry *thread = nullptr;
  if constexpr (kCoupled)
    hint_ = {type_context_ * 0x9E37'79B1u, 0, last_pattern_ + 1,
             static_cast<std::uint32_t>(slot(Slot::running)) + 1};
  if (shape.ids) {
    std::uint64_t &last_thread = slots_[static_cast<std::size_t>(Slot::thread_id)];
    std::uint64_t &last_process = slots_[static_cast<std::size_t>(Slot::process_id)];
    std::uint64_t id = load<std::uint32_t>(header + kThreadAt);
    if (!agree(kBitThread, id, last_thread) && !agree(kBitThread + 1, id, type.thread_id))
      code_planes(kStreamThreadId, 4, id);
    last_thread = type.thread_id = id;
    if (id != kUnknownId) slot(Slot::running) = id;
    thread = &threads_.of(id);
    std::uint64_t process = load<std::uint32_t>(header + kProcessAt);
    std::uint64_t &known = thread->member[static_cast<std::size_t>(ThreadMember::process_id)];
    if (!agree(kBitProcess, process, known) && !agree(kBitProcess + 1, process, last_process))
      code_planes(kStreamProcessId, 4, process);
    known = last_process = process;
    if constexpr (kDecode) {
      store(header + kThreadAt, static_cast<std::uint32_t>(id));
      store(header + kProcessAt, static_cast<std::uint32_t>(process));
    }
  }
  if (shape.time) {
    const std::size_t at = time_at(type.header_class);
    if (type.period == 0) {
      std::uint64_t difference = load<std::uint64_t>(header + at) - time_;
      code_unsigned(type.stream + 1, difference);
      time_ += difference;
    } else {
      code_beat(type, load<std::uint64_t>(header + at));
    }
    if constexpr (kDecode) store(header + at, time_);
    if (thread != nullptr) thread->member[static_cast<std::size_t>(ThreadMember::last_time)] = time_;
  }
  if (shape.cpu_time) {
    for (const bool user : {false, true}) {
      const HeaderBytes at = header + shape.cpu_time_at + (user ? 4 : 0);
      const unsigned bit = user ? kBitUserTime : kBitKernelTime;
      std::uint64_t value = load<std::uint32_t>(at);
      std::uint64_t &known =
          thread
              ->member[static_cast<std::size_t>(user ? ThreadMember::user_time : ThreadMember::kernel_time)];
      std::uint64_t &last = user ? type.user_time : type.kernel_time;
      if (!agree(bit, value, known) && !agree(bit + 1, value, last)) {
        std::uint64_t difference = value - known;
        code_signed(user ? kStreamUserTime : kStreamKernelTime, difference);
        if constexpr (kDecode) value = (known + difference) & 0xFFFF'FFFF;
      }
      known = last = value;
      if constexpr (kDecode) store(at, static_cast<std::uint32_t>(value));
    }
  }
  if (shape.activity) {
    const HeaderBytes at = header + format::kEventActivityAt;
    Objects &guids = objects_[static_cast<std::size_t>(ObjectClass::guid)];
    if constexpr (kDecode) {
      std::uint64_t id = type.activity;
      if (answers.get(kBitActivity))
        code_object_number(kStreamActivity, ObjectClass::guid, kStreamText, type.activity, id, {});
      type.activity = id;
      if (guids[id].size() == 16) std::memcpy(at, guids[id].data(), 16);
    } else {
      const bool miss = std::memcmp(guids[type.activity].data(), at, 16) != 0;
      answers.put(kBitActivity, miss);
      if (miss)
        code_object_number(kStreamActivity, ObjectClass::guid, kStreamText, type.activity, type.activity,
                           Bytes(at, 16));
    }
  }
  if constexpr (!kDecode) pattern.word[0] = answers.word;
  set_thread(thread != nullptr ? *thread : threads_.of(slot(Slot::running)));
  event_ = &no_event_;
}

} // namespace etwrelog::etlz
