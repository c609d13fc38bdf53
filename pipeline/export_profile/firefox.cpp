// The Firefox Profiler's processed format, version 66. Modules keep GUID, age and addresses, so that the
// viewer can ask a symbol server later (samply load). What a thread did when stands in it as markers.
#include "export_profile/fit.hpp"

#include "etwrelog/clock.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

namespace etwrelog::export_profile {
namespace {

enum Category : unsigned { kOtherCategory, kUser, kKernel, kJit, kNote };

class FirefoxStrings {
public:
  std::uint32_t operator()(std::string_view text) {
    const auto [found, fresh] =
        known_.try_emplace(std::string(text), static_cast<std::uint32_t>(all_.size()));
    if (fresh) all_.emplace_back(text);
    return found->second;
  }
  std::vector<std::string> all_;

private:
  std::unordered_map<std::string, std::uint32_t> known_;
};

class FirefoxWriter {
public:
  FirefoxWriter(const Profile &profile, const ProfileExportOptions &options, const ShownSlices &slices,
                Out &out)
      : profile_(profile), options_(options), slices_(slices), out_(out) {}

  void write() {
    find_range();
    make_tables();
    out_.text("{\"meta\":");
    meta();
    out_.text(",\n\"libs\":[");
    for (std::size_t i = 0; i < profile_.modules.size(); ++i)
      lib(profile_.modules[i], i == 0);
    out_.text("],\n\"pages\":[],\"profilerOverhead\":[],\"counters\":[],\n\"shared\":");
    shared();
    out_.text(",\n\"threads\":[");
    threads();
    out_.text("]}\n");
  }

private:
  // What the viewer shows: without it, from the first sample to the last, and no switches before and behind.
  void find_range() {
    if (profile_.stretch)
      range_ = *profile_.stretch;
    else
      range_.to = profile_.duration;
    const auto holds = [this](std::int64_t from, std::int64_t to) {
      range_.from = std::min(range_.from, from), range_.to = std::max(range_.to, to);
    };
    if (!profile_.samples.empty()) holds(profile_.samples.front().time, profile_.samples.back().time);
    for (const ProfileSlice &slice : profile_.slices)
      holds(slice.start, slice.end);
  }

  void meta() {
    const bool named = std::ranges::any_of(profile_.frames, [](const ProfileFrame &f) {
      return f.kind != FrameKind::annotation && !f.function.empty();
    });
    const double interval = static_cast<double>(profile_.interval_ns) / 1e6;
    out_.text("{\"preprocessedProfileVersion\":66,\"version\":24,\"interval\":")
        .fixed(interval > 0 ? interval : 1, 6);
    out_.text(",\"startTime\":").fixed(static_cast<double>(unix_ticks(profile_.start_time)) / 1e4, 3);
    out_.text(",\"profilingStartTime\":");
    time(range_.from);
    out_.text(",\"profilingEndTime\":");
    time(range_.to);
    out_.text(",\"processType\":0,\"product\":")
        .json(title_of(profile_, options_))
        .text(",\"oscpu\":\"Windows\",\"platform\":\"Windows\"");
    out_.text(",\"importedFrom\":")
        .json(clean(options_.program))
        .text(",\"logicalCPUs\":")
        .unsigned_number(profile_.processors);
    // Of our own: what the viewer has no word for.
    if (const char *kind = kind_to_note(profile_)) out_.text(",\"profileKind\":\"").text(kind).text("\"");
    if (!profile_.summed.empty()) out_.text(",\"profileSummed\":").json(clean(profile_.summed));
    if (profile_.interval_ns == 0) out_.text(",\"intervalRecorded\":false");
    out_.text(",\"debug\":false,\"symbolicated\":").text(named ? "true" : "false");
    out_.text(",\"usesOnlyOneStackType\":true,\"doesNotUseFrameImplementation\":true,"
              "\"sourceCodeIsNotOnSearchfox\":true,"
              "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"µs\"},"
              "\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},\"pausedRanges\":[],"
              "\"markerSchema\":[{\"name\":\"Switch\",\"display\":[\"marker-chart\",\"marker-table\"],"
              "\"fields\":[{\"key\":\"processor\",\"label\":\"Processor\",\"format\":\"integer\"},"
              "{\"key\":\"reason\",\"label\":\"Wait reason\",\"format\":\"integer\"}]}],"
              "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
              "{\"name\":\"User\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
              "{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
              "{\"name\":\"JIT\",\"color\":\"green\",\"subcategories\":[\"Other\"]},"
              "{\"name\":\"Note\",\"color\":\"lightblue\",\"subcategories\":[\"Other\"]}]}");
  }

