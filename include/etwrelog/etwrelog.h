/* The C interface of libetwrelog.so, for C99 and for every language that calls C.
 *
 *   etwr_trace *trace = NULL;
 *   const char *paths[] = {"boot.etl"};
 *   etwr_error *error = etwr_trace_open(paths, 1, NULL, NULL, &trace);
 *   etwr_cursor *cursor = NULL;
 *   if (!error) error = etwr_events(trace, ETWR_ORDER_TIME, NULL, NULL, &cursor);
 *   const etwr_event *event = NULL;
 *   while (!error && etwr_next(cursor, &event, &error)) count(event);
 *   if (error) puts(etwr_error_message(error));
 *   etwr_error_free(error), etwr_cursor_free(cursor), etwr_trace_free(trace);
 *
 * Rules:
 *  - A call that can fail returns an etwr_error, NULL on success, which the caller frees. Its out parameters
 * are set on success only.
 *  - Handles are opaque; *_free takes NULL, and calls that return an etwr_error answer it with
 * ETWR_ERROR_USAGE; others must not be given it. Nothing is ever thrown into the caller.
 *  - Every structure begins with struct_size. In structures that the caller fills, set all of it to zero and
 * struct_size to sizeof: later versions add fields at the end, and zero means "as before". A struct_size that
 * was left at zero, and fields that this version of the library lacks, are ETWR_ERROR_USAGE. Reports are set
 * up alike, and filled as far as struct_size reaches: not at all where it is zero. In structures that the
 * library hands out as const pointers, struct_size says what this library knows; fields behind it must not be
 * read. Numbers of constants do not change.
 *  - Strings are UTF-8 and end with a zero. Those in structures live as long as the handle or event that they
 * came from.
 *  - Threads: an etwr_trace, an etwr_processes, an etwr_schemas and an etwr_tables may be used by any number
 * of threads at once. A cursor and an etwr_decoder are used by one thread at a time. Calls make their own
 * threads and end them. Callbacks come on any thread, one at a time of a call and the streams that it
 * made; they may not call back into the call or the streams that they came from.
 *  - A trace must outlive its cursors. All else may be freed in any order. */
#ifndef ETWRELOG_H
#define ETWRELOG_H

#include "arrow_abi.h"

#include <stddef.h>
#include <stdint.h>

#ifndef ETWR_API
#if defined(__GNUC__)
#define ETWR_API __attribute__((visibility("default")))
#else
#define ETWR_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0". The library is compatible with all programs built against the same first number of
 * etwr_abi_version. */
ETWR_API const char *etwr_version(void);
ETWR_API uint32_t etwr_abi_version(void);
#define ETWR_ABI_VERSION 1u

/* --- Errors --- */

typedef struct etwr_error etwr_error;

enum {
  ETWR_ERROR_IO = 0,          /* the operating system refused: missing file, full disk, no permission */
  ETWR_ERROR_CORRUPT = 1,     /* the input contradicts the format */
  ETWR_ERROR_UNSUPPORTED = 2, /* the input is sound but of a kind that this version does not handle */
  ETWR_ERROR_USAGE = 3,       /* the caller's options contradict each other */
  ETWR_ERROR_NO_MATCH = 4,    /* the options are sound but fit nothing in the trace */
  ETWR_ERROR_CANCELLED = 5,   /* stopped on request */
  ETWR_ERROR_LIMIT = 6,       /* more memory than allowed, or a limit of the format */
  ETWR_ERROR_CALLBACK = 7,    /* a callback failed */
  ETWR_ERROR_MEMORY = 100,    /* the system has none left */
  ETWR_ERROR_INTERNAL = 101   /* a mistake of this library; please report it */
};

ETWR_API int etwr_error_kind(const etwr_error *error);
/* All of it in one line: file, offset, what, expected, found. */
ETWR_API const char *etwr_error_message(const etwr_error *error);
/* The parts; empty where there is none. */
ETWR_API const char *etwr_error_file(const etwr_error *error);
ETWR_API const char *etwr_error_what(const etwr_error *error);
ETWR_API const char *etwr_error_expected(const etwr_error *error);
ETWR_API const char *etwr_error_found(const etwr_error *error);
/* Whether there is an offset in the file; then it is in *offset. */
ETWR_API int etwr_error_offset(const etwr_error *error, uint64_t *offset);
ETWR_API void etwr_error_free(etwr_error *error);

