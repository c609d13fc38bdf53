// The classes of the kernel logger: names, types and order of the fields as Microsoft documents its MOF
// classes and as Windows' own WMI repository lists them (array lengths and what is pointer-sized: from the
// documentation). Where real traces contradict the classes, the traces win; each such place says so.
#include "schema/entry.hpp"

namespace etwrelog::schema {

extern const std::string_view kKernelClasses;

const std::string_view kKernelClasses = R"(
class 68fdd900-4a3e-11d1-84f4-0000f80464e3 EventTrace
0 Header | 0-2 | BufferSize:u32 Version:u32 ProviderVersion:u32 NumberOfProcessors:u32 EndTime:u64 TimerResolution:u32
 MaxFileSize:u32 LogFileMode:u32 BuffersWritten:u32 StartBuffers:u32 PointerSize:u32 EventsLost:u32 CPUSpeed:u32
 LoggerName:ptr LogFileName:ptr TimeZoneInformation:bin(176) BootTime:u64 PerfFreq:u64 StartTime:u64 ReservedFlags:u32
 BuffersLost:u32 SessionNameString:wstr LogFileNameString:wstr
5 Extension, 32 EndExtension | 0-1 | GroupMask1:u32 GroupMask2:u32 GroupMask3:u32 GroupMask4:u32 GroupMask5:u32
 GroupMask6:u32 GroupMask7:u32 GroupMask8:u32
5 Extension, 32 EndExtension | 2 | GroupMask1:u32 GroupMask2:u32 GroupMask3:u32 GroupMask4:u32 GroupMask5:u32
 GroupMask6:u32 GroupMask7:u32 GroupMask8:u32 KernelEventVersion:u32
8 RDComplete | 0-2 |
64 DbgIdRSDS | 2 | Guid:guid Age:u32 PdbName:astr@file_name
66 BuildInfo | 2 | BuildString:astr
67 ProviderBinaryPath | 2 | GuidCount:u32 Guid:guid*GuidCount BinaryPath:wstr
80 PartitionInfoExtension | 0 2 | EventVersion:u16 Reserved:u16 PartitionType:u32 QpcOffsetFromRoot:i64
 PartitionId:guid ParentId:guid
82 LastDroppedTimes | 2 | TimeStampCount:u32 Padding:u32 TimeStamp:u64*TimeStampCount

class 3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c Process
1 Start, 2 End, 3 DCStart, 4 DCEnd | 0 | ProcessId:ptr@process_id ParentId:ptr@parent_id UserSID:tsid
 ImageFileName:astr@image_name
1 Start, 2 End, 3 DCStart, 4 DCEnd | 1 | PageDirectoryBase:ptr ProcessId:u32@process_id ParentId:u32@parent_id
 SessionId:u32@session_id ExitStatus:i32@exit_status UserSID:tsid ImageFileName:astr@image_name
1 Start, 2 End, 3 DCStart, 4 DCEnd, 39 Defunct | 2 | UniqueProcessKey:ptr ProcessId:u32@process_id
 ParentId:u32@parent_id SessionId:u32@session_id ExitStatus:i32@exit_status UserSID:tsid ImageFileName:astr@image_name
 CommandLine:wstr@command_line
1 Start, 2 End, 3 DCStart, 4 DCEnd, 39 Defunct | 3 | UniqueProcessKey:ptr ProcessId:u32@process_id
 ParentId:u32@parent_id SessionId:u32@session_id ExitStatus:i32@exit_status DirectoryTableBase:ptr UserSID:tsid
 ImageFileName:astr@image_name CommandLine:wstr@command_line
1 Start, 2 End, 3 DCStart, 4 DCEnd, 39 Defunct | 4 | UniqueProcessKey:ptr ProcessId:u32@process_id
 ParentId:u32@parent_id SessionId:u32@session_id ExitStatus:i32@exit_status DirectoryTableBase:ptr Flags:u32
 UserSID:tsid ImageFileName:astr@image_name CommandLine:wstr@command_line PackageFullName:wstr ApplicationId:wstr
39 Defunct | 5 | UniqueProcessKey:ptr ProcessId:u32@process_id ParentId:u32@parent_id SessionId:u32@session_id
 ExitStatus:i32@exit_status DirectoryTableBase:ptr Flags:u32 UserSID:tsid ImageFileName:astr@image_name
 CommandLine:wstr@command_line PackageFullName:wstr ApplicationId:wstr ExitTime:u64
11 Terminate | 2 | ProcessId:u32@process_id
32 PerfCtr, 33 PerfCtrRundown | 2 | ProcessId:u32@process_id PageFaultCount:u32 HandleCount:u32 Reserved:u32
 PeakVirtualSize:ptr PeakWorkingSetSize:ptr PeakPagefileUsage:ptr QuotaPeakPagedPoolUsage:ptr
 QuotaPeakNonPagedPoolUsage:ptr VirtualSize:ptr WorkingSetSize:ptr PagefileUsage:ptr QuotaPagedPoolUsage:ptr
 QuotaNonPagedPoolUsage:ptr PrivatePageCount:ptr
35 InSwap | 2 | DirectoryTableBase:ptr ProcessId:u32@process_id
48 CreateProcessReference, 49 CreateThreadReference, 50 OpenProcessReference, 51 OpenThreadReference,
 52 DereferenceReference, 64 Reference64, 65 Reference65, 66 Reference66, 67 Reference67, 68 Reference68,
 80 Reference80, 81 Reference81, 82 Reference82, 83 Reference83, 84 Reference84 | 2 | Object:ptr Tag:u32
 ProcessId:u32@process_id Count:u32
96 Object96, 97 Object97, 98 Object98, 99 Object99 | 2 | Object:ptr

class 3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c Thread
1 Start, 2 End, 3 DCStart, 4 DCEnd | 0 | TThreadId:u32@thread_id ProcessId:u32@process_id
1 Start, 3 DCStart | 1 | ProcessId:u32@process_id TThreadId:u32@thread_id StackBase:ptr StackLimit:ptr
 UserStackBase:ptr UserStackLimit:ptr StartAddr:code Win32StartAddr:code WaitMode:i8
2 End, 4 DCEnd | 1 | ProcessId:u32@process_id TThreadId:u32@thread_id
1 Start, 2 End, 3 DCStart, 4 DCEnd | 2 | ProcessId:u32@process_id TThreadId:u32@thread_id StackBase:ptr StackLimit:ptr
 UserStackBase:ptr UserStackLimit:ptr StartAddr:code Win32StartAddr:code TebBase:ptr SubProcessTag:u32
1 Start, 2 End, 3 DCStart, 4 DCEnd | 3 | ProcessId:u32@process_id TThreadId:u32@thread_id StackBase:ptr StackLimit:ptr
 UserStackBase:ptr UserStackLimit:ptr Affinity:ptr Win32StartAddr:code TebBase:ptr SubProcessTag:u32 BasePriority:u8
 PagePriority:u8 IoPriority:u8 ThreadFlags:u8 ThreadName:wstr?@thread_name
1 Start, 2 End, 3 DCStart, 4 DCEnd | 4 | ProcessId:u32@process_id TThreadId:u32@thread_id StackBase:ptr StackLimit:ptr
 UserStackBase:ptr UserStackLimit:ptr Affinity:ptr Win32StartAddr:code TebBase:ptr SubProcessTag:u32 BasePriority:u8
 PagePriority:u8 IoPriority:u8 ThreadFlags:u8 ThreadName:wstr@thread_name
36 CSwitch | 1 | NewThreadId:u32@new_thread_id OldThreadId:u32@old_thread_id NewThreadPriority:i8 OldThreadPriority:i8
 NewThreadQuantum:i8 OldThreadQuantum:i8 OldThreadWaitReason:i8 OldThreadWaitMode:i8 OldThreadState:i8
 OldThreadWaitIdealProcessor:i8
36 CSwitch | 2 | NewThreadId:u32@new_thread_id OldThreadId:u32@old_thread_id NewThreadPriority:i8 OldThreadPriority:i8
 PreviousCState:u8 SpareByte:i8 OldThreadWaitReason:i8 OldThreadWaitMode:i8 OldThreadState:i8
 OldThreadWaitIdealProcessor:i8 NewThreadWaitTime:u32 Reserved:u32
36 CSwitch | 3-4 | NewThreadId:u32@new_thread_id OldThreadId:u32@old_thread_id NewThreadPriority:i8
 OldThreadPriority:i8 PreviousCState:u8 SpareByte:i8 OldThreadWaitReason:i8 ThreadFlags:i8 OldThreadState:i8
 OldThreadWaitIdealProcessor:i8 NewThreadWaitTime:u32 Reserved:u32
37 CompCS | 0-4 | FirstTimeStamp:u64@event_time TidTable:u32*16 ThreadBasePriority:u8*16 Records:bin
41 SpinLock | 2 | SpinLockAddress:ptr CallerAddress:code AcquireTime:u64 ReleaseTime:u64 WaitTimeInCycles:u32
 SpinCount:u32 ThreadId:u32@thread_id InterruptCount:u32 Irql:u8 AcquireDepth:u8 Flag:u8 Reserved:u8
48 SetPriority, 49 SetBasePriority, 51 SetPagePriority, 52 SetIoPriority | 3 | ThreadId:u32@thread_id OldPriority:u8
 NewPriority:u8 Reserved:u16
50 ReadyThread | 2 | TThreadId:u32@thread_id AdjustReason:i8 AdjustIncrement:i8 Flag:i8 Reserved:i8
53 ThreadAffinity | 2 | Affinity:ptr ThreadId:u32@thread_id Group:u16 Reserved:u16
57 WorkerThread | 1-2 | TThreadId:u32@thread_id StartTime:u64 ThreadRoutine:code
60 AntiStarvationBoost | 2 | ThreadId:u32@thread_id ProcessorIndex:u16 Priority:u8 Reserved:u8
61 ThreadMigration | 2 | ThreadId:u32@thread_id SourceProcessorIndex:u16 TargetProcessorIndex:u16 Priority:u8
 IdealProcessorAdjust:bool8 OldIdealProcessorIndex:u16
62 KernelQueueEnqueue | 2 | Entry:ptr ThreadId:u32@thread_id
63 KernelQueueDequeue | 2 | ThreadId:u32@thread_id EntryCount:u32 Entries:ptr*EntryCount
64 WorkerThreadStart, 65 WorkerThreadStop | 2 | CallbackRoutine:code
66 AutoBoostSetFloor | 2 | Lock:ptr ThreadId:u32@thread_id NewCpuPriorityFloor:u8 OldCpuPriority:u8 IoPriorities:u8
 BoostFlags:u8
67 AutoBoostClearFloor | 2 | LockAddress:ptr ThreadId:u32@thread_id BoostBitmap:u32
68 AutoBoostEntryExhaustion | 2 | LockAddress:ptr ThreadId:u32@thread_id
69 SubProcessTagChanged | 2 | OldTag:u32 NewTag:u32
72 SetName | 2 | ProcessId:u32@process_id ThreadId:u32@thread_id ThreadName:wstr@thread_name

class 2cb15d1d-5fc1-11d2-abe1-00a0c911f518 Image
10 Load, 2 UnLoad, 3 DCStart, 4 DCEnd | 0 | BaseAddress:ptr@image_base ModuleSize:u32@image_size
 ImageFileName:wstr@file_name
10 Load, 2 UnLoad, 3 DCStart, 4 DCEnd | 1 | ImageBase:ptr@image_base ImageSize:ptr@image_size ProcessId:u32@process_id
 FileName:wstr@file_name
10 Load, 2 UnLoad, 3 DCStart, 4 DCEnd | 2 | ImageBase:ptr@image_base ImageSize:ptr@image_size ProcessId:u32@process_id
 ImageChecksum:u32@image_checksum TimeDateStamp:u32@image_time Reserved0:u32 DefaultBase:ptr Reserved1:u32
 Reserved2:u32 Reserved3:u32 Reserved4:u32 FileName:wstr@file_name
10 Load, 2 UnLoad, 3 DCStart, 4 DCEnd | 3 | ImageBase:ptr@image_base ImageSize:ptr@image_size ProcessId:u32@process_id
 ImageChecksum:u32@image_checksum TimeDateStamp:u32@image_time SignatureLevel:u8 SignatureType:u8 Reserved0:u16
 DefaultBase:ptr Reserved1:u32 Reserved2:u32 Reserved3:u32 Reserved4:u32 FileName:wstr@file_name
33 KernelBase | 2 | ImageBase:ptr
34 HypercallPage | 2 | HypercallPageVa:ptr

class 3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c DiskIo
10 Read, 11 Write | 0 | DiskNumber:u32 IrpFlags:u32 TransferSize:u32 Reserved:u32 ByteOffset:u64
 FileObject:ptr@file_object
10 Read, 11 Write | 1 | DiskNumber:u32 IrpFlags:u32 TransferSize:u32 ResponseTime:u32 ByteOffset:u64
 FileObject:ptr@file_object HighResResponseTime:u64
10 Read, 11 Write | 2 | DiskNumber:u32 IrpFlags:u32 TransferSize:u32 Reserved:u32 ByteOffset:u64
 FileObject:ptr@file_object Irp:ptr HighResResponseTime:u64
10 Read, 11 Write, 55 OpticalRead, 56 OpticalWrite | 3 | DiskNumber:u32 IrpFlags:u32 TransferSize:u32 Reserved:u32
 ByteOffset:u64 FileObject:ptr@file_object Irp:ptr HighResResponseTime:u64 IssuingThreadId:u32@thread_id
12 ReadInit, 13 WriteInit, 15 FlushInit | 2 | Irp:ptr
12 ReadInit, 13 WriteInit, 15 FlushInit, 58 OpticalReadInit, 59 OpticalWriteInit, 60 OpticalFlushInit | 3 | Irp:ptr
 IssuingThreadId:u32@thread_id
14 FlushBuffers | 2 | DiskNumber:u32 IrpFlags:u32 HighResResponseTime:u64 Irp:ptr
14 FlushBuffers, 57 OpticalFlushBuffers | 3 | DiskNumber:u32 IrpFlags:u32 HighResResponseTime:u64 Irp:ptr
 IssuingThreadId:u32@thread_id
34 DrvMjFnCall | 1 | UniqMatchId:u32 RoutineAddr:code Irp:ptr MajorFunction:u32 MinorFunction:u32
 FileObject:ptr@file_object
34 DrvMjFnCall | 2 | MajorFunction:u32 MinorFunction:u32 RoutineAddr:code FileObject:ptr@file_object Irp:ptr
 UniqMatchId:u32
35 DrvMjFnRet | 1 | UniqMatchId:u32 Irp:ptr
35 DrvMjFnRet | 2 | Irp:ptr UniqMatchId:u32
37 DrvComplRout | 2 | Routine:code IrpPtr:ptr UniqMatchId:u32
52 DrvComplReq | 1-2 | RoutineAddr:code Irp:ptr UniqMatchId:u32
53 DrvComplReqRet | 1-2 | Irp:ptr UniqMatchId:u32

class 3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c PageFault
10 TransitionFault, 11 DemandZeroFault, 12 CopyOnWrite, 13 GuardPageFault, 14 HardPageFault, 15 AccessViolation | 2 |
 VirtualAddress:ptr ProgramCounter:code
32 HardFault | 2 | InitialTime:u64 ReadOffset:u64 VirtualAddress:ptr FileObject:ptr@file_object
 TThreadId:u32@thread_id ByteCount:u32
98 VirtualAlloc, 99 VirtualFree | 2 | BaseAddress:ptr RegionSize:ptr ProcessId:u32@process_id Flags:u32
100 HRRundown | 2 | HeapHandle:ptr HRFlags:u32 HRPid:u32@process_id HRRangeCount:u32
100 HRRundown | 3 | HeapHandle:ptr HRFlags:u32 HRPid:u32@process_id HRRangeCount:u32 Reserved:u32
101 HRCreate | 2 | HeapHandle:ptr FirstRangeSize:ptr HRCreateFlags:u32
102 HRReserve, 103 HRRelease | 2 | HeapHandle:ptr HRAddress:ptr HRSize:ptr
104 HRDestroy | 2 | HeapHandle:ptr
105 ImageLoadBacked | 2 | FileObject:ptr@file_object DeviceChar:u32 FileChar:u16 LoadFlags:u16
127 VirtualRotate | 2 | BaseAddress:ptr SizeInBytes:ptr Flags:u32
128 VirtualAllocDCStart, 129 VirtualAllocDCEnd | 2 | BaseAddress:ptr RegionSize:ptr ProcessId:u32@process_id Flags:u32
 CommitSizeInBytes:ptr
134 MemReset | 2 | BaseAddress:ptr SizeInBytes:ptr Flags:u32

class 90cbdc39-4a3e-11d1-84f4-0000f80464e3 FileIo
0 Name, 32 FileCreate, 35 FileDelete, 36 FileRundown | 0-3 | FileObject:ptr@file_object FileName:wstr@file_name
37 MapFile, 38 UnMapFile, 39 MapFileDCStart, 40 MapFileDCEnd | 2 | ViewBase:ptr FileObject:ptr@file_object MiscInfo:u64
 ViewSize:ptr ProcessId:u32@process_id
37 MapFile, 38 UnMapFile, 39 MapFileDCStart, 40 MapFileDCEnd | 3 | ViewBase:ptr FileObject:ptr@file_object MiscInfo:u64
 ViewSize:ptr ByteOffset:u64 ProcessId:u32@process_id
64 Create | 2 | IrpPtr:ptr TTID:ptr@thread_id FileObject:ptr@file_object CreateOptions:u32 FileAttributes:u32
 ShareAccess:u32 OpenPath:wstr@file_name
64 Create | 3 | IrpPtr:ptr FileObject:ptr@file_object TTID:u32@thread_id CreateOptions:u32 FileAttributes:u32
 ShareAccess:u32 OpenPath:wstr@file_name
65 Cleanup, 66 Close, 73 Flush | 2 | IrpPtr:ptr TTID:ptr@thread_id FileObject:ptr@file_object FileKey:ptr@file_key
65 Cleanup, 66 Close, 73 Flush | 3 | IrpPtr:ptr FileObject:ptr@file_object FileKey:ptr@file_key TTID:u32@thread_id
67 Read, 68 Write | 2 | Offset:u64 IrpPtr:ptr TTID:ptr@thread_id FileObject:ptr@file_object FileKey:ptr@file_key
 IoSize:u32 IoFlags:u32
67 Read, 68 Write | 3 | Offset:u64 IrpPtr:ptr FileObject:ptr@file_object FileKey:ptr@file_key TTID:u32@thread_id
 IoSize:u32 IoFlags:u32
69 SetInfo, 70 Delete, 71 Rename, 74 QueryInfo, 75 FSControl | 2 | IrpPtr:ptr TTID:ptr@thread_id
 FileObject:ptr@file_object FileKey:ptr@file_key ExtraInfo:ptr InfoClass:u32
69 SetInfo, 70 Delete, 71 Rename, 74 QueryInfo, 75 FSControl | 3 | IrpPtr:ptr FileObject:ptr@file_object
 FileKey:ptr@file_key ExtraInfo:ptr TTID:u32@thread_id InfoClass:u32
72 DirEnum, 77 DirNotify | 2 | IrpPtr:ptr TTID:ptr@thread_id FileObject:ptr@file_object FileKey:ptr@file_key Length:u32
 InfoClass:u32 FileIndex:u32 FileName:wstr@file_name
72 DirEnum, 77 DirNotify | 3 | IrpPtr:ptr FileObject:ptr@file_object FileKey:ptr@file_key TTID:u32@thread_id
 Length:u32 InfoClass:u32 FileIndex:u32 FileName:wstr@file_name
76 OperationEnd | 2-3 | IrpPtr:ptr ExtraInfo:ptr NtStatus:status
79 DeletePath, 80 RenamePath, 81 SetLinkPath | 3 | IrpPtr:ptr FileObject:ptr@file_object FileKey:ptr@file_key
 ExtraInfo:ptr TTID:u32@thread_id InfoClass:u32 FileName:wstr@file_name
96 FltPreOpInit, 97 FltPostOpInit | 3 | RoutineAddr:code FileObject:ptr@file_object FileContext:ptr IrpPtr:ptr
 CallbackDataPtr:ptr MajorFunction:u32
98 FltPreOpCompletion, 99 FltPostOpCompletion | 3 | InitialTime:u64 RoutineAddr:code FileObject:ptr@file_object
 FileContext:ptr IrpPtr:ptr CallbackDataPtr:ptr MajorFunction:u32
100 FltPreOpFailure, 101 FltPostOpFailure | 3 | RoutineAddr:code FileObject:ptr@file_object FileContext:ptr IrpPtr:ptr
 CallbackDataPtr:ptr MajorFunction:u32 Status:status

class 9a280ac0-c8e0-11d1-84e2-00c04fb998a2 TcpIp
10 SendIPV4, 11 RecvIPV4, 12 ConnectIPV4, 13 DisconnectIPV4, 14 RetransmitIPV4, 15 AcceptIPV4 | 0 | daddr:ip4 saddr:ip4
 dport:port sport:port size:u32 PID:u32@process_id
10 SendIPV4 | 1 | PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port startime:u32 endtime:u32
 connid:ptr seqnum:u32
11 RecvIPV4, 13 DisconnectIPV4, 14 RetransmitIPV4, 16 ReconnectIPV4, 18 TCPCopyIPV4, 19 ARPCopyIPV4, 20 FullACK,
 21 PartialACK, 22 DuplicateACK | 1 | PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port connid:ptr
 seqnum:u32
12 ConnectIPV4, 15 AcceptIPV4 | 1 | PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port mss:u16
 sackopt:u16 tsopt:u16 wsopt:u16 rcvwin:u32 rcvwinscale:i16 sndwinscale:i16 connid:ptr seqnum:u32
17 Fail | 1 | Proto:u32
10 SendIPV4 | 2 | PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port startime:u32 endtime:u32
 seqnum:u32 connid:ptr
11 RecvIPV4, 13 DisconnectIPV4, 14 RetransmitIPV4, 16 ReconnectIPV4, 18 TCPCopyIPV4 | 2 | PID:u32@process_id size:u32
 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u32 connid:ptr
12 ConnectIPV4, 15 AcceptIPV4 | 2 | PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port mss:u16
 sackopt:u16 tsopt:u16 wsopt:u16 rcvwin:u32 rcvwinscale:i16 sndwinscale:i16 seqnum:u32 connid:ptr
17 Fail | 2 | Proto:u16 FailureCode:u16
26 SendIPV6 | 2 | PID:u32@process_id size:u32 daddr:ip6 saddr:ip6 dport:port sport:port startime:u32 endtime:u32
 seqnum:u32 connid:ptr
27 RecvIPV6, 29 DisconnectIPV6, 30 RetransmitIPV6, 32 ReconnectIPV6, 34 TCPCopyIPV6 | 2 | PID:u32@process_id size:u32
 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u32 connid:ptr
28 ConnectIPV6, 31 AcceptIPV6 | 2 | PID:u32@process_id size:u32 daddr:ip6 saddr:ip6 dport:port sport:port mss:u16
 sackopt:u16 tsopt:u16 wsopt:u16 rcvwin:u32 rcvwinscale:i16 sndwinscale:i16 seqnum:u32 connid:ptr

class bf3a50c5-a9c9-4988-a005-2df0b7c80f80 UdpIp
10 SendIPV4, 11 RecvIPV4 | 0 | context:ptr saddr:ip4 sport:port size:u16 daddr:ip4 dport:port dsize:u16
10 SendIPV4, 11 RecvIPV4 | 1 | PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port
10 SendIPV4, 11 RecvIPV4 | 2 | PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u32
 connid:ptr
17 Fail | 2 | Proto:u16 FailureCode:u16
26 SendIPV6, 27 RecvIPV6 | 2 | PID:u32@process_id size:u32 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u32
 connid:ptr

class 99134383-5248-43fc-834b-529454e75df3 LastBranch
32 Record | 0-4 | EventTime:u64@event_time ProcessId:u32@process_id ThreadId:u32@thread_id Branches:bin

class ce1dbfb4-137e-4da6-87b0-3f59aa102cbc PerfInfo
34 Mark | 0 | Message:astr
46 SampleProf | 1 | InstructionPointer:code@instruction_pointer ThreadId:u32@thread_id Count:u16
46 SampleProf | 2 | InstructionPointer:code@instruction_pointer ThreadId:u32@thread_id Count:u16 Reserved:u16
47 PmcCounterProf | 2 | InstructionPointer:code@instruction_pointer ThreadId:u32@thread_id ProfileSource:u16
 Reserved:u16
48 PmcCounterConfig | 2 | CounterCount:u32 CounterName:wstr*CounterCount
50 ISR-MSI | 2 | InitialTime:u64 Routine:code ReturnValue:u8 Vector:u16 Reserved:u8 MessageNumber:u32
51 SysClEnter | 2 | SysCallAddress:code
52 SysClExit | 2 | SysCallNtStatus:status
58 DebuggerEnabled | 2 |
66 ThreadedDPC, 68 DPC, 69 TimerDPC, 70 IOTimer | 1-2 | InitialTime:u64 Routine:code
67 ISR, 95 ISR-PASS | 1 | InitialTime:u64 Routine:code ReturnValue:u32
67 ISR, 95 ISR-PASS | 2 | InitialTime:u64 Routine:code ReturnValue:u8 Vector:u16 Reserved:u8
72 SetInterval, 73 CollectionStart, 74 CollectionEnd | 2 | Source:u32 NewInterval:u32 OldInterval:u32
72 SetInterval, 73 CollectionStart, 74 CollectionEnd | 3 | Source:u32 NewInterval:u32 OldInterval:u32 SourceName:wstr
75 SpinLockDCStart, 76 SpinLockDCEnd | 2 | SpinLockSpinThreshold:u32 SpinLockContentionSampleRate:u32
 SpinLockAcquireSampleRate:u32
75 SpinLockDCStart, 76 SpinLockDCEnd | 3 | SpinLockSpinThreshold:u32 SpinLockContentionSampleRate:u32
 SpinLockAcquireSampleRate:u32 SpinLockHoldThreshold:u32
92 ISR-Unexpected | 2 | Vector:u16
93 IoStartTimer, 94 IoStopTimer | 2 | DeviceObject:ptr TimerRoutine:code
96 WDF-ISR, 97 WDF-PassiveISR, 98 WDF-DPC, 103 WDF-WorkItem | 2 | Routine:code
104 SetKTimer2, 105 ExpireKTimer2 | 2 | DueTime:u64 MaximumDueTime:u64 Period:u64 Timer:ptr Callback:code
 CallbackContext:ptr TimerFlags:u8
106 CancelKTimer2 | 2 | Timer:ptr
107 DisableKTimer2 | 2 | Timer:ptr DisableCallback:code DisableContext:ptr TimerFlags:u8
108 FinalizeKTimer2 | 2 | Timer:ptr DisableCallback:code DisableContext:ptr

class def2fe46-7bd6-4b80-bd94-f57fe20d0ce3 StackWalk
32 Stack | 2 | EventTimeStamp:u64@event_time StackProcess:u32@process_id StackThread:u32@thread_id Stack:code*@frames
34 KeyCreate, 35 KeyDelete, 36 KeyRundown | 2 | key:ptr@stack_key StackFrame:code*@frames
37 StackKeyKernel, 38 StackKeyUser | 2 | EventTimeStamp:u64@event_time StackProcess:u32@process_id
 StackThread:u32@thread_id StackKey:ptr@stack_key

class ae53722e-c863-11d2-8659-00c04fa321a1 Registry
10 Create, 11 Open, 12 Delete, 13 Query, 14 SetValue, 15 DeleteValue, 16 QueryValue, 17 EnumerateKey,
 18 EnumerateValueKey, 19 QueryMultipleValue, 20 SetInformation, 21 Flush | 0 | Status:status KeyHandle:ptr@registry_key
 ElapsedTime:i64 KeyName:wstr
10 Create, 11 Open, 12 Delete, 13 Query, 14 SetValue, 15 DeleteValue, 16 QueryValue, 17 EnumerateKey,
 18 EnumerateValueKey, 19 QueryMultipleValue, 20 SetInformation, 21 Flush, 22 KCBCreate | 1 | Status:status
 KeyHandle:ptr@registry_key ElapsedTime:i64 Index:u32 KeyName:wstr
10 Create, 11 Open, 12 Delete, 13 Query, 14 SetValue, 15 DeleteValue, 16 QueryValue, 17 EnumerateKey,
 18 EnumerateValueKey, 19 QueryMultipleValue, 20 SetInformation, 21 Flush, 22 KCBCreate, 23 KCBDelete,
 24 KCBRundownBegin, 25 KCBRundownEnd, 26 Virtualize, 27 Close, 28 SetSecurity, 29 QuerySecurity | 2 | InitialTime:i64
 Status:status Index:u32 KeyHandle:ptr@registry_key KeyName:wstr
30 TxRCommit, 31 TxRPrepare, 32 TxRRollback | 2 | TxrGUID:guid Status:status UowCount:u32 OperationTime:u64 Hive:wstr
34 Counters | 2 | Counter1:u64 Counter2:u64 Counter3:u64 Counter4:u64 Counter5:u64 Counter6:u64 Counter7:u64
 Counter8:u64 Counter9:u64 Counter10:u64 Counter11:u64
35 Config | 2 | CurrentControlSet:u32
36 HiveInitialize | 2 | Hive:ptr OperationType:u32 PoolTag:u32 Size:u32 FileName:wstr
37 HiveDestroy | 2 | Hive:ptr FileName:wstr Path:wstr
38 HiveLink | 2 | Hive:ptr Path:wstr
39 HiveRundown | 2 | Size:u64 Hive:ptr LoadedKeyCount:u32 FileName:wstr LinkPath:wstr
40 HiveDirty | 2 | Hive:ptr LinkPath:wstr DirtyReason:u32
48 ChangeNotification | 2 | Notification:ptr KeyHandle:ptr@registry_key Type:u8 WatchSubtree:u8 Primary:u8

class 45d8cccd-539f-4b72-a8b7-5c683142609a ALPC
33 ALPC-Send-Message, 34 ALPC-Receive-Message, 35 ALPC-Wait-For-Reply | 2 | MessageID:u32
36 ALPC-Wait-For-New-Message | 2 | IsServerPort:u32 PortName:astr
37 ALPC-Unwait | 2 | Status:status

class d837ca92-12b9-44a5-ad6a-3a65b3578aa8 SplitIo
32 VolMgr | 2 | ParentIrp:ptr ChildIrp:ptr

class 0268a8b6-74fd-4302-9dd0-6e8f1795c0cf Pool
32 Alloc, 34 Free | 2 | Type:u32 Tag:u32 NumberOfBytes:ptr Entry:ptr
33 SessionAlloc, 35 SessionFree | 2 | Type:u32 Tag:u32 NumberOfBytes:ptr Entry:ptr SessionId:u32@session_id

class 13976d09-a327-438c-950b-7f03192815c7 DbgPrint
32 DbgPrint | 2 | Component:u32 Level:u32 Message:astr

class 89497f50-effe-4440-8cf2-ce6b1cdcaca7 Object
32 CreateHandle, 33 CloseHandle | 2 | Object:ptr Handle:u32 ObjectType:u16 ObjectName:wstr
34 DuplicateHandle | 2 | Object:ptr SourceHandle:u32 TargetHandle:u32 TargetProcessId:u32 ObjectType:u16
36 TypeDCStart, 37 TypeDCEnd | 2 | ObjectType:u16 Reserved:u16 TypeName:wstr
38 HandleDCStart, 39 HandleDCEnd | 2 | Object:ptr ProcessId:u32@process_id Handle:u32 ObjectType:u16 ObjectName:wstr
48 CreateObject, 49 DeleteObject | 2 | Object:ptr ObjectType:u16
50 ReferenceObject, 51 DereferenceObject | 2 | Object:ptr Tag:u32 Count:u32

class 9aec974b-5b8e-4118-9b92-3186d8002ce5 UMS
32 UmsDirectedSwitchStart, 33 UmsDirectedSwitchEnd | 2 | ProcessId:u32@process_id ScheduledThreadId:u32
 PrimaryThreadId:u32 SwitchFlags:u32
34 UmsScheduledPark | 2 | ProcessId:u32@process_id ScheduledThreadId:u32 ParkFlags:u32
35 UmsDisassociate | 2 | ProcessId:u32@process_id ScheduledThreadId:u32 PrimaryThreadId:u32 UmsApcControlFlags:u32
 Status:status
36 UmsContextSwitch | 2 | ScheduledThreadId:u32 SwitchCount:u32 KernelYieldCount:u32 MixedYieldCount:u32 YieldCount:u32

class e43445e0-0903-48c3-b878-ff0fccebdd04 Power
60 IdleExitLatency | 2 | Flags:u32 PlatformState:u32 ProcessorState:u32 ReturnLatency:u32 TotalLatency:u32

class f8f10121-b617-4a56-868b-9df1b27fe32c MMCSS
34 ScheduleEvent | 0 | ScheduledPID:u32@process_id ScheduledTID:u32@thread_id SchedulingPriority:u32 TaskIndex:u32
35 Wakeup | 0 | Reason:u32

class 6a399ae0-4bc6-4de9-870b-3657f8947e7e RT_LostEvent
32 RTLostEvent, 33 RTLostBuffer, 34 RTLostFile | 0 |
)";

} // namespace etwrelog::schema
