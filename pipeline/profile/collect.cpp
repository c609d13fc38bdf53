#include "profile_pass/collect.hpp"

#include "base/cut_text.hpp"
#include "filter/clr_stacks.hpp"
#include "profile/join_within.hpp"
#include "profile_pass/collector.hpp"

#include <algorithm>
#include <tuple>

namespace etwrelog::pipeline {

using namespace profile;

namespace {

void resolve(Collected &all, std::vector<Reference> &references, stacks::StackDefinitions &definitions) {
  definitions.sort();
  std::vector<std::uint64_t> frames;
  for (const Reference &reference : references) {
    const stacks::KeyDefinition *found =
        reference.kernel ? definitions.resolve(reference.key, *reference.kernel, reference.place)
                         : definitions.resolve_any(reference.key, reference.place);
    if (found == nullptr || found->stack == stacks::kNoStack) continue;
    Fragment &fragment = all.records.fragments[reference.fragment];
    fragment.stack = found->stack;
    fragment.flags = static_cast<std::uint8_t>(Fragment::kReference |
                                               Collector::flags_of(all.stacks->read(found->stack, frames)));
  }
}

// What the traces say, one after the other.
class Gathering {
public:
  explicit Gathering(const CollectOptions &collect)
      : durations_(collect.durations), collector_(collect, *all_.stacks) {}

  Result<PassResult> add(const Trace &trace, std::uint32_t first, const PassOptions &options) {
    Pass<CollectWork> pass;
    pass.name = "reading samples";
    pass.work = [&](Batch &batch, CollectWork &work) {
      work.clear();
      collector_.look_at(trace, batch, first, work);
    };
    pass.merge = [&](Batch &, CollectWork &work) -> Result<void> {
      merge(work);
      return {};
    };
    return run_pass(trace, pass, options);
  }

  Collected finish(PassResult &&met) && {
    all_.pass = std::move(met);
    resolve(all_, references_, definitions_);
    Records &records = all_.records;
    filter::find_clr_events(
        clr_events_, clr_stacks_,
        [](const filter::EventKey &event) { return std::pair(event.tid, event.time); },
        [&records](std::uint32_t stack) {
          return std::pair(records.fragments[stack].thread, records.fragments[stack].time);
        },
        [&records](std::uint32_t stack, const filter::EventKey &event) {
          records.fragments[stack].event_time = event.time;
        });
    give_later_parts();
    pair_edges();
    name_files();
    records.overlaps = std::move(overlaps_).take();
    records.who_ran.sort();
    records.kinds = collector_.kind_names();
    records.leaf_texts.assign(leaf_texts_.all().begin(), leaf_texts_.all().end());
    state_.settle();
    records.processes = std::move(state_.processes);
    records.threads = std::move(state_.threads);
    records.thread_names = std::move(state_.thread_names);
    records.images = std::move(state_.images);
    records.identities = std::move(state_.identities);
    records.intervals = std::move(state_.intervals);
    std::ranges::stable_sort(records.intervals, {}, &IntervalRecord::time);
    all_.code = std::move(state_.code);
    const schema::EventNames names;
    for (const schema::TypeCount &row : counts_.rows())
      all_.events[names.name(row.type)] += row.events;
    return std::move(all_);
  }

private:
  // A part belongs to every event that awaits it; each has a fragment of its own.
  void give_later_parts() {
    std::ranges::sort(later_parts_, {}, &LaterPart::written);
    profile::Sequence<Fragment> &fragments = all_.records.fragments;
    for (const filter::LaterKey &event : awaited_) {
      const auto part = filter::find_later_part(later_parts_, event, &LaterPart::written);
      if (part == later_parts_.end()) continue;
      const bool first = fragments[part->fragment].event_time == kForever;
      if (!first) fragments.push_back(Fragment(fragments[part->fragment]));
      fragments[first ? part->fragment : fragments.size() - 1].event_time = std::get<2>(event);
    }
  }

  void name_files() {
    file_names_.sort();
    for (std::size_t i = 0; i < files_.size(); ++i) {
      std::string_view name;
      for (const std::uint64_t number : files_[i])
        if (name.empty() && number != 0) name = file_names_.find(number, all_.records.subjects[i].time);
      all_.records.leaves.push_back(leaf_texts_.number(base::at_most(name, base::kLongestName)));
    }
  }

