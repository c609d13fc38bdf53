// One event as one line of JSON. The order of keys is fixed; what an event does not have is null or absent,
// never made up. What no schema describes is there as hex.
#pragma once

#include "etwrelog/clock.hpp"
#include "etwrelog/schema.hpp"
#include "filter/lifetimes.hpp"

#include <string>
#include <vector>

namespace etwrelog::pipeline {

// How the events of one kind were decoded.
struct KindTally {
  const Schema *schema = nullptr; // null: raw
  std::uint64_t events = 0, payload_bytes = 0;
  std::uint64_t uncovered = 0; // bytes of payloads that no field covers
  std::uint64_t truncated = 0; // events whose payload ends inside a field
};

// Made once for an export; format() is called by any number of threads at once.
class JsonLines {
public:
  struct Options {
    JsonOptions json;
    bool messages = false; // texts of events that have one
  };
  // Catalog and lifetimes outlive this.
  JsonLines(const SchemaCatalog &catalog, const Clock &clock, const filter::Lifetimes &lifetimes,
            const Options &options);
  ~JsonLines();

  // Appends the line of an event and its line feed.
  void format(const EventView &event, std::int64_t time, std::uint16_t processor, std::string &out) const;
  // The same, and what decoding it gave.
  struct Outcome {
    const Schema *schema = nullptr;
    std::size_t covered = 0;
    bool truncated = false;
  };
  void format(const EventView &event, std::int64_t time, std::uint16_t processor, std::string &out,
              Outcome &outcome) const;

private:
  struct Kind;
  void head(const EventView &event, std::int64_t time, std::uint16_t processor, std::string &out) const;
  void name(const EventView &event, const Schema *schema, std::string &out) const;
  void fields(const EventView &event, const Schema &schema, std::string &out, Outcome &outcome) const;

  const SchemaCatalog &catalog_;
  Clock clock_;
  const filter::Lifetimes &lifetimes_;
  Options options_;
  std::vector<Kind> kinds_;            // by ordinal
  std::vector<std::string> processes_; // names as JSON, by index in Lifetimes::processes()
};

} // namespace etwrelog::pipeline
