// Which image held an address, by process and time. Bases are used again after an unload.
#pragma once

#include "base/seed.hpp"
#include "etwrelog/symbols.hpp"
#include "profile/records.hpp"
#include "profile/stretches.hpp"

#include <optional>
#include <unordered_map>

namespace etwrelog::profile {

class Images {
public:
  struct Image {
    std::int64_t from = 0, to = 0; // both ends included
    std::uint64_t base = 0, size = 0;
    std::uint32_t pid = 0, time_stamp = 0;
    std::string path;
    const IdentityRecord *identity = nullptr;
  };
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  // Takes the records in any order; `processes` because a new process has none of its predecessor's images.
  // The identities must outlive the images.
  void build(std::vector<ImageRecord> images, std::span<const ProcessRecord> processes,
             std::vector<IdentityRecord> &identities);

  [[nodiscard]] std::uint32_t find(std::uint32_t pid, std::int64_t time, std::uint64_t address) const;
  // In kernel space the images are those of the Idle and System processes. (System has some in user space,
  // which are nobody else's.)
  [[nodiscard]] std::uint32_t find_kernel(std::int64_t time, std::uint64_t address) const;
  [[nodiscard]] const Image &operator[](std::uint32_t i) const { return images_[i]; }
  [[nodiscard]] std::size_t size() const { return images_.size(); }

  // Count up whenever what find() or find_kernel() answers may change with time; `valid` is cut down to the
  // times around this one at which the count is the same.
  [[nodiscard]] std::uint32_t epoch(std::uint32_t pid, std::int64_t time, TimeRange &valid) const;
  [[nodiscard]] std::uint32_t kernel_epoch(std::int64_t time, TimeRange &valid) const {
    return epoch(0, time, valid) + epoch(4, time, valid); // each only grows, so the sum tells them apart
  }

private:
  struct Live;
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  // From this address on, up to the next one, the image wins; of images that are there at the same times.
  struct Piece {
    std::uint64_t address;
    std::uint32_t image; // kNone: nothing there
  };
  void index();
  void index_overlapping(std::uint32_t pid, const Range &range);
  [[nodiscard]] std::vector<Piece> pieces_of(const std::vector<Piece> &images) const;
  void identify(std::vector<IdentityRecord> &identities);

  std::vector<Image> images_; // by pid, base, from
  unsigned pointer_size_ = 4; // 8 as soon as an image shows it
  std::vector<std::uint64_t>
      reach_; // of each image: the highest end of it and those before it in the process
  std::unordered_map<std::uint32_t, Range, base::SeededHash> ranges_;
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>, base::SeededHash> changes_;
  // Of processes in which many overlap: pieces by the stretches between changes.
  std::unordered_map<std::uint32_t, Stretches<Piece>, base::SeededHash> overlapping_;
};

// What the trace tells of it, for whoever looks for its PDB.
[[nodiscard]] ModuleIdentity identity_of(const Images::Image &image);

[[nodiscard]] std::string_view last_part(std::string_view path); // behind the last \ or /

} // namespace etwrelog::profile
