#!/usr/bin/env bash
# Compares all planners over several tasks at equal computing time a plan, in closed loops with MuJoCo as the body: which
# one to take for which kind of task.
#
#   clients/scripts/planners.sh [--quick] [--json] [--seeds N] [--only PLANNER,...] [--robots] [--tasks TASK,...] [--processor]
#                                [FOLDER]
#
# A TASK is one of the script's own (arms and hands; with --robots those with motors), or any other as
# NAME:SECONDS:PLAN:STEPS, seconds of motion, seconds of computing a plan, and time steps between two plans.
#
# FOLDER (default: sinew-planners) gets a file of JSON lines a task, curves of the cost over time a task, table.md, table.csv
# (a row a run), planners.svg: mean costs relative to the best one of a task, and costs.png: cost over time. A run that has its
# line is not run again, so that what was broken off (Ctrl-C) goes on where it was; tables are written after each task. The
# table is printed, with --json the lines instead. --quick: a short run of one task, two planners and one seed. Tasks whose
# models were not fetched are left out. Ten minutes on two idle cores, with --robots half an hour. Timed plans depend on the
# machine and its load.
#
# --processor: in place of so many seconds a plan each planner has the iterations or candidates that take as much processor
# time, of all threads together, as a plan of the task's own planner with its own settings (sinew-bench compare --processor).
# That is measured first and kept with the runs, which depend on their seeds alone, whatever else the machine does.
#
# Needs a release build (cmake --preset release && cmake --build build/release; or SINEW_BENCH names sinew-bench), python3, and
# gnuplot for the pictures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage() { sed -n '2,25s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
bench=${SINEW_BENCH:-build/release/bin/sinew-bench} folder=sinew-planners seeds=5 only="" some="" robots=0 processor=0 quick=0 json=0
while [ $# -gt 0 ]; do
  case "$1" in
  --help | -h) usage; exit ;;
  --quick) quick=1 ;;
  --json) json=1 ;;
  --robots) robots=1 ;;
  --processor) processor=1 ;;
  --seeds) seeds=${2:?--seeds needs a number}; shift ;;
  --only) only=${2:?--only needs planners}; shift ;;
  --tasks) some=${2:?--tasks needs names}; shift ;;
  -*) echo "planners.sh: $1 is no option: --help lists them" >&2; exit 2 ;;
  *) folder=$1 ;;
  esac
  shift
done
[ -x "$bench" ] || { echo "planners.sh: $bench is missing: cmake --preset release && cmake --build build/release" >&2; exit 1; }