/* Strings that the library made for the caller. */
ETWR_API void etwr_string_free(char *text);

/* --- How a call runs. NULL: all threads, 1 GiB, nobody watches. --- */

typedef struct etwr_run {
  size_t struct_size;
  uint32_t threads; /* at most; 0: the machine's; 1: none is made, but for one that asks `stop` */
  uint64_t memory;  /* bytes for buffers, caches and tables of the call; 0: 1 GiB */
  /* Not 0: stop. Asked before the call begins and some ten times a second until it ends, also while it waits
   * for a pipe; of cursors and streams while they read. Then the call fails with ETWR_ERROR_CANCELLED and
   * leaves no output. Not asked again once it has said so. */
  int (*stop)(void *context);
  /* Bytes of input done and in all (0: not known). At most ten times a second. None from etwr_trace_open. */
  void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
  void *context;
  /* What the user should know of a call that succeeds, at its end: a warning, or a stretch of damage that was
   * stepped over, behind the name of its source. Not for etwr_trace_open and etwr_events. */
  void (*warning)(void *context, const char *text);
} etwr_run;

/* --- Traces --- */

typedef struct etwr_trace etwr_trace;

typedef struct etwr_open_options {
  size_t struct_size;
  int salvage;    /* step over damage instead of failing */
  int file_order; /* leave a wrapped circular log as it lies */
} etwr_open_options;

/* One trace, or several that are read as one. Paths of .etl files, compressed or not, archives (.etlz), and
 * traces in .zip, .xz, .zst, .gz and .bz2 files. Of a .zip, as PerfView's .etl.zip and Visual Studio's
 * .diagsession are, all that are traces: each is a source. Nobody looks whether a path is given twice: its
 * events then come twice. (Calls that make one trace of them, such as etwr_relog, refuse that.) */
ETWR_API etwr_error *etwr_trace_open(const char *const *paths, size_t count, const etwr_open_options *options,
                                     const etwr_run *run, etwr_trace **trace);
ETWR_API void etwr_trace_free(etwr_trace *trace);

/* What the header of one of the files says. Times are FILETIMEs (100 ns since 1601, UTC), 0 if not known. */
typedef struct etwr_source {
  size_t struct_size;
  const char *name;         /* as it was opened */
  const char *session_name; /* of the logger */
  const char *file_name;    /* as the logger wrote it */
  int64_t start_time, end_time, boot_time;
  int64_t first_stamp; /* raw time of start_time */
  int64_t perf_freq;   /* ticks per second of clock type 1 */
  uint32_t clock_type; /* 1 QPC, 2 system time, 3 CPU cycles */
  uint32_t cpu_mhz;
  uint32_t buffer_size, buffers_written, buffers_lost, events_lost;
  uint32_t log_file_mode, processors, pointer_size, build;
  uint8_t os_major, os_minor;
  int32_t timezone_bias; /* minutes that UTC is ahead of local time, but for daylight saving */
  uint32_t machine;      /* files of the same boot of the same machine have the same number */
  uint64_t stored_bytes, decoded_bytes, buffers;
  uint64_t missing_buffers; /* that were written as the header says, and are not there: the file was cut */
  /* As timezone_bias, but at start_time with daylight saving; the same as that where the header does not
   * tell. */
  int32_t timezone_bias_at_start;
} etwr_source;

ETWR_API size_t etwr_source_count(const etwr_trace *trace);
/* NULL if there is no such file. */
ETWR_API const etwr_source *etwr_source_at(const etwr_trace *trace, size_t index);

/* Of a time as events have it. */
ETWR_API double etwr_seconds(const etwr_trace *trace, int64_t time); /* since the trace began */
ETWR_API int64_t etwr_filetime(const etwr_trace *trace, int64_t time);

/* --- Selection --- */

