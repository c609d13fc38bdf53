// Where a trace's bytes come from: a file, standard input, or traces wrapped in a zip, gzip, xz, zstd or
// bzip2 file. All are readable at any offset; what is not so by nature is spooled to a temporary file without
// a name.
#pragma once

#include "base/input.hpp"
#include "base/platform.hpp"
#include "etwrelog/io.hpp"

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace etwrelog::read {

using base::InputName;
using Input = base::InputBytes;

// `path` may be "-" for standard input. A wrapped trace is recognised by its first bytes, not by its name; a
// zip must hold exactly one. Spooling and unwrapping end as cancelled when `stop` is set, also while a pipe
// has nothing to give.
[[nodiscard]] Result<std::unique_ptr<Input>> open_input(const std::string &path,
                                                        const std::stop_token &stop = {});

// Looks at the beginning of what has to be spooled, at least its first event or all there is; its error is
// the result before more is read. Somebody else's pipe may never end.
using HeadCheck = std::function<Result<void>(Bytes head)>;

// All traces of a zip (unzip.hpp), or the one that anything else is.
[[nodiscard]] Result<std::vector<std::unique_ptr<Input>>>
open_inputs(const etwrelog::Input &input, const std::stop_token &stop = {}, const HeadCheck &check = {});

// What a caller described; wrapped traces as above.
[[nodiscard]] Result<std::unique_ptr<Input>> open_input(const etwrelog::Input &input,
                                                        const std::stop_token &stop = {});

// The very bytes, wrapped or not.
[[nodiscard]] Result<std::unique_ptr<Input>>
open_plain(const std::string &path, const std::stop_token &stop = {}, const HeadCheck &check = {});
[[nodiscard]] Result<std::unique_ptr<Input>>
open_plain(const etwrelog::Input &input, const std::stop_token &stop = {}, const HeadCheck &check = {});

// The very bytes, once and in order, without a spool. Reads fail as cancelled when `stop` is set. Of an input
// that can be read anywhere: unsupported.
[[nodiscard]] Result<std::shared_ptr<ByteStream>> open_stream(const etwrelog::Input &input,
                                                              const std::stop_token &stop = {});

// Reads from memory that the input owns.
[[nodiscard]] std::unique_ptr<Input> memory_input(std::string name, std::vector<std::uint8_t> bytes);

} // namespace etwrelog::read
