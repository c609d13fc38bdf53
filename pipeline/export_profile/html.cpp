// One page that opens without a network: the samples as columns, and a script that draws and adds up.
#include "base/errors.hpp"
#include "export_profile/column.hpp"
#include "export_profile/fit.hpp"
#include "export_profile/page_assets.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace etwrelog::export_profile {
namespace {

class PageWriter {
public:
  PageWriter(const Job &job, const Profile &profile, Out &out)
      : job_(job), profile_(profile), out_(out),
        tree_(build_tree(profile, Group::process, &node_of_, Apart::modules)) {}

  void write() {
    const std::string title = title_of(profile_, job_.options);
    out_.text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>")
        .xml(title)
        .text("</title>\n<style>\n")
        .text(page::page_css())
        .text("</style>\n</head>\n<body>\n")
        .text(page::page_html())
        .text("<script type=\"application/json\" id=\"data\">{\"meta\":");
    meta(title);
    out_.text(",\n\"processes\":");
    list(profile_.processes,
         [&](const ProfileProcess &p) { out_.text("[").json(clean(process_text(p))).text("]"); });
    out_.text(",\n\"threads\":");
    list(profile_.threads, [&](const ProfileThread &t) {
      out_.text("[")
          .json(clean(thread_text(t)))
          .text(",")
          .unsigned_number(std::min<std::size_t>(t.process, profile_.processes.size() - 1))
          .text("]");
    });
    out_.text(",\n\"modules\":");
    list(profile_.modules, [&](const ProfileModule &m) { module(m); });
    names();
    nodes();
    samples();
    out_.text(",\n\"reasons\":[");
    for (std::size_t i = 0; i < static_cast<std::size_t>(Unresolved::count_); ++i)
      out_.text(i == 0 ? "" : ",").json(unresolved_text(static_cast<Unresolved>(i)));
    out_.text("],\n\"classes\":[");
    for (std::size_t i = 0; i < static_cast<std::size_t>(SampleClass::count_); ++i)
      out_.text(i == 0 ? "" : ",").json(sample_class_text(static_cast<SampleClass>(i)));
    out_.text("],\n\"accounting\":");
    accounting();
    out_.text("}</script>\n<script>\n").text(page::page_js()).text("</script>\n</body>\n</html>\n");
  }

private:
  template <class Rows, class Row> void list(const Rows &rows, Row row) {
    out_.text("[");
    bool first = true;
    for (const auto &one : rows) {
      out_.text(first ? "" : ",");
      row(one);
      first = false;
    }
    out_.text("]");
  }

  [[nodiscard]] std::int64_t end() const { // every sample lies before it, whatever the header says
    return std::max<std::int64_t>(profile_.duration,
                                  profile_.samples.empty() ? 0 : profile_.samples.back().time);
  }

  void meta(const std::string &title) {
    out_.text("{\"title\":").json(title).text(",\"subtitle\":").json(subtitle_of(profile_));
    out_.text(",\"program\":")
        .json(clean(job_.options.program))
        .text(",\"kind\":\"")
        .text(profile_kind_name(profile_.kind));
    const Unit unit = unit_of(profile_);
    out_.text("\",\"unit\":").json(unit.name).text(",\"weight\":").unsigned_number(unit.weight);
    out_.text(",\"duration\":").number(end());
    out_.text(",\"interval\":")
        .unsigned_number(profile_.weight_ns())
        .text(",\"processors\":")
        .unsigned_number(profile_.processors);
    out_.text(",\"eventsLost\":")
        .unsigned_number(profile_.events_lost)
        .text(",\"buffersLost\":")
        .unsigned_number(profile_.buffers_lost);
    out_.text(",\"notes\":");
    list(job_.report.notes, [&](const std::string &note) { out_.json(note); });
    out_.text("}");
  }

  void module(const ProfileModule &m) {
    out_.text("{\"name\":").json(clean(m.name)).text(",\"path\":").json(clean(m.path)).text(",\"why\":");
    out_.json(m.symbols == Unresolved::none ? "found" : unresolved_text(m.symbols))
        .text(",\"detail\":")
        .json(clean(m.detail));
    out_.text(",\"id\":")
        .json(m.pdb_guid == Guid{} ? std::string() : fmt::format("{} {:x}", to_string(m.pdb_guid), m.pdb_age))
        .text("}");
  }

