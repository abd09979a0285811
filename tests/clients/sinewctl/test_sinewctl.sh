#!/usr/bin/env bash
# sinewctl: every request of the daemon from a shell, as text and as JSON; errors as JSON too, with status 1.
#   test_sinewctl.sh BIN SOURCE
set -euo pipefail
BIN=$1 SOURCE=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-ctl.XXXXXX")
endpoint=ipc://$work/sinewd.sock
# Sessions last as long as this takes, though each request comes from a client of its own.
"$BIN/sinewd" --backend=cpu --endpoint="$endpoint" --orphan-seconds=3000 --tasks="$SOURCE/planner/tasks" --models="$SOURCE/physics/models" 2>"$work/log" &
daemon=$!
trap 'kill -TERM "$daemon" 2>/dev/null || true; wait "$daemon" || true; rm -rf "$work"' EXIT
ctl() { "$BIN/sinewctl" --endpoint "$endpoint" "$@"; }

# check EXPRESSION WORDS...: the reply r in JSON fulfils the Python expression.
check() {
  local expression=$1
  shift
  ctl --json "$@" >"$work/out" || { echo "FAIL  $*: $(cat "$work/out")" >&2; exit 1; }
  python3 -c "import json; r = json.load(open('$work/out')); assert $expression, r" || { echo "FAIL  $*" >&2; exit 1; }
}
# refused TEXT WORDS...: status 1, and an error in JSON that has the text.
refused() {
  local text=$1
  shift
  if ctl --json "$@" >"$work/out"; then echo "FAIL  not refused: $*" >&2; exit 1; fi
  TEXT=$text python3 -c "import json, os; r = json.load(open('$work/out')); assert os.environ['TEXT'] in r['error'], r"
}

check 'r["protocol"] == 1 and "sampling" in r["planners"] and r["backends"] == ["cpu"]' hello
check 'r["state"] == "READY"' health
for words in hello --help --usage; do
  ! ctl $words >/dev/full 2>"$work/err" && grep -q 'the output could not be written: No space left' "$work/err" || { cat "$work/err"; exit 1; }
done
check '"sinew_uptime_seconds" in r["text"]' metrics
ctl metrics >"$work/metrics" && grep -q '^# TYPE sinew_plan_seconds histogram$' "$work/metrics"
check '"arm_reach" in [m["name"] for m in r["models"]]' models
began=$(date +%s.%N)
ctl --json load arm_reach >"$work/out"
ended=$(date +%s.%N)
python3 -c "
import json; r = json.load(open('$work/out'))
assert r['model'] == 'arm_reach' and 0 < r['seconds'] < $ended - $began, (r, $ended - $began)"
check '[m["loaded"] for m in r["models"] if m["name"] == "arm_reach"] == [True]' models
check 'r["nu"] == 6 and r["ctrl"][0]["unit"]' model arm_reach
check '"arm_reach" in [t["name"] for t in r["tasks"]]' tasks
check 'r["terms"] and r["measures"] and r["settings"]["candidates"] > 0' task arm_reach
check 'r["session"] > 0 and r["config"]["planner"]["candidates"] == 16' --seed 3 open arm_reach candidates=16 iterations=2 lease=3000
session=$(python3 -c "import json; r = json.load(open('$work/out')); json.dump(r['initial'], open('$work/state', 'w')); print(r['session'])")
check 'len(r["ctrl"]) == 6 * r["steps"] and len(r["states"]["time"]) == r["steps"] + 1' --deadline 5 --states plan "$session" "$work/state"
python3 -c "
import json; s = json.load(open('$work/state')); s['act'] = None
json.dump({'state': s, 'iterations': 1, 'deadline': 5}, open('$work/plan', 'w'))
json.dump({'state': s, 'ctrl': [0.5] * 12}, open('$work/evaluate', 'w'))"
check 'r["iterations"] == 1 and r["act_estimated"]' plan "$session" - <"$work/plan"
ctl --json --seconds 20 trace "$session" >"$work/trace" &
tracer=$!
until ctl --json --deadline 5 plan "$session" "$work/plan" >/dev/null && ! kill -0 $tracer 2>/dev/null; do sleep 0.1; done
wait $tracer
python3 -c "
import json; r = json.load(open('$work/trace')); print(r)
assert 0 <= r['taken'] <= r['turn'] <= r['began'] <= r['ended'] <= r['packed'] <= r['sent'] and r['iterations'] == 1, r"
refused 'plans did not come within 0.1 s' --seconds 0.1 trace "$session"
refused 'no session 5' trace 5
! ctl trace 5 2>"$work/err" && grep -q '^sinewctl: no session 5;' "$work/err" || { cat "$work/err"; exit 1; }
refused 'terms of the cost are changed by tune, once the session is open' open arm_reach reach.weight=1
check 'r["cost"] > 0 and len(r["states"]["time"]) == 3 and "gradient" not in r' --states evaluate "$session" "$work/evaluate"
check 'len(r["gradient"]["ctrl"]) == 12 and any(r["gradient"]["ctrl"])' --gradient evaluate "$session" "$work/evaluate"
check 'r["version"] == 2 and r["terms"][0]["weight"] == 2.5 and r["planner"]["candidates"] == 8' \
  tune "$session" candidates=8 time_to_live=0.5 reach.weight=2.5
