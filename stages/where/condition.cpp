#include "where/condition.hpp"

#include "base/errors.hpp"
#include "etwrelog/kernel_events.hpp"
#include "schema/entry.hpp"
#include "schema/event_names.hpp"
#include "schema/fitting_decoder.hpp"
#include "schema/value_text.hpp"
#include "where/compare.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace etwrelog::where {
namespace {

constexpr std::size_t kMaxSteps = 4'000'000; // of all kinds

enum class Column : std::uint8_t {
  time,
  timestamp,
  cpu,
  process_id,
  thread_id,
  process,
  provider,
  provider_id,
  event,
  id,
  version,
  opcode,
  level,
  keyword,
  activity,
  related_activity,
  count_,
};
constexpr std::string_view kColumns[] = {
    "time",  "timestamp", "cpu",     "process_id", "thread_id", "process", "provider", "provider_id",
    "event", "id",        "version", "opcode",     "level",     "keyword", "activity", "related_activity"};
static_assert(std::size(kColumns) == static_cast<std::size_t>(Column::count_));

std::optional<Column> column_of(const Comparison &comparison) {
  if (comparison.only_fields || comparison.path.size() != 1) return std::nullopt;
  const auto found = std::ranges::find(kColumns, comparison.path[0]);
  if (found == std::end(kColumns)) return std::nullopt;
  return static_cast<Column>(found - std::begin(kColumns));
}

// Index of the field that a path names in fields [begin, end) of one structure.
std::optional<std::size_t> field_of(std::span<const Field> fields, std::span<const std::string> path) {
  std::size_t begin = 0, end = fields.size();
  for (std::size_t depth = 0;; ++depth) {
    const auto find = [&](auto &&name_of) {
      std::size_t i = begin;
      while (i < end && name_of(fields[i].name) != path[depth])
        i += 1u + fields[i].members;
      return i;
    };
    std::size_t i = find([](std::string_view name) { return name; });
    if (i >= end && !path[depth].empty()) i = find(schema::other_field_name);
    if (i >= end) return std::nullopt;
    if (depth + 1 == path.size()) return i;
    begin = i + 1, end = i + 1 + fields[i].members;
  }
}

// Hears nothing of a run.
class Silence {
public:
  void value(const schema::Op &, Bytes) {}
  void begin_structure(const schema::Op &) {}
  void end_structure(const schema::Op &) {}
  void begin_array(const schema::Op &, Bytes) {}
  void end_array(const schema::Op &, std::uint32_t, Bytes) {}
  void begin_element(const schema::Op &) {}
  void end_element(const schema::Op &) {}
  void element(const schema::Op &, Bytes) {}
  [[nodiscard]] std::size_t mark() const { return 0; }
  void rollback(std::size_t) {}
  [[nodiscard]] bool full() const { return false; }
};

// What a run tells of one field: whether any of its values passes the test.
class Probe final : public Silence {
public:
  Probe(const Test &test, std::size_t field, const Schema &schema, unsigned pointer_size,
        std::string &scratch)
      : test_(test), field_(field), schema_(schema), pointer_size_(pointer_size), scratch_(scratch) {}
  void value(const schema::Op &op, Bytes data) {
    if (op.field != field_ || found_) return;
    const ValueMap *map = op.map >= 0 ? schema_.maps[static_cast<std::size_t>(op.map)].get() : nullptr;
    found_ = test_.value(op, data, pointer_size_, map, scratch_);
  }
  void element(const schema::Op &op, Bytes data) { value(op, data); }
  // An array that the event has not room for is not there, as if nothing of it had been found.
  [[nodiscard]] std::size_t mark() const { return found_ ? 1 : 0; }
  void rollback(std::size_t mark) { found_ = mark != 0; }
  [[nodiscard]] bool found() const { return found_; }

private:
  const Test &test_;
  std::size_t field_;
  const Schema &schema_;
  unsigned pointer_size_;
  std::string &scratch_;
  bool found_ = false;
};

// One test of a kind's list. `yes` and `no` are places in the list, or kTrue and kFalse.
constexpr std::int32_t kTrue = -1, kFalse = -2, kAsOthers = -3;
struct Step {
  std::uint32_t comparison = 0;
  std::int32_t yes = kTrue, no = kFalse;
  bool is_column = false;
  Column column = Column::time;
  std::uint16_t field = 0, top = 0; // the field, and the top-level one that holds it
  std::uint32_t offset[2] = {Decoder::Program::kNoOffset, Decoder::Program::kNoOffset};
  std::uint16_t size[2] = {0, 0};
};

struct Kind {
  std::int32_t entry = kFalse;
  std::vector<Step> steps;
  std::unique_ptr<const Decoder::Program> program;
};

} // namespace

