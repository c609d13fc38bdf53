// Which pointer size a payload was written with.
#include "schema/fitting_decoder.hpp"

#include "schema/json_sink.hpp"

namespace etwrelog {
namespace {

// How a payload reads by one layout.
struct Reading {
  bool all = false, odd = false; // every field, and no byte left; control characters in a text

  static Reading of(const Decoder::Program &program, unsigned pointer_size, Bytes payload,
                    std::string &scratch) {
    scratch.clear();
    schema::JsonSink sink(scratch, program, pointer_size, {});
    schema::Run<schema::JsonSink> run(program, payload, pointer_size, sink);
    return {run.all() && run.position() == payload.size(), sink.odd()};
  }
};

} // namespace

unsigned schema::fitting_pointer_size(const EventView &event, const Decoder::Program &program) {
  if (event.is_message()) {
    const auto options = load<std::uint16_t>(event.bytes().data() + format::kMessageOptionsAt);
    return (options & format::kMessagePointer32) != 0 ? 4 : 8;
  }
  if (event.pointer_size() == 8) return 8;
  if (event.type() != format::HeaderType::full32 || program.schema->origin != Origin::builtin) return 4;
  std::string scratch;
  const Bytes payload = event.payload();
  const Reading narrow = Reading::of(program, 4, payload, scratch);
  if (narrow.all && !narrow.odd) return 4;
  const Reading wide = Reading::of(program, 8, payload, scratch);
  return wide.all && (!narrow.all || !wide.odd) ? 8 : 4;
}

struct Fit {
  static const Decoder::Program &program(const Decoder &decoder) { return *decoder.program_; }
  static unsigned pointer_size(const Decoder &decoder) { return decoder.pointer_size_; }
};

const Decoder::Program &schema::program_of(const Decoder &decoder) {
  return Fit::program(decoder);
}

unsigned schema::pointer_size_of(const Decoder &decoder) {
  return Fit::pointer_size(decoder);
}

const Decoder &fitting_decoder(const EventView &event, const Decoder &narrow, const Decoder &wide) {
  return schema::fitting_pointer_size(event, schema::program_of(narrow)) == 4 ? narrow : wide;
}

} // namespace etwrelog
