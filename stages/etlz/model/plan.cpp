#include "etlz/model/plan.hpp"

#include "etwrelog/provider_events.hpp"

#include <algorithm>

namespace etwrelog::etlz {
namespace {

using kernel::FieldType;
using kernel::Role;
using P = Predictor;

constexpr std::uint8_t slot_of(Slot slot) {
  return static_cast<std::uint8_t>(slot);
}
constexpr std::uint8_t member(ThreadMember m) {
  return static_cast<std::uint8_t>(m);
}

// Offset of the first zero byte at or after `at`, or npos.
std::size_t find_zero_byte(Bytes data, std::size_t at) {
  if (at >= data.size()) return std::size_t(-1);
  const void *hit = std::memchr(data.data() + at, 0, data.size() - at);
  return hit == nullptr ? std::size_t(-1)
                        : static_cast<std::size_t>(static_cast<const std::uint8_t *>(hit) - data.data());
}

// Offset of the first zero unit counted in steps of two from `at`, or npos. Four units at a time.
std::size_t find_zero_unit(Bytes data, std::size_t at) {
  const std::uint8_t *const base = data.data();
  const std::size_t end = data.size();
  for (; at + 8 <= end; at += 8) {
    const std::uint64_t v = load<std::uint64_t>(base + at);
    const std::uint64_t zero = (v - 0x0001'0001'0001'0001ull) & ~v & 0x8000'8000'8000'8000ull;
    if (zero != 0) return at + static_cast<std::size_t>(std::countr_zero(zero)) / 16 * 2;
  }
  for (; at + 2 <= end; at += 2)
    if (base[at] == 0 && base[at + 1] == 0) return at;
  return std::size_t(-1);
}

// What a role says about where the value comes from.
void apply_role(PlanField &f, Role role, unsigned pointer_size) {
  auto set = [&f](P first, std::uint8_t arg, P second, std::uint8_t second_arg) {
    f.first = first, f.first_arg = arg, f.second = second, f.second_arg = second_arg;
  };
  switch (role) {
  case Role::process_id:
    set(P::slot, slot_of(Slot::process_id), P::lookup, 0);
    f.slot = slot_of(Slot::process_id);
    break;
  case Role::thread_id:
    set(P::slot, slot_of(Slot::running), P::lookup, 0);
    f.slot = slot_of(Slot::thread_id) | kThreadIs;
    break;
  case Role::new_thread_id:
    set(P::slot, slot_of(Slot::readied), P::zero, 0);
    f.slot = slot_of(Slot::running) | kThreadIs;
    break;
  case Role::old_thread_id: set(P::slot, slot_of(Slot::running), P::none, 0); break;
  case Role::event_time:
    set(P::none, 0, P::none, 0);
    f.residual = Residual::recent_event;
    break;
  case Role::image_base:
    set(P::slot, slot_of(Slot::image_base), P::match, 0);
    f.slot = slot_of(Slot::image_base);
    break;
  case Role::image_size:
    set(P::lookup, 0, P::slot, slot_of(Slot::image_size));
    f.slot = slot_of(Slot::image_size);
    break;
  case Role::image_time:
    set(P::lookup, 0, P::slot, slot_of(Slot::image_time));
    f.slot = slot_of(Slot::image_time);
    break;
  case Role::file_object:
  case Role::file_key:
    set(P::lookup, 0, P::slot, slot_of(Slot::file_object));
    f.slot = slot_of(Slot::file_object);
    break;
  case Role::method_id:
    set(P::step, 0, P::slot, slot_of(Slot::method_id));
    f.slot = slot_of(Slot::method_id);
    f.residual = Residual::signed_token, f.base = P::previous;
    break;
  case Role::module_id: set(P::previous, 0, P::lookup, 0); break;
  case Role::code_size: f.residual = Residual::unsigned_token; break;
  case Role::frames: set(P::match, 0, P::previous, 0); break;
  case Role::instruction_pointer:
    set(P::previous, 0, P::thread, member(ThreadMember::address));
    f.residual = Residual::address;
    f.slot = slot_of(Slot::address);
    break;
  default: break;
  }
  if (f.is_number() && f.width == 8 && pointer_size == 4 && role == Role::image_base) f.slot = 0;
}

std::uint8_t text_group(Role role) {
  switch (role) {
  case Role::file_name:
  case Role::image_name:
  case Role::command_line: return kTextPath;
  case Role::type_name: return kTextType;
  case Role::method_name: return kTextMethod;
  case Role::signature: return kTextSignature;
  default: return kTextOther;
  }
}

// The lead is the field by which earlier records are found: the more it determines, the better.
int lead_rank(const kernel::Field &field) {
  // Of a module's methods it is one; of all that are called ".ctor" a name is none.
  if (std::strcmp(field.name, "MethodToken") == 0) return 10;
  switch (field.role) {
  case Role::method_name: return 9;
  case Role::image_base:
  case Role::old_thread_id: return 8;
  case Role::stack_key: return 7;
  case Role::file_object: return 6;
  case Role::module_id: return 5;
  case Role::thread_id: return 4;
  case Role::frames: return 3;
  case Role::method_id: return 2;
  case Role::process_id: return 1;
  default: return 0;
  }
}

bool has_role(const std::vector<Role> &roles, Role role) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

// What depends on the company that a field keeps.
void refine(PlanField &f, Role role, const std::vector<Role> &roles) {
  auto named = [&f](const char *name) { return std::strcmp(f.name, name) == 0; };
  const bool stack = has_role(roles, Role::event_time);
  if (stack && role == Role::process_id) {
    f.first = P::thread, f.first_arg = member(ThreadMember::process_id);
    f.second = P::slot, f.second_arg = slot_of(Slot::process_id);
  }
  if (stack && role == Role::frames && f.width == 8) f.first = P::event, f.second = P::owner;
  if (role == Role::thread_id && has_role(roles, Role::instruction_pointer))
    f.slot = slot_of(Slot::running) | kThreadIs; // a sample is of the thread that runs
  if (role == Role::thread_id && named("TThreadId") && roles.size() == 5)
    f.slot = slot_of(Slot::readied), f.first = P::lookup, f.second = P::previous; // ReadyThread
  if (named("NewThreadPriority")) {
    f.first = P::thread, f.first_arg = member(ThreadMember::priority);
    f.second = P::previous;
    f.slot = member(ThreadMember::priority) | kMemberIs;
  }
  if (named("InitialTime"))
    f.first = P::none, f.second = P::none, f.residual = Residual::signed_token, f.base = P::now;
  if (named("ProgramCounter") || named("Routine") || named("Win32StartAddr")) {
    f.residual = Residual::address;
    f.slot = slot_of(Slot::address);
  }
}

// Addresses that lie about as far from another field of the record as they did in the one before.
void relate(PlanField &f, const std::vector<PlanField> &fields) {
  struct Relation {
    const char *name, *other;
    Residual residual; // a distance tells more than the value only where it takes few values
  };
  static constexpr Relation kRelations[] = {{"StackLimit", "StackBase", Residual::difference},
                                            {"UserStackLimit", "UserStackBase", Residual::difference},
                                            {"DefaultBase", "ImageBase", Residual::planes}};
  for (const Relation &relation : kRelations) {
    if (std::strcmp(f.name, relation.name) != 0) continue;
    const auto other = std::ranges::find_if(
        fields, [&](const PlanField &o) { return std::strcmp(o.name, relation.other) == 0; });
    if (other == fields.end()) continue;
    f.second = f.base = P::field;
    f.second_arg = f.base_arg = static_cast<std::uint8_t>(other - fields.begin());
    f.residual = relation.residual;
  }
}

// What Microsoft calls Reserved in a sample is a byte of flags and one of a rank, which do not go together.
bool is_flags_and_rank(std::span<const kernel::Field> rows, const kernel::Field &row) {
  return &row == &rows.back() && rows.size() == 4 && rows[0].role == Role::instruction_pointer &&
         std::string_view(rows[2].name) == "Count" && row.type == FieldType::u16;
}

void build(std::span<const kernel::Field> rows, unsigned pointer_size, Plan &plan) {
  int best = 0;
  std::vector<Role> roles;
  for (const kernel::Field &row : rows) {
    const std::size_t size = kernel::fixed_size(row.type, pointer_size);
    unsigned copies = 1;
    PlanField f;
    switch (row.type) {
    case FieldType::guid: f = field_of(Kind::guid, 16, row.name), copies = row.repeat; break;
    case FieldType::sid: f = field_of(Kind::sid, pointer_size, row.name); break;
    case FieldType::astr: f = field_of(Kind::astr, 0, row.name); break;
    case FieldType::wstr: f = field_of(Kind::wstr, 0, row.name); break;
    case FieldType::pointers: f = field_of(Kind::stack, pointer_size, row.name); break;
    case FieldType::rest: f = field_of(Kind::rest, 0, row.name); break;
    case FieldType::counted_pointers: f = field_of(Kind::counted_stack, pointer_size, row.name); break;
    case FieldType::offset_map: f = field_of(Kind::map, 0, row.name); break;
    default:
      if (row.repeat > 16) {
        f = field_of(Kind::fixed, static_cast<unsigned>(size * row.repeat), row.name);
      } else if (is_flags_and_rank(rows, row)) {
        f = field_of(Kind::number, 1, row.name), copies = 2;
      } else {
        f = field_of(Kind::number, static_cast<unsigned>(size), row.name);
        copies = row.repeat;
      }
    }
    f.text = f.object_class() == ObjectClass::bytes ? std::uint8_t{kTextBytes} : text_group(row.role);
    apply_role(f, row.role, pointer_size);
    for (unsigned i = 0; i < copies && plan.fields.size() + 1 < kMaxFields; ++i) {
      const int rank = lead_rank(row);
      if (rank > best) {
        best = rank;
        plan.lead = static_cast<std::uint8_t>(plan.fields.size());
      }
      plan.fields.push_back(f);
      roles.push_back(row.role);
    }
  }
  // What takes its prediction from a lead field of this very kind needs another one.
  for (std::size_t i = 0; i < plan.fields.size(); ++i) {
    PlanField &f = plan.fields[i];
    if (i == plan.lead) {
      if (f.first == P::lookup) f.first = P::match;
      if (f.second == P::lookup) f.second = P::match;
      if (f.first == P::previous && f.second == P::previous) f.second = P::match;
    }
    if (roles[i] == Role::code_address) {
      f.first = P::step, f.second = P::none;
      f.residual = Residual::signed_token, f.base = P::chain;
      for (std::size_t k = 0; k < roles.size(); ++k)
        if (roles[k] == Role::code_size) f.base_arg = static_cast<std::uint8_t>(k);
    }
    if (std::strcmp(f.name, "MethodToken") == 0) f.residual = Residual::signed_token, f.base = P::previous;
    refine(f, roles[i], roles);
    relate(f, plan.fields);
  }
}

} // namespace

PlanField field_of(Kind kind, unsigned width, const char *name) {
  PlanField f;
  f.kind = kind;
  f.width = static_cast<std::uint16_t>(width);
  f.first = P::lookup;
  f.second = P::previous;
  f.name = name;
  return f;
}

void Plan::finish() {
  order.clear();
  auto place = [this](auto &&wanted) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto index = static_cast<std::uint8_t>(i);
      if (std::find(order.begin(), order.end(), index) == order.end() && wanted(fields[i], i))
        order.push_back(index);
    }
  };
  place([this](const PlanField &f, std::size_t i) {
    return i == lead && f.residual != Residual::recent_event;
  });
  place(
      [](const PlanField &f, std::size_t) { return f.is_number() && f.residual == Residual::recent_event; });
  place([](const PlanField &f, std::size_t) { return (f.slot & kThreadIs) != 0; });
  place([](const PlanField &, std::size_t) { return true; });
}

