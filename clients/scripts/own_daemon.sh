# shellcheck shell=bash
# The begin of scripts that start a sinewd of their own; sourced by them, with their arguments, of which BUILD is the first:
# SOURCE, BUILD; work, a temporary folder; daemon, the process that is ended with the script.

# Prints the comment at the head of the script.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }
case ${1:---} in
  --help | -h) usage; exit ;;
  -*) usage >&2; exit 1 ;;
esac
SOURCE=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(cd "$1" && pwd)

work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-$(basename "$0" .sh).XXXXXX")
daemon=
stop() {
  [ -z "$daemon" ] || { kill -TERM "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; } || true
  rm -rf "$work"
}
trap stop EXIT
