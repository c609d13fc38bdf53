// Events of one processor in order, with what is needed to put them into buffers and the count of what they
// are.
#pragma once

#include "tally.hpp"

#include "write/buffers.hpp"
#include "write/event_builder.hpp"

namespace etwrelog::gen {

struct Stream {
  std::vector<std::uint8_t> bytes;
  std::vector<write::Run> runs;

  void clear() {
    bytes.clear();
    runs.clear();
  }
};

class Emitter {
public:
  Emitter(Stream &stream, Tally &counts, unsigned pointer_size)
      : tally(counts), stream_(stream), builder_(stream.bytes), pointer_size_(pointer_size) {}

  Tally &tally;

  // Time stamps never go back on a processor: the time asked for, or the one of the event before.
  [[nodiscard]] std::int64_t stamp(std::int64_t time) { return last_ = time > last_ ? time : last_; }
  [[nodiscard]] std::int64_t last() const { return last_; }

  write::EventBuilder &perfinfo(Kind kind, std::uint8_t version, std::int64_t time) {
    return builder_.perfinfo(hook_of(kind), version, pointer_size_, stamp(time));
  }
  write::EventBuilder &system(Kind kind, std::uint8_t version, std::uint32_t tid, std::uint32_t pid,
                              std::int64_t time) {
    return builder_.system(hook_of(kind), version, pointer_size_, tid, pid, stamp(time));
  }
  write::EventBuilder &classic(const Guid &guid, std::uint8_t opcode, std::uint16_t version,
                               std::uint32_t tid, std::uint32_t pid, std::int64_t time) {
    return builder_.classic(guid, opcode, version, pointer_size_, tid, pid, stamp(time));
  }
  write::EventBuilder &event(const write::EventFields &fields, std::uint32_t tid, std::uint32_t pid,
                             std::int64_t time) {
    return builder_.event(fields, pointer_size_, tid, pid, stamp(time));
  }
  write::EventBuilder &message(std::uint16_t number, const Guid &guid, std::uint32_t tid, std::uint32_t pid,
                               std::int64_t time) {
    return builder_.message(number, guid, pointer_size_, tid, pid, stamp(time));
  }
  [[nodiscard]] write::EventBuilder &builder() { return builder_; } // of the event that was begun
  [[nodiscard]] unsigned pointer_size() const { return pointer_size_; }

  // Ends the event that was begun. `owner`: the process that it belongs to by the rules of a process filter.
  void done(Kind kind, const Process *owner) {
    tally.add(kind, builder_.finish());
    if (owner != nullptr) tally.own(kind, owner->index);
    if (stream_.bytes.size() - begin_ < kRun) return;
    close_run();
  }
  // An event that is complete already and counted elsewhere.
  void copy(Bytes event) {
    stream_.bytes.insert(stream_.bytes.end(), event.begin(), event.end());
    stream_.bytes.resize(align8(stream_.bytes.size()));
    if (stream_.bytes.size() - begin_ >= kRun) close_run();
  }
  void close_run() {
    if (stream_.bytes.size() == begin_) return;
    const auto end = static_cast<std::uint32_t>(stream_.bytes.size());
    stream_.runs.push_back({begin_, end, last_});
    begin_ = end;
  }

private:
  static constexpr std::size_t kRun = 4096;
  Stream &stream_;
  write::EventBuilder builder_;
  unsigned pointer_size_;
  std::uint32_t begin_ = 0;
  std::int64_t last_ = 0;
};

} // namespace etwrelog::gen
