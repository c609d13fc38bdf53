#include "tests/support/synthetic_trace.hpp"

#include <algorithm>

namespace etwrelog::testing {

using namespace format;
using write::EventBuilder;

namespace {

constexpr std::uint32_t kSid[] = {21, 1, 2, 3, 1001};

void put_process(EventBuilder &e, std::uint32_t pid, std::uint32_t parent, std::string_view name,
                 std::string_view command_line) {
  e.value(0xFFFF'9000'0000'0000ull + pid)
      .value(pid)
      .value(parent)
      .value(1)
      .value(259)
      .value(0x1AD000)
      .value(0);
  e.user(5, kSid, 0xFFFF'A000'0000'0000ull).text(name).text(command_line).rest(2);
}

} // namespace

SyntheticTrace::SyntheticTrace(TraceOptions options) : options_(options) {
  header_.buffer_size = options.buffer_size;
  header_.major = 10;
  header_.minor = 0;
  header_.provider_version = 19045;
  header_.processors = options.processors;
  header_.timer_resolution = 156250;
  header_.log_file_mode = options.mode | (options.codec == Codec::none ? 0u : std::uint32_t{kModeCompressed});
  header_.pointer_size = options.pointer_size;
  header_.events_lost = options.events_lost;
  header_.cpu_mhz = options.cpu_mhz;
  header_.boot_time = options.start_time - kFiletimePerSecond * 3600;
  header_.perf_freq = options.perf_freq;
  header_.start_time = options.start_time;
  header_.clock_type = static_cast<std::uint32_t>(options.clock);
  header_.session_name = "Synthetic";
  header_.file_name = "C:\\synthetic.etl";
  header_.first_stamp = options.first_stamp;
  header_.end_time = options.closed ? options.start_time + 60 * kFiletimePerSecond : 0;
  set_log_version(header_, options.codec != Codec::none);
}

std::size_t SyntheticTrace::append(std::uint16_t processor, std::vector<std::uint8_t> bytes,
                                   std::uint32_t size) {
  events_.emplace_back(bytes.begin(), bytes.begin() + size);
  if (in_first_) {
    first_events_.insert(first_events_.end(), bytes.begin(), bytes.end());
    return events_.size() - 1;
  }
  while (open_.size() <= processor)
    open_.push_back({static_cast<std::uint16_t>(open_.size()), {}, {}, {}, 0, {}});
  if (kBufferHeaderSize + open_[processor].events.size() + bytes.size() > options_.buffer_size)
    end_buffer(processor);
  std::vector<std::uint8_t> &to = open_[processor].events;
  to.insert(to.end(), bytes.begin(), bytes.end());
  return events_.size() - 1;
}

SyntheticBuffer &SyntheticTrace::end_buffer(std::uint16_t processor) {
  while (open_.size() <= processor)
    open_.push_back({static_cast<std::uint16_t>(open_.size()), {}, {}, {}, 0, {}});
  closed_.push_back(std::move(open_[processor]));
  open_[processor] = {processor, {}, {}, {}, 0, {}};
  return closed_.back();
}

std::vector<std::uint8_t> SyntheticTrace::bytes() const {
  std::vector<SyntheticBuffer> all = closed_;
  std::copy_if(open_.begin(), open_.end(), std::back_inserter(all),
               [](const auto &b) { return !b.events.empty(); });

  LogfileHeader header = header_;
  if (options_.closed && header.buffers_written == 0)
    header.buffers_written = static_cast<std::uint32_t>(all.size() + 1);
  std::vector<std::uint8_t> first = make_logfile_header(header, 1, 2);
  first.resize(align8(first.size()));
  const auto header_end = static_cast<std::uint32_t>(kBufferHeaderSize + first.size());
  first.insert(first.end(), first_events_.begin(), first_events_.end());

  std::vector<std::uint8_t> file;
  auto lay = [&file](BufferHeader h, Bytes content, std::uint32_t size,
                     const std::function<void(BufferHeader &)> &tweak) {
    h.buffer_size = size;
    if (tweak) tweak(h);
    const std::size_t at = file.size();
    file.resize(at + kBufferHeaderSize);
    store_buffer_header(file.data() + at, h);
    file.insert(file.end(), content.begin(), content.end());
    file.resize(at + size, kFillByte);
  };
  const std::uint16_t index_flag = options_.windows7 ? std::uint16_t{0} : std::uint16_t{kFlagProcessorIndex};
  const std::uint16_t index_base = options_.windows7 ? std::uint16_t{0x800} : std::uint16_t{0};

  BufferHeader h;
  const auto first_end = static_cast<std::uint32_t>(kBufferHeaderSize + first.size());
  h.filled_bytes = h.current_offset = first_end;
  h.saved_offset = options_.windows7 ? 0 : options_.short_saved_offset ? header_end : first_end;
  h.client_context = index_base;
  h.logger_id = 17;
  h.state = kStateFlush;
  h.flags = static_cast<std::uint16_t>(index_flag | kFlagFlushMarker);
  h.type = kTypeHeader;
  lay(h, first, std::max(options_.buffer_size, first_end), {});

  for (std::size_t i = 0; i < all.size(); ++i) {
    const SyntheticBuffer &buffer = all[i];
    h = {};
    h.saved_offset = h.filled_bytes = static_cast<std::uint32_t>(kBufferHeaderSize + buffer.events.size());
    h.current_offset = h.saved_offset + options_.buffer_size;
    h.time_stamp = static_cast<std::int64_t>(i) + 1;
    h.sequence_number = buffer.sequence.value_or(static_cast<std::int64_t>(i) + 1);
    h.client_context = static_cast<std::uint16_t>(index_base + buffer.processor);
    h.logger_id = 17;
    h.state = kStateFlush;
    h.flags = index_flag;
    if (i + 1 == all.size() && options_.closed) h.flags |= kFlagFlushMarker;
    h.type = buffer.type;
    const Codec codec = buffer.codec.value_or(options_.codec);
    std::vector<std::uint8_t> packed(buffer.events.size() + buffer.events.size() / 8 + 1024);
    if (codec != Codec::none) {
      Compressor compressor(codec, Level::normal, buffer.events.size());
      const CodecResult result = compressor.compress(buffer.events, packed);
      packed.resize(result.produced);
      h.flags |= kFlagCompressed;
      lay(h, packed, static_cast<std::uint32_t>(kBufferHeaderSize + packed.size()), buffer.tweak);
    } else {
      lay(h, buffer.events, std::max(options_.buffer_size, h.saved_offset), buffer.tweak);
    }
  }
  return file;
}

std::size_t SyntheticTrace::raw(At at, std::vector<std::uint8_t> bytes, std::uint32_t size) {
  bytes.resize(align8(bytes.size()));
  return append(at.processor, std::move(bytes), size);
}

// --- Processes, threads, images

std::size_t SyntheticTrace::process_start(At at, std::uint32_t pid, std::uint32_t parent,
                                          std::string_view name, std::string_view command_line,
                                          std::uint32_t creator_thread) {
  return emit(at, [&](EventBuilder &e) {
    e.system(0x0301, 4, options_.pointer_size, creator_thread, parent, at.time);
    put_process(e, pid, parent, name, command_line);
  });
}
std::size_t SyntheticTrace::process_end(At at, std::uint32_t pid, std::string_view name,
                                        std::uint32_t thread) {
  return emit(at, [&](EventBuilder &e) {
    e.system(0x0302, 4, options_.pointer_size, thread, pid, at.time);
    put_process(e, pid, 4, name, "");
  });
}
std::size_t SyntheticTrace::process_rundown(At at, std::uint32_t pid, std::uint32_t parent,
                                            std::string_view name, std::string_view command_line,
                                            bool at_end) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(at_end ? 0x0304 : 0x0303, 4, options_.pointer_size, at.time);
    put_process(e, pid, parent, name, command_line);
  });
}
std::size_t SyntheticTrace::thread_start(At at, std::uint32_t tid, std::uint32_t pid,
                                         std::uint32_t creator_thread, std::uint32_t creator_process) {
  return emit(at, [&](EventBuilder &e) {
    e.system(0x0501, 3, options_.pointer_size, creator_thread, creator_process, at.time)
        .value(pid)
        .value(tid)
        .rest();
  });
}
std::size_t SyntheticTrace::thread_end(At at, std::uint32_t tid, std::uint32_t pid) {
  return emit(at, [&](EventBuilder &e) {
    e.system(0x0502, 3, options_.pointer_size, tid, pid, at.time).value(pid).value(tid).rest();
  });
}
std::size_t SyntheticTrace::thread_rundown(At at, std::uint32_t tid, std::uint32_t pid, bool at_end) {
  return emit(at, [&](EventBuilder &e) {
    e.system(at_end ? 0x0504 : 0x0503, 3, options_.pointer_size, tid, pid, at.time)
        .value(pid)
        .value(tid)
        .rest();
  });
}
std::size_t SyntheticTrace::image_load(At at, std::uint32_t pid, std::uint64_t base, std::uint32_t tid,
                                       bool unload) {
  return emit(at, [&](EventBuilder &e) {
    e.system(unload ? 0x1402 : 0x030A, 3, options_.pointer_size, tid, pid, at.time);
    e.value(base).value(0x10000).value(pid).rest(10).text("\\Device\\a.dll");
  });
}
std::size_t SyntheticTrace::image_rundown(At at, std::uint32_t pid, std::uint64_t base, bool at_end) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(at_end ? 0x1404 : 0x1403, 3, options_.pointer_size, at.time);
    e.value(base).value(0x10000).value(pid).rest(10).text("\\Device\\a.dll");
  });
}

