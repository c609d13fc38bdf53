#include "export/verify.hpp"

#include "api/reading.hpp"
#include "base/errors.hpp"
#include "schema/encode_sink.hpp"
#include "schema/fitting_decoder.hpp"
#include "schema/value_text.hpp"

#include <algorithm>

namespace etwrelog::pipeline {
namespace {

std::string some_bytes(Bytes all, std::size_t from) {
  constexpr std::size_t kShown = 16;
  std::string text;
  schema::append_hex_bytes(text, all.subspan(std::min(from, all.size()))
                                     .first(std::min(kShown, all.size() - std::min(from, all.size()))));
  return text.empty() ? "nothing" : text;
}

} // namespace

Result<void> Verifier::check(const etwrelog::Trace &trace, const Event &event, const Decoder &decoder,
                             Scratch &scratch, DecodedSize &size, VerifyTally &tally) {
  const Bytes payload = event.payload();
  schema::EncodeSink sink(payload, schema::pointer_size_of(decoder), scratch.bytes, scratch.text);
  schema::Run<schema::EncodeSink> run(schema::program_of(decoder), payload, schema::pointer_size_of(decoder),
                                      sink);
  const bool whole = run.all();
  size = {decoder.value_count(), run.position(), !whole, run.gave_up()};
  if (!whole) {
    ++tally.left_out["the payload ends inside a field"];
    return {};
  }
  if (!sink.lost().empty()) {
    ++tally.left_out[sink.lost()];
    return {};
  }
  const Bytes read = payload.first(run.position()), made = scratch.bytes;
  if (std::ranges::equal(read, made)) {
    if (read.size() < payload.size()) { // perhaps the reading went astray where nothing tells
      ++tally.left_out["bytes behind the last field"];
      return {};
    }
    ++tally.events;
    tally.bytes += read.size();
    return {};
  }
  const auto differs = static_cast<std::size_t>(std::ranges::mismatch(read, made).in1 - read.begin());
  const Schema &schema = decoder.schema();
  return base::corrupt("event " + std::string(schema.name) +
                       ": its fields do not give back its payload, byte " + std::to_string(differs))
      .in(trace.sources()[event.position().source].name)
      .at(file_offset(trace, event.position()))
      .expected(some_bytes(read, differs))
      .found(some_bytes(made, differs));
}

} // namespace etwrelog::pipeline
