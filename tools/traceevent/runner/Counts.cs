using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;

namespace Etwrelog.TraceEventRunner
{
    internal static class Counts
    {
        // Every event that ProcessTrace delivers, by what its record says, before any parser.
        public static void Print(string trace)
        {
            var counts = new SortedDictionary<string, (long events, long bytes)>(StringComparer.Ordinal);
            using (var source = new ETWTraceEventSource(trace, TraceEventSourceType.FileOnly))
            {
                source.AllEvents += data =>
                {
                    string kind = data.IsClassicProvider
                        ? "classic:" + data.TaskGuid + "/" + (int)data.Opcode + "/" + data.Version
                        : "event:" + data.ProviderGuid + "/" + (int)data.ID + "/" + data.Version;
                    counts.TryGetValue(kind, out var sum);
                    counts[kind] = (sum.events + 1, sum.bytes + data.EventDataLength);
                };
                source.Process();
                Console.WriteLine("lost " + source.EventsLost + " processors " + source.NumberOfProcessors +
                                  " start " + source.SessionStartTime.ToUniversalTime().ToString("o"));
            }
            foreach (var kind in counts)
                Console.WriteLine(kind.Key + " " + kind.Value.events + " " + kind.Value.bytes);
            Console.WriteLine("total " + counts.Values.Sum(sum => sum.events));
        }

        public static void PrintTimes(string trace, string etlx)
        {
            long events = 0;
            var watch = Stopwatch.StartNew();
            using (var source = new ETWTraceEventSource(trace, TraceEventSourceType.FileOnly))
            {
                source.AllEvents += data => ++events;
                source.Process();
            }
            Console.WriteLine("ETWTraceEventSource: " + events + " events, " + watch.Elapsed.TotalSeconds.ToString("f3") + " s");
            watch.Restart();
            using (var conversion = new Conversion(trace, etlx))
                Console.WriteLine("TraceLog: " + conversion.Log.EventCount + " events, " + watch.Elapsed.TotalSeconds.ToString("f3") + " s");
        }
    }
}
