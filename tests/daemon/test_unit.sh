#!/usr/bin/env bash
# The systemd units as they are installed, also below a folder with a space in its name: `systemd-analyze verify` finds
# nothing wrong with them, and would; that of the system is exposed less than 2.0 as `systemd-analyze security` reckons. Where there
# is no systemd-analyze the test is skipped (77).
#   test_unit.sh BUILD_FOLDER
set -euo pipefail
build=$1
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze (Debian package systemd)"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-unit.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -m 700 "$work/runtime"
export XDG_RUNTIME_DIR=$work/runtime

# Whether a unit of the user's manager is without fault; what is said goes to $work/out. Faults of the system's own units do not count.
verify() {
  systemd-analyze --user --recursive-errors=no verify "$1" >"$work/out" 2>&1 && ! grep -qF "$(basename "$1")" "$work/out"
}
fail() { echo "test_unit: $1" >&2; cat "$work/out" >&2; exit 1; }

# What an unit of the system is told; of the user that it names nobody need know here.
verify_system() {
  sed 's/^User=.*/User=root/; s/^Group=.*/Group=root/' "$1" >"$work/sinewd.service"
  systemd-analyze --recursive-errors=no --man=false verify "$work/sinewd.service" >"$work/out" 2>&1 && ! grep -qF sinewd.service "$work/out"
}
# How far a unit is exposed, from 0 to 10.
exposure() { systemd-analyze security --offline=true --no-pager "$1" 2>/dev/null | sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p'; }

for prefix in "$work/plain" "$work/with a space"; do
  cmake --install "$build" --prefix "$prefix" >/dev/null
  system=$prefix/lib/systemd/system/sinewd.service
  grep -qxF "ExecStart=\"$prefix/bin/sinewd\" \"--config=$prefix/etc/sinew/sinewd.yaml\"" "$system" || { cat "$system" >&2; exit 1; }
  verify_system "$system" || fail "$system is refused"
  "$prefix/bin/sinewd" --config="$prefix/etc/sinew/sinewd.yaml" --endpoint="ipc://$work/s" --cache="$work/cache" --state="$work/state" \
    --flight-folder="$work/flight" --check || fail "the configuration is refused"
  unit=$prefix/lib/systemd/user/sinewd.service
  grep -qxF "ExecStart=\"$prefix/bin/sinewd\"" "$unit" || { cat "$unit" >&2; exit 1; }
  verify "$unit" || fail "$unit is refused"
done

cp "$system" "$work/sinewd.service"
level=$(exposure "$work/sinewd.service")
echo "exposure of the system's unit: $level"
awk -v x="$level" 'BEGIN { exit !(x != "" && x < 2.0) }' || fail "the system's unit is exposed by $level"
sed -i '/^Protect\|^Restrict\|^SystemCall/d' "$work/sinewd.service"
awk -v x="$(exposure "$work/sinewd.service")" 'BEGIN { exit !(x > 2.0) }' || fail "a unit without protection passes"

sed 's/^LimitNOFILE/LimtNOFILE/' "$unit" >"$work/misspelt.service"
if verify "$work/misspelt.service"; then fail "a misspelt setting passes"; fi
sed 's|/bin/sinewd|/bin/nowhere|' "$unit" >"$work/nowhere.service"
if verify "$work/nowhere.service"; then fail "a program that is not there passes"; fi
echo "systemd-analyze finds nothing wrong with the unit"
