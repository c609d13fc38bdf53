#include "etwrelog/provider_events.hpp"

namespace etwrelog::provider {
namespace {

using kernel::Field;
using T = kernel::FieldType;
using R = kernel::Role;

constexpr Field kMethod[] = {{T::u64, "MethodID", R::method_id},
                             {T::u64, "ModuleID", R::module_id},
                             {T::u64, "MethodStartAddress", R::code_address},
                             {T::u32, "MethodSize", R::code_size},
                             {T::u32, "MethodToken"},
                             {T::u32, "MethodFlags"},
                             {T::wstr, "MethodNamespace", R::type_name},
                             {T::wstr, "MethodName", R::method_name},
                             {T::wstr, "MethodSignature", R::signature},
                             {T::u16, "ClrInstanceID"},
                             {T::u64, "ReJITID"}};
constexpr Field kMethodJitting[] = {{T::u64, "MethodID", R::method_id},
                                    {T::u64, "ModuleID", R::module_id},
                                    {T::u32, "MethodToken"},
                                    {T::u32, "MethodILSize"},
                                    {T::wstr, "MethodNamespace", R::type_name},
                                    {T::wstr, "MethodName", R::method_name},
                                    {T::wstr, "MethodSignature", R::signature},
                                    {T::u16, "ClrInstanceID"}};
constexpr Field kOffsetMap[] = {{T::u64, "MethodID", R::method_id},
                                {T::u64, "ReJITID"},
                                {T::u8, "MethodExtent"},
                                {T::offset_map, "ILToNativeMap"},
                                {T::u16, "ClrInstanceID"}};
constexpr Field kModule[] = {{T::u64, "ModuleID", R::module_id},
                             {T::u64, "AssemblyID"},
                             {T::u32, "ModuleFlags"},
                             {T::u32, "Reserved1"},
                             {T::wstr, "ModuleILPath", R::file_name},
                             {T::wstr, "ModuleNativePath", R::file_name},
                             {T::u16, "ClrInstanceID"},
                             {T::guid, "ManagedPdbSignature"},
                             {T::u32, "ManagedPdbAge"},
                             {T::wstr, "ManagedPdbBuildPath", R::file_name},
                             {T::guid, "NativePdbSignature"},
                             {T::u32, "NativePdbAge"},
                             {T::wstr, "NativePdbBuildPath", R::file_name}};
constexpr Field kDomainModule[] = {{T::u64, "ModuleID", R::module_id},
                                   {T::u64, "AssemblyID"},
                                   {T::u64, "AppDomainID"},
                                   {T::u32, "ModuleFlags"},
                                   {T::u32, "Reserved1"},
                                   {T::wstr, "ModuleILPath", R::file_name},
                                   {T::wstr, "ModuleNativePath", R::file_name},
                                   {T::u16, "ClrInstanceID"}};
constexpr Field kAssembly[] = {{T::u64, "AssemblyID"},
                               {T::u64, "AppDomainID"},
                               {T::u64, "BindingID"},
                               {T::u32, "AssemblyFlags"},
                               {T::wstr, "FullyQualifiedAssemblyName"},
                               {T::u16, "ClrInstanceID"}};
constexpr Field kClrStack[] = {{T::u16, "ClrInstanceID"},
                               {T::u8, "Reserved1"},
                               {T::u8, "Reserved2"},
                               {T::counted_pointers, "Stack", R::frames}};
constexpr Field kAllocationTick[] = {{T::u32, "AllocationAmount"},
                                     {T::u32, "AllocationKind"},
                                     {T::u16, "ClrInstanceID"},
                                     {T::u64, "AllocationAmount64"},
                                     {T::pointer, "TypeID", R::module_id},
                                     {T::wstr, "TypeName", R::type_name},
                                     {T::u32, "HeapIndex"},
                                     {T::pointer, "Address"}};

constexpr Field kImageId[] = {{T::pointer, "ImageBase", R::image_base},
                              {T::pointer, "ImageSize", R::image_size},
                              {T::u32, "ProcessId", R::process_id},
                              {T::u32, "TimeDateStamp", R::image_time},
                              {T::wstr, "OriginalFileName", R::file_name}};
constexpr Field kImageNone[] = {{T::pointer, "ImageBase", R::image_base},
                                {T::u32, "ProcessId", R::process_id}};
constexpr Field kImageDbg[] = {{T::pointer, "ImageBase", R::image_base},
                               {T::u32, "ProcessId", R::process_id},
                               {T::u32, "Checksum", R::image_checksum},
                               {T::u32, "TimeDateStamp", R::image_time},
                               {T::u32, "ImageSize"},
                               {T::wstr, "DbgFileName", R::file_name}};
constexpr Field kImageRsds[] = {{T::pointer, "ImageBase", R::image_base},
                                {T::u32, "ProcessId", R::process_id},
                                {T::guid, "GuidSig"},
                                {T::u32, "Age"},
                                {T::astr, "PdbFileName", R::file_name}};
constexpr Field kImagePpdb[] = {{T::pointer, "ImageBase", R::image_base},
                                {T::u32, "ProcessId", R::process_id},
                                {T::u32, "TimeDateStamp", R::image_time},
                                {T::u16, "MajorVersion"},
                                {T::u16, "MinorVersion"}};
constexpr Field kImageEmbeddedPdb[] = {{T::pointer, "ImageBase", R::image_base},
                                       {T::u32, "ProcessId", R::process_id},
                                       {T::u16, "MajorVersion"},
                                       {T::u16, "MinorVersion"},
                                       {T::guid, "GuidSig"},
                                       {T::u32, "Age"}};
constexpr Field kImageFailure[] = {{T::wstr, "Text", R::file_name}};
constexpr Field kImageFileVersion[] = {{T::u32, "ImageSize", R::image_size},
                                       {T::u32, "TimeDateStamp", R::image_time},
                                       {T::wstr, "OrigFileName", R::file_name},
                                       {T::wstr, "FileDescription"},
                                       {T::wstr, "FileVersion"},
                                       {T::wstr, "BinFileVersion"},
                                       {T::wstr, "VerLanguage"},
                                       {T::wstr, "ProductName"},
                                       {T::wstr, "CompanyName"},
                                       {T::wstr, "ProductVersion"},
                                       {T::wstr, "FileId"},
                                       {T::wstr, "ProgramId"}};

constexpr Guid kClr = format::kClrGuid, kRundown = format::kClrRundownGuid, kImage = format::kImageIdGuid;

constexpr Layout kLayouts[] = {
    {kClr, 10, 3, kAllocationTick, "GC/AllocationTick"},
    {kClr, 82, 0, kClrStack, "CLR/Stack"},
    {kClr, 143, 1, kMethod, "Method/LoadVerbose"},
    {kClr, 144, 1, kMethod, "Method/UnloadVerbose"},
    {kClr, 145, 1, kMethodJitting, "Method/JittingStarted"},
    {kClr, 151, 1, kDomainModule, "Loader/DomainModuleLoad"},
    {kClr, 152, 1, kModule, "Loader/ModuleLoad"},
    {kClr, 153, 1, kModule, "Loader/ModuleUnload"},
    {kClr, 154, 1, kAssembly, "Loader/AssemblyLoad"},
    {kClr, 155, 1, kAssembly, "Loader/AssemblyUnload"},
    {kClr, 190, 0, kOffsetMap, "Method/ILToNativeMap"},
    {kRundown, 143, 1, kMethod, "Method/DCStartVerbose"},
    {kRundown, 144, 1, kMethod, "Method/DCEndVerbose"},
    {kRundown, 149, 0, kOffsetMap, "Method/ILToNativeMapDCStart"},
    {kRundown, 150, 0, kOffsetMap, "Method/ILToNativeMapDCEnd"},
    {kRundown, 151, 1, kDomainModule, "Loader/DomainModuleDCStart"},
    {kRundown, 152, 1, kDomainModule, "Loader/DomainModuleDCEnd"},
    {kRundown, 153, 1, kModule, "Loader/ModuleDCStart"},
    {kRundown, 154, 1, kModule, "Loader/ModuleDCEnd"},
    {kRundown, 155, 1, kAssembly, "Loader/AssemblyDCStart"},
    {kRundown, 156, 1, kAssembly, "Loader/AssemblyDCEnd"},
    {kImage, 0, 2, kImageId, "ImageID"},
    {kImage, 32, 2, kImageNone, "ImageID/None"},
    {kImage, 34, 2, kImageDbg, "ImageID/Dbg"},
    {kImage, 36, 2, kImageRsds, "ImageID/DbgID_RSDS"},
    {kImage, 37, 2, kImageRsds, "ImageID/DbgID_ILRSDS"},
    {kImage, 38, 2, kImagePpdb, "ImageID/PPDB"},
    {kImage, 39, 1, kImageEmbeddedPdb, "ImageID/EmbeddedPDB"},
    {kImage, 40, 1, kImageNone, "ImageID/Deterministic"},
    {kImage, 41, 1, kImageFailure, "ImageID/Failure"},
    {kImage, 64, 0, kImageFileVersion, "ImageID/FileVersion"},
};

} // namespace

std::span<const Layout> all_layouts() {
  return kLayouts;
}

const Layout *find_layout(const EventView &event) {
  const bool classic = event.is_classic();
  if (!classic && !event.is_event()) return nullptr;
  const Guid provider = event.provider();
  if (classic != (provider == kImage)) return nullptr;
  const std::uint16_t id = classic ? event.opcode() : event.id();
  const Layout *best = nullptr;
  for (const Layout &row : kLayouts) {
    if (row.id == id && row.provider == provider && event.version() >= row.min_version) best = &row;
  }
  return best;
}

} // namespace etwrelog::provider
