#!/usr/bin/env python3
"""Runs a fuzz target for a fixed number of runs and compares what it reached with what it has to reach.

  run.py FLOORS NAME SEEDS TARGET ARGUMENTS...

FLOORS: lines "NAME EDGES". SEEDS: a folder that stays as it is: what the target finds goes elsewhere, so that a run
does not count what the run before it found. Prints the coverage; exit status 1 if the target fails or covers less than
its floor."""
import re, subprocess, sys, tempfile

floors = dict(line.split() for line in open(sys.argv[1]) if line.strip() and not line.startswith('#'))
name, seeds, command = sys.argv[2], sys.argv[3], sys.argv[4:]
with tempfile.TemporaryDirectory() as found_now:
    run = subprocess.run(command + [found_now, seeds], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
text = run.stderr.decode('utf-8', 'replace')
found = re.findall(r'cov: (\d+)', text)
runs = re.findall(r'Done (\d+) runs in (\d+) second', text)
if run.returncode != 0 or not found:
    sys.stderr.write(text[-20000:])
    sys.exit(1)
covered, floor = int(found[-1]), int(floors.get(name, 0))
print('%s: %d edges covered, at least %d wanted; %s runs in %s s' % (name, covered, floor, *(runs[-1] if runs else ('?', '?'))))
sys.exit(0 if covered >= floor else 1)
