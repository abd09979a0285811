#!/usr/bin/env bash
# sinew-bench: its report as documented, on a small model. Ratios are measured elsewhere, on a quiet machine.
set -euo pipefail
BIN=$1
SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Ends the test where a chain of conditions does not hold: `set -e` looks at its last one alone.
fail() { echo "test_bench.sh:${BASH_LINENO[0]}: not as it should be" >&2; exit 1; }
cat >arm.xml <<'XML'
<mujoco><worldbody><body><joint name="j"/><geom size=".1" pos="0 0 -1"/></body></worldbody>
<actuator><motor joint="j" ctrlrange="-1 1"/></actuator></mujoco>
XML

"$BIN/sinew-bench" step --model arm.xml --steps 16 --rounds 3 --profile --json >out.json
python3 - <<'PY'
import json
out = json.load(open("out.json"))
assert out["steps"] == 16 and out["sinew_us"] > 0 and out["mujoco_us"] > 0, out
assert abs(out["ratio"] / (out["sinew_us"] / out["mujoco_us"]) - 1) < 0.5, out
assert out["sinew_stages_us"]["kinematics"] > 0 and "mujoco_timers_us" in out, out
PY
# Where the model asks MuJoCo for another solver than ours, that is said beside the figures.
sed 's|<mujoco>|<mujoco><option solver="PGS"/>|' arm.xml >pgs.xml
for words in step "step --worlds 1" "gradient --fd-samples 1" "batch --count 1"; do
  read -ra mode <<<"$words"
  "$BIN/sinew-bench" "${mode[@]}" --model pgs.xml --steps 2 --rounds 1 >text
  "$BIN/sinew-bench" "${mode[@]}" --model pgs.xml --steps 2 --rounds 1 --json >json
  grep -qxF "MuJoCo solves by PGS, as the model asks, sinew by Newton's method" text && grep -q '"mujoco_solver":.*"PGS"' json || fail
  "$BIN/sinew-bench" "${mode[@]}" --model arm.xml --steps 2 --rounds 1 >text
  if grep -q Newton text; then fail; fi
done
# Rollouts through the public header; the way back on demand.
"$BIN/sinew-bench" batch --model arm.xml --count 6 --steps 16 --rounds 3 --threads 2 --gradient --json >batch.json
python3 - <<'PY'
import json
out = json.load(open("batch.json"))
assert (out["count"], out["steps"], out["threads"], out["diverged"]) == (6, 16, 2, 0), out
for name in ("one_thread_ms", "sinew_ms", "mujoco_ms", "kept_ms", "vjp_ms"):
    assert out[name] > 0, out
for name in ("speedup", "ratio", "vjp_ratio"):
    assert 0 < out[name + "_range"][0] <= out[name] <= out[name + "_range"][1], out
PY
"$BIN/sinew-bench" batch --model arm.xml --count 2 --steps 4 --rounds 1 | grep -q "^MuJoCo's rollout on 2 threads"
# A closed loop on a task of this repository: the seed alone decides, whatever the threads.
for threads in 1 2; do
  "$BIN/sinew-bench" mpc --task arm_reach --planner sampling --samples 16 --set iterations=2 --cfd off --seconds 0.3 \
    --seed 3 --threads $threads --quiet --json >mpc$threads.json
done
python3 - <<'PY'
import json
a, b = (json.load(open(f"mpc{n}.json")) for n in (1, 2))
assert a["cost"] == b["cost"] and len(a["cost"]) == len(a["time"]) == a["plans"] + 1, a
assert a["plans"] == 4 and a["iterations"] == 2 and a["candidates"] == 16 and a["ms_per_plan"] > 0, a
assert a["cost_end"] < a["cost"][0] and not a["success"] and "hand_at_target" in a["measures"], a
assert a["settings"]["planner"] == "sampling" and a["settings"]["cfd"] == "none", a
PY
# Columns of a run: a line a sample, the positions last.
"$BIN/sinew-bench" mpc --task arm_reach --planner sampling --samples 4 --set iterations=1 --seconds 0.04 --quiet --data columns >text
if grep -w nan text; then fail; fi  # of one plan nothing jumps
[ "$(wc -l <columns)" = 10 ] && head -1 columns | grep -q '^time cost "hand_at_target" ctrl0 .* age jump qpos0 qpos1$' && awk 'NR > 1 && NF != 13 { exit 1 }' columns ||
  { cat columns >&2; exit 1; }
