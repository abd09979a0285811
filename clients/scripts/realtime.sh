#!/usr/bin/env bash
# What holds in real time on this machine: bodies in MuJoCo under the plans of a sinewd of their own, with the contacts of
# the task and with those of the model's file, as a table. A cell that misses its goal at real time is tried again at
# slower speeds of the world. It wants a quiet machine: what else runs here takes the time of plans.
#
#   clients/scripts/realtime.sh BUILD [OPTION...]        BUILD has bin/sinewd, bin/sinew-plant, bin/sinewctl
#     --seeds N          seeds 1 to N of each cell (8)
#     --speeds "1 0.5"   speeds of the world, the first for all cells ("1 0.5 0.25")
#     --tasks "..."      of the table below (all)
#     --mode MODE        realtime or continuous (realtime)
#     --deadline S       time for a plan on the body's clock (each task's own: 0.025 or 0.04)
#     --latency S|met    that the planner is told (met: it is measured)
#     --json FILE        the reports of all runs as lines
#     --set NAME=VALUE   setting of the planner for all cells; may be repeated
#
# Takes some 4 minutes where every goal is met, at most 12. Ends with 0 whatever the table says, 1 when something failed.
set -euo pipefail
# shellcheck source=clients/scripts/own_daemon.sh
. "$(dirname "$0")/own_daemon.sh"
shift
seeds=8 speeds="1 0.5 0.25" tasks="" mode=realtime deadline="" latency=met json="" settings=()
while [ $# -gt 0 ]; do
  case $1 in --help | -h) usage; exit ;; esac
  [ $# -gt 1 ] || { echo "realtime.sh: $1 needs a value" >&2; exit 1; }
  case $1 in
    --seeds) seeds=$2 ;;
    --speeds) speeds=$2 ;;
    --tasks) tasks=$2 ;;
    --mode) mode=$2 ;;
    --deadline) deadline=$2 ;;
    --latency) latency=$2 ;;
    --json) json=$(realpath -m "$2") ;;
    --set) settings+=(--set "$2") ;;
    *) echo "realtime.sh: no option $1" >&2; exit 1 ;;
  esac
  shift 2
done

# Task, seconds of motion, time for a plan [s], the measure's bound [mm, mrad] (0: the task's own; for the pose 0.35 rad a
# joint, root mean square of 20), seeds that are wanted of 8 with the task's contacts (0: it names none), and with those
# of the file; settings of the planner.
cells="
hand_balls_realtime 4 0.025 0 7 5
ball_catch_realtime 2 0.025 0 7 5
hand_pose 2 0.04 1565 0 7 adam_iterations=6 adam_moments=kept adam_beta1=0.8 adam_rate=0.02 adam_clip_norm=0.01
"
for task in $tasks; do
  grep -q "^$task " <<<"$cells" || { echo "realtime.sh: --tasks: $task is none of $(cut -d ' ' -f 1 <<<"$cells" | xargs)" >&2; exit 1; }
done

endpoint=ipc://$work/sinewd.sock
"$BUILD/bin/sinewd" --backend=cpu --endpoint="$endpoint" --tasks="$SOURCE/planner/tasks" 2>"$work/log" &
daemon=$!
"$BUILD/bin/sinewctl" --endpoint "$endpoint" --timeout 20 health >/dev/null  # waits until the daemon listens

# run TASK SECONDS DEADLINE CONTACTS SPEED SEED SETTING...: the report as a line
run() {
  local set=() setting
  for setting in "${@:7}"; do set+=(--set "$setting"); done
  "$BUILD/bin/sinew-plant" --endpoint "$endpoint" --task "$1" --seconds "$2" --contacts "$4" --speed "$5" --seed "$6" \
    --mode "$mode" --deadline "${deadline:-$3}" --latency "$latency" --timestep 0.0025 --quiet --json "${set[@]}" "${settings[@]}" \
    >>"$work/runs" || { tail -3 "$work/log" >&2; exit 1; }
}

# Prints the row of the latest runs; ends with 0 where the goal is met.
row() { # TASK BOUND WANTED
  tail -n "$seeds" "$work/runs" >"$work/cell"
  [ -z "$json" ] || cat "$work/cell" >>"$json"
  python3 - "$work/cell" "$@" <<'PY'
import json, math, statistics, sys
path, task, bound, wanted = sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1e3, int(sys.argv[4])
runs = [json.loads(line) for line in open(path)]
def worst(r):
    values = [m["worst"] for m in r["measures"].values()]
    return math.inf if None in values else max(values)
good = [worst(r) <= bound and not r["diverged"] if bound else r["success"] for r in runs]
def median(name):
    values = [r[name] for r in runs if r[name] is not None]
    return statistics.median(values) if values else math.nan
factor, misses = min(r["real_time_factor"] / r["speed"] for r in runs), max(r["deadline_miss_share"] for r in runs)
late = max(r["body_late_share"] or 0 for r in runs)
met = 8 * sum(good) >= wanted * len(runs) and factor >= 0.98 and misses < 0.02
marks = " ".join(f"{1e3 * worst(r):.0f}{'' if g else '*'}" for r, g in zip(runs, good))
print(f"| {task} | {runs[0]['contacts']} | {runs[0]['speed']:g} | {sum(good)} of {len(runs)} | {marks} | {factor:.3f} | {100 * misses:.1f}, {100 * late:.1f} |"
      f" {1e3 * median('age_p50'):.0f}, {1e3 * median('age_p99'):.0f} | {median('prediction_position_p50'):.2g} | {median('jump_p50'):.2g} |"
      f" {'yes' if met else 'no'} |", flush=True)
sys.exit(0 if met else 3)
PY
}

[ -z "$json" ] || : >"$json"
echo "mode $mode, deadline ${deadline:-of each task} s, latency $latency, body at 2.5 ms, $(nproc) cores; a star marks a seed that failed"
echo "| task | contacts | speed | solved | worst of each seed [mm, mrad] | real-time factor | misses, at the body late [%] | age p50, p99 [ms] | prediction | jump | goal |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
while read -r task seconds own_deadline bound with_task with_model own; do
  [ -n "$task" ] && { [ -z "$tasks" ] || [[ " $tasks " == *" $task "* ]]; } || continue
  for contacts in task model; do
    wanted=$with_task
    [ $contacts = task ] || wanted=$with_model
    [ "$wanted" != 0 ] || continue
    for speed in $speeds; do
      # shellcheck disable=SC2086  # words of the settings
      for seed in $(seq "$seeds"); do run "$task" "$seconds" "$own_deadline" "$contacts" "$speed" "$seed" $own </dev/null; done
      status=0
      row "$task" "$bound" "$wanted" </dev/null || status=$?
      case $status in 0) break ;; 3) ;; *) exit 1 ;; esac
    done
  done
done <<<"$cells"