bool is_sound_bound(const Clock &clock, std::int64_t filetime) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;
  const auto is_far = [](std::int64_t value) { return value < -kFar || value > kFar; };
  const std::int64_t raw = clock.from_filetime(filetime);
  if (is_far(filetime) || is_far(raw)) return false;
  return clock.to_filetime(raw - 1) <= filetime && clock.to_filetime(raw) >= filetime;
}

void add_kind(EventSet &set, const Schema &schema) {
  if (!schema.classic) {
    // TraceLogging events are told by their metadata: ids say nothing.
    if (schema.origin == Origin::trace_logging)
      set.add_provider(schema.provider);
    else
      set.add_event(schema.provider, schema.id);
    return;
  }
  set.add_event(schema.provider, schema.opcode);
  if (const auto hook = kernel::hook_of_class(schema.provider, schema.opcode)) set.add_kernel(*hook);
  for (unsigned group = 0; group < 256; ++group)
    if (const auto hook = static_cast<std::uint16_t>(group << 8 | schema.opcode);
        kernel::class_guid(hook) == schema.provider)
      set.add_kernel(hook);
}

struct Condition::Impl {
  Impl(const SchemaCatalog &all, const Clock &c, const Surroundings &s)
      : catalog(all), clock(c), surroundings(s) {}

  SchemaCatalog catalog;
  Clock clock;
  const Surroundings &surroundings;
  Syntax syntax;
  std::vector<Test> tests; // as syntax.comparisons
  std::vector<Kind> kinds; // by ordinal, only of those that differ from `other`
  Kind other;              // of kinds without any field that is named, and of those that nobody describes
  EventSet set;
  bool by_kind = false; // not all kinds are as `other`
  bool is_nothing = false;
  std::size_t steps = 0;
  std::pair<std::int64_t, std::int64_t> times{std::numeric_limits<std::int64_t>::min(),
                                              std::numeric_limits<std::int64_t>::max()};

  Result<void> prepare();
  Result<void> check_names() const;
  Result<void> check_dates(const Comparison &comparison) const;
  Result<void> bind_time(Comparison &comparison, Test &test) const;
  Result<void> compile(const Schema *schema, Kind &kind);
  std::int32_t build(const Schema *schema, Kind &kind, const std::vector<unsigned> &costs, std::uint32_t node,
                     std::int32_t yes, std::int32_t no);
  [[nodiscard]] bool named_in(const Schema &schema) const;
  [[nodiscard]] unsigned cost(const Schema *schema, const Comparison &comparison, const Test &test) const;
  // True or false where the kind alone says it.
  [[nodiscard]] std::optional<bool> constant(const Schema *schema, std::uint32_t comparison) const;
  void narrow_times(std::uint32_t node);

  [[nodiscard]] bool test_column(const Event &event, const Schema *schema, const Step &step,
                                 Scratch &scratch) const;
  [[nodiscard]] bool test_field(const Event &event, const Schema &schema, const Kind &kind, const Step &step,
                                Scratch &scratch) const;
};

