// Requests to stop that come from outside.
#pragma once

#include <stop_token>

namespace etwrelog::cli {

// From now on the first interrupt, terminate or hang-up request sets the token; a second one ends the program
// at once.
void catch_stop_requests();
[[nodiscard]] std::stop_token stop_token();

} // namespace etwrelog::cli
