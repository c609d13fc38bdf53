// Puts the events of many streams in order of time, by windows.
//
// A stream is what one processor of one source wrote: its buffers follow each other in time, but for
// neighbours, which may overlap; or, where sessions were put together by whole buffers, they begin one after
// the other. The serial part only keeps the buffers of each stream that are loaded and not yet delivered, and
// picks the time up to which all that can come has come: the lowest, over all streams, of when the last one
// loaded begins, or of the latest time in those before it, if that is earlier (what follows can reach back
// into the last one only). All events up to there make a window; cutting the buffers at its ends and sorting
// is parallel work.
//
// Where much is held up and then let go at once, it is handed out in several windows, so that a window is
// about as much work as any other.
//
// At the same time, events stand by source, processor and position. The bound of a window therefore is a time
// and a stream: that stream's events of the very time, and those of streams before it, belong to the window;
// those of streams behind it to the next.
#pragma once

#include "base/raw_memory.hpp"
#include "etwrelog/trace.hpp"
#include "source/trace.hpp"

#include <deque>
#include <limits>
#include <memory>
#include <type_traits>

namespace etwrelog::pipeline {

inline constexpr std::int64_t kFirstTime = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kLastTime = std::numeric_limits<std::int64_t>::max();

// References that are appended one by one and sorted: a vector that does not clear what it grows by, and
// whose memory stays.
class RefList {
public:
  void clear() { size_ = 0; }
  void push(const detail::EventRef &ref) {
    if (size_ == capacity()) grow(size_ + 1);
    refs()[size_++] = ref;
  }
  // Room for so many; what is in it is not kept.
  void resize_for_overwrite(std::size_t size) {
    size_ = 0;
    if (size > capacity()) grow(size);
    size_ = size;
  }
  void swap(RefList &other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<detail::EventRef> all() { return {refs(), size_}; }
  [[nodiscard]] std::span<const detail::EventRef> all() const { return {refs(), size_}; }
  [[nodiscard]] std::uint64_t bytes() const { return memory_.capacity(); }

private:
  [[nodiscard]] detail::EventRef *refs() const {
    return reinterpret_cast<detail::EventRef *>(memory_.data());
  }
  [[nodiscard]] std::size_t capacity() const { return memory_.capacity() / sizeof(detail::EventRef); }
  void grow(std::size_t needed);

  static_assert(std::is_trivially_copyable_v<detail::EventRef>);
  base::RawMemory memory_;
  std::size_t size_ = 0;
};

// A loaded buffer and references to the events of it that are wanted, sorted by time.
struct Block {
  Batch batch; // of this buffer alone
  detail::BufferView view;
  RefList refs;                         // `buffer` is set when they are put into a window
  std::vector<Skipped> skipped;         // of this buffer
  std::uint32_t stream = 0, number = 0; // number in the stream
  bool has_events = false;
  std::int64_t first = 0, last = 0; // times of all events of the buffer, wanted or not
  std::uint32_t event_bytes = 0;    // of an event, on average
  std::size_t taken = 0;            // references that have been part of a window

  // Memory of its own.
  [[nodiscard]] std::uint64_t bytes() const {
    return batch.raw.capacity() + batch.decoded.capacity() + refs.bytes();
  }
};

// Where a window ends.
struct WindowBound {
  std::int64_t time = kFirstTime;
  std::uint32_t stream = 0;
  // Whether the bound takes the events of a stream at this time.
  [[nodiscard]] bool takes(std::int64_t at, std::uint32_t of) const {
    return of <= stream ? at <= time : at < time;
  }
  auto operator<=>(const WindowBound &) const = default;
};

struct Window {
  struct Slice {
    const Block *block;
    std::size_t begin, end; // of its references
  };
  std::vector<Slice> slices;                    // by stream, and in each in order of the buffers
  std::vector<std::unique_ptr<Block>> finished; // nobody needs these behind this window
};

class TimeOrder {
public:
  // `buffers`: how many each stream has. Streams are in order of source and processor.
  explicit TimeOrder(std::span<const std::uint32_t> buffers);

  // In order of loading; for each stream in the order of its buffers.
  void add(std::unique_ptr<Block> block);
  // What comes next of everything whose turn has come: about `most` bytes of events, more only if they have
  // the same time. True: there is more.
  bool take(Window &window, std::uint64_t most);

  // Memory of what is loaded and not finished; and of what would not be if everything were taken whose turn
  // has come.
  [[nodiscard]] std::uint64_t held_bytes() const { return held_; }
  [[nodiscard]] std::uint64_t bytes_kept_back() const;
  [[nodiscard]] std::uint64_t late_events() const { return late_; }
  // The stream that all others wait for; the number of streams if there is none.
  [[nodiscard]] std::uint32_t awaited() const;

private:
  struct Stream {
    std::deque<std::unique_ptr<Block>> blocks;
    std::uint32_t missing = 0;        // buffers not loaded yet
    std::int64_t safe = kFirstTime;   // everything up to here is loaded
    std::int64_t newest = kFirstTime; // latest time in what is loaded
  };
  [[nodiscard]] WindowBound bound() const;
  // Bytes of events up to there that have not been handed out.
  [[nodiscard]] std::uint64_t bytes_up_to(const WindowBound &to) const;
  [[nodiscard]] WindowBound bound_within(const WindowBound &whole, std::uint64_t most) const;

  std::vector<Stream> streams_;
  WindowBound delivered_;
  std::uint64_t held_ = 0, late_ = 0;
};

// Memory of ordering, used again.
struct OrderScratch {
  struct Range {
    std::span<const detail::EventRef> refs;
    std::uint32_t number; // of the buffer in the batch
  };
  std::vector<Range> ranges;
  RefList refs;
};

// What a window holds, in order of time: references into `buffers`, whose memory is the blocks'.
void order_window(const Window &window, std::vector<detail::BufferView> &buffers, RefList &refs,
                  OrderScratch &scratch);

} // namespace etwrelog::pipeline