SplitStart split_start(const std::vector<PlanField> &fields) {
  SplitStart start;
  for (const PlanField &f : fields) {
    if (f.kind != Kind::number && f.kind != Kind::guid && f.kind != Kind::fixed) break;
    if (start.end + f.width > 0x7FFF) break;
    start.at[start.fields++] = start.end;
    start.end = static_cast<std::uint16_t>(start.end + f.width);
  }
  start.all = start.fields == fields.size();
  return start;
}

void split_payload(const std::vector<PlanField> &fields, const SplitStart &start_of_all, Bytes payload,
                   Split &split) {
  const std::size_t end = payload.size();
  const bool whole = end >= start_of_all.end;
  std::size_t at = whole ? start_of_all.end : 0;
  unsigned n = whole ? start_of_all.fields : 0;
  split.started = n;
  for (std::size_t i = n; i < fields.size(); ++i) {
    const PlanField &f = fields[i];
    std::size_t start = at, length = f.width, next = at + f.width;
    switch (f.kind) {
    case Kind::number:
    case Kind::guid:
    case Kind::fixed: break;
    case Kind::astr: {
      const std::size_t zero = find_zero_byte(payload, at);
      length = zero - at;
      next = zero == std::size_t(-1) ? end + 1 : zero + 1;
      break;
    }
    case Kind::wstr: {
      const std::size_t zero = find_zero_unit(payload, at);
      length = zero - at;
      next = zero == std::size_t(-1) ? end + 1 : zero + 2;
      break;
    }
    case Kind::rest:
      length = end - at, next = length == 0 ? end + 1 : end; // an empty rest is no field at all
      break;
    case Kind::sid: {
      const auto size = kernel::sid_size(payload.subspan(at), f.width);
      length = size.value_or(0), next = size ? at + *size : end + 1;
      break;
    }
    case Kind::stack: length = (end - at) / f.width * f.width, next = at + length; break;
    case Kind::counted_stack:
      if (end - at < 4) {
        next = end + 1;
        break;
      }
      start = at + 4, length = std::size_t{load<std::uint32_t>(payload.data() + at)} * f.width,
      next = start + length;
      break;
    case Kind::map:
      if (end - at < 2) {
        next = end + 1;
        break;
      }
      start = at + 2, length = std::size_t{load<std::uint16_t>(payload.data() + at)} * 8,
      next = start + length;
      break;
    case Kind::items: {
      ExtendedItems items(payload.subspan(at));
      ExtendedItem item{};
      while (items.next(item)) {
      }
      length = items.ok() ? end - at - items.rest().size() : 0;
      next = items.ok() && length > 0 ? at + length : end + 1;
      break;
    }
    default: next = end + 1;
    }
    if (next > end) break;
    split.at[n] = static_cast<std::uint16_t>(start);
    split.length[n] = static_cast<std::uint16_t>(length);
    ++n;
    at = next;
  }
  split.fields = n;
  split.end = static_cast<std::uint16_t>(at);
}