// No FILETIME is before or after what is no date.
Result<void> Condition::Impl::check_dates(const Comparison &comparison) const {
  const bool pattern = comparison.op == Operator::match || comparison.op == Operator::mismatch;
  for (const Literal &literal : comparison.values)
    if (!pattern && literal.kind == Literal::Kind::text && !parse_filetime(literal.text))
      return error_at(syntax.text, comparison.value_at, "'" + literal.text + "' is no date and time");
  return {};
}

Result<void> Condition::Impl::check_names() const {
  for (const Comparison &comparison : syntax.comparisons) {
    if (column_of(comparison)) continue;
    bool known = false, of_times = true;
    std::string close;
    for (const Schema *schema : catalog.all()) {
      if (const auto field = field_of(schema->fields, comparison.path)) {
        known = true;
        of_times = of_times && schema->fields[*field].type == FieldType::filetime &&
                   !schema->fields[*field].is_array();
        if (!of_times) break;
        continue;
      }
      for (const Field &field : schema->fields)
        if (close.empty() && schema::same_name(field.name, comparison.path.back())) close = field.name;
    }
    if (known && of_times) ETWRELOG_TRY(check_dates(comparison));
    if (known) continue;
    std::string name;
    for (const std::string &part : comparison.path)
      name += (name.empty() ? "" : ".") + part;
    Error error =
        error_at(syntax.text, comparison.name_at, "no kind of event here has a field '" + name + "'");
    error.kind = ErrorKind::no_match;
    if (!close.empty()) error.what += ", but '" + close + "' is one";
    return error;
  }
  return {};
}

// Texts become moments; numbers stay nanoseconds since 1970.
Result<void> Condition::Impl::bind_time(Comparison &comparison, Test &test) const {
  if (test.is_pattern() || test.is_numeric()) return {};
  std::vector<Literal> literals;
  for (Literal literal : comparison.values) {
    if (literal.kind == Literal::Kind::text) {
      const auto moment = parse_moment(literal.text);
      if (!moment)
        return error_at(syntax.text, comparison.value_at,
                        "'" + literal.text +
                            "' is neither a date and time nor seconds since the trace began");
      literal.kind = Literal::Kind::moment;
      literal.number = Number::of(moment->of(clock));
    }
    literals.push_back(std::move(literal));
  }
  comparison.values = literals;
  test.replace(std::move(literals));
  return {};
}

bool Condition::Impl::named_in(const Schema &schema) const {
  return std::ranges::any_of(syntax.comparisons, [&](const Comparison &comparison) {
    const auto column = column_of(comparison);
    return column ? *column == Column::provider || *column == Column::provider_id || *column == Column::event
                  : field_of(schema.fields, comparison.path).has_value();
  });
}

std::optional<bool> Condition::Impl::constant(const Schema *schema, std::uint32_t number) const {
  const Comparison &comparison = syntax.comparisons[number];
  const auto column = column_of(comparison);
  if (!column) {
    if (schema == nullptr || !field_of(schema->fields, comparison.path)) return false;
    return std::nullopt;
  }
  if (schema == nullptr) return std::nullopt;
  if (*column == Column::provider_id) return tests[number].guid(to_string(schema->provider));
  if (*column != Column::provider && *column != Column::event) return std::nullopt;
  std::string provider, name;
  surroundings.names(nullptr, schema, provider, name);
  if (*column == Column::provider) return tests[number].text(provider);
  const std::string in_tools = schema::other_event_name(*schema);
  return in_tools.empty() ? tests[number].text(name) : tests[number].texts(name, in_tools);
}

unsigned Condition::Impl::cost(const Schema *schema, const Comparison &comparison, const Test &test) const {
  unsigned sum = test.is_pattern() ? 20 : 1;
  if (const auto column = column_of(comparison)) {
    if (*column == Column::process) sum += 8;
    if (*column == Column::provider || *column == Column::event) sum += 40;
    return sum;
  }
  const auto field = schema != nullptr ? field_of(schema->fields, comparison.path) : std::nullopt;
  return field ? sum + 2 + static_cast<unsigned>(*field) : 0;
}