  void lib(const ProfileModule &module, bool first) {
    std::string id = identity_text(module);
    if (id.empty()) id.assign(33, '0');
    const std::size_t slash = module.pdb_name.find_last_of("/\\");
    const std::string pdb = module.pdb_name.empty()      ? module.name
                            : slash == std::string::npos ? module.pdb_name
                                                         : module.pdb_name.substr(slash + 1);
    out_.text(first ? "\n{" : ",\n{")
        .text("\"name\":")
        .json(clean(module.name))
        .text(",\"path\":")
        .json(clean(module.path));
    out_.text(",\"debugName\":").json(clean(pdb)).text(",\"debugPath\":").json(clean(module.pdb_name));
    out_.text(",\"breakpadId\":\"").text(id).text("\",\"codeId\":");
    if (module.time_stamp != 0)
      out_.text(fmt::format("\"{:08X}{:x}\"", module.time_stamp, module.size));
    else
      out_.text("null");
    out_.text(",\"arch\":null}");
  }

  // Of unresolved frames every address is a function of its own, as the viewer expects before it asks for
  // names. It asks by the address of a call; the name is that of the other formats, where the call returns
  // to.
  void make_tables() {
    for (std::size_t i = 0; i < std::size(kStates) && !profile_.slices.empty(); ++i)
      state_names_[i] = strings_(kStates[i]);
    for (std::size_t i = 0; i < profile_.modules.size(); ++i)
      resources_.push_back(strings_(clean(profile_.modules[i].name)));
    for (const ProfileFrame &frame : profile_.frames) {
      const bool in_module = frame.module != kNoIndex;
      const std::uint64_t at = frame.rva - (frame.caller && frame.rva != 0 ? 1 : 0);
      std::string name = !frame.function.empty() ? clean(frame.function)
                         : in_module             ? fmt::format("0x{:x}", frame.rva)
                                                 : fmt::format("0x{:x}", frame.address);
      const std::uint32_t source = frame.file.empty() ? kNoIndex : source_of(clean(frame.file));
      const Key key{strings_(name), in_module ? frame.module : kNoIndex, source, frame.kind == FrameKind::jit,
                    frame.caller && frame.function.empty()};
      const auto [found, fresh] = known_.try_emplace(key, static_cast<std::uint32_t>(functions_.size()));
      if (fresh) functions_.push_back(key);
      function_of_.push_back(found->second);
      address_.push_back(in_module && at <= 0xFFFF'FFFE ? static_cast<std::int64_t>(at) : -1);
    }
  }

  std::uint32_t source_of(const std::string &file) {
    const std::uint32_t text = strings_(file);
    const auto [found, fresh] = known_sources_.try_emplace(text, static_cast<std::uint32_t>(sources_.size()));
    if (fresh) sources_.push_back(text);
    return found->second;
  }

  static Category category(const ProfileFrame &frame) {
    if (frame.kind == FrameKind::annotation) return kNote;
    if (frame.kind == FrameKind::jit) return kJit;
    if (frame.in_kernel) return kKernel;
    return frame.kind == FrameKind::unresolved ? kOtherCategory : kUser;
  }

  // "name":[value(0),value(1),...]
  template <class Value> void column(const char *name, std::size_t count, Value value, bool last = false) {
    out_.text("\"").text(name).text("\":[");
    for (std::size_t i = 0; i < count; ++i) {
      if (i != 0) out_.text(",");
      value(i);
    }
    out_.text(last ? "]" : "],");
  }
  void constant(const char *name, std::size_t count, const char *value, bool last = false) {
    column(
        name, count, [&](std::size_t) { out_.text(value); }, last);
  }
  void length(std::size_t count, const char *table) {
    out_.text("\"").text(table).text("\":{\"length\":").unsigned_number(count).text(",");
  }
  void index(std::uint32_t value, const char *none) {
    if (value == kNoIndex)
      out_.text(none);
    else
      out_.unsigned_number(value);
  }

  void shared() {
    const std::vector<ProfileFrame> &frames = profile_.frames;
    const std::size_t stacks = profile_.nodes.size() - 1, count = frames.size();
    out_.text("{");
    length(stacks, "stackTable");
    column("frame", stacks, [&](std::size_t i) { out_.unsigned_number(profile_.nodes[i + 1].frame); });
    column(
        "prefixOffset", stacks,
        [&](std::size_t i) {
          const std::uint32_t parent = profile_.nodes[i + 1].parent;
          out_.unsigned_number(parent == 0 ? 0 : i + 1 - parent);
        },
        true);
    out_.text("},\n");
    length(count, "frameTable");
    column("address", count, [&](std::size_t i) { out_.number(address_[i]); });
    column("inlineDepth", count,
           [&](std::size_t i) { out_.text(frames[i].kind == FrameKind::inlined ? "1" : "0"); });
    column("category", count, [&](std::size_t i) { out_.unsigned_number(category(frames[i])); });
    constant("subcategory", count, "0");
    column("func", count, [&](std::size_t i) { out_.unsigned_number(function_of_[i]); });
    constant("nativeSymbol", count, "null");
    constant("innerWindowID", count, "null");
    column("line", count,
           [&](std::size_t i) { index(frames[i].line == 0 ? kNoIndex : frames[i].line, "null"); });
    column("column", count,
           [&](std::size_t i) { index(frames[i].column == 0 ? kNoIndex : frames[i].column, "null"); });
    constant("originalLocation", count, "null", true);
    out_.text("},\n");
    const std::size_t functions = functions_.size();
    length(functions, "funcTable");
    column("name", functions, [&](std::size_t i) { out_.unsigned_number(functions_[i].name); });
    constant("isJS", functions, "false");
    constant("relevantForJS", functions, "false");
    column("resource", functions, [&](std::size_t i) { index(functions_[i].module, "-1"); });
    column("source", functions, [&](std::size_t i) { index(functions_[i].source, "null"); });
    constant("lineNumber", functions, "null");
    constant("columnNumber", functions, "null");
    constant("originalLocation", functions, "null", true);
    out_.text("},\n");
    const std::size_t modules = profile_.modules.size();
    length(modules, "resourceTable");
    constant("type", modules, "1");
    column("lib", modules, [&](std::size_t i) { out_.unsigned_number(i); });
    column("name", modules, [&](std::size_t i) { out_.unsigned_number(resources_[i]); });
    constant("host", modules, "null", true);
    out_.text("},\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
              "\"functionSize\":[]},\n");
    length(sources_.size(), "sources");
    constant("id", sources_.size(), "null");
    column("filename", sources_.size(), [&](std::size_t i) { out_.unsigned_number(sources_[i]); });
    constant("startLine", sources_.size(), "1");
    constant("startColumn", sources_.size(), "1");
    constant("sourceMapURL", sources_.size(), "null");
    constant("content", sources_.size(), "null", true);
    out_.text("},\n\"sourceLocationTable\":{\"length\":0,\"source\":[],\"line\":[],\"column\":[]},\n");
    column(
        "stringArray", strings_.all_.size(), [&](std::size_t i) { out_.json(strings_.all_[i]); }, true);
    out_.text("}");
  }

  void threads() {
    std::vector<std::vector<const ProfileSample *>> by_thread(profile_.threads.size());
    for (const ProfileSample &sample : profile_.samples)
      by_thread[sample.thread].push_back(&sample);
    std::vector<bool> shown(profile_.threads.size(), false);
    for (std::size_t i = 0; i < shown.size(); ++i)
      shown[i] = !by_thread[i].empty();
    for (std::size_t i = 0; i < profile_.slices.size(); ++i)
      if (slices_.shows(profile_.slices[i], i)) shown[profile_.slices[i].thread] = true;
    // The viewer knows a process by its id, and a thread: later owners of an id get a suffix.
    std::map<std::uint32_t, unsigned> used;
    std::vector<std::string> ids;
    for (const ProfileProcess &process : profile_.processes) {
      const unsigned before = used[process.pid]++;
      const std::string id = process.pid == kNoIndex ? "-1" : std::to_string(process.pid);
      ids.push_back(before == 0 ? id : fmt::format("{}.{}", id, before));
    }
    std::vector<std::uint32_t> main(profile_.processes.size(), kNoIndex);
    for (std::uint32_t i = 0; i < profile_.threads.size(); ++i) {
      const ProfileThread &thread = profile_.threads[i];
      if (!shown[i] || thread.process >= main.size()) continue;
      std::uint32_t &best = main[thread.process];
      // Of those that were there before the trace the lowest id, whichever has samples first.
      const auto age = [](const ProfileThread &of) { return std::pair(of.start, of.tid); };
      if (best == kNoIndex || age(thread) < age(profile_.threads[best])) best = i;
    }
    bool first = true;
    std::map<std::uint32_t, unsigned> used_threads;
    for (std::uint32_t i = 0; i < profile_.threads.size(); ++i) {
      if (!shown[i]) continue;
      const std::uint32_t process = profile_.threads[i].process;
      const bool is_main = process < main.size() && main[process] == i;
      const std::uint32_t tid = profile_.threads[i].tid;
      const unsigned before = used_threads[tid]++;
      thread(i, by_thread[i], process < ids.size() ? ids[process] : "-1",
             before == 0 ? std::to_string(tid) : fmt::format("{}.{}", tid, before), is_main, first);
      first = false;
    }
  }

  void time(std::int64_t ns) { out_.fixed(static_cast<double>(ns) / 1e6, 6); }
  void life(const char *start_name, const char *end_name, std::int64_t start, std::int64_t end) {
    out_.text(",\"").text(start_name).text("\":");
    time(std::max<std::int64_t>(0, start));
    out_.text(",\"").text(end_name).text("\":");
    if (end == std::numeric_limits<std::int64_t>::max())
      out_.text("null");
    else
      time(end);
  }

  void thread(std::uint32_t number, const std::vector<const ProfileSample *> &samples, const std::string &pid,
              const std::string &tid, bool is_main, bool first) {
    const ProfileThread &of = profile_.threads[number];
    const ProfileProcess *process =
        of.process < profile_.processes.size() ? &profile_.processes[of.process] : nullptr;
    // The viewer shows the name of the main thread in the place of the process's.
    std::string name = of.name.empty() ? fmt::format("thread {}", of.tid) : of.name;
    if (process && is_main) name = of.name.empty() ? process->name : process->name + " / " + of.name;
    out_.text(first ? "\n{" : ",\n{")
        .text("\"name\":")
        .json(clean(name))
        .text(",\"isMainThread\":")
        .text(is_main ? "true" : "false");
    out_.text(",\"pid\":\"")
        .text(pid)
        .text("\",\"tid\":\"")
        .text(tid)
        .text("\",\"processType\":\"default\",\"processName\":");
    out_.json(process ? clean(process->name) : "?");
    life("processStartupTime", "processShutdownTime", process ? process->start : 0,
         process ? process->end : std::numeric_limits<std::int64_t>::max());
    life("registerTime", "unregisterTime", of.start, of.end);
    out_.text(",\"pausedRanges\":[],\"showMarkersInTimeline\":false,\"samples\":{");
    sample_table(samples);
    out_.text("},");
    markers(number);
    out_.text("}");
  }

  // The viewer takes a sample's processor time for what passed since the sample before, and knows nothing of
  // the first one's: one without a stack and without weight stands before it, which read_firefox() skips.
  void sample_table(const std::vector<const ProfileSample *> &samples) {
    const bool cpu = profile_.kind == ProfileKind::cpu, counts = profile_.counts();
    std::optional<ProfileSample> before;
    if (cpu && profile_.weight_ns() != 0 && !samples.empty()) {
      const std::uint64_t stands_for = counts ? profile_.interval_ns : samples[0]->weight;
      before = {.time = std::max(range_.from, samples[0]->time - static_cast<std::int64_t>(stands_for)),
                .weight = 0};
    }
    const std::size_t first = before ? 1 : 0, count = samples.size() + first;
    const auto at = [&](std::size_t i) -> const ProfileSample & {
      return i < first ? *before : *samples[i - first];
    };
    out_.text("\"length\":")
        .unsigned_number(count)
        .text(",\"weightType\":\"")
        .text(!counts                             ? "tracing-ms"
              : profile_unit(profile_) == "bytes" ? "bytes"
                                                  : "samples")
        .text("\",");
    column("stack", count,
           [&](std::size_t i) { index(at(i).node == 0 ? kNoIndex : at(i).node - 1, "null"); });
    column("timeDeltas", count, [&](std::size_t i) { time(at(i).time - (i == 0 ? 0 : at(i - 1).time)); });
    column("weight", count, [&](std::size_t i) {
      if (counts)
        out_.unsigned_number(at(i).weight);
      else
        time(static_cast<std::int64_t>(at(i).weight));
    });
    const double busy = cpu ? static_cast<double>(profile_.weight_ns()) / 1000 : 0;
    column(
        "threadCPUDelta", count,
        [&](std::size_t i) { out_.fixed(busy * static_cast<double>(at(i).weight), 3); }, true);
  }

  void markers(std::uint32_t thread) {
    const auto first = std::ranges::lower_bound(profile_.slices, thread, {}, &ProfileSlice::thread);
    const auto end = std::ranges::upper_bound(profile_.slices, thread, {}, &ProfileSlice::thread);
    std::vector<const ProfileSlice *> shown;
    for (auto slice = first; slice != end; ++slice)
      if (slices_.shows(*slice, static_cast<std::size_t>(slice - profile_.slices.begin())))
        shown.push_back(&*slice);
    length(shown.size(), "markers");
    constant("category", shown.size(), "0");
    column("data", shown.size(), [&](std::size_t i) {
      out_.text("{\"type\":\"Switch\",\"processor\":").unsigned_number(shown[i]->processor);
      if (shown[i]->state == SliceState::waiting)
        out_.text(",\"reason\":").unsigned_number(shown[i]->wait_reason);
      out_.text("}");
    });
    column("endTime", shown.size(), [&](std::size_t i) { time(shown[i]->end); });
    column("name", shown.size(), [&](std::size_t i) {
      out_.unsigned_number(state_names_[static_cast<std::size_t>(shown[i]->state)]);
    });
    constant("phase", shown.size(), "1"); // from start to end
    column(
        "startTime", shown.size(), [&](std::size_t i) { time(shown[i]->start); }, true);
    out_.text("}");
  }

  struct Key {
    std::uint32_t name, module, source;
    bool jit, unnamed_caller;
    auto operator<=>(const Key &) const = default;
  };

  const Profile &profile_;
  const ProfileExportOptions &options_;
  const ShownSlices slices_;
  Out &out_;
  ProfileStretch range_;
  static constexpr const char *kStates[] = {"Running", "Ready", "Waiting"}; // as SliceState
  std::uint32_t state_names_[std::size(kStates)] = {};
  FirefoxStrings strings_;
  std::map<Key, std::uint32_t> known_;
  std::vector<Key> functions_;
  std::vector<std::uint32_t> function_of_, resources_, sources_;
  std::vector<std::int64_t> address_;
  std::map<std::uint32_t, std::uint32_t> known_sources_;
};

} // namespace

Result<void> write_firefox(const Job &job, Out &out) {
  constexpr std::uint64_t kMarkerBytes = 12; // compressed
  const auto render = [&job](const Profile &profile, const ShownSlices &slices, Out &to) {
    FirefoxWriter(profile, job.options, slices, to).write();
  };
  return write_fitting(job, {.timed = true, .slice_bytes = kMarkerBytes}, render, out);
}

} // namespace etwrelog::export_profile
