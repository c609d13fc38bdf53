// Schemas: where they come from and which one an event gets; what a decoder reads by them.
#include "etwrelog/schema.hpp"
#include "tests/support/built_event.hpp"

#include <set>
#include <tuple>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::Built;
using testing::json_of;

TEST(BuiltinSchemas, EveryRowHasNamesAndSoundFields) {
  const auto all = SchemaCatalog::builtin().all();
  EXPECT_GT(all.size(), 500u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Schema &schema = *all[i];
    EXPECT_EQ(schema.ordinal, i);
    EXPECT_FALSE(schema.name.empty());
    for (std::size_t f = 0; f < schema.fields.size(); ++f) {
      const Field &field = schema.fields[f];
      EXPECT_FALSE(field.name.empty()) << schema.name;
      if (field.repeat == Measure::by_field) {
        ASSERT_GE(field.count_field, 0) << schema.name;
        EXPECT_LT(static_cast<std::size_t>(field.count_field), f) << schema.name;
      }
    }
  }
}

TEST(BuiltinSchemas, NoTwoRowsClaimTheSameVersion) {
  std::set<std::tuple<Guid, bool, unsigned, unsigned, unsigned>> seen;
  for (const Schema *s : SchemaCatalog::builtin().all())
    EXPECT_TRUE(seen.emplace(s->provider, s->classic, s->id, s->opcode, s->version).second) << s->name;
}

TEST(BuiltinSchemas, ReadyThreadOfAKernelEvent) {
  const Built built([](write::EventBuilder &e) {
    e.system(0x0532, 2, 8, 8, 4, 1000);
    e.put(std::uint32_t{77}).put(std::int8_t{1}).put(std::int8_t{-2}).put(std::int8_t{4}).put(std::int8_t{0});
  });
  const SchemaCatalog &catalog = SchemaCatalog::builtin();
  EXPECT_EQ(json_of(catalog, built.view()),
            R"({"TThreadId":77,"AdjustReason":1,"AdjustIncrement":-2,"Flag":4,"Reserved":0})");
  std::string name;
  catalog.append_name(built.view(), name);
  EXPECT_EQ(name, "Windows Kernel/Thread/ReadyThread");
  EXPECT_EQ(RoleReader(catalog, Role::thread_id)(built.view()), 77u);
  EXPECT_EQ(RoleReader(catalog, Role::stack_key)(built.view()), std::nullopt);
}

TEST(BuiltinSchemas, PointersFollowTheEventsPointerSize) {
  for (const unsigned pointer_size : {4u, 8u}) {
    const Built built([&](write::EventBuilder &e) {
      e.system(0x0301, 2, pointer_size, 8, 4, 1000);
      e.pointer(0x1000).put(std::uint32_t{12}).put(std::uint32_t{4}).put(std::uint32_t{1});
      e.put(std::int32_t{-1}).put(std::uint32_t{0});
      e.astr("a.exe").wstr(std::string_view("a \"b\""));
    });
    EXPECT_EQ(json_of(SchemaCatalog::builtin(), built.view()),
              R"({"UniqueProcessKey":"0x1000","ProcessId":12,"ParentId":4,"SessionId":1,"ExitStatus":-1,)"
              R"("UserSID":null,"ImageFileName":"a.exe","CommandLine":"a \"b\""})");
  }
}

} // namespace
} // namespace etwrelog
