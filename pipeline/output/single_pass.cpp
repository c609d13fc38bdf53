#include "base/errors.hpp"
#include "output/buffer_filter.hpp"
#include "write/etl_writer.hpp"

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
    const Result<std::size_t> got = read(buffer);
    if (!got) return got.error();
    if (*got < kBufferHeaderSize) {
      if (*got != 0 && index_ != 0)
        warnings.push_back(fmt::format("{} bytes behind the last buffer: ignored", *got));
      buffer.resize(index_ == 0 ? *got : 0);
      return buffer;
    }
    if (std::ranges::all_of(buffer, [](std::uint8_t b) { return b == 0; })) {
      warnings.push_back(fmt::format("from 0x{:x} on the log was never written: ignored", at_));
      return std::vector<std::uint8_t>();
    }
    const BufferHeader header = load_buffer_header(buffer.data());
    const std::uint32_t nominal = index_ == 0 ? kMaxBufferSize : nominal_size;
    // How much is left of a stream is not known: a buffer that overruns it shows when it is read.
    ETWRELOG_TRY(read::check_buffer_header(header, at_, header.buffer_size, index_, nominal, name_));
    buffer.resize(header.buffer_size);
    const Result<std::size_t> rest = read(MutableBytes(buffer).subspan(kBufferHeaderSize));
    if (!rest) return rest.error();
    cut_ = *rest + kBufferHeaderSize < buffer.size();
    if (cut_) {
      buffer.resize(*rest + kBufferHeaderSize);
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

struct Held { // a decoded buffer that waits for its group to be complete
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
    Result<base::OutputFile> file = base::OutputFile::create(options_.output, options_.replace_output);
    if (!file) return std::move(file).error();
    file_ = std::move(*file);
    if (!options_.selection.everything())
      report_.warnings.push_back("filtered in a single pass, with the processes and threads known so far");
    for (;;) {
      Result<std::vector<std::uint8_t>> stored = stream_.next(header_.buffer_size, report_.warnings);
      if (!stored) return std::move(stored).error();
      if (!header_known_) {
        if (Result<void> opened = open(*stored); !opened)
          return opened; // also says what is wrong with no input
      } else if (stored->empty()) {
        break;
      }
      if (Result<void> taken = take(*stored); !taken) return taken;
      if (held_bytes_ >= kGroupBytes)
        if (Result<void> done = relog_group(); !done) return done;
    }
    if (Result<void> done = relog_group(); !done) return done;
    return finish();
  }

private:
  Result<void> open(Bytes first) {
    Result<LogfileHeader> header = read::read_first_event(first, name_);
    if (!header) return std::move(header).error();
    header_ = std::move(*header);
    header_known_ = true;
    clock_ = header_.clock();
    stamper_.emplace(clock_);
    nominal_ = options_.buffer_size != 0 ? options_.buffer_size
                                         : std::max(header_.buffer_size, kSmallestDefaultBufferSize);
    return check_nominal_size(nominal_);
  }

  Result<void> take(Bytes stored) {
    Held held;
    held.header = load_buffer_header(stored.data());
    held.at = stream_.last_offset();
    held.index = stream_.index();
    held.cut = stream_.cut();
    std::uint32_t decoded = read::decoded_size(held.header);
    if (held.index == 0) decoded = std::max(decoded, header_.event_size);
    const Bytes body = stored.subspan(kBufferHeaderSize);
    held.events.resize(align8(decoded));
    held.size = decoded;
    if (!held.header.compressed()) {
      held.size = std::min<std::size_t>(body.size(), decoded);
      std::copy_n(body.begin(), held.size, held.events.begin());
    } else if (held.cut) {
      held.size = decompress(codec_ == Codec::none ? Codec::xpress : codec_, body,
                             MutableBytes(held.events).first(decoded))
                      .produced;
    } else if (const auto codec = decode_events(codec_, body, MutableBytes(held.events).first(decoded))) {
      codec_ = *codec;
    } else {
      return base::corrupt(fmt::format("buffer {}: compressed data", held.index))
          .in(name_)
          .at(held.at + kBufferHeaderSize)
          .expected(fmt::format("{} bytes that decode to {}", body.size(), decoded))
          .found("data that no known codec decodes");
    }
    if (!options_.selection.everything() || options_.count) { // else nobody asks whose an event is
      const auto index = static_cast<std::uint32_t>(held.index);
      for_each_event(Bytes(held.events).first(held.size),
                     [&](const EventView &event, std::int64_t time, std::uint32_t) {
                       records_.add(event, time, index);
                     });
      processors_.push_back(held.header.processor());
    }
    held_bytes_ += held.events.size();
    held_.push_back(std::move(held));
    return {};
  }

  // Looks the processes up anew and relogs what is held.
  Result<void> relog_group() {
    const bool one_stream = (header_.log_file_mode & kModeOneStream) != 0;
    const filter::Lifetimes lifetimes(records_, processors_, one_stream);
    Result<filter::Filter> filter = filter::Filter::make(options_.selection, lifetimes, clock_, true);
    if (!filter) return std::move(filter).error();
    any_target_ = any_target_ || filter->targets().any_instance();
    const BufferFilter kept(*filter, lifetimes, options_.count);
    for (Held &held : held_)
      if (Result<void> done = relog_buffer(held, kept); !done) return done;
    held_.clear();
    held_bytes_ = 0;
    return {};
  }

  Result<void> relog_buffer(Held &held, const BufferFilter &kept) {
    const MutableBytes events = MutableBytes(held.events).first(held.size);
    std::vector<write::Run> runs;
    Counts counts;
    FilteredBuffer filtered =
        kept.begin(static_cast<std::uint32_t>(held.index), held.header.processor(), events, runs, counts);
    bool whole = true;
    const WalkEnd end =
        for_each_event(events, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
          whole = kept.take(event, time, at, filtered) && whole;
        });
    if (!end && !(held.cut && end.reason == WalkEnd::Reason::overrun))
      return base::corrupt(
                 fmt::format("buffer {}: no event at 0x{:x}", held.index, kBufferHeaderSize + end.at))
          .in(name_)
          .at(held.at)
          .advise(Advice::allow_spool);
    counts.add_to(report_);
    ++report_.input_buffers;
    if (held.index == 0) return open_output(events, runs);
    write::Origin origin;
    origin.processor = held.header.processor();
    origin.type = held.header.type;
    origin.lost_flags = held.header.flags & (kFlagEventsLost | kFlagBufferLost);
    origin.whole = whole;
    if (nominal_ == header_.buffer_size)
      origin.failed_reservation = write::failed_reservation(held.header, nominal_);
    closed_.clear();
    if (Result<void> added = rechunker_->add(origin, events, runs, closed_); !added) return added;
    return write_closed();
  }

  Result<void> open_output(Bytes events, std::span<const write::Run> runs) {
    const FirstBuffer first = split_first_buffer(events, header_.event_size, runs);
    // Whether the input is compressed shows with its second buffer at the earliest: it is held by now.
    const Codec codec = options_.codec.value_or(codec_ == Codec::none ? Codec::none : Codec::xpress);
    const bool compressed = codec != Codec::none;
    if (compressed) compressor_.emplace(codec, options_.level, nominal_);
    rechunker_.emplace(nominal_, false);
    last_time_ = first.last_time;
    Result<write::EtlWriter> writer =
        write::EtlWriter::create(std::move(file_), output_header(header_, nominal_, compressed),
                                 first.header_event, first.more_events, compressed);
    if (!writer) return std::move(writer).error();
    writer_.emplace(std::move(*writer));
    return {};
  }

  Result<void> write_closed() {
    for (write::OutputBuffer &buffer : closed_) {
      stamper_->stamp(buffer);
      last_time_ = std::max(last_time_, buffer.last_time);
      write::seal(buffer, nominal_, compressor_ ? &*compressor_ : nullptr, scratch_);
      if (Result<void> written = writer_->append(buffer); !written) return written;
    }
    return {};
  }

  Result<void> finish() {
    if (!any_target_) return base::no_match("no process of the trace is selected").in(name_);
    closed_.clear();
    rechunker_->flush(closed_);
    if (Result<void> written = write_closed(); !written) return written;
    if (followed_ != nullptr) ETWRELOG_TRY(take_last_header());
    if (Result<void> finished = writer_->finish(clock_.to_filetime(last_time_)); !finished) return finished;
    report_.input_bytes = stream_.offset();
    report_.output_bytes = writer_->size();
    report_.output_buffers = writer_->buffers();
    return {};
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
    writer_->replace_header(output_header(header, nominal_, compressor_.has_value()), event);
    return {};
  }

  std::string name_;
  BufferStream stream_;
  const read::FollowedFile *followed_;
  const RelogOptions &options_;
  RelogReport &report_;
  base::OutputFile file_;
  LogfileHeader header_;
  Clock clock_;
  bool header_known_ = false, any_target_ = false;
  std::uint32_t nominal_ = 0;
  Codec codec_ = Codec::none;
  filter::LifetimeRecords records_;
  std::vector<std::uint16_t> processors_;
  std::vector<Held> held_;
  std::size_t held_bytes_ = 0;
  std::optional<write::Stamper> stamper_;
  std::optional<write::Rechunker> rechunker_;
  std::optional<write::EtlWriter> writer_;
  std::optional<Compressor> compressor_;
  std::vector<write::OutputBuffer> closed_;
  std::vector<std::uint8_t> scratch_;
  std::int64_t last_time_ = 0;
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
