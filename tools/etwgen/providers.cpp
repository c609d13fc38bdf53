#include "providers.hpp"

#include <string>

namespace etwrelog::gen {
namespace {

// Activities of a thread: it works on a few requests, one after the other.
Guid activity_of(const Thread &thread, std::int64_t time) {
  const std::uint64_t epoch = static_cast<std::uint64_t>(time / (kTicksPerSecond / 50));
  return {mix(thread.number, epoch, 1), 0x8000'0000'0000'0000ull | mix(thread.process->index, 3)};
}

void push16(std::vector<std::uint8_t> &v, std::size_t n) {
  v.push_back(static_cast<std::uint8_t>(n));
  v.push_back(static_cast<std::uint8_t>(n >> 8));
}
void push_text(std::vector<std::uint8_t> &v, std::string_view text) {
  v.insert(v.end(), text.begin(), text.end());
  v.push_back(0);
}

// Provider traits: u16 size, name. TraceLogging schema: u16 size, tag, name, fields of name and type.
const std::vector<std::uint8_t> kTraits = [] {
  std::vector<std::uint8_t> v;
  push16(v, 0);
  push_text(v, "Contoso.Orders.Backend");
  v[0] = static_cast<std::uint8_t>(v.size());
  return v;
}();
struct SchemaField {
  const char *name;
  std::uint8_t type;
};
std::vector<std::uint8_t> make_schema(std::string_view name, std::span<const SchemaField> fields) {
  std::vector<std::uint8_t> v;
  push16(v, 0);
  v.push_back(0);
  push_text(v, name);
  for (const SchemaField &f : fields) {
    push_text(v, f.name);
    v.push_back(f.type);
  }
  v[0] = static_cast<std::uint8_t>(v.size());
  v[1] = static_cast<std::uint8_t>(v.size() >> 8);
  return v;
}
constexpr SchemaField kRequestFields[] = {{"Url", 2}, {"Bytes", 8}, {"DurationMs", 12}, {"Status", 7}};
constexpr SchemaField kFrameFields[] = {{"FrameId", 10}, {"GpuTime", 8}, {"CpuTime", 8}, {"Scene", 1}};
const std::vector<std::uint8_t> kRequestSchema = make_schema("RequestDone", kRequestFields);
const std::vector<std::uint8_t> kFrameSchema = make_schema("FramePresented", kFrameFields);

constexpr std::string_view kUrls[] = {"/api/cart/items", "/api/orders?page=2", "/static/app.js", "/health",
                                      "/api/price/4711"};
constexpr std::string_view kScenes[] = {"Harbour", "Station", "Menu", "Canyon"};

// Complete, as EventSource writes them: readers take a manifest that names templates which are not there for
// damaged, and Microsoft's TraceEvent then never ends. T2 is what write_event_source writes.
std::string manifest_text() {
  std::string text =
      "<instrumentationManifest xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">\n "
      "<instrumentation xmlns:win=\"http://manifests.microsoft.com/win/2004/08/windows/events\">\n"
      "  <events>\n   <provider name=\"Contoso-Orders\" guid=\"{7094c77f-c1bf-559e-96a1-e70cbc0ef69d}\" "
      "symbol=\"ContosoOrders\">\n    <events>\n";
  for (int id = 1; id <= 24; ++id)
    text += "     <event value=\"" + std::to_string(id) +
            "\" version=\"0\" level=\"win:Informational\" symbol=\"Event" + std::to_string(id) +
            "\" template=\"T" + std::to_string(id % 5) + "\"/>\n";
  text += "    </events>\n    <templates>\n";
  const std::string_view first[] = {"UnicodeString\" name=\"Text", "Int32\" name=\"Number",
                                    "UnicodeString\" name=\"Url", "Double\" name=\"Seconds",
                                    "Boolean\" name=\"Done"};
  for (int i = 0; i < 5; ++i) {
    text += "     <template tid=\"T" + std::to_string(i) + "\">\n      <data inType=\"win:";
    text.append(first[i]) += "\"/>\n";
    if (i == 2)
      text += "      <data inType=\"win:Int64\" name=\"Amount\"/>\n"
              "      <data inType=\"win:Int32\" name=\"Retries\"/>\n";
    text += "     </template>\n";
  }
  return text +
         "    </templates>\n   </provider>\n  </events>\n </instrumentation>\n</instrumentationManifest>\n";
}

} // namespace

void write_trace_logging(Emitter &out, Draw draw, const Thread &thread, std::int64_t time) {
  const bool request = draw.same.below(2) == 0;
  const write::EventFields fields{.provider = kTraceLoggingProvider,
                                  .channel = 11,
                                  .level = 5,
                                  .keyword = 0x2000'0000'0000ull,
                                  .activity = activity_of(thread, time)};
  auto &e = out.event(fields, thread.tid, thread.process->pid, time);
  e.item(format::ItemType::provider_traits, kTraits);
  e.item(format::ItemType::schema_tl, request ? kRequestSchema : kFrameSchema);
  if (request) {
    e.astr(kUrls[draw.same.below(5)]).put<std::uint32_t>(200 + draw.same.below(4096));
    e.put<double>(0.25 * draw.fresh.below(200)).put<std::int32_t>(draw.fresh.below(20) == 0 ? 404 : 200);
  } else {
    e.put<std::uint64_t>(static_cast<std::uint64_t>(time) / 166'667)
        .put<std::uint32_t>(4000 + draw.fresh.below(200));
    e.put<std::uint32_t>(2000 + draw.fresh.below(200)).wstr(kScenes[draw.same.below(4)]);
  }
  out.done(Kind::trace_logging, thread.process.get());
}

void write_event_source(Emitter &out, Draw draw, const Thread &thread, std::int64_t time) {
  write::EventFields fields{
      .provider = kEventSourceProvider, .id = 7, .level = 4, .keyword = 0xF000'0000'0001ull};
  fields.activity = activity_of(thread, time);
  auto &e = out.event(fields, thread.tid, thread.process->pid, time);
  if (draw.same.below(4) == 0) {
    std::uint8_t related[16];
    store_guid(related, activity_of(thread, time - kTicksPerSecond / 50));
    e.item(format::ItemType::related_activity, related);
  }
  e.wstr(kUrls[draw.same.below(5)]).put<std::int64_t>(1'000'000 + draw.same.below(5000));
  e.put<std::int32_t>(static_cast<std::int32_t>(draw.fresh.below(64)));
  out.done(Kind::event_source, thread.process.get());
}

void write_event_source_manifest(Emitter &out, const Thread &thread, std::int64_t time) {
  static const std::string text = manifest_text();
  const write::EventFields fields{.provider = kEventSourceProvider,
                                  .id = format::kManifestEventId,
                                  .version = 1,
                                  .opcode = 0xFE,
                                  .task = 0xFFFE,
                                  .keyword = ~std::uint64_t{0}};
  auto &e = out.event(fields, thread.tid, thread.process->pid, time);
  e.put<std::uint8_t>(1).put<std::uint8_t>(1).put<std::uint8_t>(0).put<std::uint8_t>(0x5B);
  e.put<std::uint16_t>(1).put<std::uint16_t>(0);
  e.bytes({reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
  out.done(Kind::event_source_manifest, thread.process.get());
}

void write_manifest(Emitter &out, Draw draw, const Thread &thread, std::int64_t time,
                    std::span<const std::uint64_t> frames) {
  const bool start = draw.fresh.below(2) == 0;
  write::EventFields fields{
      .provider = kManifestProvider, .level = 4, .task = 3, .keyword = 0x8000'0000'0000'0010ull};
  fields.id = start ? 301 : 302;
  fields.version = start ? 1 : 0;
  fields.opcode = start ? 1 : 2;
  fields.channel = 16;
  fields.activity = activity_of(thread, time);
  auto &e = out.event(fields, thread.tid, thread.process->pid, time);
  if (!frames.empty()) {
    std::vector<std::uint8_t> item(8 + frames.size_bytes()); // MatchId 0
    std::memcpy(item.data() + 8, frames.data(), frames.size_bytes());
    e.item(format::ItemType::stack_trace64, item);
  }
  e.pointer(0xFFFF'8A0E'5000'0000ull + draw.same.below(64) * 0x40)
      .put<std::uint32_t>(draw.fresh.below(16))
      .put<std::uint32_t>(thread.tid);
  if (start) e.wstr("\\Device\\Mup\\fileserver\\build").put<std::uint64_t>(draw.same.below(1 << 20));
  out.done(start ? Kind::manifest_start : Kind::manifest_stop, thread.process.get());
}

void write_clr_method(Emitter &out, const Thread &thread, const Method &method, std::int64_t time) {
  const write::EventFields fields{.provider = format::kClrGuid,
                                  .id = 143,
                                  .version = 1,
                                  .level = 5,
                                  .opcode = 37,
                                  .task = 9,
                                  .keyword = 0x30};
  auto &e = out.event(fields, thread.tid, thread.process->pid, time);
  e.put(method.id)
      .put(thread.process->module_id)
      .put(method.start)
      .put(method.size)
      .put(method.token)
      .put<std::uint32_t>(8);
  e.wstr(method.type).wstr(method.name).wstr(method.signature).put<std::uint16_t>(9);
  out.done(Kind::clr_method, thread.process.get());
}

void write_clr_gc(Emitter &out, Draw draw, const Thread &thread, std::int64_t time) {
  // GC/AllocationTick.
  const write::EventFields fields{.provider = format::kClrGuid,
                                  .id = 10,
                                  .version = 2,
                                  .level = 5,
                                  .opcode = 11,
                                  .task = 1,
                                  .keyword = 1};
  auto &e = out.event(fields, thread.tid, thread.process->pid, time);
  e.put<std::uint32_t>(106'496 + draw.fresh.below(32) * 8)
      .put<std::uint32_t>(0)
      .put<std::uint16_t>(9)
      .put<std::uint64_t>(106'496);
  e.pointer(0x7FF9'2000'0000ull + draw.same.below(40) * 0x68).wstr("System.String").put<std::uint32_t>(0);
  out.done(Kind::clr_gc, thread.process.get());
}

void write_clr_stack(Emitter &out, const Thread &thread, std::int64_t time,
                     std::span<const std::uint64_t> frames) {
  const write::EventFields fields{
      .provider = format::kClrGuid, .id = 82, .level = 0, .opcode = 82, .task = 11, .keyword = 0x4000'0000};
  auto &e = out.event(fields, thread.tid, thread.process->pid, time);
  e.put<std::uint16_t>(9)
      .put<std::uint8_t>(0)
      .put<std::uint8_t>(0)
      .put(static_cast<std::uint32_t>(frames.size()))
      .frames(frames);
  out.done(Kind::clr_stack, thread.process.get());
}

void write_wpp(Emitter &out, Draw draw, const Thread &thread, std::int64_t time) {
  out.message(static_cast<std::uint16_t>(10 + draw.same.below(8)), kWppProvider, thread.tid,
              thread.process->pid, time)
      .put<std::uint32_t>(draw.fresh.below(32))
      .put<std::uint64_t>(0xC000'0022);
  out.done(Kind::wpp, thread.process.get());
}

void write_clr_rundown(Emitter &out, const Process &process, std::uint32_t tid, std::int64_t time) {
  write::EventFields fields{.provider = format::kClrRundownGuid,
                            .id = 154,
                            .version = 1,
                            .level = 4,
                            .opcode = 36,
                            .task = 2,
                            .keyword = 0x48};
  auto &module = out.event(fields, tid, process.pid, time);
  module.put(process.module_id).put(process.module_id + 0x1000).put<std::uint32_t>(8).put<std::uint32_t>(0);
  module.wstr("C:\\Program Files\\DotNetApp\\Orders.dll").wstr("").put<std::uint16_t>(9);
  out.done(Kind::clr_rundown_module, &process);
  fields.id = 144;
  fields.opcode = 40;
  fields.task = 1;
  for (const Method &m : process.methods) {
    auto &e = out.event(fields, tid, process.pid, time += 20);
    e.put(m.id).put(process.module_id).put(m.start).put(m.size).put(m.token).put<std::uint32_t>(8);
    e.wstr(m.type).wstr(m.name).wstr(m.signature).put<std::uint16_t>(9);
    out.done(Kind::clr_rundown_method, &process);
  }
}

} // namespace etwrelog::gen