  void names() {
    const FrameNames frames(profile_, Apart::modules);
    std::vector<std::uint32_t> why(tree_.names.size(), 0);
    for (std::size_t i = 0; i < profile_.frames.size(); ++i)
      if (profile_.frames[i].kind != FrameKind::annotation && profile_.frames[i].function.empty())
        why[frames.of_frame[i]] = static_cast<std::uint32_t>(profile_.frames[i].why);
    out_.text(",\n\"names\":");
    list(tree_.names, [&](const Name &name) { out_.json(name.text); });
    out_.text(",\n\"styles\":");
    list(tree_.names, [&](const Name &name) { out_.unsigned_number(static_cast<unsigned>(name.style)); });
    out_.text(",\n\"nameModule\":");
    list(tree_.names, [&](const Name &name) {
      out_.number(name.module == kNoIndex ? -1 : static_cast<std::int64_t>(name.module));
    });
    out_.text(",\n\"nameWhy\":");
    list(why, [&](std::uint32_t reason) { out_.unsigned_number(reason); });
    std::vector<std::uint32_t> estimated;
    for (std::uint32_t i = 0; i < tree_.names.size(); ++i)
      if (tree_.names[i].estimated) estimated.push_back(i);
    out_.text(",\n\"estimated\":");
    list(estimated, [&](std::uint32_t name) { out_.unsigned_number(name); });
  }

  void nodes() {
    Column up, name;
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
      up.add(i == 0 ? 0 : i - tree_.nodes[i].parent);
      name.add(tree_.nodes[i].name);
    }
    out_.text(",\n\"nodes\":{\"count\":")
        .unsigned_number(tree_.nodes.size())
        .text(",\"up\":\"")
        .text(up.finish());
    out_.text("\",\"name\":\"").text(name.finish()).text("\"},\n\"nodeProcess\":");
    // The top node of each process; 0 where it has no samples.
    std::vector<std::uint32_t> top(profile_.processes.size(), 0);
    for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
      const std::uint32_t process = profile_.threads[profile_.samples[i].thread].process;
      if (process >= top.size() || top[process] != 0) continue;
      std::uint32_t at = node_of_[i];
      while (tree_.nodes[at].parent != 0)
        at = tree_.nodes[at].parent;
      top[process] = at;
    }
    list(top, [&](std::uint32_t node) { out_.unsigned_number(node); });
  }

  void samples() {
    Column time, thread, node, weight, beside;
    std::int64_t last = 0;
    bool weighted = false, more = false;
    for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
      const ProfileSample &sample = profile_.samples[i];
      const std::int64_t now = std::max(last, sample.time);
      time.add(static_cast<std::uint64_t>(now - last));
      last = now;
      thread.add(sample.thread);
      node.add(node_of_[i]);
      weight.add(sample.weight);
      weighted |= sample.weight != 1;
      beside.add(sample.beside_us);
      more |= sample.beside_us != 0;
    }
    out_.text(",\n\"samples\":{\"count\":")
        .unsigned_number(profile_.samples.size())
        .text(",\"time\":\"")
        .text(time.finish());
    out_.text("\",\"thread\":\"").text(thread.finish()).text("\",\"node\":\"").text(node.finish()).text("\"");
    if (weighted) out_.text(",\"weight\":\"").text(weight.finish()).text("\"");
    if (more) out_.text(",\"beside\":\"").text(beside.finish()).text("\"");
    out_.text("}");
  }

  void counts(const ProfileCounts &c) {
    out_.text("{\"samples\":").unsigned_number(c.samples).text(",\"classes\":");
    list(c.by_class, [&](std::uint64_t n) { out_.unsigned_number(n); });
    out_.text(",\"fragments\":")
        .unsigned_number(c.fragments)
        .text(",\"claimed\":")
        .unsigned_number(c.claimed);
    out_.text(",\"other\":")
        .unsigned_number(c.other_event)
        .text(",\"orphaned\":")
        .unsigned_number(c.orphaned)
        .text("}");
  }
  void accounting() {
    const ProfileAccounting &a = profile_.accounting;
    out_.text("{\"total\":");
    counts(a.total);
    out_.text(",\"processes\":[");
    for (std::size_t i = 0; i < profile_.processes.size(); ++i) {
      out_.text(i == 0 ? "" : ",");
      counts(i < a.by_process.size() ? a.by_process[i] : ProfileCounts{});
    }
    out_.text("],\"idle\":").unsigned_number(a.idle_left_out).text(",\"other\":");
    list(a.other_events, [&](const auto &one) {
      out_.text("[").json(clean(one.first)).text(",").unsigned_number(one.second).text("]");
    });
    out_.text("}");
  }

  const Job &job_;
  const Profile &profile_;
  Out &out_;
  std::vector<std::uint32_t> node_of_;
  CallTree tree_;
};

} // namespace

Result<void> write_html(const Job &job, Out &out) {
  const auto render = [&job](const Profile &profile, const ShownSlices &, Out &to) {
    PageWriter(job, profile, to).write();
  };
  return write_fitting(job, {}, render, out);
}

} // namespace etwrelog::export_profile
