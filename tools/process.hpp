// What a program does to its own process and terminal, and the library never does: standard streams, requests
// to stop, the width of a window. The only file pair of the tools (with process.cpp) that calls POSIX.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

namespace etwrelog::process {

// Descriptors 0 to 2 that are closed are opened on the null device, so that no file that is opened later gets
// their number and with it what is printed. The first thing in every main().
void open_standard_streams();
// Whether standard output was one of them: what a command is asked to write there would be lost.
[[nodiscard]] bool standard_output_was_closed();
// Whether standard input was: what is read from it is no empty file, but nothing.
[[nodiscard]] bool standard_input_was_closed();
// Writes to standard error, whole or not at all as far as that can be had. Never fails: a message is no
// reason to end the work that it is about.
void print_message(std::string_view text) noexcept;

// From now on the first interrupt, terminate or hang-up request sets the token; a second one removes
// unfinished outputs and ends the program at once. Closed pipes and file-size limits become write errors.
// What no error can be made of ends the program with a line, without any call and before main(), too.
void catch_stop_requests();
[[nodiscard]] std::stop_token stop_token();

[[nodiscard]] bool is_terminal(int standard_stream); // 0 stdin, 1 stdout, 2 stderr
[[nodiscard]] bool can_redraw(int standard_stream);  // a terminal that can write a line anew
[[nodiscard]] unsigned terminal_width(int standard_stream);
[[nodiscard]] std::string host_name();           // of this machine; empty if the system does not tell
[[nodiscard]] std::uint64_t peak_memory_bytes(); // of this process; 0 if the system does not tell

} // namespace etwrelog::process
