#include "symbols/fetch.hpp"

#include <memory>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

#ifdef ETWRELOG_HAVE_CURL
#include <curl/curl.h>
#endif

namespace etwrelog::symbols {

std::string url_part(const std::string &name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

#ifndef ETWRELOG_HAVE_CURL

bool network_support() {
  return false;
}
Fetched fetch(const std::string &, std::uint64_t) {
  Fetched out;
  out.why = "this etwrelog was built without libcurl and asks no servers";
  out.server_gone = true;
  return out;
}

#else

namespace {

struct Download {
  std::vector<std::uint8_t> bytes;
  std::uint64_t most = 0;
};

std::size_t receive(char *data, std::size_t size, std::size_t count, void *to) {
  auto &download = *static_cast<Download *>(to);
  const std::size_t bytes = size * count;
  if (bytes > download.most - download.bytes.size()) return 0; // ends the transfer
  const auto *from = reinterpret_cast<const std::uint8_t *>(data);
  download.bytes.insert(download.bytes.end(), from, from + bytes);
  return bytes;
}

} // namespace

bool network_support() {
  return true;
}

Fetched fetch(const std::string &url, std::uint64_t most) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  Fetched out;
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) {
    out.why = "no memory for the request";
    return out;
  }
  Download download{{}, most};
  CURL *c = curl.get();
  curl_easy_setopt(c, CURLOPT_URL, url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(c, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 15L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1024L); // bytes a second,
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 30L);    // for that long
  curl_easy_setopt(c, CURLOPT_USERAGENT, "etwrelog");
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &download);
  const CURLcode code = curl_easy_perform(c);
  long status = 0;
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  const char *type = nullptr;
  curl_easy_getinfo(c, CURLINFO_CONTENT_TYPE, &type);
  if (code == CURLE_WRITE_ERROR) {
    out.status = Fetched::Status::refused;
    out.why = "larger than the limit";
  } else if (code != CURLE_OK) {
    out.why = curl_easy_strerror(code);
    out.server_gone = status == 0;
  } else if (status == 404 || status == 410) {
    out.status = Fetched::Status::missing;
    out.why = "not there";
  } else if (status != 200) {
    out.why = fmt::format("the server answers {}", status);
  } else if (type != nullptr && std::string_view(type).starts_with("text/html")) {
    out.status = Fetched::Status::refused;
    out.why = "a page of text instead of a file: a login?";
  } else {
    out.status = Fetched::Status::done;
    out.bytes = std::move(download.bytes);
  }
  return out;
}

#endif

} // namespace etwrelog::symbols
