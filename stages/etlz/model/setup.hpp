// Making the model's tables and naming its streams: what is not done for every event. A part of code.hpp.
#pragma once

#include "etlz/model/content.hpp"

namespace etwrelog::etlz {

inline constexpr std::size_t kThreadAt = 0x08, kProcessAt = 0x0C;
inline constexpr std::array<std::uint64_t, 256> kZeroRow{};

constexpr std::uint64_t mask_of(unsigned width) {
  return width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (width * 8)) - 1;
}
constexpr std::size_t time_at(HeaderClass c) {
  return c == HeaderClass::perfinfo ? 0x08 : 0x10;
}

// Streams of one field.
inline std::uint32_t stream_count(const PlanField &f) {
  if (!f.is_number()) return 1;
  const bool planes = f.residual == Residual::planes || f.residual == Residual::difference;
  return planes ? f.width : f.residual == Residual::address ? 4u : 1u;
}

inline Guess guess_of(Predictor p, std::uint8_t arg, std::uint8_t index) {
  using P = Predictor;
  switch (p) {
  case P::previous: return {kFromPrevious, index};
  case P::match: return {kFromMatch, index};
  case P::lookup: return {kFromLookup, index};
  case P::slot: return {kFromSlots, arg};
  case P::thread: return {kFromThread, arg};
  case P::now: return {kFromTime, 0};
  case P::event: return {kFromEvent, 0};
  case P::owner: return {kFromOwner, 0};
  case P::step: return {kStep, 0};
  case P::field: return {kField, arg};
  case P::chain: return {kChain, arg};
  default: return {kFromZero, 0};
  }
}

template <Way kWay> ModelCore<kWay>::ModelCore() {
  static constexpr std::uint8_t kZeroGuid[16] = {};
  for (std::size_t c = 0; c < static_cast<std::size_t>(ObjectClass::count_); ++c) {
    objects_.emplace_back(c == static_cast<std::size_t>(ObjectClass::guid) ? Bytes(kZeroGuid)
                                                                           : Bytes(kZeroGuid, 0));
  }
  ModelCore::reset();
}

template <Way kWay> void ModelCore<kWay>::reset() {
  take_memory(*this, kKeptMemory);
  families_.clear();
  types_.clear();
  if constexpr (kDecode) {
    streams_.clear();
  } else {
    spare_streams_.clear();
    for (; !streams_.empty(); streams_.pop_back()) {
      streams_.back().clear();
      spare_streams_.push_back(std::move(streams_.back()));
    }
    static_cast<void>(bits_.finish());
  }
  grow_streams(kFixedStreams);
  for (Objects &objects : objects_)
    objects.clear();
  stacks_.clear();
  threads_.clear();
  arena_.clear();
  pages_.clear();
  processors_.clear();
  processor_ = nullptr;
  no_event_ = {};
  event_ = &no_event_;
  if (std::exchange(contexts_used_, false)) std::fill_n(stack_contexts_, kStackContexts, StackContext{});
  by_event_ = by_owner_ = stack_contexts_;
  next_type_.assign(1u << 16, 0);
  next_type_short_.assign(1u << 16, 0);
  type_context_ = type_context_short_ = 0;
  history_values_ = 0;
  periodic_ = 0;
  object_bytes_ = 0;
  std::ranges::fill(slots_, 0);
  time_ = 0;
  failed_ = false;
  hint_ = pattern_hint_ = {};
  pattern_symbol_ = last_pattern_ = 0;
  lead_ = 0;
  behind_type_ = 0;
  pending_.clear();
  counts_costs_ = false;
  costs_.clear();
  std::ranges::fill(base_, kZeroRow.data());
  base_[kFromSlots] = slots_;
  base_[kFromTime] = &time_;
  base_[kFromEvent] = base_[kFromOwner] = &by_event_->stack;
  set_thread(threads_.of(0));
  before_lookup_row_ = kZeroRow.data();
}

template <Way kWay> void ModelCore<kWay>::grow_streams(std::size_t count) {
  while (streams_.size() < count) {
    if constexpr (!kDecode) {
      if (!spare_streams_.empty()) {
        streams_.push_back(std::move(spare_streams_.back()));
        spare_streams_.pop_back();
        continue;
      }
    }
    streams_.emplace_back();
  }
}

