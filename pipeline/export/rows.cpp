#include "export/rows.hpp"

#include "base/errors.hpp"
#include "schema/fitting_decoder.hpp"
#include "schema/json_sink.hpp"

namespace etwrelog::pipeline {

using schema::Op;
using tables::Column;
using tables::ColumnData;
using tables::ColumnType;

void RowBatches::clear() {
  for (const Kind kind : used_) {
    Table &table = at(kind);
    table.last_used = clears_;
    table.first = kNoItem;
    table.batch.clear();
    for (Codes *codes : {&table.providers, &table.ids, &table.events, &table.processes, &table.keywords})
      codes->clear();
  }
  used_.clear();
  items_.clear();
  events_ = 0;
  // What each batch needed is kept for the next. Kinds that were many once do not hold memory for ever.
  if (++clears_ % kRest != 0) return;
  for (std::unique_ptr<Table> &table : described_)
    if (table && clears_ - table->last_used > kRest) table.reset();
}

namespace {

// Numbers as text, and what else is no number, as JSON lines have it but without quotes.
void add_text(ColumnData &column, const Op &op, Bytes data, unsigned pointer_size) {
  std::string &out = column.begin_text();
  const std::size_t start = out.size();
  schema::append_value(out, op, data, pointer_size, nullptr);
  schema::unquote_json(out, start);
  column.end_text();
}

} // namespace

// Puts top-level values into their columns; arrays and structures as the JSON that they are in lines.
class Rows::Sink {
public:
  // `payload`: the size of the event's.
  Sink(std::span<ColumnData> columns, const Plan &plan, const Decoder &decoder, std::size_t payload,
       JsonOptions json)
      : columns_(columns), plan_(plan), program_(schema::program_of(decoder)),
        pointer_size_(schema::pointer_size_of(decoder)), payload_(payload), json_(json) {}

  void value(const Op &op, Bytes data) {
    if (depth_ != 0) return nested_->value(op, data);
    const Place place = plan_.places[op.field];
    put(columns_[place.column], place.way, op, data, pointer_size_);
    ++filled_;
  }
  void begin_structure(const Op &op) {
    if (depth_ != 0)
      nested_->begin_structure(op);
    else
      open(op, '{');
    ++depth_;
  }
  void end_structure(const Op &op) {
    if (--depth_ != 0)
      nested_->end_structure(op);
    else
      close('}');
  }
  void begin_array(const Op &op, Bytes rest) {
    if (depth_ != 0)
      nested_->begin_array(op, rest);
    else if (plan_.places[op.field].way == Way::list)
      list_ = &columns_[plan_.places[op.field].column];
    else
      open(op, '[');
    ++depth_;
  }
  void end_array(const Op &op, std::uint32_t elements, Bytes data) {
    if (--depth_ != 0) return nested_->end_array(op, elements, data);
    if (list_ == nullptr) return close(']');
    std::exchange(list_, nullptr)->end_list();
    ++filled_;
  }
  void begin_element(const Op &op) { nested_->begin_element(op); }
  void end_element(const Op &op) { nested_->end_element(op); }
  void element(const Op &op, Bytes data) {
    if (list_ != nullptr)
      list_->add_element(schema::load_unsigned(data));
    else
      nested_->element(op, data);
  }
  void elements(const Op &op, Bytes data, std::size_t unit) {
    if (list_ != nullptr) return list_->add_elements(data, unit);
    nested_->elements(op, data, unit);
  }
  [[nodiscard]] std::size_t mark() const { return depth_ == 0 ? 0 : nested_->mark(); }
  void rollback(std::size_t mark) {
    if (--depth_ != 0) return nested_->rollback(mark);
    if (list_ != nullptr) return std::exchange(list_, nullptr)->drop_elements();
    nested_.reset();
    text_->begin_text().resize(start_);
  }
  [[nodiscard]] bool full() const { return depth_ != 0 && list_ == nullptr && nested_->full(); }

  [[nodiscard]] bool overfull() const { return overfull_; }
  [[nodiscard]] std::size_t filled() const { return filled_; } // columns

