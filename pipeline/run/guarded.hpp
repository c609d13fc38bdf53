// How steps fail that other threads run: by a value.
#pragma once

#include "base/errors.hpp"

#include <new>

namespace etwrelog::pipeline {

// Runs a step; what it throws becomes an error value. An exception that left a node of the runner's graph
// would cancel it and surface without any word of which batch it was about; one that left a thread would end
// the process.
template <class Step> auto guarded(Step &&step) -> decltype(step()) {
  try {
    return step();
  } catch (const std::bad_alloc &) {
    return base::io_failure("out of memory").advise(Advice::fewer_threads);
  } catch (const std::exception &thrown) {
    return base::io_failure(thrown.what());
  } catch (...) {
    return base::io_failure("an unknown exception");
  }
}

} // namespace etwrelog::pipeline
