#include "etwrelog/profile.hpp"

#include "base/cut_text.hpp"

#include <fmt/format.h>

namespace etwrelog {

const char *unresolved_text(Unresolved why) {
  switch (why) {
  case Unresolved::none: return "named";
  case Unresolved::not_asked: return "names were not asked for";
  case Unresolved::no_image: return "no image is known at the address";
  case Unresolved::no_identity: return "image without identity (the trace was not merged)";
  case Unresolved::pdb_not_found: return "PDB not found";
  case Unresolved::pdb_other_build: return "PDB of another build";
  case Unresolved::pdb_compressed: return "PDB in the compressed MSFZ form";
  case Unresolved::pdb_damaged: return "PDB is damaged";
  case Unresolved::no_symbol: return "the PDB has no symbol there";
  case Unresolved::rundown_missing: return "rundown of compiled code is missing";
  case Unresolved::count_: break;
  }
  return "?";
}

const char *profile_kind_name(ProfileKind kind) {
  switch (kind) {
  case ProfileKind::cpu: return "cpu";
  case ProfileKind::wait: return "wait";
  case ProfileKind::ready: return "ready";
  case ProfileKind::events: break;
  }
  return "events";
}

const char *sample_class_text(SampleClass sample_class) {
  switch (sample_class) {
  case SampleClass::full: return "full stack";
  case SampleClass::kernel_complete: return "kernel stack, complete";
  case SampleClass::user_missing: return "user half missing";
  case SampleClass::no_stack: return "no stack";
  case SampleClass::count_: break;
  }
  return "?";
}

namespace {

// Sizes have no unit in a schema; these words of their names tell it.
bool tells_bytes(std::string_view field) {
  const std::string lower = base::lower(field);
  const auto has = [&lower](std::string_view word) { return lower.find(word) != std::string::npos; };
  return (has("size") || has("byte") || has("amount")) && !has("page");
}

} // namespace

std::string profile_unit(const Profile &profile) {
  if (!profile.counts()) return "nanoseconds";
  if (profile.kind != ProfileKind::events) return "samples";
  if (profile.summed.empty()) return "events";
  return tells_bytes(profile.summed) ? "bytes" : profile.summed;
}

std::string frame_text(const Profile &profile, const ProfileFrame &frame) {
  if (frame.kind == FrameKind::annotation) return frame.function;
  if (frame.module == kNoIndex)
    return frame.function.empty() ? fmt::format("0x{:x}", frame.address) : frame.function;
  const std::string &module = profile.modules[frame.module].name;
  if (!frame.function.empty()) return module + "!" + frame.function;
  return fmt::format("{}+0x{:x}", module, frame.rva);
}

std::string process_text(const ProfileProcess &process) {
  const std::string pid = process.pid == kNoIndex ? "-1" : std::to_string(process.pid);
  return (process.name.empty() ? "?" : process.name) + " (" + pid + ")";
}

} // namespace etwrelog
