#include "archive/tally.hpp"

#include "archive/segments.hpp"
#include "archive/summary.hpp"
#include "base/json.hpp"
#include "base/read_ahead.hpp"
#include "etwrelog/provider_events.hpp"
#include "filter/rules.hpp"
#include "passes/statistics.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

using nlohmann::json;

namespace {

constexpr unsigned kJsonTally = 2; // record_version

} // namespace

void Tally::clear() {
  types_.clear();
  names_ = {};
  stacks_ = {};
  owners_ = {};
  whole_ = true;
}

void Tally::add(Bytes segment, std::span<const etlz::Part> parts, const etlz::SegmentCoder *coder) {
  segment_.clear(static_cast<std::uint32_t>(std::ranges::count(parts, true, &etlz::Part::buffer)));
  for (std::size_t i = 0; whole_ && i < parts.size(); ++i) {
    const etlz::Part &part = parts[i];
    if (part.buffer) segment_.begin_buffer(format::load_buffer_header(segment.data() + part.at).processor());
    const std::optional<Bytes> events =
        part.buffer ? events_of(segment.subspan(part.at, part.size),
                                coder != nullptr ? coder->events(i) : Bytes(), decoded_)
                    : std::nullopt;
    whole_ =
        events && for_each_event(*events, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
          base::read_ahead(*events, at, at + event.size());
          count(event, time);
        });
  }
}

void Tally::count(const EventView &event, std::int64_t time) {
  types_.add(event);
  segment_.count(event, time);
  if (schema::EventNames::teaches(event)) names_.learn(event, time);
  const filter::HookRule *const found = filter::rule_of(event);
  if (found == nullptr) return;
  const filter::HookRule &rule = *found;
  switch (rule.scope) {
  case kernel::Scope::stack_walk: ++stacks_.walks; break;
  case kernel::Scope::stack_reference:
    ++(rule.hook == kernel::kHookStackKeyKernel ? stacks_.kernel_references : stacks_.user_references);
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
  owners_.append(later.segment_);
  whole_ = whole_ && later.whole_;
}

Result<std::vector<std::uint8_t>> Tally::record(const Session &session, const PackedFile &file) {
  if (!whole_) return std::vector<std::uint8_t>();
  const schema::EventNames built_in;
  names_.settle();
  TallyRecord record;
  record.session = session;
  ETWRELOG_TRY_LET(processes, owners_.by_name(file.input, file.one_stream, file.options.run));
  record.processes = std::move(processes);
  record.statistics.stacks = stacks_;
  for (const schema::TypeCount &row : types_.rows()) {
    TypeStatistics &type = record.statistics.types.emplace_back();
    type.type = row.type;
    type.events = row.events;
    type.bytes = row.bytes;
    if (std::string name = names_.name(row.type); name != built_in.name(row.type))
      type.name = std::move(name);
  }
  return write_tally(std::move(record));
}

namespace {

// As versions before wrote it, as JSON.
std::optional<TallyRecord> read_json_tally(std::string_view text) {
  try {
    const json object = base::parse_whole_numbers(text);
    if (object.at("record_version") != kJsonTally) return std::nullopt;
    TallyRecord record;
    Statistics &s = record.statistics;
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
      if (columns.size() > 6) row.name = columns.at(6).get<std::string>();
    }
    const auto stacks = object.at("stacks").get<std::array<std::uint64_t, 4>>();
    s.stacks.walks = stacks[0];
    s.stacks.kernel_references = stacks[1];
    s.stacks.user_references = stacks[2];
    s.stacks.frames = stacks[3];
    record.session = read_session_record(text).value_or(Session{});
    return record;
  } catch (const std::exception &) { // of another version, or made by hand
    return std::nullopt;
  }
}

// Whether rules 0 saw something else in such events.
bool is_news(const EventType &type) {
  switch (type.family) {
  case Family::event: return type.guid == provider::kKernelProcess || type.guid == provider::kKernelNetwork;
  case Family::hook: return filter::rule_for(type.id, type.version).scope == kernel::Scope::key_name;
  case Family::classic: { // kernel events under such headers were by the header, as those of others are
    if (type.guid == format::kImageIdGuid || filter::describes_system(type.guid)) return false;
    const auto hook = kernel::hook_of_class(type.guid, static_cast<std::uint8_t>(type.id));
    return hook && filter::rule_for(*hook, type.version).scope != kernel::Scope::header;
  }
  default: return false;
  }
}

} // namespace

std::optional<TallyRecord> read_tally(Bytes bytes) {
  const bool text = !bytes.empty() && bytes[0] == '{';
  std::optional<TallyRecord> record =
      text ? read_json_tally({reinterpret_cast<const char *>(bytes.data()), bytes.size()})
           : read_coded_tally(bytes);
  if (!record) return std::nullopt;
  const schema::EventNames built_in;
  Statistics &s = record->statistics;
  for (TypeStatistics &row : s.types) {
    if (row.name.empty()) row.name = built_in.name(row.type);
    s.events += row.events;
    s.event_bytes += row.bytes;
  }
  return record;
}

bool is_outdated(std::uint32_t rules, Bytes record) {
  if (rules >= etlz::kIndexRules) return rules > etlz::kIndexRules;
  const auto has_none = [](const Statistics &s) {
    return std::ranges::none_of(s.types, [](const TypeStatistics &row) { return is_news(row.type); });
  };
  if (const auto counts =
          read_statistics_record({reinterpret_cast<const char *>(record.data()), record.size()}))
    return !has_none(*counts);
  const std::optional<TallyRecord> tally = read_tally(record);
  return !tally || !has_none(tally->statistics);
}

void forget_outdated(ArchiveIndex &index) {
  if (!is_outdated(index.footer.rules, index.facts)) return;
  index.facts.clear();
  for (etlz::IndexEntry &entry : index.segments)
    entry.summary = {};
}

} // namespace etwrelog::pipeline
