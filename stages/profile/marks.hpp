// The events that stacks may belong to.
#pragma once

#include "etwrelog/event.hpp"
#include "profile/sequence.hpp"

#include <span>
#include <vector>

namespace etwrelog::profile {

// An event that the profile is about: a CPU sample, a context switch, or one of the kinds asked for.
struct Subject {
  std::int64_t time = 0;
  std::uint64_t ip = 0; // of a switch: 0; of an event: the process that it names, or kUnknownId
  std::uint32_t thread = kUnknownId;
  // Of its stack, as numbers of Records::fragments, later of the stacks themselves; kNoFragment: none.
  std::uint32_t kernel = kNoFragment, user = kNoFragment;
  std::uint16_t processor = 0;
  std::uint8_t pointer_size = 8;
  std::uint8_t flags = 0;

  static constexpr std::uint32_t kNoFragment = 0xFFFF'FFFF;
  static constexpr std::uint8_t kInDpc = 1, kInIsr = 2, // as Windows writes them
      kByWhoRan = 0x20, // who caused it ran on its processor; `thread` only if its stack says so
      kWhole = 0x40,    // `user` is one fragment that holds the kernel part too
      kLent = 0x80;     // `user` names another event
};

// Any other event that may have a stack. What kind it is, is a number in Records::kinds.
struct Mark {
  std::int64_t time = 0;
  std::uint32_t thread = kUnknownId; // kUnknownId: the event does not say; of a subject: its number
  std::uint16_t processor = 0;
  std::uint16_t kind = 0;

  static constexpr std::uint16_t kSubject = 0xFFFF;
};

// The marks of a whole trace. Nearly none is ever looked at again, so they are kept small: 2 bytes for a
// subject, which is in another table too, and 10 for any other event.
class Marks {
public:
  // Behind all others. Those of one buffer are told most briefly.
  void append(std::span<const Mark> marks);
  void clear() { chunks_.clear(); }
  [[nodiscard]] std::size_t size() const;

  // Stretches of the whole, in its order.
  [[nodiscard]] std::size_t chunks() const { return chunks_.size(); }
  // visit(mark) for each of a stretch.
  template <class Visit>
  void visit(std::size_t chunk, const Sequence<Subject> &subjects, Visit &&visit) const;
  // Gives back the memory of one stretch, which may not be looked at afterwards.
  void release_chunk(std::size_t chunk) { chunks_[chunk] = {}; }

private:
  struct Block { // of marks of one processor, whose subjects follow each other
    std::int64_t base = 0;
    std::uint32_t first_subject = 0, subjects = 0, count = 0;
    std::uint16_t processor = 0;
  };
  struct Other {
    std::uint32_t time, thread; // time: behind the block's base
  };
  struct Chunk {
    std::vector<Block> blocks;
    std::vector<std::uint16_t> kinds;
    std::vector<Other> others;
  };
  static constexpr std::size_t kChunk = std::size_t{1} << 16;

  static bool continues(const Block &block, const Mark &mark);

  std::vector<Chunk> chunks_;
};

template <class Visit>
void Marks::visit(std::size_t chunk, const Sequence<Subject> &subjects, Visit &&visit) const {
  const Chunk &here = chunks_[chunk];
  const std::uint16_t *kind = here.kinds.data();
  const Other *other = here.others.data();
  for (const Block &block : here.blocks) {
    std::uint32_t subject = block.first_subject;
    for (std::uint32_t i = 0; i < block.count; ++i, ++kind)
      if (*kind == Mark::kSubject) {
        visit(Mark{subjects[subject].time, subject, block.processor, *kind});
        ++subject;
      } else {
        visit(Mark{block.base + other->time, other->thread, block.processor, *kind});
        ++other;
      }
  }
}

} // namespace etwrelog::profile
