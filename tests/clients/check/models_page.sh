#!/usr/bin/env bash
# Writes the tables of tests/clients/check/MODELS.md: every model of MyoSuite beside MuJoCo, its derivatives, and models of
# other packages.
#
#   tests/clients/check/models_page.sh                      all three tables: six minutes on two cores; 240 MB are fetched
#   tests/clients/check/models_page.sh models gradients     only these; the third is named wheels
#
#   --bin FOLDER       where sinew-check lies (default build/release/bin: a release build)
#   --extra MODEL.xml  one more model for the first two tables; may be given several times
#
# Exit status: that of the first table that is not as it should be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

bin=build/release/bin extra=() tables=()
while [ $# -gt 0 ]; do
  case $1 in
    --bin | --extra)
      [ $# -ge 2 ] || { echo "models_page.sh: $1 needs a value" >&2; exit 2; }
      if [ "$1" = --bin ]; then bin=$2; else extra+=("$2"); fi
      shift 2 ;;
    models | gradients | wheels) tables+=("$1"); shift ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit $([ "$1" = --help ] && echo 0 || echo 2) ;;
  esac
done
[ ${#tables[@]} -gt 0 ] || tables=(models gradients wheels)
[ -x "$bin/sinew-check" ] || { echo "models_page.sh: no sinew-check in $bin: cmake --preset release && cmake --build build/release" >&2; exit 1; }

here=tests/clients/check
status=0
note() { [ "$status" != 0 ] || status=$1; }
for table in "${tables[@]}"; do
  case $table in
    models) "$here/check_table.py" "$bin/sinew-check" "$(clients/scripts/fetch_models.sh)" --write "$here/MODELS.md" --extra "${extra[@]}" || note $? ;;
    gradients) "$here/check_table.py" "$bin/sinew-check" "$(clients/scripts/fetch_models.sh)" --gradient --write "$here/MODELS.md" --extra "${extra[@]}" || note $? ;;
    wheels) "$here/check_wheels.py" "$bin/sinew-check" --write "$here/MODELS.md" || note $? ;;
  esac
done
exit "$status"
