// Which events of a trace an export takes.
#pragma once

#include "etwrelog/trace.hpp"
#include "export/survey.hpp"
#include "filter/filter.hpp"

#include <algorithm>
#include <vector>

namespace etwrelog::pipeline {

// Which events a selection takes, on each machine. Whose an event without ids is, its payload tells; where
// only the thread that ran before it on its processor could tell, it counts as unknown.
class Selected {
public:
  static Result<Selected> make(const Trace &trace, const Selection &selection, const ExportSurvey &survey) {
    Selected selected;
    selected.everything_ = selection.everything();
    selected.selection_ = selection;
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
    return filter::is_kept(reason) && (!by_kind_ || of_kind(event));
  }

private:
  // As far as the header tells; every list that is given must hold the event.
  [[nodiscard]] bool of_kind(const Event &event) const {
    auto any = [](const auto &list, auto &&test) {
      return list.empty() || std::any_of(list.begin(), list.end(), test);
    };
    const std::uint32_t id = event.is_classic() ? event.opcode() : event.id();
    return any(selection_.providers,
               [&](const ProviderSelection &p) {
                 if (p.kernel ? !event.has_hook() : event.provider() != p.guid) return false;
                 return (p.keywords == 0 || event.keyword() == 0 || (event.keyword() & p.keywords) != 0) &&
                        (p.level == 0 || event.level() <= p.level);
               }) &&
           any(selection_.events, [&](std::uint32_t wanted) { return wanted == id; }) &&
           any(selection_.processors, [&](std::uint16_t wanted) { return wanted == event.processor(); }) &&
           any(selection_.channels,
               [&](auto wanted) { return event.is_event() && wanted == event.channel(); }) &&
           any(selection_.tasks, [&](auto wanted) { return event.is_event() && wanted == event.task(); }) &&
           any(selection_.opcodes, [&](auto wanted) { return wanted == event.opcode(); }) &&
           any(selection_.activities,
               [&](const Guid &wanted) { return event.is_event() && wanted == event.activity(); });
  }

  Selection selection_;
  bool everything_ = true, by_kind_ = false;
  filter::TimeRange time_;
  std::vector<filter::Filter> filters_;
};

} // namespace etwrelog::pipeline
