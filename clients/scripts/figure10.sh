#!/usr/bin/env bash
# Compares gradients with sampling as figure 10 of the paper does (A. Paulus et al., arXiv 2506.14186): the cost over time of
# hand_balls and bionic_tennis, five seeds each, at equal plan steps and at equal computing time (of the processor).
#
#   clients/scripts/figure10.sh [--quick] [--seeds N] [--only PLANNER,...] [--tasks TASK,...] [--steps | --time] [--report]
#                               [FOLDER]
#
# FOLDER (default: sinew-figure10) gets a file of JSON lines a task, a picture a task and table.md. A run that was broken off
# goes on after the lines that it has, so the parts may be run one by one: --only adam,adam+cfd first, say. --steps: at equal
# plan steps alone; --time: at equal time alone; --report: table and pictures of what there is. Planners: adam, adam+cfd,
# sampling-64, -256, -1024, -2048, hybrid, ilqg. At equal time sampling has as many candidates as fit, once. Hours on two idle
# cores; --quick: one seed, 0.1 s, two planners.
#
# Needs a release build (cmake --preset release && cmake --build build/release; or SINEW_BENCH names sinew-bench), the models of
# MyoSuite (clients/setup.sh), and gnuplot for the pictures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage() { sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
bench=${SINEW_BENCH:-build/release/bin/sinew-bench} folder=sinew-figure10 seeds=5 only="" some="" equal="" report="" quick=0
while [ $# -gt 0 ]; do
  case "$1" in
  --help | -h) usage; exit ;;
  --quick) quick=1 ;;
  --seeds) seeds=${2:?--seeds needs a number}; shift ;;
  --only) only=${2:?--only needs planners}; shift ;;
  --tasks) some=${2:?--tasks needs names}; shift ;;
  --steps) equal=steps ;;
  --time) equal=time ;;
  --report) report=--report ;;
  -*) echo "figure10.sh: $1 is no option: --help lists them" >&2; exit 2 ;;
  *) folder=$1 ;;
  esac
  shift
done
[ -x "$bench" ] || { echo "figure10.sh: $bench is missing: cmake --preset release && cmake --build build/release" >&2; exit 1; }
tasks="hand_balls 2
bionic_tennis 1.5"
for task in ${some//,/ }; do
  grep -q "^$task " <<<"$tasks" || { echo "figure10.sh: --tasks: $task is none of $(cut -d ' ' -f 1 <<<"$tasks" | xargs)" >&2; exit 2; }
done

mkdir -p "$folder"
: >"$folder/table.md"
while read -r task seconds; do
  [ -z "$some" ] || [[ ,$some, == *,$task,* ]] || continue
  if [ "$quick" = 1 ]; then seconds=0.1 seeds=1 only=${only:-adam,sampling-64} equal=steps; fi
  "$bench" compare --task "$task" --seconds "$seconds" --seeds "$seeds" ${only:+--only "$only"} ${equal:+--equal "$equal"} \
    --processor $report --threads 1 --markdown --out "$folder/$task.jsonl" --picture "$folder/$task.png" |
    if [ -s "$folder/table.md" ]; then tail -n +3; else cat; fi >>"$folder/table.md"
done <<<"$tasks"
cat "$folder/table.md"
