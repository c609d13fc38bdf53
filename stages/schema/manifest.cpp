// Instrumentation manifests: the XML that EventSource writes into the trace and that providers are compiled
// from (.man). The parser expands no entities, so that a small file stays small; the walk below is bounded.
#include "schema/entry.hpp"

#include "base/cut_text.hpp"
#include "base/errors.hpp"
#include "schema/value_text.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <pugixml.hpp>

namespace etwrelog::schema {
namespace {

constexpr std::size_t kMaxManifest = 64u << 20;
constexpr std::size_t kMaxEvents = 65'536, kMaxTotalFields = 1u << 20;
constexpr unsigned kMaxXmlDepth = 64;
// Of events, names and messages, as often as they are kept: many events may have the same text, and of
// providers inside providers each has the events.
constexpr std::size_t kMostOfManifest = 64u << 20;

std::string_view local(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

std::string_view attribute(const pugi::xml_node &node, const char *name) {
  return node.attribute(name).value();
}
// Of what is a number, a type or a reference: blanks around it are nothing.
std::string_view word(const pugi::xml_node &node, const char *name) {
  constexpr std::size_t kMost = 256; // of what any of these is
  const std::string_view text = attribute(node, name);
  return text.size() > kMost ? text : base::trimmed(text);
}
// In a message; what is longer was made to fill the memory.
std::string brief(std::string_view text) {
  constexpr std::size_t kMost = 100;
  return std::string(base::at_most(text, kMost)) + (text.size() > kMost ? "..." : "");
}

// Some tools write UTF-16 without the mark in front: XML begins with a character of ASCII. UTF-32, which has
// more zeros, is left to the parser.
pugi::xml_encoding encoding_of(std::string_view xml) {
  if (xml.size() < 4) return pugi::encoding_auto;
  const bool zeros[] = {xml[0] == 0, xml[1] == 0, xml[2] == 0, xml[3] == 0};
  if (!zeros[0] && zeros[1] && !zeros[2]) return pugi::encoding_utf16_le;
  if (zeros[0] && !zeros[1] && !zeros[3]) return pugi::encoding_utf16_be;
  if (xml.starts_with("\xFF\xFE") && !(zeros[2] && zeros[3])) return pugi::encoding_utf16_le;
  if (xml.starts_with("\xFE\xFF")) return pugi::encoding_utf16_be;
  return pugi::encoding_auto;
}

// What the declaration in front of XML says of single bytes, in lower case; empty if nothing.
std::string declared_encoding(std::string_view xml) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF", kKey = "encoding";
  if (xml.starts_with(kMark) || !xml.starts_with("<?xml")) return {}; // the mark of UTF-8 says more
  constexpr std::size_t kLongest = 256;
  std::string_view declaration = base::at_most(xml, kLongest);
  declaration = declaration.substr(0, declaration.find("?>"));
  const std::size_t at = declaration.find(kKey);
  if (at == std::string_view::npos) return {};
  declaration.remove_prefix(at + kKey.size());
  const std::size_t begin = declaration.find_first_of("\"'");
  if (begin == std::string_view::npos) return {};
  const std::size_t end = declaration.find(declaration[begin], begin + 1);
  return base::lower(declaration.substr(begin + 1, end == std::string_view::npos ? 0 : end - begin - 1));
}

std::optional<std::uint64_t> number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2), base = 16;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

struct InType {
  std::string_view name;
  unsigned number;
};
constexpr InType kInTypes[] = {{"UnicodeString", 1},
                               {"AnsiString", 2},
                               {"Int8", 3},
                               {"UInt8", 4},
                               {"Int16", 5},
                               {"UInt16", 6},
                               {"Int32", 7},
                               {"UInt32", 8},
                               {"Int64", 9},
                               {"UInt64", 10},
                               {"Float", 11},
                               {"Double", 12},
                               {"Boolean", 13},
                               {"Binary", 14},
                               {"GUID", 15},
                               {"Pointer", 16},
                               {"FILETIME", 17},
                               {"SYSTEMTIME", 18},
                               {"SID", 19},
                               {"HexInt32", 20},
                               {"HexInt64", 21},
                               {"CountedUnicodeString", 22},
                               {"CountedAnsiString", 23},
                               {"CountedBinary", 25}};
constexpr InType kOutTypes[] = {
    {"string", 1},    {"boolean", 13},       {"HexInt8", 16}, {"HexInt16", 17},   {"HexInt32", 18},
    {"HexInt64", 19}, {"PID", 20},           {"TID", 21},     {"Port", 22},       {"IPv4", 23},
    {"IPv6", 24},     {"SocketAddress", 25}, {"Xml", 28},     {"Win32Error", 30}, {"NTSTATUS", 31},
    {"HResult", 32},  {"Json", 34},          {"Utf8", 35},    {"CodePointer", 37}};

template <std::size_t N>
std::optional<unsigned> type_number(const InType (&table)[N], std::string_view name) {
  for (const InType &type : table)
    if (type.name == name) return type.number;
  return std::nullopt;
}

class Reader {
public:
  Reader(Origin origin, std::vector<std::string> &problems) : origin_(origin), problems_(problems) {}

