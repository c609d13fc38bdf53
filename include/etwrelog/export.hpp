// What events say, as text for other programs. Level 4: uses trace.hpp and schema.hpp.
//
// Calls keep nothing of what they are given and may run at once on any threads, of one trace too; the same
// bytes for any number of threads. Errors: those of reading a trace (trace.hpp), of a selection
// (Filter::prepare), of a condition (`usage`, `no_match`), of the output. Every call reads the trace once for
// its schemas and once for its events, and once or twice more for joins. Memory: within RunOptions::memory,
// and the schemas.
#pragma once

#include "etwrelog/relog.hpp"
#include "etwrelog/schema.hpp"
#include "etwrelog/trace.hpp"

#include <string>
#include <vector>

namespace etwrelog {

class SymbolResolver;

// How an event is laid out.
enum class ExportProfile : std::uint8_t {
  etwrelog, // one object an event: time, timestamp, cpu, process_id, ..., fields
  otel,     // OpenTelemetry's log data model: Timestamp, SeverityNumber, EventName, Attributes
  timeline, // plaso's JSON lines, for forensic timelines
};

// What an event gets beside its own fields, out of other events of the trace. Each costs passes and memory.
struct ExportJoins {
  bool process = false; // command_line of the process in the column `process`
  bool owner =
      false; // owner_process_id, owner_thread_id, owner_process: also of events whose header has no ids
  bool file = false;     // file: the path of a FileObject or FileKey
  bool registry = false; // registry_key: the whole name of the key that an event of the registry is about
  bool module = false;   // modules: "ntoskrnl.exe+0x1f0" for each field that is an address in an image
  // stack: a list, innermost frame first: "ntoskrnl.exe+0x1f0"; of code that a runtime names
  // "Contoso.dll!Contoso.Program.Main+0x1f0", and so are native functions with ExportOptions::symbols; else
  // the address.
  bool stack = false;
  bool duration =
      false; // duration_ns: of events that end what another began (start and stop, requests, processes)
  [[nodiscard]] bool any() const {
    return process || owner || file || registry || module || stack || duration;
  }
};

struct ExportOptions {
  Selection selection{};
  // A condition on fields and on the columns of all events, such as
  //   FileName ~ "\\.dll$" and ImageSize > 1000000
  //   process = "sqlservr.exe" and not (Status = 0 or event in ("TcpIp/Recv", "TcpIp/Send"))
  // Operators: = != < <= > >= ~ !~ (RE2, anywhere in the text), in, not in; and, or, not, parentheses. Names
  // are those of fields (`in these signs` if they hold other than letters and digits; a.b for a member of a
  // structure) and of the columns of all events; fields.NAME where a field is called like a column. Of
  // arrays, any element. A comparison with what an event does not have is false.
  std::string where{};
  SchemaCatalog schemas{}; // what is known beforehand: added manifests; the trace's own come on top
  ExportJoins joins{};
  // For joins.stack: names native functions where it finds their PDBs, by the one that holds the address,
  // also where the compiler put calls in place. Asked by several threads; outlives what is given these
  // options.
  SymbolResolver *symbols = nullptr;
  ExportProfile profile = ExportProfile::etwrelog;
  bool maps = false;     // names of values and bits in the place of numbers
  bool messages = false; // texts of events that have one
  // Addresses and what is shown in hexadecimal are numbers: 31 and not "0x1f". Of up to 64 bits, of which not
  // every reader of JSON takes more than 53. Where DuckDB or Arrow in memory has a column for each field,
  // arrays of numbers are lists then. `keyword`, messages and what joins add stay as they are.
  bool numbers = false;
};

// How the events of one kind were decoded.
struct ExportKind {
  std::string name; // "Provider/Task/Opcode"
  Guid provider;
  std::uint32_t id = 0;           // 0 for kernel and classic events
  std::uint16_t version = 0;      // the latest that its events have
  std::uint8_t opcode = 0;        // the first of `opcodes`
  const Schema *schema = nullptr; // null: nobody describes it; lives as long as ExportReport::schemas
  std::optional<Origin> origin;
  std::uint64_t events = 0, payload_bytes = 0;
  std::uint64_t uncovered_bytes = 0; // that no field covers; they are in the output as hex
  std::uint64_t truncated = 0;       // events whose payload ends inside a field
  // Of verify_decoding(): events whose fields gave back their bytes, and these bytes; how many events of the
  // others could not, by reason.
  std::uint64_t verified = 0, verified_bytes = 0;
  std::vector<std::pair<std::string, std::uint64_t>> not_verified{};
  std::vector<std::uint8_t> opcodes{}; // that its events have: of one layout they may have several
};

struct ExportReport {
  std::uint64_t events = 0, bytes = 0;
  std::vector<ExportKind> kinds;     // most events first
  SchemaCatalog schemas;             // the trace's own and what was known before
  std::vector<std::string> problems; // schemas that contradict themselves
};

// Writes JSON lines in order of time; the same bytes for any number of threads.
Result<ExportReport> export_json(const Trace &trace, const Output &output, const ExportOptions &options = {},
                                 const RunOptions &run = {});

// Tables. Columns of every event: time (nanoseconds since 1970, UTC), timestamp (raw), cpu, process_id,
// thread_id, process, provider, provider_id, event, id, version, opcode, level, keyword, activity,
// related_activity. SQLite and DuckDB get a table for each kind of event with a column for each field, a view
// `events` over all of them and indices on time and process; the others are one table, with `fields` as JSON
// text. Bytes that no schema covers are in `raw` as hex; `truncated` is true where an event ends inside a
// field, else null.
enum class TableFormat : std::uint8_t {
  csv,          // RFC 4180
  tsv,          // the same with tabs
  arrow,        // Arrow IPC file (Feather 2); names are dictionaries
  arrow_stream, // Arrow IPC stream
  sqlite,
  parquet, // these two by DuckDB's library, which is looked for at run time: $ETWRELOG_DUCKDB or libduckdb.so
  duckdb,
};
Result<ExportReport> export_table(const Trace &trace, const Output &output, TableFormat format,
                                  const ExportOptions &options = {}, const RunOptions &run = {});

// The same as a new folder with a table for each kind of event, a file each, as SQLite's tables are called:
// CSV, TSV, Arrow or Parquet. In the latter two addresses and hexadecimal numbers are numbers, whatever the
// options say, and arrays of numbers are lists. The folder is there whole or not at all; one that exists is
// never touched.
Result<ExportReport> export_tables(const Trace &trace, const std::string &folder, TableFormat format,
                                   const ExportOptions &options = {}, const RunOptions &run = {});

// The report of an export that writes nothing: which kinds there are and how they are decoded.
Result<ExportReport> describe_kinds(const Trace &trace, const ExportOptions &options = {},
                                    const RunOptions &run = {});

// The same, and each decoded event is made into bytes again from what its fields are shown as: an event that
// does not come back as it was is the error (`corrupt`, with file and offset; of compressed buffers and
// archives that of the buffer). What no text tells whole cannot: ExportKind::not_verified says what and why.
Result<ExportReport> verify_decoding(const Trace &trace, const ExportOptions &options = {},
                                     const RunOptions &run = {});

// The schemas that a trace carries, on top of `known`: one pass.
Result<SchemaCatalog> collect_schemas(const Trace &trace, const SchemaCatalog &known = {},
                                      const RunOptions &run = {});

// Takes up every .man, .xml and .tmf of a folder (or one such file), in order of their names. Returns how
// many.
Result<std::size_t> add_schema_files(SchemaCatalog &catalog, const std::string &path);

// Schemas of events that a trace does not describe itself, put into it as the records that Windows' merge
// writes, so that other programs decode these events without the files that the schemas came from.
struct EmbedReport {
  std::size_t kinds = 0;
  std::uint64_t events = 0;             // of these kinds
  std::vector<std::string> left_out;    // kinds that such records cannot describe
  std::vector<RelogTypeCount> records;  // events that were added, by type: events_out and bytes_out
  std::uint64_t buffers = 0, bytes = 0; // that were added; of the whole output
};
// `trace`: one .etl as relog() writes them, from a file or from memory; its buffers stay as they are, the
// records stand behind them. `known`: manifests that were added to it, and the built-in table of .NET's
// events. What the trace's own EventSource manifests say is written as such records, too.
Result<EmbedReport> embed_schemas(const Trace &trace, const Output &output, const SchemaCatalog &known = {},
                                  const RunOptions &run = {});

} // namespace etwrelog
