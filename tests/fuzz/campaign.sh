#!/usr/bin/env bash
# Runs the fuzz targets under libFuzzer (preset `fuzz`: clang, address and undefined-behaviour sanitizers), one after the
# other on one core, and says how far each has come.
#
#   tests/fuzz/campaign.sh [OPTION...] [TARGET...]     all targets, or those named
#     --seconds N      time for each (60)
#     --runs N         executions for each, in place of a time
#     --corpus FOLDER  what was found before and goes on from there; counts of all campaigns (build/fuzz-corpus)
#     --bare BUILD     no engine: the programs of another build (build/release) damage their own seeds, much faster
#     --json FILE      the table as JSON, too
#     --report         only the table of what has been run so far
#     --build FOLDER   the build (build/fuzz), made where it is not there
#
# FOLDER/TARGET/inputs is the corpus, FOLDER/TARGET/found has inputs that crash, leak, or take longer than 100 ms of
# processor time, twice (slow-*): `build/fuzz/bin/fuzz_TARGET --only FILE` runs one. Inputs of `sequence` go on from each other: a
# find is a folder with those that led to it (life-*, slow-*), and `--only` takes that; crash-* is the last of them alone.
# Exit status: 0, 1 when there is something in `found`, 2 for wrong use.
set -euo pipefail
cd "$(dirname "$0")/../.."

TARGETS="config flight keys model_image policy reply request sequence task zap"
seconds=60 runs=0 corpus=build/fuzz-corpus json="" only_report="" build=build/fuzz bare=""
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds=$2; shift 2 ;;
    --runs) runs=$2; shift 2 ;;
    --corpus) corpus=$2; shift 2 ;;
    --json) json=$2; shift 2 ;;
    --bare) bare=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --report) only_report=1; shift ;;
    -*) sed -n '2,19s/^# \{0,1\}//p' "$0"; [ "$1" = --help ] || exit 2; exit ;;
    *) break ;;
  esac
done
wanted=${*:-$TARGETS}
for target in $wanted; do
  [[ " $TARGETS " = *" $target "* ]] || { echo "campaign: no target '$target'; there are: $TARGETS" >&2; exit 2; }
done
mkdir -p "$corpus"
corpus=$(realpath "$corpus")

# Threads of a sinewd run on when a leak is looked for: of that target it is looked for at the end alone.
options_of() {
  case "$1" in
    sequence) echo "-entropic=0 -detect_leaks=0 -max_len=600 -timeout=100" ;;
    model_image) echo "-max_len=65536" ;;
    *) echo "-max_len=4096" ;;
  esac
}

# keep_slow HOME PROGRAM: of the inputs that took too long in this run moves those to HOME/found that do so again, in a
# process that has run them before: on a busy machine, and at first, anything may be slow. What fails there is kept, too.
keep_slow() {
  local path again
  for path in "$1"/slow/slow-*; do
    [ -e "$path" ] || continue
    again=$(nice -n 15 "$2" --only "$path" "$path" 2>/dev/null | sed -n 's/^slowest: \([0-9.]*\) ms.*/\1/p' || true)
    awk -v ms="${again:-1000}" 'BEGIN { exit !(ms > 100) }' && mv "$path" "$1/found/"
  done
  rm -rf "$1/slow"
}

last_of() { sed -n "$1" "$2" | tail -1; }

slowest_of() { last_of 's/^slowest: \([0-9.]*\) ms.*/\1/p' "$1"; }

# keep_life HOME LOG: moves the inputs that led to the end of a run into HOME/found. A run that ends well leaves none.
keep_life() {
  local folder
  folder=$(last_of 's/^fuzz: inputs in //p' "$2")
  [ -d "$folder" ] || return 0
  cp -r "$folder" "$1/found/life-$(date +%s)"
  rm -r "$(dirname "$folder")"
}

