#include "export/joins.hpp"

#include "base/errors.hpp"
#include "etwrelog/format.hpp"
#include "export/event_columns.hpp"
#include "schema/value_text.hpp"

#include <algorithm>
#include <cmath>

namespace etwrelog::pipeline {

using tables::ColumnType;

Result<Joins> Joins::make(const etwrelog::Trace &trace, const ExportSurvey &survey, const Decoders &decoders,
                          const ExportOptions &options, const RunOptions &run) {
  const ExportJoins &wanted = options.joins;
  Joins joins;
  joins.symbols_ = options.symbols;
  joins.decoders_ = &decoders;
  joins.wanted_ = wanted;
  KnowledgeWanted needed;
  needed.files = wanted.file;
  needed.keys = wanted.registry;
  needed.images = wanted.module || wanted.stack;
  needed.running = wanted.owner || wanted.module || wanted.stack;
  needed.stacks = needed.code = wanted.stack;
  needed.identities = wanted.stack && options.symbols != nullptr;
  needed.durations = wanted.duration;
  ETWRELOG_TRY_LET(known, Knowledge::collect(trace, survey, needed, run));
  joins.known_ = std::move(known);
  std::vector<Column> &columns = joins.columns_;
  if (wanted.process) columns.push_back({"command_line"});
  if (wanted.owner) {
    columns.push_back({"owner_process_id", ColumnType::integer});
    columns.push_back({"owner_thread_id", ColumnType::integer});
    columns.push_back({"owner_process"});
  }
  if (wanted.file) columns.push_back({"file"});
  if (wanted.registry) columns.push_back({"registry_key"});
  if (wanted.module) columns.push_back({"modules", ColumnType::text, true});
  if (wanted.stack) columns.push_back({"stack", ColumnType::text, true});
  if (wanted.duration) columns.push_back({"duration_ns", ColumnType::integer});
  for (const Schema *schema : survey.schemas.all()) {
    Kind &kind = joins.kinds_.emplace_back();
    for_each_top_field(*schema, [&](std::size_t i) {
      const Field &field = schema->fields[i];
      if (field.is_array() || i > 0xFFFF) return;
      const bool pointer = field.type == FieldType::pointer || field.type == FieldType::u64;
      if (pointer && (field.name == "FileObject" || field.name == "FileKey"))
        kind.files.push_back(static_cast<std::uint16_t>(i));
      else if (field.type == FieldType::pointer || field.format == Format::address)
        kind.addresses.push_back(static_cast<std::uint16_t>(i));
    });
  }
  return joins;
}

// The values of the event, in scratch.values.
std::span<const FieldValue> Joins::decode(const Event &event, const Schema &schema, Scratch &scratch) const {
  const Decoder &decoder = decoders_->of(event, schema);
  scratch.values.resize(decoder.value_count());
  const std::size_t count = decoder.decode(event.payload(), scratch.values).values;
  return std::span(scratch.values).first(count);
}

namespace {

// The single value of a field, if the event has it.
std::optional<std::uint64_t> value_of(std::span<const FieldValue> values, const Schema &schema,
                                      std::uint16_t field) {
  for (const FieldValue &value : values)
    if (value.field == &schema.fields[field]) return value.integer();
  return std::nullopt;
}

} // namespace

void Joins::files(const Event &event, const Schema &schema, std::size_t column, Scratch &scratch) const {
  const Kind &kind = kinds_[schema.ordinal];
  if (kind.files.empty()) return;
  const std::span<const FieldValue> values = decode(event, schema, scratch);
  for (const std::uint16_t field : kind.files) {
    const auto key = value_of(values, schema, field);
    if (!key) continue;
    const std::string_view name = known_.file(event.machine(), *key, event.time());
    if (name.empty()) continue;
    scratch.texts[column] = name;
    scratch.present[column] = true;
    return;
  }
}

void Joins::modules(const Event &event, std::uint32_t process, const Schema &schema, std::size_t column,
                    Scratch &scratch) const {
  const Kind &kind = kinds_[schema.ordinal];
  if (kind.addresses.empty()) return;
  const std::span<const FieldValue> values = decode(event, schema, scratch);
  std::string &out = scratch.texts[column];
  for (const std::uint16_t field : kind.addresses) {
    const auto address = value_of(values, schema, field);
    if (!address || *address < 0x1'0000) continue;
    std::string module;
    if (!known_.append_module(event.machine(), process, event.time(), *address, module)) continue;
    out += out.empty() ? '{' : ',';
    schema::append_json_string(out, schema.fields[field].name);
    out += ':';
    schema::append_json_string(out, module);
  }
  if (out.empty()) return;
  out += '}';
  scratch.present[column] = true;
}

// Those of its image, if something looks for them; null if that has none.
const ModuleSymbols *Joins::symbols_of(const Knowledge::Frame &frame, Scratch &scratch) const {
  if (symbols_ == nullptr || frame.image == profile::Images::kNone) return nullptr;
  std::shared_ptr<const ModuleSymbols> &symbols =
      scratch.symbols[std::uint64_t{frame.machine} << 32 | frame.image];
  if (symbols == nullptr) symbols = symbols_->load(profile::identity_of(known_.image_of(frame)));
  return symbols->state() == SymbolState::found ? symbols.get() : nullptr;
}

const std::string &Joins::text_of(const Knowledge::Frame &frame, Scratch &scratch) const {
  constexpr unsigned kBits = 12;
  scratch.frame_texts.resize(std::size_t{1} << kBits);
  Scratch::FrameText &place = scratch.frame_texts[frame.address * 0x9E37'79B9'7F4A'7C15ull >> (64 - kBits)];
  if (place.frame == frame && !place.text.empty()) return place.text;
  scratch.text.clear();
  known_.append_frame(frame, symbols_of(frame, scratch), scratch.names, scratch.text);
  place.frame = frame;
  place.text.clear();
  schema::append_json_string(place.text, scratch.text);
  return place.text;
}

void Joins::stack(const Event &event, const Knowledge::Owner &owner, std::size_t column,
                  Scratch &scratch) const {
  scratch.frames.clear();
  const std::uint32_t asked = known_.frames_of(event, scratch.frames);
  if (scratch.frames.empty()) return;
  const std::uint32_t process = known_.process_of_stack(event, owner, asked);
  std::string &out = scratch.texts[column];
  bool in_kernel = true;
  for (const std::uint64_t address : scratch.frames) {
    const bool was_in_kernel = in_kernel;
    in_kernel = format::is_kernel_address(address, event.pointer_size());
    // Where the user's part begins, the thread went into the kernel.
    const bool innermost = out.empty() || (was_in_kernel && !in_kernel);
    out += out.empty() ? '[' : ',';
    out += text_of(known_.frame_at(event.machine(), process, event.time(), address, innermost), scratch);
  }
  out += ']';
  scratch.present[column] = true;
}

void Joins::look_up(const Event &event, const Schema *schema, Scratch &scratch) const {
  scratch.texts.resize(columns_.size());
  scratch.numbers.assign(columns_.size(), std::nullopt);
  scratch.present.assign(columns_.size(), false);
  for (std::string &text : scratch.texts)
    text.clear();
  Knowledge::Owner owner{event.process_id(), event.thread_id()};
  if (wanted_.owner || wanted_.module || wanted_.stack) owner = known_.owner_of(event);
  std::size_t column = 0;
  auto text = [&](std::string_view value) {
    if (!value.empty()) scratch.texts[column] = value, scratch.present[column] = true;
    ++column;
  };
  auto number = [&](std::optional<std::int64_t> value) {
    scratch.numbers[column] = value;
    scratch.present[column] = value.has_value();
    ++column;
  };
  auto id = [](std::uint32_t value) {
    return value == kUnknownId ? std::nullopt : std::optional<std::int64_t>(value);
  };
  if (wanted_.process) {
    const ProcessInstance *process = known_.process_of(event);
    text(process ? std::string_view(process->command_line) : std::string_view());
  }
  if (wanted_.owner) {
    number(id(owner.process));
    number(id(owner.thread));
    const ProcessInstance *process = known_.process(event.machine(), owner.process, event.time());
    text(process ? std::string_view(process->image_name) : std::string_view());
  }
  if (wanted_.file) {
    if (schema != nullptr) files(event, *schema, column, scratch);
    ++column;
  }
  if (wanted_.registry) {
    scratch.present[column] = known_.append_registry_key(event, scratch.texts[column]);
    ++column;
  }
  if (wanted_.module) {
    if (schema != nullptr)
      modules(event, Knowledge::process_of_addresses(event, owner), *schema, column, scratch);
    ++column;
  }
  if (wanted_.stack) stack(event, owner, column++, scratch);
  if (wanted_.duration) number(known_.duration_of(event));
}

void Joins::append_json(const Event &event, const Schema *schema, Scratch &scratch, std::string_view prefix,
                        std::string &out) const {
  look_up(event, schema, scratch);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!scratch.present[i]) continue;
    out += ",\"";
    out += prefix;
    out += columns_[i].name;
    out += "\":";
    if (scratch.numbers[i])
      schema::append_signed(out, *scratch.numbers[i]);
    else if (columns_[i].json)
      out += scratch.texts[i];
    else
      schema::append_json_string(out, scratch.texts[i]);
  }
}

} // namespace etwrelog::pipeline
