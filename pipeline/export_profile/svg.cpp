// A flame graph as SVG: everything is drawn here, so that it reads without scripts; the script adds zoom and
// search.
#include "export_profile/column.hpp"
#include "export_profile/fit.hpp"
#include "export_profile/page_assets.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace etwrelog::export_profile {
namespace {

constexpr double kWidth = 1200, kMargin = 12, kInner = kWidth - 2 * kMargin;
constexpr double kRow = 18, kCharacter = 6.63; // a monospaced font of 11 pixels
constexpr double kHead = 74, kFoot = 34;
constexpr double kLeastWidth = 0.3;         // less is nothing but a haze above the rest
constexpr std::size_t kMostCells = 60'000;  // browsers are slow with more
constexpr std::size_t kFewestCells = 16;    // fewer are no picture: then it does not fit
constexpr std::size_t kMostKnown = 250'000; // that a search looks through; some 7 bytes each
constexpr unsigned kShades = 6;

struct Cell {
  std::uint32_t node, depth;
  double from, width; // in the unit of the totals
};

// What a search looks through: the frames that are drawn, those too narrow, and what is not told of them.
enum class Known : std::uint8_t { drawn, narrow, nothing };
struct KnownNode {
  std::uint32_t node, depth; // of `nothing`: the node above
  Known how;
  double weight;
};

struct Picture {
  std::vector<Cell> cells;
  std::vector<KnownNode> known; // each before what it called
  std::uint32_t rows = 0;
  double left_out = 0; // weight of what was too narrow, counted once
};

// How many frames are drawn at most, and how many of the rest a search knows, those included.
struct Most {
  std::size_t drawn, known;
};

// What is drawn: what is wide enough, and of that the widest.
struct Least {
  double width;
  Heaviest<double> widest, known;
  [[nodiscard]] bool draws(std::uint32_t node, double of) const {
    return of >= width && widest.has(of, node);
  }
};

// Iterative: a hostile stack may be thousands of frames deep.
template <class Total> Picture lay_out(const CallTree &tree, Total total, const Least &least) {
  Picture out;
  const CallTree::Children children = tree.children_by_name();
  struct Open {
    std::uint32_t node, depth;
    double from;
    bool drawn;
  };
  std::vector<Open> open{{0, 0, 0, true}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    if (at.drawn) {
      out.cells.push_back({at.node, at.depth, at.from, total(at.node)});
      out.rows = std::max(out.rows, at.depth + 1);
    }
    out.known.push_back({at.node, at.depth, at.drawn ? Known::drawn : Known::narrow, total(at.node)});
    double from = at.from, not_known = 0;
    const std::size_t first = open.size();
    for (std::uint32_t i = children.first[at.node]; i < children.first[at.node + 1]; ++i) {
      const std::uint32_t child = children.order[i];
      const double width = total(child);
      if (width <= 0) continue;
      const bool drawn = at.drawn && least.draws(child, width);
      if (drawn || least.known.has(width, child))
        open.push_back({child, at.depth + 1, from, drawn});
      else
        not_known += width;
      if (at.drawn && !drawn) out.left_out += width;
      from += width;
    }
    if (not_known > 0) out.known.push_back({at.node, at.depth + 1, Known::nothing, not_known});
    std::reverse(open.begin() + static_cast<std::ptrdiff_t>(first), open.end());
  }
  return out;
}

template <class Total> Least least_of(const CallTree &tree, Total total, double whole, const Most &most) {
  const auto width = [&](std::size_t i) { return total(static_cast<std::uint32_t>(i)); };
  const std::size_t count = tree.nodes.size();
  return {whole * kLeastWidth / kInner, heaviest(count, most.drawn, width),
          heaviest(count, most.known, width)};
}

// First a search knows less, then less is drawn.
class Sizes {
public:
  Sizes(std::size_t nodes, std::size_t most_cells)
      : drawn_(std::min(nodes, most_cells)), known_(std::max(drawn_, std::min(nodes, kMostKnown))),
        first_(halving_steps(known_, drawn_)) {}
  [[nodiscard]] std::size_t steps() const { return first_ + halving_steps(drawn_, kFewestCells); }
  [[nodiscard]] Most at(std::size_t given_up) const {
    if (given_up < first_) return {drawn_, halved(known_, drawn_, given_up)};
    const std::size_t most = halved(drawn_, kFewestCells, given_up - first_);
    return {most, most};
  }

private:
  std::size_t drawn_, known_, first_;
};

constexpr std::string_view kClasses[] = {"r", "p", "t", "k", "n", "j", "i", "u", "a"};
static_assert(std::size(kClasses) == static_cast<std::size_t>(Style::count_));

struct Hue {
  Style style;
  std::string_view label;
  int hue, saturation, lightness;
};
constexpr Hue kHues[] = {
    {Style::kernel, "kernel", 22, 92, 74},         {Style::native, "native", 212, 72, 77},
    {Style::jit, "JIT-compiled", 135, 44, 70},     {Style::inlined, "inlined", 184, 46, 80},
    {Style::unresolved, "no module", 288, 30, 82}, {Style::annotation, "note", 48, 30, 85},
};

std::string colour(int hue, int saturation, int lightness) {
  const double s = saturation / 100.0, l = lightness / 100.0, a = s * std::min(l, 1 - l);
  const auto part = [&](int n) {
    const double k = std::fmod(n + hue / 30.0, 12);
    return static_cast<int>(std::lround(255 * (l - a * std::max(-1.0, std::min({k - 3, 9 - k, 1.0})))));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", part(0), part(8), part(4));
}

void write_styles(Out &out) {
  out.text("text{font:11px ui-monospace,\"DejaVu Sans "
           "Mono\",Menlo,Consolas,monospace;fill:#1c2330;white-space:pre}"
           "text.t1{font:600 17px system-ui,\"Segoe UI\",\"DejaVu Sans\",sans-serif}"
           "text.t2{font:12px system-ui,\"Segoe UI\",\"DejaVu Sans\",sans-serif;fill:#5b6577}"
           "g.f rect{stroke:#fff;stroke-width:.4;rx:2px}g.f:hover rect{stroke:#1c2330;stroke-width:1}"
           "g.flame{outline:none}g.f.at rect{stroke:#1c2330;stroke-width:2}g.f{cursor:pointer}g.f "
           "text{pointer-events:none}.dim{opacity:.45}.hit rect{fill:#e83e8c!important}"
           ".hit text{fill:#fff}.r{fill:#e4e8ef}.p{fill:#cfd6e2}.t{fill:#dbe1ea}");
  for (const Hue &hue : kHues)
    for (unsigned shade = 0; shade < kShades; ++shade)
      out.text(fmt::format(".{}{}{{fill:{}}}", kClasses[static_cast<std::size_t>(hue.style)], shade,
                           colour(hue.hue + static_cast<int>(shade % 3) * 7 - 7, hue.saturation,
                                  hue.lightness + static_cast<int>(shade / 3) * 5 - 2)));
}

// Frames of one module share a hue, those of one function a shade of it.
std::string class_of(const Name &name) {
  const std::string_view text = name.text;
  if (name.style < Style::kernel) return std::string(kClasses[static_cast<std::size_t>(name.style)]);
  const std::string_view module = text.substr(0, text.find_first_of("!+"));
  return fmt::format("{}{}", kClasses[static_cast<std::size_t>(name.style)],
                     module_hash(module) % 3 + 3 * (module_hash(text) % 2));
}

// As many whole characters as fit, with two dots where something is missing.
std::string fit(std::string_view text, double width) {
  const auto room = static_cast<std::size_t>(std::max(0.0, (width - 6) / kCharacter));
  if (room < 3) return {};
  std::size_t characters = 0, end = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    if (characters++ == room - 2) end = at;
  }
  return characters <= room ? std::string(text) : std::string(text.substr(0, end)) + "..";
}

std::string weight_text(double weight, double whole, const Unit &unit) {
  return fmt::format("{}, {:.2f} %", unit.text_with_name(weight), whole > 0 ? 100 * weight / whole : 0);
}

struct Frame {
  std::string css, fill, about; // a class, or a colour of its own
};

class Svg {
public:
  Svg(Out &out, bool icicle) : out_(out), icicle_(icicle) {}

