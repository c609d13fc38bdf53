#include "handles.hpp"

#include <optional>

struct etwr_cursor {
  etwr_cursor(const etwrelog::Trace &trace, etwrelog::Query query, std::optional<etwrelog::Filter> selected,
              const etwr_run *options)
      : run(options, etwrelog::c::Run::Asks::with_progress), filter(std::move(selected)),
        events(trace.events(filtered(query), run.options())) {}

  etwrelog::Query &filtered(etwrelog::Query &query) {
    if (filter) query.filter = &*filter;
    return query;
  }

  etwrelog::c::Run run; // outlives what it stops
  std::optional<etwrelog::Filter> filter;
  etwrelog::EventCursor events;
  etwr_event event{};
};

namespace etwrelog::c {
namespace {

std::uint8_t kind_of(const EventView &event) {
  if (event.is_event()) return ETWR_EVENT_MANIFEST;
  if (event.has_hook()) return ETWR_EVENT_KERNEL;
  if (event.is_classic()) return ETWR_EVENT_CLASSIC;
  return event.is_message() ? ETWR_EVENT_WPP : ETWR_EVENT_OTHER;
}

void fill(etwr_event &out, const Event &event) {
  out.time = event.time();
  store_guid(out.provider, event.provider());
  store_guid(out.activity, event.activity());
  out.keyword = event.keyword();
  out.process_id = event.process_id();
  out.thread_id = event.thread_id();
  out.id = event.id();
  out.version = event.version();
  out.task = event.task();
  out.processor = event.processor();
  out.opcode = event.opcode();
  out.level = event.level();
  out.channel = event.channel();
  out.pointer_size = static_cast<std::uint8_t>(event.pointer_size());
  out.kind = kind_of(event);
  out.header_type = static_cast<std::uint8_t>(event.type());
  out.source = event.position().source;
  out.buffer = event.position().buffer;
  out.offset = event.position().offset;
  out.machine = event.machine();
  out.bytes = event.bytes().data();
  out.size = event.size();
  const Bytes payload = event.payload();
  out.payload = payload.data();
  out.payload_size = payload.size();
}

etwr_error *read_query(const etwr_query *given, Query &query) {
  const etwr_query asked = copy_of(given);
  bool good = true;
  for (const Guid &guid : guids_of(asked.providers, asked.provider_count, good))
    query.kinds.add_provider(guid);
  for (const std::uint16_t hook : list_of<std::uint16_t>(asked.hooks, asked.hook_count, good))
    query.kinds.add_kernel(hook);
  if (!good) return usage("etwr_events: a count without a list");
  query.with_state = asked.with_state != 0;
  if (etwr_error *error = read_moment(asked.from, query.from)) return error;
  return read_moment(asked.to, query.to);
}

} // namespace
} // namespace etwrelog::c

using namespace etwrelog;

etwr_error *etwr_events(const etwr_trace *trace, int order, const etwr_query *query, const etwr_run *run,
                        etwr_cursor **cursor) {
  return c::guarded([&]() -> etwr_error * {
    if (trace == nullptr || cursor == nullptr) return c::usage("etwr_events: no trace or no result");
    if (order != ETWR_ORDER_FILE && order != ETWR_ORDER_TIME) return c::usage("etwr_events: no such order");
    Query asked;
    asked.order = order == ETWR_ORDER_TIME ? Order::time : Order::file;
    if (etwr_error *error = c::read_query(query, asked)) return error;
    std::optional<Filter> filter;
    if (const etwr_selection *selection = c::copy_of(query).selection) {
      Selection selected;
      const c::Run in_run(run);
      if (etwr_error *error = c::read_selection(selection, trace->trace, {}, in_run.options(), selected))
        return error;
      Result<Filter> prepared = Filter::prepare(trace->trace, selected, in_run.options());
      if (!prepared) return c::make_error(std::move(prepared).error());
      filter = *std::move(prepared);
    }
    *cursor = new etwr_cursor(trace->trace, asked, std::move(filter), run);
    return nullptr;
  });
}

etwr_error *etwr_cursor_status(const etwr_cursor *cursor) {
  return c::guarded([&]() -> etwr_error * {
    if (cursor == nullptr) return c::usage("etwr_cursor_status: no cursor");
    const Result<void> &status = cursor->events.status();
    return status ? nullptr : c::make_error(status.error());
  });
}

int etwr_next(etwr_cursor *cursor, const etwr_event **event, etwr_error **error) {
  if (error != nullptr) *error = nullptr;
  const Event *next = nullptr;
  etwr_error *failed = c::guarded([&]() -> etwr_error * {
    next = cursor->events.next();
    return next != nullptr || error == nullptr ? nullptr : etwr_cursor_status(cursor);
  });
  if (next == nullptr) {
    if (error != nullptr)
      *error = failed;
    else
      etwr_error_free(failed);
    return 0;
  }
  cursor->event.struct_size = sizeof cursor->event;
  c::fill(cursor->event, *next);
  *event = &cursor->event;
  return 1;
}

void etwr_cursor_free(etwr_cursor *cursor) {
  delete cursor;
}

int etwr_event_item(const etwr_event *event, std::size_t *at, std::uint16_t *type, const std::uint8_t **data,
                    std::size_t *size) {
  constexpr std::size_t kNoMore = SIZE_MAX;
  const EventView view = c::view_of(*event);
  if (!view.has_items() || *at >= view.size()) return 0;
  const std::size_t from = *at == 0 ? view.layout().header_size : *at;
  ExtendedItems items(view.bytes().subspan(from));
  ExtendedItem item;
  if (!items.next(item)) return 0;
  const bool more = (load<std::uint16_t>(event->bytes + from + format::kItemLinkageAt) & 1) != 0;
  *at = more ? event->size - items.rest().size() : kNoMore;
  *type = static_cast<std::uint16_t>(item.type);
  *data = item.data.data();
  *size = item.data.size();
  return 1;
}
