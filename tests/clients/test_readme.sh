#!/usr/bin/env bash
# The shell lines of README.md run as they stand, and the plan that they print is the one in the page.
#   test_readme.sh BIN SOURCE
set -euo pipefail
BIN=$1 SOURCE=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-readme.XXXXXX")
export XDG_RUNTIME_DIR=$work
chmod 700 "$work"
mkdir -p "$work/build/release"
ln -s "$BIN" "$work/build/release/bin"
cd "$work"
trap 'pid=$(cat pid 2>/dev/null || true); [ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
# The only block marked as shell; the number of the daemon is noted, should a line fail.
sed -n '/^```sh$/,/^```$/p' "$SOURCE/README.md" | grep -v '^```' | sed 's/^sinewd .*&$/&\necho $! >pid/' >lines
[ "$(wc -l <lines)" -ge 12 ]
TERM=dumb bash -eu lines >out 2>err || { cat out err >&2; exit 1; }
for wanted in '  name: acrobot' 'status: \(OK\|WARM_START\)' 'steps: 48' 'version: 2' 'adam_rate: 0.02' 'version: 3' 'adam_rate: 0.01' '  cpu$' '"plans":1'; do
  grep -q -- "$wanted" out || { cat out err >&2; echo "FAIL  no '$wanted'" >&2; exit 1; }
done
[ ! -s err ] || { cat err >&2; exit 1; }
# What the page shows of the plan is what comes out; its cost at the end alone where the deadline left time for all iterations.
number() { sed -n "s/^$1: //p" "$2" | head -1; }
shown="cost_now cost_before"
! grep -q '^iterations: 32$' out || shown="$shown cost_after"
for name in $shown; do
  awk -v page="$(number "$name" "$SOURCE/README.md")" -v here="$(number "$name" out)" 'BEGIN {
    exit !(page > 0 && page - here < 1e-4 && here - page < 1e-4) }' ||
    { echo "FAIL  $name: README.md has $(number "$name" "$SOURCE/README.md"), here it is $(number "$name" out)" >&2; exit 1; }
done
echo "README.md: $(wc -l <lines) lines of shell run"