  void open(double height, std::string_view title, std::string_view subtitle) {
    out_.text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
              "width=\"1200\" height=\"")
        .fixed(height, 1)
        .text("\" viewBox=\"0 0 1200 ")
        .fixed(height, 1)
        .text("\" role=\"img\">\n<title>")
        .xml(title)
        .text("</title>\n<style>");
    write_styles(out_);
    out_.text("</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fbfcfe\"/>\n<text class=\"t1\" "
              "x=\"12\" y=\"28\">")
        .xml(title)
        .text("</text>\n<text class=\"t2\" x=\"12\" y=\"47\">")
        .xml(subtitle)
        .text("</text>\n");
  }

  void text(double x, double y, std::string_view content, std::string_view id = {}) {
    out_.text("<text class=\"t2\" x=\"").fixed(x, 1).text("\" y=\"").fixed(y, 1).text("\"");
    if (!id.empty()) out_.text(" id=\"").text(id).text("\"");
    out_.text(">").xml(content).text("</text>\n");
  }

  void swatch(double x, double y, std::string_view css_or_fill, bool is_class, std::string_view label) {
    out_.text("<rect x=\"")
        .fixed(x, 1)
        .text("\" y=\"")
        .fixed(y - 10, 1)
        .text("\" width=\"11\" height=\"11\" rx=\"2\" ");
    out_.text(is_class ? "class=\"" : "fill=\"").text(css_or_fill).text("\"/>\n");
    text(x + 16, y, label);
  }

