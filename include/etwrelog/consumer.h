/* The consumer functions of Windows (evntrace.h, evntcons.h) for trace files, on any platform: OpenTraceW,
 * OpenTraceA, ProcessTrace and CloseTrace with Windows' structures, names and results, in
 * libetwrelog-consumer.so. A program that was written against them includes this header instead of Windows'
 * own. C99 and C++; the layout is that of 64-bit Windows.
 *
 * What is as on Windows:
 *  - Events come in order of time over all processors and all files of the call. Kernel events come as
 * classic records: the class GUID of their hook as ProviderId, the hook's low byte as Opcode,
 * EVENT_HEADER_FLAG_CLASSIC_HEADER, and ids of 0xFFFFFFFF where the stored header has none.
 *  - The first event of a file is its header event; OpenTraceW returns the same in LogfileHeader.
 *  - Times are raw with PROCESS_TRACE_MODE_RAW_TIMESTAMP, else FILETIMEs.
 *  - A record is valid until the callback returns. The record itself may be changed, what it points to must
 * not be.
 *  - ProcessTrace calls back on the calling thread. Different handles may be processed by different threads
 * at a time; one handle by one. What is not: sessions (a LoggerName without a LogFileName), SetTraceCallback,
 * event maps and anything that decodes payloads (TDH). BufferContext.LoggerId is 0. OpenTraceW also takes
 * what etwrelog takes: compressed traces of every kind, traces inside .zip, .xz, .zst, .gz and .bz2 files,
 * archives (.etlz). */
#ifndef ETWRELOG_CONSUMER_H
#define ETWRELOG_CONSUMER_H

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

typedef uint16_t ETWR_WCHAR; /* WCHAR: UTF-16 in the machine's byte order, which is that of the file */
typedef uint64_t TRACEHANDLE;

#define INVALID_PROCESSTRACE_HANDLE UINT64_MAX /* without a cast, which C++ could warn of */

/* EVENT_TRACE_LOGFILEW.ProcessTraceMode. Sessions are not supported: PROCESS_TRACE_MODE_REAL_TIME fails. */
#define PROCESS_TRACE_MODE_REAL_TIME 0x00000100u
#define PROCESS_TRACE_MODE_RAW_TIMESTAMP 0x00001000u
#define PROCESS_TRACE_MODE_EVENT_RECORD 0x10000000u

/* EVENT_HEADER.Flags */
#define EVENT_HEADER_FLAG_EXTENDED_INFO 0x0001
#define EVENT_HEADER_FLAG_PRIVATE_SESSION 0x0002
#define EVENT_HEADER_FLAG_STRING_ONLY 0x0004
#define EVENT_HEADER_FLAG_TRACE_MESSAGE 0x0008
#define EVENT_HEADER_FLAG_NO_CPUTIME 0x0010
#define EVENT_HEADER_FLAG_32_BIT_HEADER 0x0020
#define EVENT_HEADER_FLAG_64_BIT_HEADER 0x0040
#define EVENT_HEADER_FLAG_CLASSIC_HEADER 0x0100

/* EVENT_HEADER_EXTENDED_DATA_ITEM.ExtType */
#define EVENT_HEADER_EXT_TYPE_RELATED_ACTIVITYID 0x0001
#define EVENT_HEADER_EXT_TYPE_SID 0x0002
#define EVENT_HEADER_EXT_TYPE_TS_ID 0x0003
#define EVENT_HEADER_EXT_TYPE_INSTANCE_INFO 0x0004
#define EVENT_HEADER_EXT_TYPE_STACK_TRACE32 0x0005
#define EVENT_HEADER_EXT_TYPE_STACK_TRACE64 0x0006
#define EVENT_HEADER_EXT_TYPE_PEBS_INDEX 0x0007
#define EVENT_HEADER_EXT_TYPE_PMC_COUNTERS 0x0008
#define EVENT_HEADER_EXT_TYPE_EVENT_KEY 0x000A
#define EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL 0x000B
#define EVENT_HEADER_EXT_TYPE_PROV_TRAITS 0x000C
#define EVENT_HEADER_EXT_TYPE_STACK_KEY32 0x0011
#define EVENT_HEADER_EXT_TYPE_STACK_KEY64 0x0012

/* What OpenTraceW leaves in errno (GetLastError's place), and what ProcessTrace and CloseTrace return. */
#define ERROR_SUCCESS 0u
#define ERROR_FILE_NOT_FOUND 2u
#define ERROR_ACCESS_DENIED 5u
#define ERROR_INVALID_HANDLE 6u
#define ERROR_NOT_ENOUGH_MEMORY 8u
#define ERROR_BAD_LENGTH 24u
#define ERROR_READ_FAULT 30u
#define ERROR_NOT_SUPPORTED 50u
#define ERROR_INVALID_PARAMETER 87u
#define ERROR_BAD_PATHNAME 161u
#define ERROR_BUSY 170u
#define ERROR_NOACCESS 998u /* an exception came out of a callback, which ended ProcessTrace */
#define ERROR_CANCELLED 1223u
#define ERROR_FILE_CORRUPT 1392u
#define ERROR_INVALID_TIME 1901u
#define ERROR_CTX_CLOSE_PENDING 7007u

