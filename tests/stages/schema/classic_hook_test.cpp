// Which kernel event stands behind a classic header, and with what pointer size its payload was written.
#include "etwrelog/schema.hpp"
#include "write/event_builder.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using Addresses = std::vector<std::uint64_t>;

class ClassicHook : public ::testing::Test {
protected:
  // A classic event of `hook`, and what it is taken for; `addresses` as pointers of `written_with` bytes.
  std::optional<std::uint16_t> hook_of(std::uint16_t hook, unsigned header, unsigned written_with,
                                       std::size_t before, const Addresses &addresses) {
    bytes_.clear();
    write::EventBuilder builder(bytes_);
    builder.classic(kernel::class_guid(hook), static_cast<std::uint8_t>(hook), 2, header, 1, 2, 1000)
        .zeros(before);
    for (const std::uint64_t address : addresses)
      written_with == 8 ? builder.put(address) : builder.put(static_cast<std::uint32_t>(address));
    (void)builder.finish();
    std::optional<std::uint16_t> found;
    for_each_event(bytes_, [&](const EventView &event, std::int64_t, std::uint32_t) {
      event_ = event;
      found = kernel::hook_of(event);
    });
    return found;
  }
  [[nodiscard]] unsigned decoded_with() const {
    const SchemaCatalog catalog;
    const Schema *schema = catalog.find(event_);
    EXPECT_NE(schema, nullptr);
    const Decoder narrow(*schema, 4), wide(*schema, 8);
    return &fitting_decoder(event_, narrow, wide) == &wide ? 8 : 4;
  }

  static constexpr std::uint16_t kWalk = 0x1820, kDefinition = 0x1823, kReference = 0x1826;
  static constexpr std::uint64_t kKernel = 0xFFFF'F803'1234'5678, kUser = 0x7FF6'0000'1000;

private:
  std::vector<std::uint8_t> bytes_;
  EventView event_;
};

TEST_F(ClassicHook, IsThatOfClassAndOpcode) {
  EXPECT_EQ(hook_of(0x0F2E, 8, 8, 8, {kUser}), 0x0F2E);
  EXPECT_EQ(hook_of(kernel::kHookImageLoad, 8, 8, 60, {}), kernel::kHookImageLoad);
  EXPECT_EQ(hook_of(kWalk, 8, 8, 16, {kKernel, kUser}), kWalk);
  EXPECT_EQ(decoded_with(), 8u);
}

TEST_F(ClassicHook, OfStacksOf32BitsIsKnownByTheirSize) {
  for (const Addresses &frames : {Addresses{0x8123'4567}, Addresses{0x8123'4567, 0x8000'1000},
                                  Addresses{0x40'1000, 0x1'0000}, Addresses{0x40'1000, 0xFFFE'FFFF}}) {
    EXPECT_EQ(hook_of(kWalk, 4, 4, 16, frames), kWalk);
    EXPECT_EQ(decoded_with(), 4u);
  }
  EXPECT_EQ(hook_of(kDefinition, 4, 4, 4, {0x8123'4567, 0x8000'1000, 0x8000'2000}), kDefinition);
  EXPECT_EQ(decoded_with(), 4u);
  EXPECT_EQ(hook_of(kReference, 4, 4, 16, {0x8123'4567}), kReference);
}

// A program of 32 bits passed them on.
TEST_F(ClassicHook, OfStacksOf64BitsBehindAHeaderOf32IsNone) {
  for (const std::uint64_t innermost : {kKernel, kUser, std::uint64_t{0x7712'3456}}) {
    EXPECT_FALSE(hook_of(kWalk, 4, 8, 16, {innermost, kUser}));
    EXPECT_EQ(decoded_with(), 8u);
    EXPECT_FALSE(hook_of(kDefinition, 4, 8, 8, {innermost, kUser}));
    EXPECT_EQ(decoded_with(), 8u);
  }
  EXPECT_FALSE(hook_of(kReference, 4, 8, 16, {kKernel}));
  EXPECT_EQ(decoded_with(), 8u);
}

TEST_F(ClassicHook, OfOtherClassesIsNone) {
  std::vector<std::uint8_t> bytes;
  for (const Guid &guid : {format::kImageIdGuid, make_guid(0xaabbccdd, 1, 2, 3, 4)}) {
    write::EventBuilder builder(bytes);
    (void)builder.classic(guid, 32, 2, 8, 1, 2, 1000).zeros(16).finish();
  }
  for_each_event(bytes, [&](const EventView &event, std::int64_t, std::uint32_t) {
    EXPECT_FALSE(kernel::hook_of(event));
  });
}

} // namespace
} // namespace etwrelog
