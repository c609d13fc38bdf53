// Trace message format files: what a WPP message says, by message GUID and number.
//   GUID name // comment
//   #typev name number "format" //   LEVEL=... FLAGS=... FUNC=...
//   {
//   argument, ItemLong -- 10
//   }
// A GUID may have several #typev. In a format %10!d! is the argument whose number is 10, %!FUNC! what FUNC=
// says.
#include "schema/entry.hpp"

#include "base/cut_text.hpp"
#include "base/errors.hpp"
#include "etwrelog/text.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace etwrelog::schema {
namespace {

constexpr std::size_t kMaxTmf = 64u << 20, kMaxMessages = 200'000;

struct ItemType {
  std::string_view name;
  FieldType type;
  Format format = Format::plain;
  Measure length = Measure::natural;
  std::uint16_t size = 0;
};
constexpr ItemType kItems[] = {
    {"ItemChar", FieldType::i8},
    {"ItemUChar", FieldType::u8},
    {"ItemCharShort", FieldType::i8},
    {"ItemCharSign", FieldType::i8},
    {"ItemCharHidden", FieldType::u8},
    {"ItemShort", FieldType::i16},
    {"ItemUShort", FieldType::u16},
    {"ItemLong", FieldType::i32},
    {"ItemULong", FieldType::u32},
    {"ItemULongX", FieldType::u32, Format::hex},
    {"ItemLongLong", FieldType::i64},
    {"ItemULongLong", FieldType::u64},
    {"ItemLongLongX", FieldType::u64, Format::hex},
    {"ItemULongLongX", FieldType::u64, Format::hex},
    {"ItemLongLongXX", FieldType::u64, Format::hex},
    {"ItemDouble", FieldType::f64},
    {"ItemFloat", FieldType::f32},
    {"ItemPtr", FieldType::pointer},
    {"ItemString", FieldType::astr},
    {"ItemRString", FieldType::astr},
    {"ItemMLString", FieldType::astr},
    {"ItemWString", FieldType::wstr},
    {"ItemRWString", FieldType::wstr},
    {"ItemPString", FieldType::astr, Format::plain, Measure::prefix16},
    {"ItemPWString", FieldType::wstr, Format::plain, Measure::prefix16},
    {"ItemHexDump", FieldType::binary, Format::plain, Measure::prefix16},
    {"ItemGuid", FieldType::guid},
    {"ItemCLSID", FieldType::guid},
    {"ItemIID", FieldType::guid},
    {"ItemLIBID", FieldType::guid},
    {"ItemTimestamp", FieldType::filetime},
    {"ItemTimeDelta", FieldType::i64},
    {"ItemWaitTime", FieldType::i64},
    {"ItemDueTime", FieldType::i64},
    {"ItemNTSTATUS", FieldType::u32, Format::ntstatus},
    {"ItemHRESULT", FieldType::u32, Format::hresult},
    {"ItemWINERROR", FieldType::u32, Format::win32_error},
    {"ItemNTerror", FieldType::u32, Format::ntstatus},
    {"ItemNETEVENT", FieldType::u32},
    {"ItemMerror", FieldType::u32},
    {"ItemIPAddr", FieldType::u32, Format::ip_address},
    {"ItemIPV6Addr", FieldType::binary, Format::ip_address, Measure::constant, 16},
    {"ItemMACAddr", FieldType::binary, Format::plain, Measure::constant, 6},
    {"ItemPort", FieldType::u16, Format::port},
    {"ItemSid", FieldType::sid},
    {"ItemListByte", FieldType::u8},
    {"ItemListShort", FieldType::u16},
    {"ItemListLong", FieldType::u32},
    {"ItemSetByte", FieldType::u8, Format::hex},
    {"ItemSetShort", FieldType::u16, Format::hex},
    {"ItemSetLong", FieldType::u32, Format::hex},
    {"ItemEnum", FieldType::u32},
    {"ItemFlagsEnum", FieldType::u32, Format::hex},
};

std::string_view line_of(std::string_view &rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return base::trimmed(line);
}

std::string_view word_of(std::string_view &rest) {
  rest = base::trimmed(rest);
  const std::size_t end = rest.find_first_of(" \t");
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : base::trimmed(rest.substr(end));
  return word;
}

std::optional<unsigned> number_of(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// The values of KEY=VALUE in the comment of a message. A value, such as a function's name with the types of
// its parameters, may have blanks in it: it ends where the next key begins.
using Tags = std::unordered_map<std::string_view, std::string>;
Tags tags_of(std::string_view comment) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  Tags tags;
  std::string *value = nullptr;
  for (std::string_view rest = comment; !rest.empty();) {
    const std::string_view word = word_of(rest);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos && equals != 0 && equals == word.find_first_not_of(kLetters)) {
      const auto [at, fresh] = tags.try_emplace(word.substr(0, equals), word.substr(equals + 1));
      value = fresh ? &at->second : nullptr;
    } else if (value != nullptr) {
      value->append(" ").append(word);
    }
  }
  return tags;
}

