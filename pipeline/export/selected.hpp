// Which events of a trace an export takes.
#pragma once

#include "api/reading.hpp"
#include "base/errors.hpp"
#include "etwrelog/trace.hpp"
#include "export/json_lines.hpp"
#include "export/survey.hpp"
#include "filter/filter.hpp"
#include "where/condition.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace etwrelog::pipeline {

// Which events a selection takes, on each machine. Whose an event without ids is, its payload tells; where
// only the thread that ran before it on its processor could tell, it counts as unknown.
class Selected {
public:
  // `where`: a condition in the language of where/syntax.hpp; empty for none. The survey outlives this.
  static Result<Selected> make(const etwrelog::Trace &trace, const Selection &selection,
                               const std::string &where, const ExportSurvey &survey) {
    Selected selected;
    if (!where.empty()) {
      selected.surroundings_ = std::make_unique<const Known>(survey);
      ETWRELOG_TRY_LET(made,
                       where::Condition::make(where, survey.schemas, trace.clock(), *selected.surroundings_));
      selected.where_ = std::move(made);
    }
    selected.everything_ = selection.everything();
    selected.selection_ = selection;
    if (selected.everything_) return selected;
    for (const filter::Lifetimes &lifetimes : survey.lifetimes) {
      if (survey.lifetimes.size() == 1)
        if (Result<filter::Targets> targets = filter::Targets::resolve(selection, lifetimes); !targets)
          return std::move(targets).error();
      ETWRELOG_TRY_LET(made, filter::Filter::make(selection, lifetimes, trace.clock(), true));
      selected.filters_.push_back(std::move(made));
    }
    selected.by_kind_ = selection.by_kind();
    selected.time_ = filter::selected_time(selection, trace.clock());
    return selected;
  }
  // No event is taken, whatever the trace holds.
  [[nodiscard]] bool nothing() const { return where_ && where_->nothing(); }

  // Trace::fold over what is selected.
  template <class Part, class Map, class Merge>
  [[nodiscard]] Result<Part> fold(const etwrelog::Trace &trace, Map map, Merge merge, Order order,
                                  const RunOptions &run) const {
    if (nothing()) return Part{};
    return read_fold<Part>(trace, std::move(map), std::move(merge), query(order), reading(), run);
  }

  // How a traversal takes what is selected and nothing else, unless that is nothing(). This outlives it.
  [[nodiscard]] Query query(Order order) const {
    Query query;
    query.order = order;
    query.from = selection_.from, query.to = selection_.to;
    if (!where_) return query;
    query.kinds = where_->kinds();
    const auto [from, to] = where_->times();
    if (!query.from && from != std::numeric_limits<std::int64_t>::min()) query.from = Moment{false, 0, from};
    if (!query.to && to != std::numeric_limits<std::int64_t>::max()) query.to = Moment{false, 0, to};
    return query;
  }
  [[nodiscard]] Reading reading() const {
    Reading reading;
    if (!everything_ || where_)
      reading.chooser = [this] {
        return [this, scratch = where::Condition::Scratch()](const Event &event) mutable {
          return selects(event) && (!where_ || where_->holds(event, scratch));
        };
      };
    return reading;
  }

private:
  [[nodiscard]] bool selects(const Event &event) const {
    if (everything_) return true;
    if (!time_.contains(event.time())) return false;
    filter::Position position{event.processor(), kUnknownId};
    const filter::Reason reason = filters_[event.machine()].decide(event, event.time(), position);
    // Who asks for certain kinds does not want what a trace needs to be whole.
    return filter::is_kept(reason) && (!by_kind_ || of_kind(event));
  }

  class Known final : public where::Surroundings {
  public:
    explicit Known(const ExportSurvey &survey) : survey_(survey) {}
    [[nodiscard]] std::string_view process_name(const Event &event) const override {
      if (event.process_id() == kUnknownId || event.machine() >= survey_.lifetimes.size()) return {};
      const filter::Lifetimes &lifetimes = survey_.lifetimes[event.machine()];
      const auto found = lifetimes.process_at(event.process_id(), event.time());
      return found ? std::string_view(lifetimes.processes()[*found].image_name) : std::string_view();
    }
    void names(const Event *event, const Schema *schema, std::string &provider,
               std::string &name) const override {
      names_of(survey_.schemas, event, schema, provider, name);
    }

  private:
    const ExportSurvey &survey_;
  };

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
  std::unique_ptr<const Known> surroundings_;
  std::optional<where::Condition> where_;
};

} // namespace etwrelog::pipeline
