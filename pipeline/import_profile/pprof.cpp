// profile.proto of pprof, in protobuf's wire format.
#include "import_profile/import.hpp"

#include "etwrelog/clock.hpp"
#include "etwrelog/format.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace etwrelog::import_profile {
namespace {

// Fields of our own, as pipeline/export_profile writes them.
constexpr unsigned kPdbName = 15;  // of a mapping
constexpr unsigned kCompiled = 15; // of a function

struct Field {
  unsigned number = 0;
  std::uint64_t value = 0; // of a varint
  bool packed = false;     // a length and bytes
  Bytes bytes;             // of these
};

// The fields of a message, one by one.
class Message {
public:
  explicit Message(Bytes bytes) : rest_(bytes) {}

  // False at the end, and where the message is broken.
  bool next(Field &field) {
    std::uint64_t tag = 0, size = 0;
    if (rest_.empty() || !varint(tag)) return false;
    field = {static_cast<unsigned>(tag >> 3), 0, (tag & 7) == 2, {}};
    switch (tag & 7) {
    case 0: return varint(field.value);
    case 1: size = 8; break;
    case 5: size = 4; break;
    case 2:
      if (!varint(size)) return false;
      break;
    default: ok_ = false; return false;
    }
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return false;
    field.bytes = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(static_cast<std::size_t>(size));
    return true;
  }
  [[nodiscard]] bool ok() const { return ok_; }

