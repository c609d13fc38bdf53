// What SQL over a trace can ask beside its events: tables of processes, threads and images, and functions.
#pragma once

#include "export/known.hpp"

#include <sqlite3.h>

namespace etwrelog::pipeline {

// What the functions look up; outlives the database.
struct QueryState {
  const ExportSurvey &survey;
  const Knowledge &known;
  Clock clock;
  bool numbers = false; // as ExportOptions have it
};

//   processes, threads, images                  tables
//   process_of_thread(thread, timestamp)        process id
//   process_name(process, timestamp)            image name
//   module(process, timestamp, address)         "ntoskrnl.exe+0x1f0"; address: a number or "0x..."
//                                               (these three: of machine 0, or what a last argument says)
//   utc(time)                                   "2020-09-14T22:49:57.2118091Z"
//   at(moment)                                  a time: of what parse_moment() takes
//   text REGEXP pattern                         RE2, anywhere in the text
[[nodiscard]] Result<void> add_state(sqlite3 *database, const QueryState &state);

// A view `samples` over these tables of profile samples; without rows if there are none.
[[nodiscard]] Result<void> add_samples(sqlite3 *database, std::span<const std::string> tables);

[[nodiscard]] Error sql_error(sqlite3 *database);
[[nodiscard]] Result<void> execute(sqlite3 *database, const std::string &sql);

} // namespace etwrelog::pipeline
