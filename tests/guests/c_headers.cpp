// The C headers in a program in C++ whose warnings are errors: what their macros become must not be what it
// is warned of.
#include "etwrelog/arrow_abi.h"
#include "etwrelog/consumer.h"
#include "etwrelog/etwrelog.h"

#include <type_traits>

static_assert(INVALID_PROCESSTRACE_HANDLE == ~TRACEHANDLE{0});
static_assert(std::is_same_v<decltype(INVALID_PROCESSTRACE_HANDLE), TRACEHANDLE>);
static_assert((PROCESS_TRACE_MODE_EVENT_RECORD | PROCESS_TRACE_MODE_RAW_TIMESTAMP) == 0x10001000u);
static_assert(ETWR_ABI_VERSION == 1u && ETWR_UNKNOWN_ID == ~0u && ARROW_FLAG_NULLABLE == 2);
static_assert(sizeof(ArrowSchema) == 72 && sizeof(ArrowArray) == 80 && sizeof(ArrowArrayStream) == 40);
