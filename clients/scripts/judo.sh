#!/usr/bin/env bash
# Runs the controllers of judo-rai (PyPI) and our planners on judo's own tasks, from the same states, scored by judo's reward:
# cost reached, plans a second, and processor time a plan on the same machine.
#
#   clients/scripts/judo.sh [--seeds N] [--seconds S] [--tasks TASK,...] [FOLDER]
#
# FOLDER (default: sinew-judo) gets runs.jsonl, a line a run, and table.md. A run that has its line is not run again. Tasks:
# cartpole and cylinder_push, the two of judo-rai 0.1.0 whose models its wheel has whole. judo lives in an environment of its
# own (~/.cache/sinew/judo-0.1.0, made at the first run), as it wants another MuJoCo than ours. Five minutes on two idle cores.
#
# Needs a release build (cmake --preset release && cmake --build build/release; or SINEW_BENCH names sinew-bench), and python3
# of 3.11 or later with PyPI in reach at the first run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=0.1.0 environment=${XDG_CACHE_HOME:-$HOME/.cache}/sinew/judo-0.1.0
case "${1:-}" in --help | -h) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;; esac
bench=$(realpath -m "${SINEW_BENCH:-build/release/bin/sinew-bench}")
[ -x "$bench" ] || { echo "judo.sh: $bench is missing: cmake --preset release && cmake --build build/release" >&2; exit 1; }
if [ ! -e "$environment/complete" ]; then
  echo "judo.sh: judo-rai $version goes to $environment" >&2
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet --no-input "judo-rai==$version"
  touch "$environment/complete"
fi
"$environment/bin/python" clients/scripts/judo/compare.py --bench "$bench" "$@"
