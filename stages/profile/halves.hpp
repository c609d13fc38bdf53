// Which of the fragments that name an event become its stack.
#pragma once

#include "profile/records.hpp"

#include <tuple>

namespace etwrelog::profile {

// Of several halves of a kind the last kernel part counts, the first user part, and a whole stack above all;
// in whatever order they are given. `fragments[number]`: one with frames that names the subject.
template <class Fragments>
void give_stack(Subject &subject, const Fragments &fragments, std::uint32_t number) {
  const Fragment &fragment = fragments[number];
  const auto later = [&](std::uint32_t than) {
    const Fragment &other = fragments[than];
    return std::tuple(fragment.time, number) > std::tuple(other.time, than);
  };
  if (fragment.is(Fragment::kKernel)) {
    if (subject.kernel == Subject::kNoFragment || later(subject.kernel)) subject.kernel = number;
    return;
  }
  const bool whole = !fragment.is(Fragment::kUserFirst), was_whole = (subject.flags & Subject::kWhole) != 0;
  const bool takes = subject.user == Subject::kNoFragment || (whole && !was_whole) ||
                     (whole == was_whole && later(subject.user) == whole);
  if (!takes) return;
  subject.user = number;
  if (whole) subject.flags |= Subject::kWhole;
}

} // namespace etwrelog::profile
