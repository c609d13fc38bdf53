#include "deliver.hpp"

namespace etwrelog::consumer {

namespace {

std::uint32_t call_back(Session &session) {
  EVENT_TRACE_LOGFILEW &logfile = session.logfile;
  if (!session.narrow) return logfile.BufferCallback(&logfile);
  static_assert(sizeof(EVENT_TRACE_LOGFILEA) == sizeof logfile);
  return reinterpret_cast<PEVENT_TRACE_BUFFER_CALLBACKA>(logfile.BufferCallback)(
      reinterpret_cast<EVENT_TRACE_LOGFILEA *>(&logfile));
}

} // namespace

Delivery::Delivery(std::span<const std::shared_ptr<Session>> sessions, const Trace &trace,
                   std::stop_token ending)
    : clock_(trace.clock()), ending_(std::move(ending)) {
  for (const auto &session : sessions) {
    session->logfile.BuffersRead = 0;
    const auto callback =
        session->records ? reinterpret_cast<std::uintptr_t>(session->logfile.Callback.EventRecordCallback)
                         : reinterpret_cast<std::uintptr_t>(session->logfile.Callback.EventCallback);
    TraceLoggingDescriber &describer = describers_[{callback, session->logfile.Context}];
    for (std::size_t i = 0; i < session->trace.sources().size(); ++i) { // several in one .zip
      Stream &stream = streams_.emplace_back();
      stream.session = session.get();
      stream.source = &trace.sources()[streams_.size() - 1];
      stream.describer = &describer;
    }
  }
}

bool Delivery::end_buffer(Stream &stream, Open &open) {
  open.any = false;
  EVENT_TRACE_LOGFILEW &logfile = stream.session->logfile;
  ++logfile.BuffersRead;
  logfile.Filled = open.filled;
  logfile.CurrentTime = stream.source->clock.to_filetime(open.last_time);
  if (logfile.BufferCallback == nullptr || call_back(*stream.session) != 0) return true;
  cancelled_ = true;
  return false;
}

void Delivery::call(Stream &stream, EVENT_RECORD &record, const EventView &event) {
  EVENT_TRACE_LOGFILEW &logfile = stream.session->logfile;
  if (stream.session->records) {
    if (logfile.Callback.EventRecordCallback != nullptr) logfile.Callback.EventRecordCallback(&record);
  } else {
    fill_classic(logfile.CurrentEvent, record, event);
    if (logfile.Callback.EventCallback != nullptr) logfile.Callback.EventCallback(&logfile.CurrentEvent);
  }
}

bool Delivery::deliver(const Event &event) {
  const Position &at = event.position();
  Stream &stream = streams_[at.source];
  if (event.processor() >= stream.buffers.size()) stream.buffers.resize(event.processor() + 1u);
  Open &open = stream.buffers[event.processor()];
  if (open.any && open.buffer != at.buffer && !end_buffer(stream, open)) return false;

  // In the source's clock; of an event without a time its predecessor's, or the moment that the trace has.
  const std::int64_t raw = event.has_time() ? event.header_time()
                           : open.any       ? open.last_time
                                      : stream.source->clock.from_filetime(clock_.to_filetime(event.time()));
  open = {at.buffer, static_cast<std::uint32_t>(format::kBufferHeaderSize + at.offset + event.size()), raw,
          true};

  const Session &session = *stream.session;
  const RecordContext context{session.raw_times ? raw : stream.source->clock.to_filetime(raw),
                              event.processor(), session.private_session, session.logfile.Context};
  if (maker_.fill(record_, event, context)) {
    if (session.describe_tracelogging && record_.ExtendedDataCount != 0)
      if (EVENT_RECORD *info = stream.describer->before(record_)) call(stream, *info, event);
    call(stream, record_, event);
  }
  return !ending_.stop_requested();
}

bool Delivery::finish() {
  for (Stream &stream : streams_)
    for (Open &open : stream.buffers)
      if (open.any && !end_buffer(stream, open)) return false;
  return true;
}

} // namespace etwrelog::consumer