  template <class Describe>
  void frames(const Picture &picture, double top, double whole, std::string_view id, Describe describe) {
    const double scale = whole > 0 ? kInner / whole : 0;
    out_.text("<g class=\"flame\" id=\"").text(id).text("\">\n");
    for (const Cell &cell : picture.cells) {
      const auto [name, frame] = describe(cell);
      const double x = kMargin + cell.from * scale, width = cell.width * scale;
      const std::uint32_t row = icicle_ ? cell.depth : picture.rows - 1 - cell.depth;
      const double y = top + row * kRow;
      out_.text("<g class=\"f\"><title>")
          .xml(name)
          .text("\n")
          .xml(frame.about)
          .text("</title><rect x=\"")
          .fixed(x, 2);
      out_.text("\" y=\"").fixed(y, 1).text("\" width=\"").fixed(width, 2).text("\" height=\"17\" ");
      out_.text(frame.css.empty() ? "fill=\"" : "class=\"")
          .text(frame.css.empty() ? frame.fill : frame.css)
          .text("\"/>");
      const std::string label = fit(name, width);
      if (!label.empty())
        out_.text("<text x=\"")
            .fixed(x + 3, 2)
            .text("\" y=\"")
            .fixed(y + 12.5, 1)
            .text("\">")
            .xml(label)
            .text("</text>");
      out_.text("</g>\n");
    }
    out_.text("</g>\n");
  }

  // For the script, which counts what passes through a match in numbers, not in widths.
  void search_data(const CallTree &tree, const Picture &picture) {
    Column up, name, total;
    std::vector<std::uint32_t> numbers(tree.names.size(), 0), names;
    constexpr std::uint32_t kDrawn = 0, kNothing = 1, kFirst = 2; // kDrawn: the next frame's
    std::uint32_t depth = 0;
    for (const KnownNode &known : picture.known) {
      up.add(depth - known.depth); // of the one before so many are left, to call this one
      depth = known.depth + 1;
      std::uint32_t number = known.how == Known::drawn ? kDrawn : kNothing;
      if (known.how == Known::narrow) {
        std::uint32_t &of_name = numbers[tree.nodes[known.node].name];
        if (of_name == 0) {
          of_name = static_cast<std::uint32_t>(names.size()) + kFirst;
          names.push_back(tree.nodes[known.node].name);
        }
        number = of_name;
      }
      name.add(number);
      total.add(static_cast<std::uint64_t>(known.weight));
    }
    out_.text("<metadata id=\"tree\" data-up=\"").text(up.finish());
    out_.text("\" data-name=\"").text(name.finish()).text("\" data-total=\"").text(total.finish());
    out_.text("\">");
    for (std::size_t i = 0; i < names.size(); ++i) // names have no control characters
      out_.text(i == 0 ? "" : "\n").xml(tree.names[names[i]].text);
    out_.text("</metadata>\n");
  }

