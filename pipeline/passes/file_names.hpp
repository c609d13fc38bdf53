// Names of files by the numbers that events call them: their objects and keys.
#pragma once

#include "base/text_numbers.hpp"

#include "etwrelog/kernel_events.hpp"

#include <vector>

namespace etwrelog::pipeline {

struct FileName {
  std::uint64_t number = 0;
  std::int64_t time = 0; // when it was told
  std::string name;
};

// What a kernel event of this hook tells: FileIo/Name and its kin the name of a key, FileIo/Create that of
// the object that it opens.
[[nodiscard]] std::optional<FileName> file_name_of(const EventView &event, std::uint16_t hook,
                                                   std::int64_t time);

class FileNames {
public:
  void add(const FileName &told) { told_.push_back({told.number, told.time, names_.number(told.name)}); }
  void sort(); // after the last, before find()
  // The last name that the number got until then; else, as rundowns come at the end, the next. Empty: none.
  // Any thread.
  [[nodiscard]] std::string_view find(std::uint64_t number, std::int64_t time) const;
  [[nodiscard]] std::size_t memory() const; // about

private:
  struct Told {
    std::uint64_t number;
    std::int64_t time;
    std::uint32_t name;
    [[nodiscard]] std::pair<std::uint64_t, std::int64_t> place() const { return {number, time}; }
  };
  std::vector<Told> told_;
  base::TextNumbers names_;
};

} // namespace etwrelog::pipeline
