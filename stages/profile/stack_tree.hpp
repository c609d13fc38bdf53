// The stacks of a profile as a tree: addresses become frames, frames become nodes.
//
// Numbers of modules, frames and nodes are given in the order in which stacks are asked for. One thread at a
// time.
#pragma once

#include "profile/build.hpp"
#include "profile/images.hpp"
#include "profile/lookup_tables.hpp"

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
  std::uint64_t ip = 0;  // its one frame, without a stack
  std::uint32_t pid = 0;
  std::uint32_t kernel_epoch = 0, epoch = 0; // of addresses in the kernel, and in the process or the kernel
  std::uint32_t kernel = Subject::kNoFragment, user = Subject::kNoFragment; // by the numbers of their frames
  SampleClass sample_class = SampleClass::no_stack;
  std::uint8_t pointer_size = 8;
};

class StackTree {
public:
  // Fills modules, frames and nodes of `profile`, which it refers to, as it does to all others.
  StackTree(const Images &images, const Methods *methods, const ReadFrames &read_frames, Profile &profile)
      : images_(images), methods_(methods), read_frames_(read_frames), profile_(profile),
        module_of_image_(images.size(), kNoIndex) {}

  // The node of its innermost frame.
  std::uint32_t node_of(const SampledStack &stack);
  // A note behind a node.
  std::uint32_t annotate(std::uint32_t node, const std::string &text) {
    return child(node, annotation(text));
  }
  // What of an address decides about its frame: the same key, the same frame.
  static WordMap::Key address_key(const SampledStack &stack, std::uint64_t address, bool innermost);

private:
  std::uint32_t user_node(const SampledStack &stack);
  std::uint32_t below(std::uint32_t node, std::span<const std::uint32_t> frames);
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame) {
    return children_.at(parent, frame, profile_.nodes);
  }
  std::span<const std::uint32_t> frames_of(const SampledStack &stack, std::uint32_t frames);
  std::uint32_t annotation(const std::string &text);
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
  WordMap user_nodes_, resolved_, resolved_addresses_, frame_numbers_;
  Children children_;
  std::vector<std::uint32_t> resolved_frames_; // of each stack the number, then the frames
  std::unordered_map<std::string, std::uint32_t> annotations_;
  std::vector<std::uint32_t> module_of_image_;
  std::unordered_map<std::string, std::uint32_t> managed_modules_;
  std::optional<std::unordered_set<std::uint32_t, base::SeededHash>> runtimes_; // processes, by their images
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint32_t, Guid, std::uint32_t, bool>,
           std::uint32_t>
      modules_;
  std::vector<std::uint64_t> addresses_;
};

} // namespace etwrelog::profile