  void close() { out_.text("<script><![CDATA[\n").text(page::flame_js()).text("]]></script>\n</svg>\n"); }

private:
  Out &out_;
  bool icicle_;
};

std::string change_text(double before, double after, double whole) {
  if (before <= 0) return "new";
  const double change = whole > 0 ? 100 * (after - before) / whole : 0;
  return fmt::format("{:+.2f} points ({:+.1f} %)", change, 100 * (after - before) / before);
}

// Red grew, blue shrank; full colour at 5 points of the total or more.
std::string change_colour(double before, double after, double whole) {
  const double strength = whole > 0 ? std::clamp((after - before) / whole * 20, -1.0, 1.0) : 0;
  if (std::abs(strength) < 0.001) return "#eceff4";
  const int lightness = static_cast<int>(std::lround(93 - 33 * std::sqrt(std::abs(strength))));
  return strength > 0 ? colour(6, 86, lightness) : colour(214, 80, lightness);
}

void draw(const Job &job, const CallTree &tree, const Most &most, Out &out) {
  const auto total = [&](std::uint32_t node) { return static_cast<double>(tree.nodes[node].total); };
  const double whole = static_cast<double>(tree.total);
  const Picture picture = lay_out(tree, total, least_of(tree, total, whole, most));
  const double height = kHead + picture.rows * kRow + kFoot;
  const Unit unit = unit_of(job.profile);

  Svg svg(out, job.options.icicle);
  svg.open(height, title_of(job.profile, job.options), subtitle_of(job.profile));
  double x = kMargin;
  std::array<bool, static_cast<std::size_t>(Style::count_)> used{};
  for (const Cell &cell : picture.cells)
    used[static_cast<std::size_t>(tree.names[tree.nodes[cell.node].name].style)] = true;
  for (const Hue &hue : kHues) {
    if (!used[static_cast<std::size_t>(hue.style)]) continue;
    svg.swatch(x, 66, fmt::format("{}1", kClasses[static_cast<std::size_t>(hue.style)]), true, hue.label);
    x += 34 + 7.0 * static_cast<double>(hue.label.size());
  }
  svg.frames(picture, kHead, whole, "flame", [&](const Cell &cell) {
    const Name &name = tree.names[tree.nodes[cell.node].name];
    std::string about = weight_text(cell.width, whole, unit);
    if (name.estimated) about = "(nearest public symbol) " + about;
    const std::uint64_t self = tree.nodes[cell.node].self;
    if (self != 0 && static_cast<double>(self) < cell.width)
      about += fmt::format("; itself {}", unit.text(static_cast<double>(self)));
    return std::pair<std::string_view, Frame>(name.text, {class_of(name), {}, std::move(about)});
  });
  std::string foot;
  if (picture.left_out > 0) {
    job.report.merged_weight = static_cast<std::uint64_t>(picture.left_out);
    foot = fmt::format("Not drawn, because too narrow: {}", weight_text(picture.left_out, whole, unit));
    job.report.notes.push_back(foot);
  }
  svg.text(kMargin, height - 12, foot, "details");
  svg.search_data(tree, picture);
  svg.close();
}

} // namespace

Result<void> write_svg(const Job &job, Out &out) {
  const CallTree tree = build_tree(job.profile, job.options.threads ? Group::thread : Group::process);
  const Sizes sizes(tree.nodes.size(), kMostCells);
  const auto render = [&](std::size_t given_up, Out &to) {
    draw(job, tree, sizes.at(given_up), to);
    return true;
  };
  return write_largest(job.max_bytes, job.report, sizes.steps(), render, out);
}

