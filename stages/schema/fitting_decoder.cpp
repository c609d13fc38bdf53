// Which pointer size a payload was written with.
#include "schema/fitting_decoder.hpp"

#include "etwrelog/kernel_events.hpp"
#include "schema/program.hpp"

namespace etwrelog {
namespace {

using schema::Op;

// Looks for texts that may be none at all: with control characters.
class OddTexts {
public:
  void value(const Op &op, Bytes data) {
    if (op.type < FieldType::astr || op.type > FieldType::wstr) return;
    const std::size_t unit = op.type == FieldType::wstr ? 2 : 1;
    for (std::size_t i = 0; i + unit <= data.size(); i += unit) {
      const unsigned c = unit == 2 ? load<std::uint16_t>(data.data() + i) : data[i];
      if (c > 0 && c < 0x20) found_ = true;
    }
  }
  void begin_structure(const Op &) {}
  void end_structure(const Op &) {}
  void begin_array(const Op &, Bytes) {}
  void end_array(const Op &, std::uint32_t, Bytes) {}
  void begin_element(const Op &) {}
  void end_element(const Op &) {}
  void element(const Op &, Bytes) {}
  [[nodiscard]] std::size_t mark() const { return 0; }
  void rollback(std::size_t) {}
  [[nodiscard]] bool full() const { return false; }

  [[nodiscard]] bool found() const { return found_; }

private:
  bool found_ = false;
};

// How a payload reads by one layout.
struct Reading {
  bool all = false, odd = false; // every field, and no byte left; control characters in a text

  static Reading of(const Decoder::Program &program, unsigned pointer_size, Bytes payload) {
    OddTexts sink;
    schema::Run<OddTexts> run(program, payload, pointer_size, sink);
    return {run.all() && run.position() == payload.size(), sink.found()};
  }
};

// Frames of a stack may read in either way; there kernel::hook_of_classic() knows by their addresses.
bool is_known_as_wide(const EventView &event) {
  return kernel::hook_of_class(event.provider(), event.opcode()) && !kernel::hook_of_classic(event);
}

} // namespace

unsigned schema::fitting_pointer_size(const EventView &event, const Decoder::Program &program) {
  if (event.is_message()) {
    const auto options = load<std::uint16_t>(event.bytes().data() + format::kMessageOptionsAt);
    return (options & format::kMessagePointer32) != 0 ? 4 : 8;
  }
  if (event.pointer_size() == 8) return 8;
  if (event.type() != format::HeaderType::full32 || program.schema->origin != Origin::builtin) return 4;
  const Bytes payload = event.payload();
  const Reading narrow = Reading::of(program, 4, payload);
  const bool foreign = !narrow.all || is_known_as_wide(event);
  if (!foreign && !narrow.odd) return 4;
  const Reading wide = Reading::of(program, 8, payload);
  return wide.all && (foreign || !wide.odd) ? 8 : 4;
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
