// A condition made for the kinds of events of one trace. For each kind it is a short list of tests, of which
// each says where to go on; what a kind lacks is decided here and costs nothing later.
#pragma once

#include "etwrelog/schema.hpp"
#include "etwrelog/trace.hpp"
#include "where/syntax.hpp"

namespace etwrelog::where {

// What a condition has to know beside the event itself. Any thread.
class Surroundings {
public:
  virtual ~Surroundings() = default;
  // Empty: not known.
  [[nodiscard]] virtual std::string_view process_name(const Event &event) const = 0;
  // What provider and event are called; of a kind without an event if that is null.
  virtual void names(const Event *event, const Schema *schema, std::string &provider,
                     std::string &name) const = 0;
};

// Whether what is before a FILETIME is before the time stamp that from_filetime() gives for it, too, and what
// is behind it is not. Where a conversion saturates, or a clock says nothing, that is not so.
[[nodiscard]] bool is_sound_bound(const Clock &clock, std::int64_t filetime);

// Every event that may have the schema, and maybe others.
void add_kind(EventSet &set, const Schema &schema);

class Condition {
public:
  // `catalog`: whole; copied. `surroundings` outlives this. A name that no kind of event has is no_match.
  static Result<Condition> make(std::string_view text, const SchemaCatalog &catalog, const Clock &clock,
                                const Surroundings &surroundings);
  Condition(Condition &&) noexcept;
  Condition &operator=(Condition &&) noexcept;
  ~Condition();

  // Memory of a caller: one for each thread.
  struct Scratch {
    std::string text, other;
  };
  [[nodiscard]] bool holds(const Event &event, Scratch &scratch) const;

  // Events of other kinds never fulfil it. Empty: any may, unless nothing() does.
  [[nodiscard]] const EventSet &kinds() const;
  [[nodiscard]] bool nothing() const;
  // FILETIMEs outside of which it never holds, as far as its text says so plainly.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> times() const;

private:
  struct Impl;
  explicit Condition(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace etwrelog::where
