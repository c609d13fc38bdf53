#include "etwrelog/export.hpp"
#include "handles.hpp"

namespace etwrelog::c {
namespace {

etwr_error *bad_text(Option option, const char *what, const char *expected, const char *found) {
  Error error;
  error.kind = ErrorKind::usage;
  error.option = option;
  error.what = what;
  error.expected = expected;
  error.found = found;
  return make_error(std::move(error));
}

bool any_null(const char *const *texts, std::size_t count) {
  for (std::size_t i = 0; texts != nullptr && i < count; ++i)
    if (texts[i] == nullptr) return true;
  return false;
}

} // namespace

std::vector<Guid> guids_of(const std::uint8_t *from, std::size_t count, bool &good) {
  std::vector<Guid> guids;
  if (count != 0 && from == nullptr) good = false;
  for (std::size_t i = 0; from != nullptr && i < count; ++i)
    guids.push_back(load_guid(from + 16 * i));
  return guids;
}

etwr_error *read_moment(const char *text, std::optional<Moment> &moment) {
  if (text == nullptr) return nullptr;
  moment = parse_moment(text);
  return moment ? nullptr : bad_text(Option::none, "a time", "seconds such as 12.5s, or a UTC time", text);
}

etwr_error *read_selection(const etwr_selection *given, const Trace &trace, const SchemaCatalog &known,
                           const RunOptions &run, Selection &selection) {
  const etwr_selection asked = copy_of(given);
  if (any_null(asked.processes, asked.process_count) || any_null(asked.exclude, asked.exclude_count) ||
      any_null(asked.providers, asked.provider_count) || any_null(asked.event_names, asked.event_name_count))
    return usage("etwr_selection: a text is NULL");
  bool good = true;
  selection.processes = list_of<std::string>(asked.processes, asked.process_count, good);
  selection.children = asked.children != 0;
  selection.keep_system = asked.keep_system != 0;
  if (asked.command_line != nullptr) selection.command_line = asked.command_line;
  selection.exclude = list_of<std::string>(asked.exclude, asked.exclude_count, good);
  for (const std::string &text : list_of<std::string>(asked.providers, asked.provider_count, good)) {
    const std::optional<ProviderSelection> provider = parse_provider(text);
    if (!provider)
      return bad_text(Option::providers, "a provider", "GUID or known name, then :keywords:level",
                      text.c_str());
    selection.providers.push_back(*provider);
  }
  selection.events = list_of<std::uint32_t>(asked.events, asked.event_count, good);
  selection.processors = list_of<std::uint16_t>(asked.processors, asked.processor_count, good);
  selection.channels = list_of<std::uint8_t>(asked.channels, asked.channel_count, good);
  selection.tasks = list_of<std::uint16_t>(asked.tasks, asked.task_count, good);
  selection.opcodes = list_of<std::uint8_t>(asked.opcodes, asked.opcode_count, good);
  selection.activities = guids_of(asked.activities, asked.activity_count, good);
  const auto names = list_of<std::string>(asked.event_names, asked.event_name_count, good);
  if (!good) return usage("etwr_selection: a count without a list");
  if (etwr_error *error = read_moment(asked.from, selection.from)) return error;
  if (etwr_error *error = read_moment(asked.to, selection.to)) return error;
  if (!names.empty()) {
    const Result<SchemaCatalog> all =
        asked.schemas != nullptr ? asked.schemas->catalog : collect_schemas(trace, known, run);
    if (!all) return make_error(all.error());
    Result<NamedKinds> kinds = NamedKinds::find(names, *all);
    if (!kinds) return make_error(std::move(kinds).error());
    selection.kinds = *std::move(kinds);
  }
  return nullptr;
}

std::optional<Level> level_of(int level) {
  switch (level) {
  case ETWR_LEVEL_DEFAULT: return Level::normal;
  case ETWR_LEVEL_FAST: return Level::fast;
  case ETWR_LEVEL_MAX: return Level::max;
  case ETWR_LEVEL_ULTRA: return Level::ultra;
  default: return std::nullopt;
  }
}

} // namespace etwrelog::c
