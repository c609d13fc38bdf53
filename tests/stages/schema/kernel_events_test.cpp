#include "etwrelog/provider_events.hpp"
#include "filter/rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>

namespace etwrelog::kernel {
namespace {

TEST(KernelTable, IsSortedAndConsistent) {
  const auto hooks = all_hooks();
  for (std::size_t i = 1; i < hooks.size(); ++i)
    EXPECT_LT(hooks[i - 1].hook, hooks[i].hook) << "twice or out of order";
  const auto layouts = all_layouts();
  for (std::size_t i = 1; i < layouts.size(); ++i) {
    const bool in_order =
        layouts[i - 1].hook < layouts[i].hook ||
        (layouts[i - 1].hook == layouts[i].hook && layouts[i - 1].min_version < layouts[i].min_version);
    EXPECT_TRUE(in_order) << std::hex << layouts[i].hook;
  }
  std::set<std::string> names;
  for (const HookInfo &info : hooks) {
    EXPECT_NE(std::string_view(info.name), "");
    EXPECT_TRUE(names.insert(info.name).second || info.hook == 0x140A)
        << info.name; // image load has two hooks
    EXPECT_EQ(find_hook(info.hook), &info);
  }
  EXPECT_EQ(find_hook(0xFFFF), nullptr);
  EXPECT_EQ(find_layout(0xFFFF, 9), nullptr);
}

// A filter can only follow a scope whose fields the layout has.
TEST(KernelTable, HasTheFieldsThatEachScopeNeeds) {
  for (const Layout &layout : all_layouts())
    for (const unsigned size : {4u, 8u}) {
      const HookInfo *info = find_hook(layout.hook);
      ASSERT_NE(info, nullptr) << std::hex << layout.hook;
      auto has = [&](Role role) { return fixed_offset(layout.fields, role, size).has_value(); };
      switch (info->scope) {
      case Scope::process:
      case Scope::payload_process: EXPECT_TRUE(has(Role::process_id)) << info->name; break;
      case Scope::thread: EXPECT_TRUE(has(Role::process_id) && has(Role::thread_id)) << info->name; break;
      case Scope::image: EXPECT_TRUE(has(Role::process_id) && has(Role::image_base)) << info->name; break;
      case Scope::payload_thread:
      case Scope::ready_thread: EXPECT_TRUE(has(Role::thread_id)) << info->name; break;
      case Scope::context_switch: EXPECT_TRUE(has(Role::new_thread_id) && has(Role::old_thread_id)); break;
      case Scope::stack_walk:
        EXPECT_TRUE(has(Role::event_time) && has(Role::process_id) && has(Role::thread_id) &&
                    has(Role::frames));
        break;
      case Scope::stack_reference:
        EXPECT_TRUE(has(Role::event_time) && has(Role::process_id) && has(Role::thread_id) &&
                    has(Role::stack_key));
        break;
      case Scope::stack_definition: EXPECT_TRUE(has(Role::stack_key) && has(Role::frames)); break;
      case Scope::file_name: EXPECT_TRUE(has(Role::file_object)); break;
      case Scope::key_name: EXPECT_TRUE(has(Role::registry_key)) << info->name; break;
      default: break;
      }
    }
}

struct Expected {
  std::uint16_t hook;
  std::uint8_t version;
  Role role;
  std::size_t narrow, wide; // offsets in 32- and 64-bit payloads, from the format notes
};

TEST(KernelTable, PutsFieldsWhereTheNotesDo) {
  const Expected rows[] = {
      {0x0301, 2, Role::process_id, 4, 8},       {0x0301, 2, Role::parent_id, 8, 12},
      {0x0301, 3, Role::session_id, 12, 16},     {0x0301, 3, Role::exit_status, 16, 20},
      {0x0303, 4, Role::process_id, 4, 8},       {0x0304, 4, Role::parent_id, 8, 12},
      {0x0327, 5, Role::process_id, 4, 8},       {0x030B, 0, Role::process_id, 0, 0},
      {0x0320, 2, Role::process_id, 0, 0},       {0x0501, 3, Role::process_id, 0, 0},
      {0x0501, 3, Role::thread_id, 4, 4},        {0x0502, 2, Role::thread_id, 4, 4},
      {0x0548, 2, Role::thread_id, 4, 4},        {0x030A, 2, Role::image_base, 0, 0},
      {0x030A, 2, Role::image_size, 4, 8},       {0x030A, 3, Role::process_id, 8, 16},
      {0x1402, 3, Role::image_checksum, 12, 20}, {0x1403, 3, Role::image_time, 16, 24},
      {0x1404, 3, Role::file_name, 44, 56},      {0x0F2E, 2, Role::instruction_pointer, 0, 0},
      {0x0F2E, 2, Role::thread_id, 4, 8},        {0x0F2F, 2, Role::thread_id, 4, 8},
      {0x0C20, 0, Role::process_id, 8, 8},       {0x0C20, 0, Role::thread_id, 12, 12},
      {0x0524, 4, Role::new_thread_id, 0, 0},    {0x0524, 2, Role::old_thread_id, 4, 4},
      {0x0532, 2, Role::thread_id, 0, 0},        {0x0530, 3, Role::thread_id, 0, 0},
      {0x0535, 3, Role::thread_id, 4, 8},        {0x0220, 2, Role::thread_id, 24, 32},
      {0x0220, 2, Role::file_object, 20, 24},    {0x0262, 2, Role::process_id, 8, 16},
      {0x0264, 2, Role::process_id, 8, 12},      {0x010A, 3, Role::file_object, 24, 24},
      {0x010B, 3, Role::thread_id, 40, 48},      {0x010C, 3, Role::thread_id, 4, 8},
      {0x010F, 3, Role::thread_id, 4, 8},        {0x010E, 3, Role::thread_id, 20, 24},
      {0x0400, 2, Role::file_object, 0, 0},      {0x0424, 2, Role::file_name, 4, 8},
      {0x0425, 2, Role::process_id, 20, 32},     {0x0425, 3, Role::process_id, 28, 40},
      {0x0440, 2, Role::thread_id, 4, 8},        {0x0440, 3, Role::thread_id, 8, 16},
      {0x0440, 3, Role::file_object, 4, 8},      {0x0441, 3, Role::thread_id, 12, 24},
      {0x0442, 2, Role::thread_id, 4, 8},        {0x0443, 3, Role::thread_id, 20, 32},
      {0x0444, 2, Role::thread_id, 12, 16},      {0x0445, 3, Role::thread_id, 16, 32},
      {0x044B, 3, Role::thread_id, 16, 32},      {0x0448, 3, Role::thread_id, 12, 24},
      {0x0443, 3, Role::file_key, 16, 24},       {0x060A, 2, Role::process_id, 0, 0},
      {0x061B, 2, Role::process_id, 0, 0},       {0x080B, 2, Role::process_id, 0, 0},
      {0x0B0F, 2, Role::process_id, 0, 0},       {0x1820, 2, Role::event_time, 0, 0},
      {0x1820, 2, Role::process_id, 8, 8},       {0x1820, 2, Role::thread_id, 12, 12},
      {0x1820, 2, Role::frames, 16, 16},         {0x1823, 2, Role::stack_key, 0, 0},
      {0x1824, 2, Role::frames, 4, 8},           {0x1825, 2, Role::stack_key, 16, 16},
      {0x1826, 2, Role::process_id, 8, 8},
  };
  for (const Expected &row : rows) {
    const Layout *layout = find_layout(row.hook, row.version);
    ASSERT_NE(layout, nullptr) << std::hex << row.hook;
    EXPECT_EQ(fixed_offset(layout->fields, row.role, 4), row.narrow)
        << std::hex << row.hook << " v" << int{row.version};
    EXPECT_EQ(fixed_offset(layout->fields, row.role, 8), row.wide)
        << std::hex << row.hook << " v" << int{row.version};
  }
}

struct Size {
  std::uint16_t hook;
  std::uint8_t version;
  std::size_t narrow, wide;
};

TEST(KernelTable, AddsUpToTheSizesOfTheNotes) {
  const Size rows[] = {{0x0F2E, 2, 12, 16}, {0x0524, 2, 24, 24}, {0x0220, 2, 32, 40}, {0x010A, 3, 44, 52},
                       {0x060A, 2, 36, 40}, {0x060B, 2, 28, 32}, {0x060F, 2, 44, 48}, {0x061A, 2, 60, 64},
                       {0x061B, 2, 52, 56}, {0x061C, 2, 68, 72}, {0x080A, 2, 28, 32}, {0x081A, 2, 52, 56},
                       {0x1825, 2, 20, 24}, {0x0050, 0, 48, 48}, {0x0532, 2, 8, 8},   {0x0B0A, 3, 0, 828}};
  for (const Size &row : rows)
    for (const unsigned size : {4u, 8u}) {
      const std::size_t expected = size == 8 ? row.wide : row.narrow;
      if (expected == 0) continue;
      std::size_t sum = 0;
      for (const Field &field : find_layout(row.hook, row.version)->fields)
        sum += fixed_size(field.type, size) * field.repeat;
      EXPECT_EQ(sum, expected) << std::hex << row.hook << std::dec << " pointers of " << size;
    }
}

TEST(KernelTable, KnowsWhoseUndocumentedHooksAre) {
  EXPECT_EQ(scope_of(0x0052), Scope::always);
  EXPECT_EQ(scope_of(0x0B24), Scope::always);
  EXPECT_EQ(scope_of(0x7777), Scope::header);
  EXPECT_EQ(hook_of_class(group_guid(0x14), 10), 0x030A) << "image load is the one that moved";
  EXPECT_EQ(hook_of_class(group_guid(0x14), 3), 0x1403);
  EXPECT_EQ(hook_of_class(group_guid(0x0F), 46), 0x0F2E);
  EXPECT_FALSE(hook_of_class(Guid{1, 2}, 3));
  EXPECT_EQ(group_guid(0xFF), Guid{});
}

TEST(SidSize, TellsAMissingSidFromOneWithAZeroPointer) {
  for (const unsigned size : {4u, 8u}) {
    std::vector<std::uint8_t> none(4 + 20, 0);
    none[4] = 'a';
    EXPECT_EQ(sid_size(none, size), 4u);
    std::vector<std::uint8_t> sid(2 * size + 8 + 20 + 3, 0);
    sid[2 * size] = 1;
    sid[2 * size + 1] = 5;
    EXPECT_EQ(sid_size(sid, size), 2 * size + 28u) << "sawbuck's: zero pointer and a SID";
    sid[0] = 7;
    EXPECT_EQ(sid_size(sid, size), 2 * size + 28u);
    sid[2 * size + 1] = 15;
    EXPECT_FALSE(sid_size(sid, size)) << "more parts than bytes";
    EXPECT_FALSE(sid_size(Bytes(sid).first(3), size));
  }
}

// Versions share a layout: each of them has what a role names where the shared one says.
TEST(KernelLayouts, ServeEveryVersionThatTheyAreFoundFor) {
  std::size_t compared = 0;
  for (const provider::Layout &known : provider::all_layouts()) {
    const auto hook = hook_of_class(known.provider, static_cast<std::uint8_t>(known.id));
    const Layout *shared = hook && known.min_version >= 2 ? find_layout(*hook, known.min_version) : nullptr;
    if (shared == nullptr) continue;
    for (const Field &field : known.fields)
      for (const unsigned size : {4u, 8u}) {
        if (field.role == Role::none) continue;
        EXPECT_EQ(fixed_offset(shared->fields, field.role, size),
                  fixed_offset(known.fields, field.role, size))
            << known.name << " v" << known.min_version << ": " << field.name;
        ++compared;
      }
  }
  EXPECT_GT(compared, 400u);
}

TEST(KernelLayouts, AreThereForAllHooksThatSaySo) {
  for (const HookInfo &info : all_hooks()) {
    const bool found =
        std::ranges::any_of(all_layouts(), [&](const Layout &layout) { return layout.hook == info.hook; });
    EXPECT_EQ(found, info.has_layout) << info.name;
  }
  ASSERT_NE(find_layout(0x140A, 3), nullptr);
  EXPECT_EQ(find_layout(0x140A, 3)->fields.data(), find_layout(0x030A, 3)->fields.data())
      << "one class, two hooks";
}

TEST(FieldWalk, WalksEveryLayoutOverRandomBytesWithinBounds) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const Layout &layout : all_layouts())
    for (const unsigned size : {4u, 8u})
      for (int round = 0; round < 30; ++round) {
        const std::size_t length = random() % 160;
        const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[length]);
        for (std::size_t i = 0; i < length; ++i)
          exact[i] = random() % 3 == 0 ? 0 : static_cast<std::uint8_t>(random());
        FieldWalk walk(layout.fields, Bytes(exact.get(), length), size);
        const Field *field = nullptr;
        std::size_t before = 0, fields = 0;
        for (Bytes data; walk.next(field, data); ++fields) {
          ASSERT_GE(data.data(), exact.get());
          ASSERT_LE(data.data() + data.size(), exact.get() + length);
          ASSERT_GE(walk.position(), before);
          before = walk.position();
          (void)field_value(data);
        }
        ASSERT_LE(fields, layout.fields.size());
      }
}

