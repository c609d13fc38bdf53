// Which processes a trace has and where they spent their time, by Microsoft's TraceEvent as on Windows:
//   dotnet run --project tools/traceevent/sample -- boot.etl
using System;
using System.Linq;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.Parsers.Kernel;

// What Windows sets; TraceEvent asks for it where a trace does not say where Windows was.
if (Environment.GetEnvironmentVariable("windir") == null)
    Environment.SetEnvironmentVariable("windir", @"C:\Windows");

long events = 0, samples = 0;
using (var source = new ETWTraceEventSource(args[0]))
{
    source.Kernel.PerfInfoSample += (SampledProfileTraceData data) => ++samples;
    source.AllEvents += (TraceEvent data) => ++events;
    source.Process();
    Console.WriteLine($"{events} events, {samples} samples, {source.NumberOfProcessors} processors");
}

using TraceLog log = TraceLog.OpenOrConvert(args[0]);
foreach (TraceProcess process in log.Processes.OrderByDescending(p => p.CPUMSec).Take(10))
    Console.WriteLine($"{process.CPUMSec,10:n0} ms  {process.Name} ({process.ProcessID})");