# run_target NAME: one run of libFuzzer, after which a line of `runs.tsv` says: executions, seconds, edges, slowest [ms].
# What is slow is for timing.c to say: libFuzzer takes the time that others had the processor for that of the input.
run_target() {
  local name=$1 home=$corpus/$1 log=$corpus/$1/log bound=(-max_total_time="$seconds") began status=0
  mkdir -p "$home/inputs" "$home/found" "$home/slow"
  "$build/bin/fuzz_$name" --write "$home/seeds" >/dev/null
  [ "$runs" = 0 ] || bound=(-runs="$runs")
  began=$(date +%s.%N)
  # shellcheck disable=SC2046  # the options are split on purpose
  FUZZ_SLOW=$home/slow ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=16 \
    nice -n 15 "$build/bin/fuzz_${name}_engine" "${bound[@]}" $(options_of "$name") -rss_limit_mb=4096 -print_final_stats=1 \
    -report_slow_units=1000000 \
    -artifact_prefix="$home/found/" "$home/inputs" "$home/seeds" >"$log" 2>&1 || status=$?
  [ "$status" = 0 ] || echo "campaign: $name ended with status $status: $log" >&2
  keep_life "$home" "$log"
  keep_slow "$home" "$build/bin/fuzz_$name"
  printf '%s\t%s\t%s\t%s\n' "$(last_of 's/^stat::number_of_executed_units: *//p' "$log")" \
    "$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')" \
    "$(last_of 's/^#.* cov: \([0-9]*\) .*/\1/p' "$log")" "$(slowest_of "$log")" >>"$home/runs.tsv"
}

# bare_target NAME: its seeds damaged without an engine, from a seed that the log has; a line of `bare.tsv`:
# executions, seconds, slowest [ms].
bare_target() {
  local home=$corpus/$1 began status=0
  mkdir -p "$home/found" "$home/slow"
  began=$(date +%s.%N)
  FUZZ_SLOW=$home/slow nice -n 15 "$bare/bin/fuzz_$1" --seconds "$seconds" --seed "$(date +%s%N)" >"$home/bare.log" 2>&1 || status=$?
  if [ "$status" != 0 ]; then
    echo "campaign: $1 without an engine ended with status $status: $home/bare.log" >&2
    cp "$home/bare.log" "$home/found/crash-bare-$(date +%s)"
    keep_life "$home" "$home/bare.log"
  fi
  keep_slow "$home" "$bare/bin/fuzz_$1"
  printf '%s\t%s\t%s\n' "$(last_of 's/ inputs$//p' "$home/bare.log")" \
    "$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')" \
    "$(slowest_of "$home/bare.log")" >>"$home/bare.tsv"
}

if [ -n "$bare" ] && [ -z "$only_report" ]; then
  for target in $wanted; do bare_target "$target"; done
elif [ -z "$only_report" ]; then
  # shellcheck source=clients/setup.sh
  . clients/setup.sh
  sinew_install_packages clang libclang-rt-14-dev
  if [ ! -e "$build/build.ninja" ]; then cmake --preset fuzz >/dev/null; fi
  # shellcheck disable=SC2046  # a list of targets
  cmake --build "$build" --target $(for t in $wanted; do echo "fuzz_$t" "fuzz_${t}_engine"; done) -- --quiet
  for target in $wanted; do run_target "$target"; done
fi

python3 - "$corpus" "$json" $wanted <<'EOF'
import collections
import json
import pathlib
import sys

corpus, out, *targets = sys.argv[1:]
rows, bad = [], 0


def slowest(lines: list[list[str]], column: int) -> float:
    """Milliseconds that the slowest input took; runs of before that was measured have none."""
    return round(max((float(line[column] or 0) for line in lines if len(line) > column), default=0), 1)


for target in targets:
    home = pathlib.Path(corpus) / target
    runs, bare = ([line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
                  for path in (home / "runs.tsv", home / "bare.tsv"))
    if not runs and not bare:
        continue
    executions, seconds = sum(int(r[0] or 0) for r in runs), sum(float(r[1]) for r in runs)
    found = collections.Counter(path.name.split("-")[0] for path in (home / "found").iterdir())
    bad += sum(found.values())
    rows.append({
        "target": target, "executions": executions, "seconds": round(seconds, 1),
        "executions_per_second": round(executions / seconds) if seconds else 0,
        "slowest_ms": slowest(runs, 3), "bare": sum(int(r[0] or 0) for r in bare), "bare_slowest_ms": slowest(bare, 2),
        "edges": max((int(r[2] or 0) for r in runs), default=0),
        "inputs": sum(1 for _ in (home / "inputs").iterdir()) if runs else 0,
        "crashes": found["crash"] + found["oom"] + found["timeout"], "leaks": found["leak"], "slow": found["slow"],
    })
if out:
    pathlib.Path(out).write_text(json.dumps(rows, indent=1) + "\n")
names = list(rows[0]) if rows else []
table = [names, *([f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in names] for row in rows)]
for line in table:
    print("  ".join(cell.rjust(max(len(r[k]) for r in table)) if k else cell.ljust(12) for k, cell in enumerate(line)))
sys.exit(1 if bad else 0)
EOF
