/* Compiled for Windows against the public-domain headers of mingw-w64, and for the machine itself without
 * them: every structure of consumer.h has Windows' size and offsets, or this does not compile. The numbers
 * hold in both. */
#ifdef ETWRELOG_AGAINST_MINGW
#include <stddef.h>
#include <windows.h>
/* */
#include <evntcons.h>
#include <evntrace.h>
#define MODE LogFileMode
#define CALLBACK_MEMBER EventCallback
#define DESCRIPTOR EVENT_DESCRIPTOR
#else
#include "etwrelog/consumer.h"

#include <stddef.h>
#define MODE Mode
#define CALLBACK_MEMBER Callback
#define DESCRIPTOR EVENT_DESCRIPTOR
#endif

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member)

#define LOGFILE_LAYOUT(LOGFILE)                                                                              \
  SIZE(LOGFILE, 0x1C0);                                                                                      \
  AT(LOGFILE, LogFileName, 0x00);                                                                            \
  AT(LOGFILE, LoggerName, 0x08);                                                                             \
  AT(LOGFILE, CurrentTime, 0x10);                                                                            \
  AT(LOGFILE, BuffersRead, 0x18);                                                                            \
  AT(LOGFILE, MODE, 0x1C);                                                                                   \
  AT(LOGFILE, CurrentEvent, 0x20);                                                                           \
  AT(LOGFILE, LogfileHeader, 0x78);                                                                          \
  AT(LOGFILE, BufferCallback, 0x190);                                                                        \
  AT(LOGFILE, BufferSize, 0x198);                                                                            \
  AT(LOGFILE, Filled, 0x19C);                                                                                \
  AT(LOGFILE, EventsLost, 0x1A0);                                                                            \
  AT(LOGFILE, CALLBACK_MEMBER, 0x1A8);                                                                       \
  AT(LOGFILE, IsKernelTrace, 0x1B0);                                                                         \
  AT(LOGFILE, Context, 0x1B8)

LOGFILE_LAYOUT(EVENT_TRACE_LOGFILEW);
LOGFILE_LAYOUT(EVENT_TRACE_LOGFILEA);

SIZE(TRACE_LOGFILE_HEADER, 0x118);
AT(TRACE_LOGFILE_HEADER, BufferSize, 0x00);
AT(TRACE_LOGFILE_HEADER, Version, 0x04);
AT(TRACE_LOGFILE_HEADER, ProviderVersion, 0x08);
AT(TRACE_LOGFILE_HEADER, NumberOfProcessors, 0x0C);
AT(TRACE_LOGFILE_HEADER, EndTime, 0x10);
AT(TRACE_LOGFILE_HEADER, TimerResolution, 0x18);
AT(TRACE_LOGFILE_HEADER, MaximumFileSize, 0x1C);
AT(TRACE_LOGFILE_HEADER, LogFileMode, 0x20);
AT(TRACE_LOGFILE_HEADER, BuffersWritten, 0x24);
AT(TRACE_LOGFILE_HEADER, StartBuffers, 0x28);
AT(TRACE_LOGFILE_HEADER, PointerSize, 0x2C);
AT(TRACE_LOGFILE_HEADER, EventsLost, 0x30);
AT(TRACE_LOGFILE_HEADER, CpuSpeedInMHz, 0x34);
AT(TRACE_LOGFILE_HEADER, LoggerName, 0x38);
AT(TRACE_LOGFILE_HEADER, LogFileName, 0x40);
AT(TRACE_LOGFILE_HEADER, TimeZone, 0x48);
AT(TRACE_LOGFILE_HEADER, BootTime, 0xF8);
AT(TRACE_LOGFILE_HEADER, PerfFreq, 0x100);
AT(TRACE_LOGFILE_HEADER, StartTime, 0x108);
AT(TRACE_LOGFILE_HEADER, ReservedFlags, 0x110);
AT(TRACE_LOGFILE_HEADER, BuffersLost, 0x114);

SIZE(EVENT_HEADER, 0x50);
AT(EVENT_HEADER, Size, 0x00);
AT(EVENT_HEADER, HeaderType, 0x02);
AT(EVENT_HEADER, Flags, 0x04);
AT(EVENT_HEADER, EventProperty, 0x06);
AT(EVENT_HEADER, ThreadId, 0x08);
AT(EVENT_HEADER, ProcessId, 0x0C);
AT(EVENT_HEADER, TimeStamp, 0x10);
AT(EVENT_HEADER, ProviderId, 0x18);
AT(EVENT_HEADER, EventDescriptor, 0x28);
AT(EVENT_HEADER, KernelTime, 0x38);
AT(EVENT_HEADER, UserTime, 0x3C);
AT(EVENT_HEADER, ActivityId, 0x40);

SIZE(DESCRIPTOR, 0x10);
AT(DESCRIPTOR, Id, 0x00);
AT(DESCRIPTOR, Version, 0x02);
AT(DESCRIPTOR, Channel, 0x03);
AT(DESCRIPTOR, Level, 0x04);
AT(DESCRIPTOR, Opcode, 0x05);
AT(DESCRIPTOR, Task, 0x06);
AT(DESCRIPTOR, Keyword, 0x08);

SIZE(EVENT_HEADER_EXTENDED_DATA_ITEM, 0x10);
AT(EVENT_HEADER_EXTENDED_DATA_ITEM, ExtType, 0x02);
AT(EVENT_HEADER_EXTENDED_DATA_ITEM, DataSize, 0x06);
AT(EVENT_HEADER_EXTENDED_DATA_ITEM, DataPtr, 0x08);

SIZE(EVENT_RECORD, 0x70);
AT(EVENT_RECORD, BufferContext, 0x50);
AT(EVENT_RECORD, ExtendedDataCount, 0x54);
AT(EVENT_RECORD, UserDataLength, 0x56);
AT(EVENT_RECORD, ExtendedData, 0x58);
AT(EVENT_RECORD, UserData, 0x60);
AT(EVENT_RECORD, UserContext, 0x68);

SIZE(ETW_BUFFER_CONTEXT, 4);
AT(ETW_BUFFER_CONTEXT, ProcessorNumber, 0);
AT(ETW_BUFFER_CONTEXT, Alignment, 1);
AT(ETW_BUFFER_CONTEXT, LoggerId, 2);

SIZE(EVENT_TRACE_HEADER, 0x30);
AT(EVENT_TRACE_HEADER, Class, 0x04);
AT(EVENT_TRACE_HEADER, ThreadId, 0x08);
AT(EVENT_TRACE_HEADER, ProcessId, 0x0C);
AT(EVENT_TRACE_HEADER, TimeStamp, 0x10);
AT(EVENT_TRACE_HEADER, Guid, 0x18);
AT(EVENT_TRACE_HEADER, KernelTime, 0x28);
AT(EVENT_TRACE_HEADER, UserTime, 0x2C);

SIZE(EVENT_TRACE, 0x58);
AT(EVENT_TRACE, InstanceId, 0x30);
AT(EVENT_TRACE, ParentInstanceId, 0x34);
AT(EVENT_TRACE, ParentGuid, 0x38);
AT(EVENT_TRACE, MofData, 0x48);
AT(EVENT_TRACE, MofLength, 0x50);
AT(EVENT_TRACE, BufferContext, 0x54);