/* Which events to keep. All that is given must hold; a list means any of its entries. */
typedef struct etwr_selection {
  size_t struct_size;
  /* Ids, or image names with * and ?, without regard to case; "game" is game.exe, too. */
  const char *const *processes;
  size_t process_count;
  int children;               /* and their descendants */
  int keep_system;            /* with processes: also events that belong to no process */
  const char *command_line;   /* regular expression (RE2) that a process's command line contains */
  const char *const *exclude; /* as `processes`; wins over them */
  size_t exclude_count;
  const char *from, *to; /* "12.5s" since the beginning, or UTC "2020-07-29 08:27:00.5"; NULL: no bound */
  const char *const *providers; /* "GUID[:keywords[:level]]", names of known providers, "kernel" */
  size_t provider_count;
  const uint32_t *events; /* event ids, hook ids of kernel events, opcodes of classic events */
  size_t event_count;
  const uint16_t *processors;
  size_t processor_count;
  const uint8_t *channels; /* these four by what the header says: events without are left out */
  size_t channel_count;
  const uint16_t *tasks;
  size_t task_count;
  const uint8_t *opcodes;
  size_t opcode_count;
  const uint8_t *activities; /* GUIDs of 16 bytes each */
  size_t activity_count;
  /* With `events`, what is in either: kinds by name, from any slash of it on, with * and ?, without regard to
     case: "Microsoft-Windows-DotNETRuntime/GC/AllocationTick", "GC/AllocationTick", "CSwitch". */
  const char *const *event_names;
  size_t event_name_count;
  const struct etwr_schemas *schemas; /* that have the names; NULL: the trace is read once more for its own */
} etwr_selection;

/* --- Events --- */

enum {
  ETWR_ORDER_FILE = 0, /* as stored, buffer after buffer; within a processor in order of time */
  ETWR_ORDER_TIME = 1  /* in order of time over all processors and files */
};

enum {                          /* etwr_event.kind */
       ETWR_EVENT_MANIFEST = 0, /* EVENT_HEADER: manifest, TraceLogging, EventSource, .NET */
       ETWR_EVENT_KERNEL = 1,   /* has a hook: `id`; `provider` is the class GUID of its group */
       ETWR_EVENT_CLASSIC = 2,  /* `provider` is the class GUID */
       ETWR_EVENT_WPP = 3,      /* `provider` is the message GUID, `id` the message number */
       ETWR_EVENT_OTHER = 4     /* a header type that this version only carries along */
};

#define ETWR_UNKNOWN_ID 0xFFFFFFFFu /* of a process or thread */

typedef struct etwr_event {
  size_t struct_size;
  int64_t time;         /* ticks of the clock of the trace, as etwr_seconds() takes them */
  uint8_t provider[16]; /* a GUID as Windows stores it */
  uint8_t activity[16];
  uint64_t keyword;
  uint32_t process_id, thread_id; /* as the header says; ETWR_UNKNOWN_ID if it says nothing */
  uint16_t id, version, task, processor;
  uint8_t opcode, level, channel, pointer_size;
  uint8_t kind, header_type;
  uint32_t source, buffer,
      offset; /* where it is stored: file, buffer in reading order, offset in its decoded events */
  uint32_t machine;
  const uint8_t *bytes; /* the whole event as stored */
  size_t size;
  const uint8_t *payload; /* its own data, behind headers and items */
  size_t payload_size;
} etwr_event;

typedef struct etwr_cursor etwr_cursor;

/* Which events; all that is given must hold. NULL: every event. */
typedef struct etwr_query {
  size_t struct_size;
  const uint8_t *providers; /* GUIDs of 16 bytes each, class GUIDs of kernel events too */
  size_t provider_count;
  const uint16_t *hooks; /* kernel events; with `providers`: either */
  size_t hook_count;
  const char *from, *to; /* as in etwr_selection */
  int with_state;        /* with a time: also earlier and later events that say what is true inside */
  /* What etwr_relog would keep: events of processes with the stacks, images, names and schemas that give them
   * their meaning. Takes one or two passes over the trace before the first event. */
  const etwr_selection *selection;
} etwr_query;

ETWR_API etwr_error *etwr_events(const etwr_trace *trace, int order, const etwr_query *query,
                                 const etwr_run *run, etwr_cursor **cursor);
/* 1: *event is the next one, valid until the next call with this cursor. 0: the end, or a failure, which is
 * then in *error (NULL at the end). `error` may be NULL: then etwr_cursor_status tells. */
ETWR_API int etwr_next(etwr_cursor *cursor, const etwr_event **event, etwr_error **error);
ETWR_API etwr_error *etwr_cursor_status(const etwr_cursor *cursor);
ETWR_API void etwr_cursor_free(etwr_cursor *cursor); /* at any time; stops what is under way */

/* Extended data items of an event: type (1 related activity, 5 and 6 stacks, 0x0B TraceLogging metadata, ...)
 * and data. Starts at *at = 0, which it moves on; 0 behind the last item. */