// --- Scheduler, interrupts

std::size_t SyntheticTrace::sample(At at, std::uint32_t tid, std::uint64_t address) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(0x0F2E, 2, options_.pointer_size, at.time).value(address).value(tid).value(1).value(0x40);
  });
}
std::size_t SyntheticTrace::context_switch(At at, std::uint32_t new_thread, std::uint32_t old_thread) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(0x0524, 4, options_.pointer_size, at.time).value(new_thread).value(old_thread).rest();
  });
}
std::size_t SyntheticTrace::switch_batch(At at, Frames threads) {
  threads.resize(16);
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(0x0525, 2, options_.pointer_size, at.time).value(static_cast<std::uint64_t>(at.time));
    for (const std::uint64_t tid : threads)
      e.put(static_cast<std::uint32_t>(tid));
    e.zeros(16 + 8);
  });
}
std::size_t SyntheticTrace::ready_thread(At at, std::uint32_t tid) {
  return emit(
      at, [&](EventBuilder &e) { e.perfinfo(0x0532, 2, options_.pointer_size, at.time).value(tid).rest(); });
}
std::size_t SyntheticTrace::page_fault(At at) {
  return perfinfo(at, 0x020B, 2);
}
std::size_t SyntheticTrace::syscall(At at) {
  return perfinfo(at, 0x0F33, 2);
}
std::size_t SyntheticTrace::dpc(At at) {
  return perfinfo(at, 0x0F44, 2);
}
std::size_t SyntheticTrace::isr(At at) {
  return perfinfo(at, 0x0F43, 2);
}

