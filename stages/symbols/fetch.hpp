// Files from a symbol server, over HTTP.
#pragma once

#include "base/mapping.hpp"

#include <stop_token>
#include <string>

namespace etwrelog::symbols {

[[nodiscard]] bool network_support(); // loads libcurl, the first time

struct Fetched {
  enum class Status : std::uint8_t { done, missing, refused, failed } status = Status::failed;
  base::Mapping file;       // a temporary one
  std::string why;          // for people, where not done
  bool server_gone = false; // it does not answer at all: do not ask it again
};
// Any thread. Follows redirections; at most `most` bytes. Fails soon after `stop` is set.
[[nodiscard]] Fetched fetch(const std::string &url, std::uint64_t most, const std::stop_token &stop = {});
[[nodiscard]] std::string url_part(const std::string &name); // percent-encoded

} // namespace etwrelog::symbols
