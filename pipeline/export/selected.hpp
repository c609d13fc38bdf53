// Which events of a trace an export takes.
#pragma once

#include "etwrelog/trace.hpp"
#include "export/survey.hpp"
#include "filter/filter.hpp"

#include <vector>

namespace etwrelog::pipeline {

// Which events a selection takes, on each machine. Whose an event without ids is, its payload tells; where
// only the thread that ran before it on its processor could tell, it counts as unknown.
class Selected {
public:
  static Result<Selected> make(const Trace &trace, const Selection &selection, const ExportSurvey &survey) {
    Selected selected;
    selected.everything_ = selection.everything();
    if (selected.everything_) return selected;
    for (const filter::Lifetimes &lifetimes : survey.lifetimes) {
      if (survey.lifetimes.size() == 1)
        if (Result<filter::Targets> targets = filter::Targets::resolve(selection, lifetimes); !targets)
          return std::move(targets).error();
      Result<filter::Filter> made = filter::Filter::make(selection, lifetimes, trace.clock(), true);
      if (!made) return std::move(made).error();
      selected.filters_.push_back(*std::move(made));
    }
    selected.by_kind_ = selection.by_kind();
    selected.time_ = filter::selected_time(selection, trace.clock());
    return selected;
  }
  [[nodiscard]] bool contains(const Event &event) const {
    if (everything_) return true;
    if (!time_.contains(event.time())) return false;
    filter::Position position{event.processor(), kUnknownId};
    const filter::Reason reason = filters_[event.machine()].decide(event, event.time(), position);
    // Who asks for certain kinds does not want what a trace needs to be whole.
    return filter::is_kept(reason) && !(by_kind_ && reason == filter::Reason::kept_always);
  }

private:
  bool everything_ = true, by_kind_ = false;
  filter::TimeRange time_;
  std::vector<filter::Filter> filters_;
};

} // namespace etwrelog::pipeline
