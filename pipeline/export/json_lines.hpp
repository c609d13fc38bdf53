// One event as one line of JSON. The order of keys is fixed; what an event does not have is null or absent,
// never made up. What no schema describes is there as hex.
#pragma once

#include "etwrelog/clock.hpp"
#include "etwrelog/export.hpp"
#include "export/decoders.hpp"
#include "export/survey.hpp"

#include <bitset>
#include <string>
#include <vector>

namespace etwrelog::pipeline {

// How the events of one kind were decoded.
struct KindTally {
  const Schema *schema = nullptr; // null: raw
  std::uint64_t events = 0, payload_bytes = 0;
  std::uint64_t uncovered = 0; // bytes of payloads that no field covers
  std::uint64_t truncated = 0; // events whose payload ends inside a field
  std::uint16_t version = 0;   // the latest that events have; a layout may serve several
  std::bitset<256> opcodes;    // that they have
};

// What of a name stands beside every event: all of any that Windows gives. A hostile trace can have one of 64
// KiB and millions of small events with it. (The event that gives a process its name shows the whole.)
[[nodiscard]] std::string_view shown_name(std::string_view utf8);

// What provider and event are called, for people: GUID and numbers where nothing is known. `event` may be
// null where there is a schema.
void names_of(const SchemaCatalog &catalog, const EventView *event, const Schema *schema,
              std::string &provider, std::string &name);

// Made once for an export; format() is called by any number of threads at once.
class JsonLines {
public:
  struct Options {
    JsonOptions json;
    bool messages = false; // texts of events that have one
    ExportProfile profile = ExportProfile::etwrelog;
    std::vector<std::string> joined{}; // names of members that the caller adds
  };
  // The survey and the decoders of its schemas outlive this.
  JsonLines(const ExportSurvey &survey, const Decoders &decoders, const Clock &clock, const Options &options);

  // What decoding an event gave.
  struct Outcome {
    const Schema *schema = nullptr; // null: raw
    std::size_t covered = 0;        // bytes of the payload
    bool truncated = false;
    std::size_t fields_end = 0; // where in the text its fields end: behind the closing sign
  };
  // Where and when an event was.
  struct Context {
    std::int64_t time = 0; // raw
    std::uint16_t processor = 0;
    std::uint32_t machine = 0;
  };
  // Appends the line of an event, up to and with end().
  void format(const EventView &event, const Context &context, std::string &out, Outcome &outcome) const;
  // How every line ends: further members stand in front of it.
  [[nodiscard]] std::string_view end() const {
    return options_.profile == ExportProfile::otel ? "}}\n" : "}\n";
  }

private:
  void plain(const EventView &event, const Context &context, const Schema *schema, std::string &out,
             Outcome &outcome) const;
  void otel(const EventView &event, const Context &context, const Schema *schema, std::string &out,
            Outcome &outcome) const;
  void timeline(const EventView &event, const Context &context, const Schema *schema, std::string &out,
                Outcome &outcome) const;

  [[nodiscard]] std::string_view process(const EventView &event, const Context &context) const; // JSON
  void append_names(const EventView &event, std::string &out) const; // without a schema
  // The object of fields, or null; then what no field covers.
  void fields(const EventView &event, const Schema *schema, std::string &out, Outcome &outcome) const;
  // The fields as further members of an object that has some.
  void members(const EventView &event, const Schema *schema, std::string &out, Outcome &outcome) const;
  [[nodiscard]] std::string message(const EventView &event, const Schema &schema) const;

  const ExportSurvey &survey_;
  const Decoders &decoders_;
  Clock clock_;
  Options options_;
  std::vector<std::string> names_; // by ordinal: ,"provider":"..","provider_id":"..","event":".."
  std::vector<std::vector<std::string>> processes_; // names as JSON, by machine and index in processes()
  // By ordinal: keys of fields that stand beside names of ours, and what they are then. JSON, with quotes.
  using Renamed = std::vector<std::pair<std::string, std::string>>;
  std::vector<Renamed> renamed_;
};

} // namespace etwrelog::pipeline
