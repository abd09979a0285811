#!/usr/bin/env bash
# The long form of daemon/test_kills: a thousand SIGKILLs at random moments under load.
#   tests/daemon/kills.sh BUILD [KILLS [SEED]]
set -euo pipefail
case "${1:-}" in --help | -h) sed -n '2,3s/^# \{0,1\}//p' "$0"; exit ;; esac
build=${1:?a build folder, such as build/release}
cmake --build "$build" --target daemon_test_kills sinewd sinew-import -- --quiet
"$build/bin/daemon_test_kills" "${2:-1000}" "${3:-$(date +%s)}"
