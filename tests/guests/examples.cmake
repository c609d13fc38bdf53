# Runs the C and Python examples on a generated trace: those that count must say the same, those that cut and print what
# the tool says; and a file that is no trace must give an error that names it.
set(PYTHON_EXAMPLE ${EXAMPLES}/count_events.py)
set(ENV{PYTHONDONTWRITEBYTECODE} 1)
file(MAKE_DIRECTORY ${WORK})
set(ENV{LD_LIBRARY_PATH} ${LIBRARIES})
execute_process(COMMAND ${ETWGEN} --profile medium --size 2M -o ${WORK}/example.etl --force RESULT_VARIABLE status
  OUTPUT_QUIET ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "etwgen: ${errors}")
endif()
execute_process(COMMAND ${C_EXAMPLE} ${WORK}/example.etl RESULT_VARIABLE status OUTPUT_VARIABLE from_c)
if(NOT status EQUAL 0 OR NOT from_c MATCHES "last event at [0-9.]*[1-9]")
  message(FATAL_ERROR "C example: ${status} ${from_c}")
endif()
execute_process(COMMAND ${PYTHON} ${PYTHON_EXAMPLE} ${WORK}/example.etl RESULT_VARIABLE status OUTPUT_VARIABLE from_python)
if(NOT status EQUAL 0 OR NOT from_python STREQUAL from_c)
  message(FATAL_ERROR "Python example: ${status} ${from_python}\nC example: ${from_c}")
endif()
file(WRITE ${WORK}/no-trace.etl "this is no trace")
foreach(example ${C_EXAMPLE} "${PYTHON};${PYTHON_EXAMPLE}")
  execute_process(COMMAND ${example} ${WORK}/no-trace.etl RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
  if(NOT status EQUAL 1 OR NOT errors MATCHES "no-trace.etl")
    message(FATAL_ERROR "expected an error that names the file, found ${status}: ${errors}")
  endif()
endforeach()

# Cutting: the same bytes as the tool's, and the archive gives them back.
file(REMOVE ${WORK}/cut.etl ${WORK}/cut.etlz ${WORK}/tool.etl)
execute_process(COMMAND ${TOOL} info --json ${WORK}/example.etl OUTPUT_VARIABLE info)
string(JSON process GET "${info}" processes 1 pid)
execute_process(COMMAND ${CUT_EXAMPLE} ${WORK}/example.etl ${process} ${WORK}/cut.etl RESULT_VARIABLE status
  OUTPUT_VARIABLE from_cut ERROR_VARIABLE errors)
if(NOT status EQUAL 0 OR NOT from_cut MATCHES "process ${process} .*Windows Kernel/.*\n  ProcessId = ${process}\n.*[1-9][0-9]* of [1-9]")
  message(FATAL_ERROR "cut_trace: ${status} ${errors}${from_cut}")
endif()
execute_process(COMMAND ${TOOL} relog ${WORK}/example.etl -p ${process} -o ${WORK}/tool.etl -q RESULT_VARIABLE status)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${WORK}/cut.etl ${WORK}/tool.etl RESULT_VARIABLE differ)
execute_process(COMMAND ${TOOL} verify ${WORK}/cut.etlz -q RESULT_VARIABLE verified)
if(NOT "${status}${differ}${verified}" STREQUAL "000")
  message(FATAL_ERROR "cut_trace against the tool: relog ${status}, bytes differ ${differ}, verify ${verified}")
endif()

# Printing: the same fields as the export's, event by event.
execute_process(COMMAND ${PYTHON} ${EXAMPLES}/print_events.py ${WORK}/cut.etl RESULT_VARIABLE status
  OUTPUT_FILE ${WORK}/printed.txt ERROR_VARIABLE errors)
execute_process(COMMAND ${TOOL} export ${WORK}/cut.etl -o ${WORK}/exported.jsonl --force ERROR_QUIET)
execute_process(COMMAND ${PYTHON} -c "
import json, sys
printed, exported = open(sys.argv[1]).readlines(), open(sys.argv[2]).readlines()
assert len(printed) == len(exported) > 100, (len(printed), len(exported))
for mine, line in zip(printed, exported):
    event = json.loads(line)
    fields = mine.split(' {', 1)[1] if ' {' in mine else None
    assert (json.loads('{' + fields) if fields else None) == event['fields'], (mine, line)
" ${WORK}/printed.txt ${WORK}/exported.jsonl RESULT_VARIABLE differ ERROR_VARIABLE difference)
if(NOT status EQUAL 0 OR NOT differ EQUAL 0)
  message(FATAL_ERROR "print_events.py: ${status} ${errors}\n${difference}")
endif()

# Tables: the list adds up to the events that were counted, and the rows are the export's. By ctypes, and by pyarrow
# where that is installed.
set(TABLES_EXAMPLE ${PYTHON} ${EXAMPLES}/arrow_tables.py ${WORK}/cut.etl)
execute_process(COMMAND ${TABLES_EXAMPLE} RESULT_VARIABLE status OUTPUT_FILE ${WORK}/tables.txt ERROR_VARIABLE errors)
execute_process(COMMAND ${TABLES_EXAMPLE} events RESULT_VARIABLE also OUTPUT_FILE ${WORK}/rows.jsonl ERROR_VARIABLE errors)
execute_process(COMMAND ${TABLES_EXAMPLE} Thread_DCStart RESULT_VARIABLE too OUTPUT_FILE ${WORK}/threads.jsonl
  ERROR_VARIABLE errors)
execute_process(COMMAND ${PYTHON} -c "
import json, sys
tables, rows, threads, exported = ([line for line in open(name)] for name in sys.argv[1:])
counts = dict(line.split() for line in tables)
exported = [json.loads(line) for line in exported]
assert sum(map(int, counts.values())) == len(rows) == len(exported), (counts, len(rows), len(exported))
for row, event in zip(map(json.loads, rows), exported):
    assert json.loads(row['fields'] or 'null') == event['fields'], (row, event)
    for name in ('timestamp', 'cpu', 'process_id', 'process', 'provider', 'event', 'keyword'):
        assert row[name] == event[name], (name, row, event)
wanted = [event for event in exported if event['event'] == 'Thread/DCStart']
assert len(threads) == len(wanted) > 20, (len(threads), len(wanted))
for row, event in zip(map(json.loads, threads), wanted):
    for name, value in event['fields'].items():
        assert row[name] == value, (name, row, event)
" ${WORK}/tables.txt ${WORK}/rows.jsonl ${WORK}/threads.jsonl ${WORK}/exported.jsonl RESULT_VARIABLE differ
  ERROR_VARIABLE difference)
if(NOT "${status}${also}${too}${differ}" STREQUAL "0000")
  message(FATAL_ERROR "arrow_tables.py: ${status} ${also} ${too} ${errors}\n${difference}")
endif()