# A cost that no control reaches: said in words and in numbers.
printf 'model: arm_reach.xml\nterms: [{name: a, residual: {position: {body: world}}, target: 1}]\n' >still.yaml
"$BIN/sinew-bench" mpc --task ./still.yaml --planner adam --set horizon=20 --set adam_iterations=2 --seconds 0.02 --quiet >text
grep -q '^no progress: gradient norm 0, in 1 of 1 plans$' text || { cat text >&2; exit 1; }
"$BIN/sinew-bench" mpc --task ./still.yaml --planner sampling --set horizon=20 --set patience=3 --seconds 0.05 --execute 1 --quiet >text
grep -q '^no improvement for 10 of 10 plans, one after the other$' text || { cat text >&2; exit 1; }
# A task by its name, with the ending too, in a folder of tasks or in this one, and by its path.
cp "$SOURCE/planner/tasks/arm_reach.yaml" here.yaml
for task in arm_reach arm_reach.yaml here.yaml ./here.yaml "$PWD/here.yaml" "here --tasks ." "here.yaml --tasks ."; do
  read -ra words <<<"$task"
  "$BIN/sinew-bench" mpc --planner sampling --samples 4 --set iterations=1 --seconds 0.02 --quiet --json --task "${words[@]}" >task.json ||
    { echo "FAIL  --task $task" >&2; exit 1; }
done
if "$BIN/sinew-bench" mpc --task nowhere.yaml --seconds 0.02 --quiet 2>err; then exit 1; fi
grep -q '/share/sinew/tasks/nowhere.yaml:' err || { cat err >&2; exit 1; }
# By gradients, with contacts from distance.
for threads in 1 2; do
  "$BIN/sinew-bench" mpc --task arm_reach --planner adam --cfd on --set adam_iterations=16 --seconds 0.3 --seed 3 \
    --threads $threads --quiet --json >adam$threads.json
done
python3 - <<'PY'
import json
a, b, sampled = (json.load(open(f)) for f in ("adam1.json", "adam2.json", "mpc1.json"))
assert a["cost"] == b["cost"] and a["iterations"] == 16 and a["settings"]["cfd"] == "cfd", a
assert a["cost_end"] < sampled["cost_end"], (a["cost_end"], sampled["cost_end"])
PY
# A latency that is simulated: the seed alone decides. The rows before a plan's own are those that the body has applied
# meanwhile, so the planner knows where the body will be: on the same time step to rounding, with half of it nearly.
# Told of no latency it does not.
mpc() { # NAME OPTIONS...
  "$BIN/sinew-bench" mpc --task arm_reach --planner adam --set adam_iterations=4 --seconds 0.4 --seed 3 --execute 8 \
    --quiet --json "${@:2}" >"$1.json"
}
mpc late --latency 0.03 --threads 1
mpc again --latency 0.03 --threads 2
mpc fine --latency 0.03 --plant-timestep 0.0025
mpc unknown --latency 0.03 --plan-latency-told 0
mpc lockstep
mpc first --set adam_iterations=12 --later adam_iterations=2
"$BIN/sinew-bench" mpc --task arm_reach --later adam_iterations=-1 --seconds 0.2 --quiet >out 2>err && exit 1
grep -q 'adam_iterations' err || { cat err >&2; exit 1; }
python3 - <<'PY'
import json
late, again, fine, unknown, lockstep, first = (
    json.load(open(f"{n}.json")) for n in ("late", "again", "fine", "unknown", "lockstep", "first"))