// --- Stacks

std::size_t SyntheticTrace::stack_walk(At at, std::int64_t event_time, std::uint32_t pid, std::uint32_t tid,
                                       const Frames &frames) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(0x1820, 2, options_.pointer_size, at.time);
    e.value(static_cast<std::uint64_t>(event_time)).value(pid).value(tid).stack(frames);
  });
}
std::size_t SyntheticTrace::stack_key(At at, std::int64_t event_time, std::uint32_t pid, std::uint32_t tid,
                                      std::uint64_t key, bool user) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(user ? 0x1826 : 0x1825, 2, options_.pointer_size, at.time);
    e.value(static_cast<std::uint64_t>(event_time)).value(pid).value(tid).value(key);
  });
}
std::size_t SyntheticTrace::stack_definition(At at, std::uint64_t key, const Frames &frames, bool rundown) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(rundown ? 0x1824 : 0x1823, 2, options_.pointer_size, at.time).value(key).stack(frames);
  });
}

// --- Disk, files, network, memory

std::size_t SyntheticTrace::file_name(At at, std::uint64_t object, std::string_view name,
                                      std::uint16_t hook) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(hook, 2, options_.pointer_size, at.time).value(object).text(name);
  });
}
std::size_t SyntheticTrace::disk_read(At at, std::uint32_t tid, std::uint64_t object) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(0x010A, 3, options_.pointer_size, at.time).rest(5).value(object).rest(2).value(tid);
  });
}
std::size_t SyntheticTrace::disk_init(At at, std::uint32_t tid, std::uint32_t header_thread,
                                      std::uint32_t header_process) {
  return emit(at, [&](EventBuilder &e) {
    e.system(0x010D, 3, options_.pointer_size, header_thread, header_process, at.time)
        .value(0x1234)
        .value(tid);
  });
}
std::size_t SyntheticTrace::file_read(At at, std::uint32_t tid, std::uint64_t object, std::uint64_t key) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(0x0443, 3, options_.pointer_size, at.time).rest(2).value(object).value(key).value(tid).rest();
  });
}
std::size_t SyntheticTrace::hard_fault(At at, std::uint32_t tid, std::uint64_t object) {
  return emit(at, [&](EventBuilder &e) {
    e.perfinfo(0x0220, 2, options_.pointer_size, at.time).rest(3).value(object).value(tid).rest();
  });
}
std::size_t SyntheticTrace::tcp_send(At at, std::uint32_t pid) {
  return emit(
      at, [&](EventBuilder &e) { e.perfinfo(0x060A, 2, options_.pointer_size, at.time).value(pid).rest(); });
}
std::size_t SyntheticTrace::udp_receive(At at, std::uint32_t pid) {
  return emit(
      at, [&](EventBuilder &e) { e.perfinfo(0x080B, 2, options_.pointer_size, at.time).value(pid).rest(); });
}
std::size_t SyntheticTrace::virtual_alloc(At at, std::uint32_t pid, std::uint32_t header_thread,
                                          std::uint32_t header_process) {
  return emit(at, [&](EventBuilder &e) {
    e.system(0x0262, 2, options_.pointer_size, header_thread, header_process, at.time)
        .rest(2)
        .value(pid)
        .rest();
  });
}
std::size_t SyntheticTrace::system(At at, std::uint16_t hook, std::uint8_t version, std::uint32_t tid,
                                   std::uint32_t pid) {
  return emit(
      at, [&](EventBuilder &e) { e.system(hook, version, options_.pointer_size, tid, pid, at.time).rest(); });
}
std::size_t SyntheticTrace::perfinfo(At at, std::uint16_t hook, std::uint8_t version) {
  return emit(at, [&](EventBuilder &e) { e.perfinfo(hook, version, options_.pointer_size, at.time).rest(); });
}

