#!/usr/bin/env bash
# Makes the pictures of clients/gallery/README.md: of each task four moments of a closed loop with MuJoCo as the body, and the
# cost over time.
#
#   clients/scripts/gallery.sh [--tasks TASK,...] [--seconds S] [--python PYTHON] [FOLDER]
#
# FOLDER (default: sinew-gallery) gets NAME.webp and NAME.txt (time, cost) of each task, and costs.png. What is there is not
# made again, so a run that was broken off goes on. PYTHON (default: python3) has the package with its extra "view". Half an
# hour on two idle cores; --seconds moves every body for so long alone. Without a screen MUJOCO_GL=egl or osmesa says by what
# MuJoCo draws.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage() { sed -n '2,10s/^# \{0,1\}//p' clients/scripts/gallery.sh; }
folder=sinew-gallery some="" short="" python=python3
while [ $# -gt 0 ]; do
  case "$1" in
  --help | -h) usage; exit ;;
  --tasks) some=${2:?--tasks needs names}; shift ;;
  --seconds) short=${2:?--seconds needs a number}; shift ;;
  --python) python=${2:?--python needs a program}; shift ;;
  -*) echo "gallery.sh: $1 is no option: --help lists them" >&2; exit 2 ;;
  *) folder=$1 ;;
  esac
  shift
done

# Tasks: seconds of motion, time steps between two plans; azimuth, elevation and distance of the camera, and whether it follows.
tasks="arm_reach 3 8 90 -15 4 0
billiard 0.3 16 90 -40 22 0.5
cart_pole 3 4 90 -10 40 0
cartpole_swingup 3 4 90 -10 32 0
acrobot 5 4 90 0 150 1
reacher 2 4 90 -89 24 0
hopper 3 4 90 -10 4 1
walker 3 4 90 -10 4 1
half_cheetah 3 4 90 -10 4 1
quadruped 3 4 120 -25 4 1
humanoid_stand 2 4 120 -15 4 1
humanoid_walk 2 4 120 -15 4 1
gripper_lift 3 8 120 -20 5 0
hand_pose 1 16 150 -40 2.7 0
hand_balls 1.5 16 150 -50 3.2 1
hand_balls_round 5 4 150 -50 3.2 1
ball_catch 1 16 150 -30 2.7 0
ball_catch_still 1 16 150 -30 2.7 0
cube_in_hand 3 16 60 -50 2.7 0
cube_on_plane 3 16 60 -15 2.7 0
bionic_tennis 0.75 16 90 -10 2.6 0"
for task in ${some//,/ }; do
  grep -q "^$task " <<<"$tasks" || { echo "gallery.sh: --tasks: $task is none of $(cut -d ' ' -f 1 <<<"$tasks" | xargs)" >&2; exit 2; }
done

mkdir -p "$folder"
while read -r task seconds execute azimuth elevation distance follow; do
  [ -z "$some" ] || [[ ,$some, == *,$task,* ]] || continue
  [ -f "planner/tasks/$task.yaml" ] && ! [ -s "$folder/$task.webp" ] || continue
  seconds=${short:-$seconds}
  echo "$task: $seconds s" >&2
  if ! "$python" clients/python/animate.py --task "$task" --seed 1 --seconds "$seconds" --execute "$execute" --strip 4 \
    --size 240 200 --azimuth="$azimuth" --elevation="$elevation" --distance "$distance" --follow "$follow" \
    --costs "$folder/$task.txt" --picture "$folder/$task.part.webp"; then
    echo "gallery.sh: $task is left out" >&2
    rm -f "$folder/$task.txt"
    continue
  fi
  mv "$folder/$task.part.webp" "$folder/$task.webp"
done <<<"$tasks"

command -v gnuplot >/dev/null || { echo "gallery.sh: no picture of the costs, gnuplot is missing" >&2; exit 0; }
names=$(cut -d ' ' -f 1 <<<"$tasks" | while read -r task; do [ ! -s "$folder/$task.txt" ] || echo -n "$task "; done)
[ -n "$names" ] || { echo "gallery.sh: no picture was made" >&2; exit 1; }
gnuplot -e "set terminal pngcairo noenhanced size 1000,$((150 * (($(wc -w <<<"$names") + 4) / 5))) font 'sans,10';
  set output '$folder/costs.png'; set multiplot layout $((($(wc -w <<<"$names") + 4) / 5)),5; set tics nomirror; unset key;
  set logscale y; set format y '%.0e'; set xtics 1; set grid lc rgb '#dddddd';
  do for [task in '$names'] { set title task; plot '$folder/'.task.'.txt' using 1:(\$2 > 1e-12 ? \$2 : 1e-12) with lines lw 2 }"
echo "pictures: $folder" >&2