assert late["cost"] == again["cost"] and late["latency"] == late["latency_told"] == 0.03, late
assert late["prediction_position"]["p99"] < 1e-12 and late["jump"]["p99"] > 0, late
assert len(fine["cost"]) == len(late["cost"]) == 11 and fine["plant_timestep"] == 0.0025 and late["plant_timestep"] == 0.005
assert 1e-12 < fine["prediction_position"]["p99"] < 0.01, fine
assert unknown["latency_told"] == 0 and unknown["prediction_position"]["p99"] > 1e-4, unknown
# All plans but the first have the later settings.
assert first["plans"] == 10 and abs(first["iterations"] - (12 + 9 * 2) / 10) < 1e-12, first
assert first["later"] == ["adam_iterations=2"] and late["later"] == [] and late["iterations"] == 4, first
assert lockstep["prediction_position"]["p99"] < 1e-12 and lockstep["cost_mean"] < late["cost_mean"], lockstep
PY
# Contacts of the body: the task's, or those of the file. A ball that falls tells them apart.
cat >fall.xml <<'XML'
<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="2 2 2"/>
  <body name="ball" pos="0 0 .11"><freejoint/><geom size=".1"/></body>
  <body pos="1 0 1"><joint name="j"/><geom size=".1"/></body></worldbody>
  <actuator><motor joint="j"/></actuator></mujoco>
XML
cat >fall.yaml <<'YAML'
model: fall.xml
plant: {solref: [0.2, 1]}
settings: {planner: sampling, horizon: 4, knots: 2, iterations: 1, candidates: 2}
terms: [{name: ball, residual: {position: {body: ball}}, weight: 1}]
YAML
for contacts in task model; do
  "$BIN/sinew-bench" mpc --task ./fall.yaml --models . --seconds 0.2 --contacts $contacts --quiet --json >fall-$contacts.json
done
sed '/^plant/d' fall.yaml >plain.yaml
"$BIN/sinew-bench" mpc --task ./plain.yaml --models . --seconds 0.2 --quiet --json >fall-plain.json
python3 - <<'PY'
import json
task, model, plain = (json.load(open(f"fall-{n}.json")) for n in ("task", "model", "plain"))
assert (task["contacts"], model["contacts"], plain["contacts"]) == ("task", "model", "model"), (task, model, plain)
assert model["cost_end"] == plain["cost_end"] > task["cost_end"] + 1e-4, (model, task)  # it sinks in more
assert task["prediction_position"]["p99"] > 1e-4 > model["prediction_position"]["p99"], (task, model)
PY
# A backend of its own, where this build has one: the host in place of a device, in double, makes the same plans.
if [ -e "$BIN/../lib/sinew/libsinew_emulator_double.so" ]; then
  # The host in place of a device says what it is, and every row has the figures of both sides.
  "$BIN/sinew-bench" device --model arm.xml --steps 8 --most 16 --seconds 3 --threads 2 --backend emulator_double \
    --backend-folder "$BIN/../lib/sinew" --json >wins.json
  python3 - <<'PY'
import json
out = json.load(open("wins.json"))
assert out["is_host"] is True and out["cpu_threads"] == [1, 2] and out["steps"] == 8, out
assert [x["what"] for x in out["measured"]] == ["steps", "gradients", "refinements"], out
for x in out["measured"]:
    assert [r["count"] for r in x["rows"]] == [1, 4, 16][: len(x["rows"])] and x["rows"], x
    for k, least in enumerate(x["device_wins_from"]):
        lost = [r["count"] for r in x["rows"] if not r["device_seconds"] < r["cpu_seconds"][k]]
        won = [r["count"] for r in x["rows"] if not lost or r["count"] > max(lost)]
        assert least == (won[0] if won else 0), x
PY
  "$BIN/sinew-bench" device --model arm.xml --steps 8 --most 4 --seconds 1 --backend emulator_double \
    --backend-folder "$BIN/../lib/sinew" | grep -q "none of the figures below is about a device"
  "$BIN/sinew-bench" mpc --task arm_reach --planner adam --cfd on --set adam_iterations=16 --seconds 0.3 --seed 3 \
    --backend emulator_double --backend-folder "$BIN/../lib/sinew" --quiet --json >device.json
  python3 - <<'PY'
import json
cpu, device = json.load(open("adam1.json")), json.load(open("device.json"))
assert (cpu["backend"], device["backend"]) == ("cpu", "emulator_double") and cpu["cost"] == device["cost"], device
PY
fi
# A comparison that was broken off goes on: cells that the file has are not run again, a torn line counts for nothing.
compare() { "$BIN/sinew-bench" compare --task arm_reach --only sampling-64,sampling-256 --seeds 2 --seconds 0.1 --plan-seconds 0.01 --out c.jsonl --picture c.png --quiet 2>err "$@"; }
compare >table
[ "$(wc -l <c.jsonl)" = 8 ] && [ "$(grep -c '^\(steps\|time\) ' table)" = 4 ] || fail
python3 - <<'PY'
import json
cells = {(x["mode"], x["cell"], x["seed"]): x["cost"] for x in map(json.loads, open("c.jsonl"))}
assert len(cells) == 8 and all(len(cost) > 1 for cost in cells.values()), cells.keys()
for mode, cell, seed in cells:
    assert seed == 1 or cells[mode, cell, 1][0] != cells[mode, cell, seed][0], (mode, cell, seed)  # another start
