// The tally as it stands in an archive's index (stages/etlz/spec.md, section 6). One function, `code`, says
// what it holds in which order, for both ways. Everything here is part of the format: what is written
// otherwise gets another number.
#include "archive/tally.hpp"
#include "etlz/backend/bit_coder.hpp"
#include "passes/statistics.hpp"

#include <algorithm>

namespace etwrelog::pipeline {
namespace {

using etlz::BitDecoder;
using etlz::BitEncoder;
using etlz::BitModel;
using etlz::NumberModel;
using etlz::TextModel;

// Its first byte, which no JSON begins with: with processes, or without.
constexpr std::uint8_t kWithProcesses = 4, kTallyRecord = 3;
constexpr std::size_t kMostTypes = 65'536, kMostProcesses = 65'536, kMostTallyText = 1u << 20;

// GUIDs that stand in many traces have a number, from 1.
constexpr Guid kKnownGuids[] = {
    make_guid(0xe13c0d23, 0xccbc, 0x4e12, 0x931b, 0xd9cc2eee27e4), // .NET
    make_guid(0xb3e675d7, 0x2554, 0x4f18, 0x830b, 0x2762732560de), // image identity
    make_guid(0xa669021c, 0xc450, 0x4609, 0xa035, 0x5af59af4df18), // .NET, rundown
    make_guid(0x9b79ee91, 0xb5fd, 0x41c0, 0xa243, 0x4248e266e9d0), // system configuration
    make_guid(0xbbccf6c1, 0x6cd1, 0x48c4, 0x80ff, 0x839482e37671), // metadata
    make_guid(0x763fd754, 0x7086, 0x4dfe, 0x95eb, 0xc01a46faf4ca), // .NET, private
    make_guid(0xb675ec37, 0xbdb6, 0x4648, 0xbc92, 0xf3fdc74d3ca2), // Kernel-EventTracing
    make_guid(0x22fb2cd6, 0x0e7b, 0x422b, 0xa0c7, 0x2fad1fd0e716), // Kernel-Process
    make_guid(0xedd08927, 0x9cc4, 0x4e65, 0xb970, 0xc2560fb5c289), // Kernel-File
    make_guid(0x7dd42a49, 0x5329, 0x4832, 0x8dfd, 0x43d979153a88), // Kernel-Network
    make_guid(0xc7bde69a, 0xe1e0, 0x4177, 0xb6ef, 0x283ad1525271), // Kernel-Disk
    make_guid(0x70eb4f03, 0xc1de, 0x4f73, 0xa051, 0x33d13d5413bd), // Kernel-Registry
    make_guid(0x2e5dba47, 0xa3d2, 0x4d16, 0x8ee0, 0x6671ffdcd7b5), // tasks of .NET
    make_guid(0x8e9f5090, 0x2d75, 0x4d03, 0x8a81, 0xe5afbf85daf1), // framework of .NET
    make_guid(0x319dc449, 0xada5, 0x50f7, 0x428e, 0x957db6791668), // .NET, stress
    make_guid(0xa8a71ac1, 0x040f, 0x54a2, 0x07ca, 0x00a89b5ab761), // PerfView
    make_guid(0xed54dff8, 0xc409, 0x4cf6, 0xbf83, 0x05e1e61a09c4), // WinSAT
    make_guid(0x68fdd900, 0x4a3e, 0x11d1, 0x84f4, 0x0000f80464e3), // EventTrace
    make_guid(0xdd5ef90a, 0x6398, 0x47a4, 0xad34, 0x4dcecdef795f), // HttpService
    make_guid(0x1c95126e, 0x7eea, 0x49a9, 0xa3fe, 0xa378b03ddb4d), // DNS-Client
    make_guid(0x315a8872, 0x923e, 0x4ea2, 0x9889, 0x33cd4754bf64), // Immersive-Shell
    make_guid(0xca11c036, 0x0102, 0x4a2d, 0xa6ad, 0xf03cfed5d3c9), // DXGI
    make_guid(0x802ec45a, 0x1e99, 0x4b83, 0x9920, 0x87c98277ba9d), // DxgKrnl
    make_guid(0xce1dbfb4, 0x137e, 0x4da6, 0x87b0, 0x3f59aa102cbc), // PerfInfo, by class
    make_guid(0x6f669bfa, 0x816a, 0x4204, 0xa824, 0x47c8e6a00474), // the diagnostics hub
};

// What texts begin with having seen.
constexpr char kPrimer[] =
    "NT Kernel Logger\0Relogger\0Microsoft-Windows-Kernel-File/Create\0Microsoft-Windows-DNS-Client/Start\0"
    "System.Diagnostics.Eventing.EventSource/ManifestData\0PerfView/Tracing/Stop\0Microsoft-Windows-";

// And names of processes, in the order in which they stand.
constexpr char kProcessPrimer[] =
    "?\0Idle\0MemCompression\0Registry\0RuntimeBroker.exe\0SearchIndexer.exe\0System\0WmiPrvSE.exe\0"
    "audiodg.exe\0backgroundTaskHost.exe\0chrome.exe\0cmd.exe\0conhost.exe\0csrss.exe\0ctfmon.exe\0"
    "devenv.exe\0dllhost.exe\0dwm.exe\0explorer.exe\0fontdrvhost.exe\0lsass.exe\0lsm.exe\0msedge.exe\0"
    "notepad.exe\0powershell.exe\0rundll32.exe\0services.exe\0sihost.exe\0smss.exe\0spoolsv.exe\0"
    "svchost.exe\0taskhostw.exe\0wininit.exe\0winlogon.exe\0wpr.exe\0xperf.exe";

// Rows of processes, which have their own: what types have taught does not fit them.
struct ProcessModels {
  NumberModel count, shared, instances, events, events_of_sampled, samples;
  BitModel sampled;
  TextModel text{std::string_view(kProcessPrimer, sizeof kProcessPrimer - 1)};
};

struct Models {
  NumberModel session, duration, lost, stacks, count, family, guid, hook_group, operation, id, version, same,
      events_of_few, events_of_many, size, size_of_one, varying_size, shared;
  BitModel fresh, fixed, named;
  TextModel text{std::string_view(kPrimer, sizeof kPrimer - 1)};
};

template <class Coder> bool code(Coder &coder, BitModel &model, bool value) {
  const bool it = coder.bit(model.set, value);
  model.update(it);
  return it;
}

template <class Coder, class T> void code(Coder &coder, NumberModel &model, T &value) {
  value = static_cast<T>(model.code(coder, static_cast<std::uint64_t>(value)));
}

template <class Coder> void code(Coder &coder, Models &models, Guid &guid) {
  const auto known = std::ranges::find(kKnownGuids, guid);
  auto number = known == std::end(kKnownGuids)
                    ? std::uint64_t{0}
                    : static_cast<std::uint64_t>(known - std::begin(kKnownGuids)) + 1;
  code(coder, models.guid, number);
  if (number != 0) {
    guid = number <= std::size(kKnownGuids) ? kKnownGuids[number - 1] : Guid{};
    return;
  }
  for (std::uint64_t *const half : {&guid.low, &guid.high}) {
    std::uint64_t found = 0;
    for (unsigned i = 64; i-- > 0;)
      found = found << 1 | (coder.bit(1u << 15, (*half >> i & 1) != 0) ? 1u : 0u);
    *half = found;
  }
}

// Which type comes behind `before`, in their order.
template <class Coder>
void code_type(Coder &coder, Models &models, EventType &type, const EventType &before, bool first) {
  const bool fresh =
      code(coder, models.fresh, first || type.family != before.family || type.guid != before.guid);
  EventType last = before;
  if (fresh) {
    code(coder, models.family, type.family);
    last = {};
    const bool has_guid =
        type.family == Family::event || type.family == Family::classic || type.family == Family::message;
    if (has_guid) code(coder, models, type.guid);
  } else {
    type.family = before.family, type.guid = before.guid;
  }
  if (type.family == Family::hook) {
    std::uint32_t group = (type.id >> 8) - (last.id >> 8);
    code(coder, models.hook_group, group);
    std::uint32_t operation = (type.id & 0xFF) - (group == 0 ? last.id & 0xFF : 0);
    code(coder, group == 0 ? models.same : models.operation, operation);
    type.id = (((last.id >> 8) + group) << 8) + operation + (group == 0 ? last.id & 0xFF : 0);
    return;
  }
  std::uint32_t id = type.id - last.id;
  code(coder, models.id, id);
  const unsigned known = id == 0 ? last.version : 0;
  unsigned version = type.version - known;
  code(coder, models.version, version);
  type.id = last.id + id;
  type.version = static_cast<std::uint16_t>(version + known);
}

template <class Coder>
void code_counts(Coder &coder, Models &models, TypeStatistics &row, std::uint64_t before) {
  code(coder, before < 8 ? models.events_of_few : models.events_of_many, row.events);
  if (row.events == 0) return;
  const bool fixed =
      row.events == 1 || code(coder, models.fixed, row.bytes % row.events == 0); // all are as large
  std::uint64_t size = row.bytes / row.events, rest = row.bytes % row.events;
  code(coder, row.events == 1 ? models.size_of_one : fixed ? models.size : models.varying_size, size);
  if (!fixed) {
    std::uint64_t found = 0;
    for (unsigned i = static_cast<unsigned>(std::bit_width(row.events)); i-- > 0;)
      found = found << 1 | (coder.bit(1u << 15, (rest >> i & 1) != 0) ? 1u : 0u);
    rest = found;
  } else {
    rest = 0;
  }
  row.bytes = size * row.events + rest;
}

// A name that begins as the one before it in some characters. False if it cannot be.
template <class Coder>
bool code_name(Coder &coder, NumberModel &beginnings, TextModel &model, std::string &name,
               const std::string &before, std::size_t &room) {
  const auto apart = std::mismatch(before.begin(), before.end(), name.begin(), name.end());
  auto shared = static_cast<std::uint64_t>(apart.first - before.begin());
  code(coder, beginnings, shared);
  if (shared > before.size()) return false;
  if (name.empty()) name = before.substr(0, shared);
  if (!model.code(coder, name, shared, room)) return false;
  room -= std::min(room, name.size());
  return true;
}

template <class Coder> bool code(Coder &coder, std::vector<NamedProcesses> &processes, std::size_t room) {
  ProcessModels models;
  std::size_t count = processes.size();
  code(coder, models.count, count);
  if (count > kMostProcesses) return false;
  std::string before;
  for (std::size_t i = 0; i < count && !coder.overrun(); ++i) {
    if (i == processes.size()) processes.emplace_back();
    NamedProcesses &row = processes[i];
    if (!code_name(coder, models.shared, models.text, row.name, before, room)) return false;
    before = row.name;
    code(coder, models.instances, row.instances);
    const bool sampled = code(coder, models.sampled, row.samples != 0);
    if (sampled) code(coder, models.samples, row.samples);
    code(coder, sampled ? models.events_of_sampled : models.events, row.events);
  }
  return !coder.overrun();
}

// False if it cannot be.
template <class Coder> bool code(Coder &coder, TallyRecord &record) {
  Models models;
  std::size_t room = kMostTallyText;
  Session &session = record.session;
  code(coder, models.session, session.kind);
  if (session.kind > SessionKind::merged) session.kind = SessionKind::unknown;
  std::int64_t duration = recorded_duration(session);
  code(coder, models.duration, duration);
  session.seconds = seconds_of_duration(duration);
  code(coder, models.lost, session.events_lost);
  code(coder, models.lost, session.buffers_lost);
  if (!models.text.code(coder, session.name, 0, room)) return false;
  room -= std::min(room, session.name.size());
  Statistics &s = record.statistics;
  for (std::uint64_t *const n :
       {&s.stacks.walks, &s.stacks.kernel_references, &s.stacks.user_references, &s.stacks.frames})
    code(coder, models.stacks, *n);
  std::size_t count = s.types.size();
  code(coder, models.count, count);
  if (count > kMostTypes) return false;
  EventType last;
  std::string name; // the last one
  std::uint64_t events = 0;
  for (std::size_t i = 0; i < count && !coder.overrun(); ++i) {
    if (i == s.types.size()) s.types.emplace_back();
    TypeStatistics &row = s.types[i];
    code_type(coder, models, row.type, last, i == 0);
    if (row.type.family > Family::other) return false;
    last = row.type;
    code_counts(coder, models, row, events);
    events = row.events;
    if (row.type.family == Family::hook || !code(coder, models.named, !row.name.empty())) continue;
    if (!code_name(coder, models.shared, models.text, row.name, name, room)) return false;
    name = row.name;
  }
  return record.processes ? code(coder, *record.processes, room) : !coder.overrun();
}

} // namespace

std::vector<std::uint8_t> write_tally(TallyRecord record) {
  std::ranges::sort(record.statistics.types, {}, &TypeStatistics::type);
  std::size_t text = record.session.name.size();
  for (const TypeStatistics &row : record.statistics.types)
    text += row.name.size();
  if (record.statistics.types.size() > kMostTypes || text > kMostTallyText) return {};
  if (record.processes) {
    std::size_t names = text;
    for (const NamedProcesses &row : *record.processes)
      names += row.name.size();
    if (record.processes->size() > kMostProcesses || names > kMostTallyText) record.processes.reset();
  }
  std::vector<std::uint8_t> out = {record.processes ? kWithProcesses : kTallyRecord};
  BitEncoder coder(out);
  if (!code(coder, record)) return {};
  coder.finish();
  return out;
}

std::optional<TallyRecord> read_coded_tally(Bytes bytes) {
  if (bytes.empty() || (bytes[0] != kTallyRecord && bytes[0] != kWithProcesses)) return std::nullopt;
  BitDecoder coder(bytes.subspan(1));
  TallyRecord record;
  if (bytes[0] == kWithProcesses) record.processes.emplace();
  if (!code(coder, record) || !coder.at_end()) return std::nullopt;
  return record;
}

} // namespace etwrelog::pipeline
