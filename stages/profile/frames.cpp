#include "profile/frames.hpp"

#include "base/cut_text.hpp"

namespace etwrelog::profile {

void Frames::add(const SampledStack &stack, FramedStacks &out) {
  FramedStacks::Stack &framed = out.stacks.emplace_back();
  switch (stack.sample_class) {
  case SampleClass::no_stack:
    framed.note = note("[no stack]");
    if (profile_.kind == ProfileKind::events) return; // which say no address, as samples do
    framed.other_frames = 1;
    out.frames.push_back(frame(stack, stack.ip, true));
    return;
  case SampleClass::user_missing: framed.note = note("[user stack missing]"); break;
  default: break;
  }
  if (stack.user != Subject::kNoFragment) {
    // Many kernel parts stand on one user part.
    bool fresh = false;
    std::uint32_t &number = user_parts_.at(user_key(stack), fresh);
    if (fresh) {
      number = distinct_users_++;
      framed.user_frames = put_frames(stack, stack.user, out.frames);
    }
    framed.user = number;
  }
  if (stack.kernel != Subject::kNoFragment) framed.other_frames = put_frames(stack, stack.kernel, out.frames);
}

std::uint32_t Frames::put_frames(const SampledStack &stack, std::uint32_t frames,
                                 std::vector<std::uint32_t> &out) {
  bool fresh = false;
  std::uint32_t &place = resolved_.at(frames_key(stack, frames), fresh);
  if (fresh) {
    read_frames_(frames, addresses_);
    place = static_cast<std::uint32_t>(resolved_frames_.size());
    resolved_frames_.push_back(static_cast<std::uint32_t>(addresses_.size()));
    for (std::size_t i = 0; i < addresses_.size(); ++i)
      resolved_addresses_.prefetch(address_key(stack, addresses_[i], i == 0));
    for (std::size_t i = addresses_.size(); i-- > 0;)
      resolved_frames_.push_back(frame(stack, addresses_[i], i == 0));
  }
  const auto resolved = std::span(resolved_frames_).subspan(place + 1u, resolved_frames_[place]);
  out.insert(out.end(), resolved.begin(), resolved.end());
  return static_cast<std::uint32_t>(resolved.size());
}

std::uint32_t Frames::note(const std::string &text) {
  const auto [place, fresh] = notes_.try_emplace(text, static_cast<std::uint32_t>(profile_.frames.size()));
  if (fresh) {
    ProfileFrame frame;
    frame.function = text;
    frame.kind = FrameKind::annotation;
    frame.why = Unresolved::none;
    profile_.frames.push_back(std::move(frame));
  }
  return place->second;
}

// Addresses repeat more than stacks.
std::uint32_t Frames::frame(const SampledStack &stack, std::uint64_t address, bool innermost) {
  bool fresh = false;
  std::uint32_t &number = resolved_addresses_.at(address_key(stack, address, innermost), fresh);
  if (fresh) number = resolve(stack, address, innermost);
  return number;
}

WordMap::Key Frames::address_key(const SampledStack &stack, std::uint64_t address, bool innermost) {
  const bool in_kernel = format::is_kernel_address(address, stack.pointer_size);
  return {static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32),
          in_kernel ? kNoIndex : stack.pid,
          (in_kernel ? stack.kernel_epoch : stack.epoch) << 1 | (innermost ? 1u : 0u)};
}