bool known_plan(const EventView &event, Plan &plan) {
  const unsigned pointer_size = event.pointer_size();
  std::span<const kernel::Field> rows;
  if (event.has_hook()) {
    const kernel::Layout *layout = kernel::find_layout(event.hook(), event.version());
    if (layout == nullptr) return false;
    rows = layout->fields;
    const kernel::HookInfo *info = kernel::find_hook(event.hook());
    plan.name = info != nullptr ? info->name : "";
  } else if (const provider::Layout *layout = provider::find_layout(event)) {
    rows = layout->fields, plan.name = layout->name;
  } else if (event.is_classic()) {
    const auto hook = kernel::hook_of_class(event.provider(), event.opcode());
    const kernel::Layout *known = hook ? kernel::find_layout(*hook, event.version()) : nullptr;
    if (known == nullptr) return false;
    rows = known->fields;
  } else {
    return false;
  }
  if (rows.empty()) return false;
  build(rows, pointer_size, plan);
  return true;
}

void put_first(Plan &plan, const PlanField &field) {
  for (PlanField &f : plan.fields)
    for (const auto &[predictor, arg] :
         {std::pair<P, std::uint8_t &>{f.first, f.first_arg}, {f.second, f.second_arg}, {f.base, f.base_arg}})
      if (predictor == P::chain || predictor == P::field) ++arg;
  plan.fields.insert(plan.fields.begin(), field);
  if (plan.lead != 0xFF) ++plan.lead;
}

