// Requests to disks and files: which events of the kernel begin and end them, and by which number.
#pragma once

#include "etwrelog/kernel_events.hpp"

namespace etwrelog::schema {

inline constexpr std::uint16_t kFileOperationEnd = 0x044C; // of what began with any other of its group
// Of disks, of files.
[[nodiscard]] constexpr bool is_of_requests(std::uint16_t hook) {
  return hook >> 8 == 0x01 || hook >> 8 == 0x04;
}

// The hook of the event that begins the request to a disk which an event of `hook` begins, then the same, or
// ends; none if it does neither. Beginnings have the number of the request, the thread and a stack alone;
// what was done the end says, which is written by whoever ran when the disk was done, and has no stack.
[[nodiscard]] std::optional<std::uint16_t> disk_request_begin(std::uint16_t hook);
// Whether it says what a disk has done, not who asked for it.
[[nodiscard]] inline bool ends_disk_request(std::uint16_t hook) {
  const std::optional<std::uint16_t> begin = disk_request_begin(hook);
  return begin && *begin != hook;
}

// The number of the request that an event of this hook belongs to, which is free again when the request ends.
[[nodiscard]] std::optional<std::uint64_t> io_request(const EventView &event, std::uint16_t hook);

} // namespace etwrelog::schema