// A caller's address is the one that it returns to, which may lie behind the end of its function.
std::uint32_t Frames::resolve(const SampledStack &stack, std::uint64_t address, bool innermost) {
  const bool in_kernel = format::is_kernel_address(address, stack.pointer_size);
  const std::uint64_t look = innermost ? address : address - 1;
  std::uint32_t image = Images::kNone, method = Methods::kNone;
  if (innermost || address != 0) {
    image = in_kernel ? images_.find_kernel(stack.time, look) : images_.find(stack.pid, stack.time, look);
    if (methods_ != nullptr && !in_kernel) method = methods_->find(stack.pid, stack.time, look);
  }
  const std::uint32_t module = image == Images::kNone ? kNoIndex : module_of(image);
  bool fresh = false;
  std::uint32_t &number =
      frame_numbers_.at({static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32),
                         module, (method + 1) << 2 | (innermost ? 2u : 0u) | (in_kernel ? 1u : 0u)},
                        fresh);
  if (!fresh) return number;
  number = static_cast<std::uint32_t>(profile_.frames.size());
  ProfileFrame made;
  made.address = address;
  made.module = module;
  made.in_kernel = in_kernel;
  made.caller = !innermost;
  if (module != kNoIndex) {
    made.rva = address - images_[image].base;
    made.kind = in_kernel ? FrameKind::kernel : FrameKind::native;
  } else {
    made.why = Unresolved::no_image;
    if (methods_ != nullptr && !in_kernel && has_runtime(stack.pid)) made.why = Unresolved::rundown_missing;
  }
  if (method != Methods::kNone) {
    name(made, (*methods_)[method]);
    made.il_offset = methods_->il_offset((*methods_)[method], look);
  }
  profile_.frames.push_back(std::move(made));
  return number;
}

// Code made at run time belongs to the runtime's module, precompiled code to its image.
void Frames::name(ProfileFrame &frame, const Methods::Method &method) {
  frame.function = base::at_most(method.name, base::kLongestName);
  frame.tier = method.tier;
  frame.file = base::at_most(method.file, base::kLongestName);
  frame.line = method.line;
  frame.column = method.column;
  frame.why = Unresolved::none;
  if (frame.module != kNoIndex) return;
  frame.kind = FrameKind::jit;
  if (method.module.empty()) return;
  const auto [place, fresh] =
      managed_modules_.try_emplace(method.module, static_cast<std::uint32_t>(profile_.modules.size()));
  if (fresh) {
    ProfileModule &module = profile_.modules.emplace_back();
    module.name = module.path = base::at_most(method.module, base::kLongestFileName);
    module.symbols = Unresolved::none; // its methods name themselves
  }
  frame.module = place->second;
}

// Whether the process runs compiled code: then what lies in no image most likely is such.
bool Frames::has_runtime(std::uint32_t pid) {
  if (methods_->knows(pid)) return true;
  if (!runtimes_) find_runtimes();
  return runtimes_->contains(pid);
}

void Frames::find_runtimes() {
  runtimes_.emplace();
  for (std::size_t i = 0; i < images_.size(); ++i) {
    const Images::Image &image = images_[static_cast<std::uint32_t>(i)];
    const std::string file = base::lower(last_part(image.path));
    if (file == "clr.dll" || file == "coreclr.dll" || file == "mscorwks.dll" || file == "chakra.dll" ||
        file == "chakracore.dll" || file == "v8.dll")
      runtimes_->insert(image.pid);
  }
}

// One module for all processes that have the same image at the same base.
std::uint32_t Frames::module_of(std::uint32_t image_number) {
  std::uint32_t &module = module_of_image_[image_number];
  if (module != kNoIndex) return module;
  const Images::Image &image = images_[image_number];
  const ModuleIdentity identity = identity_of(image);
  ProfileModule made;
  made.name = base::at_most(last_part(image.path), base::kLongestFileName);
  made.path = base::at_most(image.path, base::kLongestName);
  made.base = image.base;
  made.size = image.size;
  made.time_stamp = identity.time_stamp;
  made.kernel = image.pid == 0 || image.pid == 4;
  made.pdb_name = base::at_most(identity.pdb_name, base::kLongestName);
  made.pdb_guid = identity.pdb_guid;
  made.pdb_age = identity.pdb_age;
  const auto key =
      std::tuple(made.path, made.base, made.size, made.time_stamp, made.pdb_guid, made.pdb_age, made.kernel);
  const auto [place, fresh] = modules_.try_emplace(key, static_cast<std::uint32_t>(profile_.modules.size()));
  if (fresh) profile_.modules.push_back(std::move(made));
  return module = place->second;
}

} // namespace etwrelog::profile
