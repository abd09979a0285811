#!/usr/bin/env bash
# A piece of a soak of sinewd, in a build of a preset (release, asan, tsan), which is made first if need be.
#   tests/daemon/soak/soak.sh [--preset PRESET] [--hours H] [--state FOLDER] [OPTION...]      options of soak.py
set -euo pipefail
source=$(cd "$(dirname "$0")/../../.." && pwd)
preset=release options=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?a preset, such as asan}; shift ;;
    --help | -h) sed -n '2,3s/^# \?//p' "$0"; exec "$source/tests/daemon/soak/soak.py" --help ;;
    *) options+=("$1") ;;
  esac
  shift
done
build="$source/build/$preset"
[ -f "$build/CMakeCache.txt" ] || cmake --preset "$preset" -S "$source" -DSINEW_CUDA=OFF >/dev/null
cmake --build "$build" --target sinewd sinewctl sinew-import soak_clients -- --quiet
[ "$preset" = release ] || options+=(--no-memory)
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}" LSAN_OPTIONS="${LSAN_OPTIONS:-suppressions=$source/tests/lsan.supp}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-suppressions=$source/tests/tsan.supp}"
exec "$source/tests/daemon/soak/soak.py" "$build/bin" "$source" "${options[@]}"