template <Way kWay> std::uint32_t ModelCore<kWay>::add_family(Plan plan) {
  Family family;
  family.plan = std::move(plan);
  const std::vector<PlanField> &fields = family.plan.fields;
  if (family.plan.order.size() != fields.size()) family.plan.finish();
  if (!spare_.empty()) {
    family.history = std::move(spare_.back());
    spare_.pop_back();
  }
  family.history.start(static_cast<unsigned>(fields.size()), family.plan.lead);
  family.stream = static_cast<std::uint32_t>(streams_.size());
  std::uint32_t next = family.stream;
  const SplitStart start = split_start(fields);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const PlanField &f = fields[i];
    family.stack = family.stack || (f.is_number() && f.residual == Residual::recent_event);
    family.field_stream[i] = next;
    family.places.push_back({f.kind, f.object_class(), f.width, start.at[i], mask_of(f.width)});
    next += stream_count(f);
    if (f.is_number() && family.numbers == i) ++family.numbers, family.after_numbers += f.width;
  }
  grow_streams(next);
  for (const std::uint8_t index : family.plan.order) {
    const PlanField &f = fields[index];
    FieldStep step;
    step.index = index;
    step.kind = f.kind;
    step.width = static_cast<std::uint8_t>(f.width);
    step.residual = f.residual;
    step.object = f.object_class();
    step.questions = f.first == Predictor::none ? 0 : f.second == Predictor::none ? 1 : 2;
    step.first = guess_of(f.first, f.first_arg, index);
    step.second = guess_of(f.second, f.second_arg, index);
    step.base = guess_of(f.base, f.base_arg, index);
    step.stream = family.field_stream[index];
    step.mask = mask_of(f.width);
    step.text = f.text;
    family.questions += step.questions;
    if (f.slot != 0) {
      step.after = (f.slot & kMemberIs) != 0 ? kAfterMember : kAfterSlot;
      if ((f.slot & kThreadIs) != 0) step.after |= kAfterThread;
      step.target = f.slot & kSlotMask;
    }
    if (index == family.plan.lead) step.after |= kAfterLead;
    step.plain = f.is_number() && step.questions == 2 && step.first.source < kComputed &&
                 step.second.source < kComputed && (step.after & ~kAfterSlot) == 0;
    family.steps.push_back(step);
  }
  families_.push_back(std::move(family));
  return static_cast<std::uint32_t>(families_.size() - 1);
}

template <Way kWay>
std::uint32_t ModelCore<kWay>::add_type(const Identity &identity, HeaderClass c, std::uint32_t family,
                                        std::uint64_t period) {
  Type type;
  if (period != 0 && periodic_ < Processor::kPeriodic) {
    type.period = period;
    type.periodic = periodic_++;
  }
  type.identity = identity;
  type.header_class = c;
  type.family = family;
  type.stream = static_cast<std::uint32_t>(streams_.size());
  grow_streams(streams_.size() + 2);
  types_.push_back(std::move(type));
  return static_cast<std::uint32_t>(types_.size() - 1);
}
template <Way kWay> std::vector<StreamName> ModelCore<kWay>::stream_names() const {
  std::vector<StreamName> names(streams_.size());
  static constexpr const char *kFixed[] = {"tables",      "buffers",  "event types",
                                           "event types", "patterns", "raw bits",
                                           "raw bytes",   "padding",  "XPRESS corrections"};
  for (std::size_t i = 0; i < std::size(kFixed); ++i)
    names[i] = {"(segment)", kFixed[i]};
  auto range = [&names](std::size_t from, std::size_t to, const char *owner, const char *column) {
    for (; from < to; ++from)
      names[from] = {owner, column};
  };
  range(kStreamThreadId, kStreamProcessId, "(header)", "ThreadId");
  range(kStreamProcessId, kStreamKernelTime, "(header)", "ProcessId");
  range(kStreamKernelTime, kStreamActivity, "(header)", "KernelTime, UserTime");
  range(kStreamActivity, kStreamGuid, "(header)", "ActivityId");
  range(kStreamGuid, kStreamLength, "(objects)", "GUIDs");
  range(kStreamLength, kStreamWide, "(objects)", "lengths");
  range(kStreamWide, kStreamText, "(objects)", "wide text");
  static constexpr const char *kText[] = {"text: other",      "text: paths", "text: types", "text: methods",
                                          "text: signatures", "bytes",       "items",       "text 7"};
  for (std::size_t i = 0; i < kTextGroups; ++i)
    names[kStreamText + i] = {"(objects)", kText[i]};
  range(kStreamStackNew, kStreamMapCount, "(objects)", "stacks");
  names[kStreamStackNode].column = "stacks: nodes";
  names[kStreamFrame].column = "stacks: frame numbers";
  range(kStreamFrameAddress, kStreamStackId, "(objects)", "stacks: new frames");
  range(kStreamStackId, kStreamMapCount, "(objects)", "stacks: numbers");
  range(kStreamMapCount, kStreamOtherTime, "(objects)", "IL maps");
  names[kStreamOtherTime] = {"(objects)", "stacks: times"};
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

} // namespace etwrelog::etlz
