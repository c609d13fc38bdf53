// Everything that is stable. What may still change says so in its first lines, or stands in experimental/.
#pragma once

#include "etwrelog/archive.hpp"
#include "etwrelog/relog.hpp"
#include "etwrelog/select.hpp"
#include "etwrelog/stacks.hpp"
#include "etwrelog/state.hpp"
#include "etwrelog/statistics.hpp"
#include "etwrelog/trace.hpp"