TEST(FieldWalk, TakesAStringWithoutTerminatorUpToTheEnd) {
  const Layout *layout = find_layout(0x0400, 2);
  std::vector<std::uint8_t> payload(8);
  for (const char c : {'a', 'b'})
    payload.push_back(static_cast<std::uint8_t>(c)), payload.push_back(0);
  FieldWalk walk(layout->fields, payload, 8);
  const Field *field = nullptr;
  Bytes data;
  ASSERT_TRUE(walk.next(field, data));
  ASSERT_TRUE(walk.next(field, data));
  EXPECT_EQ(data.size(), 4u);
  EXPECT_FALSE(walk.next(field, data));
}

TEST(HookRules, PickTheLayoutOfTheVersion) {
  using filter::rule_for;
  EXPECT_EQ(rule_for(0x0440, 2).wide.thread_id, 8);
  EXPECT_EQ(rule_for(0x0440, 3).wide.thread_id, 16);
  EXPECT_EQ(rule_for(0x0440, 200).wide.thread_id, 16) << "newer than we know: the newest we know";
  EXPECT_EQ(rule_for(0x0440, 0).wide.thread_id, 8);
  EXPECT_EQ(rule_for(0x030A, 1).wide.process_id, filter::FieldOffsets::kAbsent)
      << "v1 of image load is laid out differently";
  EXPECT_EQ(rule_for(0x030A, 1).scope, Scope::image);
  EXPECT_EQ(rule_for(0xFFFF, 1).scope, Scope::header);
  EXPECT_EQ(rule_for(0x00FF, 1).scope, Scope::always);
  for (const HookInfo &info : all_hooks())
    for (unsigned version = 0; version < 256; ++version)
      ASSERT_EQ(rule_for(info.hook, static_cast<std::uint16_t>(version)).scope, info.scope);
}

} // namespace
} // namespace etwrelog::kernel
