// EVENT_TRACE_LOGFILEW: what OpenTraceW takes out of it and puts into it.
#pragma once

#include "etwrelog/consumer.h"
#include "etwrelog/event.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace etwrelog::consumer {

// UTF-16 up to the terminator as UTF-8; nullopt if it is no valid UTF-16.
[[nodiscard]] std::optional<std::string> utf8_of(const ETWR_WCHAR *text);

// From the header event of a file, in its 32- or 64-bit form, to the 64-bit form that callers see. False if
// it is none.
[[nodiscard]] bool fill_logfile_header(TRACE_LOGFILE_HEADER &header, const EventView &event);

} // namespace etwrelog::consumer
