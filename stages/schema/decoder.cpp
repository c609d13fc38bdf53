// Schema -> program; a payload -> values.
#include "schema/json_sink.hpp"

#include <bit>

namespace etwrelog {

using schema::Op;

namespace {

// The register of the field that a length or count refers to. What readers of schemas let through has one for
// each (Entry::flaw()).
std::uint8_t register_of(std::vector<std::uint8_t> &registers, unsigned &used, int field, std::size_t user) {
  if (field < 0 || static_cast<std::size_t>(field) >= user) return schema::kNoRegister;
  std::uint8_t &mine = registers[static_cast<std::size_t>(field)];
  if (mine == schema::kNoRegister && used < schema::kMaxRegisters) mine = static_cast<std::uint8_t>(used++);
  return mine;
}

schema::JsonWay json_way(const Field &field) {
  using schema::JsonWay;
  const bool natural = field.length == Measure::natural && field.repeat == Measure::natural;
  if (field.type == FieldType::wstr) return natural ? JsonWay::wide_text : JsonWay::other;
  if (field.type == FieldType::astr) return natural ? JsonWay::narrow_text : JsonWay::other;
  if (field.is_hexadecimal()) return JsonWay::hex;
  if (field.type == FieldType::raw_time) return JsonWay::signed_number;
  if (field.type > FieldType::i64) return JsonWay::other;
  switch (field.format) {
  case Format::port:
  case Format::ip_address:
  case Format::characters: return JsonWay::other;
  default: return field.type <= FieldType::u64 ? JsonWay::number : JsonWay::signed_number;
  }
}

} // namespace

Decoder::Program::Program(const Schema &of) : schema(&of) {
  const std::span<const Field> fields = of.fields;
  std::vector<std::uint8_t> registers(fields.size(), schema::kNoRegister);
  ops.reserve(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field &f = fields[i];
    Op op{};
    op.type = f.type, op.format = f.format, op.length = f.length, op.repeat = f.repeat;
    op.optional = f.optional, op.zero_ends = f.zero_ends;
    op.keeps_partial = f.type == FieldType::structure || of.origin == Origin::builtin;
    op.reg = op.size_reg = op.count_reg = schema::kNoRegister;
    if (f.length == Measure::by_field) op.size_reg = register_of(registers, registers_used, f.size_field, i);
    if (f.repeat == Measure::by_field)
      op.count_reg = register_of(registers, registers_used, f.count_field, i);
    op.fixed[0] = static_cast<std::uint16_t>(schema::fixed_size(f.type, f.size, 4));
    op.fixed[1] = static_cast<std::uint16_t>(schema::fixed_size(f.type, f.size, 8));
    op.way = json_way(f);
    op.size = f.size, op.count = f.count, op.field = static_cast<std::uint16_t>(i), op.map = f.map;
    op.members = static_cast<std::uint16_t>(std::min<std::size_t>(f.members, fields.size() - i - 1));
    op.key_at = static_cast<std::uint32_t>(keys.size());
    keys += ',';
    schema::append_json_string(keys, f.name);
    keys += ':';
    op.key_size = static_cast<std::uint32_t>(keys.size()) - op.key_at;
    ops.push_back(op);
  }
  keys.append(schema::TextPen::kMostRoom, ' ');
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].is_integer() && !fields[i].is_array()) ops[i].reg = registers[i];
  for (std::size_t i = 0; i < ops.size(); i += 1u + ops[i].members)
    ++top_level;
  for (unsigned wide = 0; wide < 2; ++wide) {
    offsets[wide].assign(ops.size(), kNoOffset);
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      offsets[wide][i] = at;
      const std::size_t size = ops[i].fixed[wide];
      if (size == 0 || ops[i].repeat != Measure::natural || ops[i].optional) break;
      at += static_cast<std::uint32_t>(size);
      fixed_values[wide] = i + 1, fixed_bytes[wide] = at;
    }
  }
}

namespace {

// Collects the top-level values.
class ValueSink {
public:
  ValueSink(std::span<FieldValue> out, const Decoder &decoder, Bytes payload, unsigned pointer_size)
      : out_(out), decoder_(decoder), payload_(payload), pointer_size_(pointer_size) {}

  void value(const Op &op, Bytes data) {
    if (depth_ == 0) add(op, data, 1);
  }
  void begin_structure(const Op &) { enter(); }
  void end_structure(const Op &op) { leave(op, 1); }
  void begin_array(const Op &, Bytes) { enter(); }
  void end_array(const Op &op, std::uint32_t elements, Bytes) { leave(op, elements); }
  void begin_element(const Op &) { ++depth_; }
  void end_element(const Op &) { --depth_; }
  void element(const Op &, Bytes data) { last_ = data; }
  [[nodiscard]] std::size_t mark() const { return depth_; }
  void rollback(std::size_t mark) { depth_ = mark; }
  [[nodiscard]] bool full() const { return false; }