  // Puts one value into its column.
  static void put(ColumnData &column, Way way, const Op &op, Bytes data, unsigned pointer_size) {
    switch (way) {
    case Way::number: return column.add_number(schema::load_unsigned(data));
    case Way::signed_number: return column.add_number(static_cast<std::uint64_t>(schema::load_signed(data)));
    case Way::port: {
      const std::uint64_t value = schema::load_unsigned(data);
      return column.add_number((value & 0xFF) << 8 | value >> 8);
    }
    case Way::boolean: return column.add_number(schema::load_unsigned(data) != 0 ? 1 : 0);
    case Way::single: return real(column, load<float>(data.data()));
    case Way::doubled: return real(column, load<double>(data.data()));
    case Way::hex:
      schema::append_hex(column.begin_text(), schema::load_unsigned(data));
      return column.end_text();
    case Way::list:
    case Way::text: break;
    }
    if (is_sid(op.type) && data.size() < 8) return column.add_null(); // none
    add_text(column, op, data, pointer_size);
  }

private:
  void open(const Op &op, char sign) {
    text_ = &columns_[plan_.places[op.field].column];
    std::string &out = text_->begin_text();
    start_ = out.size();
    nested_.emplace(out, program_, pointer_size_, payload_, json_);
    out += sign;
  }
  void close(char sign) {
    overfull_ = overfull_ || nested_->full();
    nested_.reset();
    text_->begin_text() += sign;
    text_->end_text();
    ++filled_;
  }
  static void real(ColumnData &column, double value) {
    if (value - value == 0)
      column.add_real(value);
    else
      column.add_null(); // no number
  }

