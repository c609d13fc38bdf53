#!/usr/bin/env python3
"""DuckDB reads the streams of Arrow's C data interface in this process: events by kind, as it counts them, and as the query
command does.

  arrow_stream.py LIBDUCKDB EXAMPLES ETWRELOG TRACE      libetwrelog.so.1 where the loader finds it
"""
import ctypes as c
import subprocess
import sys

duckdb_path, examples, etwrelog, trace_path = sys.argv[1:]
sys.path.insert(0, examples)
from arrow_tables import Stream, check, lib  # noqa: E402

duckdb = c.CDLL(duckdb_path)
duckdb.duckdb_value_varchar.restype = c.c_void_p
duckdb.duckdb_row_count.restype = c.c_uint64
duckdb.duckdb_result_error.restype = c.c_char_p
database, connection = c.c_void_p(), c.c_void_p()
assert duckdb.duckdb_open(None, c.byref(database)) == 0
assert duckdb.duckdb_connect(database, c.byref(connection)) == 0


class Result(c.Structure):
    _fields_ = [("opaque", c.c_uint64 * 8)]


def query(sql, columns):
    result = Result()
    if duckdb.duckdb_query(connection, sql.encode(), c.byref(result)):
        sys.exit(duckdb.duckdb_result_error(c.byref(result)).decode())
    cell = lambda row, i: duckdb.duckdb_value_varchar(c.byref(result), c.c_uint64(i), c.c_uint64(row))
    return [tuple(c.string_at(cell(row, i)).decode() for i in range(columns))
            for row in range(duckdb.duckdb_row_count(c.byref(result)))]


def take(stream, table):
    assert duckdb.duckdb_arrow_scan(connection, (table + "_view").encode(), c.c_void_p(c.addressof(stream))) == 0
    query("create table %s as from %s_view" % (table, table), 0)


COUNTS = "select provider_id, event, count(*), min(timestamp), max(cpu) from %s group by 1, 2 order by 1, 2"
trace, tables = c.c_void_p(), c.c_void_p()
check(lib.etwr_trace_open((c.c_char_p * 1)(trace_path.encode()), 1, None, None, c.byref(trace)))
check(lib.etwr_tables_open(trace, None, None, c.byref(tables)))
stream = Stream()
check(lib.etwr_events_stream(trace, None, None, stream))
take(stream, "all_events")
kinds = []
for i in range(lib.etwr_table_count(tables)):
    stream = Stream()
    check(lib.etwr_table_stream(tables, i, stream))
    take(stream, "kind_%d" % i)
    kinds += query(COUNTS % ("kind_%d" % i), 5)
lib.etwr_tables_free(tables)
lib.etwr_trace_free(trace)
found = query(COUNTS % "all_events", 5)
asked = subprocess.run([etwrelog, "query", trace_path, COUNTS % "events"], capture_output=True, text=True, check=True).stdout
expected = [tuple(line.split("\t")) for line in asked.splitlines()[1:]]
assert found == expected, (found, expected)
# Several versions of a kind have a table each: added up.
counts = {}
for provider, event, count, _, _ in kinds:
    counts[provider, event] = counts.get((provider, event), 0) + int(count)
assert counts == {(row[0], row[1]): int(row[2]) for row in expected}
print("DuckDB: %d kinds of events by Arrow's C data interface" % len(found))
