/* Reads traces through the consumer functions of Windows, several as one, and says how many records a second:
 *   process_trace TRACE... */
#include "etwrelog/consumer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { kMostTraces = 64, kLongestPath = 4096 };

static unsigned long long records, bytes, kernel;

static void on_record(EVENT_RECORD *record) {
  ++records;
  bytes += record->UserDataLength;
  if (record->EventHeader.Flags & EVENT_HEADER_FLAG_CLASSIC_HEADER) ++kernel;
}

/* ASCII paths only: an example. */
static TRACEHANDLE open_trace(const char *path) {
  static ETWR_WCHAR name[kLongestPath];
  EVENT_TRACE_LOGFILEW logfile;
  size_t i;
  for (i = 0; i + 1 < kLongestPath && path[i] != 0; ++i)
    name[i] = (unsigned char)path[i];
  name[i] = 0;
  memset(&logfile, 0, sizeof logfile);
  logfile.LogFileName = name;
  logfile.Mode.ProcessTraceMode = PROCESS_TRACE_MODE_EVENT_RECORD | PROCESS_TRACE_MODE_RAW_TIMESTAMP;
  logfile.Callback.EventRecordCallback = on_record;
  return OpenTraceW(&logfile);
}

int main(int argc, char **argv) {
  TRACEHANDLE handles[kMostTraces];
  uint32_t count = 0, status;
  clock_t begin;
  double seconds;
  for (; (int)count + 1 < argc && count < kMostTraces; ++count) {
    handles[count] = open_trace(argv[count + 1]);
    if (handles[count] == INVALID_PROCESSTRACE_HANDLE) {
      fprintf(stderr, "process_trace: %s\n", etwr_consumer_last_error());
      return 1;
    }
  }
  begin = clock();
  status = ProcessTrace(handles, count, NULL, NULL);
  seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  if (status != ERROR_SUCCESS) {
    fprintf(stderr, "process_trace: error %u: %s\n", (unsigned)status, etwr_consumer_last_error());
    return 1;
  }
  printf("%llu records, %llu of them classic, %llu bytes of data\n", records, kernel, bytes);
  /* Of all threads together: records a second and core. */
  fprintf(stderr, "%.3f s of CPU time, %.1f million records a second and core\n", seconds,
          seconds > 0 ? (double)records / seconds / 1e6 : 0.0);
  while (count > 0)
    CloseTrace(handles[--count]);
  return 0;
}
