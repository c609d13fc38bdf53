// Names of files and registry keys by the numbers that events call them.
#pragma once

#include "base/text_numbers.hpp"

#include "etwrelog/kernel_events.hpp"

#include <vector>

namespace etwrelog::pipeline {

struct ObjectName {
  std::uint64_t number = 0;
  std::int64_t time = 0; // when it was told
  std::string name;
  // Of which times: `any` holds from here on until another is told, and before if none was.
  enum class Holds : std::uint8_t { any, from_here, until_here } holds = Holds::any;
};

// What a kernel event of this hook tells: FileIo/Name and its kin the name of a file's key, FileIo/Create
// that of the object that it opens.
[[nodiscard]] std::optional<ObjectName> file_name_of(const EventView &event, std::uint16_t hook,
                                                     std::int64_t time);
// The same of an event of Microsoft-Windows-Kernel-File.
[[nodiscard]] std::optional<ObjectName> file_name_of_provider(const EventView &event, std::int64_t time);

class ObjectNames {
public:
  void add(const ObjectName &told) { static_cast<void>(add(told.number, told.time, told.name, told.holds)); }
  // Returns the name as it is kept, which stays where it is.
  std::string_view add(std::uint64_t number, std::int64_t time, std::string_view name,
                       ObjectName::Holds holds);
  void sort(); // after the last, before find()
  // The last name that the number got until then; else, as rundowns come at the end, the next, if that holds
  // before it is told. Empty: none. Any thread.
  [[nodiscard]] std::string_view find(std::uint64_t number, std::int64_t time) const;
  [[nodiscard]] std::size_t memory() const; // about

private:
  struct Told {
    std::uint64_t number;
    std::int64_t time;
    std::uint32_t name;
    ObjectName::Holds holds;
    [[nodiscard]] std::pair<std::uint64_t, std::int64_t> place() const { return {number, time}; }
  };
  std::vector<Told> told_;
  base::TextNumbers names_;
  std::size_t letters_ = 0; // of names_, in bytes
};

} // namespace etwrelog::pipeline
