// The measuring half of bench/report: one compressor on one trace a call, so that peak memory is that of one
// of them.
//
//   report_bench --list                        names of all that is registered
//   report_bench --run NAME TRACE [RUNS]       sizes and times as JSON
//   report_bench --types TRACE                 bytes by event type
//   report_bench --shares TRACE                stacks and the rest, each by the compressors of the study
#include "bench/report_outputs.hpp"
#include "tools/etwgen/measure.hpp"

#include "etwrelog/kernel_events.hpp"

#include <nlohmann/json.hpp>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

namespace etwrelog::bench {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::vector<std::uint8_t> read_file(const char *path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

int list() {
  std::ranges::sort(outputs(), {}, &Output::rank);
  ordered_json all = ordered_json::array();
  for (const Output &o : outputs())
    all.push_back({{"name", o.name}, {"tool", o.tool}, {"level", o.level}, {"opens", o.opens}});
  std::cout << all.dump() << "\n";
  return 0;
}

int run(const std::string &name, const char *path, int runs) {
  const auto found = std::ranges::find(outputs(), name, &Output::name);
  const std::vector<std::uint8_t> trace = read_file(path);
  if (found == outputs().end() || trace.empty()) return 1;
  ordered_json result = {
      {"raw", trace.size()}, {"pack_s", ordered_json::array()}, {"unpack_s", ordered_json::array()}};
  for (int i = 0; i < runs; ++i) {
    auto start = Clock::now();
    const Packed packed = found->pack(trace);
    result["pack_s"].push_back(std::chrono::duration<double>(Clock::now() - start).count());
    start = Clock::now();
    std::vector<std::uint8_t> back = found->unpack(packed, trace.size());
    result["unpack_s"].push_back(std::chrono::duration<double>(Clock::now() - start).count());
    result["size"] = packed.bytes.size();
    // Nothing is reported that does not come back.
    const bool same =
        packed.blocks.empty() ? back == trace : XXH3_64bits(back.data(), back.size()) == packed.check;
    if (packed.bytes.empty() || !same) {
      std::cerr << name << ": what was packed does not come back\n";
      return 1;
    }
  }
  std::cout << result.dump() << "\n";
  return 0;
}

std::string type_of(const EventView &e) {
  if (e.has_hook()) {
    const kernel::HookInfo *info = kernel::find_hook(e.hook());
    return info != nullptr
               ? info->name
               : std::string(kernel::group_name(static_cast<std::uint8_t>(e.hook() >> 8))) + "/other";
  }
  if (e.provider() == format::kImageIdGuid) return "image identity";
  if (e.provider() == format::kClrGuid || e.provider() == format::kClrRundownGuid) return ".NET runtime";
  return e.is_classic() ? "other classic" : e.is_message() ? "WPP" : "other providers";
}

template <class Visit> void for_each_buffer(Bytes trace, Visit &&visit) {
  for (std::size_t at = 0; at + format::kBufferHeaderSize <= trace.size();) {
    const format::BufferHeader h = format::load_buffer_header(trace.data() + at);
    if (h.buffer_size < format::kBufferHeaderSize || h.buffer_size > trace.size() - at) return;
    const std::uint32_t end = std::min(h.buffer_size, h.valid_bytes());
    if (!h.compressed() && end > format::kBufferHeaderSize)
      visit(trace.subspan(at + format::kBufferHeaderSize, end - format::kBufferHeaderSize));
    at += h.buffer_size;
  }
}

int types(const char *path) {
  const std::vector<std::uint8_t> trace = read_file(path);
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> by_type;
  for_each_buffer(trace, [&](Bytes events) {
    for_each_event(events, [&](const EventView &e, std::int64_t, std::uint32_t) {
      auto &entry = by_type[type_of(e)];
      ++entry.first;
      entry.second += e.size();
    });
  });
  ordered_json out;
  for (const auto &[name, entry] : by_type)
    out[name] = {entry.first, entry.second};
  std::cout << out.dump() << "\n";
  return 0;
}

int shares(const char *path) {
  const std::vector<std::uint8_t> trace = read_file(path);
  const std::vector<std::uint8_t> stacks = gen::stack_events(trace);
  std::vector<std::uint8_t> rest;
  for_each_buffer(trace, [&](Bytes events) {
    for_each_event(events, [&](const EventView &e, std::int64_t, std::uint32_t) {
      if (e.has_hook() && e.hook() >> 8 == 0x18) return;
      rest.insert(rest.end(), e.bytes().begin(), e.bytes().end());
      rest.resize(align8(rest.size()));
    });
  });
  auto sizes = [](Bytes data) {
    std::vector<std::uint8_t> out(ZSTD_compressBound(data.size()));
    return ordered_json{{"raw", data.size()},
                        {"LZNT1", gen::lznt1_size(data)},
                        {"deflate", gen::deflate_size(data, 6)},
                        {"LZMA2", gen::lzma_size(data, 5, 16 << 20)},
                        {"zstd 9", ZSTD_compress(out.data(), out.size(), data.data(), data.size(), 9)}};
  };
  std::cout << ordered_json{{"whole", sizes(trace)}, {"stacks", sizes(stacks)}, {"rest", sizes(rest)}}.dump()
            << "\n";
  return 0;
}

} // namespace
} // namespace etwrelog::bench

int main(int argc, char **argv) {
  using namespace etwrelog::bench;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "--list") return list();
  if (what == "--run" && argc > 3) return run(argv[2], argv[3], argc > 4 ? std::atoi(argv[4]) : 3);
  if (what == "--types" && argc > 2) return types(argv[2]);
  if (what == "--shares" && argc > 2) return shares(argv[2]);
  std::cerr << "usage: report_bench --list | --run NAME TRACE [RUNS] | --types TRACE | --shares TRACE\n";
  return 2;
}
