// Files from a symbol server, over HTTP.
#pragma once

#include "etwrelog/bytes.hpp"

#include <string>
#include <vector>

namespace etwrelog::symbols {

[[nodiscard]] bool network_support(); // loads libcurl, the first time

struct Fetched {
  enum class Status : std::uint8_t { done, missing, refused, failed } status = Status::failed;
  std::vector<std::uint8_t> bytes;
  std::string why;          // for people, where not done
  bool server_gone = false; // it does not answer at all: do not ask it again
};
// Any thread. Follows redirections; at most `most` bytes.
[[nodiscard]] Fetched fetch(const std::string &url, std::uint64_t most);
[[nodiscard]] std::string url_part(const std::string &name); // percent-encoded

} // namespace etwrelog::symbols