  [[nodiscard]] std::size_t count() const { return count_; }
  // Where the field begins and ends in the payload: structures and arrays are stretches of it.
  void at(std::size_t begin, std::size_t end) {
    if (count_ != 0 && open_ended_ && count_ <= out_.size()) {
      out_[count_ - 1].data = payload_.subspan(begin, end - begin);
      open_ended_ = false;
    }
  }

private:
  void enter() { ++depth_; }
  void leave(const Op &op, std::uint32_t n) {
    if (--depth_ != 0) return;
    add(op, {}, n);
    open_ended_ = true;
  }
  void add(const Op &op, Bytes data, std::uint32_t n) {
    if (count_ < out_.size())
      out_[count_++] = {&decoder_.schema().fields[op.field],
                        data,
                        static_cast<std::uint8_t>(pointer_size_),
                        n,
                        &decoder_,
                        payload_};
  }

  std::span<FieldValue> out_;
  const Decoder &decoder_;
  Bytes payload_;
  unsigned pointer_size_;
  std::size_t count_ = 0, depth_ = 0;
  bool open_ended_ = false;
  Bytes last_;
};

} // namespace

Decoder::Decoder(const Schema &schema, unsigned pointer_size)
    : program_(std::make_unique<const Program>(schema)), pointer_size_(pointer_size == 4 ? 4 : 8) {}
Decoder::Decoder(Decoder &&) noexcept = default;
Decoder &Decoder::operator=(Decoder &&) noexcept = default;
Decoder::~Decoder() = default;

const Schema &Decoder::schema() const {
  return *program_->schema;
}

std::size_t Decoder::value_count() const {
  return program_->top_level;
}

DecodedSize Decoder::decode(Bytes payload, std::span<FieldValue> out) const {
  ValueSink sink(out, *this, payload, pointer_size_);
  schema::Run<ValueSink> run(*program_, payload, pointer_size_, sink);
  bool whole = true;
  for (std::size_t i = 0; whole && i < program_->ops.size(); i += 1u + program_->ops[i].members) {
    const std::size_t begin = run.position();
    whole = run.one(i);
    sink.at(begin, run.position());
  }
  return {sink.count(), run.position(), !whole, run.gave_up()};
}

std::optional<FieldValue> Decoder::field(Bytes payload, std::size_t index) const {
  if (index >= program_->ops.size()) return std::nullopt;
  const Op &op = program_->ops[index];
  const std::uint32_t offset = program_->offsets[pointer_size_ == 8 ? 1 : 0][index];
  const std::size_t size = schema::fixed_size(op.type, op.size, pointer_size_);
  if (offset != Program::kNoOffset && size != 0 && !(op.repeat != Measure::natural)) {
    if (offset + size > payload.size()) return std::nullopt;
    return FieldValue{&program_->schema->fields[index],
                      payload.subspan(offset, size),
                      static_cast<std::uint8_t>(pointer_size_),
                      1,
                      this,
                      payload};
  }
  FieldValue value;
  ValueSink sink({&value, 1}, *this, payload, pointer_size_);
  ValueSink nothing({}, *this, payload, pointer_size_);
  schema::Run<ValueSink> before(*program_, payload, pointer_size_, nothing);
  if (!before.until(index)) return std::nullopt;
  const std::size_t begin = before.position();
  before.redirect(sink);
  const bool whole = before.one(index);
  sink.at(begin, before.position());
  if (!whole && sink.count() == 0) return std::nullopt;
  if (sink.count() == 0) return std::nullopt;
  return value;
}

DecodedSize Decoder::append_json(Bytes payload, std::string &out, const JsonOptions &options) const {
  const std::size_t start = out.size();
  out += '{';
  schema::JsonSink sink(out, *program_, pointer_size_, payload.size(), options);
  schema::Run<schema::JsonSink> run(*program_, payload, pointer_size_, sink);
  const bool whole = run.all();
  sink.flush();
  out += '}';
  if (run.gave_up() || sink.full()) { // more text than any real event has: its bytes say the same
    out.resize(start);
    out += "{}";
    return {0, 0, true, true};
  }
  return {program_->top_level, run.position(), !whole};
}

std::optional<std::uint64_t> FieldValue::integer() const {
  if (field == nullptr || !field->is_integer() || field->is_array()) return std::nullopt;
  if (field->is_signed() && data.size() < 8) return static_cast<std::uint64_t>(schema::load_signed(data));
  const std::uint64_t value = schema::load_unsigned(data);
  if (field->type == FieldType::boolean) return value != 0 ? 1 : 0;
  if (field->format == Format::port && data.size() == 2) return (value & 0xFF) << 8 | value >> 8;
  return value;
}

