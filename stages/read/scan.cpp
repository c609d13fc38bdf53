#include "read/scan.hpp"

#include "base/errors.hpp"
#include "base/progress_meter.hpp"
#include "base/zeros.hpp"
#include "read/headers_ahead.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace etwrelog::read {

using namespace format;

namespace {

constexpr std::uint16_t kKnownFlags = 0x007F;

Error corrupt(const std::string &name, std::uint64_t offset, std::string what, std::string expected,
              std::string found) {
  return base::corrupt(std::move(what))
      .in(name)
      .at(offset)
      .expected(std::move(expected))
      .found(std::move(found));
}

Error no_trace(const std::string &name, std::uint64_t offset, std::string what, std::string expected,
               std::string found) {
  Error error = corrupt(name, offset, std::move(what), std::move(expected), std::move(found));
  error.advice = Advice::check_input;
  return error;
}

// Whether the fields that every real file keeps within narrow bounds are so.
bool plausible(const BufferHeader &header, std::uint32_t nominal_size) {
  return header.buffer_size >= kBufferHeaderSize && header.buffer_size <= nominal_size &&
         header.state <= kMaxBufferState && header.type <= kMaxBufferType &&
         (header.flags & ~kKnownFlags) == 0 && header.reference_count == 0 &&
         header.valid_bytes() >= kBufferHeaderSize && header.valid_bytes() <= nominal_size;
}

} // namespace

std::uint32_t decoded_size(const BufferHeader &header) {
  const std::uint32_t valid =
      header.compressed() ? header.valid_bytes() : std::min(header.buffer_size, header.valid_bytes());
  return valid > kBufferHeaderSize ? valid - static_cast<std::uint32_t>(kBufferHeaderSize) : 0u;
}

Result<void> check_buffer_header(const BufferHeader &header, std::uint64_t offset, std::uint64_t left,
                                 std::size_t index, std::uint32_t nominal_size, const std::string &name) {
  const std::string which = fmt::format("buffer {}: ", index);
  const std::uint32_t largest = std::max(nominal_size, kMaxBufferSize);
  if (header.buffer_size < kBufferHeaderSize || header.buffer_size > largest)
    return corrupt(name, offset, which + "BufferSize",
                   fmt::format("0x{:x}..0x{:x}", kBufferHeaderSize, largest),
                   fmt::format("0x{:x}", header.buffer_size));
  // A plausible header that overruns the end is the cut-off tail of a crash; anything else is damage.
  const bool may_be_cut =
      header.buffer_size <= nominal_size && (index == 0 || plausible(header, nominal_size));
  if (header.buffer_size > left && !may_be_cut)
    return corrupt(name, offset, which + "BufferSize",
                   fmt::format("at most the 0x{:x} bytes left in the file", left),
                   fmt::format("0x{:x}", header.buffer_size));
  if (header.compressed() &&
      (header.valid_bytes() < kBufferHeaderSize || header.valid_bytes() > kMaxBufferSize))
    return corrupt(name, offset + 4, which + "SavedOffset",
                   fmt::format("0x{:x}..0x{:x}", kBufferHeaderSize, kMaxBufferSize),
                   fmt::format("0x{:x}", header.valid_bytes()));
  return {};
}

namespace {

// The logfile header in events of which at most `room` bytes belong to the first buffer.
Result<LogfileHeader> logfile_header(Bytes events, std::size_t room, const std::string &name) {
  const std::uint32_t marker = load<std::uint32_t>(events.data());
  const std::uint32_t size = load<std::uint16_t>(events.data() + 4);
  const auto type = static_cast<HeaderType>(static_cast<std::uint8_t>(marker >> 16));
  if (marker >> 24 != kMarkerStructured || (type != HeaderType::system32 && type != HeaderType::system64))
    return no_trace(name, kBufferHeaderSize, "first event", "a SYSTEM header (0xC001.... or 0xC002....)",
                    fmt::format("0x{:08x}", marker));
  if (size < kSystemHeaderSize || size > events.size() || size > room)
    return no_trace(name, kBufferHeaderSize + 4, "logfile header: Size",
                    fmt::format("{}..{}", kSystemHeaderSize, std::min<std::size_t>(events.size(), room)),
                    fmt::format("{}", size));
  Result<LogfileHeader> header = read_logfile_header(EventView(events.data(), size, type));
  if (!header) {
    Error &error = header.error();
    error.file = name;
    error.offset = kBufferHeaderSize + error.offset.value_or(0);
    error.advice = Advice::check_input;
  }
  return header;
}

} // namespace

