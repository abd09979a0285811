#!/usr/bin/env bash
# Checks that need no build: formatting, which folder may include what, and house rules. Ends with 0; 1 when something
# is not as it should be; 77 (skipped) when all else is, and formatting could not be looked at for want of clang-format.
set -euo pipefail
case "${1:-}" in --help | -h) sed -n '2,3s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.."

# Reads complaints from standard input and notes that there were some (pipelines run in subshells,
# hence the file).
bad=$(mktemp)
trap 'rm -f "$bad"' EXIT
complain() { sed "s|^|style: $1: |" | head -40 | tee -a "$bad"; }

sources=$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp')
python=$(git ls-files '*.py' '*.pyi')

# Formatting.
if command -v clang-format >/dev/null; then
  # shellcheck disable=SC2086
  clang-format --dry-run $sources 2>&1 | grep -E 'warning|error' | sed 's/: warning.*//' | cut -d: -f1 | sort | uniq -c |
    grep . | complain "not as clang-format wants it (lines, file)" || true
fi

# Rooms: include lines keep to the order of tests/rooms.txt, and name MuJoCo and libccd only where it does.
python3 -B tests/rooms.py 2>&1 | complain "rooms" || true

# Which sources of our tools need more than the public header: the table of clients/README.md is true.
python3 -B tests/inside.py 2>&1 | complain "inside" || true

# README.md's tour names every room.
tour=$(sed -n '/^physics\/ /,/^```/p' README.md | sed -E 's|^([a-z]+/)? +||; s| {2,}.*||')
sed -nE 's|^([a-z_]+/[a-z_]+):.*|\1|p' tests/rooms.txt | while read -r room; do
  grep -qE "(^|[ ,/])${room##*/}([ ,/]|$)" <<<"$tour" || echo "$room"
done | complain "a room that the tour of README.md leaves out"

# The libraries never print, exit or abort; physics/base/output.c is part of programs alone.
grep -HnE '\b(printf|puts|exit|_exit|abort|longjmp)\(|fprintf\((stderr|stdout)' $(echo "$sources" | grep -E '^(physics|planner|proto)/') /dev/null |
  grep -vE '^physics/(import/main|base/output)\.c:|//.*(printf|exit|abort)' |
  grep . | complain "a library prints or exits" || true

# Among tests: the largest of errors of which one is NaN is NaN; fmax() would forget it.
grep -HnE '([^ ]+) = fmaxf?\(\1, ' $(echo "$sources" | grep -E '^tests/') /dev/null |
  grep . | complain "a largest number by fmax, which drops NaN: sn_larger (clients/base/statistics.h)" || true

# Who asks a script for help gets words: tests, which ctest starts, and a helper of CMake aside.
git ls-files -s '*.sh' | awk '$1 == 100755 {print $4}' | grep -vE '/test_|^cuda/nvcc\.sh$' | xargs grep -LF -e '--help' |
  grep . | complain "a script without --help" || true

# Top level as the design fixes it.
git ls-files | cut -d/ -f1 | sort -u |
  grep -vE '^(CMakeLists\.txt|daemon|planner|physics|cuda|proto|clients|tests|README\.md|LICENSE|CMakePresets\.json|\..*)$' |
  grep . | complain "not on the top level's list" || true

# No file that nobody finishes reading, no work left open, no machine's own paths.
# shellcheck disable=SC2086
wc -l $sources $python | awk '$1 > ($2 == "clients/include/sinew.h" ? 1300 : 800) && $2 != "total" {print $2 ": " $1 " lines"}' | grep . | complain "too long" || true
# A function fits a screen: from the line that begins at the margin to the brace that ends it there.
# shellcheck disable=SC2086
awk '/^[A-Za-z]/ { begin = FNR } /^}$/ && FNR - begin >= 60 { print FILENAME ":" begin ": " FNR - begin + 1 " lines" }' $sources |
  grep . | complain "a function above 60 lines" || true
# The Python package's own limit (ruff, part python), seen without its environment.
LC_ALL=C.UTF-8 git grep -nE '^.{121}' -- 'clients/python/*.py' 'tests/clients/python/*.py' | grep -vE 'noqa|type: ignore' | cut -d: -f1,2 | grep . | complain "longer than 120 characters" || true
grep -HnE '\b(TODO|FIXME|XXX|HACK)\b' $sources $python /dev/null | grep . | complain "unfinished work" || true
git grep -nE '(^|[^A-Za-z0-9_.])/(work|root|farm)/' -- . ':!tests/style.sh' | grep . | complain "machine path" || true

git grep -nE '^(<<<<<<< |>>>>>>> |=======$)' -- . ':!tests/style.sh' | grep . | complain "a conflict of two branches, left unresolved" || true

# Comments of all headers, and parameters, lengths and names of functions, as tests/comments.py wants them.
python3 -B -m doctest tests/comments.py 2>&1 | complain "tests/comments.py contradicts its examples" || true
tests/comments.py . 2>&1 | complain "comment" || true

# Files that documents and comments name are there, and the names of code that pages mention.
python3 -B -m doctest tests/paths.py 2>&1 | complain "tests/paths.py contradicts its examples" || true
tests/paths.py 2>&1 | complain "path" || true

# Known defects that the tests are tried with: edits of the code, which must still apply (tests/mutations).
tests/mutate.sh --check 2>&1 >/dev/null | sed 's/^mutate: //' | complain "mutations" || true

[ -s "$bad" ] && exit 1
if ! command -v clang-format >/dev/null; then
  echo "style: layers and house rules hold; skipped: formatting, clang-format is not installed"
  exit 77
fi
echo "style: formatting, layers and house rules hold over $(echo "$sources" | wc -l) files"