  std::span<ColumnData> columns_;
  const Plan &plan_;
  const Decoder::Program &program_;
  unsigned pointer_size_;
  std::size_t payload_, depth_ = 0, filled_ = 0, start_ = 0;
  JsonOptions json_;
  bool overfull_ = false;
  ColumnData *text_ = nullptr, *list_ = nullptr;
  std::optional<schema::JsonSink> nested_;
};

Rows::Rows(const Clock &clock, const ExportSurvey &survey, const Decoders &decoders, const Joins *joins,
           FieldColumns fields, bool numbers)
    : common_(clock, survey), survey_(survey), decoders_(decoders), joins_(joins), fields_(fields) {
  json_.numbers = numbers;
  fields_.numbers = fields_.numbers || numbers;
  if (!by_kind()) return;
  for (const Schema *schema : survey.schemas.all()) {
    Plan &plan = plans_.emplace_back();
    plan.object = fields_.few && too_many_columns(*schema);
    if (plan.object) continue;
    plan.places.resize(schema->fields.size());
    for_each_top_field(*schema, [&](std::size_t i) {
      plan.places[i] = {static_cast<std::uint16_t>(plan.columns++),
                        way_of(schema->fields[i], type_of(schema->fields[i]))};
    });
  }
}

// What most events are: fields of fixed size, and at most a list that takes the rest. False, and nothing is
// done, where that is not the whole payload.
bool Rows::add_fixed(const Plan &plan, const Decoder &decoder, Bytes payload, std::span<ColumnData> columns) {
  const Decoder::Program &program = schema::program_of(decoder);
  const unsigned pointer_size = schema::pointer_size_of(decoder), wide = pointer_size == 8 ? 1 : 0;
  const std::size_t fixed = program.fixed_values[wide], size = program.fixed_bytes[wide];
  if (payload.size() < size) return false;
  const Bytes rest = payload.subspan(size);
  if (fixed == program.ops.size()) {
    if (!rest.empty()) return false;
  } else {
    const Op &op = program.ops[fixed];
    const Place &place = plan.places[fixed];
    const std::size_t unit = op.fixed[wide];
    if (fixed + 1 != program.ops.size() || op.repeat != Measure::to_end || op.optional ||
        place.way != Way::list || unit == 0 || rest.size() % unit != 0 ||
        rest.size() / unit > schema::kMaxElements)
      return false;
    columns[place.column].add_elements(rest, unit);
    columns[place.column].end_list();
  }
  const std::uint8_t *at = payload.data();
  for (std::size_t i = 0; i < fixed; ++i) {
    const Op &op = program.ops[i];
    const Place &place = plan.places[i];
    Sink::put(columns[place.column], place.way, op, {at, op.fixed[wide]}, pointer_size);
    at += op.fixed[wide];
  }
  return true;
}

ColumnType Rows::type_of(const Field &field) const {
  const ColumnType type = column_type(field, fields_.numbers);
  if (!fields_.numbers || !fields_.lists || !field.is_array()) return type;
  const bool plain = field.type <= FieldType::u64 && field.format != Format::characters &&
                     field.format != Format::ip_address && field.format != Format::port;
  return plain || field.is_hexadecimal() ? ColumnType::list : type;
}

Rows::Way Rows::way_of(const Field &field, ColumnType type) {
  switch (type) {
  case ColumnType::real: return field.type == FieldType::f32 ? Way::single : Way::doubled;
  case ColumnType::boolean: return Way::boolean;
  case ColumnType::list: return Way::list;
  case ColumnType::integer: return Way::signed_number;
  case ColumnType::unsigned_integer:
    return field.format == Format::port && field.type == FieldType::u16 ? Way::port : Way::number;
  default: break;
  }
  return field.is_hexadecimal() && !field.is_array() ? Way::hex : Way::text;
}

std::vector<Column> Rows::columns(Kind kind) const {
  std::vector<Column> all = common_columns();
  if (!by_kind()) {
    all.push_back({"fields", ColumnType::text});
  } else if (kind != RowBatches::kUndescribed) {
    const Schema &schema = *survey_.schemas.all()[kind];
    for (std::size_t i = 0; i < common_.names(schema).size(); ++i)
      all[CommonColumns::kProvider + i].constant = common_.names(schema)[i];
    if (is_object(schema))
      all.push_back({"fields", ColumnType::text});
    else
      for_each_top_field(schema, [&](std::size_t i) {
        const Field &field = schema.fields[i];
        all.push_back({std::string(field.name), type_of(field)});
        all.back().single = field.type == FieldType::f32;
      });
  }
  if (joins_)
    for (const Joins::Column &column : joins_->columns())
      all.push_back({column.name, column.type});
  all.insert(all.end(), last_columns().begin(), last_columns().end());
  return all;
}

RowBatches::Table &Rows::table_for(Kind kind, RowBatches &into) const {
  if (kind != RowBatches::kUndescribed && kind >= into.described_.size()) into.described_.resize(kind + 1);
  std::unique_ptr<RowBatches::Table> &table =
      kind == RowBatches::kUndescribed ? into.undescribed_ : into.described_[kind];
  if (!table) {
    table = std::make_unique<RowBatches::Table>();
    table->batch = tables::Batch(columns(kind));
  }
  return *table;
}

void Rows::Adder::finish() {
  std::vector<Item> &items = into_.items_;
  if (items.empty()) return;
  if (!rows_.by_kind()) {
    RowBatches::Table &table = rows_.table_for(RowBatches::kUndescribed, into_);
    if (table.batch.rows == 0) into_.used_.push_back(RowBatches::kUndescribed);
    group_.clear();
    for (const Item &item : items)
      group_.push_back(&item);
    rows_.add_rows(group_, table, joined_);
  } else {
    add_by_kind(items);
  }
  into_.events_ += items.size();
  items.clear();
}

void Rows::Adder::add_by_kind(std::vector<Item> &items) {
  met_.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Schema *schema = items[i].schema;
    const Kind kind = schema ? schema->ordinal : RowBatches::kUndescribed;
    RowBatches::Table &table = rows_.table_for(kind, into_);
    const auto number = static_cast<std::uint16_t>(i);
    if (table.first != RowBatches::kNoItem) {
      items[table.last].next = number;
    } else {
      table.first = number;
      met_.push_back(&table);
      if (table.batch.rows == 0) into_.used_.push_back(kind);
    }
    table.last = number;
  }
  for (RowBatches::Table *table : met_) {
    group_.clear();
    for (std::uint16_t at = table->first; at != RowBatches::kNoItem; at = items[at].next)
      group_.push_back(&items[at]);
    table->first = RowBatches::kNoItem;
    rows_.add_rows(group_, *table, joined_);
  }
}

void Rows::add_rows(Items items, RowBatches::Table &table, Joins::Scratch &joined) const {
  std::size_t row = table.batch.rows;
  table.batch.rows += items.size();
  add_common(items, table);
  for (const Item *item : items) {
    add_fields(item->event, item->schema, table.batch, ++row);
    if (joins_) add_joined(item->event, item->schema, table.batch, joined);
  }
}

namespace {

struct Fill {
  std::uint64_t &to;
  void number(std::int64_t value) const { to = static_cast<std::uint64_t>(value); }
};

struct ColumnPut {
  ColumnData &column;
  RowBatches::Codes *codes = nullptr; // of a column that repeats
  [[gnu::always_inline]] void null() { column.add_null(); }
  [[gnu::always_inline]] void number(std::int64_t value) {
    column.add_number(static_cast<std::uint64_t>(value));
  }
  void text(std::string_view value) { column.add_text(value); }
  template <class Text> void repeated(std::uint64_t key, Text &&text) {
    column.add_code(codes->code(key, column, text));
  }
};

} // namespace