PY
# Where one of the seeds has diverged the mean over them ends in the picture, and their median costs infinity.
mkdir stub && printf '#!/bin/sh\ncp "$3" curves.txt\n' >stub/gnuplot && chmod +x stub/gnuplot
python3 - <<'PY'
import json
with open("d.jsonl", "w") as file:
    for cell in map(json.loads, open("c.jsonl")):
        if cell["seed"] == 2 and cell["cell"] == "sampling-64" and cell["mode"] == "steps":
            cell["time"], cell["cost"], cell["diverged"] = cell["time"][:1], cell["cost"][:1], True
        print(json.dumps(cell), file=file)
PY
PATH=$PWD/stub:$PATH compare --out d.jsonl --report >table
[ "$(grep -c '^steps  sampling-64 .* inf  *inf ' table)" = 1 ] && [ "$(grep -c inf table)" = 1 ] || fail
[ "$(sed -n '/equal steps, sampling-64/,/^$/p' curves.txt | grep -c '^[0-9]')" = 1 ] && [ "$(sed -n '/equal time, sampling-64/,/^$/p' curves.txt | grep -c '^[0-9]')" -gt 1 ] || fail
sed -i 2d c.jsonl
head -c 100 c.jsonl >>c.jsonl
cp c.jsonl before
compare >table
[ "$(wc -l <c.jsonl)" = 9 ] && cmp -n "$(stat -c %s before)" before c.jsonl || fail
compare --seconds 0.05 >table  # another duration: none of these cells
[ "$(wc -l <c.jsonl)" = 17 ]
# Those of a task or a model that was edited since are none either, nor those of other numbers of threads.
mkdir edited && sed 's/^model:.*/model: own.xml/' "$SOURCE/planner/tasks/cart_pole.yaml" >edited/own.yaml && cp "$SOURCE/physics/models/cart_pole.xml" edited/own.xml
compare() { "$BIN/sinew-bench" compare --task edited/own.yaml --models edited --only adam --seeds 1 --seconds 0.1 --plan-seconds 0.002 --out o.jsonl --picture o.png --quiet "$@" >table; }
compare --threads 1 && compare --threads 1 && [ "$(wc -l <o.jsonl)" = 2 ] || fail
compare --threads 2 && [ "$(wc -l <o.jsonl)" = 4 ] || fail
echo "# edited" >>edited/own.yaml && compare --threads 1 && [ "$(wc -l <o.jsonl)" = 6 ] || fail
sed -i 's/mass="[0-9.]*"/mass="0.7"/' edited/own.xml && compare --threads 1 && [ "$(wc -l <o.jsonl)" = 8 ] || fail
if command -v gnuplot >/dev/null; then [ -s c.png ]; else echo "skipped: the picture, gnuplot is not installed"; fi
# All planners that there are, at equal time alone: a row each in Markdown. Those of a script over several tasks.
compare() { "$BIN/sinew-bench" compare --task cart_pole --planners --seeds 1 --seconds 0.1 --execute 2 --equal time --out p.jsonl --picture p.png --quiet --markdown "$@" 2>err; }
if compare >rows; then exit 1; fi
grep -q "plan-seconds or --processor is needed" err
compare --plan-seconds 0.002 >rows
choices=$("$BIN/sinew-bench" compare --task cart_pole --planners --only guess --quiet 2>&1 | sed 's/.*none of //; s/, / /g' || true)
for planner in $choices; do grep -q "^| .cart_pole. | $planner | [01]/1 | [0-9.]* | " rows; done
[ "$(wc -l <rows)" = "$(($(wc -w <<<"$choices") + 2))" ] && grep -q " adam" <<<" $choices" || fail
# Cells of another time for a plan, and those of a planner with settings of its own under the same name, are not these.
compare --plan-seconds 0.003 --only adam >rows
"$BIN/sinew-bench" compare --task cart_pole --only adam --seeds 1 --seconds 0.1 --execute 2 --equal time --plan-seconds 0.003 \
  --out p.jsonl --picture p.png --quiet >table 2>err
