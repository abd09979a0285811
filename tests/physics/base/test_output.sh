#!/usr/bin/env bash
# What a program prints and nobody can have is a failure: on a full disk, for which /dev/full stands, each program ends
# with its status for that and a reason, help included.
#   test_output.sh BIN SOURCE
set -euo pipefail
BIN=$1 SOURCE=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-output.XXXXXX")
daemon= closed=
trap '[ -z "$daemon$closed" ] || kill -TERM $daemon $closed 2>/dev/null || true; wait || true; rm -rf "$work"' EXIT
cd "$work"
arm=$SOURCE/physics/models/arm_reach.xml
echo '<mujoco' >broken.xml
echo '<mujoco><option integrator="discrete"/></mujoco>' >refused.xml

# lost STATUS PROGRAM WORDS...: the status that it ends with, and that it says why.
lost() {
  local status=0 program=$BIN/$2
  timeout 60 "$program" "${@:3}" >/dev/full 2>error || status=$?
  [ "$status" = "$1" ] && grep -q 'could not be written: No space left on device' error ||
    { echo "FAIL  ${*:2}: status $status, $(cat error)" >&2; exit 1; }
}

"$BIN/sinewd" --backend=cpu --endpoint="ipc://$work/s" --tasks="$SOURCE/planner/tasks" --models="$SOURCE/physics/models" 2>log &
daemon=$!
"$BIN/sinewctl" --endpoint "ipc://$work/s" --timeout 20 health >/dev/null

lost 1 sinewd --help
lost 1 sinewd --version
lost 1 sinewctl -e "ipc://$work/s" metrics
lost 1 sinew-load --help
lost 1 sinew-load -e "ipc://$work/s" --clients 1 --sessions 1 --seconds 0.1 --load 1 --rate 10
lost 1 sinew-plant --help
lost 1 sinew-plant -e "ipc://$work/s" --seconds 0.05 --quiet
lost 5 sinew-import --help
lost 5 sinew-import "$arm" --json
lost 5 sinew-import "$work/refused.xml" --json
lost 5 sinew-import "$work/broken.xml" --json
if [ -e "$BIN/sinew-bench" ]; then  # not in single precision
  lost 3 sinew-bench --help
  lost 3 sinew-bench step --help
  lost 3 sinew-bench step --model "$arm" --steps 1 --rounds 1
  lost 3 sinew-check "$arm" --steps 2 --json
  lost 3 sinew-check "$arm" "$arm" --steps 2
fi
# Without standard input, output and error no file of sinewd gets their numbers, so that no line of the log goes into one.
mkdir state
"$BIN/sinewd" --backend=cpu --endpoint="ipc://$work/t" --tasks="$SOURCE/planner/tasks" --models="$SOURCE/physics/models" \
  --state="$work/state" <&- >&- 2>&- &
closed=$!
"$BIN/sinewctl" --endpoint "ipc://$work/t" --timeout 20 health >/dev/null
emulated=$(readlink "/proc/$closed/exe")
case $emulated in
  *qemu*) echo "left out: numbers of files, which $emulated has taken before the program begins" ;;
  *) emulated= ;;
esac
for fd in 0 1 2; do
  [ -z "$emulated" ] || continue
  [ "$(readlink "/proc/$closed/fd/$fd")" = /dev/null ] ||
    { echo "FAIL  descriptor $fd of sinewd is $(readlink "/proc/$closed/fd/$fd")" >&2; exit 1; }
done
kill -TERM "$closed"
wait "$closed"
closed=
[ ! -s state/lock ] || { echo "FAIL  the log is in the lock of the state: $(cat state/lock)" >&2; exit 1; }
# All of it is told where it can be.
"$BIN/sinew-import" "$arm" --json | python3 -m json.tool >/dev/null
kill -TERM "$daemon"
wait "$daemon"
daemon=
