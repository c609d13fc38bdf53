using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.Parsers.Kernel;

namespace Etwrelog.TraceEventRunner
{
    internal static class Tables
    {
        public static void PrintProcesses(string trace, string etlx)
        {
            using var conversion = new Conversion(trace, etlx);
            foreach (var process in conversion.Log.Processes.OrderBy(p => p.ProcessID).ThenBy(p => p.StartTimeRelativeMsec))
                Console.WriteLine(process.ProcessID + " " + process.ParentID + " " + process.Name + " " +
                                  process.StartTimeRelativeMsec.ToString("f3") + " " + process.EndTimeRelativeMsec.ToString("f3") +
                                  " modules " + process.LoadedModules.Count());
        }

        // One line for each process and stack, root first: count, process id, frames.
        public static void PrintStacks(string trace, string etlx, Func<TraceCodeAddress, string> name)
        {
            using var conversion = new Conversion(trace, etlx);
            var stacks = new SortedDictionary<string, int>(StringComparer.Ordinal);
            var source = conversion.Log.Events.GetSource();
            source.Kernel.PerfInfoSample += (SampledProfileTraceData data) =>
            {
                var frames = new List<string>();
                for (var stack = data.CallStack(); stack != null; stack = stack.Caller)
                    frames.Add(name(stack.CodeAddress));
                frames.Reverse();
                string line = data.ProcessID + " " + (frames.Count == 0 ? "-" : string.Join(";", frames));
                stacks.TryGetValue(line, out int count);
                stacks[line] = count + 1;
            };
            source.Process();
            foreach (var stack in stacks)
                Console.WriteLine(stack.Value + " " + stack.Key);
        }

        public static string Address(TraceCodeAddress address) => address.Address.ToString("x");

        public static string Frame(TraceCodeAddress address)
        {
            TraceModuleFile module = address.ModuleFile;
            if (module == null || module.ImageBase == 0 || address.Address < module.ImageBase)
                return "0x" + address.Address.ToString("x");
            string path = module.FilePath ?? "?";
            return path.Substring(path.LastIndexOf('\\') + 1) + "+0x" + (address.Address - module.ImageBase).ToString("x");
        }
    }
}
