#include "symbols/fetch.hpp"

#include "base/shared_library.hpp"
#include "base/spool.hpp"
#include "symbols/search.hpp"

#include <memory>
#include <string_view>

#include <fmt/format.h>

#ifdef ETWRELOG_HAVE_CURL
#include <curl/curl.h>
// Macros for compilers that check or count arguments; the functions themselves are meant here.
#undef curl_easy_setopt
#undef curl_easy_getinfo
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
Fetched fetch(const std::string &, std::uint64_t, const std::stop_token &) {
  Fetched out;
  out.why = "this etwrelog was built without libcurl and asks no servers";
  out.server_gone = true;
  return out;
}

#else

namespace {

// What is used of libcurl, under its own names without "curl_". It is loaded when a server is to be asked:
// with the 27 libraries that it brings along, every start of the program would take twice as long.
struct Curl {
  decltype(::curl_global_init) *global_init;
  decltype(::curl_easy_init) *easy_init;
  decltype(::curl_easy_cleanup) *easy_cleanup;
  decltype(::curl_easy_setopt) *easy_setopt;
  decltype(::curl_easy_perform) *easy_perform;
  decltype(::curl_easy_getinfo) *easy_getinfo;
  decltype(::curl_easy_strerror) *easy_strerror;
  std::string why_not; // empty: all of it is there

  static Curl load();
};

Curl Curl::load() {
  Curl curl{};
  // Debian's two builds of the same interface.
  Result<base::SharedLibrary> library = base::SharedLibrary::open("libcurl.so.4");
  if (!library)
    if (Result<base::SharedLibrary> other = base::SharedLibrary::open("libcurl-gnutls.so.4"))
      library = std::move(other);
  if (!library) {
    curl.why_not = fmt::format("servers are asked by libcurl, which cannot be loaded ({}): install libcurl4",
                               library.error().what);
    return curl;
  }
  auto take = [&](auto *&function, const char *name) {
    if (!library->find(function, name))
      curl.why_not = fmt::format("the libcurl of this machine has no {}", name);
  };
  take(curl.global_init, "curl_global_init");
  take(curl.easy_init, "curl_easy_init");
  take(curl.easy_cleanup, "curl_easy_cleanup");
  take(curl.easy_setopt, "curl_easy_setopt");
  take(curl.easy_perform, "curl_easy_perform");
  take(curl.easy_getinfo, "curl_easy_getinfo");
  take(curl.easy_strerror, "curl_easy_strerror");
  if (curl.why_not.empty()) curl.global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

const Curl &curl() {
  static const Curl loaded = Curl::load();
  return loaded;
}

struct Download {
  base::Spool spool;
  std::uint64_t most;
  const std::stop_token &stop;
  std::string why; // it was ended here
};

std::size_t receive(char *data, std::size_t size, std::size_t count, void *to) {
  auto &download = *static_cast<Download *>(to);
  const std::size_t bytes = size * count;
  constexpr std::size_t kEnd = 0; // of the transfer
  if (bytes > download.most - download.spool.size()) {
    download.why = "larger than the limit";
    return kEnd;
  }
  const Bytes received(reinterpret_cast<const std::uint8_t *>(data), bytes);
  if (const Result<void> written = download.spool.append(received); !written) {
    download.why = "it cannot be kept: " + written.error().message();
    return kEnd;
  }
  return bytes;
}

// Called about once a second, also while nothing comes.
int look_whether_to_stop(void *of, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const Download *>(of)->stop.stop_requested() ? 1 : 0;
}

} // namespace

bool network_support() {
  return curl().why_not.empty();
}

Fetched fetch(const std::string &url, std::uint64_t most, const std::stop_token &stop) {
  const Curl &api = curl();
  Fetched out;
  if (!api.why_not.empty()) {
    out.why = api.why_not;
    out.server_gone = true;
    return out;
  }
  const std::unique_ptr<CURL, decltype(api.easy_cleanup)> request(api.easy_init(), api.easy_cleanup);
  if (!request) {
    out.why = "no memory for the request";
    return out;
  }
  Result<base::Spool> spool = base::Spool::create(Advice::none);
  if (!spool) {
    out.why = spool.error().message();
    return out;
  }
  Download download{std::move(*spool), most, stop, {}};
  CURL *c = request.get();
  api.easy_setopt(c, CURLOPT_URL, url.c_str());
  api.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  api.easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  api.easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  api.easy_setopt(c, CURLOPT_MAXREDIRS, 5L);
  api.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  api.easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 15L);
  api.easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1024L); // bytes a second,
  api.easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 30L);    // for that long
  api.easy_setopt(c, CURLOPT_TIMEOUT, 3600L); // for all of a file: whoever sends a little for ever ends
  api.easy_setopt(c, CURLOPT_USERAGENT, "etwrelog");
  api.easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(most)); // as the server announces it
  api.easy_setopt(c, CURLOPT_BUFFERSIZE, 256L << 10);
  api.easy_setopt(c, CURLOPT_NOPROGRESS, 0L); // or the next is not called
  api.easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look_whether_to_stop);
  api.easy_setopt(c, CURLOPT_XFERINFODATA, &download);
  api.easy_setopt(c, CURLOPT_WRITEFUNCTION, receive);
  api.easy_setopt(c, CURLOPT_WRITEDATA, &download);
  const CURLcode code = api.easy_perform(c);
  long status = 0;
  api.easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  const char *type = nullptr;
  api.easy_getinfo(c, CURLINFO_CONTENT_TYPE, &type);
  if (code == CURLE_WRITE_ERROR || code == CURLE_FILESIZE_EXCEEDED) {
    out.status = Fetched::Status::refused;
    out.why = download.why.empty() ? "larger than the limit" : download.why;
  } else if (code == CURLE_ABORTED_BY_CALLBACK) {
    out.why = "stopped on request";
  } else if (code != CURLE_OK) {
    out.why = api.easy_strerror(code);
    out.server_gone = status == 0;
  } else if (status == 404 || status == 410) {
    out.status = Fetched::Status::missing;
    out.why = "not there";
  } else if (status != 200) {
    out.why = fmt::format("the server answers {}", status);
  } else if (type != nullptr && lower(type).starts_with("text/html")) {
    out.status = Fetched::Status::refused;
    out.why = "a page of text instead of a file: a login?";
  } else if (Result<base::Mapping> received = download.spool.map()) {
    out.status = Fetched::Status::done;
    out.file = std::move(*received);
  } else {
    out.why = received.error().message();
  }
  return out;
}

#endif

} // namespace etwrelog::symbols