[ "$(grep -c '"cell":"adam"' p.jsonl)" = 3 ] && [ "$(grep -c '"own":"planner=adam cfd=none"' p.jsonl)" = 1 ] || fail
SINEW_BENCH="$BIN/sinew-bench" "$SOURCE/clients/scripts/planners.sh" --quick "$PWD/planners" >rows
[ "$(grep -c '^| .cart_pole. | ' rows)" = 2 ] && cmp rows planners/table.md || fail
# By processor time its runs are those of their seeds; none is run again, and their work stands in the file.
processor() { SINEW_BENCH="$BIN/sinew-bench" "$SOURCE/clients/scripts/planners.sh" --processor --only adam,sampling --seeds 1 --tasks cart_pole:0.2:1:4 "$PWD/work" 2>err; }
processor >rows && cp work/cart_pole.jsonl before && processor >again && cmp rows again && cmp before work/cart_pole.jsonl || fail
[ "$(wc -l <work/table.csv)" = 3 ] && [ "$(wc -l <rows)" = 4 ] || fail
python3 - <<'PY'
import json
runs = {x["cell"]: x for x in map(json.loads, open("work/cart_pole.jsonl"))}
assert runs["adam"]["work"] == "adam_iterations=16" and runs["adam"]["iterations"] == 16, runs["adam"]["work"]  # its own planner
name, value = runs["sampling"]["work"].split("=")
assert name == "candidates" and int(value) == runs["sampling"]["candidates"] > 0 and runs["sampling"]["iterations"] == 4, value
PY
# At equal processor time planners that differ by their candidates alone are one; a report of the file runs nothing.
compare() { "$BIN/sinew-bench" compare --task cart_pole --seeds 1 --seconds 0.1 --execute 4 --processor --only sampling-64,sampling-256,hybrid,ilqg --out w.jsonl --picture w.png --quiet --markdown "$@" 2>err; }
compare >rows && [ "$(wc -l <w.jsonl)" = 7 ] && [ "$(grep -c "equal time" rows)" = 3 ] || fail
grep -q '"work":"candidates=[0-9]* hybrid_gradients=[0-9]*"' w.jsonl && grep -q '"work":"ilqg_iterations=[0-9]*"' w.jsonl || fail
sed -i 3d w.jsonl && compare --report >again && [ "$(wc -l <w.jsonl)" = 6 ] && [ "$(wc -l <again)" = 8 ] || fail
compare --only sampling-256 --equal time >again && [ "$(wc -l <w.jsonl)" = 6 ] && grep -q "| sampling | " again || fail  # sampling-64's
if compare --seconds 0.2 --report >again; then fail; fi
grep -q "no cell of this comparison" err
if compare --seconds 0.02 >again; then fail; fi
grep -q "a tenth of --seconds 0.02 has no plan" err

"$BIN/sinew-bench" gradient --model arm.xml --steps 16 --rounds 3 --json >gradient.json
"$BIN/sinew-bench" gradient --model arm.xml --steps 16 --rounds 3 --cfd on --method products --threads 2 --json >other.json
python3 - <<'PY'
import json
out, other = json.load(open("gradient.json")), json.load(open("other.json"))
for x in out, other:
    assert x["steps"] == 16 and x["status"] == "done" and x["norm"] > 0, x
    for key in "rollout_ms", "gradient_ms", "gradient_over_rollout", "mujoco_rollout_ms", "mujoco_fd_ms", "fd_over_gradient":
        assert x[key] > 0, (key, x)