Result<LogfileHeader> salvage_first_event(Bytes head, const std::string &name) {
  if (head.size() < kBufferHeaderSize + kSystemHeaderSize) return read_first_event(head, name);
  Result<LogfileHeader> header = logfile_header(head.subspan(kBufferHeaderSize), SIZE_MAX, name);
  if (!header) {
    header.error().what += ": without the logfile header nothing tells how to read the rest";
    header.error().advice = Advice::none;
  }
  return header;
}

namespace {

// ", as a Windows event log (.evtx) begins": of files that stand beside traces and are taken for them.
std::string as_it_begins(Bytes head) {
  struct Kind {
    std::size_t at;
    std::string_view magic, name;
  };
  static constexpr Kind kKinds[] = {
      {0, "ElfFile", "a Windows event log (.evtx)"},
      {4, "LfLe", "a Windows event log (.evt)"},
      {4, "!FastSerialization", "PerfView's own file of a trace (.etlx)"},
      {0, "MDMP", "a crash dump"},
      {0, "PAGEDU", "a crash dump"},
      {0, "\x0A\x0D\x0D\x0A", "a network capture (.pcapng)"},
      {0, "\xD4\xC3\xB2\xA1", "a network capture (.pcap)"},
      {0, "Microsoft C/C++", "symbols (.pdb)"},
      {0, "SQLite format 3", "an SQLite database"},
      {0, "MZ", "a program or library"},
  };
  for (const Kind &kind : kKinds)
    if (head.size() >= kind.at + kind.magic.size() &&
        std::equal(kind.magic.begin(), kind.magic.end(), head.begin() + static_cast<std::ptrdiff_t>(kind.at),
                   [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }))
      return fmt::format(", as {} begins", kind.name);
  return {};
}

} // namespace

Result<LogfileHeader> read_first_event(Bytes head, const std::string &name) {
  if (head.empty()) return no_trace(name, 0, "the file is empty", "", "");
  if (head.size() < kBufferHeaderSize + kSystemHeaderSize)
    return no_trace(name, 0, "first buffer",
                    fmt::format("at least {} bytes", kBufferHeaderSize + kSystemHeaderSize),
                    fmt::format("{} bytes in all", head.size()));
  const BufferHeader buffer = load_buffer_header(head.data());
  if (buffer.buffer_size < kBufferHeaderSize + kSystemHeaderSize || buffer.buffer_size > kMaxBufferSize)
    return no_trace(name, 0, "first buffer: BufferSize",
                    fmt::format("0x{:x}..0x{:x}", kBufferHeaderSize + kSystemHeaderSize, kMaxBufferSize),
                    fmt::format("0x{:x}{}", buffer.buffer_size, as_it_begins(head)));
  if (buffer.compressed())
    return no_trace(name, 0x34, "first buffer: BufferFlag", "not compressed",
                    fmt::format("0x{:04x}", buffer.flags));
  const Bytes events = head.subspan(kBufferHeaderSize);
  Result<LogfileHeader> header = logfile_header(events, buffer.buffer_size - kBufferHeaderSize, name);
  if (header && buffer.valid_bytes() < kBufferHeaderSize + header->event_size)
    return no_trace(name, 0x04, "first buffer: SavedOffset and Offset",
                    fmt::format("one of at least 0x{:x}, where the logfile header ends",
                                kBufferHeaderSize + header->event_size),
                    fmt::format("0x{:x}", buffer.valid_bytes()));
  return header;
}

std::string missing_buffers_text(const LogfileHeader &header, std::uint64_t there) {
  return fmt::format("the session wrote {} buffers, and {} are there: the file was cut short, or part of it "
                     "is missing",
                     header.buffers_written, there);
}

std::string another_log_text(std::uint64_t offset) {
  return fmt::format(
      "another log begins at 0x{:x}, as where files were put one behind the other: its events are "
      "read with the clock and the ids of the first; make it a file of its own",
      offset);
}

namespace {

class Scanner {
public:
  Scanner(const Input &input, const ScanOptions &options)
      : input_(input), options_(options), progress_(options.progress) {}