check 'r["session"]["time_to_live"] == 0.5 and r["table"]' config "$session"
check 'r["version"] == 1 and r["terms"][0]["weight"] == 1 and r["oldest"] == 1' --version 1 config "$session"
check 'r["version"] == 3 and r["reverted_to"] == 1 and r["terms"][0]["weight"] == 1 and r["planner"]["candidates"] == 16' revert "$session" 1
check 'r["version"] == 4 and r["planner"]["candidates"] == 8' revert "$session" 2
check 'r["plans"] >= 2 and len(r["sessions"]) == 1 and r["sessions"][0]["backend"] == "cpu" and "device" not in r' stats "$session"
check 'r["initial"]["qpos"]' --seed 4 reset "$session"
cp "$work/out" "$work/four"
check 'r["initial"] != json.load(open("'"$work/four"'"))["initial"]' --seed 5 reset "$session"
check 'r["initial"] == json.load(open("'"$work/four"'"))["initial"]' --seed 4 reset "$session"

check 'r["warning"] == ""' config "$session"
check 'r["session"] > 0' open billiard lease=3000
other=$(python3 -c "import json; print(json.load(open('$work/out'))['session'])")
check '"the impedance jumps by 0.49" in r["warning"]' tune "$other" cfd=cfd cfd_touch=0.5
refused 'candidates: expected a whole number' tune "$session" candidates=8x
refused "; did you mean 'candidates'?" tune "$session" candidats=8
refused "no term 'nosuch'" tune "$session" nosuch.weight=1
refused "no term 'reech', it has reach, speed, effort, smooth; did you mean 'reach'?" tune "$session" reech.weight=1
refused "did you mean 'arm_reach'?" open arm_reech
refused 'in use' unload arm_reach
refused 'no version 9; versions 1 to 4 are kept' revert "$session" 9
refused 'no version 9' --version 9 config "$session"
refused 'expected the number of a version' revert "$session" old
echo 'qpos = 1' >"$work/text"
refused "$work/text:1:1: 'qpos = 1' is not JSON" plan "$session" "$work/text"
printf '{"qpos": [1,\n  NaN]}' >"$work/nan"
refused "$work/nan:2:3: 'NaN]}' is not JSON; expected an object, PlanRequest or its state: {" plan "$session" "$work/nan"
refused 'standard input:1:1: the end is not JSON; expected an object, EvaluateRequest or' evaluate "$session" </dev/null
refused 'standard input:2:1: the end is not JSON' plan "$session" - <<<'{"qpos": [1'
refused 'standard input: expected an object, PlanRequest or its state' plan "$session" <<<'[1, 2]'
refused "cannot read $work/nothing: No such file" plan "$session" "$work/nothing"
refused "cannot read $work: Is a directory" plan "$session" "$work"
refused 'expected the number of a session' config 7x
refused 'SESSION' close
refused "there is no 'healht'; there are hello, health, " healht
refused "; did you mean 'health'?" healht
refused 'lease, time_to_live, and of a term of the cost TERM.weight, ' tune "$session" leese=1
refused "; did you mean 'lease'?" open arm_reach leese=1
refused "adam_rate: -1 is out of bounds, allowed is 1e-09 to 10" tune "$session" adam_rate=-1
refused "adam_rate: 1e+11 is out of bounds, allowed is 1e-09 to 10" tune "$session" adam_rate=1e11
refused "planner: '' is unknown, allowed is sampling|adam" tune "$session" planner=
refused "lease: 0 is out of bounds, allowed is 0.1 to 3600 s, lease_seconds of sinewd" tune "$session" lease=0
refused "lease: 1e+09 is out of bounds, allowed is 0.1 to 3600 s, lease_seconds of sinewd" tune "$session" lease=1e9
refused "weight of 'reach': 5e+12 is out of bounds, allowed is 0 to 1e+09" tune "$session" reach.weight=5e12
refused "it is a folder" flight "$work"
refused "cannot connect to 'tcp://localhost:99999': expected ipc://PATH or tcp://HOST:PORT" --endpoint tcp://localhost:99999 hello
# What an option may be is said before anything is asked: status 64.
wrong() {
  local text=$1 status=0
  shift
  ctl "$@" >/dev/null 2>"$work/err" || status=$?
  [ $status = 64 ] && grep -qF -- "$text" "$work/err" || { echo "FAIL  $*: status $status, $(cat "$work/err")" >&2; exit 1; }
}
wrong "--name '': expected a name" --name= open arm_reach
wrong "--seconds '-1': expected a number of seconds, above 0" --seconds -1 watch "$session"
wrong "--interval '0': expected a number of seconds, above 0" --interval 0 watch "$session"
wrong "--timeout 'nan': expected a number of seconds, above 0" --timeout nan hello
wrong "--deadline '-1': expected a number of seconds, at least 0" --deadline -1 plan "$session" "$work/state"
wrong "--count '0': expected a whole number from 1 on" --count 0 watch "$session"
wrong "--seed '3x': expected a whole number from 0 on" --seed 3x open arm_reach
refused 'within 0.2 s: there is no such socket; does sinewd run?' --endpoint "ipc://$work/nobody" --timeout 0.2 health