assert (out["threads"], out["cfd"], out["method"]) == (1, "off", "sweep"), out
assert (other["threads"], other["cfd"], other["method"]) == (2, "on", "products"), other
assert abs(out["norm"] / other["norm"] - 1) < 1e-6, (out, other)  # nothing to touch: distance changes nothing
PY
# A ball that is tossed onto a plane by chosen steps.
cat >ball.xml <<'XML'
<mujoco><option gravity="0 0 -2"/><worldbody><geom type="plane" size="5 5 .1"/>
<body><freejoint/><geom size=".05"/></body></worldbody></mujoco>
XML
"$BIN/sinew-bench" integrate --model ball.xml --seconds 0.5 --rounds 2 --json >integrate.json
"$BIN/sinew-bench" integrate --model ball.xml --seconds 0.05 --method bosh3 --rounds 1 | grep -q "bosh3, 0.05 s" || fail
[ "$("$BIN/sinew-bench" integrate --model arm.xml 2>&1 >/dev/null | grep -c "not free")" = 1 ] || fail
[ "$("$BIN/sinew-bench" integrate --model ball.xml --method rk4 2>&1 >/dev/null | grep -c "dopri8 is wanted")" = 1 ] || fail
python3 - <<'PY'
import json
out = json.load(open("integrate.json"))
rows = out["rows"]
assert out["method"] == "tsit5" and [round(1 / x["tolerance"]) for x in rows] == [10**k for k in range(3, 11)], out
assert all(x["accepted"] > 0 and x["value_ms"] > 0 and x["value_and_gradient_ms"] > 0 for x in rows), out
assert rows[-1]["accepted"] > rows[0]["accepted"] and rows[-1]["value_error"] < 1e-8, out
assert abs(abs(rows[-1]["value"] - out["reference_value"]) - rows[-1]["value_error"]) < 1e-12, out
PY
# Many gradients at once by every method, and many worlds, on a backend.
"$BIN/sinew-bench" gradient --model arm.xml --steps 16 --rounds 3 --backend cpu --items 1,3 --json >items.json
"$BIN/sinew-bench" step --model arm.xml --steps 16 --rounds 2 --backend cpu --worlds 1,8 --json >worlds.json
"$BIN/sinew-bench" gradient --model arm.xml --steps 16 --rounds 3 --backend cpu --items 2 --json >null.json
python3 - <<'PY'
import json
assert all(x["over_one"] is None for x in json.load(open("null.json"))["items"])  # one was not asked for: no number
out = json.load(open("items.json"))
methods = [x["method"] for x in out["items"]]
assert methods[:4] == ["sweep", "sweep", "products", "products"], methods
for x in out["items"]:
    assert x["done"] == x["items"] in (1, 3) and x["ms"] > 0, x
    assert abs(x["ms_an_item"] * x["items"] / x["ms"] - 1) < 1e-9 and (x["over_one"] == 1) == (x["items"] == 1), x
out = json.load(open("worlds.json"))
assert out["backend"] == "cpu" and out["device"].startswith("cpu, ") and out["steps"] == 16, out
assert [x["worlds"] for x in out["rows"]] == [1, 8], out
for x in out["rows"]:
    assert x["diverged"] == 0 and x["mujoco_steps_per_s"] > 0, x
    assert 0 < x["steps_per_s_low"] <= x["steps_per_s"] <= x["steps_per_s_high"] and x["seconds"] > 0, x
PY
# Refinements: of sessions, of starts, and the same within a planner.
"$BIN/sinew-bench" refine --task arm_reach --steps 16 --iterations 3 --rounds 2 --sessions 1,2 --starts 1,2 --json >refine.json
python3 - <<'PY'
import json
out = json.load(open("refine.json"))
assert [(x["sessions"], x["starts"]) for x in out["rows"]] == [(1, 1), (2, 1), (1, 2)], out
for x in out["rows"]:
    assert 0 < x["ms_low"] <= x["ms_an_iteration"] <= x["ms_high"], x
    assert (x["over_one"] == 1) == (x["sessions"] * x["starts"] == 1), x
