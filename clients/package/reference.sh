#!/usr/bin/env bash
# Writes the reference page of the public headers into FOLDER/html. Ends with 1 where something of them has no comment, or a
# comment names what there is not; with 77 (skipped) without Doxygen.
#   clients/package/reference.sh FOLDER [VERSION]
set -euo pipefail
case "${1:-}" in --help | -h) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit ;; esac
[ $# -ge 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2; }
command -v doxygen >/dev/null || { echo "skipped: Doxygen is not installed"; exit 77; }
mkdir -p "$1"
folder=$(realpath "$1")
cd "$(dirname "$0")/../.."
rm -rf "$folder/html"
doxygen - <<END
$(cat clients/package/Doxyfile)
OUTPUT_DIRECTORY = "$folder"
PROJECT_NUMBER = ${2:-}
STRIP_FROM_PATH = "$PWD"
STRIP_FROM_INC_PATH = "$PWD/clients/include"
END
echo "the reference is $folder/html/index.html"
