#!/usr/bin/env python3
"""Events as tables, by the C interface and Arrow's C data interface: lists the kinds of events that traces hold, or prints
one of them (or "events": all) as JSON lines.

  LD_LIBRARY_PATH=build/release arrow_tables.py TRACE [TABLE]

With pyarrow, a stream is one line: pyarrow.RecordBatchReader._import_from_c(address), and polars.from_arrow() or DuckDB take
it from there. Without it the structures are read here by ctypes, which is all that the interface asks for.
"""
import contextlib
import ctypes as c
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from count_events import check, lib  # noqa: E402

try:
    import pyarrow
except ImportError:
    pyarrow = None


class Schema(c.Structure):
    """ArrowSchema, in the order of arrow_abi.h."""


class Array(c.Structure):
    """ArrowArray."""


class Stream(c.Structure):
    """ArrowArrayStream."""


Schema._fields_ = [("format", c.c_char_p), ("name", c.c_char_p), ("metadata", c.c_char_p), ("flags", c.c_int64),
                   ("n_children", c.c_int64), ("children", c.POINTER(c.POINTER(Schema))),
                   ("dictionary", c.POINTER(Schema)), ("release", c.CFUNCTYPE(None, c.POINTER(Schema))),
                   ("private_data", c.c_void_p)]
Array._fields_ = [("length", c.c_int64), ("null_count", c.c_int64), ("offset", c.c_int64), ("n_buffers", c.c_int64),
                  ("n_children", c.c_int64), ("buffers", c.POINTER(c.c_void_p)),
                  ("children", c.POINTER(c.POINTER(Array))), ("dictionary", c.POINTER(Array)),
                  ("release", c.CFUNCTYPE(None, c.POINTER(Array))), ("private_data", c.c_void_p)]
Stream._fields_ = [("get_schema", c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Schema))),
                   ("get_next", c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Array))),
                   ("get_last_error", c.CFUNCTYPE(c.c_char_p, c.POINTER(Stream))),
                   ("release", c.CFUNCTYPE(None, c.POINTER(Stream))), ("private_data", c.c_void_p)]


class Table(c.Structure):
    """etwr_table, in the order of etwrelog.h."""
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("events", c.c_uint64), ("provider", c.c_uint8 * 16),
                ("id", c.c_uint16), ("version", c.c_uint16), ("opcode", c.c_uint8)]


lib.etwr_tables_open.restype = lib.etwr_table_stream.restype = lib.etwr_events_stream.restype = c.c_void_p
lib.etwr_table_count.restype = c.c_size_t
lib.etwr_table_at.restype = c.POINTER(Table)
for name, arguments in {
        "etwr_events_stream": [c.c_void_p, c.c_void_p, c.c_void_p, c.POINTER(Stream)],
        "etwr_tables_open": [c.c_void_p, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p)],
        "etwr_table_count": [c.c_void_p], "etwr_table_at": [c.c_void_p, c.c_size_t],
        "etwr_table_stream": [c.c_void_p, c.c_size_t, c.POINTER(Stream)], "etwr_tables_free": [c.c_void_p]}.items():
    getattr(lib, name).argtypes = arguments

NUMBERS = {b"l": c.c_int64, b"L": c.c_uint64, b"g": c.c_double, b"i": c.c_int32, b"tsn:UTC": c.c_int64}


def column(layout, array):
    """The values of a column as a list."""
    rows, buffers = array.length, array.buffers

    def bit(buffer, row):
        return c.cast(buffers[buffer], c.POINTER(c.c_uint8))[row // 8] >> (row % 8) & 1

    if layout.format == b"u":
        ends, texts = c.cast(buffers[1], c.POINTER(c.c_int32)), buffers[2]
        values = [c.string_at(texts + ends[i], ends[i + 1] - ends[i]).decode() for i in range(rows)]
    elif layout.format == b"b":
        values = [bool(bit(1, i)) for i in range(rows)]
    else:
        values = c.cast(buffers[1], c.POINTER(NUMBERS[layout.format]))[:rows]
    if layout.dictionary:
        texts = column(layout.dictionary.contents, array.dictionary.contents)
        values = [texts[place] if texts else None for place in values]
    if buffers[0]:
        values = [value if bit(0, i) else None for i, value in enumerate(values)]
    return values


def rows_by_ctypes(stream):
    def call(function, out):
        if function(stream, out):
            raise RuntimeError(stream.get_last_error(stream).decode())

    layout, batch = Schema(), Array()
    call(stream.get_schema, layout)
    names = [layout.children[i].contents.name.decode() for i in range(layout.n_children)]
    try:
        while True:
            call(stream.get_next, batch)
            if not batch.release:
                return
            try:
                columns = [column(layout.children[i].contents, batch.children[i].contents) for i in range(len(names))]
            finally:
                batch.release(batch)
            for row in zip(*columns):
                yield dict(zip(names, row))
    finally:
        layout.release(layout)
        stream.release(stream)


def rows_by_pyarrow(stream):
    reader = pyarrow.RecordBatchReader._import_from_c(c.addressof(stream))
    for batch in reader:  # nanoseconds as a number, for the json module
        table = pyarrow.Table.from_batches([batch])
        yield from table.set_column(0, "time", table.column("time").cast("int64")).to_pylist()


def main(path, wanted=None):
    trace, tables, stream = c.c_void_p(), c.c_void_p(), Stream()
    try:
        check(lib.etwr_trace_open((c.c_char_p * 1)(os.fsencode(path)), 1, None, None, c.byref(trace)))
        if wanted == "events":
            check(lib.etwr_events_stream(trace, None, None, stream))
        else:
            check(lib.etwr_tables_open(trace, None, None, c.byref(tables)))
            found = [lib.etwr_table_at(tables, i).contents for i in range(lib.etwr_table_count(tables))]
            if wanted is None:
                for table in found:
                    print(table.name.decode(), table.events)
                return
            names = [table.name.decode() for table in found]
            if wanted not in names:
                raise RuntimeError("%s has no table %s" % (path, wanted))
            check(lib.etwr_table_stream(tables, names.index(wanted), stream))
        with contextlib.closing((rows_by_pyarrow if pyarrow else rows_by_ctypes)(stream)) as rows:
            for row in rows:
                print(json.dumps(row))
    finally:
        lib.etwr_tables_free(tables)
        lib.etwr_trace_free(trace)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: arrow_tables.py TRACE [TABLE]")
    try:
        main(*sys.argv[1:])
    except BrokenPipeError:
        sys.stderr.close()
    except RuntimeError as failure:
        sys.exit("arrow_tables.py: %s" % failure)
