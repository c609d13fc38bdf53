#include "base/errors.hpp"
#include "base/zeros.hpp"
#include "output/buffer_filter.hpp"
#include "output/trace_output.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace format;

namespace {

constexpr std::size_t kGroupBytes = 4u << 20; // decoded; processes are looked up anew after so much

// Takes whole buffers off a stream.
class BufferStream {
public:
  BufferStream(ByteStream &bytes, std::string name, std::stop_token stop)
      : bytes_(bytes), name_(std::move(name)), stop_(std::move(stop)) {}

  // The next buffer, stored form with its header; empty at the end.
  Result<std::vector<std::uint8_t>> next(std::uint32_t nominal_size, std::vector<std::string> &warnings) {
    std::vector<std::uint8_t> buffer(kBufferHeaderSize);
    ETWRELOG_TRY_LET(got, read(buffer));
    if (got < kBufferHeaderSize) {
      if (got != 0 && index_ != 0)
        warnings.push_back(fmt::format("{} bytes behind the last buffer: ignored", got));
      buffer.resize(index_ == 0 ? got : 0);
      return buffer;
    }
    if (base::all_zero(buffer)) {
      ETWRELOG_TRY_LET(zeros, only_zeros_left());
      if (zeros) {
        warnings.push_back(fmt::format("from 0x{:x} on the log was never written: ignored", at_));
        return std::vector<std::uint8_t>();
      }
    }
    const BufferHeader header = load_buffer_header(buffer.data());
    const std::uint32_t nominal = index_ == 0 ? kMaxBufferSize : nominal_size;
    // How much is left of a stream is not known: a buffer that overruns it shows when it is read.
    ETWRELOG_TRY(read::check_buffer_header(header, at_, header.buffer_size, index_, nominal, name_));
    buffer.resize(header.buffer_size);
    ETWRELOG_TRY_LET(rest, read(MutableBytes(buffer).subspan(kBufferHeaderSize)));
    cut_ = rest + kBufferHeaderSize < buffer.size();
    if (cut_) {
      ETWRELOG_TRY(read::check_buffer_header(header, at_, kBufferHeaderSize + rest, index_, nominal, name_));
      buffer.resize(rest + kBufferHeaderSize);
      warnings.push_back(
          fmt::format("the last buffer (at 0x{:x}) is cut short: read to its last whole event", at_));
    }
    last_at_ = at_;
    at_ += buffer.size();
    ++index_;
    return buffer;
  }

