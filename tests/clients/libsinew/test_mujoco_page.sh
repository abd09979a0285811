#!/usr/bin/env bash
# Looks whether MuJoCo's headers and Python modules have every name of theirs that the page for its users gives, and the fields
# of arrays that it names; a page with a wrong name must be refused. Names of ours are checked by tests/paths.py.
#   test_mujoco_page.sh SOURCE_FOLDER MUJOCO_FOLDER
set -euo pipefail
page=$1/clients/libsinew/MUJOCO.md
mujoco=$2
fail() { echo "$1" >&2; exit 1; }

# strange PAGE: names that are MuJoCo's by their look and not in it. One that ends in a star stands for all that begin so.
strange() {
  local name
  for name in $(grep -o '`[^`]*`' "$1" | grep -oE '\b(mj[a-z]*_[A-Za-z0-9_]*\*?|mj[A-Z][A-Za-z]*(_[A-Z]+)?|mujoco\.[a-z]+)' | sort -u); do
    case $name in
      mujoco.*) [ -f "$mujoco/${name#mujoco.}.py" ] || echo "$name" ;;
      *\*) grep -rq -- "\b${name%\*}" "$mujoco/include" || echo "$name" ;;
      *) grep -rqw -- "$name" "$mujoco/include" || echo "$name" ;;
    esac
  done
  for name in $(grep -oE '_array\([a-z]+, "[a-z_A-Z]+"' "$1" | cut -d'"' -f2 | sort -u); do
    grep -rqw -- "$name;" "$mujoco/include" || echo "$name"
  done
}

wrong=$(strange "$page")
[ -z "$wrong" ] || fail "MuJoCo does not have: $wrong"
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-page.XXXXXX")
trap 'rm -rf "$work"' EXIT
for edit in 's/mj_makeData/mj_makeDatum/' 's/mjWARN_INERTIA/mjWARN_INERTIAL/' 's/mujoco\.rollout/mujoco.unroll/' 's/mjv_\*/mjw_*/' 's/"qpos"/"qpose"/'; do
  sed "$edit" "$page" >"$work/page.md"
  [ "$(strange "$work/page.md" | wc -l)" = 1 ] || fail "not refused: $edit"
done
echo "MuJoCo has all names of $(basename "$page")"
