#include "etwrelog/export.hpp"

#include "api/reading.hpp"
#include "base/errors.hpp"
#include "etwrelog/clr_events.hpp"
#include "etwrelog/kernel_events.hpp"
#include "export/joins.hpp"
#include "export/json_lines.hpp"
#include "export/selected.hpp"
#include "export/survey.hpp"
#include "export/verify.hpp"
#include "filter/filter.hpp"
#include "schema/type_counts.hpp"

#include <algorithm>
#include <bitset>
#include <functional>

namespace etwrelog {
namespace {

using pipeline::JsonLines;

// Counts by kind: of decoded events by the ordinal of their schema, of others by what their header says.
struct Tallies {
  std::vector<pipeline::KindTally> decoded;
  std::vector<pipeline::VerifyTally> verified; // by ordinal
  schema::TypeCounts raw;
  std::vector<std::bitset<256>> raw_opcodes; // by row of `raw`
  std::uint64_t events = 0;

  void clear() {
    decoded.clear();
    verified.clear();
    raw.clear();
    raw_opcodes.clear();
    events = 0;
  }
  void add(const EventView &event, const JsonLines::Outcome &outcome) {
    ++events;
    const std::uint64_t payload = event.payload().size();
    if (outcome.schema == nullptr) {
      schema::TypeCount &count = raw.at(schema::type_of(event));
      ++count.events;
      count.bytes += payload;
      opcodes_of(count).set(event.opcode());
      return;
    }
    const std::size_t ordinal = outcome.schema->ordinal;
    if (ordinal >= decoded.size()) decoded.resize(ordinal + 1);
    pipeline::KindTally &tally = decoded[ordinal];
    tally.schema = outcome.schema;
    ++tally.events;
    tally.payload_bytes += payload;
    tally.uncovered += payload - std::min<std::uint64_t>(outcome.covered, payload);
    tally.truncated += outcome.truncated ? 1 : 0;
    tally.version = std::max(tally.version, event.version());
    tally.opcodes.set(event.opcode());
  }
  void merge(const Tallies &other) {
    events += other.events;
    raw.merge(other.raw);
    for (std::size_t i = 0; i < other.raw_opcodes.size(); ++i)
      opcodes_of(raw.at(other.raw.rows()[i].type)) |= other.raw_opcodes[i];
    if (verified.size() < other.verified.size()) verified.resize(other.verified.size());
    for (std::size_t i = 0; i < other.verified.size(); ++i)
      verified[i].merge(other.verified[i]);
    if (decoded.size() < other.decoded.size()) decoded.resize(other.decoded.size());
    for (std::size_t i = 0; i < other.decoded.size(); ++i) {
      const pipeline::KindTally &from = other.decoded[i];
      if (from.schema == nullptr) continue;
      decoded[i].schema = from.schema;
      decoded[i].events += from.events;
      decoded[i].payload_bytes += from.payload_bytes;
      decoded[i].uncovered += from.uncovered;
      decoded[i].truncated += from.truncated;
      decoded[i].version = std::max(decoded[i].version, from.version);
      decoded[i].opcodes |= from.opcodes;
    }
  }

private:
  std::bitset<256> &opcodes_of(const schema::TypeCount &row) {
    raw_opcodes.resize(raw.rows().size());
    return raw_opcodes[static_cast<std::size_t>(&row - raw.rows().data())];
  }
};

struct Lines {
  std::string text;
  Tallies tallies;
  void clear() {
    text.clear();
    tallies.clear();
  }
};

std::string name_of(const SchemaCatalog &catalog, const Schema &schema) {
  std::string_view provider = schema.provider_name;
  if (provider.empty()) provider = catalog.provider_name(schema.provider);
  return (provider.empty() ? to_string(schema.provider) : std::string(provider)) + "/" +
         std::string(schema.name);
}

// Kinds that nobody describes, by what their headers say.
std::string name_of(const SchemaCatalog &catalog, const schema::EventType &type,
                    const std::vector<std::uint8_t> &opcodes) {
  using schema::Family;
  if (type.family == Family::hook) {
    const auto group = kernel::group_name(static_cast<std::uint8_t>(type.id >> 8));
    return "Windows Kernel/" +
           (group.empty() ? "Group(" + std::to_string(type.id >> 8) + ")" : std::string(group)) + "/Opcode(" +
           std::to_string(type.id & 0xFF) + ")";
  }
  const std::string_view known = catalog.provider_name(type.guid);
  const std::string provider = known.empty() ? to_string(type.guid) : std::string(known);
  const std::string number = std::string("(").append(std::to_string(type.id)).append(")");
  switch (type.family) {
  case Family::event: {
    if (type.id == format::kManifestEventId &&
        opcodes == std::vector<std::uint8_t>{static_cast<std::uint8_t>(format::kManifestOpcode)})
      return provider + "/ManifestData"; // as each event is called
    const std::string_view name = clr::event_name(type.guid, static_cast<std::uint16_t>(type.id));
    return provider + (name.empty() ? "/EventID" + number : "/" + std::string(name));
  }
  case Family::classic: return provider + "/Opcode" + number;
  case Family::message: return "WPP/" + provider + "/Message" + number;
  default: return "HeaderType" + number;
  }
}

void set_opcodes(ExportKind &kind, const std::bitset<256> &opcodes) {
  for (std::size_t i = 0; i < opcodes.size(); ++i)
    if (opcodes[i]) kind.opcodes.push_back(static_cast<std::uint8_t>(i));
  if (!kind.opcodes.empty()) kind.opcode = kind.opcodes.front();
}

std::vector<ExportKind> kinds_of(const SchemaCatalog &catalog, const Tallies &tallies) {
  std::vector<ExportKind> kinds;
  for (const pipeline::KindTally &tally : tallies.decoded) {
    if (tally.schema == nullptr) continue;
    const Schema &s = *tally.schema;
    kinds.push_back({name_of(catalog, s), s.provider, s.id, tally.version, s.opcode, &s, s.origin,
                     tally.events, tally.payload_bytes, tally.uncovered, tally.truncated});
    set_opcodes(kinds.back(), tally.opcodes);
    if (s.ordinal >= tallies.verified.size()) continue;
    const pipeline::VerifyTally &verified = tallies.verified[s.ordinal];
    kinds.back().verified = verified.events, kinds.back().verified_bytes = verified.bytes;
    for (const auto &[why, events] : verified.left_out)
      kinds.back().not_verified.emplace_back(why, events);
  }
  for (std::size_t i = 0; i < tallies.raw.rows().size(); ++i) {
    const schema::TypeCount &count = tallies.raw.rows()[i];
    ExportKind kind;
    kind.provider =
        count.type.family == schema::Family::hook ? kernel::class_guid(count.type.id) : count.type.guid;
    const bool by_opcode =
        count.type.family == schema::Family::hook || count.type.family == schema::Family::classic;
    kind.id = by_opcode ? 0 : count.type.id;
    set_opcodes(kind, tallies.raw_opcodes[i]);
    kind.name = name_of(catalog, count.type, kind.opcodes);
    kind.version = count.type.version;
    kind.events = count.events;
    kind.payload_bytes = kind.uncovered_bytes = count.bytes;
    if (!tallies.verified.empty()) kind.not_verified.emplace_back("nobody describes it", count.events);
    kinds.push_back(std::move(kind));
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const ExportKind &a, const ExportKind &b) {
    return a.events != b.events ? a.events > b.events : a.name < b.name;
  });
  return kinds;
}

// Formats what is selected, batch by batch, and hands the text on in order.
Result<ExportReport> run_export(const Trace &trace, const ExportOptions &options, Order order, bool with_text,
                                const std::function<Result<void>(std::string_view)> &write,
                                const RunOptions &run) {
  if (options.profile > ExportProfile::timeline)
    return base::ErrorBuilder(ErrorKind::usage, "there is no such profile of an export")
        .found(std::to_string(static_cast<unsigned>(options.profile)));
  ETWRELOG_TRY_LET(survey, pipeline::survey_for_export(trace, options.schemas, run, options.selection));
  ETWRELOG_TRY_LET(selected, pipeline::Selected::make(trace, options.selection, options.where, survey, run));
  JsonLines::Options how;
  how.json = {.maps = options.maps, .numbers = options.numbers};
  how.messages = options.messages, how.profile = options.profile;
  const pipeline::Decoders decoders(survey.schemas);
  std::optional<pipeline::Joins> joins;
  const std::string_view prefix =
      options.profile == ExportProfile::otel ? pipeline::Joins::kOtelPrefix : std::string_view();
  if (with_text && options.joins.any()) {
    ETWRELOG_TRY_LET(made, pipeline::Joins::make(trace, survey, decoders, options, run));
    joins = std::move(made);
    for (const pipeline::Joins::Column &column : joins->columns())
      how.joined.push_back(std::string(prefix) + column.name);
  }
  const JsonLines lines(survey, decoders, trace.clock(), how);
  Result<Lines> done = selected.fold<Lines>(
      trace,
      [&](Lines &part, EventBatch &batch) {
        JsonLines::Outcome outcome;
        pipeline::Joins::Scratch joined;
        for (const Event &event : batch) {
          lines.format(event, {event.time(), event.processor(), event.machine()}, part.text, outcome);
          if (joins) {
            part.text.resize(part.text.size() - lines.end().size());
            joins->append_json(event, outcome.schema, joined, prefix, part.text);
            part.text += lines.end();
          }
          part.tallies.add(event, outcome);
          if (!with_text) part.text.clear();
        }
      },
      [&](Lines &total, Lines &part) -> Result<void> {
        total.tallies.merge(part.tallies);
        return write(part.text);
      },
      order, run);
  if (!done) return std::move(done).error();
  ExportReport report;
  report.events = done->tallies.events;
  report.kinds = kinds_of(survey.schemas, done->tallies);
  const auto problems = survey.schemas.problems();
  report.problems.assign(problems.begin(), problems.end());
  if (joins)
    report.problems.insert(report.problems.end(), joins->problems().begin(), joins->problems().end());
  report.schemas = std::move(survey.schemas);
  return report;
}

} // namespace

