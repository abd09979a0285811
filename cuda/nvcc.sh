#!/bin/sh
# Runs a command and keeps what it says in a file: shown only when it fails, or warns.
#   nvcc.sh LOG COMMAND...
log=$1
shift
if "$@" >"$log" 2>&1; then
  grep -i "warning" "$log" >&2
  exit 0
fi
cat "$log" >&2
exit 1
