using System;
using System.IO;
using Microsoft.Diagnostics.Tracing.Etlx;

namespace Etwrelog.TraceEventRunner
{
    // A trace converted to TraceLog's own format, in a file that is gone afterwards unless its name was given.
    internal sealed class Conversion : IDisposable
    {
        public readonly TraceLog Log;
        private readonly string temporary;

        public Conversion(string trace, string etlx)
        {
            if (etlx == null)
                etlx = temporary = Path.Combine(Path.GetTempPath(), "etwrelog-" + Guid.NewGuid().ToString("n") + ".etlx");
            Log = new TraceLog(TraceLog.CreateFromEventTraceLogFile(trace, etlx));
        }

        public void Dispose()
        {
            Log.Dispose();
            if (temporary != null)
                File.Delete(temporary);
        }
    }
}
