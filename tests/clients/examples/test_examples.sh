#!/usr/bin/env bash
# Compiles every file of clients/examples against an installed copy alone, by pkg-config (C as C99, C++ as C++17) and
# once more all of them by CMake's find_package, and runs each as examples.txt says. None may be left out.
#   test_examples.sh BUILD_FOLDER SOURCE_FOLDER MUJOCO_FOLDER MYOSUITE_FOLDER [SANITIZERS]
set -euo pipefail
build=$1 source=$2 mujoco=$3 myosuite=$4 sanitizers=${5:-}
examples=$source/clients/examples
table=$source/tests/clients/examples/examples.txt
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-examples.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; [ -z "${2:-}" ] || tail -30 "$2" >&2; exit 1; }
prefix=$work/prefix
mkdir "$work/bin" "$work/empty" "$work/cache"
cmake --install "$build" --prefix "$prefix" >/dev/null
lib=$(dirname "$(find "$prefix" -name libsinew.so)")
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib:$lib/sinew XDG_CACHE_HOME=$work/cache

# compile FILE: one example, with the libraries that its includes ask for.
compile() {
  local file=$1 flags compiler="cc -std=c99 -Wstrict-prototypes"
  [ "${file##*.}" = c ] || compiler="c++ -std=c++17"
  flags="-O2 -Wall -Wextra -Wpedantic -Wshadow -Werror $(grep -q '<sinew.h>' "$file" && pkg-config --cflags --libs sinew || true)"
  grep -q '<sinew_client.h>' "$file" && flags+=" $(pkg-config --cflags --libs sinew-client)"
  grep -q '<mujoco/' "$file" && flags+=" -isystem $mujoco/include $mujoco/libmujoco.so.4.0.0"
  # shellcheck disable=SC2086
  $compiler ${sanitizers:+-fsanitize=$sanitizers -g} -o "$work/bin/$(basename "${file%.*}")" "$file" $flags -lm
}

# run NAME STATUS ARGUMENTS LINE: one row of the table.
run() {
  local name=$1 wanted=$2 arguments=$3 line=$4 status=0
  if [[ $arguments == *MYOSUITE* && ! -d $myosuite ]]; then echo "skipped: $name, no models of MyoSuite in $myosuite"; return; fi
  arguments=${arguments//MODELS/$source/physics/models}
  arguments=${arguments//TASKS/$source/planner/tasks}
  arguments=${arguments//MYOSUITE/$myosuite}
  arguments=${arguments//EMPTY/$work/empty}
  # shellcheck disable=SC2086  # the arguments are split on purpose
  (cd "$work/empty" && timeout 120 "$work/bin/$name" $arguments) >"$work/out" 2>&1 || status=$?
  [ "$status" = "$wanted" ] || fail "$name $arguments ends with $status instead of $wanted:" "$work/out"
  grep -qxE -- "$line" "$work/out" || fail "$name $arguments does not print a line like '$line':" "$work/out"
}

count=0
for file in "$examples"/*.c "$examples"/*.cpp; do
  [ -e "$file" ] || continue
  name=$(basename "${file%.*}")
  grep -q "^$name |" "$table" || fail "$name has no row in tests/clients/examples/examples.txt"
  compile "$file" || fail "$name does not compile against the installed library"
  count=$((count + 1))
done
while IFS='|' read -r name status arguments line; do
  name=$(xargs <<<"$name")
  [ -x "$work/bin/$name" ] || fail "examples.txt has a row for $name, which is no example"
  run "$name" "$(xargs <<<"$status")" "$arguments" "$(sed 's/^ *//; s/ *$//' <<<"$line")"
done < <(grep -vE '^(#|$)' "$table")

# All of them as one project of CMake.
if ! cmake -S "$examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DMUJOCO_DIR="$mujoco" \
    ${sanitizers:+-DCMAKE_C_FLAGS=-fsanitize=$sanitizers -DCMAKE_CXX_FLAGS=-fsanitize=$sanitizers} >"$work/out" 2>&1 ||
  ! cmake --build "$work/build" -j 2 >"$work/out" 2>&1; then
  fail "the examples do not build by CMake:" "$work/out"
fi
for program in "$work"/bin/*; do
  [ -x "$work/build/$(basename "$program")" ] || fail "clients/examples/CMakeLists.txt leaves out $(basename "$program")"
done
echo "$count examples build against the installed library by pkg-config and by CMake, and run"