  Result<std::vector<ManifestProvider>> read(std::string_view xml) {
    // Zeros behind it, in whole characters: of UTF-16 the last one may end in a zero byte.
    pugi::xml_encoding encoding = encoding_of(xml);
    const std::size_t unit = encoding == pugi::encoding_auto ? 1 : 2;
    while (xml.size() >= unit && xml.size() % unit == 0 && xml.ends_with(std::string_view("\0\0", unit)))
      xml.remove_suffix(unit);
    if (xml.size() > kMaxManifest)
      return failure("manifest", "at most 64 MiB", std::to_string(xml.size()) + " bytes");
    std::string converted;
    if (encoding == pugi::encoding_auto) {
      const std::string declared = declared_encoding(xml);
      constexpr std::string_view kReadByTheParser[] = {
          "",       "utf-8",    "utf8",  "us-ascii",
          "ascii", // and what was UTF-16 before it was saved anew
          "utf-16", "utf-16le", "ucs-2", "unicode"};
      if (declared == "windows-1252" || declared == "cp1252" || declared == "iso-8859-1" ||
          declared == "latin1") {
        // As browsers do, the older name is taken for the newer, which says more of the same bytes.
        converted = utf8_from_cp1252(xml);
        xml = converted;
        encoding = pugi::encoding_utf8;
      } else if (std::ranges::find(kReadByTheParser, declared) == std::end(kReadByTheParser)) {
        problem("a manifest is in " + brief(declared) +
                ": save it as UTF-8, or letters other than ASCII are lost");
      }
    }
    const pugi::xml_parse_result parsed =
        document_.load_buffer(xml.data(), xml.size(), pugi::parse_default, encoding);
    if (!parsed) {
      Error error = failure("manifest", "XML", parsed.description());
      error.offset = static_cast<std::uint64_t>(parsed.offset);
      return error;
    }
    visit(document_, 0, [this](const pugi::xml_node &node) {
      if (local(node.name()) != "string") return;
      strings_.try_emplace(std::string(attribute(node, "id")), attribute(node, "value"));
    });
    std::vector<ManifestProvider> providers;
    visit(document_, 0, [&](const pugi::xml_node &node) {
      if (local(node.name()) == "provider" && node.attribute("guid")) provider(node, providers);
    });
    if (problem_) return std::move(*problem_);
    return providers;
  }

private:
  static Error failure(std::string what, std::string expected, std::string found) {
    return base::corrupt(std::move(what)).expected(std::move(expected)).found(std::move(found));
  }

  template <class Visit> void visit(const pugi::xml_node &node, unsigned depth, const Visit &each) {
    if (depth > kMaxXmlDepth) return;
    for (const pugi::xml_node &child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      if (problem_) return;
      each(child);
      visit(child, depth + 1, each);
    }
  }

  // False, and the manifest is refused, if that is too much.
  bool keeps(std::size_t bytes) {
    kept_ += bytes;
    if (kept_ > kMostOfManifest && !problem_)
      problem_ = failure("manifest",
                         "at most 64 MiB of events, names and messages, each as often as it is used", "more");
    return kept_ <= kMostOfManifest;
  }

  // "$(string.id)" -> its text.
  std::string resolve(std::string_view message) const {
    if (!message.starts_with("$(string.") || !message.ends_with(")")) return std::string(message);
    message.remove_prefix(9), message.remove_suffix(1);
    const auto found = strings_.find(std::string(message));
    return found == strings_.end() ? std::string() : found->second;
  }

  using Names = std::unordered_map<std::string, std::string>;
  // What tasks and opcodes are shown as: their message where they have one.
  void add_name(const pugi::xml_node &node, Names &names, std::string_view prefix = {}) {
    std::string shown = resolve(attribute(node, "message"));
    if (shown.empty()) shown = attribute(node, "name");
    while (!shown.empty() && shown.back() == ' ')
      shown.pop_back();
    if (!keeps(shown.size())) return;
    names.try_emplace(std::string(prefix).append(attribute(node, "name")), std::move(shown));
  }

