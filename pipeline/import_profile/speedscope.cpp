// speedscope's "sampled" profiles. Its frames have names alone; pipeline/export_profile adds module and RVA
// to those without one, and the list of modules.
#include "import_profile/import.hpp"

#include "base/json.hpp"

#include <algorithm>
#include <cmath>

namespace etwrelog::import_profile {
namespace {

using base::whole_number;
using nlohmann::json;

class SpeedscopeReader {
public:
  SpeedscopeReader(const json &file, std::uint64_t room) : file_(file), builder_(room) {}

  Result<ReadProfile> read() {
    if (file_.contains("modules"))
      for (const json &module : file_.at("modules"))
        add_module(module);
    for (const json &frame : file_.at("shared").at("frames"))
      builder_.frame(frame_of(frame));
    for (const json &one : file_.at("profiles"))
      if (one.at("type") != "sampled")
        return broken("a profile of events instead of samples");
      else if (!one.at("samples").empty())
        samples(one);
    if (builder_.full()) return Builder::too_large();
    Profile &profile = builder_.profile;
    profile.interval_ns = whole_number(file_, "interval_ns", std::uint64_t{0});
    return ReadProfile{std::move(profile), ProfileFormat::speedscope, file_.value("name", std::string())};
  }

private:
  void add_module(const json &from) {
    ProfileModule module;
    module.name = from.at("name");
    module.path = from.at("path");
    if (read_identity(from.at("id").get<std::string>(), module)) module.pdb_name = from.at("pdb");
    builder_.module(std::move(module));
  }

  static ProfileFrame frame_of(const json &from) {
    const std::string kind = from.value("kind", std::string());
    const bool in_kernel = kind == "kernel" || from.value("kernel", false); // as older files have it
    ProfileFrame frame;
    if (from.contains("module")) {
      frame.module = whole_number<std::uint32_t>(from.at("module"));
      frame.rva = frame.address = whole_number<std::uint64_t>(from.at("rva"));
      frame.caller = from.value("caller", false);
      frame.in_kernel = in_kernel;
      frame.kind = in_kernel ? FrameKind::kernel : FrameKind::native;
      return frame;
    }
    if (kind == "jit" || kind == "inlined" || kind == "annotation") {
      frame.kind = kind == "jit"       ? FrameKind::jit
                   : kind == "inlined" ? FrameKind::inlined
                                       : FrameKind::annotation;
      frame.why = Unresolved::none;
      frame.function = from.at("name");
    } else {
      frame = named_frame(from.at("name"));
      frame.in_kernel = in_kernel && frame.kind != FrameKind::annotation;
      if (frame.in_kernel && frame.kind == FrameKind::native) frame.kind = FrameKind::kernel;
    }
    frame.file = from.value("file", std::string());
    frame.line = whole_number(from, "line", 0u);
    frame.column = whole_number(from, "col", 0u);
    return frame;
  }

  // "game.exe (1234) / Render (567)": threads are called anything, processes as files, without a slash.
  std::uint32_t thread_of(const std::string &name) {
    const std::size_t slash = name.find(" / ");
    const std::string process = name.substr(0, slash),
                      thread = slash == std::string::npos ? std::string() : name.substr(slash + 3);
    return builder_.thread(builder_.process(process, id_of(process)), thread, id_of(thread));
  }
  static std::uint32_t id_of(const std::string &text) {
    const std::size_t open = text.rfind('(');
    if (open == std::string::npos || text.compare(open, 3, "(-1") == 0) return kNoIndex;
    return static_cast<std::uint32_t>(std::strtoul(text.c_str() + open + 1, nullptr, 10));
  }

  void samples(const json &from) {
    const std::uint32_t thread = thread_of(from.at("name"));
    Profile &profile = builder_.profile;
    // Microseconds: of files that are older.
    const bool older = from.at("unit") == "microseconds", timed = older || from.at("unit") == "nanoseconds";
    (timed ? set_timed_kind : set_counted_kind)(file_.value("kind", std::string()), profile);
    const json &stacks = from.at("samples"), &weights = from.at("weights");
    // A sample of the processor weighs one interval.
    const bool counted = from.at("unit") == "none" || from.at("unit") == "bytes";
    const double unit = older ? 1e-3 : timed || counted ? 1 : file_.value("interval_ns", 0.0) / 1e6;
    if (profile.kind == ProfileKind::events) profile.summed = file_.value("summed", std::string());
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      ProfileSample sample;
      sample.thread = thread;
      for (const json &frame : stacks.at(i))
        sample.node = builder_.node(sample.node, whole_number<std::uint32_t>(frame));
      const double weight = std::clamp(weights.at(i).get<double>(), 0.0, 1e15);
      sample.weight = static_cast<std::uint64_t>(std::llround(unit > 0 ? std::min(weight / unit, 1e15) : 1));
      profile.samples.push_back(sample);
    }
  }

  const json &file_;
  Builder builder_;
};

} // namespace

Result<ReadProfile> read_speedscope(const json &file, std::uint64_t room) {
  return SpeedscopeReader(file, room).read();
}

} // namespace etwrelog::import_profile
