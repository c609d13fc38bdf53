// speedscope's own format, "sampled": one profile a thread, stacks from the root.
#include "export_profile/fit.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <map>

namespace etwrelog::export_profile {
namespace {

struct ThreadSamples {
  std::uint32_t thread = 0;
  std::uint64_t weight = 0;
  std::vector<const ProfileSample *> samples;
};

std::vector<ThreadSamples> by_thread(const Profile &profile) {
  std::vector<ThreadSamples> all(profile.threads.size());
  for (const ProfileSample &sample : profile.samples) {
    ThreadSamples &of = all[sample.thread];
    of.thread = sample.thread;
    of.weight += sample.weight;
    of.samples.push_back(&sample);
  }
  std::erase_if(all, [](const ThreadSamples &t) { return t.samples.empty(); });
  std::ranges::stable_sort(all, std::greater<>(),
                           &ThreadSamples::weight); // the busiest is the one that is shown first
  return all;
}

// What read_speedscope() cannot see from the name.
std::string_view kind_text(Style style) {
  switch (style) {
  case Style::kernel: return "kernel";
  case Style::jit: return "jit";
  case Style::inlined: return "inlined";
  case Style::annotation: return "annotation";
  default: return {};
  }
}

void write_module(const ProfileModule &module, bool first, Out &out) {
  out.text(first ? "\n{\"name\":" : ",\n{\"name\":").json(clean(module.name));
  out.text(",\"path\":").json(clean(module.path)).text(",\"pdb\":").json(clean(module.pdb_name));
  out.text(",\"id\":").json(identity_text(module)).text("}");
}

void write_all(const Profile &profile, const ProfileExportOptions &options, Out &out) {
  const FrameNames frames(profile, Apart::builds);
  std::vector<const ProfileFrame *> first(frames.names.size(), nullptr);
  for (std::size_t i = 0; i < profile.frames.size(); ++i)
    if (first[frames.of_frame[i]] == nullptr) first[frames.of_frame[i]] = &profile.frames[i];

  // What is counted is told in milliseconds where the interval is known; what is timed, in nanoseconds.
  const bool counts = profile.counts(), timed = profile.weight_ns() != 0;
  const double unit = counts && timed ? static_cast<double>(profile.weight_ns()) / 1e6 : 1;
  out.text("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":")
      .json(clean(options.program));
  out.text(",\"name\":")
      .json(title_of(profile, options))
      .text(",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
  for (std::size_t i = 0; i < frames.names.size(); ++i) {
    out.text(i == 0 ? "\n{\"name\":" : ",\n{\"name\":").json(frames.names[i].text);
    if (!first[i]->file.empty()) {
      out.text(",\"file\":").json(clean(first[i]->file));
      if (first[i]->line != 0) out.text(",\"line\":").unsigned_number(first[i]->line);
      if (first[i]->column != 0) out.text(",\"col\":").unsigned_number(first[i]->column);
    }
    // What is not named yet can be by these, and the list of modules. Other readers skip what they don't
    // know.
    if (first[i]->module != kNoIndex && first[i]->function.empty()) {
      out.text(",\"module\":")
          .unsigned_number(first[i]->module)
          .text(",\"rva\":")
          .unsigned_number(first[i]->rva);
      if (first[i]->caller) out.text(",\"caller\":true");
    }
    if (const std::string_view kind = kind_text(frames.names[i].style); !kind.empty())
      out.text(",\"kind\":\"").text(kind).text("\"");
    out.text("}");
  }
  out.text("]},");
  if (const char *kind = kind_to_note(profile)) out.text("\"kind\":\"").text(kind).text("\",");
  if (!profile.summed.empty()) out.text("\"summed\":").json(clean(profile.summed)).text(",");
  out.text("\"interval_ns\":").unsigned_number(profile.interval_ns).text(",\"modules\":[");
  for (std::size_t i = 0; i < profile.modules.size(); ++i)
    write_module(profile.modules[i], i == 0, out);
  out.text("],\"profiles\":[");
  bool any = false;
  std::vector<std::uint32_t> path;
  for (const ThreadSamples &thread : by_thread(profile)) {
    const ProfileThread &of = profile.threads[thread.thread];
    const std::string process =
        of.process < profile.processes.size() ? process_text(profile.processes[of.process]) : "? (-1)";
    out.text(any ? ",\n{" : "\n{")
        .text("\"type\":\"sampled\",\"name\":")
        .json(clean(process + " / " + thread_text(of)));
    out.text(",\"unit\":\"")
        .text(!counts                            ? "nanoseconds"
              : timed                            ? "milliseconds"
              : profile_unit(profile) == "bytes" ? "bytes"
                                                 : "none");
    out.text("\",\"startValue\":0,\"endValue\":").fixed(static_cast<double>(thread.weight) * unit, 6);
    out.text(",\"samples\":[");
    for (std::size_t i = 0; i < thread.samples.size(); ++i) {
      path.clear();
      for (std::uint32_t at = thread.samples[i]->node; at != 0; at = profile.nodes[at].parent)
        path.push_back(frames.of_frame[profile.nodes[at].frame]);
      out.text(i == 0 ? "[" : ",[");
      for (std::size_t k = path.size(); k-- > 0;)
        out.unsigned_number(path[k]).text(k == 0 ? "" : ",");
      out.text("]");
    }
    out.text("],\"weights\":[");
    for (std::size_t i = 0; i < thread.samples.size(); ++i) {
      const auto weight = static_cast<double>(thread.samples[i]->weight);
      out.text(i == 0 ? "" : ",").fixed(weight * unit, 6);
    }
    out.text("]}");
    any = true;
  }
  if (!any)
    out.text("{\"type\":\"sampled\",\"name\":\"no "
             "samples\",\"unit\":\"none\",\"startValue\":0,\"endValue\":0,\"samples\":[],\"weights\":[]}");
  out.text("]}\n");
}

} // namespace

Result<void> write_speedscope(const Job &job, Out &out) {
  const auto render = [&job](const Profile &profile, const ShownSlices &, Out &to) {
    write_all(profile, job.options, to);
  };
  return write_fitting(job, {}, render, out);
}

} // namespace etwrelog::export_profile