// LEVEL=: a number, or a name of evntrace.h. What else it may be called is the program's own.
std::uint8_t level_called(std::string_view text) {
  constexpr std::string_view kNames[] = {"NONE",    "CRITICAL",  "ERROR",     "WARNING",   "INFORMATION",
                                         "VERBOSE", "RESERVED6", "RESERVED7", "RESERVED8", "RESERVED9"};
  if (const auto number = number_of(text)) return *number <= 0xFF ? static_cast<std::uint8_t>(*number) : 0;
  if (!text.starts_with("TRACE_LEVEL_")) return 0;
  text.remove_prefix(12);
  if (text == "FATAL") return 1;
  const auto *const found = std::find(std::begin(kNames), std::end(kNames), text);
  return found == std::end(kNames) ? std::uint8_t{0} : static_cast<std::uint8_t>(found - kNames);
}

// Text that is no part of the format, in the format: a function may be called operator%.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    out.append(c == '%' ? 2 : 1, c);
  return out;
}

struct Message {
  TraceMessage out;
  std::string format;
  std::string_view comment;
  std::vector<unsigned> numbers; // of the arguments, as in the format
  bool sound = true;
};

// The first arguments are the same for all messages: these are known without the event.
constexpr unsigned kModuleNumber = 1, kPlaceNumber = 2; // file and line

constexpr std::size_t kMaxText = 64u << 10;        // of a message
constexpr std::size_t kMostOfMessages = 64u << 20; // of all

// The format with arguments counted from 1 and the standard parts filled in. Longer than kMaxText: it is cut
// off somewhere behind that.
std::string renumbered(const Message &message, const Tags &tags) {
  std::string text;
  const std::string &from = message.format;
  for (std::size_t i = 0; i < from.size() && text.size() <= kMaxText; ++i) {
    if (from[i] != '%' || i + 1 == from.size()) {
      text += from[i];
      continue;
    }
    if (from[i + 1] == '!') {
      const std::size_t end = from.find('!', i + 2);
      if (end == std::string::npos) break;
      const auto tag = tags.find(std::string_view(from).substr(i + 2, end - i - 2));
      if (tag != tags.end()) text += escaped(tag->second);
      i = end;
      continue;
    }
    std::size_t digits = i + 1;
    while (digits < from.size() && from[digits] >= '0' && from[digits] <= '9')
      ++digits;
    if (digits == i + 1) {
      text += from[i];
      text += from[++i];
      continue;
    }
    const auto number = number_of(std::string_view(from).substr(i + 1, digits - i - 1));
    std::size_t end = digits;
    if (end < from.size() && from[end] == '!') end = std::min(from.find('!', end + 1), from.size() - 1) + 1;
    // Also without a format: the digits of the text behind it are no more of the number.
    const std::string_view format = end > digits + 2 && from[end - 1] == '!'
                                        ? std::string_view(from).substr(digits, end - digits)
                                        : std::string_view("!s!");
    for (std::size_t k = 0; number && k < message.numbers.size() && k < 99 && text.size() <= kMaxText; ++k)
      if (message.numbers[k] == *number) text.append("%").append(std::to_string(k + 1)).append(format);
    if (number == kModuleNumber) text += escaped(message.out.entry->schema.provider_name);
    if (number == kPlaceNumber) text += escaped(message.out.entry->schema.task);
    i = end - 1;
  }
  return text;
}

class TmfReader {
public:
  explicit TmfReader(std::vector<std::string> &problems) : problems_(problems) {}

  Result<std::vector<TraceMessage>> read(std::string_view text) {
    if (text.size() > kMaxTmf) return failure("at most 64 MiB", std::to_string(text.size()) + " bytes");
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    while (!text.empty()) {
      ++line_;
      const std::string_view line = line_of(text);
      if (line.empty() || line.starts_with("//")) continue;
      if (line.starts_with("#type")) {
        if (!begin(line))
          return failure("#typev NAME NUMBER \"FORMAT\" behind a GUID", std::string(line.substr(0, 80)));
      } else if (line.starts_with("#enum") || line == "{") {
        continue;
      } else if (line == "}") {
        finish();
      } else if (!inside_) {
        std::string_view rest = line;
        const auto guid = parse_guid(word_of(rest));
        if (!guid) continue; // values of an enumeration
        guid_ = *guid, has_guid_ = true;
        module_ = word_of(rest);
      } else {
        argument(line);
      }
      if (too_long_ || kept_ > kMostOfMessages) break;
    }
    finish();
    if (too_long_) return failure("messages of at most 64 KiB", "a longer one above");
    if (kept_ > kMostOfMessages)
      return failure("at most 64 MiB of messages, modules and names, each as often as it is used", "more");
    return std::move(out_);
  }

private:
  Error failure(std::string expected, std::string found) const {
    return base::corrupt("trace message format: line " + std::to_string(line_))
        .expected(std::move(expected))
        .found(std::move(found));
  }

