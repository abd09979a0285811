#!/usr/bin/env bash
# A library of a backend exports its one object, needs no driver to be loaded, and opens; without a device it says so
# (77: skipped).
#   test_library.sh NAME LIBRARY OPEN_DEVICE
set -euo pipefail
name=$1 library=$2 open=$3
exported=$(nm -D --defined-only "$library" | awk '{print $3}')
[ "$exported" = sn_plugin ] || { echo "$library exports: $exported" >&2; exit 1; }
if readelf -d "$library" | grep -E 'NEEDED.*libcuda\.so'; then
  echo "$library cannot be loaded where there is no driver" >&2
  exit 1
fi
"$open" "$name" "$(dirname "$library")"
