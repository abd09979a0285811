#!/usr/bin/env bash
# sinew-plant with what it is told least: it takes the model from where sinewd has it, a deadline that suits the planner's
# settings, and notices that its daemon has stopped.
#   test_plant.sh BIN SOURCE
set -euo pipefail
BIN=$1 SOURCE=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-plant.XXXXXX")
endpoint=ipc://$work/sinewd.sock
mkdir "$work/bodies"
cp "$SOURCE/physics/models/arm_reach.xml" "$work/bodies/limb.xml"
cat >"$work/bodies/fall.xml" <<'XML'
<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="2 2 2"/>
  <body name="ball" pos="0 0 .11"><freejoint/><geom size=".1"/></body>
  <body pos="1 0 1"><joint name="j"/><geom size=".1"/></body></worldbody>
  <actuator><motor joint="j"/></actuator></mujoco>
XML
cat >"$work/bodies/fall.yaml" <<'YAML'
model: own/fall
plant: {solref: [0.2, 1]}
settings: {planner: sampling, horizon: 16, knots: 2, iterations: 1, candidates: 2}
terms: [{name: ball, residual: {position: {body: ball}}, weight: 1}]
YAML
sed 's/^model: .*/model: own\/limb/' "$SOURCE/planner/tasks/arm_reach.yaml" >"$work/bodies/own_reach.yaml"
"$BIN/sinewd" --backend=cpu --endpoint="$endpoint" --tasks="$work/bodies" --models="own=$work/bodies" 2>"$work/log" &
daemon=$!
trap 'kill -KILL "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; rm -rf "$work"' EXIT
"$BIN/sinewctl" --endpoint "$endpoint" --timeout 20 health >/dev/null  # waits until the daemon listens
plant() { timeout 200 "$BIN/sinew-plant" --endpoint "$endpoint" --task own_reach --quiet "$@"; }
check() { # EXPRESSION
  python3 -c "import json; r = json.load(open('$work/out')); assert $1, r" || { echo "FAIL  $1" >&2; exit 1; }
}

wait_for_plans() { # N: sessions that have two plans or more
  for _ in $(seq 200); do
    "$BIN/sinewctl" --endpoint "$endpoint" --json stats >"$work/stats"
    if python3 -c "import json, sys; r = json.load(open('$work/stats'))['sessions']; sys.exit(len([s for s in r if s['plans'] > 1]) != $1)"; then return; fi
    sleep 0.1
  done
  echo "FAIL  not $1 sessions with plans: $(cat "$work/stats")" >&2
  exit 1
}

# Neither --models nor --xml: no default folder has this model.
plant --json --seconds 0.3 --set planner=sampling --set iterations=0 >"$work/out"
check 'r["plans"] == 4 and r["steps_without_plan"] == 0'
# Nothing but the deadline ends such a plan: it is that of real time, a small part of a second.
check 'r["latency_p50"] < 0.5'
# Iterations end these, and make the same plans each time: a deadline of 1 s lets them be done. A machine that is busy with
# other things may not do so now and then, so that a pair has some tries.
same_twice() {
  for _ in 1 2 3 4 5; do
    plant --json --seconds 0.3 "$@" >"$work/first"
    plant --json --seconds 0.3 "$@" >"$work/out"
    if python3 -c "
import json, sys; first, second = (json.load(open('$work/' + name)) for name in ('first', 'out'))
sys.exit(first['cost_end'] != second['cost_end'])"; then return; fi
  done
  echo "FAIL  $*: each time another cost: $(cat "$work/first" "$work/out")" >&2
  exit 1
}
for settings in "planner=sampling iterations=2" "planner=adam adam_iterations=2"; do
  set=()
  for setting in $settings; do set+=(--set "$setting"); done
  same_twice "${set[@]}"
done
# The best of more random controls is as good or better: the first ones are the same.
echo '{"cost_end": Infinity}' >"$work/first"
for n in 1 2 4 8 16; do
  plant --json --seconds 0.3 --controller random:$n >"$work/out"
  check 'r["cost_end"] <= json.load(open("'"$work/first"'"))["cost_end"]'
  cp "$work/out" "$work/first"
  [ $n != 1 ] || cp "$work/out" "$work/one"
