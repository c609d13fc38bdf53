using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using Microsoft.Diagnostics.Tracing;

namespace Etwrelog.TraceEventRunner
{
    // The text of PerfView's baselines: the first five events of every kind in order of time, then the counts of all kinds.
    internal static class Baseline
    {
        private const int EventsOfAKind = 5;
        private const int LongestValue = 20;

        public static void Print(string trace, string etlx)
        {
            using var conversion = new Conversion(trace, etlx);
            using var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false));
            var counts = new SortedDictionary<string, int>(StringComparer.Ordinal);
            var source = conversion.Log.Events.GetSource();
            source.AllEvents += data =>
            {
                if (!IsInBaselines(data))
                    return;
                string name = data.ProviderName + "/" + data.EventName;
                counts.TryGetValue(name, out int count);
                counts[name] = ++count;
                if (count <= EventsOfAKind)
                    output.WriteLine(Line(data));
            };
            source.Process();
            foreach (var kind in counts)
                output.WriteLine("COUNT " + kind.Key + ":" + kind.Value);
        }

        // Kinds whose decoding depends on what is registered on the machine are not in the baselines.
        private static bool IsInBaselines(TraceEvent data)
        {
            switch (data.ProviderName)
            {
                case "DotNet":
                    return false;
                case "Microsoft-Windows-DotNETRuntimePrivate":
                    return data.GetType().Name != "DynamicTraceEventData" && !data.EventName.StartsWith("EventID");
                case "MSNT_SystemTrace":
                    return data.EventName == "SystemConfig/Platform" || data.EventName == "Image/KernelBase";
                default:
                    return true;
            }
        }

        private static string Line(TraceEvent data)
        {
            var line = new StringBuilder("EVENT ");
            line.Append(Milliseconds(data.TimeStampRelativeMSec)).Append(": ");
            line.Append(data.ProviderName).Append('/').Append(data.EventName).Append(' ');
            Append(line, "PID", data.ProcessID.ToString());
            Append(line, "TID", data.ThreadID.ToString());
            Append(line, "PName", data.ProcessName);
            Append(line, "ProceNum", data.ProcessorNumber.ToString());
            Append(line, "DataLen", data.EventDataLength.ToString());
            string[] names = data.PayloadNames;
            for (int i = 0; i < names.Length; ++i)
                Append(line, names[i], Cut(Value(data, i)));
            if (data.ContainerID != null)
                Append(line, "ContainerID", data.ContainerID);
            return line.ToString();
        }

        private static void Append(StringBuilder line, string name, string value)
        {
            line.Append(name).Append('=').Append(value).Append("; ");
        }

        private static string Value(TraceEvent data, int index)
        {
            if (data.PayloadValue(index) is DateTime time)
                return time.ToUniversalTime().ToString("yy/MM/dd HH:mm:ss.ffffff");
            if (data.PayloadValue(index) is double number)
                return Milliseconds(number);
            string text = data.PayloadString(index);
            if (text.Contains("EXCEPTION_DURING_VALUE_LOOKUP"))
                throw new InvalidDataException("payload of " + data.EventName + ": " + text);
            return text;
        }

        // The baselines were printed by the .NET Framework, which rounds to 15 digits before it rounds to three decimals;
        // today's .NET rounds the exact binary value. A conversion to decimal rounds to 15 digits, too.
        private static string Milliseconds(double value)
        {
            return Math.Round((decimal)value, 3, MidpointRounding.AwayFromZero).ToString("n3");
        }

        private static string Cut(string value)
        {
            if (value.Length > LongestValue)
                value = value.Substring(0, LongestValue) + "...";
            return value.Replace("\n", "\\n").Replace("\r", "\\r");
        }
    }
}
