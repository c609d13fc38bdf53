// Which stack fragment belongs to which event.
//
// A fragment names its event by its exact time and its thread; where several events answer, the same
// processor decides, then the later in the file. The user half of a stack is written when the thread leaves
// the kernel and names the first event since it got in: it completes the kernel halves of the thread whose
// events lie between that one and the moment when it was written. Nothing else is ever completed: a sample
// that was taken in a DPC or an ISR has no user half, and a later one is not its own. What ends something may
// have the stack of its beginning (Records::begun), beside the beginning itself if that is a subject.
#pragma once

#include "profile/records.hpp"

namespace etwrelog::profile {

// Joins what join_within() has left open. Sets who owns each fragment and which were claimed, and of all
// subjects the flags and the two stacks, from here on by the number of the frames. Frees the marks. How many
// subjects another event's user half completed.
[[nodiscard]] std::uint64_t join(Records &records, const ParallelFor &parallel);

} // namespace etwrelog::profile