  void add_map(const pugi::xml_node &node) {
    auto map = std::make_shared<ValueMap>();
    map->name = attribute(node, "name");
    map->bits = local(node.name()) == "bitMap";
    for (const pugi::xml_node &item : node.children()) {
      const auto value = number(word(item, "value"));
      if (local(item.name()) != "map" || !value || map->entries.size() >= kMaxFields) continue;
      map->entries.push_back({*value, resolve(attribute(item, "message"))});
      if (!keeps(map->entries.back().name.size())) return;
    }
    std::stable_sort(map->entries.begin(), map->entries.end(),
                     [](const auto &a, const auto &b) { return a.value < b.value; });
    maps_.try_emplace(map->name, map);
  }

  void provider(const pugi::xml_node &node, std::vector<ManifestProvider> &providers) {
    const auto guid = parse_guid(attribute(node, "guid"));
    if (!guid) {
      problem_ = failure("manifest: guid of provider " + std::string(attribute(node, "name")), "a GUID",
                         std::string(attribute(node, "guid")));
      return;
    }
    templates_.clear(), tasks_.clear(), opcodes_.clear(), maps_.clear();
    ManifestProvider &mine = providers.emplace_back();
    mine.guid = *guid;
    mine.name = attribute(node, "name");
    visit(node, 0, [this](const pugi::xml_node &child) {
      const std::string_view tag = local(child.name());
      if (tag == "template") templates_.try_emplace(std::string(attribute(child, "tid")), child);
      if (tag == "task") add_name(child, tasks_);
      if (tag == "opcode") add_name(child, opcodes_, own_names(child.parent().parent()));
      if (tag == "valueMap" || tag == "bitMap") add_map(child);
    });
    visit(node, 0, [&](const pugi::xml_node &child) {
      if (local(child.name()) == "event" && child.attribute("value")) event(child, mine);
    });
  }

  // In front of the names of a task's own opcodes.
  static std::string own_names(const pugi::xml_node &task) {
    if (local(task.name()) != "task") return {};
    return std::string(attribute(task, "name")) + '\n';
  }

  void problem(std::string text) {
    if (problems_.size() < kMaxProblems) problems_.push_back(std::move(text));
  }

  static std::string name_of(const Names &names, std::string_view key) {
    const auto found = names.find(std::string(key));
    return found == names.end() ? std::string(key) : found->second;
  }

  void event(const pugi::xml_node &node, ManifestProvider &provider) {
    const auto drop = [&](std::string_view why) {
      const std::string_view version = word(node, "version");
      std::string text =
          "provider " + (provider.name.empty() ? to_string(provider.guid) : brief(provider.name));
      text.append(", event ").append(brief(word(node, "value")));
      if (!version.empty() && version != "0") text.append(" version ").append(brief(version));
      problem(text.append(" is not decoded: ").append(why));
    };
    const auto id = number(word(node, "value"));
    const auto version = number(node.attribute("version") ? word(node, "version") : "0");
    if (!id || *id > 0xFFFF) return drop("its value is no number up to 65535");
    if (!version || *version > 0xFF) return drop("its version is no number up to 255");
    if (provider.events.size() >= kMaxEvents) return drop("more than 65536 events");
    if (!keeps(sizeof(Entry))) return;
    auto entry = std::make_unique<Entry>();
    Schema &s = entry->schema;
    s.provider = provider.guid, s.id = static_cast<std::uint16_t>(*id);
    s.version = static_cast<std::uint16_t>(*version), s.origin = origin_;
    s.provider_name = entry->keep(provider.name);
    const std::string symbol(attribute(node, "symbol"));
    const std::string task_name(attribute(node, "task")), opcode_name(attribute(node, "opcode"));
    const std::string task = task_name == "win:None" ? std::string() : name_of(tasks_, task_name);
    s.task = entry->keep(task.empty() ? symbol : task);
    const auto own = opcodes_.find(task_name + '\n' + opcode_name);
    std::string opcode = own != opcodes_.end() ? own->second : name_of(opcodes_, opcode_name);
    if (opcode.starts_with("win:")) opcode.erase(0, 4);
    s.opcode_name = entry->keep(std::move(opcode));
    std::string shown = task_and_opcode(s.task, s.opcode_name);
    s.name = entry->keep(shown.empty() ? "EventID(" + std::to_string(s.id) + ")" : std::move(shown));
    s.message = entry->keep(resolve(attribute(node, "message")));
    for (const std::string &text : entry->texts)
      if (!keeps(text.size())) return;
    const std::string tid(attribute(node, "template"));
    if (!tid.empty()) {
      const auto found = templates_.find(tid);
      if (found == templates_.end()) return drop("its template is not there");
      Places places;
      std::string why = items(found->second, *entry, places, 0);
      if (problem_) return;
      if (why.empty()) why = entry->flaw();
      if (!why.empty()) return drop(why);
    }
    total_fields_ += entry->fields.size();
    if (total_fields_ > kMaxTotalFields) {
      problem_ = failure("manifest", "at most a million fields", "more");
      return;
    }
    entry->seal();
    provider.events.push_back(std::move(entry));
  }

