#include "tests/support/synthetic_profile.hpp"

#include <algorithm>

namespace etwrelog::test_support {
namespace {

class Maker {
public:
  explicit Maker(const SyntheticProfileOptions &options) : options_(options) {
    p_.trace = options.hostile_names ? "<b>&\"x\".etl" : "synthetic.etl";
    p_.start_time = 133'500'000'000'000'000;
    p_.duration = 4'000'000'000;
    p_.processors = 4;
    p_.interval_ns = 1'000'000;
    p_.intervals = {{0, 1'000'000}};
    p_.events_lost = 7;
    modules();
    processes();
    stacks();
    samples();
    if (options.slices) slices();
  }
  Profile take() { return std::move(p_); }

private:
  std::uint32_t module(std::string name, std::uint64_t base, bool kernel, Unresolved symbols) {
    ProfileModule m;
    m.path = "C:\\Windows\\" + name;
    m.pdb_name = name.substr(0, name.find('.')) + ".pdb";
    m.pdb_guid = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, base);
    m.pdb_age = 2;
    m.time_stamp = 0x5f000000;
    m.base = base;
    m.size = 0x100000;
    m.kernel = kernel;
    m.symbols = symbols;
    m.name = std::move(name);
    p_.modules.push_back(std::move(m));
    return static_cast<std::uint32_t>(p_.modules.size() - 1);
  }

  void modules() {
    game_ = module("game.exe", 0x140000000, false, Unresolved::none);
    ntdll_ = module("ntdll.dll", 0x7ff800000000, false, Unresolved::none);
    nt_ = module("ntoskrnl.exe", 0xfffff80000000000, true, Unresolved::pdb_not_found);
  }

  void processes() {
    p_.processes = {{4242, options_.hostile_names ? "a;b<c>&\x01\xff \"q\".exe" : "game.exe", "game.exe -x"},
                    {977, "service.exe", ""},
                    {4242, "game.exe", "second owner of the id"}};
    p_.threads = {{100, 0, "Render"}, {104, 0, ""}, {200, 1, "Worker"}, {300, 2, ""}};
  }

  std::uint32_t frame(std::string function, std::uint32_t in, FrameKind kind, std::uint64_t rva) {
    ProfileFrame f;
    f.kind = kind;
    f.module = in;
    f.rva = rva;
    f.address = (in == kNoIndex ? 0 : p_.modules[in].base) + rva;
    f.in_kernel = in == nt_;
    f.caller = true;
    f.why = function.empty() ? Unresolved::pdb_not_found : Unresolved::none;
    f.function = std::move(function);
    if (in == game_ && kind != FrameKind::jit)
      f.file = "src/game.cpp", f.line = static_cast<std::uint32_t>(10 + rva / 16);
    if (kind == FrameKind::jit) f.file = "https://example.org/app.js", f.line = 12, f.column = 9;
    p_.frames.push_back(std::move(f));
    return static_cast<std::uint32_t>(p_.frames.size() - 1);
  }
  std::uint32_t node(std::uint32_t parent, std::uint32_t of) {
    p_.nodes.push_back({parent, of});
    return static_cast<std::uint32_t>(p_.nodes.size() - 1);
  }

  void stacks() {
    const bool bad = options_.hostile_names;
    const std::uint32_t start = node(0, frame("RtlUserThreadStart", ntdll_, FrameKind::native, 0x5000));
    const std::uint32_t main =
        node(start, frame(bad ? "main<int;\n]]>\"'&\xc3>" : "main", game_, FrameKind::native, 0x100));
    const std::uint32_t update = node(main, frame("Game::Update", game_, FrameKind::native, 0x200));
    const std::uint32_t inlined = node(update, frame("Vector::length", game_, FrameKind::inlined, 0x200));
    const std::uint32_t script = node(update, frame("Script.Player.Think", game_, FrameKind::jit, 0x300));
    const std::uint32_t recurse = node(script, frame("Game::Update", game_, FrameKind::native, 0x210));
    const std::uint32_t kernel = node(main, frame("", nt_, FrameKind::kernel, 0x700));
    const std::uint32_t none = node(main, frame("", kNoIndex, FrameKind::unresolved, 0x12345));
    ProfileFrame note;
    note.kind = FrameKind::annotation;
    note.function = "[user stack missing]";
    note.why = Unresolved::none;
    p_.frames.push_back(note);
    const std::uint32_t missing = node(0, static_cast<std::uint32_t>(p_.frames.size() - 1));
    const std::uint32_t alone = node(missing, frame("", nt_, FrameKind::kernel, 0x800));
    ends_ = {inlined, recurse, kernel, none, alone, update};
    for (std::size_t i = 0; i < options_.leaves; ++i)
      ends_.push_back(
          node(update, frame("leaf" + std::to_string(i), game_, FrameKind::native, 0x1000 + 16 * i)));
  }

  void samples() {
    p_.accounting.by_process.resize(p_.processes.size());
    for (std::size_t i = 0; i < options_.samples; ++i) {
      ProfileSample s;
      s.time = static_cast<std::int64_t>(i * static_cast<std::uint64_t>(p_.duration) / options_.samples) + 17;
      s.thread = static_cast<std::uint32_t>(i % 10 < 6 ? 0 : i % 10 < 8 ? 1 : i % 10 < 9 ? 2 : 3);
      s.node = ends_[(i * i + i / 7) % ends_.size()];
      s.processor = static_cast<std::uint16_t>(i % 4);
      p_.samples.push_back(s);
      for (ProfileCounts *c :
           {&p_.accounting.total, &p_.accounting.by_process[p_.threads[s.thread].process]}) {
        ++c->samples;
        ++c->by_class[0];
        c->fragments += 2;
        c->claimed += 2;
      }
    }
  }

  void slices() {
    for (std::int64_t t = 0; t < 1000; ++t) {
      const auto thread = static_cast<std::uint32_t>(t % 4);
      p_.slices.push_back({t * 4'000'000, t * 4'000'000 + 2'500'000, thread,
                           static_cast<std::uint16_t>(t % 2), SliceState::running, 0});
      p_.slices.push_back(
          {t * 4'000'000 + 2'500'000, t * 4'000'000 + 3'000'000, thread, 0, SliceState::waiting, 6});
      p_.slices.push_back(
          {t * 4'000'000 + 3'000'000, t * 4'000'000 + 4'000'000, thread, 0, SliceState::ready, 0});
    }
    std::ranges::stable_sort(p_.slices, {}, &ProfileSlice::thread);
  }

  SyntheticProfileOptions options_;
  Profile p_;
  std::uint32_t game_ = 0, ntdll_ = 0, nt_ = 0;
  std::vector<std::uint32_t> ends_;
};

} // namespace

Profile synthetic_profile(const SyntheticProfileOptions &options) {
  return Maker(options).take();
}

} // namespace etwrelog::test_support
