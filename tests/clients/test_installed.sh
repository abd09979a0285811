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
# The .pc file names the prefix of the configuration; pkg-config moves it to where it lies.
flags=$(PKG_CONFIG_PATH=$pc pkg-config --define-prefix --cflags --libs sinew-client)
read -ra flags <<<"$flags"
cc -std=c17 -Wall -Wextra -Werror -o "$prefix/controller" "$source/clients/example_controller.c" "${flags[@]}"
libdir=$(dirname "$(find "$prefix" -name 'libsinew_client.so')")
if LD_LIBRARY_PATH=$libdir timeout 60 "$prefix/controller" "ipc://$prefix/nobody.sock" 2>"$prefix/err"; then
  echo "the controller found a daemon where there is none" >&2
  exit 1
fi
grep -q "no answer from" "$prefix/err"
lines=$(wc -l <"$source/clients/example_controller.c")
echo "the example controller ($lines lines) builds against the installed library and reports a missing daemon"
# Only the public interface is exported.
exported=$(nm -D --defined-only "$libdir/libsinew_client.so" | grep -c ' T ')
[ "$exported" = 15 ] || { echo "exported: $exported symbols, expected 15" >&2; exit 1; }
