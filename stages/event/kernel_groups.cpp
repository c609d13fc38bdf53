// The groups of kernel hooks: an event's class GUID follows from the high byte of its hook.
#include "etwrelog/kernel_events.hpp"

#include <iterator>

namespace etwrelog::kernel {
namespace {

struct Group {
  Guid guid;
  std::string_view name;
};

// Indexed by the high byte of the hook.
constexpr Group kGroups[] = {
    {format::kEventTraceGuid, "EventTrace"},
    {make_guid(0x3d6fa8d4, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c), "DiskIO"},
    {make_guid(0x3d6fa8d3, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c), "Memory"},
    {make_guid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c), "Process"},
    {make_guid(0x90cbdc39, 0x4a3e, 0x11d1, 0x84f4, 0x0000f80464e3), "FileIO"},
    {make_guid(0x3d6fa8d1, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c), "Thread"},
    {make_guid(0x9a280ac0, 0xc8e0, 0x11d1, 0x84e2, 0x00c04fb998a2), "TcpIp"},
    {make_guid(0x3282fc76, 0xfeed, 0x498e, 0x8aa7, 0xe70f459d430e), "Job"},
    {make_guid(0xbf3a50c5, 0xa9c9, 0x4988, 0xa005, 0x2df0b7c80f80), "UdpIp"},
    {make_guid(0xae53722e, 0xc863, 0x11d2, 0x8659, 0x00c04fa321a1), "Registry"},
    {make_guid(0x13976d09, 0xa327, 0x438c, 0x950b, 0x7f03192815c7), "DbgPrint"},
    {make_guid(0x01853a65, 0x418f, 0x4f36, 0xaefc, 0xdc0f1d2fd235), "SystemConfig"},
    {make_guid(0x99134383, 0x5248, 0x43fc, 0x834b, 0x529454e75df3), "LastBranch"},
    {make_guid(0x42695762, 0xea50, 0x497a, 0x9068, 0x5cbbb35e0b95), "WNF"},
    {make_guid(0x0268a8b6, 0x74fd, 0x4302, 0x9dd0, 0x6e8f1795c0cf), "Pool"},
    {make_guid(0xce1dbfb4, 0x137e, 0x4da6, 0x87b0, 0x3f59aa102cbc), "PerfInfo"},
    {make_guid(0x222962ab, 0x6180, 0x4b88, 0xa825, 0x346b75f2a24a), "Heap"},
    {make_guid(0x89497f50, 0xeffe, 0x4440, 0x8cf2, 0xce6b1cdcaca7), "Object"},
    {make_guid(0xe43445e0, 0x0903, 0x48c3, 0xb878, 0xff0fccebdd04), "Power"},
    {make_guid(0xa9152f00, 0x3f58, 0x4bee, 0x92a1, 0x70c7d079d5dd), "ModBound"},
    {make_guid(0x2cb15d1d, 0x5fc1, 0x11d2, 0xabe1, 0x00a0c911f518), "Image"},
    {make_guid(0xb2d14872, 0x7c5b, 0x463d, 0x8419, 0xee9bf7d23e04), "Dpc"},
    {make_guid(0x7687a439, 0xf752, 0x45b8, 0xb741, 0x321aec0f8df9), "Cc"},
    {make_guid(0x3ac66736, 0xcc59, 0x4cff, 0x8115, 0x8df50e39816b), "CritSec"},
    {make_guid(0xdef2fe46, 0x7bd6, 0x4b80, 0xbd94, 0xf57fe20d0ce3), "StackWalk"},
    {make_guid(0x9aec974b, 0x5b8e, 0x4118, 0x9b92, 0x3186d8002ce5), "UMS"},
    {make_guid(0x45d8cccd, 0x539f, 0x4b72, 0xa8b7, 0x5c683142609a), "ALPC"},
    {make_guid(0xd837ca92, 0x12b9, 0x44a5, 0xad6a, 0x3a65b3578aa8), "SplitIo"},
    {make_guid(0xc861d0e2, 0xa2c1, 0x4d36, 0x9f9c, 0x970bab943a12), "ThreadPool"},
    {make_guid(0x7f2a405c, 0x69b5, 0x4bf9, 0xa1f5, 0x30e8f1afab5e), "Hypervisor"},
    {make_guid(0x2ce9a149, 0xeffe, 0x42f0, 0xa635, 0xa1d39e26c8f2), "HypervisorX"},
};

constexpr std::uint8_t kImageGroup = 0x14;

} // namespace

Guid class_guid(std::uint16_t hook) {
  return group_guid(hook == kHookImageLoad ? kImageGroup : static_cast<std::uint8_t>(hook >> 8));
}

Guid group_guid(std::uint8_t group) {
  return group < std::size(kGroups) ? kGroups[group].guid : Guid{};
}

std::string_view group_name(std::uint8_t group) {
  return group < std::size(kGroups) ? kGroups[group].name : std::string_view();
}

std::optional<std::uint16_t> hook_of_class(const Guid &guid, std::uint8_t opcode) {
  for (std::size_t group = 0; group < std::size(kGroups); ++group)
    if (kGroups[group].guid == guid)
      return group == kImageGroup && opcode == 10 ? kHookImageLoad
                                                  : static_cast<std::uint16_t>(group << 8 | opcode);
  return std::nullopt;
}

} // namespace etwrelog::kernel
