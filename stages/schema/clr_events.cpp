#include "etwrelog/clr_events.hpp"

#include <algorithm>
#include <iterator>

namespace etwrelog::clr {
namespace {

struct Named {
  std::uint16_t id;
  std::string_view name;
};

constexpr Named kRuntime[] = {
    {1, "GC/Start"},
    {2, "GC/Stop"},
    {3, "GC/RestartEEStop"},
    {4, "GC/HeapStats"},
    {5, "GC/CreateSegment"},
    {6, "GC/FreeSegment"},
    {7, "GC/RestartEEStart"},
    {8, "GC/SuspendEEStop"},
    {9, "GC/SuspendEEStart"},
    {10, "GC/AllocationTick"},
    {11, "GC/CreateConcurrentThread"},
    {12, "GC/TerminateConcurrentThread"},
    {13, "GC/FinalizersStop"},
    {14, "GC/FinalizersStart"},
    {15, "Type/BulkType"},
    {16, "GC/BulkRootEdge"},
    {17, "GC/BulkRootConditionalWeakTableElementEdge"},
    {18, "GC/BulkNode"},
    {19, "GC/BulkEdge"},
    {20, "GC/SampledObjectAllocation"},
    {21, "GC/BulkSurvivingObjectRanges"},
    {22, "GC/BulkMovedObjectRanges"},
    {23, "GC/GenerationRange"},
    {25, "GC/MarkStackRoots"},
    {26, "GC/MarkFinalizeQueueRoots"},
    {27, "GC/MarkHandles"},
    {28, "GC/MarkCards"},
    {29, "GC/FinalizeObject"},
    {30, "GC/SetGCHandle"},
    {31, "GC/DestoryGCHandle"},
    {32, "GC/SampledObjectAllocation"},
    {33, "GC/PinObjectAtGCTime"},
    {35, "GC/Triggered"},
    {50, "ThreadPoolWorkerThread/Start"},
    {51, "ThreadPoolWorkerThread/Stop"},
    {54, "ThreadPoolWorkerThreadAdjustment/Sample"},
    {55, "ThreadPoolWorkerThreadAdjustment/Adjustment"},
    {56, "ThreadPoolWorkerThreadAdjustment/Stats"},
    {57, "ThreadPoolWorkerThread/Wait"},
    {80, "Exception/Start"},
    {81, "Contention/Start"},
    {82, "ClrStack/Walk"},
    {83, "AppDomainResourceManagement/MemAllocated"},
    {84, "AppDomainResourceManagement/MemSurvived"},
    {85, "AppDomainResourceManagement/ThreadCreated"},
    {86, "AppDomainResourceManagement/ThreadTerminated"},
    {87, "AppDomainResourceManagement/DomainEnter"},
    {91, "Contention/Stop"},
    {141, "Method/Load"},
    {142, "Method/Unload"},
    {143, "Method/LoadVerbose"},
    {144, "Method/UnloadVerbose"},
    {145, "Method/JittingStarted"},
    {151, "Loader/DomainModuleLoad"},
    {152, "Loader/ModuleLoad"},
    {153, "Loader/ModuleUnload"},
    {154, "Loader/AssemblyLoad"},
    {155, "Loader/AssemblyUnload"},
    {156, "Loader/AppDomainLoad"},
    {157, "Loader/AppDomainUnload"},
    {187, "Runtime/Start"},
    {190, "Method/ILToNativeMap"},
    {200, "GarbageCollection/IncreaseMemoryPressure"},
    {201, "GarbageCollection/DecreaseMemoryPressure"},
    {202, "GC/MarkWithType"},
};

constexpr Named kPrivate[] = {
    {1, "GC/Decision"},
    {2, "GC/Settings"},
    {3, "GC/Optimized"},
    {4, "GC/PerHeapHistory"},
    {5, "GC/GlobalHeapHistory"},
    {6, "GC/Join"},
    {7, "GC/MarkStackRoots"},
    {8, "GC/MarkFinalizeQueueRoots"},
    {9, "GC/MarkHandles"},
    {10, "GC/MarkCards"},
    {159, "Binding/PolicyPhaseStart"},
    {160, "Binding/PolicyPhaseStop"},
    {161, "Binding/NgenPhaseStart"},
    {162, "Binding/NgenPhaseStop"},
    {163, "Binding/LoopupAndProbingPhaseStart"},
    {164, "Binding/LookupAndProbingPhaseStop"},
    {165, "Binding/LoaderPhaseStart"},
    {166, "Binding/LoaderPhaseStop"},
    {167, "Binding/BindingPhaseStart"},
    {168, "Binding/BindingPhaseStop"},
    {169, "Binding/DownloadPhaseStart"},
    {170, "Binding/DownloadPhaseStop"},
    {171, "Binding/LoaderAssemblyInitPhaseStart"},
    {172, "Binding/LoaderAssemblyInitPhaseStop"},
    {173, "Binding/LoaderMappingPhaseStart"},
    {174, "Binding/LoaderMappingPhaseStop"},
    {175, "Binding/LoaderDeliverEventPhaseStart"},
    {176, "Binding/LoaderDeliverEventsPhaseStop"},
    {188, "NgenBinder/NgenBind"},
    {196, "Binding/FusionMessage"},
};

constexpr Named kRundown[] = {
    {82, "ClrStack/Walk"},
    {141, "Method/DCStart"},
    {142, "Method/DCStop"},
    {143, "Method/DCStartVerbose"},
    {144, "Method/DCStopVerbose"},
    {145, "Method/DCStartComplete"},
    {146, "Method/DCStopComplete"},
    {147, "Method/DCStartInit"},
    {148, "Method/DCStopInit"},
    {149, "Method/ILToNativeMapDCStart"},
    {150, "Method/ILToNativeMapDCStop"},
    {151, "Loader/DomainModuleDCStart"},
    {152, "Loader/DomainModuleDCStop"},
    {153, "Loader/ModuleDCStart"},
    {154, "Loader/ModuleDCStop"},
    {155, "Loader/AssemblyDCStart"},
    {156, "Loader/AssemblyDCStop"},
    {157, "Loader/AppDomainDCStart"},
    {158, "Loader/AppDomainDCStop"},
    {159, "Loader/ThreadDCStop"},
    {187, "Runtime/Start"},
};

template <std::size_t N> std::string_view find(const Named (&table)[N], std::uint16_t id) {
  static_assert(N > 0);
  const auto at = std::ranges::lower_bound(table, id, {}, &Named::id);
  return at != std::end(table) && at->id == id ? at->name : std::string_view();
}

static_assert(std::ranges::is_sorted(kRuntime, {}, &Named::id));
static_assert(std::ranges::is_sorted(kPrivate, {}, &Named::id));
static_assert(std::ranges::is_sorted(kRundown, {}, &Named::id));

} // namespace

std::string_view event_name(const Guid &provider, std::uint16_t id) {
  if (provider == format::kClrGuid) return find(kRuntime, id);
  if (provider == format::kClrPrivateGuid) return find(kPrivate, id);
  if (provider == format::kClrRundownGuid) return find(kRundown, id);
  return {};
}

} // namespace etwrelog::clr