  [[nodiscard]] std::uint64_t offset() const { return at_; }
  [[nodiscard]] std::uint64_t last_offset() const { return last_at_; }
  [[nodiscard]] std::size_t index() const { return index_ - 1; }
  [[nodiscard]] bool cut() const { return cut_; }

private:
  // Takes what is left, up to something else.
  Result<bool> only_zeros_left() {
    for (std::vector<std::uint8_t> chunk(1u << 16);;) {
      ETWRELOG_TRY_LET(got, read(chunk));
      if (!base::all_zero(Bytes(chunk).first(got))) return false;
      if (got < chunk.size()) return true;
    }
  }
  Result<std::size_t> read(MutableBytes into) {
    std::size_t done = 0;
    while (done < into.size()) {
      if (stop_.stop_requested()) return base::cancelled().in(name_);
      ETWRELOG_TRY_LET(got, bytes_.read(into.subspan(done)));
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  ByteStream &bytes_;
  std::string name_;
  std::stop_token stop_;
  std::uint64_t at_ = 0, last_at_ = 0;
  std::size_t index_ = 0;
  bool cut_ = false;
};

// A decoded buffer; it waits for its group to be complete.
struct Waiting {
  BufferHeader header;
  std::uint64_t at = 0;
  std::size_t index = 0;
  bool cut = false;
  std::vector<std::uint8_t> events; // with room up to the next multiple of 8
  std::size_t size = 0;
};

class SinglePass {
public:
  SinglePass(ByteStream &input, const std::string &name, const read::FollowedFile *followed,
             const RelogOptions &options, RelogReport &report)
      : name_(name), stream_(input, name, options.graph.stop), followed_(followed), options_(options),
        report_(report) {}

  Result<void> run() {
    ETWRELOG_TRY_LET(output, TraceOutput::create(options_));
    output_.emplace(std::move(output));
    if (!options_.selection.everything())
      report_.warnings.push_back("filtered in a single pass, with the processes and threads known so far");
    for (;;) {
      ETWRELOG_TRY_LET(stored, stream_.next(header_.buffer_size, report_.warnings));
      if (!header_known_)
        ETWRELOG_TRY(open(stored)); // also says what is wrong with no input
      else if (stored.empty())
        break;
      ETWRELOG_TRY(take(stored));
      if (group_bytes_ >= kGroupBytes) ETWRELOG_TRY(relog_group());
    }
    ETWRELOG_TRY(relog_group());
    return finish();
  }

private:
  Result<void> open(Bytes first) {
    ETWRELOG_TRY_LET(header, read::read_first_event(first, name_));
    header_ = std::move(header);
    header_known_ = true;
    nominal_ = nominal_size(header_.buffer_size, options_);
    return check_nominal_size(nominal_, options_);
  }

  Result<void> take(Bytes stored) {
    Waiting buffer;
    buffer.header = load_buffer_header(stored.data());
    buffer.at = stream_.last_offset();
    buffer.index = stream_.index();
    buffer.cut = stream_.cut();
    if ((header_.log_file_mode & kModeCircular) != 0 && buffer.index != 0) ETWRELOG_TRY(check_order(buffer));
    if (buffer.header.type == kTypeHeader && buffer.index != 0 && !another_log_) {
      another_log_ = true;
      report_.warnings.push_back(read::another_log_text(buffer.at));
    }
    std::uint32_t decoded = read::decoded_size(buffer.header);
    if (buffer.index == 0) decoded = std::max(decoded, header_.event_size);
    const Bytes body = stored.subspan(kBufferHeaderSize);
    buffer.events.resize(align8(decoded));
    buffer.size = decoded;
    if (!buffer.header.compressed()) {
      buffer.size = std::min<std::size_t>(body.size(), decoded);
      std::copy_n(body.begin(), buffer.size, buffer.events.begin());
    } else if (buffer.cut) {
      buffer.size = decompress(codec_ == Codec::none ? Codec::xpress : codec_, body,
                               MutableBytes(buffer.events).first(decoded))
                        .produced;
    } else if (const auto codec = decode_events(codec_, body, MutableBytes(buffer.events).first(decoded))) {
      codec_ = *codec;
    } else {
      return base::corrupt(fmt::format("buffer {}: compressed data", buffer.index))
          .in(name_)
          .at(buffer.at + kBufferHeaderSize)
          .expected(fmt::format("{} bytes that decode to {}", body.size(), decoded))
          .found("data that no known codec decodes");
    }
    last_incomplete_ = buffer.cut && buffer.size < decoded;
    if (!options_.selection.everything() || options_.count) { // else nobody asks whose an event is
      const auto index = static_cast<std::uint32_t>(buffer.index);
      for_each_event(
          Bytes(buffer.events).first(buffer.size),
          [&](const EventView &event, std::int64_t time, std::uint32_t) { records_.add(event, time, index); },
          header_.first_stamp);
      processors_.push_back(buffer.header.processor());
    }
    group_bytes_ += buffer.events.size();
    group_.push_back(std::move(buffer));
    return {};
  }

  // The oldest buffer of a circular log that ran over its size is only found in a file.
  Result<void> check_order(const Waiting &buffer) {
    const auto before = numbers_.stepped_back(buffer.header.processor(), buffer.header.sequence_number);
    if (!before) return {};
    return base::unsupported("a single pass over a circular log that ran over its size")
        .in(name_)
        .at(buffer.at)
        .expected(
            fmt::format("a buffer behind number {} of processor {}", *before, buffer.header.processor()))
        .found(fmt::format("number {}", buffer.header.sequence_number))
        .advise(Advice::allow_spool);
  }

  // Looks the processes up anew and relogs what waits.
  Result<void> relog_group() {
    const bool one_stream = (header_.log_file_mode & kModeOneStream) != 0;
    const filter::Lifetimes lifetimes(records_, processors_, one_stream);
    ETWRELOG_TRY_LET(filter, filter::Filter::make(options_.selection, lifetimes, header_.clock(), true));
    any_target_ = any_target_ || filter.targets().any_instance();
    const BufferFilter kept(filter, lifetimes, options_.count);
    for (Waiting &buffer : group_)
      ETWRELOG_TRY(relog_buffer(buffer, kept));
    group_.clear();
    group_bytes_ = 0;
    return {};
  }

  Result<void> relog_buffer(Waiting &buffer, const BufferFilter &kept) {
    const MutableBytes events = MutableBytes(buffer.events).first(buffer.size);
    std::vector<write::Run> runs;
    Counts counts;
    FilteredBuffer filtered =
        kept.begin(static_cast<std::uint32_t>(buffer.index), buffer.header.processor(), events, runs, counts);
    bool whole = true;
    const WalkEnd end = for_each_event(
        events,
        [&](const EventView &event, std::int64_t time, std::uint32_t at) {
          whole = kept.take(event, time, at, filtered) && whole;
        },
        header_.first_stamp);
    if (!end && !(buffer.cut && end.reason == WalkEnd::Reason::overrun))
      return base::corrupt(
                 fmt::format("buffer {}: no event at 0x{:x}", buffer.index, kBufferHeaderSize + end.at))
          .in(name_)
          .at(buffer.at)
          .advise(Advice::allow_spool);
    counts.add_to(report_);
    ++report_.input_buffers;
    // Whether the input is compressed shows with its second buffer at the earliest: it waits by now.
    if (buffer.index == 0)
      return output_->begin(header_, nominal_, codec_,
                            split_first_buffer(buffer.header, events, header_.event_size, runs));
    ETWRELOG_TRY(output_->buffers().fill(output_->origin_of(buffer.header, whole), events, runs, out_));
    return output_->buffers().put(out_);
  }

  Result<void> finish() {
    if (!any_target_) return base::no_match("no process of the trace is selected").in(name_);
    if (followed_ != nullptr)
      ETWRELOG_TRY(take_last_header());
    else if (!header_.closed())
      report_.warnings.emplace_back(read::kNeverClosedText);
    const std::uint64_t missing = header_.missing_buffers(report_.input_buffers);
    if (missing != 0) report_.warnings.push_back(read::missing_buffers_text(header_, report_.input_buffers));
    report_.input_bytes = stream_.offset();
    return output_->finish(report_, missing + (last_incomplete_ ? 1 : 0));
  }

  // The session completes its header event when it ends.
  Result<void> take_last_header() {
    if (!followed_->closed()) {
      report_.warnings.push_back("the session was still writing: end time and lost counts are unknown, and "
                                 "what it wrote later is not in the output");
      return {};
    }
    ETWRELOG_TRY_LET(first, followed_->first_buffer());
    ETWRELOG_TRY_LET(header, read::read_first_event(first, name_));
    const Bytes event = Bytes(first).subspan(kBufferHeaderSize).first(header.event_size);
    output_->replace_header(header, event);
    header_ = std::move(header);
    return {};
  }

  std::string name_;
  BufferStream stream_;
  const read::FollowedFile *followed_;
  const RelogOptions &options_;
  RelogReport &report_;
  LogfileHeader header_;
  bool header_known_ = false, any_target_ = false, last_incomplete_ = false, another_log_ = false;
  std::uint32_t nominal_ = 0;
  Codec codec_ = Codec::none;
  filter::LifetimeRecords records_;
  std::vector<std::uint16_t> processors_;
  read::BufferNumbers numbers_;
  std::vector<Waiting> group_;
  std::size_t group_bytes_ = 0;
  std::optional<TraceOutput> output_;
  write::Outgoing out_;
};

} // namespace

Result<void> relog_stream(ByteStream &input, const std::string &name, const read::FollowedFile *followed,
                          const RelogOptions &options, RelogReport &report) {
  const auto began = std::chrono::steady_clock::now();
  Result<void> done = SinglePass(input, name, followed, options, report).run();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return done;
}

} // namespace etwrelog::pipeline
