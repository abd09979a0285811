#!/usr/bin/env bash
# The systemd unit as it is installed, also below a folder with a space in its name: `systemd-analyze verify` finds
# nothing wrong with it, and would. Where there is no systemd-analyze the test is skipped (77).
#   test_unit.sh BUILD_FOLDER
set -euo pipefail
build=$1
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze (Debian package systemd)"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-unit.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -m 700 "$work/runtime"
export XDG_RUNTIME_DIR=$work/runtime

# Whether a unit is without fault; what is said goes to $work/out. Faults of the system's own units do not count.
verify() {
  systemd-analyze --user --recursive-errors=no verify "$1" >"$work/out" 2>&1 && ! grep -qF "$(basename "$1")" "$work/out"
}
fail() { echo "test_unit: $1" >&2; cat "$work/out" >&2; exit 1; }

for prefix in "$work/plain" "$work/with a space"; do
  cmake --install "$build" --prefix "$prefix" >/dev/null
  unit=$prefix/lib/systemd/user/sinewd.service
  grep -qxF "ExecStart=\"$prefix/bin/sinewd\"" "$unit" || { cat "$unit" >&2; exit 1; }
  verify "$unit" || fail "$unit is refused"
done

sed 's/^LimitNOFILE/LimtNOFILE/' "$unit" >"$work/misspelt.service"
if verify "$work/misspelt.service"; then fail "a misspelt setting passes"; fi
sed 's|/bin/sinewd|/bin/nowhere|' "$unit" >"$work/nowhere.service"
if verify "$work/nowhere.service"; then fail "a program that is not there passes"; fi
echo "systemd-analyze finds nothing wrong with the unit"