  using Places = std::unordered_map<std::string, std::int16_t>;

  // A length or count: a number, or the name of a field in front.
  static void measure(std::string_view text, const Places &places, Measure &measure, std::uint16_t &constant,
                      std::int16_t &field) {
    if (base::trimmed(text).empty()) return;
    if (const auto value = number(base::trimmed(text))) {
      measure = Measure::constant;
      constant = static_cast<std::uint16_t>(std::min<std::uint64_t>(*value, 0xFFFF));
      return;
    }
    measure = Measure::by_field;
    auto found = places.find(std::string(text));
    if (found == places.end()) found = places.find(std::string(base::trimmed(text)));
    field = found == places.end() ? std::int16_t{-1} : found->second;
  }

  // Says why the event stays raw: a type that nobody knows, or too much of it. Empty: it does not.
  std::string items(const pugi::xml_node &parent, Entry &entry, Places &places, unsigned depth) {
    if (depth > kMaxDepth) return "structures more than 16 deep";
    // What the names of this structure's members mean outside of it; -1 for nothing.
    std::vector<std::pair<std::string, std::int16_t>> hidden;
    for (const pugi::xml_node &node : parent.children()) {
      const std::string_view tag = local(node.name());
      const bool structure = tag == "struct";
      if (!structure && tag != "data") continue;
      Field field;
      if (structure)
        field.type = FieldType::structure;
      else if (!scalar(node, entry, places, field))
        return std::string("field ")
            .append(brief(attribute(node, "name")))
            .append(" has the unknown type '")
            .append(brief(word(node, "inType")))
            .append("'");
      measure(attribute(node, "count"), places, field.repeat, field.count, field.count_field);
      std::string name(attribute(node, "name"));
      if (!keeps(name.size())) return "too much text";
      const auto index = entry.add(field, name);
      if (!index) return "more than 4096 fields";
      const auto [place, fresh] = places.try_emplace(name, std::int16_t{-1});
      if (depth > 0) hidden.emplace_back(std::move(name), fresh ? std::int16_t{-1} : place->second);
      place->second = static_cast<std::int16_t>(*index);
      if (!structure) continue;
      if (std::string why = items(node, entry, places, depth + 1); !why.empty()) return why;
      entry.fields[*index].members = static_cast<std::uint16_t>(entry.fields.size() - *index - 1);
    }
    for (; !hidden.empty(); hidden.pop_back())
      places[hidden.back().first] = hidden.back().second;
    return {};
  }

  bool scalar(const pugi::xml_node &node, Entry &entry, const Places &places, Field &field) {
    const auto in = type_number(kInTypes, local(word(node, "inType")));
    const auto out = type_number(kOutTypes, local(word(node, "outType")));
    if (!in || !apply_tdh_type(field, *in, out.value_or(0))) return false;
    const std::string_view length = attribute(node, "length");
    if (field.type == FieldType::boolean && *in == 13) {
      field.size = base::trimmed(length) == "1" ? std::uint16_t{1} : std::uint16_t{4};
    } else if (*in == 1 || *in == 2 || *in == 14) {
      measure(length, places, field.length, field.size, field.size_field);
      if (*in == 14 && field.length == Measure::natural && field.format == Format::ip_address)
        field.length = Measure::constant, field.size = 16;
    }
    if (const auto map = maps_.find(std::string(attribute(node, "map"))); map != maps_.end())
      field.map = entry.add_map(map->second);
    return true;
  }

  Origin origin_;
  std::vector<std::string> &problems_;
  pugi::xml_document document_;
  std::unordered_map<std::string, std::string> strings_;
  std::unordered_map<std::string, pugi::xml_node> templates_;
  Names tasks_, opcodes_;
  std::unordered_map<std::string, std::shared_ptr<const ValueMap>> maps_;
  std::size_t total_fields_ = 0, kept_ = 0;
  std::optional<Error> problem_;
};

} // namespace

Result<std::vector<ManifestProvider>> read_manifest(std::string_view xml, Origin origin,
                                                    std::vector<std::string> &problems) {
  return Reader(origin, problems).read(xml);
}

} // namespace etwrelog::schema