ETWR_API int etwr_event_item(const etwr_event *event, size_t *at, uint16_t *type, const uint8_t **data,
                             size_t *size);

/* --- Processes --- */

typedef struct etwr_processes etwr_processes;

typedef struct etwr_process { /* one life of a process id */
  size_t struct_size;
  uint32_t process_id, parent_id, session_id;
  uint32_t machine;         /* as in etwr_source */
  int has_start, has_end;   /* 0: it ran before the trace began, or when it ended */
  int64_t start, end;       /* as the times of events, where known */
  int32_t exit_status;      /* where the end is known */
  const char *image_name;   /* "game.exe" */
  const char *command_line; /* empty if the trace does not say */
} etwr_process;

/* All that the trace tells of, by machine, process id and start. Takes one pass. */
ETWR_API etwr_error *etwr_processes_collect(const etwr_trace *trace, const etwr_run *run,
                                            etwr_processes **processes);
ETWR_API size_t etwr_process_count(const etwr_processes *processes);
/* NULL if there is none. */
ETWR_API const etwr_process *etwr_process_at(const etwr_processes *processes, size_t index);
ETWR_API void etwr_processes_free(etwr_processes *processes);

/* --- Names and fields --- */

typedef struct etwr_schemas etwr_schemas;

/* What is built in, and what the trace says of itself (TraceLogging, EventSource manifests, EventInfo of a
 * merge), which takes one pass. trace NULL: only what is built in. */
ETWR_API etwr_error *etwr_schemas_collect(const etwr_trace *trace, const etwr_run *run,
                                          etwr_schemas **schemas);
/* Takes up what is in a manifest (.man, .xml) or a file of trace message formats (.tmf), or in all such files
 * of a folder. Not while another thread uses the schemas; decoders that exist keep what they had. */
ETWR_API etwr_error *etwr_schemas_add(etwr_schemas *schemas, const char *path);
ETWR_API void etwr_schemas_free(etwr_schemas *schemas);

/* "Windows Kernel/PerfInfo/SampleProf"; GUID and numbers where nothing is known. Writes at most `size` bytes,
 * the zero included, and returns what it would take without it, as snprintf does. */
ETWR_API size_t etwr_event_name(const etwr_schemas *schemas, const etwr_event *event, char *text,
                                size_t size);

/* Reads what events say, one after the other. */
typedef struct etwr_decoder etwr_decoder;
ETWR_API etwr_error *etwr_decoder_new(const etwr_schemas *schemas, etwr_decoder **decoder);
ETWR_API void etwr_decoder_free(etwr_decoder *decoder);

enum {                                /* etwr_decoded.origin: who describes the event */
       ETWR_ORIGIN_BUILTIN = 0,       /* the library */
       ETWR_ORIGIN_EVENT_INFO = 1,    /* the trace: records of a merge, */
       ETWR_ORIGIN_MANIFEST = 2,      /* an EventSource's manifest, */
       ETWR_ORIGIN_TRACE_LOGGING = 3, /* the event itself */
       ETWR_ORIGIN_ADDED = 4          /* etwr_schemas_add */
};

typedef struct etwr_decoded {
  size_t struct_size;
  const char *provider, *name;         /* name: "DiskIo/Read", of task, opcode or symbol */
  const char *task, *opcode, *message; /* empty where there is none */
  int origin;
  size_t field_count; /* of this event: what a short one lacks is absent */
  size_t covered;     /* bytes of the payload that fields cover */
  int truncated;      /* the payload ends inside a field */
} etwr_decoded;

/* 1: *decoded is what the event says. 0: nobody describes it, or a failure, which is then in *error; `error`
 * may be NULL. What is given out, also by the two calls below, lives until the next etwr_decode with this
 * decoder, and not longer than the event. */
ETWR_API int etwr_decode(etwr_decoder *decoder, const etwr_event *event, const etwr_decoded **decoded,
                         etwr_error **error);

enum {                         /* etwr_field.value */
       ETWR_VALUE_TEXT = 0,    /* only as text */
       ETWR_VALUE_INTEGER = 1, /* `integer`; of signed types sign-extended */
       ETWR_VALUE_REAL = 2     /* `real` */
};

