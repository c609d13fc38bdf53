// Which keys of the registry events are about. The kernel logger calls a key by the address of its control
// block (KCB), "KeyHandle" in its events, and tells the whole name when it makes and drops one, and of all
// that are there at the end; everything else has names that begin at such a key.
// Microsoft-Windows-Kernel-Registry calls it by the address of what a program has opened, "KeyObject", and
// tells where that begins when it is opened; of what was opened before, nothing.
#pragma once

#include "passes/object_names.hpp"

namespace etwrelog::pipeline {

// What a kernel event of this hook tells: the whole name of a key.
[[nodiscard]] std::optional<ObjectName> key_name_of(const EventView &event, std::uint16_t hook,
                                                    std::int64_t time);

// Keys that programs opened and closed, as the provider's events tell.
class OpenedKeys {
public:
  struct Event {
    std::int64_t time = 0;
    std::uint64_t key = 0, base = 0; // of opening: where `name` begins; 0: nowhere
    std::string name;
    bool closes = false;
  };
  // Null for other events, and for what was not opened after all.
  [[nodiscard]] static std::optional<Event> read(const EventView &event, std::int64_t time);

  void add(Event &&event) { // in the order of the file
    bytes_ += sizeof(Event) + event.name.size();
    events_.push_back(std::move(event));
  }
  [[nodiscard]] std::size_t memory() const { return bytes_; } // about
  // Their whole names, when all are there; those of the beginning alone where they take more than so much
  // memory, which `all` says.
  [[nodiscard]] ObjectNames names(std::size_t memory, bool &all) &&;

private:
  std::vector<Event> events_;
  std::size_t bytes_ = 0;
};

// By the numbers of the kernel logger, and of the provider.
struct RegistryNames {
  ObjectNames control_blocks, opened;
};

// Appends the whole name of the key that an event is about: "\REGISTRY\MACHINE\SOFTWARE\Contoso". Of an event
// about a value that is the key that has it. False, and nothing appended, if it is about none, or one that
// `keys` do not name. Events before Windows Vista have numbers of another kind.
[[nodiscard]] bool append_key_of(const EventView &event, std::int64_t time, const RegistryNames &keys,
                                 std::string &out);

} // namespace etwrelog::pipeline
