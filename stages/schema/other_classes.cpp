// Configuration of the machine, what a merge adds, and .NET: see kernel_classes.cpp for the sources.
#include "schema/entry.hpp"

#include <array>

namespace etwrelog::schema {

extern const std::string_view kKernelClasses, kKernelProviders;

namespace {

// Processors: the documented order of its last two strings is the other way round in every trace seen.
constexpr std::string_view kConfigurationClasses = R"(
class 01853a65-418f-4f36-aefc-dc0f1d2fd235 SystemConfig
10 CPU | 0-2 | MHz:u32 NumberOfProcessors:u32 MemSize:u32 PageSize:u32 AllocationGranularity:u32 ComputerName:wstr(256)
 DomainName:wstr(134) HyperThreadingFlag:ptr
10 CPU | 3 | MHz:u32 NumberOfProcessors:u32 MemSize:u32 PageSize:u32 AllocationGranularity:u32 ComputerName:wstr(256)
 DomainName:wstr(134) HyperThreadingFlag:ptr HighestUserAddress:ptr ProcessorArchitecture:u16 ProcessorLevel:u16
 ProcessorRevision:u16 PaeEnabled:u8 NxEnabled:u8 MemorySpeed:u32
11 PhyDisk | 0-2 | DiskNumber:u32 BytesPerSector:u32 SectorsPerTrack:u32 TracksPerCylinder:u32 Cylinders:u64 SCSIPort:u32
 SCSIPath:u32 SCSITarget:u32 SCSILun:u32 Manufacturer:wstr(256) PartitionCount:u32 WriteCacheEnabled:u8 Pad:u8
 BootDriveLetter:wstr(3) Spare:wstr(2)
12 LogDisk | 0-1 | StartOffset:u64 PartitionSize:u64 DiskNumber:u32 Size:u32 DriveType:u32 DriveLetterString:wstr(4)
 Pad1:u32 PartitionNumber:u32 SectorsPerCluster:u32 BytesPerSector:u32 Pad2:u32 NumberOfFreeClusters:i64
 TotalNumberOfClusters:i64 FileSystem:wstr(16) VolumeExt:u32
12 LogDisk | 2 | StartOffset:u64 PartitionSize:u64 DiskNumber:u32 Size:u32 DriveType:u32 DriveLetterString:wstr(4)
 Pad1:u32 PartitionNumber:u32 SectorsPerCluster:u32 BytesPerSector:u32 Pad2:u32 NumberOfFreeClusters:i64
 TotalNumberOfClusters:i64 FileSystem:wstr(16) VolumeExt:u32 Pad3:u32
13 NIC | 2 | PhysicalAddr:u64 PhysicalAddrLen:u32 Ipv4Index:u32 Ipv6Index:u32 NICDescription:wstr IpAddresses:wstr
 DnsServerAddresses:wstr
14 Video | 0-2 | MemorySize:u32 XResolution:u32 YResolution:u32 BitsPerPixel:u32 VRefresh:u32 ChipType:wstr(256)
 DACType:wstr(256) AdapterString:wstr(256) BiosString:wstr(256) DeviceId:wstr(256) StateFlags:x32
15 Services | 2 | ProcessId:u32@process_id ServiceState:u32 SubProcessTag:u32 ServiceName:wstr DisplayName:wstr
 ProcessName:wstr
15 Services | 3 | ProcessId:u32@process_id ServiceState:u32 SubProcessTag:u32 ServiceName:wstr DisplayName:wstr
 ProcessName:wstr LoadOrderGroup:wstr SvchostGroup:wstr
16 Power | 0-2 | S1:u8 S2:u8 S3:u8 S4:u8 S5:u8 Pad1:u8 Pad2:u8 Pad3:u8
17 Network | 2 | TcbTablePartitions:u32 MaxHashTableSize:u32 MaxUserPort:u32 TcpTimedWaitDelay:u32
18 OpticalDisk | 2 | DiskNumber:u16 BusType:u16 DeviceType:u16 MediaType:u16 StartingOffset:u64 Size:u64
 NumberOfFreeBlocks:u64 TotalNumberOfBlocks:u64 NextWritableAddress:u64 NumberOfSessions:u32 NumberOfTracks:u32
 BytesPerSector:u32 DiscStatus:u16 LastSessionStatus:u16 DriveLetter:wstr FileSystemName:wstr DeviceName:astr
 ManufacturerName:astr
21 IRQ | 0-2 | IRQAffinity:u64 IRQNum:u32 DeviceDescriptionLen:u32 DeviceDescription:wstr
21 IRQ | 3 | IRQAffinity:u64 IRQGroup:u16 Reserved:u16 IRQNum:u32 DeviceDescriptionLen:u32 DeviceDescription:wstr
22 PnP | 0-2 | IDLength:u32 DescriptionLength:u32 FriendlyNameLength:u32 DeviceID:wstr DeviceDescription:wstr
 FriendlyName:wstr
22 PnP | 3 | IDLength:u32 DescriptionLength:u32 FriendlyNameLength:u32 DeviceID:wstr DeviceDescription:wstr
 FriendlyName:wstr PdoName:wstr
22 PnP | 4 | ClassGuid:guid UpperFiltersCount:u32 LowerFiltersCount:u32 DeviceID:wstr DeviceDescription:wstr
 FriendlyName:wstr PdoName:wstr ServiceName:wstr UpperFilters:wstr*UpperFiltersCount LowerFilters:wstr*LowerFiltersCount
22 PnP | 5 | ClassGuid:guid UpperFiltersCount:u32 LowerFiltersCount:u32 DevStatus:u32 DevProblem:u32 DeviceID:wstr
 DeviceDescription:wstr FriendlyName:wstr PdoName:wstr ServiceName:wstr UpperFilters:wstr*UpperFiltersCount
 LowerFilters:wstr*LowerFiltersCount
23 IDEChannel | 2 | TargetId:u32 DeviceType:u32 DeviceTimingMode:u32 LocationInformationLen:u32 LocationInformation:wstr
24 NumaNode | 2 | NodeCount:u32 NodeMap:u64*NodeCount
25 Platform | 2 | SystemManufacturer:wstr SystemProductName:wstr BiosDate:wstr BiosVersion:wstr
26 ProcessorGroup | 2 | GroupCount:u32 Affinity:ptr*GroupCount
27 ProcessorNumber | 2 | ProcessorCount:u32 ProcessorNumber:u32*ProcessorCount
28 DPI | 2 | MachineDPI:u32 UserDPI:u32
29 CodeIntegrity | 2 | CodeIntegrityInfo:u32
30 TelemetryConfiguration | 2 | MachineId:guid
31 Defragmentation | 2 | AlignmentClusters:u64 AvgFreeSpaceSize:u64 ClustersPerSlab:u64 FragmentedDirectoryExtents:u64
 FragmentedExtents:u64 FreeSpaceCount:u64 LargestFreeSpaceSize:u64 LastRunActualPurgeClusters:u64
 LastRunClustersTrimmed:u64 LastRunFullDefragTime:u64 LastRunTime:u64 MFTSize:u64 TotalClusters:u64
 TotalUsedClusters:u64 AvgFragmentsPerFile:u32 BytesPerCluster:u32 DirectoryCount:u32 FragmentedDirectories:u32
 FragmentedFiles:u32 FragmentedSpace:u32 HardwareIssue:u32 InUseMFTRecords:u32 InUseSlabs:u32
 LastRunActualPurgeSlabs:u32 LastRunInitialBackedSlabs:u32 LastRunPercentFragmentation:u32 LastRunPinnedSlabs:u32
 LastRunPotentialPurgeSlabs:u32 LastRunSpaceInefficientSlabs:u32 LastRunTrimmedSlabs:u32
 LastRunUnknownEvictFailSlabs:u32 LastRunVolsnapPinnedSlabs:u32 MFTFragmentCount:u32 MovableFiles:u32
 TotalMFTRecords:u32 TotalSlabs:u32 UnmovableFiles:u32 VolumeId:guid VolumePathNames:wstr
32 MobilePlatform | 2 | BootLoaderVersion:wstr FirmwareRevision:wstr FriendlyName:wstr HardwareRevision:wstr
 Manufacturer:wstr ManufacturerDisplayName:wstr ManufacturerModelName:wstr MobileOperatorDisplayName:wstr
 MobileOperatorName:wstr ModelName:wstr RadioHardwareRevision:wstr RadioSoftwareRevision:wstr ROMVersion:wstr
 SOCVersion:wstr HardwareVariant:wstr
32 MobilePlatform | 3 | DeviceManufacturer:wstr DeviceManufacturerDisplayName:wstr DeviceModel:wstr
 DeviceModelDisplayName:wstr MobileOperator:wstr MobileOperatorDisplayName:wstr HardwareVersion:wstr SocVersion:wstr
 RadioHardwareVersion:wstr RadioSoftwareVersion:wstr BspVersion:wstr OemSoftwareVersion:wstr
33 DeviceFamily | 2 | UAPInfo:u64 DeviceFamily:u32 DeviceForm:u32
34 FlightIds | 2 | UpdateId:wstr FlightIdList:wstr
35 Processors | 2 | ProcessorIndex:u32 FeatureSet:u32 ProcessorSpeed:u32 ProcessorName:wstr(64)
 ProcessorIdentifier:wstr(128) VendorIdentifier:wstr(16)
36 VirtualizationConfigInfo | 2 | VbsEnabled:u8 HvciEnabled:u8 HyperVisorEnabled:u8 Reserved:u8
37 BootConfigInfo | 2 | BootFlags:u64 FirmwareType:u32 SecureBootEnabled:u8 SecureBootCapable:u8 Reserved1:u8
 Reserved2:u8

class b3e675d7-2554-4f18-830b-2762732560de ImageID
0 ImageID | 2 | ImageBase:ptr@image_base ImageSize:ptr@image_size ProcessId:u32@process_id TimeDateStamp:u32@image_time
 OriginalFileName:wstr@file_name
32 None, 40 Deterministic | 1-2 | ImageBase:ptr@image_base ProcessId:u32@process_id
34 Dbg | 2 | ImageBase:ptr@image_base ProcessId:u32@process_id Checksum:u32@image_checksum TimeDateStamp:u32@image_time
 ImageSize:u32 DbgFileName:wstr@file_name
36 DbgID_RSDS, 37 DbgID_ILRSDS | 2 | ImageBase:ptr@image_base ProcessId:u32@process_id GuidSig:guid Age:u32
 PdbFileName:utf8@file_name
38 PPDB | 2 | ImageBase:ptr@image_base ProcessId:u32@process_id TimeDateStamp:u32@image_time MajorVersion:u16
 MinorVersion:u16
39 EmbeddedPDB | 1 | ImageBase:ptr@image_base ProcessId:u32@process_id MajorVersion:u16 MinorVersion:u16 GuidSig:guid
 Age:u32
41 Failure | 1 | Message:wstr
64 FileVersion | 0 | ImageSize:u32@image_size TimeDateStamp:u32@image_time OrigFileName:wstr@file_name
 FileDescription:wstr FileVersion:wstr BinFileVersion:wstr VerLanguage:wstr ProductName:wstr CompanyName:wstr
 ProductVersion:wstr FileId:wstr ProgramId:wstr

class 9b79ee91-b5fd-41c0-a243-4248e266e9d0 SysConfigEx
32 BuildInfo | 0 | InstallDate:ft BuildLab:wstr ProductName:wstr
33 SystemPaths | 0 | SystemDirectory:wstr SystemWindowsDirectory:wstr
34 UnknownVolume | 0 | Value:wstr
35 VolumeMapping | 0 | NtPath:wstr DosPath:wstr

class ed54dff8-c409-4cf6-bf83-05e1e61a09c4 WinSat
33 WinSPR, 35 Metrics, 37 SystemConfig | 0-2 | Version:u32 Xml:lznt1
)";

// Names and types of the manifests of .NET (ClrEtwAll).
constexpr std::string_view kClrEvents = R"(
provider e13c0d23-ccbc-4e12-931b-d9cc2eee27e4 Microsoft-Windows-DotNETRuntime
1 GC/Start | 0 | Count:u32 Reason:u32
1 GC/Start | 1 | Count:u32 Depth:u32 Reason:u32 Type:u32 ClrInstanceID:u16
1 GC/Start | 2 | Count:u32 Depth:u32 Reason:u32 Type:u32 ClrInstanceID:u16 ClientSequenceNumber:u64
2 GC/Stop | 0 | Count:u32 Depth:u16
2 GC/Stop | 1 | Count:u32 Depth:u32 ClrInstanceID:u16
3 GC/RestartEEStop, 7 GC/RestartEEStart, 8 GC/SuspendEEStop, 11 GC/CreateConcurrentThread,
 12 GC/TerminateConcurrentThread, 14 GC/FinalizersStart | 0 |
3 GC/RestartEEStop, 7 GC/RestartEEStart, 8 GC/SuspendEEStop, 11 GC/CreateConcurrentThread,
 12 GC/TerminateConcurrentThread, 14 GC/FinalizersStart | 1 | ClrInstanceID:u16
4 GC/HeapStats | 0 | GenerationSize0:u64 TotalPromotedSize0:u64 GenerationSize1:u64 TotalPromotedSize1:u64
 GenerationSize2:u64 TotalPromotedSize2:u64 GenerationSize3:u64 TotalPromotedSize3:u64 FinalizationPromotedSize:u64
 FinalizationPromotedCount:u64 PinnedObjectCount:u32 SinkBlockCount:u32 GCHandleCount:u32
4 GC/HeapStats | 1 | GenerationSize0:u64 TotalPromotedSize0:u64 GenerationSize1:u64 TotalPromotedSize1:u64
 GenerationSize2:u64 TotalPromotedSize2:u64 GenerationSize3:u64 TotalPromotedSize3:u64 FinalizationPromotedSize:u64
 FinalizationPromotedCount:u64 PinnedObjectCount:u32 SinkBlockCount:u32 GCHandleCount:u32 ClrInstanceID:u16
5 GC/CreateSegment | 0 | Address:x64 Size:x64 Type:u32
5 GC/CreateSegment | 1 | Address:x64 Size:x64 Type:u32 ClrInstanceID:u16
6 GC/FreeSegment | 0 | Address:x64
6 GC/FreeSegment | 1 | Address:x64 ClrInstanceID:u16
9 GC/SuspendEEStart | 0 | Reason:u16
9 GC/SuspendEEStart | 1 | Reason:u32 Count:u32 ClrInstanceID:u16
10 GC/AllocationTick | 0 | AllocationAmount:x32 AllocationKind:u32
10 GC/AllocationTick | 1 | AllocationAmount:x32 AllocationKind:u32 ClrInstanceID:u16
10 GC/AllocationTick | 2 | AllocationAmount:x32 AllocationKind:u32 ClrInstanceID:u16 AllocationAmount64:x64
 TypeID:ptr@module_id TypeName:wstr@type_name HeapIndex:u32
10 GC/AllocationTick | 3 | AllocationAmount:x32 AllocationKind:u32 ClrInstanceID:u16 AllocationAmount64:x64
 TypeID:ptr@module_id TypeName:wstr@type_name HeapIndex:u32 Address:ptr
10 GC/AllocationTick | 4 | AllocationAmount:x32 AllocationKind:u32 ClrInstanceID:u16 AllocationAmount64:x64
 TypeID:ptr@module_id TypeName:wstr@type_name HeapIndex:u32 Address:ptr ObjectSize:u64
13 GC/FinalizersStop | 0 | Count:u32
13 GC/FinalizersStop | 1 | Count:u32 ClrInstanceID:u16
82 ClrStack/Walk | 0 | ClrInstanceID:u16 Reserved1:u8 Reserved2:u8 FrameCount:u32 Stack:code*FrameCount@frames
141 Method/Load, 142 Method/Unload | 0 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32
141 Method/Load, 142 Method/Unload | 1 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32 ClrInstanceID:u16
141 Method/Load, 142 Method/Unload | 2 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32 ClrInstanceID:u16
 ReJITID:x64
143 Method/LoadVerbose, 144 Method/UnloadVerbose | 0 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32
 MethodNamespace:wstr@type_name MethodName:wstr@method_name MethodSignature:wstr@signature
143 Method/LoadVerbose, 144 Method/UnloadVerbose | 1 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32
 MethodNamespace:wstr@type_name MethodName:wstr@method_name MethodSignature:wstr@signature ClrInstanceID:u16
143 Method/LoadVerbose, 144 Method/UnloadVerbose | 2 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32
 MethodNamespace:wstr@type_name MethodName:wstr@method_name MethodSignature:wstr@signature ClrInstanceID:u16 ReJITID:x64
145 Method/JittingStarted | 0 | MethodID:x64@method_id ModuleID:x64@module_id MethodToken:x32 MethodILSize:x32
 MethodNamespace:wstr@type_name MethodName:wstr@method_name MethodSignature:wstr@signature
145 Method/JittingStarted | 1 | MethodID:x64@method_id ModuleID:x64@module_id MethodToken:x32 MethodILSize:x32
 MethodNamespace:wstr@type_name MethodName:wstr@method_name MethodSignature:wstr@signature ClrInstanceID:u16
151 Loader/DomainModuleLoad | 0 | ModuleID:x64@module_id AssemblyID:x64 AppDomainID:x64 ModuleFlags:x32 Reserved1:u32
 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name
151 Loader/DomainModuleLoad | 1 | ModuleID:x64@module_id AssemblyID:x64 AppDomainID:x64 ModuleFlags:x32 Reserved1:u32
 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name ClrInstanceID:u16
152 Loader/ModuleLoad, 153 Loader/ModuleUnload | 0 | ModuleID:x64@module_id AssemblyID:x64 ModuleFlags:x32 Reserved1:u32
 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name
152 Loader/ModuleLoad, 153 Loader/ModuleUnload | 1 | ModuleID:x64@module_id AssemblyID:x64 ModuleFlags:x32 Reserved1:u32
 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name ClrInstanceID:u16
152 Loader/ModuleLoad, 153 Loader/ModuleUnload | 2 | ModuleID:x64@module_id AssemblyID:x64 ModuleFlags:x32 Reserved1:u32
 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name ClrInstanceID:u16 ManagedPdbSignature:guid
 ManagedPdbAge:u32 ManagedPdbBuildPath:wstr@file_name NativePdbSignature:guid NativePdbAge:u32
 NativePdbBuildPath:wstr@file_name
154 Loader/AssemblyLoad, 155 Loader/AssemblyUnload | 0 | AssemblyID:x64 AppDomainID:x64 AssemblyFlags:x32
 FullyQualifiedAssemblyName:wstr
154 Loader/AssemblyLoad, 155 Loader/AssemblyUnload | 1 | AssemblyID:x64 AppDomainID:x64 BindingID:x64 AssemblyFlags:x32
 FullyQualifiedAssemblyName:wstr ClrInstanceID:u16
156 Loader/AppDomainLoad, 157 Loader/AppDomainUnload | 0 | AppDomainID:x64 AppDomainFlags:x32 AppDomainName:wstr
156 Loader/AppDomainLoad, 157 Loader/AppDomainUnload | 1 | AppDomainID:x64 AppDomainFlags:x32 AppDomainName:wstr
 AppDomainIndex:u32 ClrInstanceID:u16
187 Runtime/Start | 0 | ClrInstanceID:u16 Sku:u16 BclMajorVersion:u16 BclMinorVersion:u16 BclBuildNumber:u16
 BclQfeNumber:u16 VMMajorVersion:u16 VMMinorVersion:u16 VMBuildNumber:u16 VMQfeNumber:u16 StartupFlags:u32
 StartupMode:u8 CommandLine:wstr ComObjectGuid:guid RuntimeDllPath:wstr
190 Method/ILToNativeMap | 0 | MethodID:x64@method_id ReJITID:x64 MethodExtent:u8 CountOfMapEntries:u16
 ILOffsets:u32*CountOfMapEntries NativeOffsets:u32*CountOfMapEntries ClrInstanceID:u16

provider a669021c-c450-4609-a035-5af59af4df18 Microsoft-Windows-DotNETRuntimeRundown
82 ClrStack/Walk | 0 | ClrInstanceID:u16 Reserved1:u8 Reserved2:u8 FrameCount:u32 Stack:code*FrameCount@frames
141 Method/DCStart, 142 Method/DCEnd | 0 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32
141 Method/DCStart, 142 Method/DCEnd | 1 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32 ClrInstanceID:u16
141 Method/DCStart, 142 Method/DCEnd | 2 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32 ClrInstanceID:u16
 ReJITID:x64
143 Method/DCStartVerbose, 144 Method/DCEndVerbose | 0 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32
 MethodNamespace:wstr@type_name MethodName:wstr@method_name MethodSignature:wstr@signature
143 Method/DCStartVerbose, 144 Method/DCEndVerbose | 1 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32
 MethodNamespace:wstr@type_name MethodName:wstr@method_name MethodSignature:wstr@signature ClrInstanceID:u16
143 Method/DCStartVerbose, 144 Method/DCEndVerbose | 2 | MethodID:x64@method_id ModuleID:x64@module_id
 MethodStartAddress:x64@code_address MethodSize:x32@code_size MethodToken:x32 MethodFlags:x32
 MethodNamespace:wstr@type_name MethodName:wstr@method_name MethodSignature:wstr@signature ClrInstanceID:u16 ReJITID:x64
145 Method/DCStartComplete, 146 Method/DCEndComplete, 147 Method/DCStartInit, 148 Method/DCEndInit | 0 |
145 Method/DCStartComplete, 146 Method/DCEndComplete, 147 Method/DCStartInit, 148 Method/DCEndInit | 1 |
 ClrInstanceID:u16
149 Method/ILToNativeMapDCStart, 150 Method/ILToNativeMapDCEnd | 0 | MethodID:x64@method_id ReJITID:x64 MethodExtent:u8
 CountOfMapEntries:u16 ILOffsets:u32*CountOfMapEntries NativeOffsets:u32*CountOfMapEntries ClrInstanceID:u16
151 Loader/DomainModuleDCStart, 152 Loader/DomainModuleDCEnd | 0 | ModuleID:x64@module_id AssemblyID:x64 AppDomainID:x64
 ModuleFlags:x32 Reserved1:u32 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name
151 Loader/DomainModuleDCStart, 152 Loader/DomainModuleDCEnd | 1 | ModuleID:x64@module_id AssemblyID:x64 AppDomainID:x64
 ModuleFlags:x32 Reserved1:u32 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name ClrInstanceID:u16
153 Loader/ModuleDCStart, 154 Loader/ModuleDCEnd | 0 | ModuleID:x64@module_id AssemblyID:x64 ModuleFlags:x32
 Reserved1:u32 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name
153 Loader/ModuleDCStart, 154 Loader/ModuleDCEnd | 1 | ModuleID:x64@module_id AssemblyID:x64 ModuleFlags:x32
 Reserved1:u32 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name ClrInstanceID:u16
153 Loader/ModuleDCStart, 154 Loader/ModuleDCEnd | 2 | ModuleID:x64@module_id AssemblyID:x64 ModuleFlags:x32
 Reserved1:u32 ModuleILPath:wstr@file_name ModuleNativePath:wstr@file_name ClrInstanceID:u16 ManagedPdbSignature:guid
 ManagedPdbAge:u32 ManagedPdbBuildPath:wstr@file_name NativePdbSignature:guid NativePdbAge:u32
 NativePdbBuildPath:wstr@file_name
155 Loader/AssemblyDCStart, 156 Loader/AssemblyDCEnd | 0 | AssemblyID:x64 AppDomainID:x64 AssemblyFlags:x32
 FullyQualifiedAssemblyName:wstr
155 Loader/AssemblyDCStart, 156 Loader/AssemblyDCEnd | 1 | AssemblyID:x64 AppDomainID:x64 BindingID:x64
 AssemblyFlags:x32 FullyQualifiedAssemblyName:wstr ClrInstanceID:u16
157 Loader/AppDomainDCStart, 158 Loader/AppDomainDCEnd | 0 | AppDomainID:x64 AppDomainFlags:x32 AppDomainName:wstr
157 Loader/AppDomainDCStart, 158 Loader/AppDomainDCEnd | 1 | AppDomainID:x64 AppDomainFlags:x32 AppDomainName:wstr
 AppDomainIndex:u32 ClrInstanceID:u16
187 Runtime/Start | 0 | ClrInstanceID:u16 Sku:u16 BclMajorVersion:u16 BclMinorVersion:u16 BclBuildNumber:u16
 BclQfeNumber:u16 VMMajorVersion:u16 VMMinorVersion:u16 VMBuildNumber:u16 VMQfeNumber:u16 StartupFlags:u32
 StartupMode:u8 CommandLine:wstr ComObjectGuid:guid RuntimeDllPath:wstr
)";

} // namespace

std::span<const std::string_view> builtin_tables() {
  static const std::array<std::string_view, 4> tables = {kKernelClasses, kConfigurationClasses, kClrEvents,
                                                         kKernelProviders};
  return tables;
}

} // namespace etwrelog::schema
