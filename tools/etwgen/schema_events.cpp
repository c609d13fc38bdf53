#include "schema_events.hpp"

#include "described_records.hpp"
#include "schema_values.hpp"

#include "write/event_builder.hpp"

namespace etwrelog::gen {
namespace {

constexpr Guid kTraced = make_guid(0x5ce4a001, 0x1111, 0x4222, 0x8333, 0x444455556666),
               kDescribed = make_guid(0x5ce4a002, 0x1111, 0x4222, 0x8333, 0x444455556666),
               kSource = make_guid(0x5ce4a003, 0x1111, 0x4222, 0x8333, 0x444455556666),
               kMessages = make_guid(0x5ce4a004, 0x1111, 0x4222, 0x8333, 0x444455556666);

// In types 1 to 23 mean the same in TraceLogging and in TDH; the numbers of out types differ.
enum In : std::uint8_t {
  utf16 = 1,
  ansi,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f32,
  f64,
  bool32,
  binary,
  guid,
  pointer,
  filetime,
  systemtime,
  sid,
  hex32,
  hex64,
  counted_utf16,
  counted_ansi,
  structure,
  counted_binary,
};

struct OutType {
  unsigned trace_logging, tdh; // 0: this numbering has none for it
  Shown shown;
};
constexpr OutType kHex[] = {
    {4, 16, Shown::hex}, {4, 17, Shown::hex}, {4, 18, Shown::hex}, {4, 19, Shown::hex}};
constexpr OutType kText{2, 1, Shown::character}, kTruth{3, 13, Shown::truth}, kPid{5, 20, Shown::number},
    kTid{6, 21, Shown::number}, kPort{7, 22, Shown::port}, kIpv4{8, 23, Shown::ipv4},
    kWin32{13, 30, Shown::number}, kStatus{14, 31, Shown::number}, kResult{15, 32, Shown::number},
    kDate{38, 0, Shown::date}, kCulture{33, 0, Shown::date};

struct IntegerType {
  In in;
  unsigned bytes;
  bool has_sign;
  std::vector<OutType> outs; // beside none
};
const std::vector<IntegerType> &integers() {
  static const std::vector<IntegerType> all = {
      {i8, 1, true, {kHex[0], kText}},
      {u8, 1, false, {kHex[0], kText, kTruth}},
      {i16, 2, true, {kHex[1]}},
      {u16, 2, false, {kHex[1], kText, kPort}},
      {i32, 4, true, {kHex[2], kWin32, kStatus, kResult}},
      {u32, 4, false, {kHex[2], kPid, kTid, kIpv4, kWin32, kStatus}},
      {i64, 8, true, {kHex[3], kDate, kCulture}},
      {u64, 8, false, {kHex[3]}},
  };
  return all;
}

// The bytes of one value of a type that is no integer, and how it is shown. `utf8`: an out type says so.
Json put_value(Values &values, Raw &out, unsigned in, bool utf8 = false) {
  const auto counted = [&](const Raw &bytes) {
    put(out, static_cast<std::uint16_t>(bytes.size()));
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  switch (in) {
  case utf16: {
    const std::string text = values.text(true);
    put_units(out, text);
    put(out, std::uint16_t{0});
    return text;
  }
  case ansi: {
    const std::string text = values.text(utf8);
    for (const char c : utf8 ? text : Values::narrow(text))
      out.push_back(static_cast<std::uint8_t>(c));
    out.push_back(0);
    return text;
  }
  case f32: return values.single(out);
  case f64: return values.real(out);
  case bool32: return values.integer(out, 4, false, Shown::truth);
  case guid: return values.guid(out);
  case pointer: return values.pointer(out);
  case filetime: return values.filetime(out);
  case systemtime: return values.systemtime(out);
  case sid: return values.sid(out);
  case hex32: return values.integer(out, 4, false, Shown::hex);
  case hex64: return values.integer(out, 8, false, Shown::hex);
  case counted_utf16: {
    Raw bytes;
    const std::string text = values.text(true);
    put_units(bytes, text);
    counted(bytes);
    return text;
  }
  case counted_ansi: {
    const std::string text = values.text(utf8), plain = utf8 ? text : Values::narrow(text);
    counted(Raw(plain.begin(), plain.end()));
    return text;
  }
  default: { // binary with its length in front
    Raw bytes;
    const Json shown = values.binary(bytes, values.rng.below(6));
    counted(bytes);
    return shown;
  }
  }
}

constexpr unsigned kOthers[] = {utf16, ansi,          f32,          f64,           bool32, binary,
                                guid,  pointer,       filetime,     systemtime,    sid,    hex32,
                                hex64, counted_utf16, counted_ansi, counted_binary};

class Maker {
public:
  Maker(std::uint64_t seed, std::int64_t time) : rng_(mix(seed, 0x5C4E)), time_(time) {}

  SchemaEvents run() {
    source_manifest();
    for (const unsigned size : {8u, 4u}) {
      pointer_size_ = size;
      for (int round = 0; round < 4; ++round) {
        traced_values();
        traced_arrays();
        traced_structures();
        described();
        mapped();
        sourced();
        messages();
      }
    }
    made_.truth = Json({{"events", truth_}, {"tmf", tmf_}}).dump();
    return std::move(made_);
  }

private:
  [[nodiscard]] Values values() { return {rng_, pointer_size_}; }
  template <class Build> void emit(Build &&build) {
    SchemaEvents::One &one = made_.events.emplace_back();
    one.time = time_ += 100;
    write::EventBuilder builder(one.bytes);
    build(builder);
    static_cast<void>(builder.finish());
  }
  void know(const Guid &provider, std::string event, Json fields) {
    truth_.push_back(
        {{"provider_id", to_string(provider)}, {"event", std::move(event)}, {"fields", std::move(fields)}});
  }

  // --- TraceLogging

  struct Traced {
    explicit Traced(std::string event) : name(std::move(event)) {
      metadata = {0, 0, 0}; // size; no tag
      text(name);
    }
    void text(std::string_view of) {
      metadata.insert(metadata.end(), of.begin(), of.end());
      metadata.push_back(0);
    }
    void field(std::string_view of, unsigned flags, unsigned in, unsigned out, int count = -1) {
      text(of);
      metadata.push_back(static_cast<std::uint8_t>(in | flags | (out != 0 ? 0x80u : 0u)));
      if (out != 0) metadata.push_back(static_cast<std::uint8_t>(out));
      if (count >= 0) put(metadata, static_cast<std::uint16_t>(count));
      store(metadata.data(), static_cast<std::uint16_t>(metadata.size()));
    }
    std::string name;
    Raw metadata, payload;
    Json fields = Json::object();
  };
  void emit_traced(const Traced &event) {
    emit([&](write::EventBuilder &e) {
      write::EventFields fields;
      fields.provider = kTraced, fields.channel = 11, fields.level = 5;
      e.event(fields, pointer_size_, 8, 4, time_)
          .item(format::ItemType::schema_tl, event.metadata)
          .bytes(event.payload);
    });
    know(kTraced, event.name, event.fields);
  }

  void traced_values() {
    Traced event("Values");
    Values v = values();
    for (const IntegerType &type : integers()) {
      const std::string name = fmt::format("in{}", static_cast<unsigned>(type.in));
      event.field(name, 0, type.in, 0);
      event.fields[name] = v.integer(event.payload, type.bytes, type.has_sign);
      for (const OutType &out : type.outs) {
        const std::string both = fmt::format("{}_out{}", name, out.trace_logging);
        event.field(both, 0, type.in, out.trace_logging);
        event.fields[both] = v.integer(event.payload, type.bytes, type.has_sign, out.shown);
      }
      const std::string other = name + "_other_sign";
      event.field(other, 0, type.in, type.has_sign ? 18 : 17);
      event.fields[other] = v.integer(event.payload, type.bytes, !type.has_sign);
    }
    for (const unsigned in : kOthers) {
      const std::string name = fmt::format("in{}", in);
      event.field(name, 0, in, 0);
      event.fields[name] = put_value(v, event.payload, in);
    }
    for (const unsigned in : {unsigned{ansi}, unsigned{counted_ansi}})
      for (const unsigned out : {35u, 11u, 12u}) { // UTF-8, and what is UTF-8: XML, JSON
        const std::string name = fmt::format("in{}_out{}", in, out);
        event.field(name, 0, in, out);
        event.fields[name] = put_value(v, event.payload, in, true);
      }
    event.field("ipv6", 0, binary, 9);
    put(event.payload, std::uint16_t{16});
    event.fields["ipv6"] = v.ipv6(event.payload);
    event.field("date", 0, filetime, 38);
    event.fields["date"] = v.filetime(event.payload);
    event.field("hex32_signed", 0, hex32, 17);
    event.fields["hex32_signed"] = v.integer(event.payload, 4, true);
    emit_traced(event);
  }

  void traced_arrays() {
    for (const bool counted : {false, true}) {
      Traced event(counted ? "ArraysCounted" : "ArraysConstant");
      Values v = values();
      const auto add = [&](const std::string &name, unsigned in, unsigned out, auto &&one) {
        const unsigned count = counted ? rng_.below(4) : 3;
        event.field(name, counted ? 0x40 : 0x20, in, out, counted ? -1 : 3);
        if (counted) put(event.payload, static_cast<std::uint16_t>(count));
        Json list = Json::array();
        for (unsigned i = 0; i < count; ++i)
          list.push_back(one());
        event.fields[name] = std::move(list);
      };
      for (const IntegerType &type : integers()) {
        const std::string name = fmt::format("in{}", static_cast<unsigned>(type.in));
        add(name, type.in, 0, [&] { return v.integer(event.payload, type.bytes, type.has_sign); });
        for (const OutType &out : type.outs)
          if (out.shown != Shown::character) // an array of characters is a text
            add(fmt::format("{}_out{}", name, out.trace_logging), type.in, out.trace_logging,
                [&] { return v.integer(event.payload, type.bytes, type.has_sign, out.shown); });
      }
      for (const unsigned in : kOthers)
        add(fmt::format("in{}", in), in, 0, [&] { return put_value(v, event.payload, in); });
      event.field("characters", 0x40, u16, 2);
      const std::string text = v.text(true);
      put(event.payload, static_cast<std::uint16_t>(utf16_from_utf8(text).size()));
      put_units(event.payload, text);
      event.fields["characters"] = text;
      emit_traced(event);
    }
  }

  void traced_structures() {
    Traced event("Structures");
    Values v = values();
    const auto members = [&] {
      Json inner = Json::object(), outer = Json::object();
      outer["number"] = v.integer(event.payload, 4, false);
      outer["text"] = put_value(v, event.payload, utf16);
      inner["flag"] = v.integer(event.payload, 1, false);
      inner["id"] = v.guid(event.payload);
      outer["inner"] = std::move(inner);
      return outer;
    };
    const auto describe = [&](const char *name, unsigned flags, int count) {
      event.text(name);
      event.metadata.push_back(static_cast<std::uint8_t>(0x80 | flags | structure));
      event.metadata.push_back(3); // members
      if (count >= 0) put(event.metadata, static_cast<std::uint16_t>(count));
      event.field("number", 0, u32, 0);
      event.field("text", 0, utf16, 0);
      event.text("inner");
      event.metadata.push_back(0x80 | structure);
      event.metadata.push_back(2);
      event.field("flag", 0, u8, 0);
      event.field("id", 0, guid, 0);
    };
    describe("one", 0, -1);
    event.fields["one"] = members();
    describe("constant", 0x20, 2);
    event.fields["constant"] = Json::array({members(), members()});
    describe("counted", 0x40, -1);
    const unsigned count = rng_.below(3);
    put(event.payload, static_cast<std::uint16_t>(count));
    Json list = Json::array();
    for (unsigned i = 0; i < count; ++i)
      list.push_back(members());
    event.fields["counted"] = std::move(list);
    event.field("last", 0, u8, 0);
    event.fields["last"] = v.integer(event.payload, 1, false);
    emit_traced(event);
  }

  // --- EventInfo

  void emit_metadata(std::uint8_t opcode, const Raw &record) {
    emit([&](write::EventBuilder &e) {
      e.classic(format::kMetaDataGuid, opcode, 0, 8, 8, 4, time_).bytes(record);
    });
  }
  void emit_described(std::uint16_t id, const std::string &task, const std::vector<Property> &properties,
                      std::size_t top, const Raw &payload, Json shown) {
    if (described_once_.size() <= id) described_once_.resize(id + 1u);
    if (!described_once_[id]) {
      described_once_[id] = true;
      emit_metadata(32, event_info(kDescribed, "Etwgen-Described", id, task, properties, top));
    }
    emit([&](write::EventBuilder &e) {
      write::EventFields fields;
      fields.provider = kDescribed, fields.id = id;
      e.event(fields, pointer_size_, 8, 4, time_).bytes(payload);
    });
    know(kDescribed, task, std::move(shown));
  }

  void described() {
    Values v = values();
    Raw payload;
    Json shown = Json::object();
    std::vector<Property> properties;
    const auto add = [&](Property property, Json value) {
      shown[property.name] = std::move(value);
      properties.push_back(std::move(property));
      return static_cast<unsigned>(properties.size() - 1);
    };
    for (const IntegerType &type : integers()) {
      const std::string name = fmt::format("in{}", static_cast<unsigned>(type.in));
      add({name, 0, type.in}, v.integer(payload, type.bytes, type.has_sign));
      for (const OutType &out : type.outs)
        if (out.tdh != 0)
          add({fmt::format("{}_out{}", name, out.tdh), 0, type.in, out.tdh},
              v.integer(payload, type.bytes, type.has_sign, out.shown));
    }
    for (const unsigned in : kOthers)
      if (in != binary) add({fmt::format("in{}", in), 0, in}, put_value(v, payload, in));
    add({"bool8", 0, bool32, 0, 1, 1}, v.integer(payload, 1, false, Shown::truth));
    add({"ipv6", 0, binary, 24, 1, 16}, v.ipv6(payload));
    add({"in300", 0, 300}, put_value(v, payload, counted_utf16));
    add({"in301", 0, 301}, put_value(v, payload, counted_ansi));
    {
      const std::string text = v.text(true);
      const auto size = static_cast<std::uint16_t>(2 * utf16_from_utf8(text).size());
      put(payload, static_cast<std::uint16_t>(size << 8 | size >> 8));
      put_units(payload, text);
      add({"in302", 0, 302}, text);
    }
    add({"in306", 0, 306}, v.integer(payload, 2, false, Shown::character));
    add({"in307", 0, 307}, v.integer(payload, 1, false, Shown::character));
    add({"in308", 0, 308}, v.pointer(payload));
    put(payload, std::uint32_t{3});
    add({"in309", 0, 309}, v.binary(payload, 3));
    // Lengths and counts by other properties.
    const unsigned size = rng_.below(5), length = add({"size", 0, u16}, size);
    put(payload, static_cast<std::uint16_t>(size));
    add({"sized", 2, binary, 0, 1, length}, v.binary(payload, size));
    const unsigned count = rng_.below(4), times = add({"count", 0, u8}, count);
    payload.push_back(static_cast<std::uint8_t>(count));
    Json list = Json::array(), texts = Json::array();
    for (unsigned i = 0; i < count; ++i)
      list.push_back(v.integer(payload, 4, false));
    add({"numbers", 4, u32, 0, times}, std::move(list));
    for (unsigned i = 0; i < 2; ++i)
      texts.push_back(put_value(v, payload, utf16));
    add({"texts", 0x20, utf16, 0, 2}, std::move(texts));
    Json structures = Json::array();
    for (unsigned i = 0; i < count; ++i) {
      Json one = Json::object();
      one["a"] = v.integer(payload, 1, false);
      one["b"] = put_value(v, payload, utf16);
      structures.push_back(std::move(one));
    }
    const unsigned at = add({"structures", 1 | 4, 0, 2, times}, std::move(structures));
    {
      const std::string text = v.text(true); // up to the end of the payload
      put_units(payload, text);
      add({"in304", 0, 304}, text);
    }
    const std::size_t top = properties.size();
    properties[at].in = static_cast<unsigned>(top);
    properties.push_back({"a", 0, u8});
    properties.push_back({"b", 0, utf16});
    emit_described(1, "Values", properties, top, payload, std::move(shown));
  }

  // Numbers with names: in front of the record that refers to them, and behind it.
  void mapped() {
    Raw payload;
    Json shown = Json::object(), named = Json::object();
    std::vector<Property> properties;
    for (const MappedValue &value : mapped_values()) {
      properties.push_back({value.field, 0, u32, 0, 1, 0, value.map});
      put(payload, value.number);
      shown[value.field] = value.number;
      named[value.field] = value.named.empty() ? Json(value.number) : Json(value.named);
    }
    const bool first = !mapped_once_;
    if (first) emit_metadata(33, map_info(kDescribed, kStates));
    emit_described(2, "Mapped", properties, properties.size(), payload, std::move(shown));
    truth_.back()["named"] = std::move(named);
    if (first) emit_metadata(33, map_info(kDescribed, kFlags));
    mapped_once_ = true;
  }

  // --- EventSource

  static std::string source_xml() {
    std::string data;
    for (const auto &[name, type] : source_types())
      data += fmt::format("<data name=\"{}\" inType=\"win:{}\"/>", name, type);
    return fmt::format(
        "<instrumentationManifest "
        "xmlns=\"http://schemas.microsoft.com/win/2004/08/events\"><instrumentation><events>"
        "<provider name=\"Etwgen-Source\" guid=\"{{{}}}\" symbol=\"S\"><tasks><task name=\"Values\" "
        "value=\"65533\"/>"
        "</tasks><templates><template tid=\"ValuesArgs\">{}</template></templates><events><event value=\"1\" "
        "version=\"0\" level=\"win:Informational\" symbol=\"Values\" task=\"Values\" "
        "template=\"ValuesArgs\"/></events>"
        "</provider></events></instrumentation></instrumentationManifest>",
        to_string(kSource), data);
  }
  static const std::vector<std::pair<const char *, const char *>> &source_types() {
    static const std::vector<std::pair<const char *, const char *>> all = {{"text", "UnicodeString"},
                                                                           {"i8", "Int8"},
                                                                           {"u8", "UInt8"},
                                                                           {"i16", "Int16"},
                                                                           {"u16", "UInt16"},
                                                                           {"i32", "Int32"},
                                                                           {"u32", "UInt32"},
                                                                           {"i64", "Int64"},
                                                                           {"u64", "UInt64"},
                                                                           {"single", "Float"},
                                                                           {"real", "Double"},
                                                                           {"truth", "Boolean"},
                                                                           {"id", "GUID"},
                                                                           {"place", "Pointer"},
                                                                           {"when", "FILETIME"}};
    return all;
  }
  // In chunks: u8 format, u8 major, u8 minor, u8 0x5B, u16 how many, u16 which.
  void source_manifest() {
    constexpr std::size_t kChunk = 500;
    const std::string xml = source_xml();
    const auto total = static_cast<std::uint16_t>((xml.size() + kChunk - 1) / kChunk);
    for (std::uint16_t i = 0; i < total; ++i) {
      const std::string part = xml.substr(i * kChunk, kChunk);
      emit([&](write::EventBuilder &e) {
        write::EventFields fields;
        fields.provider = kSource, fields.id = 0xFFFE, fields.task = 0xFFFE, fields.opcode = 0xFE;
        e.event(fields, 8, 8, 4, time_).put(std::uint8_t{1}).put(std::uint8_t{1}).put(std::uint8_t{0});
        e.put(std::uint8_t{0x5B}).put(total).put(i);
        e.bytes({reinterpret_cast<const std::uint8_t *>(part.data()), part.size()});
      });
    }
  }
  void sourced() {
    Values v = values();
    Raw payload;
    Json shown = Json::object();
    shown["text"] = put_value(v, payload, utf16);
    for (const IntegerType &type : integers())
      shown[fmt::format("{}{}", type.has_sign ? "i" : "u", 8 * type.bytes)] =
          v.integer(payload, type.bytes, type.has_sign);
    shown["single"] = v.single(payload);
    shown["real"] = v.real(payload);
    shown["truth"] = v.integer(payload, 4, false, Shown::truth);
    shown["id"] = v.guid(payload);
    shown["place"] = v.pointer(payload);
    shown["when"] = v.filetime(payload);
    emit([&](write::EventBuilder &e) {
      write::EventFields fields;
      fields.provider = kSource, fields.id = 1, fields.task = 65533, fields.level = 4;
      e.event(fields, pointer_size_, 8, 4, time_).bytes(payload);
    });
    know(kSource, "Values", std::move(shown));
  }

  // --- WPP

  void messages() {
    struct Item {
      const char *name, *type;
      unsigned in; // or 0: an integer of `bytes`
      unsigned bytes = 0;
      bool has_sign = false;
      Shown shown = Shown::number;
    };
    constexpr Item kItems[] = {{"c", "ItemChar", 0, 1, true},
                               {"uc", "ItemUChar", 0, 1, false},
                               {"s", "ItemShort", 0, 2, true},
                               {"us", "ItemUShort", 0, 2, false},
                               {"l", "ItemLong", 0, 4, true},
                               {"ul", "ItemULong", 0, 4, false},
                               {"x", "ItemULongX", 0, 4, false, Shown::hex},
                               {"ll", "ItemLongLong", 0, 8, true},
                               {"ull", "ItemULongLong", 0, 8, false},
                               {"llx", "ItemLongLongX", 0, 8, false, Shown::hex},
                               {"d", "ItemDouble", f64},
                               {"p", "ItemPtr", pointer},
                               {"a", "ItemString", ansi},
                               {"w", "ItemWString", utf16},
                               {"pa", "ItemPString", counted_ansi},
                               {"pw", "ItemPWString", counted_utf16},
                               {"h", "ItemHexDump", counted_binary},
                               {"g", "ItemGuid", guid},
                               {"t", "ItemTimestamp", filetime},
                               {"n", "ItemNTSTATUS", 0, 4, false},
                               {"r", "ItemHRESULT", 0, 4, false},
                               {"e", "ItemWINERROR", 0, 4, false},
                               {"ip", "ItemIPAddr", 0, 4, false, Shown::ipv4},
                               {"port", "ItemPort", 0, 2, false, Shown::port},
                               {"sid", "ItemSid", sid}};
    Values v = values();
    Raw payload;
    Json shown = Json::object();
    std::string arguments, format;
    unsigned number = 10;
    for (const Item &item : kItems) {
      shown[item.name] = item.in != 0 ? put_value(v, payload, item.in)
                                      : v.integer(payload, item.bytes, item.has_sign, item.shown);
      format += fmt::format(" %{}!s!", number);
      arguments += fmt::format("{}, {} -- {}\n", item.name, item.type, number++);
    }
    // Two messages of one GUID.
    tmf_ = fmt::format(
        "{} etwgen // SRC=values.cpp\n#typev values_cpp10 10 \"%0values{}\" //   LEVEL=INFORMATION "
        "FLAGS=FLAG FUNC=run\n{{\n{}}}\n#typev values_cpp20 11 \"%0only %10!d!\" //   LEVEL=ERROR "
        "FLAGS=FLAG FUNC=run\n{{\nonly, ItemLong -- 10\n}}\n",
        to_string(kMessages), format, arguments);
    emit(
        [&](write::EventBuilder &e) { e.message(10, kMessages, pointer_size_, 8, 4, time_).bytes(payload); });
    know(kMessages, "values_cpp10", std::move(shown));
    Raw one;
    Json only = Json::object();
    only["only"] = v.integer(one, 4, true);
    emit([&](write::EventBuilder &e) { e.message(11, kMessages, pointer_size_, 8, 4, time_).bytes(one); });
    know(kMessages, "values_cpp20", std::move(only));
  }

  Rng rng_;
  std::int64_t time_;
  unsigned pointer_size_ = 8;
  SchemaEvents made_;
  Json truth_ = Json::array();
  std::string tmf_;
  std::vector<bool> described_once_;
  bool mapped_once_ = false;
};

} // namespace

SchemaEvents make_schema_events(std::uint64_t seed, std::int64_t time) {
  return Maker(seed, time).run();
}

} // namespace etwrelog::gen
