#!/usr/bin/env bash
# One command from nothing to a body that moves: installs what is missing, builds, starts sinewd, runs a
# MuJoCo body against it over its socket, closed loop, once with each planner, prints reports and draws both side by side.
#
#   clients/demo.sh                                          the built-in arm follows a target, in real time
#   clients/demo.sh --task hand_pose                         the real MyoHand takes a pose, in real time
#   clients/demo.sh --task hand_balls_realtime               it swaps two balls in its palm, in real time
#   clients/demo.sh --task hand_balls_realtime --speed 0.5   the same in a world half as fast as the clock
#
#   --task NAME      a task of planner/tasks
#   --planner NAME   adam or sampling (default: the task's, which is adam)
#   --cfd MODE       contacts from distance in its gradients: cfd or none (default: the task's for a hand that moves in real time, else cfd)
#   --against NAME   the planner beside it, without contacts from distance (default sampling); none: no other
#   --mode MODE      realtime, continuous or lockstep (default: realtime for arm_reach, hand_pose and NAME_realtime, else lockstep)
#   --speed X        of the world in realtime and continuous mode (default 1)
#   --seconds S      how long the body moves
#   --seed N         initial pose, initial plan, planner (default 1)
#   --picture FILE   where to draw, .png (default sinew-report.png); a small drawing if it ends with .svg
#   --json           each report as one line of JSON
#   --view           in place of runs and a picture: a page in the browser, until Ctrl-C (or for --seconds); by the Python package's
#                    program `sinew`, which is installed into build/demo-env where there is none
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=clients/setup.sh
. clients/setup.sh

task=arm_reach planner= cfd= against=sampling mode= speed=1 seconds= seed=1 picture=sinew-report.png json= view=
while [ $# -gt 0 ]; do
  case $1 in
    --task | --planner | --cfd | --against | --mode | --speed | --seconds | --seed | --picture)
      [ $# -ge 2 ] || { echo "$1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift 2 ;;
    --json) json=--json; shift ;;
    --view) view=1; shift ;;
    --help | -h) sed -n '2,22s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
    *) echo "demo.sh: $1 is no option: --help lists them" >&2; exit 2 ;;
  esac