typedef struct _ETWR_GUID {
  uint32_t Data1;
  uint16_t Data2, Data3;
  uint8_t Data4[8];
} ETWR_GUID;

typedef struct _ETWR_SYSTEMTIME {
  uint16_t wYear, wMonth, wDayOfWeek, wDay, wHour, wMinute, wSecond, wMilliseconds;
} ETWR_SYSTEMTIME;

typedef struct _ETWR_TIME_ZONE_INFORMATION {
  int32_t Bias;
  ETWR_WCHAR StandardName[32];
  ETWR_SYSTEMTIME StandardDate;
  int32_t StandardBias;
  ETWR_WCHAR DaylightName[32];
  ETWR_SYSTEMTIME DaylightDate;
  int32_t DaylightBias;
} ETWR_TIME_ZONE_INFORMATION;

typedef struct _ETW_BUFFER_CONTEXT {
  uint8_t ProcessorNumber; /* the low byte of the processor's index; the whole is a u16 here */
  uint8_t Alignment;
  uint16_t LoggerId;
} ETW_BUFFER_CONTEXT;

typedef struct _EVENT_DESCRIPTOR {
  uint16_t Id;
  uint8_t Version, Channel, Level, Opcode;
  uint16_t Task;
  uint64_t Keyword;
} EVENT_DESCRIPTOR;

typedef struct _EVENT_HEADER {
  uint16_t Size; /* of the event as stored */
  uint16_t HeaderType;
  uint16_t Flags;
  uint16_t EventProperty;
  uint32_t ThreadId, ProcessId;
  int64_t TimeStamp;
  ETWR_GUID ProviderId;
  EVENT_DESCRIPTOR EventDescriptor;
  uint32_t KernelTime, UserTime; /* together: ProcessorTime */
  ETWR_GUID ActivityId;
} EVENT_HEADER;

typedef struct _EVENT_HEADER_EXTENDED_DATA_ITEM {
  uint16_t Reserved1;
  uint16_t ExtType;
  uint16_t Linkage; /* bit 0: another item follows */
  uint16_t DataSize;
  uint64_t DataPtr;
} EVENT_HEADER_EXTENDED_DATA_ITEM;

typedef struct _EVENT_RECORD {
  EVENT_HEADER EventHeader;
  ETW_BUFFER_CONTEXT BufferContext;
  uint16_t ExtendedDataCount;
  uint16_t UserDataLength;
  EVENT_HEADER_EXTENDED_DATA_ITEM *ExtendedData;
  void *UserData;
  void *UserContext; /* EVENT_TRACE_LOGFILEW.Context */
} EVENT_RECORD;

typedef struct _EVENT_TRACE_HEADER {
  uint16_t Size;
  uint8_t HeaderType, MarkerFlags;
  struct {
    uint8_t Type, Level;
    uint16_t Version;
  } Class;
  uint32_t ThreadId, ProcessId;
  int64_t TimeStamp;
  ETWR_GUID Guid;
  uint32_t KernelTime, UserTime;
} EVENT_TRACE_HEADER;

typedef struct _EVENT_TRACE {
  EVENT_TRACE_HEADER Header;
  uint32_t InstanceId, ParentInstanceId;
  ETWR_GUID ParentGuid;
  void *MofData;
  uint32_t MofLength;
  ETW_BUFFER_CONTEXT BufferContext;
} EVENT_TRACE;

typedef struct _TRACE_LOGFILE_HEADER {
  uint32_t BufferSize;
  uint32_t Version; /* four bytes: major, minor, sub, sub-minor */
  uint32_t ProviderVersion, NumberOfProcessors;
  int64_t EndTime;
  uint32_t TimerResolution, MaximumFileSize, LogFileMode, BuffersWritten;
  uint32_t StartBuffers, PointerSize, EventsLost, CpuSpeedInMHz;
  ETWR_WCHAR *LoggerName, *LogFileName; /* not to be used, as on Windows; NULL */
  ETWR_TIME_ZONE_INFORMATION TimeZone;
  int64_t BootTime, PerfFreq, StartTime;
  uint32_t ReservedFlags; /* the clock: 1 QPC, 2 system time, 3 CPU cycles */
  uint32_t BuffersLost;
} TRACE_LOGFILE_HEADER;

