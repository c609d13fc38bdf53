#!/usr/bin/env python3
"""Counts the events of traces, read as one and in order of time, by process: the C interface through ctypes.

  LD_LIBRARY_PATH=build/release count_events.py TRACE...
"""
import collections
import ctypes as c
import os
import sys


class Event(c.Structure):
    """etwr_event, in the order of etwrelog.h."""
    _fields_ = [("struct_size", c.c_size_t), ("time", c.c_int64), ("provider", c.c_uint8 * 16),
                ("activity", c.c_uint8 * 16), ("keyword", c.c_uint64), ("process_id", c.c_uint32),
                ("thread_id", c.c_uint32), ("id", c.c_uint16), ("version", c.c_uint16), ("task", c.c_uint16),
                ("processor", c.c_uint16), ("opcode", c.c_uint8), ("level", c.c_uint8), ("channel", c.c_uint8),
                ("pointer_size", c.c_uint8), ("kind", c.c_uint8), ("header_type", c.c_uint8),
                ("source", c.c_uint32), ("buffer", c.c_uint32), ("offset", c.c_uint32), ("machine", c.c_uint32),
                ("bytes", c.c_void_p), ("size", c.c_size_t), ("payload", c.c_void_p), ("payload_size", c.c_size_t)]


lib = c.CDLL("libetwrelog.so.1")
lib.etwr_trace_open.restype = lib.etwr_events.restype = c.c_void_p
lib.etwr_error_message.restype = c.c_char_p
lib.etwr_seconds.restype = c.c_double
for name, arguments in {
        "etwr_trace_open": [c.POINTER(c.c_char_p), c.c_size_t, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p)],
        "etwr_events": [c.c_void_p, c.c_int, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p)],
        "etwr_next": [c.c_void_p, c.POINTER(c.POINTER(Event)), c.POINTER(c.c_void_p)],
        "etwr_seconds": [c.c_void_p, c.c_int64],
        "etwr_error_message": [c.c_void_p], "etwr_error_free": [c.c_void_p],
        "etwr_cursor_free": [c.c_void_p], "etwr_trace_free": [c.c_void_p]}.items():
    getattr(lib, name).argtypes = arguments

ORDER_TIME = 1
UNKNOWN_ID = 0xFFFFFFFF


def check(error):
    if error:
        message = lib.etwr_error_message(error).decode()
        lib.etwr_error_free(error)
        raise RuntimeError(message)


def main(paths):
    trace, cursor, error = c.c_void_p(), c.c_void_p(), c.c_void_p()
    event = c.POINTER(Event)()
    names = (c.c_char_p * len(paths))(*[os.fsencode(path) for path in paths])
    counts, last = collections.Counter(), 0.0
    check(lib.etwr_trace_open(names, len(paths), None, None, c.byref(trace)))
    try:
        check(lib.etwr_events(trace, ORDER_TIME, None, None, c.byref(cursor)))
        while lib.etwr_next(cursor, c.byref(event), c.byref(error)):
            counts[event.contents.process_id] += 1
            last = event.contents.time
        check(error.value)
        for process, events in sorted(counts.items()):
            print(-1 if process == UNKNOWN_ID else process, events)
        print("last event at %.6f s" % lib.etwr_seconds(trace, last))
    finally:
        lib.etwr_cursor_free(cursor)
        lib.etwr_trace_free(trace)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RuntimeError as failure:
        sys.exit("count_events.py: %s" % failure)
