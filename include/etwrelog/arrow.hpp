// Events as tables in memory, for data frames and databases in the same process: Arrow's C data interface,
// without Arrow's library. Level 4: uses export.hpp.
//
//   ArrowArrayStream stream;                       // pyarrow, polars, DuckDB, ... import it by its address
//   Result<void> made = arrow_events(*trace, stream);
//   ArrowArray batch;
//   while (made && stream.get_next(&stream, &batch) == 0 && batch.release != nullptr) {
//     ...                                          // a structure of columns
//     batch.release(&batch);
//   }
//   stream.release(&stream);
//
// Rows come in order of time, and in the same batches whatever the number of threads: of some thousand rows,
// but for the last one. Columns are those of export_table (see TableFormat): integers 64 bits wide, `time` as
// nanoseconds in UTC, booleans, doubles, UTF-8; columns that repeat themselves (process, provider,
// provider_id, event, keyword, activities) as dictionaries with 32-bit places, each batch with its own. All
// may hold nulls. A name that another column has already, but for upper and lower case, gets a number:
// "Version#2".
//
// Lifetimes: the trace outlives its streams. A batch, and each of its columns that was moved out of it, owns
// its memory and needs neither stream nor trace. Releasing a stream early ends what is under way. Memory:
// that of the batches under way (RunOptions::memory bounds their events), however long the trace is.
//
// Threads: a stream is used by one thread at a time, as Arrow has it; different ones, also of one
// ArrowTables, at once. Progress and stop come from RunOptions; its `report` is not used.
//
// Errors: of these functions as everywhere. Of get_next an errno: EIO (reading, damage), ECANCELED, ENOMEM
// (memory, or more than 2 GiB of text in one column of a batch), EINVAL; get_last_error has the whole
// message, with file and offset. After an error the stream has ended.
#pragma once

#include "etwrelog/arrow_abi.h"
#include "etwrelog/export.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace etwrelog {

// All events that the options take as one table, `fields` as JSON text: what export_table writes as arrow.
// One pass before the first batch, and what joins cost. `out` is set on success only.
Result<void> arrow_events(const Trace &trace, ArrowArrayStream &out, const ExportOptions &options = {},
                          const RunOptions &run = {});

// One kind of event, with a column for each of its fields.
struct ArrowTable {
  std::string name; // "DiskIo_Read", as in a SQLite export; "undescribed": events without a schema
  const Schema *schema = nullptr; // null: those
  std::uint64_t events = 0;       // rows
};

class ArrowTables {
public:
  // Two passes: schemas and processes, and which kinds of events there are among those that the options take.
  static Result<ArrowTables> open(const Trace &trace, const ExportOptions &options = {},
                                  const RunOptions &run = {});
  ArrowTables(ArrowTables &&) noexcept;
  ArrowTables &operator=(ArrowTables &&) noexcept;
  ~ArrowTables();

  [[nodiscard]] std::span<const ArrowTable> tables() const;
  // A stream of tables()[table], which reads the trace when it is asked for its first batch; it may outlive
  // this object. `out` is set on success only.
  Result<void> stream(std::size_t table, ArrowArrayStream &out) const;

private:
  struct Impl;
  explicit ArrowTables(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

} // namespace etwrelog