typedef struct etwr_field {
  size_t struct_size;
  const char *name;
  const char *text; /* any value; arrays and structures as JSON */
  int value;
  int is_signed;
  uint64_t integer;
  double real;
  uint32_t count;      /* elements of an array; 1 */
  const uint8_t *data; /* in the event */
  size_t size;
} etwr_field;

/* A top-level field of the event that was decoded last, in order; NULL behind the last one. */
ETWR_API const etwr_field *etwr_field_at(etwr_decoder *decoder, size_t index);
/* All its fields as one JSON object, as `etwrelog export` writes them; "{}" if nobody describes it, NULL when
 * memory is out. */
ETWR_API const char *etwr_decoded_json(etwr_decoder *decoder);

/* --- Tables: Arrow's C data interface (arrow_abi.h) --- */

/* Events as columns, for data frames: streams that pyarrow, polars, DuckDB and others import by their
 * address. Rows come in order of time, in batches of some thousand that own their memory. A stream is used by
 * one thread at a time and released by its own `release`, at any time; it keeps what it needs, also when
 * trace and tables are freed. Its errors are numbers of errno.h (EIO, ECANCELED, ENOMEM, EINVAL) with the
 * whole message in get_last_error. Columns of every event: time (nanoseconds since 1970, UTC), timestamp
 * (raw), cpu, process_id, thread_id, process, provider, provider_id, event, id, version, opcode, level,
 * keyword, activity, related_activity; last, `raw`: what no field covers, as hex, and `truncated`: true where
 * the event ends inside a field, else null. Texts that repeat themselves are dictionaries. */

enum { /* etwr_table_options.joins: columns out of other events; each costs passes and memory */
       ETWR_JOIN_PROCESS = 1,   /* command_line of the process in the column `process` */
       ETWR_JOIN_OWNER = 2,     /* owner_process_id, owner_thread_id, owner_process */
       ETWR_JOIN_FILE = 4,      /* file: path of a FileObject or FileKey */
       ETWR_JOIN_MODULE = 8,    /* modules: of fields that are addresses, as JSON */
       ETWR_JOIN_STACK = 16,    /* stack: a list in JSON, innermost frame first */
       ETWR_JOIN_DURATION = 32, /* duration_ns: of events that end what another began */
       ETWR_JOIN_REGISTRY = 64  /* registry_key: whole name of the key that an event is about */
};

enum { /* etwr_table_options.flags */
       /* Addresses and hexadecimal numbers as numbers, not texts, and in tables of a kind arrays of numbers
        * as lists: 31 and not "0x1f". */
       ETWR_TABLE_NUMBERS = 1
};

typedef struct etwr_table_options {
  size_t struct_size;
  const etwr_selection *selection; /* NULL: every event */
  const char *where;           /* condition on fields, as `etwrelog export --where` takes it; NULL: none */
  const etwr_schemas *schemas; /* known beforehand; NULL: what is built in */
  uint32_t joins;              /* ETWR_JOIN_..., added up */
  uint64_t flags;              /* ETWR_TABLE_..., added up */
} etwr_table_options;

/* All events as one table, with `fields` as JSON. Takes a pass before it returns. *stream is set on success
 * only. Stop and progress of `run` also serve the stream, and so does its context. */
ETWR_API etwr_error *etwr_events_stream(const etwr_trace *trace, const etwr_table_options *options,
                                        const etwr_run *run, struct ArrowArrayStream *stream);

/* A table for each kind of event, with a column for each field. Takes two passes. */
typedef struct etwr_tables etwr_tables;

typedef struct etwr_table {
  size_t struct_size;
  const char *name;     /* "DiskIo_Read"; "undescribed": events that nobody describes, with `raw` alone */
  uint64_t events;      /* rows */
  uint8_t provider[16]; /* or class GUID; these four 0 for undescribed ones */
  uint16_t id, version;
  uint8_t opcode;
} etwr_table;

ETWR_API etwr_error *etwr_tables_open(const etwr_trace *trace, const etwr_table_options *options,
                                      const etwr_run *run, etwr_tables **tables);
ETWR_API size_t etwr_table_count(const etwr_tables *tables);
/* NULL if there is none. */
ETWR_API const etwr_table *etwr_table_at(const etwr_tables *tables, size_t index);
/* Reads the trace when the stream is asked for its first batch. Any thread; *stream is set on success only.
 */
ETWR_API etwr_error *etwr_table_stream(const etwr_tables *tables, size_t index,
                                       struct ArrowArrayStream *stream);
