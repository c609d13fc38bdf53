// An event whose fields do not give back its bytes is an error that says where, and no event that was
// verified.
#include "export/verify.hpp"

#include "schema/encode_sink.hpp"
#include "tests/support/real_traces.hpp"

#include <gtest/gtest.h>

namespace etwrelog::pipeline {
namespace {

TEST(Verify, AnEventThatDoesNotComeBackIsAnErrorThatSaysWhere) {
  const auto path = testing::trace_path("diaghub.kernel.1");
  if (!path) GTEST_SKIP() << "the real traces are not here";
  Result<etwrelog::Trace> trace = etwrelog::Trace::open(path->string());
  ASSERT_TRUE(trace);
  // No reader makes truth values of three bytes: what is shown of one is not what it was.
  Field field;
  field.name = "Wrong", field.type = FieldType::boolean, field.size = 3;
  Schema schema;
  schema.name = "Broken/Kind";
  schema.fields = {&field, 1};
  const Decoder decoder(schema, 8);
  EventCursor events = trace->events();
  const Event *event = events.next();
  const auto wrong = [](Bytes payload) {
    return payload.size() >= 3 && (payload[0] | payload[1] | payload[2]) != 0;
  };
  while (event != nullptr && !wrong(event->payload()))
    event = events.next();
  ASSERT_NE(event, nullptr);
  Verifier::Scratch scratch;
  DecodedSize size;
  VerifyTally tally;
  const Result<void> checked = Verifier::check(*trace, *event, decoder, scratch, size, tally);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, ErrorKind::corrupt); // with which the tool fails: exit status 1
  EXPECT_EQ(checked.error().file, path->string());
  EXPECT_TRUE(checked.error().offset.has_value());
  EXPECT_NE(checked.error().what.find("Broken/Kind"), std::string::npos);
  EXPECT_EQ(checked.error().found.find_first_not_of('0'), std::string::npos);
  EXPECT_NE(checked.error().found, checked.error().expected);
  EXPECT_EQ(tally.events, 0u);
  EXPECT_TRUE(tally.left_out.empty());
}

} // namespace
} // namespace etwrelog::pipeline
