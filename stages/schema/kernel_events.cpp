#include "etwrelog/kernel_events.hpp"

#include <algorithm>
#include <array>

namespace etwrelog::kernel {
namespace {

using T = FieldType;
using R = Role;

constexpr Field kLogExtension[] = {{T::u32, "GroupMasks", R::none, 8}, {T::u32, "KernelEventVersion"}};
constexpr Field kPartition[] = {{T::u16, "Version"},      {T::u16, "Reserved"},
                                {T::u32, "Type"},         {T::u64, "QpcOffsetFromRoot"},
                                {T::guid, "PartitionId"}, {T::guid, "ParentId"}};
constexpr Field kBuildLab[] = {{T::astr, "BuildLab"}};
constexpr Field kSessionDbgId[] = {
    {T::guid, "Guid"}, {T::u32, "Age"}, {T::astr, "PdbFileName", R::file_name}};

constexpr Field kProcess2[] = {
    {T::pointer, "UniqueProcessKey"},          {T::u32, "ProcessId", R::process_id},
    {T::u32, "ParentId", R::parent_id},        {T::u32, "SessionId", R::session_id},
    {T::u32, "ExitStatus", R::exit_status},    {T::sid, "UserSID"},
    {T::astr, "ImageFileName", R::image_name}, {T::wstr, "CommandLine", R::command_line}};
constexpr Field kProcess3[] = {{T::pointer, "UniqueProcessKey"},
                               {T::u32, "ProcessId", R::process_id},
                               {T::u32, "ParentId", R::parent_id},
                               {T::u32, "SessionId", R::session_id},
                               {T::u32, "ExitStatus", R::exit_status},
                               {T::pointer, "DirectoryTableBase"},
                               {T::sid, "UserSID"},
                               {T::astr, "ImageFileName", R::image_name},
                               {T::wstr, "CommandLine", R::command_line}};
constexpr Field kProcess4[] = {{T::pointer, "UniqueProcessKey"},
                               {T::u32, "ProcessId", R::process_id},
                               {T::u32, "ParentId", R::parent_id},
                               {T::u32, "SessionId", R::session_id},
                               {T::u32, "ExitStatus", R::exit_status},
                               {T::pointer, "DirectoryTableBase"},
                               {T::u32, "Flags"},
                               {T::sid, "UserSID"},
                               {T::astr, "ImageFileName", R::image_name},
                               {T::wstr, "CommandLine", R::command_line},
                               {T::wstr, "PackageFullName"},
                               {T::wstr, "ApplicationId"},
                               {T::filetime, "ExitTime"}}; // v5, Defunct only
constexpr Field kProcessTerminate[] = {{T::u32, "ProcessId", R::process_id}};
constexpr Field kProcessCounters[] = {{T::u32, "ProcessId", R::process_id},
                                      {T::u32, "PageFaultCount"},
                                      {T::u32, "HandleCount"},
                                      {T::u32, "Reserved"},
                                      {T::pointer, "Counters", R::none, 11}};

// ThreadName stands in v3 events of builds 18362 and later too: the remaining length tells.
constexpr Field kThread[] = {{T::u32, "ProcessId", R::process_id},
                             {T::u32, "TThreadId", R::thread_id},
                             {T::pointer, "StackBase"},
                             {T::pointer, "StackLimit"},
                             {T::pointer, "UserStackBase"},
                             {T::pointer, "UserStackLimit"},
                             {T::pointer, "Affinity"},
                             {T::pointer, "Win32StartAddr"},
                             {T::pointer, "TebBase"},
                             {T::u32, "SubProcessTag"},
                             {T::u8, "BasePriority"},
                             {T::u8, "PagePriority"},
                             {T::u8, "IoPriority"},
                             {T::u8, "ThreadFlags"},
                             {T::wstr, "ThreadName", R::thread_name}};
constexpr Field kThreadSetName[] = {{T::u32, "ProcessId", R::process_id},
                                    {T::u32, "ThreadId", R::thread_id},
                                    {T::wstr, "ThreadName", R::thread_name}};
constexpr Field kContextSwitch[] = {{T::u32, "NewThreadId", R::new_thread_id},
                                    {T::u32, "OldThreadId", R::old_thread_id},
                                    {T::u8, "NewThreadPriority"},
                                    {T::u8, "OldThreadPriority"},
                                    {T::u8, "PreviousCState"},
                                    {T::u8, "SpareByte"},
                                    {T::u8, "OldThreadWaitReason"},
                                    {T::u8, "OldThreadWaitMode"},
                                    {T::u8, "OldThreadState"},
                                    {T::u8, "OldThreadWaitIdealProcessor"},
                                    {T::u32, "NewThreadWaitTime"},
                                    {T::u32, "Reserved"}};
constexpr Field kContextSwitchBatch[] = {{T::time, "FirstTimeStamp", R::event_time},
                                         {T::u32, "TidTable", R::none, 16},
                                         {T::u8, "ThreadBasePriority", R::none, 16},
                                         {T::rest, "Records"}};
constexpr Field kReadyThread[] = {{T::u32, "TThreadId", R::thread_id},
                                  {T::u8, "AdjustReason"},
                                  {T::u8, "AdjustIncrement"},
                                  {T::u8, "Flag"},
                                  {T::u8, "Reserved"}};
constexpr Field kSetPriority[] = {
    {T::u32, "ThreadId", R::thread_id}, {T::u8, "OldPriority"}, {T::u8, "NewPriority"}, {T::u16, "Reserved"}};
constexpr Field kSetAffinity[] = {{T::pointer, "AffinityMask"},
                                  {T::u32, "ThreadId", R::thread_id},
                                  {T::u16, "Group"},
                                  {T::u16, "Reserved"}};
constexpr Field kSpinLock[] = {{T::pointer, "SpinLockAddress"},
                               {T::pointer, "CallerAddress"},
                               {T::u64, "AcquireTime"},
                               {T::u64, "ReleaseTime"},
                               {T::u32, "WaitTimeInCycles"},
                               {T::u32, "SpinCount"},
                               {T::u32, "ThreadId", R::thread_id},
                               {T::rest, "Rest"}};

constexpr Field kImage[] = {{T::pointer, "ImageBase", R::image_base},
                            {T::pointer, "ImageSize", R::image_size},
                            {T::u32, "ProcessId", R::process_id},
                            {T::u32, "ImageChecksum", R::image_checksum},
                            {T::u32, "TimeDateStamp", R::image_time},
                            {T::u8, "SignatureLevel"},
                            {T::u8, "SignatureType"},
                            {T::u16, "Reserved0"},
                            {T::pointer, "DefaultBase"},
                            {T::u32, "Reserved", R::none, 4},
                            {T::wstr, "FileName", R::file_name}};
constexpr Field kOnePointer[] = {{T::pointer, "Address"}};

constexpr Field kSample[] = {{T::pointer, "InstructionPointer", R::instruction_pointer},
                             {T::u32, "ThreadId", R::thread_id},
                             {T::u16, "Count"},
                             {T::u8, "Flags"},
                             {T::u8, "Rank"}};
constexpr Field kPmcSample[] = {{T::pointer, "InstructionPointer", R::instruction_pointer},
                                {T::u32, "ThreadId", R::thread_id},
                                {T::u16, "ProfileSource"},
                                {T::u16, "Reserved"}};
constexpr Field kInterval[] = {
    {T::u32, "Source"}, {T::u32, "NewInterval"}, {T::u32, "OldInterval"}, {T::wstr, "SourceName"}};
constexpr Field kDpc[] = {{T::time, "InitialTime"}, {T::pointer, "Routine"}};
constexpr Field kIsr[] = {{T::time, "InitialTime"}, {T::pointer, "Routine"}, {T::u8, "ReturnValue"},
                          {T::u16, "Vector"},       {T::u8, "Reserved"},     {T::u32, "MessageNumber"}};
constexpr Field kSyscallExit[] = {{T::u32, "SysCallNtStatus"}};
constexpr Field kLastBranch[] = {{T::time, "EventTime", R::event_time},
                                 {T::u32, "ProcessId", R::process_id},
                                 {T::u32, "ThreadId", R::thread_id},
                                 {T::rest, "Branches"}};

constexpr Field kPageFault[] = {{T::pointer, "VirtualAddress"}, {T::pointer, "ProgramCounter"}};
constexpr Field kHardFault[] = {{T::time, "InitialTime"},
                                {T::u64, "ReadOffset"},
                                {T::pointer, "VirtualAddress"},
                                {T::pointer, "FileObject", R::file_object},
                                {T::u32, "TThreadId", R::thread_id},
                                {T::u32, "ByteCount"}};
constexpr Field kVirtualAlloc[] = {{T::pointer, "BaseAddress"},
                                   {T::pointer, "RegionSize"},
                                   {T::u32, "ProcessId", R::process_id},
                                   {T::u32, "Flags"}};
constexpr Field kHeapRange[] = {{T::pointer, "HeapHandle"},
                                {T::u32, "HeapFlags"},
                                {T::u32, "ProcessId", R::process_id},
                                {T::u32, "HeapRangeCount"},
                                {T::rest, "Ranges"}};

constexpr Field kDiskIo[] = {{T::u32, "DiskNumber"},
                             {T::u32, "IrpFlags"},
                             {T::u32, "TransferSize"},
                             {T::u32, "Reserved"},
                             {T::u64, "ByteOffset"},
                             {T::pointer, "FileObject", R::file_object},
                             {T::pointer, "IRP"},
                             {T::u64, "HighResResponseTime"},
                             {T::u32, "IssuingThreadId", R::thread_id}}; // absent before v3
constexpr Field kDiskInit[] = {{T::pointer, "Irp"}, {T::u32, "IssuingThreadId", R::thread_id}};
constexpr Field kDiskFlush[] = {{T::u32, "DiskNumber"},
                                {T::u32, "IrpFlags"},
                                {T::u64, "HighResResponseTime"},
                                {T::pointer, "Irp"},
                                {T::u32, "IssuingThreadId", R::thread_id}};

constexpr Field kFileName[] = {{T::pointer, "FileObject", R::file_object},
                               {T::wstr, "FileName", R::file_name}};
constexpr Field kMapFile2[] = {{T::pointer, "ViewBase"},
                               {T::pointer, "FileObject", R::file_object},
                               {T::u64, "MiscInfo"},
                               {T::pointer, "ViewSize"},
                               {T::u32, "ProcessId", R::process_id}};
constexpr Field kMapFile3[] = {{T::pointer, "ViewBase"}, {T::pointer, "FileObject", R::file_object},
                               {T::u64, "MiscInfo"},     {T::pointer, "ViewSize"},
                               {T::u64, "ByteOffset"},   {T::u32, "ProcessId", R::process_id}};
// v2 has the thread id as a pointer-sized field behind the Irp.
constexpr Field kFileCreate2[] = {{T::pointer, "IrpPtr"},
                                  {T::pointer, "TTID", R::thread_id},
                                  {T::pointer, "FileObject", R::file_object},
                                  {T::u32, "CreateOptions"},
                                  {T::u32, "FileAttributes"},
                                  {T::u32, "ShareAccess"},
                                  {T::wstr, "OpenPath", R::file_name}};
constexpr Field kFileCreate3[] = {{T::pointer, "IrpPtr"},
                                  {T::pointer, "FileObject", R::file_object},
                                  {T::u32, "TTID", R::thread_id},
                                  {T::u32, "CreateOptions"},
                                  {T::u32, "FileAttributes"},
                                  {T::u32, "ShareAccess"},
                                  {T::wstr, "OpenPath", R::file_name}};
constexpr Field kFileSimple2[] = {{T::pointer, "IrpPtr"},
                                  {T::pointer, "TTID", R::thread_id},
                                  {T::pointer, "FileObject", R::file_object},
                                  {T::pointer, "FileKey", R::file_key}};
constexpr Field kFileSimple3[] = {{T::pointer, "IrpPtr"},
                                  {T::pointer, "FileObject", R::file_object},
                                  {T::pointer, "FileKey", R::file_key},
                                  {T::u32, "TTID", R::thread_id}};
constexpr Field kFileReadWrite2[] = {{T::u64, "Offset"},
                                     {T::pointer, "IrpPtr"},
                                     {T::pointer, "TTID", R::thread_id},
                                     {T::pointer, "FileObject", R::file_object},
                                     {T::pointer, "FileKey", R::file_key},
                                     {T::u32, "IoSize"},
                                     {T::u32, "IoFlags"}};
constexpr Field kFileReadWrite3[] = {{T::u64, "Offset"},
                                     {T::pointer, "IrpPtr"},
                                     {T::pointer, "FileObject", R::file_object},
                                     {T::pointer, "FileKey", R::file_key},
                                     {T::u32, "TTID", R::thread_id},
                                     {T::u32, "IoSize"},
                                     {T::u32, "IoFlags"}};
constexpr Field kFileInfo2[] = {{T::pointer, "IrpPtr"},
                                {T::pointer, "TTID", R::thread_id},
                                {T::pointer, "FileObject", R::file_object},
                                {T::pointer, "FileKey", R::file_key},
                                {T::pointer, "ExtraInfo"},
                                {T::u32, "InfoClass"}};
constexpr Field kFileInfo3[] = {{T::pointer, "IrpPtr"},
                                {T::pointer, "FileObject", R::file_object},
                                {T::pointer, "FileKey", R::file_key},
                                {T::pointer, "ExtraInfo"},
                                {T::u32, "TTID", R::thread_id},
                                {T::u32, "InfoClass"}};
constexpr Field kDirEnum2[] = {{T::pointer, "IrpPtr"},
                               {T::pointer, "TTID", R::thread_id},
                               {T::pointer, "FileObject", R::file_object},
                               {T::pointer, "FileKey", R::file_key},
                               {T::u32, "Length"},
                               {T::u32, "InfoClass"},
                               {T::u32, "FileIndex"},
                               {T::wstr, "FileName", R::file_name}};
constexpr Field kDirEnum3[] = {{T::pointer, "IrpPtr"},
                               {T::pointer, "FileObject", R::file_object},
                               {T::pointer, "FileKey", R::file_key},
                               {T::u32, "TTID", R::thread_id},
                               {T::u32, "Length"},
                               {T::u32, "InfoClass"},
                               {T::u32, "FileIndex"},
                               {T::wstr, "FileName", R::file_name}};
constexpr Field kFileEnd[] = {{T::pointer, "IrpPtr"}, {T::pointer, "ExtraInfo"}, {T::u32, "NtStatus"}};

constexpr Field kNetSend4[] = {{T::u32, "PID", R::process_id},
                               {T::u32, "size"},
                               {T::u32, "daddr"},
                               {T::u32, "saddr"},
                               {T::u16, "dport"},
                               {T::u16, "sport"},
                               {T::u32, "startime"},
                               {T::u32, "endtime"},
                               {T::u32, "seqnum"},
                               {T::pointer, "connid"}};
constexpr Field kNet4[] = {{T::u32, "PID", R::process_id},
                           {T::u32, "size"},
                           {T::u32, "daddr"},
                           {T::u32, "saddr"},
                           {T::u16, "dport"},
                           {T::u16, "sport"},
                           {T::u32, "seqnum"},
                           {T::pointer, "connid"}};
constexpr Field kNetConnect4[] = {{T::u32, "PID", R::process_id},
                                  {T::u32, "size"},
                                  {T::u32, "daddr"},
                                  {T::u32, "saddr"},
                                  {T::u16, "dport"},
                                  {T::u16, "sport"},
                                  {T::u16, "mss"},
                                  {T::u16, "sackopt"},
                                  {T::u16, "tsopt"},
                                  {T::u16, "wsopt"},
                                  {T::u32, "rcvwin"},
                                  {T::u16, "rcvwinscale"},
                                  {T::u16, "sndwinscale"},
                                  {T::u32, "seqnum"},
                                  {T::pointer, "connid"}};
constexpr Field kNetSend6[] = {{T::u32, "PID", R::process_id},
                               {T::u32, "size"},
                               {T::guid, "daddr"},
                               {T::guid, "saddr"},
                               {T::u16, "dport"},
                               {T::u16, "sport"},
                               {T::u32, "startime"},
                               {T::u32, "endtime"},
                               {T::u32, "seqnum"},
                               {T::pointer, "connid"}};
constexpr Field kNet6[] = {{T::u32, "PID", R::process_id},
                           {T::u32, "size"},
                           {T::guid, "daddr"},
                           {T::guid, "saddr"},
                           {T::u16, "dport"},
                           {T::u16, "sport"},
                           {T::u32, "seqnum"},
                           {T::pointer, "connid"}};
constexpr Field kNetConnect6[] = {{T::u32, "PID", R::process_id},
                                  {T::u32, "size"},
                                  {T::guid, "daddr"},
                                  {T::guid, "saddr"},
                                  {T::u16, "dport"},
                                  {T::u16, "sport"},
                                  {T::u16, "mss"},
                                  {T::u16, "sackopt"},
                                  {T::u16, "tsopt"},
                                  {T::u16, "wsopt"},
                                  {T::u32, "rcvwin"},
                                  {T::u16, "rcvwinscale"},
                                  {T::u16, "sndwinscale"},
                                  {T::u32, "seqnum"},
                                  {T::pointer, "connid"}};

constexpr Field kService[] = {{T::u32, "ProcessId", R::process_id},
                              {T::u32, "ServiceState"},
                              {T::u32, "SubProcessTag"},
                              {T::wstr, "ServiceName"},
                              {T::wstr, "DisplayName"},
                              {T::wstr, "ProcessName"},
                              {T::wstr, "LoadOrderGroup"},
                              {T::wstr, "SvchostGroup"}};
constexpr Field kCpuConfig[] = {{T::u32, "MHz"},
                                {T::u32, "NumberOfProcessors"},
                                {T::u32, "MemSize"},
                                {T::u32, "PageSize"},
                                {T::u32, "AllocationGranularity"},
                                {T::u16, "ComputerName", R::none, 256},
                                {T::u16, "DomainName", R::none, 134},
                                {T::pointer, "HyperThreadingFlag"},
                                {T::pointer, "HighestUserAddress"},
                                {T::u16, "ProcessorArchitecture"},
                                {T::u16, "ProcessorLevel"},
                                {T::u16, "ProcessorRevision"},
                                {T::u8, "PaeEnabled"},
                                {T::u8, "NxEnabled"},
                                {T::u32, "MemorySpeed"}};

constexpr Field kStackWalk[] = {{T::time, "EventTimeStamp", R::event_time},
                                {T::u32, "StackProcess", R::process_id},
                                {T::u32, "StackThread", R::thread_id},
                                {T::pointers, "Stack", R::frames}};
constexpr Field kStackDefinition[] = {{T::pointer, "StackKey", R::stack_key},
                                      {T::pointers, "Stack", R::frames}};
constexpr Field kStackReference[] = {{T::time, "EventTimeStamp", R::event_time},
                                     {T::u32, "StackProcess", R::process_id},
                                     {T::u32, "StackThread", R::thread_id},
                                     {T::pointer, "StackKey", R::stack_key}};

// Sorted by hook, then by version.
constexpr Layout kLayouts[] = {
    {0x0005, 0, kLogExtension},
    {0x0020, 0, kLogExtension},
    {0x0040, 0, kSessionDbgId},
    {0x0042, 0, kBuildLab},
    {0x0050, 0, kPartition},
    {0x010A, 0, kDiskIo},
    {0x010B, 0, kDiskIo},
    {0x010C, 0, kDiskInit},
    {0x010D, 0, kDiskInit},
    {0x010E, 0, kDiskFlush},
    {0x010F, 0, kDiskInit},
    {0x020A, 0, kPageFault},
    {0x020B, 0, kPageFault},
    {0x020C, 0, kPageFault},
    {0x020D, 0, kPageFault},
    {0x020E, 0, kPageFault},
    {0x020F, 0, kPageFault},
    {0x0220, 0, kHardFault},
    {0x0262, 0, kVirtualAlloc},
    {0x0263, 0, kVirtualAlloc},
    {0x0264, 0, kHeapRange},
    {0x0301, 2, kProcess2},
    {0x0301, 3, kProcess3},
    {0x0301, 4, kProcess4},
    {0x0302, 2, kProcess2},
    {0x0302, 3, kProcess3},
    {0x0302, 4, kProcess4},
    {0x0303, 2, kProcess2},
    {0x0303, 3, kProcess3},
    {0x0303, 4, kProcess4},
    {0x0304, 2, kProcess2},
    {0x0304, 3, kProcess3},
    {0x0304, 4, kProcess4},
    {0x030A, 2, kImage},
    {0x030B, 0, kProcessTerminate},
    {0x0320, 0, kProcessCounters},
    {0x0321, 0, kProcessCounters},
    {0x0327, 2, kProcess2},
    {0x0327, 3, kProcess3},
    {0x0327, 4, kProcess4},
    {0x0400, 0, kFileName},
    {0x0420, 0, kFileName},
    {0x0423, 0, kFileName},
    {0x0424, 0, kFileName},
    {0x0425, 0, kMapFile2},
    {0x0425, 3, kMapFile3},
    {0x0426, 0, kMapFile2},
    {0x0426, 3, kMapFile3},
    {0x0427, 0, kMapFile2},
    {0x0427, 3, kMapFile3},
    {0x0428, 0, kMapFile2},
    {0x0428, 3, kMapFile3},
    {0x0440, 0, kFileCreate2},
    {0x0440, 3, kFileCreate3},
    {0x0441, 0, kFileSimple2},
    {0x0441, 3, kFileSimple3},
    {0x0442, 0, kFileSimple2},
    {0x0442, 3, kFileSimple3},
    {0x0443, 0, kFileReadWrite2},
    {0x0443, 3, kFileReadWrite3},
    {0x0444, 0, kFileReadWrite2},
    {0x0444, 3, kFileReadWrite3},
    {0x0445, 0, kFileInfo2},
    {0x0445, 3, kFileInfo3},
    {0x0446, 0, kFileInfo2},
    {0x0446, 3, kFileInfo3},
    {0x0447, 0, kFileInfo2},
    {0x0447, 3, kFileInfo3},
    {0x0448, 0, kDirEnum2},
    {0x0448, 3, kDirEnum3},
    {0x0449, 0, kFileSimple2},
    {0x0449, 3, kFileSimple3},
    {0x044A, 0, kFileInfo2},
    {0x044A, 3, kFileInfo3},
    {0x044B, 0, kFileInfo2},
    {0x044B, 3, kFileInfo3},
    {0x044C, 0, kFileEnd},
    {0x044D, 0, kDirEnum2},
    {0x044D, 3, kDirEnum3},
    {0x0501, 1, kThread},
    {0x0502, 1, kThread},
    {0x0503, 1, kThread},
    {0x0504, 1, kThread},
    {0x0524, 0, kContextSwitch},
    {0x0525, 0, kContextSwitchBatch},
    {0x0529, 0, kSpinLock},
    {0x0530, 0, kSetPriority},
    {0x0531, 0, kSetPriority},
    {0x0532, 0, kReadyThread},
    {0x0533, 0, kSetPriority},
    {0x0534, 0, kSetPriority},
    {0x0535, 0, kSetAffinity},
    {0x0548, 0, kThreadSetName},
    {0x060A, 1, kNetSend4},
    {0x060B, 1, kNet4},
    {0x060C, 1, kNetConnect4},
    {0x060D, 1, kNet4},
    {0x060E, 1, kNet4},
    {0x060F, 1, kNetConnect4},
    {0x0610, 1, kNet4},
    {0x0612, 1, kNet4},
    {0x061A, 1, kNetSend6},
    {0x061B, 1, kNet6},
    {0x061C, 1, kNetConnect6},
    {0x061D, 1, kNet6},
    {0x061E, 1, kNet6},
    {0x061F, 1, kNetConnect6},
    {0x0620, 1, kNet6},
    {0x0622, 1, kNet6},
    {0x080A, 1, kNet4},
    {0x080B, 1, kNet4},
    {0x081A, 1, kNet6},
    {0x081B, 1, kNet6},
    {0x0B0A, 3, kCpuConfig},
    {0x0B0F, 2, kService},
    {0x0C20, 0, kLastBranch},
    {0x0F2E, 0, kSample},
    {0x0F2F, 0, kPmcSample},
    {0x0F32, 0, kIsr},
    {0x0F33, 0, kOnePointer},
    {0x0F34, 0, kSyscallExit},
    {0x0F42, 0, kDpc},
    {0x0F43, 0, kIsr},
    {0x0F44, 0, kDpc},
    {0x0F45, 0, kDpc},
    {0x0F46, 0, kDpc},
    {0x0F48, 0, kInterval},
    {0x0F49, 0, kInterval},
    {0x0F4A, 0, kInterval},
    {0x0F5F, 0, kIsr},
    {0x1402, 2, kImage},
    {0x1403, 2, kImage},
    {0x1404, 2, kImage},
    {0x140A, 2, kImage},
    {0x1421, 0, kOnePointer},
    {0x1422, 0, kOnePointer},
    {0x1820, 0, kStackWalk},
    {0x1822, 0, kStackDefinition},
    {0x1823, 0, kStackDefinition},
    {0x1824, 0, kStackDefinition},
    {0x1825, 0, kStackReference},
    {0x1826, 0, kStackReference},
};

static_assert(std::ranges::is_sorted(kLayouts, {},
                                     [](const Layout &l) { return l.hook * 256 + l.min_version; }));

} // namespace

const Layout *find_layout(std::uint16_t hook, std::uint16_t version) {
  const Layout *best = nullptr;
  for (auto at = std::ranges::lower_bound(kLayouts, hook, {}, &Layout::hook);
       at != std::end(kLayouts) && at->hook == hook && at->min_version <= version; ++at)
    best = &*at;
  return best;
}

std::span<const Layout> all_layouts() {
  return kLayouts;
}

} // namespace etwrelog::kernel
