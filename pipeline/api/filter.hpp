// What stands behind the public Filter.
#pragma once

#include "api/internals.hpp"
#include "etwrelog/select.hpp"
#include "etwrelog/state.hpp"
#include "etwrelog/trace.hpp"
#include "filter/filter.hpp"
#include "source/trace.hpp"

namespace etwrelog {

namespace pipeline {

// Decides over the events of one buffer, in order.
class BufferKeeper {
public:
  BufferKeeper() = default; // keeps nothing
  BufferKeeper(const filter::Filter &filter, filter::Position position)
      : filter_(&filter), position_(position) {}
  [[nodiscard]] bool keeps(const EventView &event, std::int64_t raw_time) {
    return filter_ != nullptr && is_kept(filter_->decide(event, raw_time, position_));
  }

private:
  const filter::Filter *filter_ = nullptr;
  filter::Position position_;
};

} // namespace pipeline

struct Filter::Impl {
  bool everything = false;
  pipeline::Identity trace; // of which it is
  Lifetimes lifetimes;      // keeps alive what the filters refer to
  // By machine. None where nothing of it is selected.
  std::vector<std::optional<filter::Filter>> machines;
  std::vector<std::uint32_t> first_buffer; // by source
  std::vector<std::uint32_t> processes;

  [[nodiscard]] pipeline::BufferKeeper keeper(std::uint32_t source, std::uint32_t machine,
                                              const pipeline::DecodedBuffer &buffer) const {
    const std::optional<filter::Filter> &of = machines[machine];
    if (!of) return {};
    return {*of, of->begin_buffer(first_buffer[source] + buffer.index, buffer.header.processor())};
  }
};

struct FilterParts {
  static const std::shared_ptr<const Filter::Impl> &of(const Filter &filter) { return filter.impl_; }
  static bool is_of(const Filter &filter, const Trace &trace);
  static Filter make(std::shared_ptr<const Filter::Impl> impl) {
    Filter out;
    out.impl_ = std::move(impl);
    return out;
  }
};

} // namespace etwrelog