// Back to front, so that each step knows where to go on.
std::int32_t Condition::Impl::build(const Schema *schema, Kind &kind, const std::vector<unsigned> &costs,
                                    std::uint32_t index, std::int32_t yes, std::int32_t no) {
  const Node &node = syntax.nodes[index];
  switch (node.kind) {
  case Node::Kind::negation: return build(schema, kind, costs, node.left, no, yes);
  case Node::Kind::both:
  case Node::Kind::either: {
    const bool swap = costs[node.right] < costs[node.left];
    const std::uint32_t first = swap ? node.right : node.left, second = swap ? node.left : node.right;
    const std::int32_t rest = build(schema, kind, costs, second, yes, no);
    return node.kind == Node::Kind::both ? build(schema, kind, costs, first, rest, no)
                                         : build(schema, kind, costs, first, yes, rest);
  }
  case Node::Kind::comparison: break;
  }
  if (yes == no) return yes;
  if (const auto known = constant(schema, node.left)) return *known ? yes : no;
  Step step;
  step.comparison = node.left;
  step.yes = yes, step.no = no;
  const Comparison &comparison = syntax.comparisons[node.left];
  if (const auto column = column_of(comparison)) {
    step.is_column = true;
    step.column = *column;
  } else {
    const auto fields = schema->fields;
    step.field = static_cast<std::uint16_t>(*field_of(fields, comparison.path));
    for (std::size_t i = 0; i <= step.field; i += 1u + fields[i].members)
      step.top = static_cast<std::uint16_t>(i);
    if (!kind.program) kind.program = std::make_unique<const Decoder::Program>(*schema);
    const schema::Op &op = kind.program->ops[step.field];
    for (unsigned wide = 0; wide < 2; ++wide) {
      const std::size_t size = schema::fixed_size(op.type, op.size, wide != 0 ? 8 : 4);
      if (step.field != step.top || size == 0 || op.repeat != Measure::natural || op.optional) continue;
      step.offset[wide] = kind.program->offsets[wide][step.field];
      step.size[wide] = static_cast<std::uint16_t>(size);
    }
  }
  kind.steps.push_back(step);
  return static_cast<std::int32_t>(kind.steps.size() - 1);
}

Result<void> Condition::Impl::compile(const Schema *schema, Kind &kind) {
  std::vector<unsigned> costs;
  for (const Node &node : syntax.nodes)
    costs.push_back(
        node.kind == Node::Kind::comparison ? cost(schema, syntax.comparisons[node.left], tests[node.left])
        : node.kind == Node::Kind::negation ? costs[node.left]
                                            : std::min(costs[node.left] + costs[node.right], 1'000'000u));
  kind.entry = build(schema, kind, costs, static_cast<std::uint32_t>(syntax.nodes.size() - 1), kTrue, kFalse);
  if (kind.entry < 0) kind.steps = {}, kind.program.reset();
  steps += kind.steps.size();
  if (steps > kMaxSteps) return base::over_limit("the condition is too long for so many kinds of events");
  return {};
}

