// Builds of one EventSource that say different things of one event: who wrote it decides.
#include "etwrelog/schema.hpp"
#include "write/event_builder.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

constexpr Guid kBuiltTwice = make_guid(0x22334455, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);

std::string manifest_of_build(const std::string &inside) {
  return "<instrumentationManifest><instrumentation><events><provider name='Twice' "
         "guid='{22334455-5566-7788-99aa-bbccddeeff00}'>" +
         inside + "</provider></events></instrumentation></instrumentationManifest>";
}
// Event 1 of the task, with one field.
std::string build_with(const std::string &task, const std::string &field, const std::string &more = {}) {
  return manifest_of_build("<events><event value='1' task='" + task +
                           "' template='T'/></events><templates><template tid='T'><data name='" + field +
                           "' inType='win:UInt32'" + more + "/></template></templates>");
}

class Builds : public ::testing::Test {
protected:
  static std::vector<std::uint8_t> event(std::uint16_t id, std::uint32_t process,
                                         const std::vector<std::uint8_t> &payload) {
    std::vector<std::uint8_t> bytes;
    write::EventBuilder builder(bytes);
    write::EventFields fields;
    fields.provider = kBuiltTwice, fields.id = id;
    builder.event(fields, 8, 4, process, 1000).bytes(payload);
    static_cast<void>(builder.finish());
    return bytes;
  }
  template <class Use> static void with_view(const std::vector<std::uint8_t> &bytes, const Use &use) {
    for_each_event(bytes, [&](const EventView &event, std::int64_t, std::uint32_t) { use(event); });
  }
  void learn(const std::string &manifest, std::uint32_t process, unsigned pieces = 1) {
    const std::size_t share = manifest.size() / pieces + 1;
    for (unsigned i = 0; i < pieces; ++i) {
      std::vector<std::uint8_t> payload{
          1, 1, 0, 0x5B, static_cast<std::uint8_t>(pieces), 0, static_cast<std::uint8_t>(i), 0};
      const std::string piece = manifest.substr(i * share, share);
      payload.insert(payload.end(), piece.begin(), piece.end());
      with_view(event(format::kManifestEventId, process, payload),
                [&](const EventView &view) { catalog_.learn(view); });
    }
  }
  std::string said(std::uint32_t process) {
    std::string text;
    with_view(event(1, process, {7, 0, 0, 0}), [&](const EventView &view) {
      const Schema *schema = catalog_.find(view);
      if (schema == nullptr) return;
      text = std::string(schema->name) + " ";
      Decoder(*schema, 8).append_json(view.payload(), text, {.maps = true});
    });
    return text;
  }

  SchemaCatalog catalog_;
};

TEST_F(Builds, AreToldByTheProcessThatWroteTheEvent) {
  learn(build_with("Work", "a"), 100);
  learn(build_with("Work", "b"), 200, 3);
  learn(build_with("Work", "a"), 300);
  learn(build_with("Play", "a"), 400); // whose ids were given out anew
  learn(build_with("Work", "b"), 500);
  learn(build_with("Work", "b") + "<!-- -->", 600);
  learn(build_with("Work", "a") + "<!-- -->", 700);
  EXPECT_EQ(said(100), R"(Work {"a":7})");
  EXPECT_EQ(said(200), R"(Work {"b":7})");
  EXPECT_EQ(said(300), R"(Work {"a":7})");
  EXPECT_EQ(said(400), R"(Play {"a":7})");
  EXPECT_EQ(said(500), R"(Work {"b":7})");
  EXPECT_EQ(said(600), R"(Work {"b":7})");
  EXPECT_EQ(said(700), R"(Work {"a":7})");
  EXPECT_TRUE(catalog_.problems().empty()) << catalog_.problems()[0];
  const auto own =
      std::ranges::count(catalog_.all(), kBuiltTwice, [](const Schema *s) { return s->provider; });
  EXPECT_EQ(own, 3) << "what several say is one schema";
}

