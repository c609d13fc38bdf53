// Which pointer size a payload was written with.
#include "etwrelog/schema.hpp"

#include "schema/json_sink.hpp"

namespace etwrelog {

// How a payload reads by one layout.
struct Fit {
  bool whole = false, all = false, odd = false; // no field cut; no byte left; control characters in a text

  static Fit of(const Decoder &decoder, Bytes payload, std::string &scratch) {
    scratch.clear();
    schema::JsonSink sink(scratch, *decoder.program_, decoder.pointer_size_, {});
    schema::Run<schema::JsonSink> run(*decoder.program_, payload, decoder.pointer_size_, sink);
    const bool whole = run.all();
    return {whole, whole && run.position() == payload.size(), sink.odd()};
  }
};

const Decoder &fitting_decoder(const EventView &event, const Decoder &narrow, const Decoder &wide) {
  if (event.is_message()) {
    const auto options = load<std::uint16_t>(event.bytes().data() + format::kMessageOptionsAt);
    return (options & format::kMessagePointer32) != 0 ? narrow : wide;
  }
  if (event.pointer_size() == 8) return wide;
  if (event.type() != format::HeaderType::full32 || narrow.schema().origin != Origin::builtin) return narrow;
  std::string scratch;
  const Bytes payload = event.payload();
  const Fit as_stated = Fit::of(narrow, payload, scratch);
  if (as_stated.all && !as_stated.odd) return narrow;
  const Fit other = Fit::of(wide, payload, scratch);
  return other.all && (!as_stated.all || !other.odd) ? wide : narrow;
}

} // namespace etwrelog