done
check 'r["cost_end"] < json.load(open("'"$work/one"'"))["cost_end"]'
plant --json --seconds 0.1 --controller zero >"$work/out"
check 'r["plans"] == 0 and r["latency_p50"] is None'  # JSON has no NaN
if plant --models "$work" >"$work/out" 2>&1; then echo "FAIL  a model that is not there" >&2; exit 1; fi
grep -q "sinew-plant: model 'own/limb' is in none of the folders given with --models" "$work/out"

# The body has the task's contacts, or those of its file, and a time step of its own; the planner is told of neither. It
# believes what its model says: exactly with the same contacts and step, far off with others.
fall() { timeout 200 "$BIN/sinew-plant" --endpoint "$endpoint" --task fall --quiet --json --seconds 0.2 "$@" >"$work/out"; }
fall --contacts task
check 'r["contacts"] == "task" and r["prediction_position_p99"] > 1e-4 and r["timestep"] == 0.005 and r["steps"] == 40'
cp "$work/out" "$work/first"
fall --contacts model
check 'r["contacts"] == "model" and r["prediction_position_p99"] < 1e-9'
check 'r["cost_end"] > json.load(open("'"$work/first"'"))["cost_end"] + 1e-4'  # the ball sinks in less
fall --timestep 0.0025
check 'r["contacts"] == "task" and r["steps"] == 80 and r["plans"] == 3'
# A world at half the speed takes about twice the time: the last step is not waited for.
fall --mode realtime --speed 0.5
check 'r["speed"] == 0.5 and r["real_time_factor"] < 0.52 and r["steps"] == 40 and r["age_p50"] > 0'

# The planner is told of the latency that plans meet: the configuration has other versions than the first.
fall --mode realtime --latency met --deadline 0.03 --speed 0.2 --seconds 1
check 'r["plans"] > 16 and r["age_p50"] < 0.03'

# A daemon that is not there: its address is named.
if timeout 200 "$BIN/sinew-plant" --endpoint "ipc://$work/none" --timeout 0.2 2>"$work/out"; then echo "FAIL  a plant without a daemon" >&2; exit 1; fi
grep -qF "sinew-plant: no answer from ipc://$work/none within 0.2 s: there is no such socket" "$work/out" || { cat "$work/out" >&2; exit 1; }

# The daemon stands still when the body, a hundred times as slow as the clock, is about to end: the plan that is waited
# for does not come, and nothing else is asked.
plant --mode realtime --seconds 0.05 --timestep 0.0005 --speed 0.01 --deadline 0.001 --timeout 6 >"$work/out" 2>&1 &
pid=$!
wait_for_plans 1
kill -STOP "$daemon"
if wait "$pid"; then echo "FAIL  a plant ended well while its daemon stood still" >&2; exit 1; fi
kill -CONT "$daemon"
grep -qF "sinew-plant: no plan from $endpoint within 6.1 s (sinewd has stopped or hangs)" "$work/out" || { cat "$work/out" >&2; exit 1; }

# The daemon is gone, in the midst of it.
pids=()
for mode in lockstep realtime continuous; do
  plant --mode $mode --seconds 1000 --timeout 1.5 >"$work/$mode" 2>&1 &
  pids+=($!)
done
wait_for_plans 3
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
start=$SECONDS
for pid in "${pids[@]}"; do
  if wait "$pid"; then echo "FAIL  a plant ended well without its daemon" >&2; exit 1; fi
done
[ $((SECONDS - start)) -le 40 ] || { echo "FAIL  noticed after $((SECONDS - start)) s" >&2; exit 1; }
within() { # MODE TEXT
  grep -qF "sinew-plant: no $2 (sinewd has stopped or hangs)" "$work/$1" || { cat "$work/$1" >&2; exit 1; }
}
within lockstep "answer from $endpoint within 2.5 s"  # a second is the time for a plan
within realtime "plan from $endpoint within 1.54 s"
within continuous "plan from $endpoint within 1.54 s"
echo "sinew-plant: noticed after $((SECONDS - start)) s that its daemon was gone"
