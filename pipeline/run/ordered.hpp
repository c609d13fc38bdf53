// Serial source, parallel work, serial ordered sink: the flow graph of the archive commands.
#pragma once

#include "etwrelog/error.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace etwrelog::pipeline {

struct OrderedJob {
  virtual ~OrderedJob() = default;
  std::size_t ordinal = 0;
  std::optional<Error> error;
};

struct OrderedSteps {
  std::function<std::shared_ptr<OrderedJob>()> next;      // null at the end
  std::function<std::optional<Error>(OrderedJob &)> work; // any thread
  std::function<std::optional<Error>(OrderedJob &)> sink; // in order
};

// At most `in_flight` jobs are between source and sink. Returns the error of the first job, in order, that
// failed; jobs behind it are dropped.
[[nodiscard]] std::optional<Error> run_ordered(const OrderedSteps &steps, unsigned threads,
                                               std::size_t in_flight, const std::atomic<bool> *cancel);

} // namespace etwrelog::pipeline
