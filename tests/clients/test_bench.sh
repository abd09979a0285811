#!/usr/bin/env bash
# sinew-bench: its report as documented, on a small model. Ratios are measured elsewhere, on a quiet machine.
set -euo pipefail
BIN=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
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
"$BIN/sinew-bench" --help | grep -q Example
"$BIN/sinew-bench" step --help | grep -q Example
status() { "$@" >/dev/null 2>err || echo $?; }
[ "$(status "$BIN/sinew-bench" step --model nothere.xml)" = 3 ] && grep -q nothere.xml err
[ "$(status "$BIN/sinew-bench" walk)" = 3 ] && grep -q "no mode 'walk'" err
echo '<mujoco><option density="1"/></mujoco>' >fluid.xml
[ "$(status "$BIN/sinew-bench" step --model fluid.xml)" = 2 ] && grep -q density err
[ ! -e MUJOCO_LOG.TXT ]
echo "sinew-bench reports as documented"
