#!/usr/bin/env bash
# One huge trace over many nodes: an array job packs its parts, a second job joins them when all are there.
#   tools/slurm/one_trace.sh TRACE ARCHIVE PARTS [SBATCH-OPTIONS...]
set -euo pipefail
[ $# -ge 3 ] || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
trace=$(realpath "$1") archive=$(realpath -m "$2") parts=$3
shift 3
tool=${ETWRELOG:-etwrelog}
printf -v pack '%q ' "$tool" pack "$trace" --part auto --force --quiet
printf -v join '%q ' "$tool" join
printf -v out '%q' "$archive"
array=$(sbatch --parsable --requeue --open-mode=append --array=0-$((parts - 1)) "$@" \
  --wrap "$pack -o $out.part-\$SLURM_ARRAY_TASK_ID")
sbatch --parsable --dependency=afterok:"$array" "$@" \
  --wrap "set -e; $join $out.part-* -o $out --quiet; rm -f $out.part-*"
