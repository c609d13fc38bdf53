// Decoded events made into bytes again, and compared.
#pragma once

#include "etwrelog/export.hpp"
#include "export/decoders.hpp"

#include <map>
#include <optional>

namespace etwrelog::pipeline {

// What came of the events of one kind.
struct VerifyTally {
  std::uint64_t events = 0, bytes = 0;                // that came back
  std::map<std::string_view, std::uint64_t> left_out; // events by the reason why they could not
  void merge(const VerifyTally &other) {
    events += other.events, bytes += other.bytes;
    for (const auto &[why, number] : other.left_out)
      left_out[why] += number;
  }
};

class Verifier {
public:
  // What is used again from event to event; one for each thread.
  struct Scratch {
    std::vector<std::uint8_t> bytes;
    std::string text;
  };
  // The error says where in which file the event is that did not come back.
  static Result<void> check(const etwrelog::Trace &trace, const Event &event, const Decoder &decoder,
                            Scratch &scratch, DecodedSize &size, VerifyTally &tally);
};

} // namespace etwrelog::pipeline
