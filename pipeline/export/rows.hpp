// Events as rows of tables: each kind of event into columns of its own, straight from its payload.
#pragma once

#include "export/event_columns.hpp"
#include "export/joins.hpp"
#include "export/selected.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

namespace etwrelog::pipeline {

// What a format's tables have for the fields of events.
struct FieldColumns {
  bool by_kind = true;  // a table for each kind, with a column for each field; else one with an object
  bool numbers = false; // addresses and hexadecimal numbers are numbers whatever ExportOptions say
  bool lists = false;   // where they are, arrays of numbers are lists; else they stay JSON
  bool few = false;     // kinds with too_many_columns() have one with an object
};

// Rows of one batch. One thread at a time; memory is kept from batch to batch.
class RowBatches {
public:
  using Kind = std::size_t; // ordinal of the schema
  static constexpr Kind kUndescribed = SIZE_MAX;

  // Forgets all rows.
  void clear();
  // Calls visit(kind, batch) for all kinds with rows, in order of their ordinals, undescribed events last.
  // What it leaves in the batch is forgotten with the rest.
  template <class Visit> Result<void> for_each(Visit &&visit) {
    std::sort(used_.begin(), used_.end());
    for (const Kind kind : used_)
      if (Result<void> done = visit(kind, at(kind).batch); !done) return done;
    return {};
  }
  [[nodiscard]] std::uint64_t events() const { return events_; }

  // Codes of texts that are asked for by a number again and again.
  class Codes {
  public:
    template <class Text> std::uint32_t code(std::uint64_t key, tables::ColumnData &column, Text &&text) {
      // Keywords are powers of two, ordinals count up: the multiplication spreads both.
      Place &place = places_[static_cast<std::size_t>(key * 0x9E37'79B9'7F4A'7C15ull >> (64 - kBits))];
      if (place.batch != batch_ || place.key != key) place = {key, column.code_of(text()), batch_};
      return place.code;
    }
    void clear() {
      if (++batch_ == 0) places_.fill({}), batch_ = 1;
    }

  private:
    static constexpr int kBits = 7;
    struct Place {
      std::uint64_t key = 0;
      std::uint32_t code = 0, batch = 0;
    };
    std::array<Place, 1u << kBits> places_{};
    std::uint32_t batch_ = 1; // of which the codes are; 0: of none
  };

private:
  friend class Rows;
  static constexpr std::uint16_t kNoItem = 0xFFFF;
  struct Table {
    tables::Batch batch;
    Codes providers, ids, events, processes, keywords;
    unsigned last_used = 0;
    std::uint16_t first = kNoItem, last = kNoItem; // of the events that wait, in the order of items_
  };
  // Events that wait for their rows.
  struct Item {
    Event event;
    const Schema *schema = nullptr;
    std::uint16_t next = kNoItem; // of the same table
  };
  static constexpr unsigned kRest = 16; // batches after which memory of a kind that has no rows goes
  [[nodiscard]] Table &at(Kind kind) { return kind == kUndescribed ? *undescribed_ : *described_[kind]; }

  std::vector<std::unique_ptr<Table>> described_; // by ordinal
  std::unique_ptr<Table> undescribed_;
  std::vector<Kind> used_;
  std::vector<Item> items_;
  std::uint64_t events_ = 0;
  unsigned clears_ = 0;
};

// All that it is made of outlives it; any thread.
class Rows {
public:
  using Kind = RowBatches::Kind;
  // `joins`: null for none. `numbers`: what ExportOptions say.
  Rows(const Clock &clock, const ExportSurvey &survey, const Decoders &decoders, const Joins *joins,
       FieldColumns fields, bool numbers);

  // Of a table: the common ones, those of fields, joined ones, last_columns().
  [[nodiscard]] std::vector<tables::Column> columns(Kind kind) const;
  [[nodiscard]] bool by_kind() const { return fields_.by_kind; }

  // Makes rows of events, some hundred at a time: a column of a table is filled for all of them before the
  // next one is, so that nothing is asked of each value that is the same for its column. One thread.
  class Adder {
  public:
    Adder(const Rows &rows, RowBatches &into) : rows_(rows), into_(into) {}
    Adder(const Adder &) = delete;
    Adder &operator=(const Adder &) = delete;
    // `schema`: the catalog's for this event, which stays where it is until finish().
    void add(const Event &event, const Schema *schema) {
      into_.items_.push_back({event, schema});
      if (into_.items_.size() == kMostItems) finish();
    }
    void finish();

  private:
    static constexpr std::size_t kMostItems = 256;
    void add_by_kind(std::vector<RowBatches::Item> &items);

    const Rows &rows_;
    RowBatches &into_;
    std::vector<RowBatches::Table *> met_;
    std::vector<const RowBatches::Item *> group_;
    Joins::Scratch joined_;
  };

private:
  using Item = RowBatches::Item;
  using Items = std::span<const Item *const>;
  class Sink;
  enum class Way : std::uint8_t {
    number,
    signed_number,
    port,
    boolean,
    single,  // f32
    doubled, // f64
    hex,
    text,
    list,
  };
  struct Place {
    std::uint16_t column = 0; // behind the common ones
    Way way = Way::text;
  };
  [[nodiscard]] tables::ColumnType type_of(const Field &field) const;
  [[nodiscard]] static Way way_of(const Field &field, tables::ColumnType type);

  RowBatches::Table &table_for(Kind kind, RowBatches &into) const;
  void add_rows(Items items, RowBatches::Table &table, Joins::Scratch &joined) const;
  void add_common(Items items, RowBatches::Table &table) const;
  // `row`: counted from 1.
  void add_fields(const Event &event, const Schema *schema, tables::Batch &batch, std::size_t row) const;
  void add_joined(const Event &event, const Schema *schema, tables::Batch &batch,
                  Joins::Scratch &joined) const;

  CommonColumns common_;
  const std::size_t first_field_ = common_columns().size(); // its column
  const ExportSurvey &survey_;
  const Decoders &decoders_;
  const Joins *joins_;
  FieldColumns fields_;
  JsonOptions json_; // of objects, arrays and structures
  struct Plan {
    std::vector<Place> places; // by index in Schema::fields; none if `object`
    std::size_t columns = 0;   // of fields
    bool object = false;       // one column has them all
  };
  [[nodiscard]] bool is_object(const Schema &schema) const {
    return !by_kind() || plans_[schema.ordinal].object;
  }
  [[nodiscard]] static bool add_fixed(const Plan &plan, const Decoder &decoder, Bytes payload,
                                      std::span<tables::ColumnData> columns);
  std::vector<Plan> plans_; // by ordinal
};

// All that the rows of a trace take; stays where it is.
struct TableRows {
  // One pass, and what the joins cost.
  static Result<std::unique_ptr<TableRows>> make(const etwrelog::Trace &trace, const ExportOptions &options,
                                                 FieldColumns fields, const RunOptions &run);

  ExportSurvey survey;
  std::optional<Selected> selected;
  std::optional<Decoders> decoders;
  std::optional<Joins> joins;
  std::optional<Rows> rows;
};

} // namespace etwrelog::pipeline
