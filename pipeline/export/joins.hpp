// Columns that an event gets from other events: the same for lines and tables.
#pragma once

#include "etwrelog/export.hpp"
#include "etwrelog/symbols.hpp"
#include "export/decoders.hpp"
#include "export/known.hpp"
#include "tables/table.hpp"

namespace etwrelog::pipeline {

class Joins {
public:
  // `survey` and the decoders of its schemas outlive this.
  // Of the options `joins` and `symbols`, which outlives this, too.
  static Result<Joins> make(const etwrelog::Trace &trace, const ExportSurvey &survey,
                            const Decoders &decoders, const ExportOptions &options, const RunOptions &run);
  // In front of the names of columns in records of OpenTelemetry, beside the fields of events.
  static constexpr std::string_view kOtelPrefix = "etw.";

  struct Column {
    std::string name;
    tables::ColumnType type = tables::ColumnType::text;
    bool json = false; // its text is a list or an object in JSON
  };
  [[nodiscard]] const std::vector<Column> &columns() const { return columns_; }
  [[nodiscard]] std::span<const std::string> problems() const { return known_.problems(); }

  // Memory of a caller: one for each thread.
  struct Scratch {
    std::vector<std::string> texts; // by column
    std::vector<std::optional<std::int64_t>> numbers;
    std::vector<bool> present;
    std::vector<std::uint64_t> frames;
    // Texts of frames that came last, by their addresses: most come again soon.
    struct FrameText {
      Knowledge::Frame frame;
      std::string text; // in JSON; empty: of none yet
    };
    std::vector<FrameText> frame_texts;
    std::unordered_map<std::uint64_t, std::shared_ptr<const ModuleSymbols>> symbols; // by machine and image
    SymbolNames names;
    std::string text;
    std::vector<FieldValue> values;
  };
  // Fills `scratch` with what the event gets.
  void look_up(const Event &event, const Schema *schema, Scratch &scratch) const;
  // As members of an object that has some: ,"file":"..."; with something in front of the names.
  void append_json(const Event &event, const Schema *schema, Scratch &scratch, std::string_view prefix,
                   std::string &out) const;

private:
  void files(const Event &event, const Schema &schema, std::size_t column, Scratch &scratch) const;
  void modules(const Event &event, std::uint32_t process, const Schema &schema, std::size_t column,
               Scratch &scratch) const;
  const ModuleSymbols *symbols_of(const Knowledge::Frame &frame, Scratch &scratch) const;
  const std::string &text_of(const Knowledge::Frame &frame, Scratch &scratch) const;
  void stack(const Event &event, const Knowledge::Owner &owner, std::size_t column, Scratch &scratch) const;
  [[nodiscard]] std::span<const FieldValue> decode(const Event &event, const Schema &schema,
                                                   Scratch &scratch) const;

  ExportJoins wanted_;
  SymbolResolver *symbols_ = nullptr;
  Knowledge known_;
  std::vector<Column> columns_;
  struct Kind { // what its fields refer to: indices of top-level fields
    std::vector<std::uint16_t> files, addresses;
  };
  std::vector<Kind> kinds_; // by ordinal
  const Decoders *decoders_ = nullptr;
};

} // namespace etwrelog::pipeline