Plan cut_plan(const Plan &full, unsigned fields, bool tail) {
  Plan plan;
  plan.name = full.name;
  plan.fields.assign(full.fields.begin(), full.fields.begin() + fields);
  for (PlanField &f : plan.fields) {
    auto without = [fields](P &p, std::uint8_t arg) {
      if ((p == P::chain || p == P::field) && arg >= fields) p = P::previous;
    };
    without(f.first, f.first_arg);
    without(f.second, f.second_arg);
    without(f.base, f.base_arg);
  }
  if (tail) {
    PlanField rest = field_of(Kind::rest, 0, "rest");
    rest.text = kTextBytes;
    plan.fields.push_back(rest);
  }
  plan.lead = full.lead < fields ? full.lead : std::uint8_t{0xFF};
  if (plan.lead == 0xFF && !plan.fields.empty()) {
    plan.lead = 0;
    PlanField &f = plan.fields[0];
    if (f.first == P::lookup || f.first == P::none) f.first = P::match;
    if (f.second == P::lookup) f.second = P::match;
  }
  plan.finish();
  return plan;
}

void write_plan(std::vector<std::uint8_t> &out, const Plan &plan) {
  put_varint(out, plan.fields.size());
  out.push_back(plan.lead);
  for (const PlanField &f : plan.fields) {
    out.push_back(static_cast<std::uint8_t>(f.kind));
    put_varint(out, f.width);
    out.push_back(static_cast<std::uint8_t>(f.first));
    out.push_back(f.first_arg);
    out.push_back(static_cast<std::uint8_t>(f.second));
    out.push_back(f.second_arg);
    out.push_back(static_cast<std::uint8_t>(f.residual));
    out.push_back(static_cast<std::uint8_t>(f.base));
    out.push_back(f.base_arg);
    out.push_back(f.slot);
    out.push_back(f.text);
  }
}

