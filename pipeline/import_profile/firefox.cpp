// The processed format of the Firefox Profiler, as pipeline/export_profile writes it.
#include "import_profile/import.hpp"

#include "base/errors.hpp"
#include "base/json.hpp"
#include "etwrelog/clock.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace etwrelog::import_profile {
namespace {

using base::whole_number;
using nlohmann::json;

enum Category : unsigned { kOtherCategory, kUser, kKernel, kJit, kNote };

std::int64_t ns_of(const json &ms) {
  constexpr double kMost = kProfileTimeLimit / 1e6;
  return static_cast<std::int64_t>(std::llround(std::clamp(ms.get<double>(), -kMost, kMost) * 1e6));
}

// One of the tables of columns.
class Table {
public:
  Table(const json &parent, const char *name)
      : table_(parent.at(name)), size_(whole_number<std::size_t>(table_.at("length"))) {}
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const json &at(const char *column, std::size_t row) const {
    return table_.at(column).at(row);
  }
  template <class T = std::uint32_t> [[nodiscard]] T number(const char *column, std::size_t row) const {
    return whole_number<T>(at(column, row));
  }
  [[nodiscard]] std::uint32_t number_or_0(const char *column, std::size_t row) const { // null: 0
    return at(column, row).is_null() ? 0 : number(column, row);
  }
  [[nodiscard]] std::uint32_t index(const char *column, std::size_t row) const { // none: null or -1
    const json &value = at(column, row);
    const bool none = value.is_null() || (value.is_number() && value.get<double>() < 0);
    return none ? kNoIndex : whole_number<std::uint32_t>(value);
  }

private:
  const json &table_;
  std::size_t size_;
};

class FirefoxReader {
public:
  FirefoxReader(const json &file, std::uint64_t room) : file_(file), builder_(room) {}

  Result<ReadProfile> read() {
    const json &meta = file_.at("meta");
    constexpr unsigned kVersion = 66;
    if (const auto version = whole_number(meta, "preprocessedProfileVersion", 0u); version != kVersion)
      return base::unsupported("a profile of Firefox of another version")
          .expected(std::to_string(kVersion))
          .found(std::to_string(version));
    std::string title = meta.value("product", std::string());
    Profile &profile = builder_.profile;
    profile.processors = whole_number(meta, "logicalCPUs", 0u);
    profile.start_time = static_cast<std::int64_t>(std::llround(
        std::clamp(meta.value("startTime", 0.0), -1e14, 1e14) * 1e4 + static_cast<double>(kUnixEpoch)));
    if (meta.value("intervalRecorded", true))
      profile.interval_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns_of(meta.at("interval"))));
    for (const json &lib : file_.at("libs"))
      module(lib);
    const json &shared = file_.at("shared");
    frames(shared);
    if (builder_.full()) return Builder::too_large();
    stacks(shared);
    for (const json &thread : file_.at("threads"))
      samples(thread);
    std::ranges::stable_sort(profile.samples, {}, &ProfileSample::time);
    if (!profile.samples.empty()) profile.duration = profile.samples.back().time;
    if (meta.contains("profilingEndTime")) { // files of before have none
      const std::int64_t from = ns_of(meta.at("profilingStartTime")), to = ns_of(meta.at("profilingEndTime"));
      profile.duration = std::max<std::int64_t>(0, to);
      if (from > 0 && from <= to) profile.stretch = {from, to};
    }
    return ReadProfile{std::move(profile), ProfileFormat::firefox, std::move(title)};
  }

