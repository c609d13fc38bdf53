// Where a trace's bytes come from: a file, standard input, or traces wrapped in a zip, gzip, xz, zstd or
// bzip2 file. All are readable at any offset; what is not so by nature is spooled to a temporary file without
// a name.
#pragma once

#include "base/input.hpp"
#include "base/platform.hpp"
#include "etwrelog/io.hpp"
#include "etwrelog/run.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace etwrelog::read {

using base::InputName;
using Input = base::InputBytes;

// `path` may be "-" for standard input. A wrapped trace is recognised by its first bytes, not by its name; a
// zip must hold exactly one. Spooling and unwrapping tell `run` how far they are, and end as cancelled when
// it asks for that, also while a pipe has nothing to give.
[[nodiscard]] Result<std::unique_ptr<Input>> open_input(const std::string &path, const RunOptions &run = {});

// Looks at the beginning of what has to be spooled, at least its first event or all there is; its error is
// the result before more is read. Somebody else's pipe may never end.
using HeadCheck = std::function<Result<void>(Bytes head)>;

// All traces of a zip (unzip.hpp), or the one that anything else is.
[[nodiscard]] Result<std::vector<std::unique_ptr<Input>>>
open_inputs(const etwrelog::Input &input, const RunOptions &run = {}, const HeadCheck &check = {});

// What a caller described; wrapped traces as above.
[[nodiscard]] Result<std::unique_ptr<Input>> open_input(const etwrelog::Input &input,
                                                        const RunOptions &run = {});

// The very bytes, wrapped or not.
[[nodiscard]] Result<std::unique_ptr<Input>> open_plain(const std::string &path, const RunOptions &run = {},
                                                        const HeadCheck &check = {});
[[nodiscard]] Result<std::unique_ptr<Input>>
open_plain(const etwrelog::Input &input, const RunOptions &run = {}, const HeadCheck &check = {});

// The very bytes, once and in order, without a spool. Reads fail as cancelled when `run` asks for that. Of an
// input that can be read anywhere: unsupported.
[[nodiscard]] Result<std::shared_ptr<ByteStream>> open_stream(const etwrelog::Input &input,
                                                              const RunOptions &run = {});

// Reads from memory that the input owns.
[[nodiscard]] std::unique_ptr<Input> memory_input(std::string name, std::vector<std::uint8_t> bytes);

} // namespace etwrelog::read
