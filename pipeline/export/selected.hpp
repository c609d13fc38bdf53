// Which events of a trace an export takes.
#pragma once

#include "api/reading.hpp"
#include "base/errors.hpp"
#include "etwrelog/trace.hpp"
#include "export/json_lines.hpp"
#include "export/survey.hpp"
#include "filter/early_filter.hpp"
#include "where/condition.hpp"

#include <limits>
#include <memory>
#include <optional>

namespace etwrelog::pipeline {

// All events of the time and the kinds asked for; where processes are asked for, those among them that a
// relog with the same processes and time would keep, which takes its looks at the trace.
class Selected {
public:
  // `where`: a condition in the language of where/syntax.hpp; empty for none. The survey outlives this.
  static Result<Selected> make(const etwrelog::Trace &trace, const Selection &selection,
                               const std::string &where, const ExportSurvey &survey, const RunOptions &run) {
    Selected selected;
    if (!where.empty()) {
      selected.surroundings_ = std::make_unique<const Known>(survey);
      ETWRELOG_TRY_LET(made,
                       where::Condition::make(where, survey.schemas, trace.clock(), *selected.surroundings_));
      selected.where_ = std::move(made);
    }
    selected.selection_ = selection;
    if (!selection.by_process() || selected.nothing()) return selected;
    ETWRELOG_TRY_LET(made, Filter::prepare(trace, selection, run));
    selected.filter_ = std::move(made);
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
    if (filter_) query.filter = &*filter_;
    if (!where_) return query;
    query.kinds = where_->kinds();
    const auto [from, to] = where_->times();
    if (!query.from && from != std::numeric_limits<std::int64_t>::min()) query.from = Moment{false, 0, from};
    if (!query.to && to != std::numeric_limits<std::int64_t>::max()) query.to = Moment{false, 0, to};
    return query;
  }
  [[nodiscard]] Reading reading() const {
    Reading reading;
    if (selection_.by_kind() || where_)
      reading.chooser = [this] {
        return [this, scratch = where::Condition::Scratch()](const Event &event) mutable {
          return filter::of_selected_kind(selection_, event, event.processor()) &&
                 (!where_ || where_->holds(event, scratch));
        };
      };
    return reading;
  }

private:
  class Known final : public where::Surroundings {
  public:
    explicit Known(const ExportSurvey &survey) : survey_(survey) {}
    [[nodiscard]] std::string_view process_name(const Event &event) const override {
      const std::uint32_t found = survey_.process_of(event);
      if (found == ExportSurvey::kNone) return {};
      return survey_.lifetimes[event.machine()].processes()[found].image_name;
    }
    void names(const Event *event, const Schema *schema, std::string &provider,
               std::string &name) const override {
      names_of(survey_.schemas, event, schema, provider, name);
    }

  private:
    const ExportSurvey &survey_;
  };

  Selection selection_;
  std::optional<Filter> filter_;
  std::unique_ptr<const Known> surroundings_;
  std::optional<where::Condition> where_;
};

} // namespace etwrelog::pipeline
