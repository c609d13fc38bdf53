#!/usr/bin/env bash
# One huge trace over many nodes: an array job packs its parts, a second job joins them when all are there.
#   tools/slurm/one_trace.sh TRACE ARCHIVE PARTS [SBATCH-OPTIONS...]
# Prints the number of the second job. The parts are in a folder of their own beside the archive, which goes when they
# are joined. If a job fails it stays, with what there is, and can be deleted: a new run makes its own.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
# Words as sh takes them, which runs what is wrapped: bash's own %q has a form that others do not know.
quoted() {
  local quote="'" inside="'\\''" word all=()
  for word in "$@"; do all+=("'${word//$quote/$inside}'"); done
  printf '%s' "${all[*]}"
}
die() { echo "one_trace.sh: $*" >&2; exit 1; }
trace=$(realpath "$1") archive=$(realpath -m "$2") parts=$3
shift 3
[[ $parts =~ ^[1-9][0-9]*$ ]] || die "$parts is no number of parts"
if [ ! -f "$trace" ] || [ ! -r "$trace" ]; then die "$trace cannot be read"; fi
if [ -e "$archive" ] || [ -L "$archive" ]; then die "$archive exists already"; fi
folder=$(mktemp -d "$archive.parts-XXXXXX")
tool=${ETWRELOG:-etwrelog}
out=$(quoted "$folder/")
# In a requeued task, --force replaces what it had written before.
pack=$(quoted "$tool" pack "$trace" --part auto --force --quiet)
array=$(sbatch --requeue --open-mode=append "$@" --parsable --array=0-$((parts - 1)) \
  --wrap "ETWRELOG_SHARDS=$parts $pack -o $out\$SLURM_ARRAY_TASK_ID") || { rmdir "$folder"; exit 1; }
array=${array%%;*}
# These and no others, whatever else is there.
all=()
for ((i = 0; i < parts; i++)); do all+=("$folder/$i"); done
join=$(quoted "$tool" join "${all[@]}" -o "$archive" --quiet)
kept=$(quoted "the parts are still in $folder")
remove=$(quoted rm -rf "$folder")
# A part that fails takes the second job with it, which would wait for ever.
sbatch "$@" --parsable --dependency=afterok:"$array" --kill-on-invalid-dep=yes \
  --wrap "$join || { echo $kept >&2; exit 1; }; $remove" || { scancel "$array"; rm -rf "$folder"; exit 1; }
echo "one_trace.sh: the parts go into $folder until they are joined" >&2