typedef struct _EVENT_TRACE_LOGFILEW EVENT_TRACE_LOGFILEW;
typedef uint32_t (*PEVENT_TRACE_BUFFER_CALLBACKW)(EVENT_TRACE_LOGFILEW *logfile); /* 0 ends ProcessTrace */
typedef void (*PEVENT_CALLBACK)(EVENT_TRACE *event);
typedef void (*PEVENT_RECORD_CALLBACK)(EVENT_RECORD *record);

struct _EVENT_TRACE_LOGFILEW {
  ETWR_WCHAR *LogFileName; /* in: the file */
  ETWR_WCHAR *LoggerName;  /* in: NULL */
  int64_t CurrentTime;     /* out, in buffer callbacks: FILETIME of the buffer's last event */
  uint32_t BuffersRead;    /* out, in buffer callbacks */
  union {
    uint32_t LogFileMode;      /* out: the file's */
    uint32_t ProcessTraceMode; /* in: PROCESS_TRACE_MODE_... */
  } Mode;
  EVENT_TRACE CurrentEvent;
  TRACE_LOGFILE_HEADER LogfileHeader; /* out */
  PEVENT_TRACE_BUFFER_CALLBACKW BufferCallback;
  uint32_t BufferSize; /* out */
  uint32_t Filled; /* out, in buffer callbacks: bytes of the buffer up to its last event that was delivered */
  uint32_t EventsLost; /* not used, as on Windows */
  union {
    PEVENT_CALLBACK EventCallback;
    PEVENT_RECORD_CALLBACK EventRecordCallback; /* with PROCESS_TRACE_MODE_EVENT_RECORD */
  } Callback;
  uint32_t IsKernelTrace;
  void *Context;
};

/* The same with narrow names, for OpenTraceA. */
typedef struct _EVENT_TRACE_LOGFILEA EVENT_TRACE_LOGFILEA;
typedef uint32_t (*PEVENT_TRACE_BUFFER_CALLBACKA)(EVENT_TRACE_LOGFILEA *logfile);

struct _EVENT_TRACE_LOGFILEA {
  char *LogFileName, *LoggerName;
  int64_t CurrentTime;
  uint32_t BuffersRead;
  union {
    uint32_t LogFileMode;
    uint32_t ProcessTraceMode;
  } Mode;
  EVENT_TRACE CurrentEvent;
  TRACE_LOGFILE_HEADER LogfileHeader;
  PEVENT_TRACE_BUFFER_CALLBACKA BufferCallback;
  uint32_t BufferSize, Filled, EventsLost;
  union {
    PEVENT_CALLBACK EventCallback;
    PEVENT_RECORD_CALLBACK EventRecordCallback;
  } Callback;
  uint32_t IsKernelTrace;
  void *Context;
};

#ifdef UNICODE
#define EVENT_TRACE_LOGFILE EVENT_TRACE_LOGFILEW
#define OpenTrace OpenTraceW
#else
#define EVENT_TRACE_LOGFILE EVENT_TRACE_LOGFILEA
#define OpenTrace OpenTraceA
#endif

/* INVALID_PROCESSTRACE_HANDLE on failure, with the reason in errno. The structure is read before the call
 * returns; only what its pointers to functions and Context point to must outlive the handle. */
ETWR_API TRACEHANDLE OpenTraceW(EVENT_TRACE_LOGFILEW *logfile);
/* LogFileName: the bytes of the path, UTF-8 as a rule (on Windows: the system's code page). */
ETWR_API TRACEHANDLE OpenTraceA(EVENT_TRACE_LOGFILEA *logfile);

/* At most 64 handles. Events before *start or after *end, FILETIMEs, are left out; NULL: no bound. */
ETWR_API uint32_t ProcessTrace(TRACEHANDLE *handles, uint32_t count, const int64_t *start,
                               const int64_t *end);

/* While ProcessTrace is under way with this handle, whatever its others, from a callback or another thread:
 * ends it after the current event, frees the trace when it has returned, and is then itself
 * ERROR_CTX_CLOSE_PENDING, which is no failure. */
ETWR_API uint32_t CloseTrace(TRACEHANDLE handle);

/* What went wrong in this thread's last call, that is the one that returned last, in one line of UTF-8: file,
 * offset, what was expected, what was found. Empty if nothing did. Valid until the thread's next call. */
ETWR_API const char *etwr_consumer_last_error(void);

/* For programs that decode TraceLogging by the trace's own schemas only, such as Microsoft's TraceEvent where
 * there is no TDH: handles opened after this (in the whole process) deliver a KernelTraceControl EventInfo
 * record before the first event of each TraceLogging kind, in the form and with the event id that TraceEvent
 * expects. Also on with the environment variable ETWRELOG_TRACELOGGING_INFO=1. These records are in no trace:
 * counts differ by them. */
ETWR_API void etwr_consumer_describe_tracelogging(int on);

#ifdef __cplusplus
}
#endif
#endif