  Result<Scan> run() {
    std::vector<std::uint8_t> head(kBufferHeaderSize + kMaxEventSize);
    ETWRELOG_TRY_LET(got, input_.read_at(0, head));
    Result<LogfileHeader> header = read_first_event(Bytes(head).first(got), input_.name());
    std::optional<Error> wrong;
    if (!header) {
      if (!options_.salvage) return std::move(header).error();
      ETWRELOG_TRY_LET(salvaged, salvage_first_event(Bytes(head).first(got), input_.name()));
      wrong = std::exchange(header, std::move(salvaged)).error();
    }
    scan_.header = std::move(*header);
    if (wrong) ETWRELOG_TRY(keep_first(*wrong));
    const bool compressed = (scan_.header.log_file_mode & kModeCompressed) != 0;
    ahead_.emplace(input_, scan_.header.buffer_size, compressed ? 1 : options_.threads);
    progress_.begin("opening", input_.size());
    while (at_ < input_.size()) {
      ETWRELOG_TRY(go_on());
      const std::uint64_t before = at_;
      ETWRELOG_TRY_LET(more, step());
      if (!more) break;
      progress_.advance(at_ - before);
    }
    if (!scan_.header.closed()) scan_.warnings.emplace_back(kNeverClosedText);
    if (scan_.header.missing_buffers(scan_.buffers.size()) != 0 && scan_.skipped.empty())
      scan_.warnings.push_back(missing_buffers_text(scan_.header, scan_.buffers.size()));
    if (another_log_) scan_.warnings.push_back(another_log_text(*another_log_));
    if ((scan_.header.log_file_mode & kModeCircular) != 0) unwrap_circular();
    return std::move(scan_);
  }

private:
  // Takes one buffer; false at the end.
  Result<bool> step() {
    const std::uint64_t left = input_.size() - at_;
    if (left < kBufferHeaderSize) {
      scan_.trailing_bytes = left;
      scan_.warnings.push_back(
          fmt::format("{} bytes behind the last buffer (from 0x{:x}) are too few for another: "
                      "ignored",
                      left, at_));
      return false;
    }
    HeadersAhead::Header raw{};
    if (const HeadersAhead::Header *const read = ahead_->find(at_))
      raw = *read;
    else
      ETWRELOG_TRY(base::read_whole(input_, at_, raw));
    const BufferHeader header = load_buffer_header(raw.data());
    if (base::all_zero(raw)) {
      ETWRELOG_TRY_LET(zeros, only_zeros(at_));
      if (zeros) {
        scan_.unwritten_bytes = left;
        scan_.warnings.push_back(
            fmt::format("the last {} bytes (from 0x{:x}) were never written: ignored", left, at_));
        return false;
      }
    }
    if (Result<void> sound = check_buffer_header(header, at_, left, scan_.buffers.size(),
                                                 scan_.header.buffer_size, input_.name());
        !sound) {
      if (!options_.salvage) return std::move(sound).error();
      if (!scan_.buffers.empty()) return resynchronise(sound.error());
      ETWRELOG_TRY(keep_first(sound.error()));
      return true;
    }
    const bool cut = header.buffer_size > left;
    BufferSpan span;
    span.offset = at_;
    span.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(header.buffer_size, left));
    span.cut = cut;
    span.compressed = header.compressed();
    span.processor = header.processor();
    span.time_stamp = header.time_stamp;
    span.decoded = decoded_size(header);
    // The header event was read whole: it is there whatever the first buffer claims of its length.
    if (scan_.buffers.empty()) span.decoded = std::max(span.decoded, scan_.header.event_size);
    if (header.type == kTypeHeader && !scan_.buffers.empty() && !another_log_) another_log_ = at_;
    scan_.buffers.push_back(span);
    sequences_.push_back(header.sequence_number);
    processors_.push_back(header.processor());
    if (cut)
      scan_.warnings.push_back(
          fmt::format("the last buffer (at 0x{:x}) is cut short: {} of {} bytes are there; read "
                      "to its last whole event",
                      at_, left, header.buffer_size));
    at_ += span.size;
    if (span.size != scan_.header.buffer_size) ahead_->give_up();
    return true;
  }

