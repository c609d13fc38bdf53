#include "export/survey.hpp"

#include "api/reading.hpp"
#include "schema/manifest_pieces.hpp"

#include <algorithm>

namespace etwrelog::pipeline {
namespace {

struct SurveyPart {
  std::vector<EventCopy> schemas;
  SchemaCatalog seen; // what this batch has shown already: most TraceLogging events repeat their metadata
  schema::ManifestPieces pieces;
  std::vector<filter::LifetimeRecords> records; // by machine

  void clear() {
    schemas.clear();
    seen = {};
    pieces.clear();
    for (filter::LifetimeRecords &of_machine : records)
      of_machine.clear();
  }
};

} // namespace

void ExportSurvey::add(filter::Lifetimes of_machine) {
  std::vector<std::uint32_t> &only = only_.emplace_back();
  const auto processes = of_machine.processes();
  for (std::uint32_t i = 0; i < processes.size(); ++i) {
    const std::uint32_t pid = processes[i].pid;
    if (pid % 4 != 0 || pid / 4 >= kMostPids) continue;
    if (pid / 4 >= only.size()) only.resize(pid / 4 + 1u, kMany); // what is none is looked up
    const bool seen = i != 0 && processes[i - 1].pid == pid,
               again = i + 1 < processes.size() && processes[i + 1].pid == pid;
    only[pid / 4] = seen || again ? kMany : processes[i].image_name.empty() ? kNone : i;
  }
  lifetimes.push_back(std::move(of_machine));
}

std::uint32_t ExportSurvey::look_up_process(std::uint32_t machine, std::uint32_t pid,
                                            std::int64_t time) const {
  const auto found = pid == kUnknownId ? std::nullopt : lifetimes[machine].process_at(pid, time);
  if (!found || lifetimes[machine].processes()[*found].image_name.empty()) return kNone;
  return *found;
}

Result<ExportSurvey> survey_for_export(const etwrelog::Trace &trace, const SchemaCatalog &known,
                                       const RunOptions &run, const Selection &selection) {
  std::size_t machines = 1;
  for (const SourceInfo &source : trace.sources())
    machines = std::max<std::size_t>(machines, source.machine + 1);
  ExportSurvey survey;
  survey.schemas = known;
  std::vector<filter::LifetimeRecords> all(machines);
  schema::ManifestPieces pieces;
  Query query;
  query.from = selection.from, query.to = selection.to;
  query.with_state = true;
  Result<SurveyPart> done = read_fold<SurveyPart>(
      trace,
      [&](SurveyPart &part, EventBatch &batch) {
        part.records.resize(machines);
        for (const Event &event : batch) {
          // Who ran on which processor does not matter here, so that all buffers may be the first.
          part.records[event.machine()].add(event, event.time(), 0);
          if (!SchemaCatalog::teaches(event)) continue;
          if (part.pieces.take(event, event.time(), event.machine()) || !part.seen.learns(event)) continue;
          part.schemas.emplace_back(event);
          if (event.has_items()) part.seen.learn(event);
        }
      },
      [&](SurveyPart &, SurveyPart &part) {
        for (const EventCopy &copy : part.schemas)
          survey.schemas.learn(copy.view());
        pieces.merge(part.pieces);
        for (std::size_t i = 0; i < machines; ++i) {
          part.records[i].switches.clear();
          all[i].append(std::move(part.records[i]));
        }
      },
      query, {.state_from_index = true}, run);
  if (!done) return std::move(done).error();
  schema::learn_pieces(survey.schemas, pieces);
  const std::uint16_t processors[1] = {0};
  for (filter::LifetimeRecords &records : all)
    survey.add(filter::Lifetimes(std::move(records), processors, true));
  return survey;
}

} // namespace etwrelog::pipeline
