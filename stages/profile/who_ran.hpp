// Which thread ran on a processor when: of events that do not say who caused them.
#pragma once

#include "etwrelog/event.hpp"

#include <vector>

namespace etwrelog::profile {

// The context switches of one machine. A reader may be asked by any number of threads at once.
class WhoRan {
public:
  struct Switch {
    std::int64_t time = 0;
    std::uint32_t new_thread = 0, old_thread = 0;
  };

  // In the order of the file.
  void add(std::uint16_t processor, const Switch &to);
  // When all are there, and before the first question.
  void sort();

  // The thread that the last switch went to, at `time` at the latest, or before the first one the thread that
  // it came from. kUnknownId without any switch, and where the next one comes from another thread: others are
  // missing in between, lost or left out with the process that they were of, and anybody may have run.
  [[nodiscard]] std::uint32_t on(std::uint16_t processor, std::int64_t time) const;

private:
  std::vector<std::vector<Switch>> processors_;
};

} // namespace etwrelog::profile