assert out["plan_ms"] > 0 and out["cost"] == out["plan_cost"] < out["cost_before"], out
PY
# The memory of worlds that grow, in a heap of boxes that fall on each other.
{
  echo '<mujoco><worldbody><geom type="plane" size="5 5 1"/>'
  for i in 1 2 3 4 5 6 7 8; do
    echo "<body pos='0 .0$i .$i'><freejoint/><geom type='box' size='.1 .1 .05'/></body>"
  done
  echo '</worldbody></mujoco>'
} >heap.xml
"$BIN/sinew-bench" memory --model heap.xml --worlds 20 --steps 60 --json >memory.json
"$BIN/sinew-bench" memory --model heap.xml --worlds 2 --steps 2 | grep -q "grown on demand"
python3 - <<'PY'
import json
out = json.load(open("memory.json"))
whole, growing, mujoco = out["whole"], out["growing"], out["mujoco"]
assert (out["worlds"], out["steps"], whole["grown"]) == (20, 60, 0), out
assert growing["grown"] > 0 and 24 < growing["contacts"] < whole["contacts"] and growing["rows"] < whole["rows"], out
assert 0 < growing["bytes"] < 0.5 * whole["bytes"] and mujoco["bytes"] > 0, out
assert abs(out["ratio"] / (growing["resident_bytes"] / whole["resident_bytes"]) - 1) < 1e-9, out
PY
"$BIN/sinew-bench" --help | grep -q Example
"$BIN/sinew-bench" step --help | grep -q Example
"$BIN/sinew-bench" gradient --help | grep -q Example
"$BIN/sinew-bench" refine --help | grep -q Example
"$BIN/sinew-bench" memory --help | grep -q Example
status() { "$@" >/dev/null 2>err || echo $?; }
[ "$(status "$BIN/sinew-bench" step --model nothere.xml)" = 3 ] && grep -q nothere.xml err || fail
[ "$(status "$BIN/sinew-bench" memory --model nothere.xml)" = 3 ] && grep -q nothere.xml err || fail
[ "$(status "$BIN/sinew-bench" mpc --task nothere)" = 3 ] && grep -q nothere.yaml err || fail
[ "$(status "$BIN/sinew-bench" mpc --task arm_reach --planner guess)" = 3 ] && grep -q "allowed" err || fail
[ "$(status "$BIN/sinew-bench" mpc --task arm_reach --cfd perhaps)" = 3 ] && grep -q "on or off" err || fail
[ "$(status "$BIN/sinew-bench" mpc --task arm_reach --contacts soft)" = 3 ] && grep -q "task or model" err || fail
[ "$(status "$BIN/sinew-bench" mpc --task arm_reach --latency -1)" = 3 ] && grep -q "seconds from 0 to 10000" err || fail
[ "$(status "$BIN/sinew-bench" mpc --task arm_reach --latency 100)" = 3 ] && grep -q "latency" err || fail
[ "$(status "$BIN/sinew-bench" compare --task arm_reach --only guess)" = 3 ] && grep -q "none of adam" err || fail
[ "$(status "$BIN/sinew-bench" compare --task arm_reach --only adam,sampling-65,ilqg)" = 3 ] && grep -q "'sampling-65' is none of adam" err || fail
scripts=$SOURCE/clients/scripts build=$(dirname "$BIN")
[ "$(status "$scripts/planners.sh" --tasks arm_reach,guess "$PWD/none")" = 2 ] && grep -q "guess is none of arm_reach cart_pole" err && [ ! -e none ] || fail
[ "$(status "$BIN/sinew-bench" compare --task arm_reach --quick --picture x.pdf)" = 3 ] && grep -q "x.pdf: a name that ends with" err || fail
[ "$(status "$SOURCE/clients/demo.sh" --picture x.pdf)" = 2 ] && grep -q "x.pdf: a name that ends with" err || fail
[ "$(status "$SOURCE/clients/demo.sh" --seeds 2)" = 2 ] && grep -q -- "--seeds is no option" err || fail
[ "$(status "$scripts/realtime.sh" "$build" --tasks guess)" = 1 ] && grep -q "guess is none of hand_balls_realtime" err || fail
[ "$(status "$scripts/realtime.sh" "$build" --seeds)" = 1 ] && grep -q -- "--seeds needs a value" err || fail
[ "$(status "$scripts/figure10.sh" --tasks guess "$PWD/none")" -ge 1 ] && [ ! -e none ] || fail
"$scripts/figure10.sh" --help | grep -q "figure 10 of the paper" && "$scripts/gallery.sh" --help | grep -q "four moments" || fail
"$scripts/realtime.sh" --help | grep -q "sinewd of their own"
[ "$(status "$BIN/sinew-bench" step --model arm.xml --backend nothere --worlds 1)" = 3 ] && grep -q nothere err || fail
[ "$(status "$BIN/sinew-bench" step --model arm.xml --worlds 1,x)" = 3 ] && grep -q "apart by commas" err || fail
[ "$(status "$BIN/sinew-bench" gradient --model arm.xml --method guess)" = 3 ] && grep -q "sweep|products" err || fail
[ "$(status "$BIN/sinew-bench" mpc --task arm_reach --device -1)" = 3 ] && grep -q "from 0" err || fail
# Numbers that an int does not hold are refused, not cut down to others; so is a seed that is none.
[ "$(status "$BIN/sinew-bench" step --model arm.xml --steps 4294967297)" = 3 ] && grep -q "'4294967297': expected a number from 1 to 100000" err || fail
[ "$(status "$BIN/sinew-bench" mpc --task arm_reach --device 4294967296)" = 3 ] && grep -q "from 0 to 999" err || fail
for seed in "" 99999999999999999999 -1; do
  [ "$(status "$BIN/sinew-bench" step --model arm.xml --steps 1 --rounds 1 --seed "$seed")" = 3 ] && grep -q "expected a number from 0" err || fail
