#!/usr/bin/env bash
# sinew-load against a sinewd of its own: every request is accounted for, and where twice and ten times as much is asked
# for as can be planned each session still gets its share. What is measured is printed, not judged.
#   test_load.sh BIN SOURCE
set -euo pipefail
BIN=$1 SOURCE=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-load.XXXXXX")
daemon=
trap '[ -z "$daemon" ] || kill -TERM "$daemon" 2>/dev/null || true; wait || true; rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAIL  $*" >&2; exit 1; }
# refused TEXT WORDS...: no success, and an error that has the text.
refused() {
  local text=$1
  shift
  if timeout 20 "$BIN/sinew-load" "$@" >out 2>error; then fail "not refused: $*"; fi
  grep -qF -- "$text" error || fail "$*: $(cat error)"
}

"$BIN/sinewd" --backend=cpu --endpoint="ipc://$work/s" --sessions=16 --tasks="$SOURCE/planner/tasks" --models="$SOURCE/physics/models" 2>log &
daemon=$!
"$BIN/sinewctl" --endpoint "ipc://$work/s" --timeout 20 health >/dev/null  # waits until the daemon listens

refused "'0': expected a number" --load 0
refused "expected numbers with commas between" --load '1;2'
refused "3 sessions want as many clients" --sessions 3 --clients 2
refused "no task 'nothing'" -e "ipc://$work/s" --task nothing --clients 1 --sessions 1
refused "horizn" -e "ipc://$work/s" --clients 1 --sessions 1 --set horizn=3
refused "expected a number from 1 to 4096" --clients 4294967298
refused "sessions" -e "ipc://$work/s" --clients 17 --sessions 17
refused "no answer from ipc://$work/none within 0.2 s: there is no such socket" -e "ipc://$work/none" --timeout 0.2
refused "--timeout '0': expected a number" --timeout 0

# Whether each session has had its share beyond what can be planned, where that can be told.
shared() {
  python3 - report.json <<'PYTHON'
import json, sys

report = json.load(open(sys.argv[1]))
if report["rate"] < 200:
    sys.exit(print(f"skipped: shares of sessions: {report['rate']:g} plans a second are too few to tell"))
for busy in report["stages"][1:]:
    if busy["planned"] < 10 * report["sessions"]:
        print(f"skipped: shares of sessions: {busy['planned']} plans beside other programs are too few to tell")
    elif not 0 < busy["most"] <= 5 * busy["least"]:
        sys.exit(f"sessions have unequal shares: {busy}")
PYTHON
}

# Where other programs stop the daemon for long, what is sent meanwhile may fill the queue of a client, and a second and a
# half has not the same for all: that is tried again.
fair=
for _ in 1 2 3 4 5; do
  if "$BIN/sinew-load" -e "ipc://$work/s" --clients 24 --sessions 16 --watch 5 --seconds 1.5 --load 0.1,2,10 --deadline 0.04 --json >report.json 2>error; then
    if shared; then fair=yes && break; fi
  else
    grep -q 'Resource temporarily unavailable' error || fail "$(cat error)"
  fi
done
[ "$fair" ] || fail "no load of five was shared among all"
"$BIN/sinewctl" --endpoint "ipc://$work/s" metrics >metrics
"$BIN/sinew-load" -e "ipc://$work/s" --clients 3 --sessions 2 --seconds 0.2 --load 0.5 --rate 60 >table 2>progress
cat report.json table
grep -q '^2 sessions of arm_reach, 3 clients' table || fail "the table's first line"
grep -q '^0.5 times 60 plans' progress || fail "progress"
python3 - report.json metrics <<'PYTHON'
import json, os, re, sys

report = json.load(open(sys.argv[1]))
assert report["rate"] > 0 and [s["load"] for s in report["stages"]] == [0.1, 2, 10]
for stage in report["stages"]:
    outcomes = [stage[name] for name in ("lost", "planned", "warm", "replaced", "refused", "watched")]
    assert sum(outcomes) == stage["requests"], stage
    assert (stage["lost"] == 0 or stage["load"] == 10) and stage["refused"] == 0, stage
    # As many as the clock says: of each client within one.
    asked = stage["requests"] - stage["watched"]
    assert abs(asked - stage["rate"] * stage["seconds"]) <= report["sessions"], stage
    assert 0 < stage["watched"] <= 8 * (5 * stage["seconds"] + 1), stage
    # Of all processors there are.
    busy = [stage[name] for name in ("planner_processors", "daemon_processors", "load_processors")]
    assert all(x > 0 for x in busy) and sum(busy) <= os.cpu_count() + 0.5, busy
    assert stage["replaced"] > 0 or stage["refusal_latency"]["p99"] is None, stage
    assert not stage["replaced"] or 0 < stage["refusal_latency"]["p50"] <= stage["replaced_latency"]["p50"], stage
    assert not stage["planned"] or stage["refined_iterations"] >= 1, stage
    assert not stage["planned"] or stage["latency"]["p50"] <= stage["latency"]["most"], stage
    # A request's latency has its delay; both are of the same requests where all of them are planned.
    assert not 0 < asked == stage["planned"] or stage["delay"]["p50"] <= stage["latency"]["p50"], stage
# Ten times as much may be more answers than sinewd keeps for a client that others have stopped for a moment: it counts them.
lost = sum(stage["lost"] for stage in report["stages"])
dropped = int(re.search(r"^sinew_replies_dropped_total (\d+)$", open(sys.argv[2]).read(), re.M)[1])
assert lost <= dropped, (lost, dropped)
for busy in report["stages"][1:] if report["rate"] >= 200 else []:
    assert busy["replaced"] > 0, busy
    # Who asks for more gets more, or half as much where the machine is busy with other things by then.
    assert 2 * busy["planned"] >= report["stages"][0]["planned"], busy
PYTHON
[ ! -s log ] || ! grep -qi error log || fail "$(cat log)"
# An answer is waited for beyond the deadline of its request, however long that is, and its latency is a column of its own.
"$BIN/sinew-load" -e "ipc://$work/s" --clients 1 --sessions 1 --seconds 1 --load 1 --rate 1 --deadline 2 --set adam_iterations=0 >table 2>progress
awk 'NF == 20 && $1 == 1 { found = $7 == 0 && $8 >= 1000 } END { exit !found }' table || fail "a long deadline: $(cat table)"
kill -TERM "$daemon"
wait "$daemon" || fail "sinewd ended with status $?"
daemon=

# A daemon that is no more is not asked for each session, with a wait each.
"$BIN/sinewd" --backend=cpu --endpoint="ipc://$work/s" --tasks="$SOURCE/planner/tasks" --models="$SOURCE/physics/models" --sessions=16 2>log &
daemon=$!
"$BIN/sinewctl" --endpoint "ipc://$work/s" --timeout 20 health >/dev/null
"$BIN/sinew-load" -e "ipc://$work/s" --clients 16 --sessions 16 --seconds 3 --load 1 --rate 16 --timeout 1.5 >table 2>error &
load=$!
for _ in $(seq 400); do ! grep -q '16 sessions open' error || break; sleep 0.05; done
kill -KILL "$daemon"
begun=$SECONDS
if wait "$load"; then fail "a daemon was killed, and the load did not fail"; fi
grep -qF "no answer from ipc://$work/s within 1.5 s" error && [ $((SECONDS - begun)) -lt 30 ] || fail "$((SECONDS - begun)) s after a daemon's end: $(cat error)"
wait "$daemon" || true
daemon=