/* Streams that were made may go on. */
ETWR_API void etwr_tables_free(etwr_tables *tables);

/* --- Relogging --- */

enum {                      /* etwr_relog_options.codec */
       ETWR_CODEC_AUTO = 0, /* XPRESS if the input was compressed, else none */
       ETWR_CODEC_NONE = 1,
       ETWR_CODEC_LZNT1 = 2,
       ETWR_CODEC_XPRESS = 3,
       ETWR_CODEC_XPRESS_HUFFMAN = 4
};

enum { ETWR_LEVEL_DEFAULT = 0, ETWR_LEVEL_FAST = 1, ETWR_LEVEL_MAX = 2, ETWR_LEVEL_ULTRA = 3 };

enum { /* etwr_relog_options.stacks */
       ETWR_STACKS_KEEP = 0,
       ETWR_STACKS_CACHE = 1,        /* each kernel stack is written once and referred to */
       ETWR_STACKS_CACHE_NATIVE = 2, /* the same, but for those with a frame in JIT-compiled code */
       ETWR_STACKS_EXPAND = 3        /* the other way */
};

typedef struct etwr_relog_options {
  size_t struct_size;
  const etwr_selection *selection; /* NULL: every event */
  int replace;                     /* an output that exists; never an input */
  int codec, level, stacks;
  uint32_t buffer_size;                /* 1 KiB to 16 MiB, a multiple of 8; 0: the input's, at least 64 KiB */
  int keep_grouping;                   /* every buffer of the input becomes one of the output, of several
                                          traces in the order of their first events */
  uint64_t stack_window, stack_memory; /* 0: the defaults */
} etwr_relog_options;

typedef struct etwr_relog_report {
  size_t struct_size;
  uint64_t input_bytes, output_bytes, input_buffers, output_buffers;
  uint64_t events_in, events_out, event_bytes_in, event_bytes_out;
  uint64_t skipped_bytes; /* damage that was stepped over */
} etwr_relog_report;

/* Writes a trace (.etl) that Windows' own tools read. It exists whole or not at all. Report: may be NULL. */
ETWR_API etwr_error *etwr_relog(const etwr_trace *trace, const char *output,
                                const etwr_relog_options *options, const etwr_run *run,
                                etwr_relog_report *report);

/* --- Archives (.etlz) --- */

typedef struct etwr_archive_options {
  size_t struct_size;
  int replace;   /* an output that exists; never an input */
  int level;     /* of pack: ETWR_LEVEL_DEFAULT, ETWR_LEVEL_MAX or ETWR_LEVEL_ULTRA */
  int unchecked; /* pack: do not decode every segment again before it is written */
  int salvage;   /* unpack, and verify without an original: of a damaged archive every whole segment */
} etwr_archive_options;

typedef struct etwr_archive_report {
  size_t struct_size;
  uint64_t original, archived; /* bytes of the file, packed or given back, and of the archive */
  uint64_t segments;
  uint64_t events, buffers; /* of pack; 0 if it is no trace */
  int is_trace;             /* of pack */
  int hash_checked;         /* the hash of the whole content was compared */
  uint64_t missing_bytes;   /* with salvage: of the original */
} etwr_archive_report;

/* Any file, its bytes as they are. Outputs exist whole or not at all. Reports may be NULL. */
ETWR_API etwr_error *etwr_pack(const char *input, const char *output, const etwr_archive_options *options,
                               const etwr_run *run, etwr_archive_report *report);
ETWR_API etwr_error *etwr_unpack(const char *archive, const char *output, const etwr_archive_options *options,
                                 const etwr_run *run, etwr_archive_report *report);
/* Whether every byte comes back: decodes all of it. With an original: whether it is that file, with which
 * salvage is ETWR_ERROR_USAGE; NULL: none. */
ETWR_API etwr_error *etwr_verify(const char *archive, const char *original,
                                 const etwr_archive_options *options, const etwr_run *run,
                                 etwr_archive_report *report);

/* --- Statistics --- */

/* Counts of the whole trace by type, process and processor, processes, stacks: a JSON object that has its
 * version in "record_version". Of several files the totals of all. The caller frees the text by
 * etwr_string_free. */
ETWR_API etwr_error *etwr_statistics_json(const etwr_trace *trace, const etwr_run *run, char **json);

#ifdef __cplusplus
}
#endif
#endif
