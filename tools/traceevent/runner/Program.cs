// Runs Microsoft's TraceEvent over a trace and prints what it makes of it, for comparison with what is known:
//   traceevent-runner baseline TRACE [ETLX]   every kind's first events and all counts, as PerfView's baselines print them
//   traceevent-runner events TRACE            counts by provider, id, opcode and version of ETWTraceEventSource, unchanged
//   traceevent-runner processes TRACE [ETLX]  the process table of TraceLog
//   traceevent-runner stacks TRACE [ETLX]     samples by process and stack, frames as module+offset
//   traceevent-runner addresses TRACE [ETLX]  the same, frames as addresses
//   traceevent-runner time TRACE [ETLX]       seconds for ProcessTrace with an empty callback and for the conversion
using System;
using System.Globalization;

namespace Etwrelog.TraceEventRunner
{
    internal static class Program
    {
        private static int Main(string[] arguments)
        {
            CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
            // TraceEvent takes these for granted when a trace does not say where Windows was.
            foreach (string name in new[] { "windir", "SystemRoot" })
                if (Environment.GetEnvironmentVariable(name) == null)
                    Environment.SetEnvironmentVariable(name, @"C:\Windows");
            if (arguments.Length < 2 || arguments.Length > 3)
            {
                Console.Error.WriteLine("usage: traceevent-runner baseline|events|processes|stacks|addresses|time TRACE [ETLX]");
                return 2;
            }
            string trace = arguments[1];
            string etlx = arguments.Length == 3 ? arguments[2] : null;
            try
            {
                switch (arguments[0])
                {
                    case "baseline": Baseline.Print(trace, etlx); return 0;
                    case "events": Counts.Print(trace); return 0;
                    case "processes": Tables.PrintProcesses(trace, etlx); return 0;
                    case "stacks": Tables.PrintStacks(trace, etlx, Tables.Frame); return 0;
                    case "addresses": Tables.PrintStacks(trace, etlx, Tables.Address); return 0;
                    case "time": Counts.PrintTimes(trace, etlx); return 0;
                    default: Console.Error.WriteLine("unknown command " + arguments[0]); return 2;
                }
            }
            catch (Exception error)
            {
                Console.Error.WriteLine(error);
                return 1;
            }
        }
    }
}
