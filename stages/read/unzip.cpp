#include "read/unzip.hpp"

#include "base/cut_text.hpp"
#include "base/errors.hpp"
#include "base/progress_meter.hpp"
#include "base/spool.hpp"
#include "read/scan.hpp"
#include "zip/member.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace etwrelog::read {
namespace {

constexpr std::size_t kUnzipChunk = 1u << 20;

// An archive is opened as one by whoever reads the traces.
bool is_trace_name(std::string_view name) {
  return base::has_ending(name, ".etl") || base::has_ending(name, ".etlz");
}

bool is_name_of_compressed_trace(std::string_view name) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{".gz", ".xz", ".zst", ".bz2"}, [name](std::string_view ending) {
        return base::has_ending(name, ending) && is_trace_name(name.substr(0, name.size() - ending.size()));
      });
}

// Recordings come with many of these. Whatever else cannot be read may be a trace.
bool is_name_of_something_else(std::string_view name) {
  static constexpr std::string_view kEndings[] = {
      ".pdb",  ".dll", ".exe", ".sys",  ".dbg",    ".mui",      ".pd_",    ".dl_",  ".ex_",  ".ptr",  ".cat",
      ".inf",  ".txt", ".log", ".md",   ".csv",    ".tsv",      ".xml",    ".json", ".html", ".htm",  ".css",
      ".js",   ".ini", ".cfg", ".reg",  ".yml",    ".yaml",     ".config", ".man",  ".mof",  ".wprp", ".rels",
      ".png",  ".jpg", ".gif", ".bmp",  ".svg",    ".ico",      ".pdf",    ".docx", ".dmp",  ".mdmp", ".hdmp",
      ".evtx", ".blg", ".pml", ".pcap", ".pcapng", ".nettrace", ".db",     ".zip",  ".cab",  ".7z",   ".gz"};
  return std::ranges::any_of(kEndings,
                             [name](std::string_view ending) { return base::has_ending(name, ending); });
}

class Unzipping {
public:
  Unzipping(const Input &input, const RunOptions &run, const UnzipLimits &limits)
      : input_(input), stop_(run.stop), progress_(run.progress), limits_(limits),
        most_(std::max(limits.bytes,
                       std::min(input.size(), UINT64_MAX / limits.of_one_byte) * limits.of_one_byte)) {}

  Result<std::vector<std::unique_ptr<Input>>> run() {
    ETWRELOG_TRY_LET(members, zip::members_of(input_, limits_.members));
    std::vector<std::unique_ptr<Input>> traces;
    std::uint64_t total = 0; // as they say it themselves
    for (const zip::Member &member : members)
      if (member.file) total += std::min(member.size, UINT64_MAX - total);
    progress_.begin("decompressing", total);
    for (const zip::Member &member : members) {
      if (stop_.stop_requested()) return interrupted(input_.name());
      if (!member.file) continue;
      const std::uint64_t before = unpacked_;
      ETWRELOG_TRY_LET(trace, trace_in(member));
      progress_.advance(member.size - std::min(member.size, unpacked_ - before)); // what was no trace
      if (!trace) continue;
      if (traces.size() == limits_.traces)
        return base::unsupported("the archive holds too many traces")
            .in(input_.name())
            .expected(fmt::format("at most {}", limits_.traces));
      traces.push_back(std::move(trace));
    }
    if (traces.empty())
      return base::unsupported("the archive holds no .etl file, nor another file that is a trace")
          .in(input_.name());
    return traces;
  }

private:
  // The member as an input, if it is a trace.
  Result<std::unique_ptr<Input>> trace_in(const zip::Member &member) {
    zip::MemberReader from(input_, member, chunk_);
    const InputName &name = from.name();
    if (is_name_of_compressed_trace(member.name))
      return base::unsupported("is compressed once more inside the archive")
          .in(name.text())
          .advise(Advice::unpack);
    const bool named = is_trace_name(member.name), other = is_name_of_something_else(member.name);
    Result<std::vector<std::uint8_t>> head = read(from, kTraceHead);
    if (!head && other && !from.input_failed() && unpacked_ <= most_) return std::unique_ptr<Input>();
    if (!head) return std::move(head).error();
    if (!named && !read_first_event(*head, name.text())) {
      // It may be a damaged trace: its checksum tells.
      while (!other && !head->empty()) {
        if (stop_.stop_requested()) return interrupted(name.text());
        head = read(from, kUnzipChunk);
        if (!head) return std::move(head).error();
      }
      return std::unique_ptr<Input>();
    }
    if (!names_.insert(member.name).second)
      return base::corrupt("the archive holds two traces of this name").in(name.text());
    ETWRELOG_TRY_LET(spool, base::Spool::create());
    while (!head->empty()) {
      ETWRELOG_TRY(spool.append(*head));
      if (stop_.stop_requested()) return interrupted(name.text());
      head = read(from, kUnzipChunk);
      if (!head) return std::move(head).error();
    }
    return std::move(spool).finish(name);
  }

  Result<std::vector<std::uint8_t>> read(zip::MemberReader &from, std::size_t count) {
    ETWRELOG_TRY_LET(bytes, from.read(count));
    unpacked_ += bytes.size();
    progress_.advance(bytes.size());
    if (unpacked_ > most_)
      return base::corrupt("the archive unpacks to more than it can hold")
          .in(from.name().text())
          .expected(fmt::format("at most {} bytes in all", most_))
          .found("more");
    return bytes;
  }

  static Error interrupted(const std::string &file) {
    return base::cancelled().in(file).found("while unpacking");
  }

  // Holds any header event.
  static constexpr std::size_t kTraceHead = (64u << 10) + format::kBufferHeaderSize;

  const Input &input_;
  const std::stop_token &stop_;
  base::ProgressMeter progress_;
  const UnzipLimits limits_;
  const std::uint64_t most_;
  std::uint64_t unpacked_ = 0;
  std::set<std::string> names_;
  std::vector<std::uint8_t> chunk_;
};

} // namespace

Result<std::vector<std::unique_ptr<Input>>> unzip(const Input &input, const RunOptions &run,
                                                  const UnzipLimits &limits) {
  return Unzipping(input, run, limits).run();
}

} // namespace etwrelog::read
