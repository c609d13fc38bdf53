// Handles of the C interface that free themselves.
#pragma once

#include "etwrelog/etwrelog.h"
#include "etwrelog/format.hpp"
#include "tests/guests/guest_files.hpp"
#include "tests/support/read_file.hpp"

#include <memory>

namespace etwrelog::testing {

constexpr Guid kProvider = make_guid(0x11112222, 0x3333, 0x4444, 0x5555, 0x666677778888);

struct FreeHandle {
  void operator()(etwr_error *error) const { etwr_error_free(error); }
  void operator()(etwr_trace *trace) const { etwr_trace_free(trace); }
  void operator()(etwr_cursor *cursor) const { etwr_cursor_free(cursor); }
  void operator()(etwr_processes *processes) const { etwr_processes_free(processes); }
  void operator()(etwr_schemas *schemas) const { etwr_schemas_free(schemas); }
  void operator()(etwr_decoder *decoder) const { etwr_decoder_free(decoder); }
  void operator()(char *text) const { etwr_string_free(text); }
};
using ErrorPtr = std::unique_ptr<etwr_error, FreeHandle>;
using TracePtr = std::unique_ptr<etwr_trace, FreeHandle>;
using CursorPtr = std::unique_ptr<etwr_cursor, FreeHandle>;
using ProcessesPtr = std::unique_ptr<etwr_processes, FreeHandle>;
using SchemasPtr = std::unique_ptr<etwr_schemas, FreeHandle>;
using DecoderPtr = std::unique_ptr<etwr_decoder, FreeHandle>;
using TextPtr = std::unique_ptr<char, FreeHandle>;

inline TracePtr open(const std::vector<std::string> &paths, ErrorPtr &error,
                     const etwr_open_options *options = nullptr) {
  std::vector<const char *> names;
  for (const std::string &path : paths)
    names.push_back(path.c_str());
  etwr_trace *trace = nullptr;
  error.reset(etwr_trace_open(names.data(), names.size(), options, nullptr, &trace));
  return TracePtr(trace);
}

// A structure that the caller fills.
template <class T> T sized() {
  T made{};
  made.struct_size = sizeof made;
  return made;
}

inline std::string text_of(const ErrorPtr &error) {
  return error ? etwr_error_message(error.get()) : "";
}

} // namespace etwrelog::testing