std::optional<double> FieldValue::real() const {
  if (field == nullptr || field->is_array()) return std::nullopt;
  double value = 0;
  if (field->type == FieldType::f32 && data.size() == 4)
    value = load<float>(data.data());
  else if (field->type == FieldType::f64 && data.size() == 8)
    value = load<double>(data.data());
  else
    return std::nullopt;
  if (value != value || value - value != 0) return std::nullopt;
  return value;
}

void FieldValue::append_json(std::string &out, const JsonOptions &options) const {
  if (field == nullptr || decoder == nullptr) return;
  const Decoder::Program &program = *decoder->program_;
  const auto index = static_cast<std::size_t>(field - program.schema->fields.data());
  const Op &op = program.ops[index];
  if (op.type != FieldType::structure && (op.repeat == Measure::natural || op.format == Format::characters)) {
    const bool named = options.maps && op.map >= 0;
    const ValueMap *map = named ? program.schema->maps[static_cast<std::size_t>(op.map)].get() : nullptr;
    schema::append_value(out, op, data, pointer_size, map, options.numbers);
    return;
  }
  // Lengths and counts may come from fields in front of it: run up to it in silence, then with a voice.
  const std::size_t start = out.size();
  ValueSink nothing({}, *decoder, payload, pointer_size);
  schema::Run<ValueSink> before(program, payload, pointer_size, nothing);
  if (!before.until(index)) return;
  out += '{'; // the sink writes a member of an object: its key and this brace go again
  schema::JsonSink sink(out, program, pointer_size, payload.size(), options);
  schema::Run<schema::JsonSink> run(before, sink);
  run.one(index);
  sink.flush();
  if (out.size() < start + 1 + op.key_size || run.gave_up() || sink.full()) {
    out.resize(start);
    out += "null";
    return;
  }
  out.erase(start, op.key_size); // as long as the brace and the key without its comma
}

void FieldValue::append_text(std::string &out, const JsonOptions &options) const {
  if (field == nullptr) return;
  const std::size_t start = out.size();
  append_json(out, options);
  schema::unquote_json(out, start);
}

std::string ValueMap::text(std::uint64_t value, std::size_t bytes) const {
  const std::uint64_t above = bytes >= 8 ? 0 : ~std::uint64_t{0} << 8 * bytes; // no bits of the value
  value &= ~above;
  if (!bits) {
    const auto named = [this](std::uint64_t wanted) {
      const auto at = std::ranges::lower_bound(entries, wanted, {}, &Entry::value);
      return at != entries.end() && at->value == wanted ? at->name : std::string();
    };
    std::string found = named(value);
    return found.empty() && above != 0 ? named(value | above) : found; // of a negative one
  }
  std::string out;
  std::uint64_t rest = value;
  for (const Entry &entry : entries) {
    const bool fits = (entry.value & above) == 0 || (entry.value & above) == above;
    const std::uint64_t wanted = entry.value & ~above;
    if (!fits || wanted == 0 || (value & wanted) != wanted) continue;
    if (!out.empty()) out += '|';
    out += entry.name;
    rest &= ~wanted;
  }
  return rest == 0 ? out : std::string();
}

std::string type_text(std::span<const Field> fields, std::size_t index) {
  constexpr std::string_view kNames[] = {"u8",   "u16",      "u32",        "u64",    "i8",    "i16",
                                         "i32",  "i64",      "f32",        "f64",    "bool",  "pointer",
                                         "time", "filetime", "systemtime", "guid",   "sid",   "sid",
                                         "astr", "utf8",     "wstr",       "binary", "struct"};
  constexpr std::string_view kFormats[] = {
      "",           " hex",      " address",     " ip",      " port", " char", " process id",
      " thread id", " ntstatus", " win32 error", " hresult", " xml",  " json", " socket address",
      " lznt1 text"};
  const Field &field = fields[index];
  std::string text(kNames[static_cast<std::size_t>(field.type)]);
  auto measure = [&](Measure how, unsigned constant, std::int16_t of) -> std::string {
    if (how == Measure::constant) return std::to_string(constant);
    if (how == Measure::by_field && of >= 0) return std::string(fields[static_cast<std::size_t>(of)].name);
    return {};
  };
  if (field.length != Measure::natural)
    text.append("(").append(measure(field.length, field.size, field.size_field)).append(")");
  text += kFormats[static_cast<std::size_t>(field.format)];
  if (field.is_array())
    text.append("[").append(measure(field.repeat, field.count, field.count_field)).append("]");
  return text;
}

std::string_view origin_name(Origin origin) {
  switch (origin) {
  case Origin::builtin: return "built-in";
  case Origin::event_info: return "event-info";
  case Origin::manifest: return "event-source";
  case Origin::trace_logging: return "tracelogging";
  case Origin::added: return "added";
  }
  return {};
}

} // namespace etwrelog
