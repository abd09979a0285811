#!/usr/bin/env bash
# Compares all planners over several tasks at equal computing time a plan, in closed loops with MuJoCo as the body: which
# one to take for which kind of task.
#
#   clients/scripts/planners.sh [--quick] [--json] [--seeds N] [--only PLANNER,...] [--tasks TASK,...] [FOLDER]
#
# FOLDER (default: sinew-planners) gets a file of JSON lines a task (a run that was broken off goes on after those that it
# has), curves of the cost over time a task, table.md, and planners.svg: mean costs relative to the best one of a task. The table
# is printed, with --json the lines instead. --quick: a short run of one task, two planners and one seed. Tasks of MyoSuite
# are left out where its models are not there. Ten minutes on two idle cores. Timed plans depend on the machine and its load.
#
# Needs a release build (cmake --preset release && cmake --build build/release; or SINEW_BENCH names sinew-bench), and gnuplot
# for the pictures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage() { sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
bench=${SINEW_BENCH:-build/release/bin/sinew-bench} folder=sinew-planners seeds=5 only="" some="" quick=0 json=0
while [ $# -gt 0 ]; do
  case "$1" in
  --help | -h) usage; exit ;;
  --quick) quick=1 ;;
  --json) json=1 ;;
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
for task in ${some//,/ }; do
  grep -q "^$task " <<<"$tasks" || { echo "planners.sh: --tasks: $task is none of $(cut -d ' ' -f 1 <<<"$tasks" | xargs)" >&2; exit 2; }
done
if [ "$quick" = 1 ]; then tasks="cart_pole 0.2 0.005 4" seeds=1 only=${only:-sampling,adam}; fi

mkdir -p "$folder"
rows=$folder/rows.txt
: >"$rows"
while read -r task seconds plan execute; do
  [ -z "$some" ] || [[ ,$some, == *,$task,* ]] || continue
  if ! "$bench" compare --task "$task" --planners --equal time --plan-seconds "$plan" --seconds "$seconds" \
    --execute "$execute" --seeds "$seeds" ${only:+--only "$only"} --markdown --out "$folder/$task.jsonl" \
    --picture "$folder/$task.png" --quiet 2>"$folder/errors.txt" >>"$rows"; then
    grep -q "myosuite.* is not\|no model\|not found" "$folder/errors.txt" || { cat "$folder/errors.txt" >&2; exit 1; }
    echo "planners.sh: $task is left out: $(head -1 "$folder/errors.txt")" >&2
  fi
done <<<"$tasks"
rm -f "$folder/errors.txt"

{
  echo "| task | planner | solved | mean cost | cost at the end, median: all seeds | iterations a plan | ms a plan |"
  echo "| --- | --- | --- | --- | --- | --- | --- |"
  cat "$rows"
} >"$folder/table.md"
rm "$rows"
if [ "$json" = 1 ]; then cat "$folder"/*.jsonl; else cat "$folder/table.md"; fi
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
