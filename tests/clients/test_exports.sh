#!/usr/bin/env bash
# Compares what the shared libraries export with the functions that their headers declare: none more, none less.
#   test_exports.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-exports.XXXXXX")
trap 'rm -rf "$work"' EXIT

# declared HEADER: the functions that it declares, but for inline ones.
declared() { sed -e '/^static inline/,/^}/d' -e 's|//.*||' "$1" | grep -E '^[A-Za-z]' | grep -oE '\bsinew_[a-z0-9_]+\(' | tr -d '(' | sort -u; }
exported() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }

# compare LIBRARY: exported functions are in $work/exported, the declared ones in $work/declared.
status=0
compare() {
  local only
  only=$(comm -23 "$work/exported" "$work/declared")
  [ -z "$only" ] || { echo "$1 exports what its header does not declare:" $only >&2; status=1; }
  only=$(comm -13 "$work/exported" "$work/declared")
  [ -z "$only" ] || { echo "$1 does not export what its header declares:" $only >&2; status=1; }
  echo "$1 exports $(wc -l <"$work/exported") functions"
}

declared "$source/clients/include/sinew.h" >"$work/declared"
[ "$(wc -l <"$work/declared")" -ge 60 ] || { echo "too few functions were found in sinew.h" >&2; exit 1; }
exported "$build/clients/libsinew.so" >"$work/exported"
compare libsinew.so

# The client library has the names of statuses, too.
{ declared "$source/clients/include/sinew_client.h"; echo sinew_status_name; } | sort -u >"$work/declared"
exported "$build/clients/libsinew_client.so" >"$work/exported"
compare libsinew_client.so
exit "$status"
