#!/usr/bin/env bash
# Makes the reference page, which has no warning, and looks whether all functions stand on it in their groups, with their
# comments and those of members. A header with something that has no comment, or names what there is not, must be refused.
#   test_reference.sh SOURCE_FOLDER
set -euo pipefail
source=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-reference.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }
"$source/clients/package/reference.sh" "$work/page" 1.2.3 >"$work/log" 2>&1 || { status=$?; cat "$work/log"; exit "$status"; }
html=$work/page/html

# All functions, each in the group of its section.
count=0
for header in sinew sinew_client; do
  while read -r section name; do
    grep -q ">$name</" "$html/group__${header//_/__}__${section//_/__}.html" || fail "$name is not in the group $section of $header.h"
    count=$((count + 1))
  done < <(sed -e '/^static inline/,/^}/d' "$source/clients/include/$header.h" | awk '
    match($0, /^\/\/ ---- .* ----$/) { section = substr($0, 9, length($0) - 13); gsub(/[^A-Za-z0-9]+/, "_", section) }
    /^[A-Za-z]/ && match($0, /sinew_[a-z0-9_]+\(/) { print section, substr($0, RSTART, RLENGTH - 1) }')
done
[ "$count" -ge 80 ] || fail "only $count functions were looked for"

# holds PAGE TEXT: whether a page has a text, tags left out.
holds() { sed 's/<[^>]*>//g; s/&#160;/ /g' "$html/$1" | grep -F -- "$2" >/dev/null || fail "$1 does not have: $2"; }
holds index.html "The tree may be moved"
holds index.html "1.2.3"
grep -q 'href="[^"]*MUJOCO[^"]*\.html"' "$html/index.html" || fail "the first page has no link to that for users of mj_step"
holds structSinewContact.html "rows: normal from geom[0] to geom[1], two tangents"
holds structSinewRollouts.html "Initial states"
holds group__sinew__version__and__errors.html "a file could not be read or written"
holds group__sinew__model.html "MuJoCo's compiler refuses it: its text"
holds group__sinew__derivatives__of__a__step.html "A tangent of a state is"

# refused WHAT SED: whether a header that sed has edited is refused, and for what.
refused() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree/clients"
  cp -r "$source/clients/include" "$source/clients/package" "$source/clients/libsinew" "$work/tree/clients"
  sed -i "$2" "$work/tree/clients/include/sinew.h"
  ! cmp -s "$source/clients/include/sinew.h" "$work/tree/clients/include/sinew.h" || fail "the edit changes nothing: $2"
  if "$work/tree/clients/package/reference.sh" "$work/other" >"$work/log" 2>&1; then fail "not refused: $1"; fi
  grep -q -- "$3" "$work/log" || { cat "$work/log" >&2; fail "refused for something else: $1"; }
}
refused "a function without a comment" '/^\/\/ Returns the time \[s\]/c\\' 'sinew_data_time.* is not documented'
refused "a member without a comment" 's|^\( *double dist;\) *//.*distance of the nearest.*|\1|; s|mjContact|contact|; s|MuJoCo.s contact|those|' 'dist .* is not documented'
refused "a comment that names a function that is not there" 's|^// Frees a body\.|// Frees a body; SINEW_NOTHING.|' 'SINEW_NOTHING'
echo "the reference has $count functions"
