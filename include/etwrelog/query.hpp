// SQL over a trace itself. Experimental: may change in any release. Level 4: uses export.hpp.
#pragma once

#include "etwrelog/export.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace etwrelog {

// Tables: one for each kind of event that the trace holds (as in a SQLite export: DiskIo_Read, ...), `events`
// over all of them with their fields as JSON, `processes`, `threads`, `images`, `samples`; docs/events.md has
// their columns and the functions. Each SELECT walks the trace once for each table in it, in order of time;
// conditions on `time`, `timestamp` (ranges), `provider`, `provider_id`, `event`, `process_id`, `cpu`
// (equality) and the kind itself decide what is read. One thread; the trace outlives it.
class TraceQuery {
public:
  // Some passes: schemas, processes, images, and which kinds there are. With options.selection's time
  // (nothing else of the selection is looked at) the trace is what lies in it, and of an archive little else
  // is read. With options.numbers what is shown in hexadecimal is a number in SQL, one of 2^63 and more the
  // text of its digits. With options.joins tables of events have the columns that an export would have, at
  // the cost of its passes and memory.
  // `sql`: what run() will be asked, where that is known. If conditions on `time` and `timestamp` with
  // numbers hold for every table of events in it, it is opened as if the selection had that time. Asked
  // something else, or for a kind of event that this time has none of, it is opened again, for all.
  static Result<TraceQuery> open(const Trace &trace, const ExportOptions &options = {},
                                 const RunOptions &run = {}, const std::string &sql = {});
  TraceQuery(TraceQuery &&) noexcept;
  TraceQuery &operator=(TraceQuery &&) noexcept;
  ~TraceQuery();

  // A value as text: of a real as many digits as make it that number again; a BLOB as its bytes. Valid during
  // the call.
  struct Value {
    enum class Type : std::uint8_t { null, integer, real, text };
    Type type = Type::null;
    std::string_view text{};
  };
  using Row = std::span<const Value>;
  struct Visitor {
    std::function<void(std::span<const std::string> names)> columns{}; // SQL may give several the same name
    std::function<void(Row row)> row{};
  };
  // One or several statements. Errors of SQL are `usage`; statements that would write a file are refused.
  Result<void> run(const std::string &sql, const Visitor &visitor);

  [[nodiscard]] std::vector<std::string> tables() const; // by name
  // Names that some of them answer to, too: what statistics call the kind, "PerfInfo_Sample".
  [[nodiscard]] std::vector<std::string> other_tables() const;
  // That a text which is typed line by line ends with the semicolon of a statement: not one inside a text, a
  // name or a comment.
  [[nodiscard]] static bool is_complete(const std::string &sql);
  // Schemas that contradict themselves, and what there was no memory to know, as in an ExportReport: of what
  // was read to open it, which run() may have done again for more of the trace.
  [[nodiscard]] std::vector<std::string> problems() const;

  struct Impl; // of the implementation alone

private:
  explicit TraceQuery(std::unique_ptr<Impl> impl);
  [[nodiscard]] bool prepares(const std::string &sql) const;
  std::unique_ptr<Impl> impl_;
};

} // namespace etwrelog