  bool begin(std::string_view line) {
    finish();
    word_of(line);
    const std::string_view name = word_of(line);
    const auto number = number_of(word_of(line));
    const std::size_t open = line.find('"');
    if (!has_guid_ || !number || *number > 0xFFFF || open == std::string_view::npos) return false;
    std::size_t comment = line.rfind("//");
    std::size_t close = line.rfind('"', comment);
    if (close == open)
      comment = std::string_view::npos, close = line.rfind('"'); // the slashes are the text's
    if (close == std::string_view::npos || close <= open) return false;
    message_ = Message();
    message_.out.guid = guid_, message_.out.number = static_cast<std::uint16_t>(*number);
    message_.out.entry = std::make_unique<Entry>();
    message_.format = line.substr(open + 1, close - open - 1);
    if (message_.format.starts_with("%0")) message_.format.erase(0, 2); // the prefix of time and processor
    if (comment != std::string_view::npos) message_.comment = line.substr(comment);
    Schema &s = message_.out.entry->schema;
    s.provider = guid_, s.id = message_.out.number, s.origin = Origin::added;
    s.provider_name = message_.out.entry->keep(std::string(module_));
    s.task = s.name = message_.out.entry->keep(std::string(name));
    inside_ = true;
    return true;
  }

  void argument(std::string_view line) {
    const std::size_t dashes = line.rfind("--");
    std::size_t comma = std::string_view::npos; // the expression in front of the type may have others
    for (std::size_t at = line.find(','); at < dashes; at = line.find(',', at + 1))
      if (base::trimmed(line.substr(at + 1)).starts_with("Item")) comma = at;
    if (comma == std::string_view::npos || dashes == std::string_view::npos) {
      message_.sound = false; // as below
      return;
    }
    const std::string_view name = base::trimmed(line.substr(0, comma));
    std::string_view item = base::trimmed(line.substr(comma + 1, dashes - comma - 1));
    const std::size_t open = item.find_first_of("(,");
    const std::string_view names = open != item.npos && item[open] == '(' ? item.substr(open + 1) : "";
    item = base::trimmed(item.substr(0, open));
    const auto number = number_of(base::trimmed(line.substr(dashes + 2)));
    const auto *const found = std::find_if(std::begin(kItems), std::end(kItems),
                                           [item](const ItemType &type) { return type.name == item; });
    if (!number || found == std::end(kItems)) {
      // What follows an unknown argument cannot be found: the message stays raw.
      if (message_.sound && problems_.size() < kMaxProblems)
        problems_.push_back("trace message format: line " + std::to_string(line_) +
                            ": the message is not decoded: unknown argument '" +
                            std::string(item.substr(0, 80)) + "'");
      message_.sound = false;
      return;
    }
    Field field;
    field.type = found->type, field.format = found->format, field.length = found->length,
    field.size = found->size;
    if (!names.empty() && (item.starts_with("ItemList") || item.starts_with("ItemSet")))
      field.map = message_.out.entry->add_map(map_of(names, item.starts_with("ItemSet")));
    message_.sound = message_.out.entry->add(field, std::string(name)).has_value() && message_.sound;
    message_.numbers.push_back(*number);
  }

  // "a,b,c)": the names of 0, 1, 2, or of the bits.
  std::shared_ptr<const ValueMap> map_of(std::string_view names, bool bits) {
    auto map = std::make_shared<ValueMap>();
    map->bits = bits;
    names = names.substr(0, names.rfind(')'));
    while (!names.empty() && map->entries.size() < (bits ? 64u : 256u)) {
      const std::size_t end = names.find(',');
      const std::uint64_t number = map->entries.size();
      map->entries.push_back(
          {bits ? std::uint64_t{1} << number : number, std::string(base::trimmed(names.substr(0, end)))});
      kept_ += sizeof map->entries[0] + map->entries.back().name.size();
      names = end == names.npos ? std::string_view() : names.substr(end + 1);
    }
    return map;
  }

  void finish() {
    if (!inside_) return;
    inside_ = false;
    if (!message_.sound || out_.size() >= kMaxMessages) return;
    Entry &entry = *message_.out.entry;
    const Tags tags = tags_of(message_.comment);
    if (const auto level = tags.find("LEVEL"); level != tags.end())
      entry.schema.level = level_called(level->second);
    std::string text = renumbered(message_, tags);
    too_long_ = too_long_ || text.size() > kMaxText;
    kept_ += sizeof(Entry) + text.size();
    for (const std::string &kept : entry.texts)
      kept_ += kept.size();
    entry.schema.message = entry.keep(std::move(text));
    entry.seal();
    out_.push_back(std::move(message_.out));
  }

  std::vector<std::string> &problems_;
  std::vector<TraceMessage> out_;
  Message message_;
  Guid guid_;
  std::string_view module_;
  bool has_guid_ = false, inside_ = false, too_long_ = false;
  std::size_t line_ = 0, kept_ = 0;
};

} // namespace

Result<std::vector<TraceMessage>> read_tmf(std::string_view text, std::vector<std::string> &problems) {
  if (!text.starts_with("\xFF\xFE") || text.size() > kMaxTmf) return TmfReader(problems).read(text);
  // As a shell of Windows writes what a program prints.
  const auto *const units = reinterpret_cast<const std::uint8_t *>(text.data());
  return TmfReader(problems).read(utf8_from_utf16(Bytes(units + 2, text.size() - 2)));
}

} // namespace etwrelog::schema
