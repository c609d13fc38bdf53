#include "archive/tally.hpp"

#include "archive/summary.hpp"
#include "filter/rules.hpp"
#include "passes/statistics.hpp"

#include <nlohmann/json.hpp>

// The record is described in stages/etlz/spec.md. Its version follows that of statistics_record, so that a
// reader of either tells them apart, and one that knows only the other counts anew.
namespace etwrelog::pipeline {

using nlohmann::json;

namespace {

constexpr unsigned kTallyVersion = 2;

} // namespace

void Tally::clear() {
  types_.clear();
  names_ = {};
  stacks_ = {};
  whole_ = true;
}

void Tally::add(Bytes segment, std::span<const etlz::Part> parts, const etlz::SegmentCoder *coder) {
  for (std::size_t i = 0; whole_ && i < parts.size(); ++i) {
    const etlz::Part &part = parts[i];
    const std::optional<Bytes> events =
        part.buffer ? events_of(segment.subspan(part.at, part.size),
                                coder != nullptr ? coder->events(i) : Bytes(), decoded_)
                    : std::nullopt;
    whole_ = events && for_each_event(*events, [this](const EventView &event, std::int64_t, std::uint32_t) {
               count(event);
             });
  }
}

void Tally::count(const EventView &event) {
  types_.add(event);
  if (schema::EventNames::teaches(event)) names_.learn(event);
  if (!event.has_hook()) return;
  const filter::HookRule &rule = filter::rule_for(event.hook(), event.version());
  switch (rule.scope) {
  case kernel::Scope::stack_walk: ++stacks_.walks; break;
  case kernel::Scope::stack_reference:
    ++(event.hook() == kernel::kHookStackKeyKernel ? stacks_.kernel_references : stacks_.user_references);
    return;
  case kernel::Scope::stack_definition: break;
  default: return;
  }
  const std::size_t at = rule.offsets(event.pointer_size()).frames, size = event.payload().size();
  if (size >= at) stacks_.frames += (size - at) / event.pointer_size();
}

void Tally::merge(const Tally &later) {
  types_.merge(later.types_);
  names_.merge(later.names_);
  stacks_.walks += later.stacks_.walks;
  stacks_.kernel_references += later.stacks_.kernel_references;
  stacks_.user_references += later.stacks_.user_references;
  stacks_.frames += later.stacks_.frames;
  whole_ = whole_ && later.whole_;
}

std::vector<std::uint8_t> Tally::record(const Session &session) const {
  if (!whole_) return {};
  const schema::EventNames built_in;
  json types = json::array();
  for (const schema::TypeCount &row : types_.rows()) {
    json columns = {static_cast<unsigned>(row.type.family),
                    row.type.version,
                    row.type.id,
                    row.type.guid == Guid{} ? json(0) : json(to_string(row.type.guid)),
                    row.events,
                    row.bytes};
    if (std::string name = names_.name(row.type); name != built_in.name(row.type))
      columns.push_back(std::move(name));
    types.push_back(std::move(columns));
  }
  const std::string text = json{
      {"record_version", kTallyVersion},
      {"recorded_by", json::parse(statistics_record(Statistics{}, session)).at("recorded_by")},
      {"stacks", {stacks_.walks, stacks_.kernel_references, stacks_.user_references, stacks_.frames}},
      {"types",
       std::move(types)}}.dump(-1, ' ', false, json::error_handler_t::replace);
  return {text.begin(), text.end()};
}

std::optional<Statistics> read_tally(std::string_view record) {
  // Turned into an integer, a number that is none may be out of range.
  const auto integers_only = [](int, json::parse_event_t, const json &value) {
    if (value.is_number_float()) throw std::invalid_argument("a number that is no integer");
    return true;
  };
  try {
    const json object = json::parse(record, integers_only);
    if (object.at("record_version") != kTallyVersion) return std::nullopt;
    Statistics s;
    const schema::EventNames built_in;
    for (const json &columns : object.at("types")) {
      TypeStatistics &row = s.types.emplace_back();
      const auto family = columns.at(0).get<unsigned>();
      const std::optional<Guid> guid =
          columns.at(3).is_string() ? parse_guid(columns.at(3).get<std::string>()) : Guid{};
      if (family > static_cast<unsigned>(Family::other) || !guid) return std::nullopt;
      row.type = {.family = static_cast<Family>(family),
                  .version = columns.at(1).get<decltype(row.type.version)>(),
                  .id = columns.at(2).get<decltype(row.type.id)>(),
                  .guid = *guid};
      row.events = columns.at(4).get<std::uint64_t>();
      row.bytes = columns.at(5).get<std::uint64_t>();
      row.name = columns.size() > 6 ? columns.at(6).get<std::string>() : built_in.name(row.type);
      s.events += row.events;
      s.event_bytes += row.bytes;
    }
    const auto stacks = object.at("stacks").get<std::array<std::uint64_t, 4>>();
    s.stacks.walks = stacks[0];
    s.stacks.kernel_references = stacks[1];
    s.stacks.user_references = stacks[2];
    s.stacks.frames = stacks[3];
    return s;
  } catch (const std::exception &) { // of another version, or made by hand
    return std::nullopt;
  }
}

} // namespace etwrelog::pipeline
