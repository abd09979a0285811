#!/usr/bin/env bash
# The main job: MuJoCo bodies under the plans of sinewd, closed loop over its socket.
#
#   test_closed_loop.sh BIN SOURCE [--full]
#
# Without --full, short and in lockstep, so that no speed of the machine is asserted; CI runs this. --full is what the
# project promises: arm_reach in real time for five seeds, hand_pose against zero control and the best of
# 1000 constant controls, hand_balls; it needs a quiet machine and some minutes, so nothing but a person runs it:
#
#   tests/clients/plant/test_closed_loop.sh build/release/bin . --full
#
# Ends with 0; 1 when something failed; 77 (skipped) when the arm did as it should and the models of MyoSuite, which the
# rest needs, are not there.
set -euo pipefail
BIN=$1 SOURCE=$2 full=${3:-}

work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-loop.XXXXXX")
daemon=
stop() {
  [ -z "$daemon" ] || { kill -TERM "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; } || true
  rm -rf "$work"
}
trap stop EXIT
models="${XDG_CACHE_HOME:-$HOME/.cache}/sinew/myosuite-2.12.2"
endpoint="ipc://$work/sinewd.sock"
folders=(--models="$SOURCE/physics/models")
[ ! -d "$models" ] || folders+=(--models="$models")  # sinewd wants its folders to be there
"$BIN/sinewd" --backend=cpu --endpoint="$endpoint" --tasks="$SOURCE/planner/tasks" "${folders[@]}" 2>"$work/log" &
daemon=$!
"$BIN/sinewctl" --endpoint "$endpoint" --timeout 20 health >/dev/null  # waits until the daemon listens

# run NAME PLANT-OPTIONS...: the report of a run in $work/NAME.json
run() {
  local name=$1
  shift
  "$BIN/sinew-plant" --endpoint "$endpoint" --models "$SOURCE/physics/models" --models "myosuite=$models/myosuite" --quiet --json "$@" >"$work/$name.json" ||
    { tail -5 "$work/log" >&2; exit 1; }
}
# value NAME EXPRESSION: Python on the report r
value() { python3 -c "import json; r = json.load(open('$work/$1.json')); print($2)"; }
expect() { # TEXT CONDITION...
  if python3 -c "import sys; sys.exit(0 if ($2) else 1)"; then echo "ok    $1"; else echo "FAIL  $1"; failed=1; fi
}
failed=0

arm_mode=lockstep arm_seeds="1 2" arm_seconds=3 arm_deadline=0.25 random=20 pose_seconds=0.7
if [ "$full" = --full ]; then
  arm_mode=realtime arm_seeds="1 2 3 4 5" arm_seconds=6 arm_deadline=0.04 random=1000 pose_seconds=1
fi

for seed in $arm_seeds; do
  run arm --task arm_reach --mode $arm_mode --seconds $arm_seconds --deadline $arm_deadline --seed "$seed"
  worst=$(value arm 'r["measures"]["hand_at_target"]["worst"]')
  expect "arm_reach, $arm_mode, seed $seed: $worst m at most over the last second, p99 $(value arm 'r["latency_p99"]') s" "$worst <= 0.02"
done

# Continuous mode is real time by nature: only what a slow machine does too is asked of it.
run arm --task arm_reach --mode continuous --seconds 2 --deadline 0.1 --execute 8 --seed 1
expect "arm_reach, continuous: $(value arm 'r["plans"]') states answered, $(value arm 'r["better_plans"]') better plans, $(value arm 'r["measures"]["hand_at_target"]["end"]') m at the end" \
  "$(value arm 'r["plans"]') > 5 and $(value arm 'r["better_plans"]') > 5 and $(value arm 'r["cost_end"]') < 0.5 * $(value arm 'r["cost_start"]')"

if [ ! -d "$models" ]; then
  echo "skipped: hand_pose and hand_balls, the MyoSuite models are not in the cache folder"
  [ "$failed" = 0 ] && exit 77
  exit 1
fi
run pose --task hand_pose --seconds $pose_seconds --deadline 30
run zero --task hand_pose --seconds $pose_seconds --controller zero
run random --task hand_pose --seconds $pose_seconds --controller random:$random
pose=$(value pose 'r["cost_end"]') zero=$(value zero 'r["cost_end"]') best=$(value random 'r["cost_end"]')
expect "hand_pose: cost $pose at the end, zero control $zero" "$pose < 0.5 * $zero"
expect "hand_pose: cost $pose at the end, best of $random constant controls $best" "$pose < $best"

run balls --task hand_balls --seconds 0.1 --deadline 30
expect "hand_balls runs: cost $(value balls 'r["cost_start"]') to $(value balls 'r["cost_end"]') in 0.1 s" "not $(value balls 'r["diverged"]')"

# A session with a deadline of 20 ms beside one that plans for 10 s: it has had all its plans while that one is still at
# its first, and the median came within half a second, which a busy machine keeps, too.
"$BIN/sinew-plant" --endpoint "$endpoint" --models "$models" --quiet --json --task hand_pose --seconds 0.002 --deadline 10 --set adam_iterations=0 >"$work/slow.json" &
slow=$!
for _ in $(seq 100); do
  "$BIN/sinewctl" --endpoint "$endpoint" --json stats >"$work/stats.json"
  [ "$(value stats 'len(r["sessions"])')" = 0 ] || break
  sleep 0.05
done
run fast --task arm_reach --models "$SOURCE/physics/models" --seconds 1 --deadline 0.02 --seed 1
if kill -0 "$slow" 2>/dev/null; then beside=True; else beside=False; fi
wait "$slow"
expect "a session with 20 ms beside one with 10 s: p50 $(value fast 'r["latency_p50"]') s over $(value fast 'r["plans"]') plans, the other one made $(value slow 'r["plans"]')" \
  "$beside and $(value fast 'r["plans"]') > 10 and $(value fast 'r["latency_p50"]') < 0.5 and $(value slow 'r["latency_p50"]') > 9"
exit "$failed"
