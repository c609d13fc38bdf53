// Process, thread and image events: the one place that fills their payloads, for starts, ends and rundowns.
#pragma once

#include "emitter.hpp"

namespace etwrelog::gen {

// `tid`, `pid` of the header where the kind has a SYSTEM header: starts name the creator there.
void write_process(Emitter &out, Kind kind, const Process &process, std::uint32_t tid, std::uint32_t pid,
                   std::int64_t time);
void write_thread(Emitter &out, Kind kind, const Thread &thread, std::uint32_t tid, std::uint32_t pid,
                  std::int64_t time);
// `process` null: a kernel image. Merge-time identity events stand before those of rundown and load.
void write_image(Emitter &out, Kind kind, const LoadedImage &loaded, const Process *process,
                 const Process *kernel, std::uint32_t tid, std::uint32_t header_pid, std::int64_t time,
                 bool identity);

struct Snapshot { // of the machine, for the rundown at the end
  std::vector<std::shared_ptr<const Process>> processes;
  std::vector<ThreadRef> threads;
};
void write_prologue(Emitter &out, const Machine &machine, const Snapshot &alive, std::int64_t time);
void write_epilogue(Emitter &out, const Machine &machine, const Snapshot &alive, std::uint32_t files,
                    std::int64_t time);

// Names of file objects. A file object is a pure function of a number, so that any slice may use any of them.
[[nodiscard]] std::uint64_t file_object(std::uint64_t number, unsigned pointer_size);
[[nodiscard]] std::string file_name(std::uint64_t number);

// The same of keys of the registry: kKeys are there all the time, the others come and go.
inline constexpr std::uint32_t kKeys = 64;
[[nodiscard]] std::uint64_t registry_key(std::uint64_t number, unsigned pointer_size);
[[nodiscard]] std::string key_name(std::uint64_t number); // of one that is always there
// An event of the registry with its header. `name`: of a value, or of a key that begins at `key`.
void write_registry(Emitter &out, Kind kind, std::uint64_t key, std::string_view name, std::uint32_t tid,
                    std::uint32_t pid, std::int64_t time);

} // namespace etwrelog::gen
