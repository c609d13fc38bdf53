#include "etwrelog/profile_symbols.hpp"

#include "base/outermost.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace etwrelog {
namespace {

Unresolved why_not(SymbolState state) {
  switch (state) {
  case SymbolState::found: return Unresolved::none;
  case SymbolState::no_identity: return Unresolved::no_identity;
  case SymbolState::other_identity: return Unresolved::pdb_other_build;
  case SymbolState::compressed_msfz: return Unresolved::pdb_compressed;
  case SymbolState::damaged: return Unresolved::pdb_damaged;
  case SymbolState::not_found:
  case SymbolState::no_pdb_support: break;
  }
  return Unresolved::pdb_not_found;
}

bool wants_name(const ProfileFrame &frame) {
  return frame.module != kNoIndex && frame.function.empty() &&
         (frame.kind == FrameKind::kernel || frame.kind == FrameKind::native);
}

// Frames that stand on another one: the calls put in place there, outermost first.
struct Inlined {
  std::uint32_t first = 0, count = 0; // in Profile::frames
};

Inlined name_frame(Profile &profile, std::uint32_t index, const ModuleSymbols &symbols, SymbolNames &names) {
  ProfileFrame &frame = profile.frames[index];
  // The address that a call returns to may belong to the next line, or to the next function.
  const std::uint64_t at = frame.rva - (frame.caller && frame.rva != 0 ? 1 : 0);
  if (at > std::numeric_limits<std::uint32_t>::max() ||
      !symbols.lookup(static_cast<std::uint32_t>(at), names)) {
    frame.why = Unresolved::no_symbol;
    return {};
  }
  const SymbolFrame &outer = names.frames.front();
  frame.function = outer.function;
  frame.file = outer.file;
  frame.line = outer.line;
  frame.estimated = names.estimated;
  frame.why = Unresolved::none;
  ProfileFrame inlined = frame; // not a reference: the table grows
  const auto first = static_cast<std::uint32_t>(profile.frames.size());
  for (std::size_t i = 1; i < names.frames.size(); ++i) {
    inlined.kind = FrameKind::inlined;
    inlined.function = names.frames[i].function;
    inlined.file = names.frames[i].file;
    inlined.line = names.frames[i].line;
    profile.frames.push_back(inlined);
  }
  return {first, static_cast<std::uint32_t>(profile.frames.size()) - first};
}

// Each node of a frame that got company becomes a chain; what stood on it stands on the chain's end.
void insert_inlined(Profile &profile, const std::vector<Inlined> &inlined) {
  if (std::ranges::all_of(inlined, [](const Inlined &one) { return one.count == 0; })) return;
  std::vector<ProfileNode> nodes;
  nodes.reserve(profile.nodes.size() * 2);
  std::vector<std::uint32_t> to(profile.nodes.size(), 0);
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    const ProfileNode &node = profile.nodes[i];
    nodes.push_back({node.parent == kNoIndex ? kNoIndex : to[node.parent], node.frame});
    if (node.frame != kNoIndex && node.frame < inlined.size())
      for (std::uint32_t k = 0; k < inlined[node.frame].count; ++k)
        nodes.push_back({static_cast<std::uint32_t>(nodes.size() - 1), inlined[node.frame].first + k});
    to[i] = static_cast<std::uint32_t>(nodes.size() - 1);
  }
  for (ProfileSample &sample : profile.samples)
    sample.node = to[sample.node];
  profile.nodes = std::move(nodes);
}

} // namespace

ModuleIdentity identity_of(const ProfileModule &module) {
  ModuleIdentity out;
  out.path = module.path;
  out.pdb_name = module.pdb_name;
  out.pdb_guid = module.pdb_guid;
  out.pdb_age = module.pdb_age;
  out.time_stamp = module.time_stamp;
  out.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(module.size, 0xFFFF'FFFF));
  return out;
}

std::vector<ModuleUse> module_use(const Profile &profile) {
  std::vector<std::uint64_t> self(profile.nodes.size(), 0);
  for (const ProfileSample &sample : profile.samples)
    self[sample.node] += sample.weight;
  std::vector<std::uint64_t> total = self;
  for (std::size_t i = profile.nodes.size(); i-- > 1;)
    total[profile.nodes[i].parent] += total[i];
  const auto module_of = [&](std::uint32_t node) {
    const std::uint32_t frame = profile.nodes[node].frame;
    return frame == kNoIndex ? kNoIndex : profile.frames[frame].module;
  };
  std::vector<ModuleUse> all(profile.modules.size());
  // A module that calls back into itself counts once a sample.
  const std::vector<bool> outermost = base::outermost(
      static_cast<std::uint32_t>(profile.nodes.size()), static_cast<std::uint32_t>(all.size()),
      [&](std::uint32_t node) { return profile.nodes[node].parent; }, module_of);
  for (std::uint32_t i = 1; i < profile.nodes.size(); ++i) {
    const std::uint32_t module = module_of(i);
    if (module == kNoIndex || total[i] == 0) continue;
    all[module].self += self[i];
    if (outermost[i]) all[module].total += total[i];
  }
  for (std::uint32_t i = 0; i < all.size(); ++i)
    all[i].module = i;
  std::erase_if(all, [](const ModuleUse &use) { return use.total == 0; });
  std::ranges::sort(all, [](const ModuleUse &a, const ModuleUse &b) {
    return std::tie(b.self, b.total, a.module) < std::tie(a.self, a.total, b.module);
  });
  return all;
}

void name_native_code(Profile &profile, SymbolResolver &resolver) {
  const std::vector<ModuleUse> used = module_use(profile);
  std::vector<bool> wanted(profile.modules.size(), false);
  for (const ProfileFrame &frame : profile.frames)
    if (wants_name(frame)) wanted[frame.module] = true;
  std::vector<ModuleIdentity> identities;
  for (const ModuleUse &use : used)
    if (wanted[use.module]) identities.push_back(identity_of(profile.modules[use.module]));
  resolver.prepare(identities);

  std::vector<std::shared_ptr<const ModuleSymbols>> symbols(profile.modules.size());
  for (const ModuleUse &use : used) {
    if (!wanted[use.module]) continue;
    ProfileModule &module = profile.modules[use.module];
    symbols[use.module] = resolver.load(identity_of(module));
    module.symbols = why_not(symbols[use.module]->state());
    module.detail =
        module.symbols == Unresolved::none ? symbols[use.module]->file() : symbols[use.module]->reason();
  }
  const std::size_t frames = profile.frames.size();
  std::vector<Inlined> inlined(frames);
  SymbolNames names;
  for (std::uint32_t i = 0; i < frames; ++i) {
    if (!wants_name(profile.frames[i])) continue;
    const std::uint32_t module = profile.frames[i].module;
    if (symbols[module] == nullptr) continue; // it has no samples: left as it was
    if (profile.modules[module].symbols != Unresolved::none)
      profile.frames[i].why = profile.modules[module].symbols;
    else
      inlined[i] = name_frame(profile, i, *symbols[module], names);
  }
  insert_inlined(profile, inlined);
}

} // namespace etwrelog