  bool varint(std::uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const std::uint8_t byte = rest_.front();
      rest_ = rest_.subspan(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    ok_ = false;
    return false;
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

private:
  Bytes rest_;
  bool ok_ = true;
};

// A repeated number stands packed or one by one, as its writer likes, or in pieces of either.
void add_numbers(const Field &field, std::vector<std::uint64_t> &all) {
  if (!field.packed) return all.push_back(field.value);
  Message packed(field.bytes);
  for (std::uint64_t value = 0; !packed.at_end() && packed.varint(value);)
    all.push_back(value);
}

class PprofReader {
public:
  explicit PprofReader(std::uint64_t room) : builder_(room) {}

  Result<ReadProfile> read(Bytes file) {
    Message top(file);
    std::vector<Bytes> values, samples, mappings, locations, functions;
    std::vector<std::uint64_t> comments;
    for (Field field; top.next(field);) {
      switch (field.number) {
      case 1: values.push_back(field.bytes); break;
      case 2: samples.push_back(field.bytes); break;
      case 3: mappings.push_back(field.bytes); break;
      case 4: locations.push_back(field.bytes); break;
      case 5: functions.push_back(field.bytes); break;
      case 6:
        strings_.emplace_back(reinterpret_cast<const char *>(field.bytes.data()), field.bytes.size());
        break;
      case 9: // of the Unix epoch, in ns
        builder_.profile.start_time = kUnixEpoch + static_cast<std::int64_t>(field.value / 100);
        break;
      case 10:
        builder_.profile.duration =
            static_cast<std::int64_t>(std::min<std::uint64_t>(field.value, kProfileTimeLimit));
        break;
      case 12: interval_ = field.value; break;
      case 13: add_numbers(field, comments); break;
      default: break;
      }
    }
    if (!top.ok() || strings_.empty() || samples.empty())
      return broken("neither JSON nor a profile of pprof");
    read_kind(values);
    for (const Bytes one : mappings)
      if (add_mapping(one); builder_.full()) return Builder::too_large();
    for (const std::uint64_t comment : comments)
      read_comment(text(comment));
    for (const Bytes one : functions)
      add_function(one);
    for (const Bytes one : locations)
      if (add_location(one); builder_.full()) return Builder::too_large();
    for (const Bytes one : samples) {
      if (!add_sample(one)) return broken("pprof: a sample that names what is not there");
      if (builder_.full()) return Builder::too_large();
    }
    Profile &profile = builder_.profile;
    if (profile.counts_samples()) profile.interval_ns = interval_;
    return ReadProfile{std::move(profile), ProfileFormat::pprof, std::move(title_)};
  }

private:
  [[nodiscard]] std::string_view view(std::uint64_t index) const {
    return index < strings_.size() ? std::string_view(strings_[index]) : std::string_view();
  }
  [[nodiscard]] std::string text(std::uint64_t index) const { return std::string(view(index)); }

  // Samples of the processor are counted, and timed where their interval is known; waits are timed alone.
  // What is neither a time nor samples is what events say.
  void read_kind(const std::vector<Bytes> &values) {
    if (values.size() > 1) return;
    std::string name, unit;
    if (!values.empty()) {
      Message message(values.front());
      for (Field field; message.next(field);) {
        if (field.number == 1) name = text(field.value);
        if (field.number == 2) unit = text(field.value);
      }
    }
    if (name == "samples") return;
    builder_.profile.by_time = name == kSummedDuration && unit == "nanoseconds";
    if (unit != "bytes" && unit != "count" && !builder_.profile.by_time)
      return set_timed_kind(name, builder_.profile);
    builder_.profile.kind = ProfileKind::events;
    if (name != profile_kind_name(ProfileKind::events)) builder_.profile.summed = name;
  }

  void add_mapping(Bytes bytes) {
    ProfileModule module;
    std::uint64_t id = 0, limit = 0, pdb_name = 0;
    Message message(bytes);
    for (Field field; message.next(field);) {
      switch (field.number) {
      case 1: id = field.value; break;
      case 2: module.base = field.value; break;
      case 3: limit = field.value; break;
      case 5: module.path = text(field.value); break;
      case 6: (void)read_identity(text(field.value), module); break;
      case kPdbName: pdb_name = field.value; break;
      default: break;
      }
    }
    module.size = limit > module.base ? limit - module.base : 0;
    module.name = last_part(module.path);
    module.pdb_name = text(pdb_name);
    if (module.pdb_name.empty() && module.pdb_guid != Guid{}) // another program wrote the file again
      module.pdb_name = module.name.substr(0, module.name.rfind('.')) + ".pdb";
    modules_[id] = static_cast<std::uint32_t>(builder_.profile.modules.size());
    builder_.module(std::move(module));
  }

  // "pdb 3 C:\build\game.pdb": so files of earlier versions name the PDB of a mapping; else the title.
  void read_comment(const std::string &comment) {
    unsigned long long id = 0;
    int at = 0;
    if (std::sscanf(comment.c_str(), "pdb %llu %n", &id, &at) == 1 && at > 0) {
      if (const auto module = modules_.find(id); module != modules_.end())
        builder_.profile.modules[module->second].pdb_name = comment.substr(static_cast<std::size_t>(at));
    } else if (const std::size_t colon = comment.find(": "); colon != std::string::npos) {
      title_ = comment.substr(colon + 2);
    }
  }

  struct Function {
    std::string_view name, file; // of strings_, which is whole by now
    bool compiled = false;
  };
  void add_function(Bytes bytes) {
    std::uint64_t id = 0;
    Function function;
    Message message(bytes);
    for (Field field; message.next(field);) {
      if (field.number == 1) id = field.value;
      if (field.number == 2) function.name = view(field.value);
      if (field.number == 4) function.file = view(field.value);
      if (field.number == kCompiled) function.compiled = field.value != 0;
    }
    functions_[id] = std::move(function);
  }

  void add_location(Bytes bytes) {
    std::uint64_t id = 0, mapping = 0, address = 0;
    struct Line {
      std::uint64_t function = 0, line = 0, column = 0;
    };
    std::vector<Line> lines; // innermost first
    Message message(bytes);
    for (Field field; message.next(field);) {
      switch (field.number) {
      case 1: id = field.value; break;
      case 2: mapping = field.value; break;
      case 3: address = field.value; break;
      case 4: {
        Line &line = lines.emplace_back();
        Message inside(field.bytes);
        for (Field part; inside.next(part);) {
          if (part.number == 1) line.function = part.value;
          if (part.number == 2) line.line = part.value;
          if (part.number == 3) line.column = part.value;
        }
        break;
      }
      default: break;
      }
    }
    const auto module = modules_.find(mapping);
    std::vector<std::uint32_t> &frames = locations_[id]; // outermost first
    for (std::size_t i = lines.size(); i-- > 0;) {
      const Function &function = functions_[lines[i].function];
      ProfileFrame frame = named_frame(std::string(function.name));
      frame.file = function.file;
      frame.line = static_cast<std::uint32_t>(lines[i].line);
      frame.column = static_cast<std::uint32_t>(lines[i].column);
      if (frame.address == 0) frame.address = address;
      // A bare address is its own name; where a call returns to, that of the call is the location's.
      if (lines.size() == 1 && frame.address == address + 1) frame.caller = true;
      if (i + 1 != lines.size()) frame.kind = FrameKind::inlined;
      if (function.compiled) frame.kind = FrameKind::jit;
      frame.in_kernel = format::is_kernel_address(address, 8); // of a 32-bit trace nothing tells
      if (module != modules_.end()) keep_place(frame, module->second, address, lines.size() == 1);
      frames.push_back(static_cast<std::uint32_t>(builder_.profile.frames.size()));
      builder_.frame(std::move(frame));
      if (builder_.full()) return;
    }
  }

  // Of a frame without a name its module's name and its RVA are the name; of a caller the address is that of
  // the call, and the RVA that of the return.
  void keep_place(ProfileFrame &frame, std::uint32_t index, std::uint64_t address, bool alone) {
    const ProfileModule &module = builder_.profile.modules[index];
    const std::uint64_t rva = address - module.base;
    const bool called = alone && frame.function == fmt::format("{}+0x{:x}", module.name, rva),
               caller = alone && frame.function == fmt::format("{}+0x{:x}", module.name, rva + 1);
    if (!called && !caller) return;
    frame.function.clear();
    frame.why = Unresolved::not_asked;
    frame.kind = FrameKind::native;
    frame.module = index;
    frame.caller = caller;
    frame.rva = caller ? rva + 1 : rva;
    frame.address = module.base + frame.rva;
  }

  bool add_sample(Bytes bytes) {
    ProfileSample sample;
    std::vector<std::uint64_t> locations, values;
    std::string process = "?", thread = "thread";
    std::uint32_t pid = kNoIndex, tid = 0;
    Message message(bytes);
    for (Field field; message.next(field);) {
      if (field.number == 1) add_numbers(field, locations);
      if (field.number == 2) add_numbers(field, values);
      if (field.number != 3) continue;
      std::string key;
      Field label, value;
      for (Message inside(field.bytes); inside.next(label);)
        if (label.number == 1)
          key = text(label.value);
        else
          value = label;
      if (key == "process") process = text(value.value);
      if (key == "thread") thread = text(value.value);
      if (key == "pid") pid = static_cast<std::uint32_t>(value.value);
      if (key == "tid") tid = static_cast<std::uint32_t>(value.value);
    }
    if (!message.ok()) return false;
    constexpr std::size_t kDeepest = 1u << 16; // a place may be named any number of times
    std::size_t depth = 0;
    for (std::size_t i = locations.size(); i-- > 0;) {
      const auto location = locations_.find(locations[i]);
      if (location == locations_.end() || (depth += location->second.size()) > kDeepest) return false;
      for (const std::uint32_t frame : location->second)
        sample.node = builder_.node(sample.node, frame);
    }
    sample.weight = values.empty() ? 0 : values[0];
    sample.thread = builder_.thread(builder_.process(process, pid), thread, tid);
    builder_.profile.samples.push_back(sample);
    return true;
  }

  Builder builder_;
  std::vector<std::string> strings_;
  std::map<std::uint64_t, std::uint32_t> modules_;
  std::map<std::uint64_t, Function> functions_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> locations_;
  std::uint64_t interval_ = 0;
  std::string title_;
};

} // namespace

Result<ReadProfile> read_pprof(Bytes file) {
  return PprofReader(room_for(file.size())).read(file);
}

} // namespace etwrelog::import_profile