namespace {

bool valid_predictor(P predictor, std::uint8_t arg, const Plan &plan) {
  switch (predictor) {
  case P::slot: return arg < static_cast<unsigned>(Slot::count_);
  case P::event:
  case P::owner: return true; // checked by field
  case P::thread: return arg < static_cast<unsigned>(ThreadMember::count_);
  case P::field:
  case P::chain: return arg < plan.fields.size() && plan.fields[arg].is_number();
  default: return predictor < P::count_;
  }
}

bool valid_field(const PlanField &f, const Plan &plan) {
  if (f.kind >= Kind::count_ || f.residual >= Residual::count_ || f.text >= kTextGroups) return false;
  const unsigned target = f.slot & kSlotMask;
  if ((f.slot & kMemberIs) != 0 ? target >= static_cast<unsigned>(ThreadMember::count_)
                                : target >= static_cast<unsigned>(Slot::count_))
    return false;
  for (const auto &[predictor, arg] :
       {std::pair{f.first, f.first_arg}, {f.second, f.second_arg}, {f.base, f.base_arg}})
    if (!valid_predictor(predictor, arg, plan)) return false;
  // An object's value is its number in its class: only what an earlier record of the same field held is one.
  auto of_object = [](P p) {
    return p == P::none || p == P::zero || p == P::previous || p == P::match || p == P::lookup;
  };
  auto of_number = [](P p) { return p != P::event && p != P::owner; };
  auto of_stack = [&f, &of_object](P p) {
    return of_object(p) || ((p == P::event || p == P::owner) && f.object_class() == ObjectClass::stack64);
  };
  const bool object_ok = f.slot == 0 && of_stack(f.first) && of_stack(f.second);
  if (f.is_number() && (!of_number(f.first) || !of_number(f.second) || !of_number(f.base))) return false;
  switch (f.kind) {
  case Kind::number:
    if (f.residual == Residual::recent_event && f.width != 8) return false;
    return f.width == 1 || f.width == 2 || f.width == 4 || f.width == 8;
  case Kind::guid: return f.width == 16 && object_ok;
  case Kind::sid:
  case Kind::stack:
  case Kind::counted_stack: return (f.width == 4 || f.width == 8) && object_ok;
  default: return object_ok;
  }
}

} // namespace

bool read_plan(InStream &in, Plan &plan) {
  const std::uint64_t count = get_varint(in);
  if (count > kMaxFields) return false;
  plan.lead = in.get();
  plan.fields.resize(count);
  for (PlanField &f : plan.fields) {
    f.kind = static_cast<Kind>(in.get());
    f.width = static_cast<std::uint16_t>(std::min<std::uint64_t>(get_varint(in), 0xFFFF));
    f.first = static_cast<P>(in.get());
    f.first_arg = in.get();
    f.second = static_cast<P>(in.get());
    f.second_arg = in.get();
    f.residual = static_cast<Residual>(in.get());
    f.base = static_cast<P>(in.get());
    f.base_arg = in.get();
    f.slot = in.get();
    f.text = in.get();
  }
  if (in.overrun() || (plan.lead >= count && plan.lead != 0xFF)) return false;
  for (const PlanField &f : plan.fields)
    if (!valid_field(f, plan)) return false;
  plan.finish();
  // A field of the same record can only be a base once it is known.
  std::array<bool, kMaxFields> known{};
  for (const std::uint8_t index : plan.order) {
    const PlanField &f = plan.fields[index];
    for (const auto &[predictor, arg] :
         {std::pair{f.first, f.first_arg}, {f.second, f.second_arg}, {f.base, f.base_arg}})
      if (predictor == P::field && !known[arg]) return false;
    known[index] = true;
  }
  return true;
}

} // namespace etwrelog::etlz