# Tasks: seconds of motion, seconds of computing a plan, steps between two plans.
tasks="arm_reach 1.5 0.005 8
cart_pole 3 0.01 4
hand_pose 1 0.1 16
hand_balls 1.5 0.15 16
ball_catch 1 0.2 16"
motors="reacher 2 0.005 2
acrobot 5 0.02 4
cartpole_swingup 3 0.03 4
half_cheetah 3 0.03 4
hopper 3 0.03 4
gripper_lift 3 0.08 8
walker 3 0.04 4
quadruped 3 0.06 4
humanoid_stand 2 0.1 4
humanoid_walk 2 0.15 4"
known="$tasks
$motors"
[ "$robots" = 0 ] || tasks=$motors
if [ -n "$some" ]; then
  tasks=
  for task in ${some//,/ }; do
    row=$(grep "^$task " <<<"$known" || true)
    if [[ $task =~ ^[^:]+:[0-9.]+:[0-9.]+:[0-9]+$ ]]; then row=${task//:/ }; fi
    [ -n "$row" ] || { echo "planners.sh: --tasks: $task is none of $(cut -d ' ' -f 1 <<<"$known" | xargs)," \
      "and not NAME:SECONDS:PLAN:STEPS" >&2; exit 2; }
    tasks+="$row"$'\n'
  done
fi
if [ "$quick" = 1 ]; then tasks="cart_pole 0.2 0.005 4" seeds=1 only=${only:-sampling,adam}; fi

mkdir -p "$folder"
rows=$folder/rows.txt
: >"$rows"

# Writes table.md from the rows that there are, and table.csv from all lines of JSON.
write_tables() {
  { head -2 "$rows"; grep -vE '^[|] (task|---) ' "$rows" || true; } >"$folder/table.md"
  python3 - "$folder" >"$folder/table.csv" <<'END'
import csv, json, pathlib, sys

names = ["task", "cell", "mode", "work", "seed", "success", "seconds", "execute", "plan_seconds", "cost_mean", "cost_end", "iterations",
         "candidates", "ms_per_plan", "cpu_ms_per_plan"]
out = csv.writer(sys.stdout)
out.writerow(["planner" if name == "cell" else name for name in names])
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.jsonl")):
    for line in file.read_text().splitlines():
        if line.endswith("}"):  # the last one may be cut
            run = json.loads(line)
            out.writerow([run.get(name, "") for name in names])
END
}

# compare TASK NAME ARGUMENTS: the runs of a task that are not done, and their rows. Leaves out what was not fetched.
compare() {
  local task=$1 name=$2 progress=--quiet
  shift 2
  [ -t 2 ] && progress=""
  if ! "$bench" compare --task "$task" --planners --seeds "$seeds" ${only:+--only "$only"} --equal time --markdown \
    --out "$folder/$name.jsonl" --picture "$folder/$name.png" $progress "$@" 2>&1 >>"$rows" | tee "$folder/errors.txt" >&2; then
    grep -q "model .* is in none of" "$folder/errors.txt" || exit 1
    echo "planners.sh: $task is left out" >&2
  fi
}

n=0 count=$(grep -c . <<<"$tasks") began=$SECONDS
while read -r task seconds plan execute; do
  [ -n "$task" ] || continue
  n=$((n + 1))
  [ "$quick" = 1 ] || echo "planners.sh: $task, task $n of $count, after $((SECONDS - began)) s" >&2
  name=${task##*/}
  name=${name%.yaml}
  equal=(--plan-seconds "$plan")
  [ "$processor" = 0 ] || equal=(--processor)
  compare "$task" "$name" --seconds "$seconds" --execute "$execute" "${equal[@]}"
  write_tables
done <<<"$tasks"
rm -f "$folder/errors.txt" "$rows"
if [ "$json" = 1 ]; then cat "$folder"/*.jsonl 2>/dev/null || true; else cat "$folder/table.md"; fi
ls "$folder"/*.jsonl >/dev/null 2>&1 || { echo "planners.sh: no task was run" >&2; exit 1; }
command -v gnuplot >/dev/null || { echo "planners.sh: no pictures, gnuplot is missing" >&2; exit 0; }

# A row a task, a column a planner: its mean cost over the least of the task.
awk -F ' *[|] *' '
  NR > 2 { gsub("`", "", $2); if (!($2 in least)) task[++n] = $2; if (!($3 in seen)) { seen[$3] = 1; planner[++m] = $3 }
    cost[$2, $3] = $5; if (!($2 in least) || $5 + 0 < least[$2]) least[$2] = $5 + 0 }
  END { printf "task"; for (j = 1; j <= m; ++j) printf " %s", planner[j]; print ""
    for (i = 1; i <= n; ++i) { printf "%s", task[i]
      for (j = 1; j <= m; ++j) printf " %s", (least[task[i]] > 0 ? cost[task[i], planner[j]] / least[task[i]] : "nan")
      print "" } }' "$folder/table.md" >"$folder/costs.txt"
gnuplot -e "set terminal svg noenhanced size 900,400 font 'sans,12' background 'white'; set output '$folder/planners.svg';
  set style data histograms; set style histogram clustered gap 1; set style fill solid 0.8; set logscale y;
  set ylabel 'mean cost over that of the best'; set yrange [0.9:*]; set grid ytics; set key outside;
  n = $(head -1 "$folder/costs.txt" | wc -w);
  plot for [k=2:n] '$folder/costs.txt' using k:xtic(1) title columnheader(k)"
rm "$folder/costs.txt"
echo "picture: $folder/planners.svg" >&2

# Cost over time, a plot a task: the median over the seeds of each planner, 40 points of it.
python3 - "$folder" >"$folder/new.gp" <<'END'
import json, math, pathlib, statistics, sys

curves = {}  # task, planner: costs of each seed
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.jsonl")):
    for line in file.read_text().splitlines():
        if line.endswith("}"):
            run = json.loads(line)
            curves.setdefault(run["task"], {}).setdefault(run["cell"], []).append((run["time"], run["cost"]))
rows = math.ceil(len(curves) / 2)
print(f"set terminal pngcairo noenhanced size 900,{200 * rows} font 'sans,9' background 'white'")
print(f"set multiplot layout {rows},2; set logscale y; set grid; set key font ',9' samplen 1 outside; set format y '%.0e'")
for task, planners in curves.items():
    parts, blocks = [], []
    for k, planner in enumerate(["sampling", "adam", "ilqg", "lbfgs", "mppi", "cem", "hybrid"]):
        runs = planners.get(planner)
        if not runs:
            continue
        n = min(len(cost) for _, cost in runs)
        parts.append(f"'-' with lines lw 1.5 lc {k + 1} title '{planner}'")
        points = [(runs[0][0][i], statistics.median(cost[i] or 0 for _, cost in runs)) for i in range(0, n, max(1, n // 40))]
        blocks += [f"{time:.3f} {max(cost, 1e-4):.4g}" for time, cost in points] + ["e"]
    print(f"set title '{task}'; plot " + ", ".join(parts), *blocks, sep="\n")
END
gnuplot -e "set output '$folder/costs.png'" "$folder/new.gp"
rm "$folder/new.gp"
echo "picture: $folder/costs.png" >&2
