#include "etwrelog/provider_names.hpp"

#include "base/cut_text.hpp"
#include "etwrelog/format.hpp"
#include "etwrelog/kernel_events.hpp"
#include "etwrelog/provider_events.hpp"
#include "schema/entry.hpp"

#include <algorithm>

namespace etwrelog {
namespace {

struct Named {
  Guid guid;
  std::string_view name;
};

constexpr Named kProviders[] = {
    {format::kClrGuid, "Microsoft-Windows-DotNETRuntime"},
    {format::kClrRundownGuid, "Microsoft-Windows-DotNETRuntimeRundown"},
    {format::kClrPrivateGuid, "Microsoft-Windows-DotNETRuntimePrivate"},
    {make_guid(0x319dc449, 0xada5, 0x50f7, 0x428e, 0x957db6791668), "Microsoft-Windows-DotNETRuntimeStress"},
    {make_guid(0x2e5dba47, 0xa3d2, 0x4d16, 0x8ee0, 0x6671ffdcd7b5), "System.Threading.Tasks.TplEventSource"},
    {make_guid(0x8e9f5090, 0x2d75, 0x4d03, 0x8a81, 0xe5afbf85daf1),
     "System.Diagnostics.Eventing.FrameworkEventSource"},
    {make_guid(0xa8a71ac1, 0x040f, 0x54a2, 0x07ca, 0x00a89b5ab761), "PerfView"},
    {format::kKernelEventTracingGuid, "Microsoft-Windows-Kernel-EventTracing"},
    {provider::kKernelProcess, "Microsoft-Windows-Kernel-Process"},
    {provider::kKernelFile, "Microsoft-Windows-Kernel-File"},
    {make_guid(0xc7bde69a, 0xe1e0, 0x4177, 0xb6ef, 0x283ad1525271), "Microsoft-Windows-Kernel-Disk"},
    {make_guid(0x7dd42a49, 0x5329, 0x4832, 0x8dfd, 0x43d979153a88), "Microsoft-Windows-Kernel-Network"},
    {provider::kKernelRegistry, "Microsoft-Windows-Kernel-Registry"},
    {make_guid(0x1c95126e, 0x7eea, 0x49a9, 0xa3fe, 0xa378b03ddb4d), "Microsoft-Windows-DNS-Client"},
    {make_guid(0x315a8872, 0x923e, 0x4ea2, 0x9889, 0x33cd4754bf64), "Microsoft-Windows-Immersive-Shell"},
    {make_guid(0xdd5ef90a, 0x6398, 0x47a4, 0xad34, 0x4dcecdef795f), "Microsoft-Windows-HttpService"},
    {make_guid(0xca11c036, 0x0102, 0x4a2d, 0xa6ad, 0xf03cfed5d3c9), "Microsoft-Windows-DXGI"},
    {make_guid(0x802ec45a, 0x1e99, 0x4b83, 0x9920, 0x87c98277ba9d), "Microsoft-Windows-DxgKrnl"},
    {format::kImageIdGuid, "KernelTraceControl/ImageID"},
    {format::kMetaDataGuid, "KernelTraceControl/MetaData"},
    {format::kSysConfigGuid, "Windows Kernel/SysConfig"},
    {format::kWinSatGuid, "WinSat"},
};

} // namespace

bool schema::same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return base::lower(x) == base::lower(y); });
}

std::string_view provider_name(const Guid &guid) {
  for (const Named &provider : kProviders)
    if (provider.guid == guid) return provider.name;
  return {};
}

std::optional<Guid> provider_by_name(std::string_view name) {
  for (const Named &provider : kProviders)
    if (schema::same_name(provider.name, name)) return provider.guid;
  for (unsigned group = 0; group < 256 && !kernel::group_name(static_cast<std::uint8_t>(group)).empty();
       ++group)
    if (schema::same_name(kernel::group_name(static_cast<std::uint8_t>(group)), name))
      return kernel::group_guid(static_cast<std::uint8_t>(group));
  return std::nullopt;
}

} // namespace etwrelog
