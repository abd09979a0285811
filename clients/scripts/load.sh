#!/usr/bin/env bash
# What a sinewd stands: sinew-load against one of its own, as a table and a picture over the load. It wants a quiet machine.
#
#   clients/scripts/load.sh BUILD [--picture FILE] [--json FILE] [OPTION...]
#
# BUILD has bin/sinewd and bin/sinew-load; further options are those of sinew-load. Without them: 256 clients, 64 sessions,
# 0.1 to 10 times what can be planned, 10 s each, about a minute and a half. Pictures want gnuplot.
set -euo pipefail
# shellcheck source=clients/scripts/own_daemon.sh
. "$(dirname "$0")/own_daemon.sh"
shift
picture="" json="" options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit ;;
    --picture | --json)
      [ $# -gt 1 ] || { echo "load.sh: $1 needs a value" >&2; exit 1; }
      printf -v "${1#--}" %s "$(realpath -m "$2")"
      shift ;;
    *) options+=("$1") ;;
  esac
  shift
done

"$BUILD/bin/sinewd" --backend=cpu --endpoint="ipc://$work/s" --sessions=1024 --connections=4200 --log=warning \
  --tasks="$SOURCE/planner/tasks" --models="$SOURCE/physics/models" &
daemon=$!
"$BUILD/bin/sinew-load" -e "ipc://$work/s" --load 0.1,0.3,0.5,1,2,5,10 "${options[@]}" --json >"$work/report.json"
[ -z "$json" ] || cp "$work/report.json" "$json"
python3 - "$work/report.json" >"$work/data" <<'PYTHON'
import json, sys

report = json.load(open(sys.argv[1]))
print(f"{report['sessions']} sessions, {report['clients']} clients, {report['rate']:.0f} plans a second can be made", file=sys.stderr)
print("| load | asked [1/s] | refined [1/s] | iterations | no time to refine [1/s] | p50 [ms] | p99 [ms] | late | most over least of a session | refusals p99 [ms] | watchers p99 [ms] |", file=sys.stderr)
print("| --- " * 11 + "|", file=sys.stderr)
for s in report["stages"]:
    planned, warm, latency = s["planned"] / s["seconds"], s["warm"] / s["seconds"], s["latency"]
    ms = [1e3 * x if x is not None else float("nan") for x in (latency["p50"], latency["p99"], s["refusal_latency"]["p99"], s["watched_latency"]["p99"])]
    share = s["most"] / s["least"] if s["least"] else float("inf")
    late = s["late"] / max(1, s["planned"])
    refusals = f"{ms[2]:.2f}" if s["refusal_latency"]["p99"] is not None else "none"
    print(f"| {s['load']:g} | {s['rate']:.0f} | {planned:.0f} | {s['refined_iterations'] or 0:.1f} | {warm:.1f} | {ms[0]:.1f} | {ms[1]:.1f} | {late:.2%} | {share:.2f} | {refusals} | {ms[3]:.2f} |", file=sys.stderr)
    print(s["load"], s["rate"], planned, warm, ms[0], ms[1], 1e3 * report["deadline"])
PYTHON
[ -z "$picture" ] || gnuplot -c "$SOURCE/clients/scripts/load.gp" "$work/data" "$picture"
