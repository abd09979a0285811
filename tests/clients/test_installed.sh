#!/usr/bin/env bash
# Installs into a temporary folder and compiles the example controller against the installed copy, with
# nothing but pkg-config; without a daemon it must say so and end with 1.
#   test_installed.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1 source=$2
prefix=$(mktemp -d "${TMPDIR:-/tmp}/sinew-install.XXXXXX")
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
pc=$(dirname "$(find "$prefix" -name sinew-client.pc)")
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs sinew-client)
read -ra flags <<<"$flags"
cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o "$prefix/controller" "$source/clients/examples/controller.c" "${flags[@]}"
libdir=$(dirname "$(find "$prefix" -name 'libsinew_client.so')")
if LD_LIBRARY_PATH=$libdir timeout 60 "$prefix/controller" "ipc://$prefix/nobody.sock" 2>"$prefix/err"; then
  echo "the controller found a daemon where there is none" >&2
  exit 1
fi
grep -q "no answer from" "$prefix/err"
lines=$(wc -l <"$source/clients/examples/controller.c")
[ "$lines" -le 40 ] || { echo "the example of forty lines has $lines" >&2; exit 1; }
echo "the example controller ($lines lines) builds against the installed library and reports a missing daemon"
# The schema, from which clients in other languages are made.
protoc-c --c_out="$prefix" --proto_path="$prefix/share/sinew" sinew.proto && grep -q 'Sinew__V1__Plan ' "$prefix/sinew.pb-c.h" ||
  { echo "the schema is not installed" >&2; exit 1; }
protoc-c --descriptor_set_out="$prefix/sinew.desc" --proto_path="$prefix/share/sinew" sinew.proto
cmp "$prefix/sinew.desc" "$prefix/share/sinew/sinew.desc"

# The installed programs find their libraries, models and tasks: the same controller against the installed daemon, with
# an empty cache folder.
grep -qx "ExecStart=\"$prefix/bin/sinewd\"" "$(find "$prefix" -path '*/user/sinewd.service')"
export XDG_CACHE_HOME=$prefix/cache XDG_CONFIG_HOME=$prefix/config LD_LIBRARY_PATH=$libdir
mkdir -p "$XDG_CACHE_HOME"
endpoint=ipc://$prefix/sinewd.sock
"$prefix/bin/sinewd" --endpoint="$endpoint" 2>"$prefix/log" &
daemon=$!
trap 'kill -TERM "$daemon" 2>/dev/null || true; wait "$daemon" || true; rm -rf "$prefix"' EXIT
fail() { echo "$1" >&2; tail -5 "$prefix/log" >&2; exit 1; }
"$prefix/bin/sinewctl" --endpoint "$endpoint" health >/dev/null || fail "the installed daemon does not answer"
timeout 60 "$prefix/controller" "$endpoint" arm_reach >"$prefix/out" || fail "the controller failed"
[ "$(grep -c "cost" "$prefix/out")" = 10 ] || fail "the controller got no plans"
"$prefix/bin/sinew-plant" --endpoint "$endpoint" --seconds 0.2 --quiet --json | grep '"plans":' >/dev/null ||
  fail "the installed plant failed"
if "$prefix/bin/sinew-check" "$prefix/nothing.xml" >/dev/null 2>&1; then fail "sinew-check checked nothing"; fi
[ -n "$("$prefix/bin/sinew-bench" --help)" ] || fail "sinew-bench does not run"
echo "the installed daemon plans for it"