done
case $picture in *.png | *.svg) ;; *) echo "demo.sh: --picture $picture: a name that ends with .png or .svg is wanted" >&2; exit 2 ;; esac
case $picture in /*) ;; *) [ "$caller" = "$PWD" ] || picture=$caller/$picture ;; esac
usual=lockstep length=1
case $task in
  arm_reach) usual=realtime length=6 ;;
  hand_pose) usual=realtime length=2 ;;
  *_realtime) usual=realtime length=4 ;;
esac
mode=${mode:-$usual}
[ -n "$view$seconds" ] || seconds=$length
# In real time hands move at 2.5 ms, as in clients/scripts/realtime.sh, whatever the time step of their plans is.
body=()
if [ "$task" = arm_reach ] || [ "$mode" = lockstep ]; then
  cfd=${cfd:-cfd}
else
  body=(--timestep 0.0025)
fi
[ "$mode" = lockstep ] || body+=(--speed "$speed" --latency met)
case $task/$mode in *_realtime/realtime) body+=(--deadline 0.025) ;; esac

sinew_setup
if [ ! -e build/release/build.ninja ]; then cmake --preset release >/dev/null; fi
cmake --build build/release --target sinewd sinew-import sinewctl sinew-plant -- --quiet | grep -v "ninja: no work to do" || [ "${PIPESTATUS[0]}" = 0 ]
bin=$PWD/build/release/bin

# Prints the path of the program sinew: that of the environment in use, else one that is installed here.
sinew_program() {
  local environment=$PWD/build/demo-env
  if command -v sinew; then return; fi
  if [ ! -e "$environment/.complete" ] || [ -n "$(find clients/python proto -newer "$environment/.complete" -print -quit)" ]; then
    echo "there is no program sinew: installing the Python package into $environment, which takes a few minutes" >&2
    # shellcheck disable=SC2086  # the list is split on purpose
    sinew_install_packages $SINEW_PACKAGES_PYTHON
    python3 -m venv "$environment" >&2
    "$environment/bin/python" -m pip install -q --disable-pip-version-check './clients/python[view]' >&2
    touch "$environment/.complete"
  fi
  echo "$environment/bin/sinew"
}

program=
if [ -n "$view" ]; then
  case $mode in realtime | lockstep) ;; *) echo "--view has the modes realtime and lockstep, not $mode" >&2; exit 2 ;; esac
  [ "$speed" = 1 ] || { echo "--view has no --speed" >&2; exit 2; }
  program=$(sinew_program)
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-demo.XXXXXX")
daemon= page=
stop() {
  for process in $page $daemon; do
    kill -TERM "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap stop EXIT

mapfile -t models < <(echo --models=physics/models; sinew_model_options)
"$bin/sinewd" --endpoint="ipc://$work/sinewd.sock" --tasks=planner/tasks "${models[@]}" 2>"$work/log" &
daemon=$!
for _ in $(seq 100); do
  if "$bin/sinewctl" --endpoint "ipc://$work/sinewd.sock" --timeout 1 health >/dev/null 2>&1; then break; fi
  kill -0 "$daemon" 2>/dev/null || { cat "$work/log" >&2; echo "sinewd did not start" >&2; exit 1; }
  sleep 0.05
done
echo "sinewd runs as process $daemon; task $task, $mode, ${seconds:+$seconds s, }seed $seed" >&2

# show SETTING...: the page, until it ends, Ctrl-C is pressed, or the seconds are over.
show() {
  local set=() open=--open
  for setting in "$@"; do set+=(--set "$setting"); done
  [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || open=--no-open
  trap 'exit 0' INT TERM
  "$program" view --endpoint "ipc://$work/sinewd.sock" --task "$task" --mode "$mode" --seed "$seed" "${set[@]}" $open >"$work/page" &
  page=$!
  until grep -q '^page: ' "$work/page"; do
    kill -0 "$page" 2>/dev/null || { wait "$page"; exit; }
    sleep 0.1
  done
  cat "$work/page"
  [ -n "$seconds" ] || { wait "$page"; exit; }
  sleep "$seconds" &
  wait -n "$page" $! || exit
  exit 0
}
[ -z "$view" ] || show ${planner:+"planner=$planner"} ${cfd:+"cfd=$cfd"}

# drive NAME SETTING...: one run with these settings of the planner; its data in $work/NAME.
drive() {
  local name=$1 set=()
  shift
  for setting in "$@"; do set+=(--set "$setting"); done
  [ -n "$json" ] || echo "--- $name ---"
  if ! "$bin/sinew-plant" --endpoint "ipc://$work/sinewd.sock" --task "$task" --mode "$mode" --seconds "$seconds" --seed "$seed" \
      "${models[@]}" "${body[@]}" "${set[@]}" --data "$work/$name" $json; then
    echo "the daemon's log:" >&2
    tail -20 "$work/log" >&2
    exit 1
  fi
}

name=${planner:-adam} first=${planner:-adam}
[ "${cfd:-none}" = none ] || first="$name, $cfd"
[ "$first" != "$against" ] || first="$name, again"
drive "$first" ${planner:+"planner=$planner"} ${cfd:+"cfd=$cfd"}
[ "$against" = none ] || drive "$against" "planner=$against" cfd=none

read -ra columns <"$work/$first"
ncontrol=0
for column in "${columns[@]}"; do [[ $column == ctrl* ]] && ncontrol=$((ncontrol + 1)); done
nmeasure=$(($(head -1 "$work/$first" | grep -o '"[^"]*"' | wc -l)))
other=$against
[ "$against" != none ] || other=
ages=1 pace=
case $mode:$picture in lockstep:* | *.svg) ages= ;; esac
[ "$speed" = 1 ] || pace=" at $speed of real time"
# shellcheck disable=SC2086  # nothing where there are no ages
gnuplot -c clients/scripts/report.gp "$work" "$first" "$other" "$picture" "sinew: $task, seed $seed, $mode$pace" "$nmeasure" "$ncontrol" $ages
echo "picture: $picture" >&2
