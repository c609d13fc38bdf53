#include "handles.hpp"

etwr_trace::etwr_trace(etwrelog::Trace opened)
    : shared(std::make_shared<const etwrelog::Trace>(std::move(opened))), trace(*shared) {
  for (const etwrelog::SourceInfo &info : trace.sources()) {
    const etwrelog::LogfileHeader &header = info.header;
    etwr_source source{};
    source.struct_size = sizeof source;
    source.name = info.name.c_str();
    source.session_name = header.session_name.c_str();
    source.file_name = header.file_name.c_str();
    source.start_time = header.start_time;
    source.end_time = header.end_time;
    source.boot_time = header.boot_time;
    source.first_stamp = header.first_stamp;
    source.perf_freq = header.perf_freq;
    source.clock_type = header.clock_type;
    source.cpu_mhz = header.cpu_mhz;
    source.buffer_size = header.buffer_size;
    source.buffers_written = header.buffers_written;
    source.buffers_lost = header.buffers_lost;
    source.events_lost = header.events_lost;
    source.log_file_mode = header.log_file_mode;
    source.processors = header.processors;
    source.pointer_size = header.pointer_size;
    source.build = header.provider_version;
    source.os_major = header.major;
    source.os_minor = header.minor;
    source.timezone_bias = header.timezone_bias;
    source.machine = info.machine;
    source.stored_bytes = info.stored_bytes;
    source.decoded_bytes = info.decoded_bytes;
    source.buffers = info.buffers;
    source.missing_buffers = info.missing_buffers;
    source.timezone_bias_at_start = header.bias_at(header.start_time).value_or(header.timezone_bias);
    sources.push_back(source);
  }
}

using namespace etwrelog;

etwr_error *etwr_trace_open(const char *const *paths, std::size_t count, const etwr_open_options *options,
                            const etwr_run *run, etwr_trace **trace) {
  return c::guarded([&]() -> etwr_error * {
    if (paths == nullptr || count == 0 || trace == nullptr)
      return c::usage("etwr_trace_open: no path or no result");
    std::vector<Input> inputs;
    for (std::size_t i = 0; i < count; ++i) {
      if (paths[i] == nullptr) return c::usage("etwr_trace_open: a path is NULL");
      inputs.emplace_back(paths[i]);
    }
    const etwr_open_options given = c::copy_of(options);
    const c::Run in_run(run);
    const OpenOptions how{.salvage = given.salvage != 0, .file_order = given.file_order != 0};
    Result<Trace> opened = Trace::open(std::move(inputs), how, in_run.options());
    if (!opened) return c::make_error(std::move(opened).error());
    *trace = new etwr_trace(std::move(*opened));
    return nullptr;
  });
}

void etwr_trace_free(etwr_trace *trace) {
  delete trace;
}

std::size_t etwr_source_count(const etwr_trace *trace) {
  return trace->sources.size();
}

const etwr_source *etwr_source_at(const etwr_trace *trace, std::size_t index) {
  return index < trace->sources.size() ? &trace->sources[index] : nullptr;
}

double etwr_seconds(const etwr_trace *trace, std::int64_t time) {
  return trace->trace.clock().to_seconds(time);
}

std::int64_t etwr_filetime(const etwr_trace *trace, std::int64_t time) {
  return trace->trace.clock().to_filetime(time);
}