# A live view: JSON lines, lines for a dumb terminal, a picture for any other; by telemetry and by requests.
ctl --json watch "$session" --count 3 >"$work/watch"
python3 -c "
import json; r = [json.loads(line) for line in open('$work/watch')]
assert len(r) == 3 and r[0]['session'] == $session and r[2]['time'] > r[0]['time'], r
assert r[2]['cost'] > 0 and r[2]['plans_per_second'] == 0 and r[2]['config_version'] == 4 and r[2]['best_cost'] is None, r
assert r[2]['backend'] == 'cpu' and not r[2]['device_lost'], r"
TERM=dumb ctl watch "$session" --seconds 0.3 --interval 0.1 >"$work/watch"
grep -c '^ .* 4  cpu$' "$work/watch" >/dev/null && grep -q 'iter/s' "$work/watch" || { cat "$work/watch"; exit 1; }
if command -v script >/dev/null; then
  TERM=xterm script -qc "$BIN/sinewctl --endpoint $endpoint watch $session --count 2" /dev/null >"$work/watch"
  grep -q 'gradient norm' "$work/watch" || { cat "$work/watch"; exit 1; }
else
  echo "skipped: watch on a terminal, script is not installed"
fi
# Before the first plan there are no cost and no latency: a dash for people, null in JSON.
check '[r["sessions"][0][name] for name in ("cost", "plan_age", "latency_p50", "latency_p99")] == [None] * 4' stats "$other"
TERM=dumb ctl watch "$other" --count 1 >"$work/watch"
grep -qE '^ +[0-9.]+ +- +- +- +- +- +- +0 +2  cpu$' "$work/watch" || { cat "$work/watch"; exit 1; }
# A cost that does not fall: of eleven plans without noise.
check 'r["session"] > 0' open arm_reach planner=sampling candidates=1 iterations=1 lease=3000
third=$(python3 -c "import json; r = json.load(open('$work/out')); json.dump(r['initial'], open('$work/state', 'w')); print(r['session'])")
for k in 1 2 3 4 5 6 7 8 9 10 11; do check "r['unimproved'] == $k" --deadline 60 plan "$third" "$work/state"; done
ctl --json watch "$third" --count 1 >"$work/watch"
python3 -c "import json; r = json.load(open('$work/watch')); assert r['unimproved'] == 11 and not r['stuck'], r"
TERM=dumb ctl watch "$third" --count 1 >"$work/watch"
grep -q '  cpu, no improvement for 11 plans$' "$work/watch" || { cat "$work/watch"; exit 1; }
# From the plan on that the session's settings say, also when they change while somebody watches.
awaited() {
  for _ in $(seq 1200); do ! grep -q "$1" "$work/watch" || return 0; sleep 0.05; done
  echo "no line '$1' of watch:"; cat "$work/watch"; return 1
}
: >"$work/watch"
TERM=dumb ctl watch "$third" --seconds 600 --interval 0.05 >"$work/watch" &
watching=$!
awaited ' 1  cpu, no improvement for 11 plans$'
check "r['version'] == 2" tune "$third" patience=12
awaited ' 2  cpu$'
check "r['version'] == 3" tune "$third" patience=11
awaited ' 3  cpu, no improvement for 11 plans$'
check "r['version'] == 4" tune "$third" patience=0
awaited ' 4  cpu$'
check 'r == {}' close "$third"
wait "$watching"
grep -q "^session $third has ended$" "$work/watch" || { cat "$work/watch"; exit 1; }
refused 'no session 123' watch 123
refused 'expected the number of a session' watch x

check 'r == {}' close "$session"
refused "no session $session" config "$session"
# The planner lets go of the model soon after the session was closed, at a time of its own.
for _ in $(seq 1000); do
  ! ctl --json unload arm_reach >"$work/out" || break
  sleep 0.05
done
[ "$(cat "$work/out")" = "{}" ] || { echo "FAIL  unload: $(cat "$work/out")" >&2; exit 1; }
ctl tasks | grep 'name: arm_reach' >/dev/null
ctl --help >"$work/help"
grep -q 'Example' "$work/help" && grep -q '^Exit status: 0; 1 ' "$work/help"
# The texts of commands stay in their column.
sed -n '/^Commands:/,/^$/p' "$work/help" | sed 1d | grep -vE '^  [a-z]|^ {33}[^ ]|^$' && { echo "FAIL  --help" >&2; exit 1; }
echo "sinewctl: every request, as documented"
