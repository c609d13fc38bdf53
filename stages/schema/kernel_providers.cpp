// The kernel's own manifest providers, which need no kernel logger: what tools that watch a machine enable
// most. Hardly any trace tells their schemas. Names, types and order of the fields as the manifests of
// Windows 7 to 11 have them; where a version is missing here, its events are left undecoded. Fields that hold
// addresses, ports and status codes are shown as such, as those of the same names in the kernel's classes
// are.
#include "schema/entry.hpp"

namespace etwrelog::schema {

extern const std::string_view kKernelProviders;

const std::string_view kKernelProviders = R"(
provider 22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716 Microsoft-Windows-Kernel-Process
1 ProcessStart/Start | 0 | ProcessID:u32@process_id CreateTime:ft ParentProcessID:u32@parent_id SessionID:u32@session_id
 ImageName:wstr@image_name
1 ProcessStart/Start | 1 | ProcessID:u32@process_id CreateTime:ft ParentProcessID:u32@parent_id SessionID:u32@session_id
 Flags:x32 ImageName:wstr@image_name
1 ProcessStart/Start | 2 | ProcessID:u32@process_id CreateTime:ft ParentProcessID:u32@parent_id
 SessionID:u32@session_id Flags:x32 ImageName:wstr@image_name ImageChecksum:x32 TimeDateStamp:x32 PackageFullName:wstr
 PackageRelativeAppId:wstr
15 ProcessRundown | 0 | ProcessID:u32@process_id CreateTime:ft ParentProcessID:u32@parent_id SessionID:u32@session_id
 Flags:x32 ImageName:wstr@image_name ImageChecksum:x32 TimeDateStamp:x32 PackageFullName:wstr PackageRelativeAppId:wstr
1 ProcessStart/Start | 3 | ProcessID:u32@process_id ProcessSequenceNumber:u64 CreateTime:ft
 ParentProcessID:u32@parent_id ParentProcessSequenceNumber:u64 SessionID:u32@session_id Flags:x32
 ProcessTokenElevationType:u32 ProcessTokenIsElevated:u32 MandatoryLabel:sid ImageName:wstr@image_name
 ImageChecksum:x32 TimeDateStamp:x32 PackageFullName:wstr PackageRelativeAppId:wstr
15 ProcessRundown | 1 | ProcessID:u32@process_id ProcessSequenceNumber:u64 CreateTime:ft ParentProcessID:u32@parent_id
 ParentProcessSequenceNumber:u64 SessionID:u32@session_id Flags:x32 ProcessTokenElevationType:u32
 ProcessTokenIsElevated:u32 MandatoryLabel:sid ImageName:wstr@image_name ImageChecksum:x32 TimeDateStamp:x32
 PackageFullName:wstr PackageRelativeAppId:wstr
1 ProcessStart/Start | 4 | ProcessID:u32@process_id ProcessSequenceNumber:u64 CreateTime:ft
 ParentProcessID:u32@parent_id ParentProcessSequenceNumber:u64 SessionID:u32@session_id Flags:x32
 ProcessTokenElevationType:u32 ProcessTokenIsElevated:u32 MandatoryLabel:sid ImageName:wstr@image_name
 ImageChecksum:x32 TimeDateStamp:x32 PackageFullName:wstr PackageRelativeAppId:wstr SecurityMitigations:x32
2 ProcessStop/Stop | 0 | ProcessID:u32@process_id CreateTime:ft ExitTime:ft ExitCode:u32@exit_status
 TokenElevationType:u32 HandleCount:u32 CommitCharge:u64 CommitPeak:u64 ImageName:astr@image_name
2 ProcessStop/Stop | 1 | ProcessID:u32@process_id CreateTime:ft ExitTime:ft ExitCode:u32@exit_status
 TokenElevationType:u32 HandleCount:u32 CommitCharge:u64 CommitPeak:u64 CPUCycleCount:u64 ReadOperationCount:u32
 WriteOperationCount:u32 ReadTransferKiloBytes:u32 WriteTransferKiloBytes:u32 HardFaultCount:u32 ImageName:astr@image_name
2 ProcessStop/Stop | 2 | ProcessID:u32@process_id ProcessSequenceNumber:u64 CreateTime:ft ExitTime:ft
 ExitCode:u32@exit_status TokenElevationType:u32 HandleCount:u32 CommitCharge:u64 CommitPeak:u64 CPUCycleCount:u64
 ReadOperationCount:u32 WriteOperationCount:u32 ReadTransferKiloBytes:u32 WriteTransferKiloBytes:u32 HardFaultCount:u32
 ImageName:astr@image_name
3 ThreadStart/Start, 4 ThreadStop/Stop | 0 | ProcessID:u32@process_id ThreadID:u32@thread_id StackBase:ptr StackLimit:ptr
 UserStackBase:ptr UserStackLimit:ptr StartAddr:code Win32StartAddr:code TebBase:ptr
3 ThreadStart/Start | 1 | ProcessID:u32@process_id ThreadID:u32@thread_id StackBase:ptr StackLimit:ptr UserStackBase:ptr
 UserStackLimit:ptr StartAddr:code Win32StartAddr:code TebBase:ptr SubProcessTag:u32
4 ThreadStop/Stop | 1 | ProcessID:u32@process_id ThreadID:u32@thread_id StackBase:ptr StackLimit:ptr UserStackBase:ptr
 UserStackLimit:ptr StartAddr:code Win32StartAddr:code TebBase:ptr SubProcessTag:u32 CycleTime:u64
5 ImageLoad, 6 ImageUnload | 0 | ImageBase:ptr@image_base ImageSize:ptr@image_size ProcessID:u32@process_id
 ImageCheckSum:x32@image_checksum TimeDateStamp:x32@image_time DefaultBase:ptr ImageName:wstr@file_name
7 CpuBasePriorityChange, 8 CpuPriorityChange, 9 PagePriorityChange, 10 IoPriorityChange | 0 | ProcessID:u32@process_id
 ThreadID:u32@thread_id OldPriority:u8 NewPriority:u8
11 ProcessFreeze/Start, 12 ProcessFreeze/Stop | 0 | FrozenProcessID:u32@process_id
11 ProcessFreeze/Start, 12 ProcessFreeze/Stop | 1 | FrozenProcessID:u32@process_id CreateTime:ft
13 JobStart/Start, 14 JobTerminate/Stop | 0 | ContainerID:guid JobID:u32 StatusCode:status
17 PsDiskIoAttribution/Start, 18 PsDiskIoAttribution/Stop | 0 | JobID:u32 DiskIoAttribution:ptr StatusCode:status
19 PsIoRateControl/Start, 20 PsIoRateControl/Stop | 0 | JobID:u32 IoRateControl:ptr ControlType:u32 RateType:u32
 RateAmount:u32 StatusCode:status
21 ThreadWorkOnBehalfUpdate | 0 | OldWorkOnBehalfThreadID:u32 NewWorkOnBehalfThreadID:u32

provider edd08927-9cc4-4e65-b970-c2560fb5c289 Microsoft-Windows-Kernel-File
10 NameCreate, 11 NameDelete | 0 | FileKey:ptr@file_key FileName:wstr@file_name
12 Create, 30 CreateNewFile | 0 | Irp:ptr ThreadId:ptr@thread_id FileObject:ptr@file_object CreateOptions:x32
 CreateAttributes:x32 ShareAccess:x32 FileName:wstr@file_name
12 Create, 30 CreateNewFile | 1 | Irp:ptr FileObject:ptr@file_object IssuingThreadId:u32@thread_id CreateOptions:x32
 CreateAttributes:x32 ShareAccess:x32 FileName:wstr@file_name
13 Cleanup, 14 Close, 21 Flush | 0 | Irp:ptr ThreadId:ptr@thread_id FileObject:ptr@file_object FileKey:ptr@file_key
13 Cleanup, 14 Close, 21 Flush | 1 | Irp:ptr FileObject:ptr@file_object FileKey:ptr@file_key
 IssuingThreadId:u32@thread_id
15 Read, 16 Write | 0 | ByteOffset:u64 Irp:ptr ThreadId:ptr@thread_id FileObject:ptr@file_object FileKey:ptr@file_key
 IOSize:u32 IOFlags:x32
15 Read, 16 Write | 1 | ByteOffset:u64 Irp:ptr FileObject:ptr@file_object FileKey:ptr@file_key
 IssuingThreadId:u32@thread_id IOSize:u32 IOFlags:x32 ExtraFlags:x32
17 SetInformation, 18 SetDelete, 19 Rename, 22 QueryInformation, 23 FSCTL, 29 Rename | 0 | Irp:ptr ThreadId:ptr@thread_id
 FileObject:ptr@file_object FileKey:ptr@file_key ExtraInformation:ptr InfoClass:u32
17 SetInformation, 18 SetDelete, 19 Rename, 22 QueryInformation, 23 FSCTL, 29 Rename, 31 SetSecurity,
 32 QuerySecurity, 33 SetEA, 34 QueryEA | 1 | Irp:ptr FileObject:ptr@file_object FileKey:ptr@file_key
 ExtraInformation:ptr IssuingThreadId:u32@thread_id InfoClass:u32
20 DirEnum, 25 DirNotify | 0 | Irp:ptr ThreadId:ptr@thread_id FileObject:ptr@file_object FileKey:ptr@file_key Length:u32
 InfoClass:u32 FileIndex:u32 FileName:wstr@file_name
20 DirEnum, 25 DirNotify | 1 | Irp:ptr FileObject:ptr@file_object FileKey:ptr@file_key IssuingThreadId:u32@thread_id
 Length:u32 InfoClass:u32 FileIndex:u32 FileName:wstr@file_name
24 OperationEnd | 0 | Irp:ptr ExtraInformation:ptr Status:status
26 DeletePath, 27 RenamePath, 28 SetLinkPath | 0 | Irp:ptr ThreadId:ptr@thread_id FileObject:ptr@file_object
 FileKey:ptr@file_key ExtraInformation:ptr InfoClass:u32 FilePath:wstr@file_name
26 DeletePath, 27 RenamePath, 28 SetLinkPath | 1 | Irp:ptr FileObject:ptr@file_object FileKey:ptr@file_key
 ExtraInformation:ptr IssuingThreadId:u32@thread_id InfoClass:u32 FilePath:wstr@file_name

provider 7dd42a49-5329-4832-8dfd-43d979153a88 Microsoft-Windows-Kernel-Network
10 KERNEL_NETWORK_TASK_TCPIP/Datasent. | 0 | PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port
 startime:u32 endtime:u32 seqnum:u32 connid:u32
26 KERNEL_NETWORK_TASK_TCPIP/Datasent. | 0 | PID:u32@process_id size:u32 daddr:ip6 saddr:ip6 dport:port sport:port
 startime:u32 endtime:u32 seqnum:u32 connid:u32
11 KERNEL_NETWORK_TASK_TCPIP/Datareceived., 13 KERNEL_NETWORK_TASK_TCPIP/Disconnectissued.,
 14 KERNEL_NETWORK_TASK_TCPIP/Dataretransmitted., 16 KERNEL_NETWORK_TASK_TCPIP/Reconnectattempted.,
 18 KERNEL_NETWORK_TASK_TCPIP/Protocolcopieddataonbehalfofuser.,
 42 KERNEL_NETWORK_TASK_UDPIP/DatasentoverUDPprotocol., 43 KERNEL_NETWORK_TASK_UDPIP/DatareceivedoverUDPprotocol. | 0 |
 PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u32 connid:u32
27 KERNEL_NETWORK_TASK_TCPIP/Datareceived., 29 KERNEL_NETWORK_TASK_TCPIP/Disconnectissued.,
 30 KERNEL_NETWORK_TASK_TCPIP/Dataretransmitted., 32 KERNEL_NETWORK_TASK_TCPIP/Reconnectattempted.,
 34 KERNEL_NETWORK_TASK_TCPIP/Protocolcopieddataonbehalfofuser.,
 58 KERNEL_NETWORK_TASK_UDPIP/DatasentoverUDPprotocol., 59 KERNEL_NETWORK_TASK_UDPIP/DatareceivedoverUDPprotocol. | 0 |
 PID:u32@process_id size:u32 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u32 connid:u32
12 KERNEL_NETWORK_TASK_TCPIP/Connectionattempted., 15 KERNEL_NETWORK_TASK_TCPIP/Connectionaccepted. | 0 |
 PID:u32@process_id size:u32 daddr:ip4 saddr:ip4 dport:port sport:port mss:u16 sackopt:u16 tsopt:u16 wsopt:u16
 rcvwin:u32 rcvwinscale:u16 sndwinscale:u16 seqnum:u32 connid:u32
28 KERNEL_NETWORK_TASK_TCPIP/Connectionattempted., 31 KERNEL_NETWORK_TASK_TCPIP/Connectionaccepted. | 0 |
 PID:u32@process_id size:u32 daddr:ip6 saddr:ip6 dport:port sport:port mss:u16 sackopt:u16 tsopt:u16 wsopt:u16
 rcvwin:u32 rcvwinscale:u16 sndwinscale:u16 seqnum:u32 connid:u32
17 KERNEL_NETWORK_TASK_TCPIP/TCPconnectionattemptfailed., 49 KERNEL_NETWORK_TASK_UDPIP/UDPconnectionattemptfailed. | 0 |
 Proto:u16 FailureCode:u16

provider 70eb4f03-c1de-4f73-a051-33d13d5413bd Microsoft-Windows-Kernel-Registry
1 CreateKey, 2 OpenKey | 0 | BaseObject:ptr KeyObject:ptr Status:status Disposition:u32 BaseName:wstr RelativeName:wstr
3 DeleteKey, 12 FlushKey, 13 CloseKey, 14 QuerySecurityKey, 15 SetSecurityKey | 0 | KeyObject:ptr Status:status
 KeyName:wstr
4 QueryKey, 11 SetInformationKey | 0 | KeyObject:ptr Status:status InfoClass:u32 DataSize:u32 KeyName:wstr
 CapturedDataSize:u16 CapturedData:bin(CapturedDataSize)
5 SetValueKey | 0 | KeyObject:ptr Status:status Type:u32 DataSize:u32 KeyName:wstr ValueName:wstr CapturedDataSize:u16
 CapturedData:bin(CapturedDataSize) PreviousDataType:u32 PreviousDataSize:u32 PreviousDataCapturedSize:u16
 PreviousData:bin(PreviousDataCapturedSize)
6 DeleteValueKey | 0 | KeyObject:ptr Status:status KeyName:wstr ValueName:wstr
7 QueryValueKey | 0 | KeyObject:ptr Status:status InfoClass:u32 DataSize:u32 KeyName:wstr ValueName:wstr
 CapturedDataSize:u16 CapturedData:bin(CapturedDataSize)
8 EnumerateKey, 9 EnumerateValueKey | 0 | KeyObject:ptr Status:status Index:u32 InfoClass:u32 DataSize:u32 KeyName:wstr
 CapturedDataSize:u16 CapturedData:bin(CapturedDataSize)
10 QueryMultipleValueKey | 0 | KeyObject:ptr Status:status EntryCount:u32 DataSize:u32 KeyName:wstr
17 RegPerfOpHiveMountBaseFileMounted | 0 | HiveFilePath:wstr FileSize:u32
18 RegPerfOpHiveMountLogEntryApplied | 0 | TotalEntrySize:u32 BytesRecovered:u32
)";

} // namespace etwrelog::schema
