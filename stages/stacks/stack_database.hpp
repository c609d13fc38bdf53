// A trace's stacks alone, small: `etwrelog stacks --export DB.zst`.
//
// The file is one zstd frame. Its content, little-endian:
//
//   u8[8] "etwstkdb", u32 version = 1, u32 pointer size of most frames (4 or 8; for display only)
//   sections, each: u32 type, u32 count, then
//
//   type 1: `count` references in the order of the trace's buffers, at most 2^18, as columns one after the
//   other:
//     u8  kind[]        StackKind
//     u16 processor[]   as two planes (all low bytes, then all high bytes); so are all columns wider than a
//     byte u32 thread[]      0: the thread of the previous reference on this processor. 1: a thread not met
//     before: the next
//                       pair of the new threads below. n + 2: the thread number n, in order of first meeting
//     u8  time mode[]   0: `time` follows the latest reference on this processor; 1: the event time of the
//     thread's
//                       previous reference
//     u32 new threads: count of pairs, then u32 process ids[], u32 thread ids[]
//     u32 times: count, then u64 values[]: zigzag of (event time - that of the previous reference on the
//     processor) u32 stack[]       0: the stack that followed the thread's previous stack when that was last
//     followed by one on the
//                       same thread; 1: the next new stack; n + 2: the stack number n
//     Before the first reference on a processor its thread is none and its time 0; a thread's previous stack
//     is none.
//
//   type 2: the table of `count` stacks, in the order of their numbers, once, after all references:
//     u32 addresses: count, then u64 deltas[]: all distinct frames in ascending order, each less its
//     predecessor u8  scope[]       pointer size of each stack u32 branch[]      stacks are paths in a tree
//     of calls, from the outermost frame inwards; node 0 is the root, new
//                       nodes are numbered as they appear. Latest node number - number of the node to branch
//                       from
//     u32 length[]      how many nodes are new; the stack ends at the last of them, or at the branch node
//     u32 nodes: count, then u32 code[]: for each new node, in order, its address: the node's parent address
//     (that of a
//                       node; the root has none) keeps a list of the addresses called from it, latest first.
//                       n + 1: the entry n of that list, which moves to its front. 0: not in the list: the
//                       next of `called`
//     u32 called: count, then u32 rank[]: indexes in the addresses; they too go to the front of the list
//     Lists hold the latest 32 addresses.
//
//   type 0: the end; `count` is 0
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"
#include "etwrelog/stacks.hpp"
#include "stacks/stack_table.hpp"

#include <functional>
#include <unordered_map>

struct ZSTD_CCtx_s;

namespace etwrelog::stacks {

using etwrelog::kStackKinds;
using etwrelog::stack_kind_name;
using etwrelog::StackKind;

// What of the format both directions need.
inline constexpr std::uint8_t kDatabaseMagic[8] = {'e', 't', 'w', 's', 't', 'k', 'd', 'b'};
inline constexpr std::uint32_t kDatabaseVersion = 1;
inline constexpr std::uint32_t kSectionEnd = 0, kSectionReferences = 1, kSectionTable = 2;
inline constexpr std::size_t kMaxReferences = std::size_t{1} << 18; // of a section
inline constexpr std::size_t kListLength = 32;                      // of addresses called
inline constexpr std::uint32_t kNoCaller = 0xFFFF'FFFF;             // stands for the root's address

struct StackReference {
  StackKind kind = StackKind::walk_kernel;
  std::uint16_t processor = 0;
  std::uint32_t process_id = 0, thread_id = 0;
  std::int64_t event_time = 0;
  std::uint32_t stack = 0; // StackOrder's number: new ones appear in ascending order
  auto operator<=>(const StackReference &) const = default;
};

// What both sides of the format predict from.
class StackPredictor {
public:
  struct Processor {
    std::uint32_t thread = kNone;
    std::int64_t time = 0;
  };
  struct Thread {
    std::uint32_t process_id, thread_id;
    std::uint32_t stack = kNone;
    std::int64_t time = 0;
  };
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  Processor &processor(std::uint16_t index) {
    if (index >= processors_.size()) processors_.resize(index + 1u);
    return processors_[index];
  }
  [[nodiscard]] std::uint32_t predicted(const Thread &thread) const {
    return thread.stack == kNone || thread.stack >= next_.size() ? kNone : next_[thread.stack];
  }
  void followed(Thread &thread, std::uint32_t stack) {
    if (thread.stack != kNone) {
      if (thread.stack >= next_.size())
        next_.resize(std::size_t{thread.stack} + thread.stack / 2 + 64, kNone);
      next_[thread.stack] = stack;
    }
    thread.stack = stack;
  }
  std::vector<Thread> threads;
  std::uint32_t stacks = 0; // met so far

private:
  std::vector<Processor> processors_;
  std::vector<std::uint32_t> next_; // by stack: what followed it last on the same thread
};

class StackDatabaseWriter {
public:
  using Sink = std::function<Result<void>(Bytes)>;

  StackDatabaseWriter(Sink sink, unsigned pointer_size, int level = 19);
  ~StackDatabaseWriter();
  StackDatabaseWriter(const StackDatabaseWriter &) = delete;
  StackDatabaseWriter &operator=(const StackDatabaseWriter &) = delete;

  [[nodiscard]] Result<void> add(const StackReference &reference);
  // The table, of the stacks that `order` numbers, and the end of the file.
  [[nodiscard]] Result<void> finish(const StackTable &table, const StackOrder &order);
  [[nodiscard]] std::uint64_t size() const { return size_; } // bytes given to the sink

private:
  [[nodiscard]] Result<void> flush_references();
  [[nodiscard]] Result<void> write(Bytes content, bool last);

  Sink sink_;
  ZSTD_CCtx_s *context_;
  std::vector<StackReference> pending_;
  StackPredictor predictor_;
  std::unordered_map<std::uint64_t, std::uint32_t> thread_numbers_;
  std::vector<std::uint8_t> content_, out_;
  std::uint64_t size_ = 0;
};

struct StackDatabase {
  std::vector<StackReference> references;
  std::vector<std::vector<std::uint64_t>> stacks; // innermost first, by number
  std::vector<std::uint8_t> scopes;
};

// Reads all of it. `limit`: of content bytes.
[[nodiscard]] Result<StackDatabase> read_stack_database(Bytes file,
                                                        std::uint64_t limit = std::uint64_t{1} << 32);

} // namespace etwrelog::stacks
