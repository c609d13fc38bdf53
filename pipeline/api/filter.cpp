// The public Filter: one filter a machine, over what all its sources tell.
#include "api/filter.hpp"

#include "api/state.hpp"
#include "base/errors.hpp"
#include "passes/collect.hpp"

namespace etwrelog {
namespace {

// Seconds since the trace began mean its clock, whichever source an event is in.
Selection in_clock_of(Selection selection, const Clock &clock, bool first) {
  if (first) return selection;
  for (std::optional<Moment> *moment : {&selection.from, &selection.to})
    if (*moment && (*moment)->relative) {
      Selection one;
      one.from = *moment;
      *moment = Moment{false, 0, clock.to_filetime(filter::selected_time(one, clock).from)};
    }
  return selection;
}

Result<void> follow_references(const pipeline::OpenedTrace &opened, const pipeline::SourcesInTime &sources,
                               Filter::Impl &impl, std::uint32_t machine, const RunOptions &run) {
  std::vector<pipeline::FilteredTrace> all;
  for (std::size_t s = 0; s < sources.size(); ++s)
    if (opened.infos[s].machine == machine) all.push_back({&sources[s], impl.first_buffer[s]});
  return pipeline::settle_filter(all, *impl.machines[machine], run);
}

} // namespace

bool FilterParts::is_of(const Filter &filter, const Trace &trace) {
  return filter.impl_->trace == detail::Traversal::of(trace).identity;
}

Result<Filter> Filter::prepare(const Trace &trace, const Selection &selection, const RunOptions &run,
                               const Lifetimes *known) {
  if (trace.single_pass()) return detail::Traversal::needs_spool(trace);
  const pipeline::OpenedTrace &opened = detail::Traversal::of(trace);
  auto impl = std::make_shared<Impl>();
  impl->trace = opened.identity;
  impl->everything = selection.everything();
  if (impl->everything) return FilterParts::make(std::move(impl));
  const filter::TimeRange time = filter::selected_time(selection, trace.clock());
  const bool timed = selection.from || selection.to;
  const auto sources =
      timed ? pipeline::SourcesInTime(opened, time.from, time.to) : pipeline::SourcesInTime(opened);
  if (known != nullptr) {
    impl->lifetimes = *known;
  } else {
    ETWRELOG_TRY_LET(collected, pipeline::collect_state(trace, sources, run, nullptr));
    impl->lifetimes = std::move(collected);
  }
  const Lifetimes::Impl &state = *StateParts::of(impl->lifetimes);
  if (state.first_buffer.size() != opened.sources.size())
    return base::bad_option(Option::processes, "the lifetimes are those of another trace");
  impl->first_buffer = state.first_buffer;
  std::optional<Error> nothing;
  bool any = false;
  for (std::uint32_t m = 0; m < state.machines.size(); ++m) {
    const Lifetimes::Impl::Machine &machine = *state.machines[m];
    impl->machines.emplace_back();
    Result<filter::Filter> made = filter::Filter::make(in_clock_of(selection, trace.clock(), m == 0),
                                                       *machine.lifetimes, machine.clock);
    if (!made) {
      if (made.error().kind != ErrorKind::no_match)
        return base::in_file(std::move(made).error(), opened.infos[0].name);
      if (!nothing) nothing = std::move(made).error();
      continue;
    }
    any = true;
    if (!made->targets().all())
      for (std::uint32_t i = 0; i < machine.lifetimes->processes().size(); ++i)
        if (made->targets().is_target(i)) impl->processes.push_back(machine.first_process + i);
    impl->machines.back() = *std::move(made);
    ETWRELOG_TRY(follow_references(opened, sources, *impl, m, run));
  }
  if (!any && nothing) return base::in_file(*std::move(nothing), opened.infos[0].name);
  return FilterParts::make(std::move(impl));
}

std::span<const std::uint32_t> Filter::processes() const {
  return impl_->processes;
}

} // namespace etwrelog