// What every event that fulfils the condition must fulfil: the parts that "and" joins at the top.
void Condition::Impl::narrow_times(std::uint32_t index) {
  const Node &node = syntax.nodes[index];
  if (node.kind == Node::Kind::both) {
    narrow_times(node.left);
    narrow_times(node.right);
    return;
  }
  if (node.kind != Node::Kind::comparison) return;
  const Comparison &comparison = syntax.comparisons[node.left];
  const Test &test = tests[node.left];
  const auto column = column_of(comparison);
  if (!column || *column > Column::timestamp || test.literals().size() != 1) return;
  const Literal &literal = test.literals()[0];
  const auto value = literal.number.integer();
  const bool moment = literal.kind == Literal::Kind::moment;
  if ((literal.kind != Literal::Kind::number && !moment) || !value) return;
  // At the ends are all times that are further away, too.
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const bool nanoseconds = *column == Column::time && !moment;
  if (nanoseconds && (*value == kEnd || *value <= -kEnd)) return;
  const std::int64_t filetime = moment        ? *value
                                : nanoseconds ? *value / 100 + kUnixEpoch
                                              : clock.to_filetime(*value);
  // A little more than asked for: units differ.
  constexpr std::int64_t kRoom = 10;
  const bool from = test.op() == Operator::greater || test.op() == Operator::greater_equal,
             to = test.op() == Operator::less || test.op() == Operator::less_equal,
             at = test.op() == Operator::equal;
  if (filetime < -kEnd + kRoom || filetime > kEnd - kRoom) return;
  if ((from || at) && is_sound_bound(clock, filetime - kRoom))
    times.first = std::max(times.first, filetime - kRoom);
  if ((to || at) && is_sound_bound(clock, filetime + kRoom))
    times.second = std::min(times.second, filetime + kRoom);
}

Result<void> Condition::Impl::prepare() {
  ETWRELOG_TRY(check_names());
  for (Comparison &comparison : syntax.comparisons) {
    ETWRELOG_TRY_LET(test, Test::make(comparison, syntax.text));
    if (column_of(comparison) == Column::time) ETWRELOG_TRY(bind_time(comparison, test));
    tests.push_back(std::move(test));
  }
  narrow_times(static_cast<std::uint32_t>(syntax.nodes.size() - 1));
  ETWRELOG_TRY(compile(nullptr, other));
  kinds.resize(catalog.all().size());
  const bool no_time = times.first > times.second;
  is_nothing = other.entry == kFalse || no_time;
  for (const Schema *schema : catalog.all()) {
    Kind &kind = kinds[schema->ordinal];
    if (!named_in(*schema)) {
      kind.entry = kAsOthers;
    } else {
      ETWRELOG_TRY(compile(schema, kind));
      by_kind = true;
    }
    if (kind.entry == kFalse || (kind.entry == kAsOthers && other.entry == kFalse)) continue;
    is_nothing = no_time;
    if (other.entry == kFalse) add_kind(set, *schema);
  }
  return {};
}

bool Condition::Impl::test_column(const Event &event, const Schema *schema, const Step &step,
                                  Scratch &scratch) const {
  const Test &test = tests[step.comparison];
  auto number = [&](std::uint64_t value) {
    if (test.is_numeric()) return test.integer(value, false);
    scratch.text.clear();
    schema::append_unsigned(scratch.text, value);
    return test.text(scratch.text);
  };
  auto id = [&](std::uint32_t value) { return value != kUnknownId && number(value); };
  auto guid = [&](const Guid &value) {
    scratch.text.clear();
    schema::append_guid(scratch.text, value);
    return test.guid(scratch.text);
  };
  switch (step.column) {
  case Column::time: {
    const std::int64_t filetime = clock.to_filetime(event.time());
    if (!test.is_pattern()) return test.moment(filetime);
    scratch.text.clear();
    if (!schema::append_filetime(scratch.text, filetime)) schema::append_signed(scratch.text, filetime);
    return test.text(scratch.text);
  }
  case Column::timestamp:
    if (test.is_numeric()) return test.integer(static_cast<std::uint64_t>(event.time()), event.time() < 0);
    scratch.text.clear();
    schema::append_signed(scratch.text, event.time());
    return test.text(scratch.text);
  case Column::cpu: return number(event.processor());
  case Column::process_id: return id(event.process_id());
  case Column::thread_id: return id(event.thread_id());
  case Column::process: {
    const std::string_view name = surroundings.process_name(event);
    return !name.empty() && test.text(name);
  }
  case Column::provider:
  case Column::event:
    scratch.text.clear(), scratch.other.clear();
    surroundings.names(&event, schema, scratch.text, scratch.other);
    return test.text(step.column == Column::provider ? scratch.text : scratch.other);
  case Column::provider_id: return guid(event.provider());
  case Column::id: return number(event.has_hook() || event.is_classic() ? 0 : event.id());
  case Column::version: return number(event.version());
  case Column::opcode: return number(event.opcode());
  case Column::level: // of a WPP message its schema says it
    return number(event.is_message() ? level_of(event, catalog.find(event)) : event.level());
  case Column::keyword:
    if (test.is_numeric()) return test.integer(event.keyword(), false);
    scratch.text.clear();
    schema::append_hex(scratch.text, event.keyword());
    return test.text(scratch.text);
  case Column::activity: {
    const Guid activity = event.activity();
    return activity != Guid{} && guid(activity);
  }
  case Column::related_activity: {
    const Guid related = event.related_activity();
    return related != Guid{} && guid(related);
  }
  case Column::count_: break;
  }
  return false;
}