TEST_F(Builds, AreGuessedOfProcessesWithoutAManifest) {
  learn(build_with("Work", "a"), 100);
  EXPECT_EQ(said(900), R"(Work {"a":7})");
  EXPECT_TRUE(catalog_.problems().empty()) << "there is one build";
  learn(build_with("Work", "b"), 200);
  EXPECT_EQ(said(200), R"(Work {"b":7})");
  const auto before = catalog_.problems();
  EXPECT_TRUE(before.empty());
  const SchemaCatalog copy = catalog_;
  EXPECT_EQ(said(900), R"(Work {"a":7})");
  for (const SchemaCatalog *catalog : {&std::as_const(catalog_), &copy}) {
    ASSERT_EQ(catalog->problems().size(), 1u);
    EXPECT_NE(catalog->problems()[0].find("provider Twice: its manifests are of several builds"),
              std::string::npos)
        << catalog->problems()[0];
  }
}

TEST_F(Builds, OfOneProcessThatDisagreeAreGuessed) {
  learn(build_with("Work", "a"), 100);
  learn(build_with("Work", "b"), 200);
  learn(build_with("Work", "b") + "<!-- -->", 200); // says the same
  EXPECT_EQ(said(200), R"(Work {"b":7})");
  EXPECT_TRUE(catalog_.problems().empty());
  learn(build_with("Work", "a"), 200); // the id was another process's before
  EXPECT_EQ(said(200), R"(Work {"a":7})");
  EXPECT_EQ(catalog_.problems().size(), 1u);
}

TEST_F(Builds, ThatNameValuesAnewMeanSomethingElse) {
  const auto mapped = [](const std::string &values) {
    return manifest_of_build("<maps><valueMap name='V'>" + values +
                             "</valueMap></maps><events><event value='1' task='Work' template='T'/></events>"
                             "<templates><template tid='T'><data name='a' inType='win:UInt32' map='V'/>"
                             "</template></templates>");
  };
  learn(mapped("<map value='7' message='Seven'/>"), 100);
  learn(mapped("<map value='7' message='Seven'/><map value='8' message='Eight'/>"), 200);
  learn(mapped("<map value='6' message='Six'/><map value='7' message='Sieben'/>"), 300);
  EXPECT_EQ(said(100), R"(Work {"a":"Seven"})");
  EXPECT_EQ(said(200), R"(Work {"a":"Seven"})");
  EXPECT_EQ(said(300), R"(Work {"a":"Sieben"})");
  const auto own =
      std::ranges::count(catalog_.all(), kBuiltTwice, [](const Schema *s) { return s->provider; });
  EXPECT_EQ(own, 2) << "one more value is no other schema";
}

// Each build says something of its own: memory has bounds, and what is not kept is a guess, not the first's.
TEST_F(Builds, OfAnyNumberAreBounded) {
  for (std::uint32_t i = 0; i < 200; ++i)
    learn(build_with("Work", "f" + std::to_string(i)), 4 * i + 4);
  EXPECT_EQ(said(4 * 60 + 4), R"(Work {"f60":7})");
  EXPECT_TRUE(catalog_.problems().empty());
  EXPECT_EQ(said(4 * 199 + 4), R"(Work {"f0":7})");
  EXPECT_EQ(catalog_.problems().size(), 1u);
}

TEST_F(Builds, ThatContradictThemselvesAreAProblem) {
  learn(build_with("Work", "a"), 100);
  learn(manifest_of_build("<events><event value='1' task='Work' template='T'/><event value='1' task='Work' "
                          "template='U'/></events><templates><template tid='T'><data name='b' "
                          "inType='win:UInt32'/></template><template tid='U'><data name='c' "
                          "inType='win:UInt32'/></template></templates>"),
        200);
  EXPECT_EQ(said(200), R"(Work {"b":7})");
  ASSERT_EQ(catalog_.problems().size(), 1u);
  EXPECT_NE(catalog_.problems()[0].find("event 1: two manifests say"), std::string::npos);
}

} // namespace
} // namespace etwrelog
