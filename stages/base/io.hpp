// The parts of inputs and outputs that callers do not see.
#pragma once

#include "base/platform.hpp"
#include "etwrelog/io.hpp"

namespace etwrelog {

struct InputParts {
  [[nodiscard]] static const std::shared_ptr<const RandomAccess> &random(const Input &input) {
    return input.random_;
  }
  [[nodiscard]] static const std::shared_ptr<ByteStream> &stream(const Input &input) { return input.stream_; }
};

struct OutputParts {
  [[nodiscard]] static std::vector<std::uint8_t> *bytes(const Output &output) { return output.bytes_; }
  [[nodiscard]] static const std::shared_ptr<ByteSink> &sink(const Output &output) { return output.sink_; }
  [[nodiscard]] static const std::shared_ptr<const base::FileAttributes> &like(const Output &output) {
    return output.like_;
  }
  // With these, unless it has some already or is no file.
  [[nodiscard]] static Output with(Output output, const std::optional<base::FileAttributes> &attributes) {
    if (attributes && !output.like_ && output.kind_ == Output::Kind::path)
      output.like_ = std::make_shared<const base::FileAttributes>(*attributes);
    return output;
  }
};

namespace base {

// The file that an input is, under whatever name; nothing for what is none.
[[nodiscard]] std::optional<FileId> file_id(const Input &input);

[[nodiscard]] std::vector<FileId> file_ids(std::span<const Input> inputs);

// The error for an output that is one of the inputs, under whatever name, or that exists and is not to be
// replaced.
[[nodiscard]] Result<void> check_output(const Output &output, std::span<const FileId> inputs);

} // namespace base
} // namespace etwrelog
