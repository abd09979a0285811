#!/usr/bin/env bash
# Prints the folder of the unpacked MyoSuite models, fetching them first if needed.
set -euo pipefail
case "${1:-}" in --help | -h) sed -n '2,2s/^# \{0,1\}//p' "$0"; exit ;; esac
exec "$(dirname "$0")/../setup.sh" --models