  void pair_edges() {
    std::ranges::sort(edges_, {}, &EdgeRecord::at);
    OpenEdges<const EdgeRecord *> open;
    bool all_have_room = true;
    std::size_t timed = 0;
    for (const EdgeRecord &record : edges_) {
      if (record.edge.begins) {
        all_have_room = open.begin(record.edge, 0, &record) && all_have_room;
        continue;
      }
      std::optional<std::int64_t> ticks = record.edge.took;
      if (!ticks) {
        const auto begin = open.end(record.edge, 0);
        if (!begin || record.subject == EdgeRecord::kNoSubject) continue;
        give_beginning(**begin, record);
        ticks = ticks_between((*begin)->at.time, record.at.time);
      }
      if (!durations_ || record.subject == EdgeRecord::kNoSubject) continue;
      const std::int64_t ns = duration_ns(*durations_, *ticks);
      if (ns < 0 || static_cast<std::uint64_t>(ns) > kMostWeight) continue;
      all_.records.weights[record.subject] = static_cast<std::uint64_t>(ns);
      ++timed;
    }
    if (durations_) all_.weightless = all_.records.subjects.size() - timed;
    if (!all_have_room)
      all_.pass.warnings.emplace_back(
          "more beginnings without an end than memory has room for: some ends have no beginning");
    edges_ = {};
    std::ranges::sort(all_.records.begun, {}, [](const profile::Begun &begun) {
      return std::tuple(begun.time, begun.thread, ~begun.subject);
    });
  }

  // What was done for a request is what the thread caused that asked for it. Who ends one of a disk is
  // whoever ran when it was done.
  void give_beginning(const EdgeRecord &begin, const EdgeRecord &end) {
    const bool of_disk = end.hook >> 8 == 0x01, of_file = end.hook >> 8 == 0x04;
    if ((!of_disk && !of_file) || begin.thread == kUnknownId) return;
    Subject &subject = all_.records.subjects[end.subject];
    if (of_disk || subject.thread == kUnknownId) {
      subject.thread = begin.thread;
      subject.ip = begin.process;
    }
    all_.records.begun.push_back({begin.at.time, begin.thread, end.subject, begin.hook});
  }

  void merge(CollectWork &work) {
    Records &records = all_.records;
    const auto subjects = static_cast<std::uint32_t>(records.subjects.size()),
               fragments = static_cast<std::uint32_t>(records.fragments.size());
    for (Mark &mark : work.marks)
      if (mark.kind == Mark::kSubject) mark.thread += subjects;
    for (Reference &reference : work.references)
      reference.fragment += fragments;
    for (Subject &subject : work.subjects)
      for (std::uint32_t *number : {&subject.kernel, &subject.user})
        if (*number != Subject::kNoFragment) *number += fragments;
    for (const BufferMarks &buffer : work.buffers)
      overlaps_.add(buffer.processor, buffer.times);
    clr_events_.insert(clr_events_.end(), work.clr_events.begin(), work.clr_events.end());
    for (const std::uint32_t number : work.clr_stacks)
      clr_stacks_.push_back(number + fragments);
    awaited_.insert(awaited_.end(), work.awaited.begin(), work.awaited.end());
    for (const LaterPart &part : work.later_parts)
      later_parts_.push_back({part.written, part.fragment + fragments});
    for (EdgeRecord &edge : work.edges)
      if (edge.subject != EdgeRecord::kNoSubject) edge.subject += subjects;
    edges_.insert(edges_.end(), work.edges.begin(), work.edges.end());
    records.subjects.append(work.subjects);
    records.weights.append(work.weights);
    std::vector<std::uint32_t> numbers;
    for (const std::string &text : work.leaf_texts.all())
      numbers.push_back(leaf_texts_.number(text));
    for (std::uint32_t &leaf : work.leaves)
      leaf = numbers[leaf];
    records.leaves.append(work.leaves);
    records.code_leaves.append(work.code_leaves);
    files_.append(work.files);
    for (const ObjectName &told : work.file_names)
      file_names_.add(told);
    records.marks.append(work.marks);
    records.fragments.append(work.fragments);
    records.readies.append(work.readies);
    for (SwitchRecord &record : work.switches)
      record.subject += subjects;
    records.switches.append(work.switches);
    for (const auto &[processor, to] : work.who_ran)
      records.who_ran.add(processor, to);
    references_.insert(references_.end(), work.references.begin(), work.references.end());
    for (const stacks::KeyDefinition &definition : work.definitions)
      definitions_.add(definition);
    state_.append(std::move(work.state));
    counts_.merge(work.counts);
    all_.unreadable += work.unreadable;
    all_.weightless += work.weightless;
  }

  Collected all_;
  std::optional<Clock> durations_;
  Collector collector_;
  std::vector<filter::EventKey> clr_events_;
  std::vector<std::uint32_t> clr_stacks_; // as fragments
  base::TextNumbers leaf_texts_;
  profile::Sequence<FileNumbers> files_;
  ObjectNames file_names_;
  std::vector<filter::LaterKey> awaited_;
  std::vector<LaterPart> later_parts_;
  std::vector<EdgeRecord> edges_;
  std::vector<Reference> references_;
  stacks::StackDefinitions definitions_;
  StateRecords state_;
  schema::TypeCounts counts_;
  Overlaps overlaps_;
};

} // namespace

Result<Collected> collect_profile(Traces traces, const CollectOptions &collect, const PassOptions &options) {
  Gathering gathering(collect);
  PassResult met;
  ETWRELOG_TRY(run_over(traces, met, [&](const Trace &trace, std::uint32_t first) {
    return gathering.add(trace, first, options);
  }));
  return std::move(gathering).finish(std::move(met));
}

} // namespace etwrelog::pipeline
