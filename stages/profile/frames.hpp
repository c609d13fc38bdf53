// The frames of stacks: addresses become frames, by the images and methods of their process at the time.
//
// Numbers of modules and frames are given in the order in which stacks are asked for. One thread at a time.
#pragma once

#include "profile/build.hpp"
#include "profile/images.hpp"
#include "profile/word_map.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace etwrelog::profile {

// One of the stacks that samples have.
struct SampledStack {
  std::int64_t time = 0; // one at which the process had it
  std::uint64_t ip = 0;  // its one frame, without a stack; of an event that is no sample: none
  std::uint32_t pid = 0;
  std::uint32_t kernel_epoch = 0, epoch = 0; // of addresses in the kernel, and in the process or the kernel
  std::uint32_t kernel = Subject::kNoFragment, user = Subject::kNoFragment; // by the numbers of their frames
  SampleClass sample_class = SampleClass::no_stack;
  std::uint8_t pointer_size = 8;
};

// Some stacks as numbers of frames, for the tree.
struct FramedStacks {
  struct Stack {
    std::uint32_t note = kNoIndex; // the outermost frame, where it is a note
    std::uint32_t user = kNoIndex; // the number of the user part, where there is one
    // How many frames of the user part there are, none if an earlier stack has the same, and how many behind
    // it.
    std::uint32_t user_frames = 0, other_frames = 0;
  };
  std::vector<Stack> stacks;
  std::vector<std::uint32_t> frames; // of one stack after the other, outermost first

  void clear() {
    stacks.clear();
    frames.clear();
  }
};

class Frames {
public:
  // Fills modules and frames of `profile`, which it refers to, as it does to all others.
  Frames(const Images &images, const Methods *methods, const ReadFrames &read_frames, Profile &profile)
      : images_(images), methods_(methods), read_frames_(read_frames), profile_(profile),
        module_of_image_(images.size(), kNoIndex) {}

  void add(const SampledStack &stack, FramedStacks &out);
  // Fetches what add() will look at first.
  void prefetch(const SampledStack &stack) const {
    user_parts_.prefetch(user_key(stack));
    resolved_.prefetch(frames_key(stack, stack.kernel));
  }
  // The frame of an address where code runs, in the process that has this stack.
  std::uint32_t code(const SampledStack &stack, std::uint64_t address) { return frame(stack, address, true); }
  // The frame that stands for a note.
  std::uint32_t note(const std::string &text);
  // What of an address decides about its frame: the same key, the same frame.
  static WordMap::Key address_key(const SampledStack &stack, std::uint64_t address, bool innermost);

private:
  static WordMap::Key user_key(const SampledStack &stack) { return {stack.pid, stack.epoch, stack.user, 0}; }
  static WordMap::Key frames_key(const SampledStack &stack, std::uint32_t frames) {
    return {stack.pid, stack.epoch, frames, stack.pointer_size};
  }
  // Appends the frames of a stack in this process; how many.
  std::uint32_t put_frames(const SampledStack &stack, std::uint32_t frames, std::vector<std::uint32_t> &out);
  std::uint32_t frame(const SampledStack &stack, std::uint64_t address, bool innermost);
  std::uint32_t resolve(const SampledStack &stack, std::uint64_t address, bool innermost);
  void name(ProfileFrame &frame, const Methods::Method &method);
  bool has_runtime(std::uint32_t pid);
  void find_runtimes();
  std::uint32_t module_of(std::uint32_t image_number);

  const Images &images_;
  const Methods *methods_;
  const ReadFrames &read_frames_;
  Profile &profile_;
  WordMap user_parts_, resolved_, resolved_addresses_, frame_numbers_;
  std::uint32_t distinct_users_ = 0;           // of the first
  std::vector<std::uint32_t> resolved_frames_; // of each stack the number, then the frames
  std::unordered_map<std::string, std::uint32_t> notes_;
  std::vector<std::uint32_t> module_of_image_;
  std::unordered_map<std::string, std::uint32_t> managed_modules_;
  std::optional<std::unordered_set<std::uint32_t, base::SeededHash>> runtimes_; // processes, by their images
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint32_t, Guid, std::uint32_t, bool>,
           std::uint32_t>
      modules_;
  std::vector<std::uint64_t> addresses_;
};

} // namespace etwrelog::profile
