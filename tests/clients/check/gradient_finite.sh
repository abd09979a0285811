#!/usr/bin/env bash
# Gradients at random states of every model of MyoSuite are finite: gradient_finite on each, COUNT states.
#
#   gradient_finite.sh PROGRAM MYOSUITE [COUNT [SEED [cfd]]]
#
# PROGRAM is gradient_finite of a build, MYOSUITE the folder of the package (clients/scripts/fetch_models.sh prints it), COUNT 100
# unless told. Exit status: 0 all finite; 1 not, or a crash, or the models that are not supported are not those of
# refused.txt, or others than the ten known ones have nothing that moves; 77 the folder is missing.
set -uo pipefail
case "${1:-}" in --help | -h) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit ;; esac
[ $# -ge 2 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
program=$1 folder=$2 count=${3:-100} seed=${4:-1} cfd=${5:-}
[ -d "$folder" ] || { echo "$folder is missing: clients/scripts/fetch_models.sh fetches it" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One model: its line, and in `bad` the name when it failed.
try() {
  local line status
  line=$("$1" "$2" "$3" "$4" ${5:+"$5"} 2>"$6/err.$$")
  status=$?
  case $status in
    0) echo "$line" | sed "s|^.*/myosuite/||" ;;
    2) echo "$line" | sed "s|^.*/myosuite/||" | head -1 ;;
    3) case $line in *'nothing in the model moves'*) echo "$line" | sed "s|^.*/myosuite/||" ;; esac ;;
    *)
      echo "$2: status $status: $line"
      cat "$6/err.$$"
      echo "$2" >>"$6/bad"
      ;;
  esac
}
export -f try
find "$folder" -name '*.xml' | sort |
  xargs -P "$(nproc)" -I{} bash -c 'try "$@"' _ "$program" {} "$count" "$seed" "$cfd" "$work" | tee "$work/lines"
finite=$(grep -c ': finite:' "$work/lines")
still=$(grep -c 'nothing in the model moves' "$work/lines")
refused=$(grep -c ': not supported:' "$work/lines")
echo "$finite models finite, $still without anything that moves, $refused not supported"
sed -n 's/: not supported: /: /p' "$work/lines" | LC_ALL=C sort | diff "$here/refused.txt" - >"$work/refusals" || {
  echo "not as in refused.txt (<: should be refused, >: is):"
  cat "$work/refusals"
}
ours=$(grep -c '^envs/myo/assets/sinew/.*: finite:' "$work/lines" || true)  # clients/myosuite, put beside those of MyoSuite
[ ! -e "$work/bad" ] && [ ! -s "$work/refusals" ] && [ "$still" = 10 ] && [ $((finite - ours + still + refused)) = 63 ]