done
[ "$(status "$BIN/sinew-bench" sweep --task billiard --velocity cue_ball:6)" = 3 ] && grep -q "a dof from 0 to 5" err || fail
# Nothing that is asked for is left out silently.
[ "$(status "$BIN/sinew-bench" step --model arm.xml --worlds 1 --jacobians)" = 3 ] && grep -q "without --worlds" err || fail
[ "$(status "$BIN/sinew-bench" step --model arm.xml --threads 2)" = 3 ] && grep -q "needs --worlds" err || fail
[ "$(status "$BIN/sinew-bench" device --model arm.xml --rounds 2)" = 3 ] && grep -q "as many as --seconds allow" err || fail
# -j is JSON in every mode; a model that is not there is named once; what was not measured is not printed as a number.
"$BIN/sinew-bench" step --model arm.xml --steps 2 --rounds 1 -j | python3 -m json.tool >/dev/null
[ "$(status "$BIN/sinew-bench" step --model nothere.xml)" = 3 ] && [ "$(grep -o "^sinew-bench: nothere.xml: [^:]*" err)" = "sinew-bench: nothere.xml: MuJoCo cannot load it" ] || fail
echo '<mujoco/>' >nothing
[ "$(status "$BIN/sinew-bench" gradient --model nothing)" = 3 ] && grep -qx "sinew-bench: nothing: nothing in the model moves" err || fail
"$BIN/sinew-bench" refine --task arm_reach --sessions 2 --starts 1 --iterations 1 --rounds 1 --steps 16 >text
grep -q "an iteration; cost [0-9.]*$" text || { cat text >&2; exit 1; }
# Lines of a comparison may go down a pipe, which is not read, and where they cannot be written it fails: here files may
# have no bytes.
compare() { timeout 60 "$BIN/sinew-bench" compare --task arm_reach --set adam_iterations=1 --quick --only adam --equal steps --picture none.png --quiet --out "$@"; }
# Cells of other threads are others: they take other times.
for threads in 1 2 1; do
  compare threads.jsonl --threads $threads >/dev/null 2>&1
done
[ "$(wc -l <threads.jsonl)" = 2 ] || fail
compare threads.jsonl --report >/dev/null 2>&1
[ "$(status compare threads.jsonl --report --threads 3)" = 3 ] && grep -q "has no cell" err || fail
mkfifo pipe
cat pipe >lines &
compare pipe >/dev/null 2>&1
wait $!
[ "$(wc -l <lines)" = 1 ] && python3 -m json.tool lines >/dev/null || fail
told=$(trap '' XFSZ; ulimit -f 0; compare full.jsonl 2>&1 >/dev/null || echo "status $?")
[ "$told" = $'sinew-bench: full.jsonl: File too large\nstatus 3' ] || { echo "$told" >&2; exit 1; }
[ "$(status "$BIN/sinew-bench" walk)" = 3 ] && grep -q "no mode 'walk'" err || fail
echo '<mujoco><option integrator="discrete" noslip_iterations="1"/></mujoco>' >refused.xml
[ "$(status "$BIN/sinew-bench" step --model refused.xml)" = 2 ] && grep -q discrete err || fail
[ ! -e MUJOCO_LOG.TXT ]
echo "sinew-bench reports as documented"
