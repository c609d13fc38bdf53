// Which stack fragment belongs to which event.
//
// A fragment names its event by its exact time and its thread; where several events answer, the same
// processor decides, then the later in the file. The user half of a stack is written when the thread leaves
// the kernel and names the first event since it got in: it completes the kernel halves of the thread whose
// events lie between that one and the moment when it was written. Nothing else is ever completed: a sample
// that was taken in a DPC or an ISR has no user half, and a later one is not its own.
#pragma once

#include "profile/records.hpp"

namespace etwrelog::profile {

struct JoinCounts {
  std::uint64_t lent = 0; // subjects that another event's user half completed
  std::uint64_t of_subjects = 0, of_others = 0, orphaned = 0; // fragments; the sum is all
};

// Sets `kernel`, `user` and the flags of all subjects, and of all fragments who owns them. Frees the marks.
[[nodiscard]] JoinCounts join(Records &records, const ParallelFor &parallel);

} // namespace etwrelog::profile
