#!/usr/bin/env python3
"""Prints the events of traces in order of time, one a line: time in seconds, name, fields. The C interface through ctypes.

  LD_LIBRARY_PATH=build/release print_events.py TRACE...
"""
import ctypes as c
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from count_events import Event, ORDER_TIME, check, lib  # noqa: E402

LONGEST_NAME = 1024


class Decoded(c.Structure):
    """etwr_decoded, in the order of etwrelog.h."""
    _fields_ = [("struct_size", c.c_size_t), ("provider", c.c_char_p), ("name", c.c_char_p), ("task", c.c_char_p),
                ("opcode", c.c_char_p), ("message", c.c_char_p), ("origin", c.c_int), ("field_count", c.c_size_t),
                ("covered", c.c_size_t), ("truncated", c.c_int)]


lib.etwr_schemas_collect.restype = lib.etwr_decoder_new.restype = c.c_void_p
lib.etwr_event_name.restype = c.c_size_t
lib.etwr_decoded_json.restype = c.c_char_p
for name, arguments in {
        "etwr_schemas_collect": [c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p)],
        "etwr_decoder_new": [c.c_void_p, c.POINTER(c.c_void_p)],
        "etwr_event_name": [c.c_void_p, c.POINTER(Event), c.c_char_p, c.c_size_t],
        "etwr_decode": [c.c_void_p, c.POINTER(Event), c.POINTER(c.POINTER(Decoded)), c.POINTER(c.c_void_p)],
        "etwr_decoded_json": [c.c_void_p], "etwr_decoder_free": [c.c_void_p],
        "etwr_schemas_free": [c.c_void_p]}.items():
    getattr(lib, name).argtypes = arguments


def main(paths):
    trace, schemas, decoder, cursor, error = (c.c_void_p() for _ in range(5))
    event, decoded = c.POINTER(Event)(), c.POINTER(Decoded)()
    names = (c.c_char_p * len(paths))(*[os.fsencode(path) for path in paths])
    text = c.create_string_buffer(LONGEST_NAME)
    try:
        check(lib.etwr_trace_open(names, len(paths), None, None, c.byref(trace)))
        check(lib.etwr_schemas_collect(trace, None, c.byref(schemas)))
        check(lib.etwr_decoder_new(schemas, c.byref(decoder)))
        check(lib.etwr_events(trace, ORDER_TIME, None, None, c.byref(cursor)))
        while lib.etwr_next(cursor, c.byref(event), c.byref(error)):
            lib.etwr_event_name(schemas, event, text, LONGEST_NAME)
            known = lib.etwr_decode(decoder, event, c.byref(decoded), c.byref(error))
            check(error.value)
            print("%.7f %s %s" % (lib.etwr_seconds(trace, event.contents.time), text.value.decode(),
                                  lib.etwr_decoded_json(decoder).decode() if known else "-"))
        check(error.value)
    finally:
        lib.etwr_cursor_free(cursor)
        lib.etwr_decoder_free(decoder)
        lib.etwr_schemas_free(schemas)
        lib.etwr_trace_free(trace)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrokenPipeError:
        sys.stderr.close()
    except RuntimeError as failure:
        sys.exit("print_events.py: %s" % failure)
