#include "profile_pass/code_events.hpp"

#include "etwrelog/clr_events.hpp"
#include "etwrelog/text.hpp"

namespace etwrelog::pipeline {

using namespace profile;

namespace {

// Chakra's manifest and V8's events share provider, id and layout.
constexpr Guid kScriptGuid = make_guid(0x57277741, 0x3638, 0x4a4b, 0xbdba, 0x0ac6e45da56c);
constexpr std::uint16_t kScriptMethodLoad = 9;

// Reads fields one behind the other; at the end of the payload everything is zero and empty.
class Fields {
public:
  Fields(Bytes payload, unsigned pointer_size) : rest_(payload), pointer_size_(pointer_size) {}
  template <class T> T number() {
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      rest_ = {};
      return 0;
    }
    const T value = load<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::uint64_t pointer() { return pointer_size_ == 8 ? number<std::uint64_t>() : number<std::uint32_t>(); }
  std::string text() {
    std::size_t end = 0;
    while (end + 2 <= rest_.size() && (rest_[end] != 0 || rest_[end + 1] != 0))
      end += 2;
    std::string text = utf8_from_utf16(rest_.first(end));
    rest_ = rest_.subspan(std::min(rest_.size(), end + 2));
    return text;
  }
  [[nodiscard]] bool ok() const { return ok_; }

private:
  Bytes rest_;
  unsigned pointer_size_;
  bool ok_ = true;
};

void add_method(const EventView &event, Moment at, MethodRecord::What what, bool names,
                StateRecords &records) {
  Fields fields(event.payload(), event.pointer_size());
  MethodRecord record;
  record.at = at;
  record.what = what;
  record.pid = event.process_id();
  record.id = fields.number<std::uint64_t>();
  record.module = fields.number<std::uint64_t>();
  record.start = fields.number<std::uint64_t>();
  record.size = fields.number<std::uint32_t>();
  fields.number<std::uint32_t>(); // token
  record.flags = fields.number<std::uint32_t>();
  if (!fields.ok()) return;
  if (names) {
    const std::string type = fields.text();
    record.name = fields.text();
    if (!type.empty()) record.name = type + "." + record.name;
  } else if (what != MethodRecord::What::unload) {
    return; // a method without its name tells nothing
  }
  records.methods.push_back(std::move(record));
}

void add_module(const EventView &event, StateRecords &records) {
  Fields fields(event.payload(), event.pointer_size());
  ManagedModuleRecord record;
  record.pid = event.process_id();
  record.id = fields.number<std::uint64_t>();
  fields.number<std::uint64_t>(); // assembly
  fields.number<std::uint64_t>(); // flags, reserved
  record.path = fields.text();
  if (fields.ok() && !record.path.empty()) records.managed_modules.push_back(std::move(record));
}

void add_script_method(const EventView &event, Moment at, StateRecords &records) {
  Fields fields(event.payload(), event.pointer_size());
  MethodRecord record;
  record.at = at;
  record.script = true;
  record.pid = event.process_id();
  fields.pointer(); // script context
  record.start = fields.pointer();
  record.size = fields.number<std::uint64_t>();
  record.id = fields.number<std::uint32_t>();
  fields.number<std::uint32_t>(); // flags, range
  fields.number<std::uint64_t>(); // source
  fields.number<std::uint64_t>(); // line, column
  record.name = fields.text();
  if (fields.ok() && !record.name.empty()) records.methods.push_back(std::move(record));
}

} // namespace

bool tells_of_code(const Guid &provider) {
  return provider == format::kClrGuid || provider == format::kClrRundownGuid || provider == kScriptGuid;
}

void add_code(const EventView &event, Moment at, StateRecords &records) {
  using What = MethodRecord::What;
  const Guid provider = event.provider();
  const std::uint16_t id = event.id();
  constexpr std::uint16_t kVerboseFrom = 143, kModuleLoad = 152, kRundownModule = 153,
                          kRundownModuleEnd = 154;
  if (provider == kScriptGuid) {
    if (id == kScriptMethodLoad) add_script_method(event, at, records);
  } else if (clr::is_method_load(provider, id)) {
    add_method(event, at, What::load, id >= kVerboseFrom, records);
  } else if (clr::is_method_unload(provider, id)) {
    add_method(event, at, What::unload, false, records);
  } else if (clr::is_method_rundown(provider, id)) {
    add_method(event, at, What::rundown, id >= kVerboseFrom, records);
  } else if (provider == format::kClrGuid ? id == kModuleLoad
                                          : id == kRundownModule || id == kRundownModuleEnd) {
    add_module(event, records);
  }
}

} // namespace etwrelog::pipeline