Result<ExportReport> export_json(const Trace &trace, const Output &output, const ExportOptions &options,
                                 const RunOptions &run) {
  ETWRELOG_TRY_LET(stream, pipeline::open_output(trace, output));
  Result<ExportReport> report = run_export(
      trace, options, Order::time, true, [&](std::string_view text) { return stream.write(text); }, run);
  if (!report) return report;
  report->bytes = stream.size();
  ETWRELOG_TRY(stream.commit());
  return report;
}

Result<ExportReport> describe_kinds(const Trace &trace, const ExportOptions &options, const RunOptions &run) {
  return run_export(
      trace, options, Order::file, false, [](std::string_view) { return Result<void>(); }, run);
}

Result<ExportReport> verify_decoding(const Trace &trace, const ExportOptions &options,
                                     const RunOptions &run) {
  ETWRELOG_TRY_LET(survey, pipeline::survey_for_export(trace, options.schemas, run, options.selection));
  ETWRELOG_TRY_LET(selected, pipeline::Selected::make(trace, options.selection, options.where, survey, run));
  const pipeline::Decoders decoders(survey.schemas);
  struct Part {
    Tallies tallies;
    std::optional<Error> failed;
    void clear() { *this = {}; }
  };
  auto map = [&](Part &part, EventBatch &batch) {
    part.tallies.verified.resize(survey.schemas.all().size());
    pipeline::Verifier::Scratch memory;
    for (const Event &event : batch) {
      JsonLines::Outcome outcome;
      if (const Schema *schema = survey.schemas.find(event)) {
        DecodedSize size;
        if (Result<void> same = pipeline::Verifier::check(trace, event, decoders.of(event, *schema), memory,
                                                          size, part.tallies.verified[schema->ordinal]);
            !same) {
          part.failed = std::move(same).error();
          return;
        }
        outcome = {schema, size.covered, size.truncated};
      }
      part.tallies.add(event, outcome);
    }
  };
  auto merge = [](Part &total, Part &part) -> Result<void> {
    total.tallies.merge(part.tallies);
    return part.failed ? Result<void>(*std::move(part.failed)) : Result<void>();
  };
  ETWRELOG_TRY_LET(done, selected.fold<Part>(trace, map, merge, Order::file, run));
  ExportReport report;
  report.events = done.tallies.events;
  report.kinds = kinds_of(survey.schemas, done.tallies);
  const auto problems = survey.schemas.problems();
  report.problems.assign(problems.begin(), problems.end());
  report.schemas = std::move(survey.schemas);
  return report;
}

Result<SchemaCatalog> collect_schemas(const Trace &trace, const SchemaCatalog &known, const RunOptions &run) {
  ETWRELOG_TRY_LET(survey, pipeline::survey_for_export(trace, known, run));
  return std::move(survey.schemas);
}

} // namespace etwrelog
