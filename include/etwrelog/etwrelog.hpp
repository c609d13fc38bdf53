// What most programs need. Other headers stand for themselves; those that may still change say so in their
// first lines, or stand in experimental/.
#pragma once

#include "etwrelog/archive.hpp"
#include "etwrelog/relog.hpp"
#include "etwrelog/select.hpp"
#include "etwrelog/stacks.hpp"
#include "etwrelog/state.hpp"
#include "etwrelog/statistics.hpp"
#include "etwrelog/trace.hpp"
