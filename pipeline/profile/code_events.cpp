#include "profile_pass/code_events.hpp"

#include "etwrelog/clr_events.hpp"
#include "etwrelog/text.hpp"

namespace etwrelog::pipeline {

using namespace profile;

namespace {

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
  [[nodiscard]] bool holds(std::size_t bytes) const { return ok_ && bytes <= rest_.size(); }

private:
  Bytes rest_;
  unsigned pointer_size_;
  bool ok_ = true;
};

void add_method(const EventView &event, Instant at, MethodRecord::What what, bool names,
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
    if (event.version() >= 2) {
      (void)fields.text();                             // signature
      fields.number<std::uint16_t>();                  // runtime
      record.version = fields.number<std::uint64_t>(); // 0 if it is cut off
    }
  } else if (what != MethodRecord::What::unload) {
    return; // a method without its name tells nothing
  }
  records.code.methods.push_back(std::move(record));
}

void add_module(const EventView &event, StateRecords &records) {
  Fields fields(event.payload(), event.pointer_size());
  ManagedModuleRecord record;
  record.pid = event.process_id();
  record.id = fields.number<std::uint64_t>();
  fields.number<std::uint64_t>(); // assembly
  fields.number<std::uint64_t>(); // flags, reserved
  record.path = fields.text();
  if (fields.ok() && !record.path.empty()) records.code.modules.push_back(std::move(record));
}

void add_il_map(const EventView &event, StateRecords &records) {
  Fields fields(event.payload(), event.pointer_size());
  IlMapRecord record;
  record.pid = event.process_id();
  record.id = fields.number<std::uint64_t>();
  record.version = fields.number<std::uint64_t>();
  fields.number<std::uint8_t>(); // part of the method
  const auto count = fields.number<std::uint16_t>();
  if (!fields.holds(std::size_t{count} * 2 * sizeof(std::uint32_t))) return;
  record.entries.resize(count);
  for (IlMapRecord::Entry &entry : record.entries)
    entry.il = fields.number<std::uint32_t>();
  for (IlMapRecord::Entry &entry : record.entries)
    entry.native = fields.number<std::uint32_t>();
  records.code.maps.push_back(std::move(record));
}

void add_script_method(const EventView &event, Instant at, MethodRecord::What what, StateRecords &records) {
  Fields fields(event.payload(), event.pointer_size());
  MethodRecord record;
  record.at = at;
  record.what = what;
  record.script = true;
  record.pid = event.process_id();
  fields.pointer(); // script context
  record.start = fields.pointer();
  record.size = fields.number<std::uint64_t>();
  record.id = fields.number<std::uint32_t>();
  fields.number<std::uint32_t>(); // flags, range
  record.source = fields.number<std::uint64_t>();
  record.line = fields.number<std::uint32_t>();
  record.column = fields.number<std::uint32_t>();
  record.name = fields.text();
  if (fields.ok() && !record.name.empty()) records.code.methods.push_back(std::move(record));
}

void add_script_source(const EventView &event, StateRecords &records) {
  Fields fields(event.payload(), event.pointer_size());
  ScriptSourceRecord record;
  record.pid = event.process_id();
  record.id = fields.number<std::uint64_t>();
  fields.pointer();               // script context
  fields.number<std::uint32_t>(); // flags
  record.url = fields.text();
  if (fields.ok() && !record.url.empty()) records.code.sources.push_back(std::move(record));
}

void add_script(const EventView &event, Instant at, StateRecords &records) {
  using What = MethodRecord::What;
  switch (event.id()) {
  case 5:
  case 6: add_script_method(event, at, What::rundown, records); break;
  case 9: add_script_method(event, at, What::load, records); break;
  case 10: add_script_method(event, at, What::unload, records); break;
  case 39:
  case 40:
  case 41: add_script_source(event, records); break;
  default: break;
  }
}

} // namespace

bool tells_of_code(const Guid &provider) {
  return provider == format::kClrGuid || provider == format::kClrRundownGuid || provider == clr::kScriptGuid;
}

void add_code(const EventView &event, Instant at, StateRecords &records) {
  using What = MethodRecord::What;
  const Guid provider = event.provider();
  const std::uint16_t id = event.id();
  constexpr std::uint16_t kVerboseFrom = 143, kModuleLoad = 152, kRundownModule = 153,
                          kRundownModuleEnd = 154, kIlMap = 190, kRundownIlMap = 149, kRundownIlMapEnd = 150;
  if (provider == clr::kScriptGuid) {
    add_script(event, at, records);
  } else if (provider == format::kClrGuid ? id == kIlMap : id == kRundownIlMap || id == kRundownIlMapEnd) {
    add_il_map(event, records);
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