namespace {

// At most so many frames in each of the two pictures.
void draw_diff(const DiffTree &diff, const Unit &unit, const ProfileExportOptions &options, const Most &most,
               ProfileExportReport &report, Out &out) {
  const CallTree &tree = diff.tree;
  const double whole = static_cast<double>(tree.total), old_whole = diff.before.empty() ? 0 : diff.before[0];
  const auto after = [&](std::uint32_t node) { return static_cast<double>(tree.nodes[node].total); };
  // What vanished: the stacks that had samples of their own and that no sample of `after` comes through.
  std::vector<double> gone(tree.nodes.size(), 0);
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    if (tree.nodes[i].total == 0) gone[i] += diff.before_self[i];
    if (i != 0) gone[tree.nodes[i].parent] += gone[i];
  }
  const auto vanished = [&](std::uint32_t node) { return gone[node]; };
  const Picture now = lay_out(tree, after, least_of(tree, after, whole, most));
  const Picture lost = lay_out(tree, vanished, least_of(tree, vanished, gone.empty() ? 0 : gone[0], most));
  const bool any_lost = !gone.empty() && gone[0] > 0;
  const double second = kHead + now.rows * kRow + 40;
  const double height = second + (any_lost ? lost.rows * kRow : -40) + kFoot;

  Svg svg(out, options.icicle);
  svg.open(
      height, options.title.empty() ? "Change of the profile" : clean(options.title),
      fmt::format("widths: after ({}); colours: change of the share of the total; before is brought to the "
                  "same total",
                  unit.text_with_name(whole)));
  double x = kMargin;
  for (const auto &[change, label] :
       {std::pair(0.05, "grew by 5 points or more"), std::pair(0.005, "grew by 0.5 points"),
        std::pair(0.0, "the same"), std::pair(-0.005, "shrank by 0.5 points"),
        std::pair(-0.05, "shrank by 5 points or more")}) {
    svg.swatch(x, 66, change_colour(0.5, 0.5 + change, 1), false, label);
    x += 190;
  }
  svg.frames(now, kHead, whole, "after", [&](const Cell &cell) {
    const double before = diff.before[cell.node];
    std::string about =
        fmt::format("{}; before {:.2f} %; {}", weight_text(cell.width, whole, unit),
                    old_whole > 0 ? 100 * before / old_whole : 0, change_text(before, cell.width, whole));
    return std::pair<std::string_view, Frame>(
        tree.names[tree.nodes[cell.node].name].text,
        {{}, change_colour(before, cell.width, whole), std::move(about)});
  });
  if (any_lost) {
    svg.text(kMargin, second - 10,
             fmt::format("Vanished: {} of the total before, in stacks that no longer occur",
                         fmt::format("{:.2f} %", 100 * gone[0] / old_whole)));
    svg.frames(lost, second, gone[0], "vanished", [&](const Cell &cell) {
      return std::pair<std::string_view, Frame>(
          tree.names[tree.nodes[cell.node].name].text,
          {{},
           colour(214, 45, 82),
           fmt::format("vanished: {:.2f} % of the total before", 100 * cell.width / old_whole)});
    });
  }
  if (now.left_out > 0) {
    report.merged_weight = static_cast<std::uint64_t>(now.left_out);
    report.notes.push_back(
        fmt::format("Not drawn, because too narrow: {}", weight_text(now.left_out, whole, unit)));
  }
  svg.text(kMargin, height - 12, report.notes.empty() ? "" : report.notes.back(), "details");
  svg.search_data(tree, now);
  svg.close();
}

} // namespace

Result<void> write_diff_svg(const DiffTree &diff, const Unit &unit, const ProfileExportOptions &options,
                            std::uint64_t max_bytes, ProfileExportReport &report, Out &out) {
  const Sizes sizes(diff.tree.nodes.size(), kMostCells / 2);
  const auto render = [&](std::size_t given_up, Out &to) {
    draw_diff(diff, unit, options, sizes.at(given_up), report, to);
    return true;
  };
  return write_largest(max_bytes, report, sizes.steps(), render, out);
}

} // namespace etwrelog::export_profile
