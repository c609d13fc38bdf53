#include "run/ordered.hpp"

#include <exception>
#include <new>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

namespace etwrelog::pipeline {
namespace {

// An exception that leaves a node cancels the graph and says nothing of where it came from.
template <class Step> std::optional<Error> guarded(Step &&step) {
  Error error;
  error.kind = ErrorKind::io;
  try {
    return step();
  } catch (const std::bad_alloc &) {
    error.what = "out of memory";
    error.advice = Advice::fewer_threads;
  } catch (const std::exception &thrown) {
    error.what = thrown.what();
  }
  return error;
}

} // namespace

std::optional<Error> run_ordered(const OrderedSteps &steps, unsigned threads, std::size_t in_flight,
                                 const std::atomic<bool> *cancel) {
  namespace flow = oneapi::tbb::flow;
  using Message = std::shared_ptr<OrderedJob>;
  std::optional<Error> first;
  std::atomic<bool> failed{false};
  std::size_t issued = 0;
  std::optional<Error> source_error;

  auto run = [&] {
    flow::graph graph;
    flow::input_node<Message> source(graph, [&](oneapi::tbb::flow_control &control) -> Message {
      Message job;
      if (!failed.load(std::memory_order_acquire)) {
        source_error = guarded([&]() -> std::optional<Error> {
          if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
            Error error;
            error.kind = ErrorKind::cancelled;
            error.what = "stopped on request";
            return error;
          }
          job = steps.next();
          return std::nullopt;
        });
      }
      if (source_error) {
        job.reset();
        failed.store(true, std::memory_order_release);
      }
      if (job)
        job->ordinal = issued++;
      else
        control.stop();
      return job;
    });
    flow::limiter_node<Message> limiter(graph, in_flight);
    flow::function_node<Message, Message> work(graph, flow::unlimited, [&](Message job) {
      if (!job->error && !failed.load(std::memory_order_acquire))
        job->error = guarded([&] { return steps.work(*job); });
      return job;
    });
    flow::sequencer_node<Message> sequence(graph, [](const Message &job) { return job->ordinal; });
    flow::function_node<Message, flow::continue_msg> sink(graph, flow::serial, [&](const Message &job) {
      if (first) return;
      if (!job->error) job->error = guarded([&] { return steps.sink(*job); });
      if (!job->error) return;
      first = std::move(job->error);
      failed.store(true, std::memory_order_release);
    });
    flow::make_edge(source, limiter);
    flow::make_edge(limiter, work);
    flow::make_edge(work, sequence);
    flow::make_edge(sequence, sink);
    flow::make_edge(sink, limiter.decrementer());
    source.activate();
    graph.wait_for_all();
  };
  oneapi::tbb::task_arena arena(threads == 0 ? oneapi::tbb::task_arena::automatic
                                             : static_cast<int>(threads));
  arena.execute(run);
  return first ? first : source_error;
}

} // namespace etwrelog::pipeline