void Rows::add_common(Items items, RowBatches::Table &table) const {
  common_.for_each([&](auto index, auto &&value) {
    ColumnData &column = table.batch.columns[index];
    if constexpr (CommonColumns::is_number(index)) {
      std::uint64_t *to = column.add_numbers(items.size());
      for (const Item *item : items)
        value(item->event, item->schema, Fill{*to++});
      return;
    }
    RowBatches::Codes *codes = nullptr;
    switch (index) {
    case 5: codes = &table.processes; break;
    case 6: codes = &table.providers; break;
    case 7: codes = &table.ids; break;
    case 8: codes = &table.events; break;
    case 13: codes = &table.keywords; break;
    default: break;
    }
    for (const Item *item : items)
      value(item->event, item->schema, ColumnPut{column, codes});
  });
}

void Rows::add_fields(const Event &event, const Schema *schema, tables::Batch &batch, std::size_t row) const {
  const Bytes payload = event.payload();
  const std::size_t first = first_field_;
  ColumnData &raw = batch.columns[batch.columns.size() - 2], &truncated = batch.columns.back();
  std::size_t covered = 0;
  bool whole = true;
  if (schema != nullptr && is_object(*schema)) {
    ColumnData &fields = batch.columns[first];
    const DecodedSize size = decoders_.of(event, *schema).append_json(payload, fields.begin_text(), json_);
    covered = size.covered;
    fields.end_text();
    whole = size.given_up || !size.truncated;
    if (size.given_up) fields.keep_rows(row - 1), fields.add_null();
  } else if (schema != nullptr) {
    const Decoder &decoder = decoders_.of(event, *schema);
    const Plan &plan = plans_[schema->ordinal];
    const std::span<ColumnData> columns = std::span(batch.columns).subspan(first, plan.columns);
    if (add_fixed(plan, decoder, payload, columns)) return raw.add_null(), truncated.add_null();
    Sink sink(columns, plan, decoder, payload.size(), json_);
    schema::Run<Sink> run(schema::program_of(decoder), payload, schema::pointer_size_of(decoder), sink);
    whole = run.all();
    covered = run.position();
    if (run.gave_up() || sink.overfull()) { // nobody could read all of it: its bytes say the same
      covered = 0, whole = true;
      for (ColumnData &column : columns)
        column.keep_rows(row - 1), column.add_null();
    } else if (sink.filled() != plan.columns) { // what an event lacks is null
      for (ColumnData &column : columns)
        if (column.rows() < row) column.add_null();
    }
  } else if (!by_kind()) {
    batch.columns[first].add_null();
  }
  whole ? truncated.add_null() : truncated.add_number(1);
  // Of an event that nothing describes all bytes are shown, also if there are none.
  if (schema != nullptr && covered == payload.size()) return raw.add_null();
  schema::append_hex_bytes(raw.begin_text(), payload.subspan(covered));
  raw.end_text();
}

void Rows::add_joined(const Event &event, const Schema *schema, tables::Batch &batch,
                      Joins::Scratch &joined) const {
  joins_->look_up(event, schema, joined);
  const std::size_t count = joins_->columns().size(),
                    first = batch.columns.size() - last_columns().size() - count;
  for (std::size_t i = 0; i < count; ++i) {
    ColumnData &column = batch.columns[first + i];
    if (joined.numbers[i])
      column.add_number(static_cast<std::uint64_t>(*joined.numbers[i]));
    else if (joined.present[i])
      column.add_text(joined.texts[i]);
    else
      column.add_null();
  }
}

Result<std::unique_ptr<TableRows>> TableRows::make(const etwrelog::Trace &trace, const ExportOptions &options,
                                                   FieldColumns fields, const RunOptions &run) {
  auto made = std::make_unique<TableRows>();
  ETWRELOG_TRY_LET(survey, survey_for_export(trace, options.schemas, run, options.selection));
  made->survey = std::move(survey);
  ETWRELOG_TRY_LET(selected, Selected::make(trace, options.selection, options.where, made->survey, run));
  made->selected = std::move(selected);
  made->decoders.emplace(made->survey.schemas);
  if (options.joins.any()) {
    ETWRELOG_TRY_LET(joins, Joins::make(trace, made->survey, *made->decoders, options, run));
    made->joins = std::move(joins);
  }
  made->rows.emplace(trace.clock(), made->survey, *made->decoders, made->joins ? &*made->joins : nullptr,
                     fields, options.numbers);
  return made;
}

} // namespace etwrelog::pipeline