bool Condition::Impl::test_field(const Event &event, const Schema &schema, const Kind &kind, const Step &step,
                                 Scratch &scratch) const {
  const Bytes payload = event.payload();
  const Decoder::Program &program = *kind.program;
  const unsigned pointer_size = schema::fitting_pointer_size(event, program);
  const unsigned wide = pointer_size == 8 ? 1 : 0;
  const Test &test = tests[step.comparison];
  if (step.offset[wide] != Decoder::Program::kNoOffset && step.size[wide] != 0) {
    if (std::size_t{step.offset[wide]} + step.size[wide] > payload.size()) return false;
    const schema::Op &op = program.ops[step.field];
    const ValueMap *map = op.map >= 0 ? schema.maps[static_cast<std::size_t>(op.map)].get() : nullptr;
    return test.value(op, payload.subspan(step.offset[wide], step.size[wide]), pointer_size, map,
                      scratch.text);
  }
  Silence silence;
  schema::Run<Silence> before(program, payload, pointer_size, silence);
  if (!before.until(step.top)) return false;
  Probe probe(test, step.field, schema, pointer_size, scratch.text);
  schema::Run<Probe> run(before, probe);
  static_cast<void>(run.one(step.top));
  return probe.found();
}

Condition::Condition(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Condition::Condition(Condition &&) noexcept = default;
Condition &Condition::operator=(Condition &&) noexcept = default;
Condition::~Condition() = default;

Result<Condition> Condition::make(std::string_view text, const SchemaCatalog &catalog, const Clock &clock,
                                  const Surroundings &surroundings) {
  auto impl = std::make_unique<Impl>(catalog, clock, surroundings);
  ETWRELOG_TRY_LET(syntax, parse(text));
  impl->syntax = std::move(syntax);
  ETWRELOG_TRY(impl->prepare());
  return Condition(std::move(impl));
}

bool Condition::holds(const Event &event, Scratch &scratch) const {
  const Impl &impl = *impl_;
  const Schema *const schema = impl.by_kind ? impl.catalog.find(event) : nullptr;
  const bool own = schema != nullptr && impl.kinds[schema->ordinal].entry != kAsOthers;
  const Kind &kind = own ? impl.kinds[schema->ordinal] : impl.other;
  std::int32_t at = kind.entry;
  while (at >= 0) {
    const Step &step = kind.steps[static_cast<std::size_t>(at)];
    const bool passed = step.is_column ? impl.test_column(event, schema, step, scratch)
                                       : impl.test_field(event, *schema, kind, step, scratch);
    at = passed ? step.yes : step.no;
  }
  return at == kTrue;
}

const EventSet &Condition::kinds() const {
  return impl_->set;
}
bool Condition::nothing() const {
  return impl_->is_nothing;
}
std::pair<std::int64_t, std::int64_t> Condition::times() const {
  return impl_->times;
}

} // namespace etwrelog::where