private:
  void module(const json &lib) {
    ProfileModule module;
    module.name = lib.at("name");
    module.path = lib.at("path");
    if (read_identity(lib.at("breakpadId").get<std::string>(), module)) {
      module.pdb_name = lib.at("debugPath").get<std::string>();
      if (module.pdb_name.empty()) module.pdb_name = lib.at("debugName").get<std::string>();
    }
    if (const json &code = lib.at("codeId"); code.is_string()) {
      constexpr std::size_t kStamp = 8;
      const auto text = code.get<std::string>();
      std::uint64_t stamp = 0;
      if (text.size() > kStamp && read_hex(std::string_view(text).substr(0, kStamp), stamp) &&
          read_hex(std::string_view(text).substr(kStamp), module.size))
        module.time_stamp = static_cast<std::uint32_t>(stamp);
    }
    builder_.module(std::move(module));
  }

  // An address that nobody named is its own name there.
  void frames(const json &shared) {
    const json &strings = shared.at("stringArray");
    const Table frames(shared, "frameTable"), functions(shared, "funcTable"), sources(shared, "sources"),
        resources(shared, "resourceTable");
    for (std::size_t i = 0; i < frames.size() && !builder_.full(); ++i) {
      const auto function = frames.number("func", i);
      auto name = strings.at(functions.number("name", function)).get<std::string>();
      ProfileFrame frame;
      if (const std::uint32_t resource = functions.index("resource", function); resource != kNoIndex)
        frame.module = resources.number("lib", resource);
      const auto category = frames.number("category", i);
      frame.in_kernel = category == kKernel;
      frame.line = frames.number_or_0("line", i);
      frame.column = frames.number_or_0("column", i);
      if (const std::uint32_t source = functions.index("source", function); source != kNoIndex)
        frame.file = strings.at(sources.number("filename", source));
      // Of callers the address is that of the call, as for a look-up, and the name where it returns to. In
      // files of before both were that of the call.
      if (const std::uint32_t at = frames.index("address", i); at != kNoIndex) {
        frame.caller = frame.module != kNoIndex && name == fmt::format("0x{:x}", std::uint64_t{at} + 1);
        frame.rva = frame.address = std::uint64_t{at} + (frame.caller ? 1 : 0);
      }
      if (category == kNote)
        frame.kind = FrameKind::annotation;
      else if (frames.number("inlineDepth", i) != 0)
        frame.kind = FrameKind::inlined;
      else if (category == kJit)
        frame.kind = FrameKind::jit;
      else if (frame.module != kNoIndex)
        frame.kind = frame.in_kernel ? FrameKind::kernel : FrameKind::native;
      const bool unnamed = frame.module == kNoIndex
                               ? category != kNote && category != kJit && name.starts_with("0x") &&
                                     read_hex(std::string_view(name).substr(2), frame.address)
                               : name == fmt::format("0x{:x}", frame.rva);
      if (!unnamed) {
        frame.function = std::move(name);
        frame.why = Unresolved::none;
      } else if (frame.module == kNoIndex) {
        frame.why = Unresolved::no_image;
      }
      builder_.frame(std::move(frame));
    }
  }

  void stacks(const json &shared) {
    const Table stacks(shared, "stackTable");
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      const std::uint32_t offset = stacks.number("prefixOffset", i), node = static_cast<std::uint32_t>(i + 1);
      builder_.profile.nodes.push_back(
          {offset == 0 || offset > node ? 0 : node - offset, stacks.number("frame", i)});
    }
  }

  std::int64_t moment(const json &thread, const char *name, std::int64_t none) {
    const json &value = thread.at(name);
    return value.is_null() ? none : ns_of(value);
  }

  void samples(const json &thread) {
    Profile &profile = builder_.profile;
    constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
    const auto pid_text = thread.at("pid").get<std::string>(), tid_text = thread.at("tid").get<std::string>();
    std::uint32_t &process =
        processes_.try_emplace(pid_text, static_cast<std::uint32_t>(profile.processes.size())).first->second;
    if (process == profile.processes.size()) {
      ProfileProcess &made = profile.processes.emplace_back();
      made.pid = pid_text == "-1" ? kNoIndex
                                  : static_cast<std::uint32_t>(std::strtoul(pid_text.c_str(), nullptr, 10));
      made.name = thread.at("processName");
      made.start = moment(thread, "processStartupTime", 0);
      made.end = moment(thread, "processShutdownTime", kForever);
    }
    const auto number = static_cast<std::uint32_t>(profile.threads.size());
    ProfileThread &made = profile.threads.emplace_back();
    made.tid = static_cast<std::uint32_t>(std::strtoul(tid_text.c_str(), nullptr, 10));
    made.process = process;
    made.name = thread.at("name");
    if (thread.at("isMainThread").get<bool>()) { // its name stands behind the process's, if it has one
      const std::string behind = thread.at("processName").get<std::string>() + " / ";
      made.name = made.name.starts_with(behind) ? made.name.substr(behind.size()) : std::string();
    }
    if (made.name == fmt::format("thread {}", made.tid)) made.name.clear(); // words for one without a name
    made.start = moment(thread, "registerTime", 0);
    made.end = moment(thread, "unregisterTime", kForever);
    const Table table(thread, "samples");
    const json &weights = thread.at("samples").at("weightType"), &meta = file_.at("meta");
    const bool timed = weights != "samples" && weights != "bytes";
    (timed ? set_timed_kind : set_counted_kind)(meta.value("profileKind", std::string()), profile);
    if (profile.kind == ProfileKind::events) profile.summed = meta.value("profileSummed", std::string());
    slices(thread, number);
    std::int64_t time = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
      ProfileSample sample;
      time = std::clamp(time + ns_of(table.at("timeDeltas", i)), -kProfileTimeLimit, kProfileTimeLimit);
      sample.time = time;
      const double weight = table.at("weight", i).get<double>() * (timed ? 1e6 : 1);
      sample.weight = static_cast<std::uint64_t>(std::llround(std::clamp(weight, 0.0, 1e15)));
      sample.thread = number;
      const std::uint32_t stack = table.index("stack", i);
      sample.node = stack == kNoIndex ? 0 : stack + 1;
      if (i == 0 && sample.node == 0 && sample.weight == 0) continue; // only tells when the first one began
      profile.samples.push_back(sample);
    }
  }

  // Threads come one after the other, each one's markers by time.
  void slices(const json &thread, std::uint32_t number) {
    const Table markers(thread, "markers");
    const json &strings = file_.at("shared").at("stringArray");
    for (std::size_t i = 0; i < markers.size(); ++i) {
      const json &data = markers.at("data", i);
      const std::string name = strings.at(markers.number("name", i));
      ProfileSlice slice;
      slice.start = ns_of(markers.at("startTime", i));
      slice.end = ns_of(markers.at("endTime", i));
      slice.thread = number;
      slice.processor = whole_number<decltype(slice.processor)>(data.at("processor"));
      slice.state = name == "Running" ? SliceState::running
                    : name == "Ready" ? SliceState::ready
                                      : SliceState::waiting;
      slice.wait_reason = whole_number(data, "reason", std::uint8_t{0});
      builder_.profile.slices.push_back(slice);
    }
  }

  const json &file_;
  Builder builder_;
  std::map<std::string, std::uint32_t> processes_;
};

} // namespace

Result<ReadProfile> read_firefox(const json &file, std::uint64_t room) {
  return FirefoxReader(file, room).read();
}

} // namespace etwrelog::import_profile
