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

// KernelTraceControl's image identity, by opcode.
constexpr Field kImageId[] = {{T::pointer, "ImageBase", R::image_base},
                              {T::pointer, "ImageSize", R::image_size},
                              {T::u32, "ProcessId", R::process_id},
                              {T::u32, "TimeDateStamp", R::image_time},
                              {T::wstr, "OriginalFileName", R::file_name}};
constexpr Field kImageNone[] = {{T::pointer, "ImageBase", R::image_base},
                                {T::u32, "ProcessId", R::process_id}};
constexpr Field kImageDbg[] = {{T::pointer, "ImageBase", R::image_base},
                               {T::u32, "ProcessId", R::process_id},
                               {T::u32, "ImageChecksum", R::image_checksum},
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
constexpr Field kImageEmbedded[] = {{T::pointer, "ImageBase", R::image_base},
                                    {T::u32, "ProcessId", R::process_id},
                                    {T::u16, "MajorVersion"},
                                    {T::u16, "MinorVersion"},
                                    {T::guid, "GuidSig"},
                                    {T::u32, "Age"}};
constexpr Field kImageFailure[] = {{T::wstr, "Message"}};
constexpr Field kImageFileVersion[] = {{T::u32, "ImageSize"},
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
constexpr Field kMetaData[] = {{T::guid, "ProviderGuid"}, {T::rest, "Info"}};

constexpr std::uint16_t kNoHook = 0xFFFF;
// In `hook` stands the opcode.
constexpr Layout kImageIdLayouts[] = {{0, 0, kImageId},          {32, 0, kImageNone}, {34, 0, kImageDbg},
                                      {36, 0, kImageRsds},       {37, 0, kImageRsds}, {38, 0, kImagePpdb},
                                      {39, 0, kImageEmbedded},   {40, 0, kImageNone}, {41, 0, kImageFailure},
                                      {64, 0, kImageFileVersion}};
constexpr Layout kMetaDataLayout = {kNoHook, 0, kMetaData};

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

using S = Scope;

// Sorted by hook. Names are PerfView's where it has one.
constexpr HookInfo kHooks[] = {
    {0x0000, S::always, "EventTrace"},
    {0x0005, S::always, "EventTrace/Extension"},
    {0x0008, S::always, "EventTrace/RundownComplete"},
    {0x0020, S::always, "EventTrace/EndExtension"},
    {0x0040, S::always, "EventTrace/DbgIdRSDS"},
    {0x0042, S::always, "EventTrace/BuildInfo"},
    {0x0043, S::always, "EventTrace/ProviderBinaryPath"},
    {0x0050, S::always, "EventTrace/PartitionInfo"},
    {0x0052, S::always, "EventTrace/Opcode(82)"},
    {0x010A, S::payload_thread, "DiskIO/Read"},
    {0x010B, S::payload_thread, "DiskIO/Write"},
    {0x010C, S::payload_thread, "DiskIO/ReadInit"},
    {0x010D, S::payload_thread, "DiskIO/WriteInit"},
    {0x010E, S::payload_thread, "DiskIO/FlushBuffers"},
    {0x010F, S::payload_thread, "DiskIO/FlushInit"},
    {0x020A, S::current_thread, "Memory/TransitionFault"},
    {0x020B, S::current_thread, "Memory/DemandZeroFault"},
    {0x020C, S::current_thread, "Memory/CopyOnWrite"},
    {0x020D, S::current_thread, "Memory/GuardMemory"},
    {0x020E, S::current_thread, "Memory/HardMemory"},
    {0x020F, S::current_thread, "Memory/AccessViolation"},
    {0x0220, S::payload_thread, "Memory/HardFault"},
    {0x0262, S::payload_process, "Memory/VirtualAlloc"},
    {0x0263, S::payload_process, "Memory/VirtualFree"},
    {0x0264, S::payload_process, "Memory/HeapRangeRundown"},
    {0x0301, S::process, "Process/Start"},
    {0x0302, S::process, "Process/Stop"},
    {0x0303, S::process, "Process/DCStart"},
    {0x0304, S::process, "Process/DCStop"},
    {0x030A, S::image, "Image/Load"},
    {0x030B, S::payload_process, "Process/Terminate"},
    {0x0320, S::payload_process, "Process/PerfCtr"},
    {0x0321, S::payload_process, "Process/PerfCtrRundown"},
    {0x0327, S::process, "Process/Defunct"},
    {0x0400, S::file_name, "FileIO/Name"},
    {0x0420, S::file_name, "FileIO/FileCreate"},
    {0x0423, S::file_name, "FileIO/FileDelete"},
    {0x0424, S::file_name, "FileIO/FileRundown"},
    {0x0425, S::payload_process, "FileIO/MapFile"},
    {0x0426, S::payload_process, "FileIO/UnmapFile"},
    {0x0427, S::payload_process, "FileIO/MapFileDCStart"},
    {0x0428, S::payload_process, "FileIO/MapFileDCStop"},
    {0x0440, S::payload_thread, "FileIO/Create"},
    {0x0441, S::payload_thread, "FileIO/Cleanup"},
    {0x0442, S::payload_thread, "FileIO/Close"},
    {0x0443, S::payload_thread, "FileIO/Read"},
    {0x0444, S::payload_thread, "FileIO/Write"},
    {0x0445, S::payload_thread, "FileIO/SetInfo"},
    {0x0446, S::payload_thread, "FileIO/Delete"},
    {0x0447, S::payload_thread, "FileIO/Rename"},
    {0x0448, S::payload_thread, "FileIO/DirEnum"},
    {0x0449, S::payload_thread, "FileIO/Flush"},
    {0x044A, S::payload_thread, "FileIO/QueryInfo"},
    {0x044B, S::payload_thread, "FileIO/FSControl"},
    {0x044C, S::current_thread, "FileIO/OperationEnd"},
    {0x044D, S::payload_thread, "FileIO/DirNotify"},
    {0x0501, S::thread, "Thread/Start"},
    {0x0502, S::thread, "Thread/Stop"},
    {0x0503, S::thread, "Thread/DCStart"},
    {0x0504, S::thread, "Thread/DCStop"},
    {0x0524, S::context_switch, "Thread/CSwitch"},
    {0x0525, S::context_switch_batch, "Thread/CompCS"},
    {0x0529, S::payload_thread, "Thread/SpinLock"},
    {0x0530, S::payload_thread, "Thread/SetPriority"},
    {0x0531, S::payload_thread, "Thread/SetBasePriority"},
    {0x0532, S::ready_thread, "Dispatcher/ReadyThread"},
    {0x0533, S::payload_thread, "Thread/SetPagePriority"},
    {0x0534, S::payload_thread, "Thread/SetIoPriority"},
    {0x0535, S::payload_thread, "Thread/SetAffinity"},
    {0x0548, S::thread, "Thread/SetName"},
    {0x060A, S::payload_process, "TcpIp/Send"},
    {0x060B, S::payload_process, "TcpIp/Recv"},
    {0x060C, S::payload_process, "TcpIp/Connect"},
    {0x060D, S::payload_process, "TcpIp/Disconnect"},
    {0x060E, S::payload_process, "TcpIp/Retransmit"},
    {0x060F, S::payload_process, "TcpIp/Accept"},
    {0x0610, S::payload_process, "TcpIp/Reconnect"},
    {0x0611, S::system, "TcpIp/Fail"},
    {0x0612, S::payload_process, "TcpIp/TCPCopy"},
    {0x061A, S::payload_process, "TcpIp/SendIPV6"},
    {0x061B, S::payload_process, "TcpIp/RecvIPV6"},
    {0x061C, S::payload_process, "TcpIp/ConnectIPV6"},
    {0x061D, S::payload_process, "TcpIp/DisconnectIPV6"},
    {0x061E, S::payload_process, "TcpIp/RetransmitIPV6"},
    {0x061F, S::payload_process, "TcpIp/AcceptIPV6"},
    {0x0620, S::payload_process, "TcpIp/ReconnectIPV6"},
    {0x0622, S::payload_process, "TcpIp/TCPCopyIPV6"},
    {0x080A, S::payload_process, "UdpIp/Send"},
    {0x080B, S::payload_process, "UdpIp/Recv"},
    {0x0811, S::system, "UdpIp/Fail"},
    {0x081A, S::payload_process, "UdpIp/SendIPV6"},
    {0x081B, S::payload_process, "UdpIp/RecvIPV6"},
    {0x090A, S::header, "Registry/Create"},
    {0x090B, S::header, "Registry/Open"},
    {0x090C, S::header, "Registry/Delete"},
    {0x090D, S::header, "Registry/Query"},
    {0x090E, S::header, "Registry/SetValue"},
    {0x090F, S::header, "Registry/DeleteValue"},
    {0x0910, S::header, "Registry/QueryValue"},
    {0x0911, S::header, "Registry/EnumerateKey"},
    {0x0912, S::header, "Registry/EnumerateValueKey"},
    {0x0913, S::header, "Registry/QueryMultipleValue"},
    {0x0914, S::header, "Registry/SetInformation"},
    {0x0915, S::header, "Registry/Flush"},
    {0x0916, S::header, "Registry/KCBCreate"},
    {0x0917, S::header, "Registry/KCBDelete"},
    {0x0918, S::header, "Registry/KCBRundownBegin"},
    {0x0919, S::header, "Registry/KCBRundownEnd"},
    {0x091A, S::header, "Registry/Virtualize"},
    {0x091B, S::header, "Registry/Close"},
    {0x0B0A, S::always, "SystemConfig/CPU"},
    {0x0B0B, S::always, "SystemConfig/PhyDisk"},
    {0x0B0C, S::always, "SystemConfig/LogDisk"},
    {0x0B0D, S::always, "SystemConfig/NIC"},
    {0x0B0E, S::always, "SystemConfig/Video"},
    {0x0B0F, S::always, "SystemConfig/Services"},
    {0x0B10, S::always, "SystemConfig/Power"},
    {0x0B11, S::always, "SystemConfig/Network"},
    {0x0B12, S::always, "SystemConfig/OpticalDisk"},
    {0x0B15, S::always, "SystemConfig/IRQ"},
    {0x0B16, S::always, "SystemConfig/PnP"},
    {0x0B17, S::always, "SystemConfig/IDEChannel"},
    {0x0B18, S::always, "SystemConfig/Numa"},
    {0x0B19, S::always, "MSNT_SystemTrace/SystemConfig/Platform"},
    {0x0B1A, S::always, "SystemConfig/ProcessorGroup"},
    {0x0B1B, S::always, "SystemConfig/ProcessorNumber"},
    {0x0B1C, S::always, "SystemConfig/Dpi"},
    {0x0B1D, S::always, "SystemConfig/CodeIntegrity"},
    {0x0B1E, S::always, "SystemConfig/MachineId"},
    {0x0B1F, S::always, "SystemConfig/Defrag"},
    {0x0B21, S::always, "SystemConfig/DeviceFamily"},
    {0x0B22, S::always, "SystemConfig/FlightIds"},
    {0x0B23, S::always, "SystemConfig/Processors"},
    {0x0C20, S::payload_process, "LastBranch/Record"},
    {0x0F22, S::header, "PerfInfo/Mark"},
    {0x0F2E, S::payload_thread, "PerfInfo/Sample"},
    {0x0F2F, S::payload_thread, "PerfInfo/PMCSample"},
    {0x0F32, S::system, "PerfInfo/ISR-MSI"},
    {0x0F33, S::current_thread, "PerfInfo/SysClEnter"},
    {0x0F34, S::current_thread, "PerfInfo/SysClExit"},
    {0x0F42, S::system, "PerfInfo/ThreadedDPC"},
    {0x0F43, S::system, "PerfInfo/ISR"},
    {0x0F44, S::system, "PerfInfo/DPC"},
    {0x0F45, S::system, "PerfInfo/TimerDPC"},
    {0x0F46, S::system, "PerfInfo/IoTimer"},
    {0x0F48, S::always, "PerfInfo/SetInterval"},
    {0x0F49, S::always, "PerfInfo/CollectionStart"},
    {0x0F4A, S::always, "PerfInfo/CollectionEnd"},
    {0x0F5F, S::system, "PerfInfo/PassiveISR"},
    {0x1402, S::image, "Image/Unload"},
    {0x1403, S::image, "Image/DCStart"},
    {0x1404, S::image, "Image/DCStop"},
    {0x140A, S::image, "Image/Load"},
    {0x1421, S::always, "MSNT_SystemTrace/Image/KernelBase"},
    {0x1422, S::always, "Image/HypercallPage"},
    {0x1820, S::stack_walk, "StackWalk/Stack"},
    {0x1822, S::stack_definition, "StackWalk/KeyCreate"},
    {0x1823, S::stack_definition, "StackWalk/KeyDelete"},
    {0x1824, S::stack_definition, "StackWalk/KeyRundown"},
    {0x1825, S::stack_reference, "StackWalk/StackKeyKernel"},
    {0x1826, S::stack_reference, "StackWalk/StackKeyUser"},
    {0x1A21, S::header, "ALPC/SendMessage"},
    {0x1A22, S::header, "ALPC/ReceiveMessage"},
    {0x1A23, S::header, "ALPC/WaitForReply"},
    {0x1A24, S::header, "ALPC/WaitForNewMessage"},
    {0x1A25, S::header, "ALPC/Unwait"},
};

static_assert(std::ranges::is_sorted(kHooks, {}, &HookInfo::hook));
static_assert(std::ranges::is_sorted(kLayouts, {},
                                     [](const Layout &l) { return l.hook * 256 + l.min_version; }));

// Offset just behind the terminator, or the end of the payload for a string that has none.
std::size_t string_end(Bytes payload, std::size_t at, std::size_t unit, std::size_t &length) {
  std::size_t end = at;
  while (end + unit <= payload.size()) {
    bool zero = true;
    for (std::size_t i = 0; i < unit; ++i)
      zero = zero && payload[end + i] == 0;
    if (zero) {
      length = end - at;
      return end + unit;
    }
    end += unit;
  }
  length = end - at;
  return payload.size();
}

} // namespace

const HookInfo *find_hook(std::uint16_t hook) {
  const auto at = std::ranges::lower_bound(kHooks, hook, {}, &HookInfo::hook);
  return at != std::end(kHooks) && at->hook == hook ? &*at : nullptr;
}

const Layout *find_layout(std::uint16_t hook, std::uint16_t version) {
  const Layout *best = nullptr;
  for (auto at = std::ranges::lower_bound(kLayouts, hook, {}, &Layout::hook);
       at != std::end(kLayouts) && at->hook == hook && at->min_version <= version; ++at)
    best = &*at;
  return best;
}

std::span<const HookInfo> all_hooks() {
  return kHooks;
}
std::span<const Layout> all_layouts() {
  return kLayouts;
}

Scope scope_of(std::uint16_t hook) {
  if (const HookInfo *info = find_hook(hook)) return info->scope;
  const unsigned group = hook >> 8;
  return group == 0x00 || group == 0x0B ? Scope::always : Scope::header;
}

const Layout *find_classic_layout(const Guid &guid, std::uint8_t opcode) {
  if (guid == format::kMetaDataGuid) return &kMetaDataLayout;
  if (guid != format::kImageIdGuid) return nullptr;
  for (const Layout &layout : kImageIdLayouts)
    if (layout.hook == opcode) return &layout;
  return nullptr;
}

std::optional<std::size_t> fixed_offset(const Layout &layout, Role role, unsigned pointer_size) {
  std::size_t at = 0;
  for (const Field &field : layout.fields) {
    if (field.role == role) return at;
    const std::size_t size = fixed_size(field.type, pointer_size);
    if (size == 0) return std::nullopt;
    at += size * field.repeat;
  }
  return std::nullopt;
}

bool FieldWalk::next(const Field *&field, Bytes &data) {
  if (fields_.empty() || at_ >= payload_.size()) return false;
  field = &fields_.front();
  fields_ = fields_.subspan(1);
  std::size_t length = fixed_size(field->type, pointer_size_) * field->repeat;
  std::size_t next = at_ + length;
  switch (field->type) {
  case FieldType::astr: next = string_end(payload_, at_, 1, length); break;
  case FieldType::wstr: next = string_end(payload_, at_, 2, length); break;
  case FieldType::pointers:
    length = (payload_.size() - at_) / pointer_size_ * pointer_size_;
    next = at_ + length;
    break;
  case FieldType::rest: length = payload_.size() - at_, next = payload_.size(); break;
  case FieldType::sid: {
    const auto size = sid_size(payload_.subspan(at_), pointer_size_);
    if (!size) return false;
    length = *size, next = at_ + length;
    break;
  }
  case FieldType::counted_pointers:
    if (payload_.size() - at_ < 4) return false;
    length = 4 + std::size_t{load<std::uint32_t>(payload_.data() + at_)} * pointer_size_, next = at_ + length;
    break;
  case FieldType::offset_map:
    if (payload_.size() - at_ < 2) return false;
    length = 2 + std::size_t{load<std::uint16_t>(payload_.data() + at_)} * 8, next = at_ + length;
    break;
  default: break;
  }
  if (next > payload_.size()) return false;
  data = payload_.subspan(at_, length);
  at_ = next;
  return true;
}

std::optional<std::size_t> sid_size(Bytes data, unsigned pointer_size) {
  const std::size_t token_user = std::size_t{2} * pointer_size;
  // No SID at all is four zero bytes; a zero pointer with a SID behind it has the SID's revision, 1, where it
  // belongs.
  const bool has_sid = data.size() >= token_user + 8 && data[token_user] == 1;
  if (data.size() >= 4 && load<std::uint32_t>(data.data()) == 0 && !has_sid) return 4;
  if (data.size() < token_user + 8) return std::nullopt;
  const std::size_t size = token_user + 8 + std::size_t{4} * data[token_user + 1];
  return size <= data.size() ? std::optional(size) : std::nullopt;
}

std::uint64_t field_value(Bytes data) {
  switch (data.size()) {
  case 1: return data[0];
  case 2: return load<std::uint16_t>(data.data());
  case 4: return load<std::uint32_t>(data.data());
  case 8: return load<std::uint64_t>(data.data());
  default: return 0;
  }
}

} // namespace etwrelog::kernel
