// What a field means to those who look across event types, and whose an event is. Numbers that may grow in
// number with a release: no file holds them.
#pragma once

#include <cstdint>

namespace etwrelog {

enum class Role : std::uint8_t {
  none,
  process_id,
  parent_id,
  thread_id,
  new_thread_id,
  old_thread_id,
  event_time, // raw time stamp of the event that a stack belongs to
  stack_key,
  frames,
  image_base,
  image_size,
  image_checksum,
  image_time,  // TimeDateStamp of the PE header
  file_object, // also called FileKey: what file-name events name
  file_key,
  exit_status,
  session_id,
  image_name, // ImageFileName of a process
  command_line,
  file_name,
  thread_name,
  instruction_pointer,
  method_id,
  module_id,
  code_address,
  code_size,
  type_name,
  method_name,
  signature,
  registry_key, // the kernel's own number of a key (of its control block), called KeyHandle
  count_,
};

// Whose an event is, which is how a process filter decides on it.
enum class Scope : std::uint8_t {
  always,               // describes the trace or the machine
  process,              // process start, end, rundown: payload ProcessId
  thread,               // thread start, end, rundown: payload ProcessId
  image,                // image load, unload, rundown: payload ProcessId, or nobody's in kernel space
  payload_process,      // payload ProcessId
  payload_thread,       // payload ThreadId, by the process that the thread belonged to at that time
  context_switch,       // old and new thread
  context_switch_batch, // up to 16 threads at once
  ready_thread,         // the readied thread and the one that ran on this processor
  current_thread,       // the header's ids if it has any, else the thread that ran on this processor
  stack_walk,           // payload ProcessId, and whether the event it belongs to is kept
  stack_reference,      // the same, frames by key
  stack_definition,     // frames of a key: whoever references it
  file_name,            // whoever references the file object
  key_name,             // whoever references the registry key; also the header's ProcessId
  header,               // the header's ProcessId
  system,               // belongs to no process: DPC, ISR and the like
};

} // namespace etwrelog