  // The first buffer without its header: from the logfile header, which was read, to the next plausible
  // buffer.
  Result<void> keep_first(const Error &why) {
    const std::uint64_t header_end = kBufferHeaderSize + align8(scan_.header.event_size);
    at_ = header_end - 1; // the logfile header begins with a BufferSize, too
    ETWRELOG_TRY_LET(next, find_next());
    at_ = 0;
    std::array<std::uint8_t, kBufferHeaderSize> raw{};
    if (const Result<std::size_t> got = input_.read_at(0, raw); !got) return got.error();
    const std::uint64_t nominal = std::max<std::uint64_t>(scan_.header.buffer_size, header_end);
    const std::uint64_t end = std::min(std::max(std::min(next, nominal), header_end), input_.size());
    BufferSpan span;
    span.rebuilt = true;
    span.size = static_cast<std::uint32_t>(end);
    const std::uint64_t valid = load_buffer_header(raw.data()).valid_bytes(); // may be what is right
    span.decoded =
        static_cast<std::uint32_t>((valid >= header_end && valid <= end ? valid : end) - kBufferHeaderSize);
    scan_.buffers.push_back(span);
    sequences_.push_back(0);
    processors_.push_back(0);
    skip_to(kBufferHeaderSize, why);
    at_ = end;
    return {};
  }

  // Steps byte by byte to the next plausible header and records what was passed over.
  Result<bool> resynchronise(const Error &why) {
    ETWRELOG_TRY_LET(next, find_next());
    skip_to(next, why);
    return next < input_.size();
  }

  [[nodiscard]] Result<void> go_on() const {
    if (options_.stop.stop_requested()) return base::cancelled().in(input_.name()).found("while opening");
    return {};
  }

  // Behind the current position; the input's size if there is none. The window grows with the gap: a file of
  // many small gaps costs no megabyte for each.
  Result<std::uint64_t> find_next() {
    for (std::uint64_t base = at_ + 1, size = kSmallWindow; base < input_.size();
         base += size, size = std::min<std::uint64_t>(size * 4, kLargeWindow)) {
      ETWRELOG_TRY(go_on());
      window_.resize(std::max<std::size_t>(window_.size(), size + kBufferHeaderSize));
      ETWRELOG_TRY_LET(got, input_.read_at(base, MutableBytes(window_).first(size + kBufferHeaderSize)));
      for (std::size_t i = 0; i < size && i + kBufferHeaderSize <= got; ++i) {
        const std::uint32_t buffer_size = load<std::uint32_t>(window_.data() + i);
        if (buffer_size < kBufferHeaderSize || buffer_size > scan_.header.buffer_size) continue;
        if (!plausible(load_buffer_header(window_.data() + i), scan_.header.buffer_size)) continue;
        return base + i;
      }
    }
    return input_.size();
  }

  void skip_to(std::uint64_t next, const Error &why) {
    scan_.skipped.push_back(
        {0, at_, next - at_, fmt::format("{}: expected {}, found {}", why.what, why.expected, why.found)});
    at_ = next;
  }

  Result<bool> only_zeros(std::uint64_t from) {
    for (std::uint64_t at = from, size = kSmallWindow; at < input_.size();
         at += size, size = std::min<std::uint64_t>(size * 4, kLargeWindow)) {
      ETWRELOG_TRY(go_on());
      window_.resize(std::max<std::size_t>(window_.size(), size));
      const MutableBytes some = MutableBytes(window_).first(std::min(size, input_.size() - at));
      ETWRELOG_TRY(base::read_whole(input_, at, some));
      if (!base::all_zero(some)) return false;
    }
    return true;
  }

  // The header buffer stays first.
  void unwrap_circular() {
    BufferNumbers numbers;
    for (std::size_t i = 1; i < sequences_.size(); ++i)
      if (numbers.stepped_back(processors_[i], sequences_[i])) scan_.wrapped = true;
    if (!scan_.wrapped || options_.file_order) return;
    std::vector<std::size_t> order(scan_.buffers.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::stable_sort(order.begin() + 1, order.end(),
                     [this](std::size_t a, std::size_t b) { return sequences_[a] < sequences_[b]; });
    std::vector<BufferSpan> sorted;
    sorted.reserve(order.size());
    for (const std::size_t i : order)
      sorted.push_back(scan_.buffers[i]);
    scan_.buffers = std::move(sorted);
  }

  static constexpr std::uint64_t kSmallWindow = 4u << 10, kLargeWindow = 1u << 20;

  const Input &input_;
  const ScanOptions &options_;
  base::ProgressMeter progress_;
  Scan scan_;
  std::vector<std::uint8_t> window_;
  std::uint64_t at_ = 0;
  std::optional<HeadersAhead> ahead_;
  std::optional<std::uint64_t> another_log_; // where it begins
  std::vector<std::int64_t> sequences_;
  std::vector<std::uint16_t> processors_;
};

} // namespace

Result<Scan> scan_buffers(const Input &input, const ScanOptions &options) {
  return Scanner(input, options).run();
}

} // namespace etwrelog::read
