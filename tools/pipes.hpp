// Standard output as the place of a result.
#pragma once

#include "etwrelog/io.hpp"
#include "tools/cli.hpp"
#include "tools/errors.hpp"
#include "tools/process.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace etwrelog::cli {

// Written through the C library; a closed pipe is an error like any other.
class StandardOutputSink final : public ByteSink {
public:
  [[nodiscard]] Result<void> write(Bytes bytes) override {
    if (process::standard_output_was_closed()) return io_error("standard output", "is closed");
    wipe_progress();
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) return {};
    return failure();
  }
  [[nodiscard]] Result<void> flush() { return std::fflush(stdout) == 0 ? Result<void>() : failure(); }
  [[nodiscard]] bool reader_gone() const { return reader_gone_; } // "| head" has seen enough

private:
  [[nodiscard]] Error failure() {
    const int reason = errno;
    reader_gone_ = reason == EPIPE;
    return io_error("standard output", "cannot be written: " + std::generic_category().message(reason));
  }
  bool reader_gone_ = false;
};

} // namespace etwrelog::cli