// --- Classic and manifest events

std::size_t SyntheticTrace::classic(At at, const Guid &guid, std::uint8_t opcode, std::uint32_t tid,
                                    std::uint32_t pid, Bytes payload) {
  return emit(at, [&](EventBuilder &e) {
    e.classic(guid, opcode, 2, options_.pointer_size, tid, pid, at.time).bytes(payload);
  });
}
std::size_t SyntheticTrace::image_id(At at, std::uint32_t pid, std::uint64_t base) {
  return emit(at, [&](EventBuilder &e) {
    e.classic(kImageIdGuid, 0, 2, options_.pointer_size, kUnknownId, pid, at.time);
    e.pointer(base).pointer(0x10000).put(pid).put<std::uint32_t>(0x5F00'0000).wstr("a.dll");
  });
}
std::size_t SyntheticTrace::image_pdb(At at, std::uint32_t pid, std::uint64_t base) {
  return emit(at, [&](EventBuilder &e) {
    e.classic(kImageIdGuid, 36, 2, options_.pointer_size, kUnknownId, pid, at.time);
    e.pointer(base).put(pid).put(Guid{1, 2}).put<std::uint32_t>(1).astr("a.pdb");
  });
}
std::size_t SyntheticTrace::image_file_version(At at, std::uint32_t pid) {
  return emit(at, [&](EventBuilder &e) {
    e.classic(kImageIdGuid, 64, 0, options_.pointer_size, kUnknownId, pid, at.time);
    e.put<std::uint32_t>(0x10000).put<std::uint32_t>(0x5F00'0000);
    for (int i = 0; i < 10; ++i)
      e.wstr("x");
  });
}
std::size_t SyntheticTrace::metadata(At at, const Guid &provider, std::uint8_t opcode) {
  return emit(at, [&](EventBuilder &e) {
    e.classic(kMetaDataGuid, opcode, 0, options_.pointer_size, kUnknownId, kUnknownId, at.time)
        .put(provider)
        .zeros(0x60);
  });
}

std::size_t SyntheticTrace::manifest_event(At at, const write::EventFields &fields, std::uint32_t tid,
                                           std::uint32_t pid, Bytes payload, const std::vector<Item> &items) {
  return emit(at, [&](EventBuilder &e) {
    e.event(fields, options_.pointer_size, tid, pid, at.time);
    for (const auto &[type, data] : items)
      e.item(type, data);
    e.bytes(payload);
  });
}
std::size_t SyntheticTrace::trace_logging(At at, const Guid &provider, std::string_view provider_name,
                                          std::string_view name, std::uint32_t tid, std::uint32_t pid) {
  std::vector<std::uint8_t> traits{0, 0}, schema{0, 0, 0};
  traits.insert(traits.end(), provider_name.begin(), provider_name.end());
  traits.push_back(0);
  schema.insert(schema.end(), name.begin(), name.end());
  schema.push_back(0);
  store(traits.data(), static_cast<std::uint16_t>(traits.size()));
  store(schema.data(), static_cast<std::uint16_t>(schema.size()));
  return manifest_event(at, {.provider = provider, .channel = 11}, tid, pid, {},
                        {{ItemType::provider_traits, traits}, {ItemType::schema_tl, schema}});
}
std::size_t SyntheticTrace::manifest(At at, const Guid &provider, std::uint32_t tid, std::uint32_t pid,
                                     std::string_view xml, std::uint16_t chunk, std::uint16_t chunks) {
  std::vector<std::uint8_t> payload(8);
  payload[0] = 1;
  payload[3] = 0x5B;
  store(&payload[4], chunks);
  store(&payload[6], chunk);
  payload.insert(payload.end(), xml.begin(), xml.end());
  return manifest_event(at,
                        {.provider = provider,
                         .id = kManifestEventId,
                         .version = 1,
                         .opcode = kManifestOpcode,
                         .task = 0xFFFE,
                         .keyword = ~0ull},
                        tid, pid, payload);
}
std::size_t SyntheticTrace::clr_method_load(At at, std::uint32_t tid, std::uint32_t pid) {
  const std::vector<std::uint8_t> payload(48);
  return manifest_event(
      at, {.provider = kClrGuid, .id = 143, .version = 1, .level = 4, .opcode = 37, .keyword = 0x10}, tid,
      pid, payload);
}
std::size_t SyntheticTrace::clr_stack(At at, std::uint32_t tid, std::uint32_t pid, const Frames &frames) {
  return emit(at, [&](EventBuilder &e) {
    e.event({.provider = kClrGuid, .id = 82, .opcode = 82, .keyword = 0x4000'0000}, options_.pointer_size,
            tid, pid, at.time);
    e.put<std::uint32_t>(0).put(static_cast<std::uint32_t>(frames.size())).frames(frames);
  });
}
std::size_t SyntheticTrace::later_stack(At at, std::uint32_t tid, std::uint32_t pid, std::uint64_t match,
                                        const Frames &frames) {
  return manifest_event(at, {.provider = kKernelEventTracingGuid, .id = 18, .opcode = 24}, tid, pid,
                        stack_item(frames, match));
}
std::size_t SyntheticTrace::message(At at, const Guid &guid, std::uint32_t tid, std::uint32_t pid) {
  return emit(
      at, [&](EventBuilder &e) { e.message(17, guid, options_.pointer_size, tid, pid, at.time).zeros(4); });
}

std::vector<std::uint8_t> stack_item(const Frames &frames, std::uint64_t match) {
  std::vector<std::uint8_t> data(8 + frames.size() * 8);
  store(data.data(), match);
  for (std::size_t i = 0; i < frames.size(); ++i)
    store(data.data() + 8 + i * 8, frames[i]);
  return data;
}
std::vector<std::uint8_t> stack_key_item(std::uint64_t key) {
  std::vector<std::uint8_t> data(16);
  store(data.data() + 8, key);
  return data;
}

} // namespace etwrelog::testing
