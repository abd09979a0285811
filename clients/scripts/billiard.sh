#!/usr/bin/env bash
# Draws what contacts from distance do to a gradient: cost of the task `billiard`, its slope and its slope with contacts
# from distance, over the cue ball's sideways velocity.
#
#   clients/scripts/billiard.sh [PICTURE.svg]     default: planner/billiard.svg, the picture of planner/MEASURED.md
#
# Needs a release build (cmake --preset release && cmake --build build/release) and gnuplot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case "${1:-}" in --help | -h) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit ;; esac
picture=${1:-planner/billiard.svg}
bench=build/release/bin/sinew-bench
[ -x "$bench" ] || { echo "billiard.sh: $bench is missing: cmake --preset release && cmake --build build/release" >&2; exit 1; }
data=$(mktemp)
trap 'rm -f "$data"' EXIT
"$bench" sweep --task billiard --velocity cue_ball:1 --from -1.5 --to 1.5 --points 151 >"$data"
gnuplot -c clients/scripts/billiard.gp "$data" "$picture"
echo "picture: $picture"
